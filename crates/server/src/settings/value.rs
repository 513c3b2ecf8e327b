//! The types a setting can have, and bounds: how values are written, read back and refused.

use crate::memory_available;
use angarium_engine::SlowConsumerPolicy;
use angarium_engine::limits::SHARDS_MAX;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// A type that a setting can have.
pub trait SettingValue: Sized {
    /// What a value looks like, in alternatives: `BYTES`, `auto`.
    const FORMS: &'static [&'static str];
    /// Reads it; the error says what is wrong with the text, without repeating it.
    fn parse(text: &str) -> Result<Self, String>;
    /// Writes it so that [`SettingValue::parse`] reads the same back.
    fn show(&self) -> String;
    /// What a value looks like, for help: `ADDR:PORT|off`.
    fn form() -> String {
        Self::FORMS.join("|")
    }
}

impl<T: SettingValue> SettingValue for Option<T> {
    const FORMS: &'static [&'static str] = T::FORMS;
    fn form() -> String {
        format!("{}|off", T::form())
    }
    fn parse(text: &str) -> Result<Self, String> {
        if text == "off" { Ok(None) } else { T::parse(text).map(Some) }
    }
    fn show(&self) -> String {
        self.as_ref().map_or_else(|| "off".into(), T::show)
    }
}

/// Where to listen.
impl SettingValue for SocketAddr {
    const FORMS: &'static [&'static str] = &["ADDR:PORT"];
    fn parse(text: &str) -> Result<Self, String> {
        let numeric = match text.strip_prefix("localhost:") {
            Some(port) => format!("127.0.0.1:{port}"),
            None if text.starts_with(':') => format!("0.0.0.0{text}"),
            None => text.to_owned(),
        };
        numeric.parse().map_err(|_| {
            let port = text.parse::<u16>().unwrap_or(5672);
            format!("expected ADDRESS:PORT such as 127.0.0.1:{port}, :{port} or off")
        })
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

/// A number of bytes, written `128MiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteCount(pub u64);

const BYTE_UNITS: [(&str, u64); 7] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("B", 1),
];

impl SettingValue for ByteCount {
    const FORMS: &'static [&'static str] = &["BYTES"];
    fn parse(text: &str) -> Result<Self, String> {
        const EXPECTED: &str = "expected bytes such as 4096, 64KiB, 128MiB, 2GiB";
        let (digits, unit) = split_unit(text);
        let unit = if unit.is_empty() { "B" } else { unit };
        let known = BYTE_UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit));
        let factor = known.ok_or(EXPECTED)?.1;
        let number: u64 = digits.parse().map_err(|_| EXPECTED)?;
        number.checked_mul(factor).map(ByteCount).ok_or_else(|| "is too large".into())
    }
    fn show(&self) -> String {
        let fits = |(_, factor): &&(&str, u64)| self.0 != 0 && self.0.is_multiple_of(*factor);
        match BYTE_UNITS.iter().filter(|(name, _)| name.len() == 3).find(fits) {
            Some((name, factor)) => format!("{}{name}", self.0 / factor),
            None => self.0.to_string(),
        }
    }
}

/// A length of time, written `30s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

const TIME_UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

impl SettingValue for Span {
    const FORMS: &'static [&'static str] = &["TIME"];
    fn parse(text: &str) -> Result<Self, String> {
        const EXPECTED: &str = "expected a time with its unit such as 500ms, 30s, 10m, 2h, 7d";
        let (digits, unit) = split_unit(text);
        let factor = TIME_UNITS.iter().find(|(name, _)| *name == unit).ok_or(EXPECTED)?.1;
        let number: u64 = digits.parse().map_err(|_| EXPECTED)?;
        let millis = number.checked_mul(factor).ok_or("is too long")?;
        Ok(Span(Duration::from_millis(millis)))
    }
    fn show(&self) -> String {
        let millis = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        let fits = |(_, factor): &&(&str, u64)| millis % factor == 0;
        let (name, factor) = TIME_UNITS.iter().find(fits).expect("one millisecond divides all");
        format!("{}{name}", millis / factor)
    }
}

fn split_unit(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

macro_rules! choice {
    ($(#[doc = $about:literal])+ $type:ident {
        $($(#[doc = $text:literal])+ $value:ident = $name:literal,)+
    }) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $type { $($(#[doc = $text])+ $value,)+ }

        impl SettingValue for $type {
            const FORMS: &'static [&'static str] = &[$($name),+];
            fn parse(text: &str) -> Result<Self, String> {
                match text {
                    $($name => Ok($type::$value),)+
                    _ => Err(format!("expected one of {}", Self::form())),
                }
            }
            fn show(&self) -> String {
                match self { $($type::$value => $name.into(),)+ }
            }
        }
    };
}

choice! {
    /// How much is logged.
    LogLevel {
        /// Lost data, corruption, unavailability.
        Error = "error",
        /// And what an operator should look at.
        Warn = "warn",
        /// And starts, stops, reloads, and what administrators do.
        Info = "info",
        /// And every connection.
        Debug = "debug",
    }
}

choice! {
    /// What happens to a message for a session that has as many as it may.
    SessionOverflow {
        /// The oldest goes.
        DropOldest = "drop-oldest",
        /// It is refused.
        Refuse = "refuse",
    }
}

choice! {
    /// Whether clients must begin TLS.
    Encryption {
        /// They may.
        Optional = "optional",
        /// They must.
        Required = "required",
    }
}

choice! {
    /// Who sees metrics.
    MetricsAccess {
        /// Everybody sees totals, some users also the queues.
        Totals = "totals",
        /// Everybody sees all.
        Open = "open",
        /// Some users see all, others none.
        Users = "users",
    }
}

choice! {
    /// What in a client's certificate is the user's name.
    CertificateUser {
        /// The subject's common name.
        CommonName = "common-name",
        /// The whole subject.
        DistinguishedName = "distinguished-name",
        /// The first mail address among the alternative names.
        Email = "email",
        /// The first DNS name among them.
        Dns = "dns",
        /// The first URI among them.
        Uri = "uri",
        /// Nothing.
        None = "none",
    }
}

choice! {
    /// How a log line is written.
    LogFormat {
        /// For people.
        Text = "text",
        /// One JSON object a line.
        Json = "json",
    }
}

impl SettingValue for SlowConsumerPolicy {
    const FORMS: &'static [&'static str] =
        &["spool", "drop-oldest", "drop-new", "conflate", "disconnect"];
    fn parse(text: &str) -> Result<Self, String> {
        SlowConsumerPolicy::named(text).ok_or_else(|| format!("expected one of {}", Self::form()))
    }
    fn show(&self) -> String {
        self.name().into()
    }
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// How many shards a broker has. `None`, or `auto`: as many as the machine has processors, but one where it
/// has two. What passes from one shard to another costs more than twice as much as what does not (decision
/// 0011), and the journal and the kernel need processors too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShardCount(pub Option<usize>);

impl ShardCount {
    /// How many that is on this machine.
    pub fn number(self) -> usize {
        let auto = |processors| if processors < 3 { 1 } else { SHARDS_MAX.min(processors) };
        self.0.unwrap_or_else(|| auto(processors()))
    }
}

impl SettingValue for ShardCount {
    const FORMS: &'static [&'static str] = &["NUMBER", "auto"];
    fn parse(text: &str) -> Result<Self, String> {
        match text.parse() {
            _ if text == "auto" => Ok(ShardCount(None)),
            Ok(count) if (1..=SHARDS_MAX).contains(&count) => Ok(ShardCount(Some(count))),
            _ => Err(format!("expected auto or a number from 1 to {SHARDS_MAX}")),
        }
    }
    fn show(&self) -> String {
        self.0.map_or_else(|| "auto".into(), |count| count.to_string())
    }
}

/// What a queue hands out of its backlog in a second while others are served. `None`, or `auto`: by the
/// processors, because where they are few, a drain keeps those busy that others wait for (decision 0013).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BacklogRate(pub Option<ByteCount>);

/// With less, one message of the usual limit would hold its queue for minutes.
const BACKLOG_BYTES_LEAST: ByteCount = ByteCount(1 << 20);

impl BacklogRate {
    /// How many bytes that is on this machine.
    pub fn bytes(self) -> u64 {
        self.0.map_or_else(|| BacklogRate::with_processors(processors()), |bytes| bytes.0)
    }

    /// The rate of `auto` with this number of processors.
    pub(super) fn with_processors(processors: usize) -> u64 {
        (processors as u64 * (16 << 20)).min(128 << 20)
    }
}

impl SettingValue for BacklogRate {
    const FORMS: &'static [&'static str] = &["BYTES", "auto"];
    fn parse(text: &str) -> Result<Self, String> {
        match ByteCount::parse(text) {
            _ if text == "auto" => Ok(BacklogRate(None)),
            Ok(bytes) if bytes >= BACKLOG_BYTES_LEAST => Ok(BacklogRate(Some(bytes))),
            _ => Err("expected auto or bytes such as 64MiB, 1MiB at least".into()),
        }
    }
    fn show(&self) -> String {
        self.0.map_or_else(|| "auto".into(), |bytes| bytes.show())
    }
}

/// What peers may make the broker hold in memory. `None`, or `auto`: half of what the process may use; the
/// rest is for what is not counted: the program, buffers of the kernel, what the allocator keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemoryLimit(pub Option<ByteCount>);

/// With less, some connections at once would hold too much.
const MEMORY_LEAST: ByteCount = ByteCount(16 << 20);

impl MemoryLimit {
    /// How many bytes that is here.
    pub fn bytes(self) -> u64 {
        self.0.map_or_else(|| MemoryLimit::of_available(memory_available::bytes()), |bytes| bytes.0)
    }

    /// The limit of `auto` where the process may use that much.
    pub(super) fn of_available(bytes: u64) -> u64 {
        (bytes / 2).max(MEMORY_LEAST.0)
    }
}

impl SettingValue for MemoryLimit {
    const FORMS: &'static [&'static str] = &["BYTES", "auto"];
    fn parse(text: &str) -> Result<Self, String> {
        match ByteCount::parse(text) {
            _ if text == "auto" => Ok(MemoryLimit(None)),
            Ok(bytes) if bytes >= MEMORY_LEAST => Ok(MemoryLimit(Some(bytes))),
            _ => Err("expected auto or bytes such as 512MiB, 16MiB at least".into()),
        }
    }
    fn show(&self) -> String {
        self.0.map_or_else(|| "auto".into(), |bytes| bytes.show())
    }
}

impl SettingValue for u64 {
    const FORMS: &'static [&'static str] = &["NUMBER"];
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "expected a whole number".into())
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

/// The name of a user.
impl SettingValue for String {
    const FORMS: &'static [&'static str] = &["NAME"];
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() { Err("expected a name".into()) } else { Ok(text.into()) }
    }
    fn show(&self) -> String {
        self.clone()
    }
}

/// An address for clients, by name or number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPort {
    /// The name, or the number without brackets.
    pub host: String,
    /// The port, if it is another one than that listened on.
    pub port: Option<u16>,
}

impl SettingValue for HostPort {
    const FORMS: &'static [&'static str] = &["HOST:PORT", "HOST"];
    fn parse(text: &str) -> Result<Self, String> {
        const EXPECTED: &str = "expected HOST:PORT or HOST such as mq.example.org:4222";
        let is_bare = |host: &str| host.parse::<std::net::Ipv6Addr>().is_ok();
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !is_bare(text) && !text.ends_with(']') => {
                (host, Some(port.parse().map_err(|_| EXPECTED)?))
            }
            _ => (text, None),
        };
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if host.is_empty() || host.contains(char::is_whitespace) || host.contains(['[', ']', '/']) {
            return Err(EXPECTED.into());
        }
        Ok(HostPort { host: host.to_owned(), port })
    }
    fn show(&self) -> String {
        let host = match self.host.contains(':') {
            true => format!("[{}]", self.host),
            false => self.host.clone(),
        };
        self.port.map_or(host.clone(), |port| format!("{host}:{port}"))
    }
}

impl SettingValue for PathBuf {
    const FORMS: &'static [&'static str] = &["PATH"];
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() { Err("expected a path".into()) } else { Ok(text.into()) }
    }
    fn show(&self) -> String {
        self.display().to_string()
    }
}

impl SettingValue for Vec<String> {
    const FORMS: &'static [&'static str] = &["NAME,NAME,...", "off"];
    fn parse(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Vec::new());
        }
        let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
        if names.iter().any(String::is_empty) {
            return Err("expected names parted by commas, or off".into());
        }
        Ok(names)
    }
    fn show(&self) -> String {
        if self.is_empty() { "off".into() } else { self.join(",") }
    }
}

/// From one value to another, both included, and one that lies beside them.
pub(super) struct Bounds<T> {
    least: T,
    most: Option<T>,
    besides: Option<T>,
}

pub(super) const fn at_least<T: Copy>(least: T) -> Bounds<T> {
    Bounds { least, most: None, besides: None }
}

pub(super) const fn between<T: Copy>(least: T, most: T) -> Bounds<T> {
    Bounds { least, most: Some(most), besides: None }
}

impl<T: Copy> Bounds<T> {
    /// These and that value.
    pub(super) const fn or(self, besides: T) -> Bounds<T> {
        Bounds { least: self.least, most: self.most, besides: Some(besides) }
    }
}

impl<T: SettingValue + PartialOrd> Bounds<T> {
    /// What is wrong with a value, without repeating it.
    pub(super) fn check(&self, value: &T) -> Result<(), String> {
        let is_within = *value >= self.least && self.most.as_ref().is_none_or(|most| value <= most);
        if is_within || self.besides.as_ref() == Some(value) {
            return Ok(());
        }
        let verb = if self.most.is_some() { "lie" } else { "be" };
        Err(format!("must {verb} {}", self.words()))
    }

    /// What is allowed: `at least 1KiB`.
    pub(super) fn words(&self) -> String {
        let words = match &self.most {
            Some(most) => format!("between {} and {}", self.least.show(), most.show()),
            None => format!("at least {}", self.least.show()),
        };
        let besides = self.besides.as_ref().map(|besides| format!(", or {}", besides.show()));
        words + &besides.unwrap_or_default()
    }
}
