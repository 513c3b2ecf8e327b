//! The types a setting can have: how each is written, read back and refused.

use angarium_engine::SlowConsumerPolicy;
use angarium_engine::limits::SHARDS_MAX;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// A type that a setting can have.
pub trait SettingValue: Sized {
    /// What a value looks like, for help: `ADDR:PORT|off`.
    const FORM: &'static str;
    /// Reads it; the error says what is wrong with the text, without repeating it.
    fn parse(text: &str) -> Result<Self, String>;
    /// Writes it so that [`SettingValue::parse`] reads the same back.
    fn show(&self) -> String;
}

/// Where to listen, or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen(pub Option<SocketAddr>);

impl SettingValue for Listen {
    const FORM: &'static str = "ADDR:PORT|off";

    fn parse(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Listen(None));
        }
        let numeric = match text.strip_prefix("localhost:") {
            Some(port) => format!("127.0.0.1:{port}"),
            None if text.starts_with(':') => format!("0.0.0.0{text}"),
            None => text.to_owned(),
        };
        numeric.parse().map(|address| Listen(Some(address))).map_err(|_| {
            let port = text.parse::<u16>().unwrap_or(5672);
            format!("expected ADDRESS:PORT such as 127.0.0.1:{port}, :{port} or off")
        })
    }

    fn show(&self) -> String {
        self.0.map_or_else(|| "off".into(), |address| address.to_string())
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
    const FORM: &'static str = "BYTES";

    fn parse(text: &str) -> Result<Self, String> {
        let (digits, unit) = split_unit(text);
        let factor = if unit.is_empty() {
            1
        } else {
            let known = BYTE_UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit));
            known.ok_or("expected bytes such as 4096, 64KiB, 128MiB, 2GiB")?.1
        };
        let number: u64 =
            digits.parse().map_err(|_| "expected bytes such as 4096, 64KiB, 128MiB, 2GiB")?;
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
    const FORM: &'static str = "TIME";

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

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// Lost data, corruption, unavailability.
    Error,
    /// And what an operator should look at.
    Warn,
    /// And what happens seldom: starts, stops, reloads.
    Info,
    /// And every connection.
    Debug,
}

/// Whether clients must begin TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encryption {
    /// They may.
    Optional,
    /// They must.
    Required,
}

/// How a log line is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

macro_rules! choice {
    ($type:ty, $form:literal, $($text:literal => $value:path),+) => {
        impl SettingValue for $type {
            const FORM: &'static str = $form;
            fn parse(text: &str) -> Result<Self, String> {
                match text {
                    $($text => Ok($value),)+
                    _ => Err(concat!("expected one of ", $form).into()),
                }
            }
            fn show(&self) -> String {
                match self { $($value => $text.into(),)+ }
            }
        }
    };
}

choice!(LogLevel, "error|warn|info|debug",
    "error" => LogLevel::Error, "warn" => LogLevel::Warn,
    "info" => LogLevel::Info, "debug" => LogLevel::Debug);
choice!(Encryption, "optional|required",
    "optional" => Encryption::Optional, "required" => Encryption::Required);
choice!(LogFormat, "text|json", "text" => LogFormat::Text, "json" => LogFormat::Json);

impl SettingValue for SlowConsumerPolicy {
    const FORM: &'static str = "spool|drop-oldest|drop-new|disconnect";
    fn parse(text: &str) -> Result<Self, String> {
        SlowConsumerPolicy::named(text).ok_or_else(|| format!("expected one of {}", Self::FORM))
    }
    fn show(&self) -> String {
        self.name().into()
    }
}

impl SettingValue for Option<SlowConsumerPolicy> {
    const FORM: &'static str = "spool|drop-oldest|drop-new|disconnect|off";
    fn parse(text: &str) -> Result<Self, String> {
        if text == "off" { Ok(None) } else { SlowConsumerPolicy::parse(text).map(Some) }
    }
    fn show(&self) -> String {
        self.map_or_else(|| "off".into(), |policy| policy.show())
    }
}

impl SettingValue for Option<ByteCount> {
    const FORM: &'static str = "BYTES|off";
    fn parse(text: &str) -> Result<Self, String> {
        if text == "off" { Ok(None) } else { ByteCount::parse(text).map(Some) }
    }
    fn show(&self) -> String {
        self.map_or_else(|| "off".into(), |bytes| bytes.show())
    }
}

/// How many shards a broker has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShardCount {
    /// As many as the machine has processors, but one where it has two: what passes from one shard to
    /// another costs more than twice as much as what does not (decision 0011), and the journal and the
    /// kernel need processors too.
    Auto,
    /// This number.
    Count(usize),
}

impl ShardCount {
    /// How many that is on this machine.
    #[must_use]
    pub fn number(self) -> usize {
        match self {
            ShardCount::Auto => {
                let processors = std::thread::available_parallelism().map_or(1, usize::from);
                if processors < 3 { 1 } else { processors.min(SHARDS_MAX) }
            }
            ShardCount::Count(count) => count,
        }
    }
}

impl SettingValue for ShardCount {
    const FORM: &'static str = "NUMBER|auto";
    fn parse(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(ShardCount::Auto);
        }
        match text.parse() {
            Ok(count) if (1..=SHARDS_MAX).contains(&count) => Ok(ShardCount::Count(count)),
            _ => Err(format!("expected auto or a number from 1 to {SHARDS_MAX}")),
        }
    }
    fn show(&self) -> String {
        match self {
            ShardCount::Auto => "auto".into(),
            ShardCount::Count(count) => count.to_string(),
        }
    }
}

/// What a queue hands out of its backlog in a second while others are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BacklogRate {
    /// By the processors: where they are few, those that a drain keeps busy are those that others wait for
    /// (decision 0013).
    Auto,
    /// This rate.
    Bytes(ByteCount),
}

/// With less, one message of the usual limit would hold its queue for minutes.
const BACKLOG_BYTES_LEAST: ByteCount = ByteCount(1 << 20);

impl BacklogRate {
    /// How many bytes that is on this machine.
    #[must_use]
    pub fn bytes(self) -> u64 {
        match self {
            BacklogRate::Auto => {
                let processors = std::thread::available_parallelism().map_or(1, usize::from);
                BacklogRate::with_processors(processors)
            }
            BacklogRate::Bytes(bytes) => bytes.0,
        }
    }

    /// The rate of `Auto` with this number of processors.
    pub(super) fn with_processors(processors: usize) -> u64 {
        (processors as u64 * (16 << 20)).min(128 << 20)
    }
}

impl SettingValue for BacklogRate {
    const FORM: &'static str = "BYTES|auto";
    fn parse(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(BacklogRate::Auto);
        }
        match ByteCount::parse(text) {
            Ok(bytes) if bytes >= BACKLOG_BYTES_LEAST => Ok(BacklogRate::Bytes(bytes)),
            _ => Err("expected auto or bytes such as 64MiB, 1MiB at least".into()),
        }
    }
    fn show(&self) -> String {
        match self {
            BacklogRate::Auto => "auto".into(),
            BacklogRate::Bytes(bytes) => bytes.show(),
        }
    }
}

impl SettingValue for u64 {
    const FORM: &'static str = "NUMBER";
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "expected a whole number".into())
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

impl SettingValue for Option<u64> {
    const FORM: &'static str = "NUMBER|off";
    fn parse(text: &str) -> Result<Self, String> {
        if text == "off" { Ok(None) } else { u64::parse(text).map(Some) }
    }
    fn show(&self) -> String {
        self.map_or_else(|| "off".into(), |number| number.to_string())
    }
}

impl SettingValue for PathBuf {
    const FORM: &'static str = "PATH";
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() { Err("expected a path".into()) } else { Ok(text.into()) }
    }
    fn show(&self) -> String {
        self.display().to_string()
    }
}

impl SettingValue for Option<PathBuf> {
    const FORM: &'static str = "PATH|off";
    fn parse(text: &str) -> Result<Self, String> {
        if text == "off" { Ok(None) } else { PathBuf::parse(text).map(Some) }
    }
    fn show(&self) -> String {
        self.as_ref().map_or_else(|| "off".into(), |path| path.show())
    }
}

impl SettingValue for Vec<String> {
    const FORM: &'static str = "NAME,NAME,...|off";
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

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.show())
    }
}
