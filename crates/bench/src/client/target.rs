//! A broker's address: its scheme selects the protocol.

use crate::secrets;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A scheme of addresses.
#[derive(Debug, PartialEq, Eq)]
struct Scheme {
    name: &'static str,
    protocol: Protocol,
    /// The TCP port unless the address has one.
    port: u16,
}

const fn scheme(name: &'static str, protocol: Protocol, port: u16) -> Scheme {
    Scheme { name, protocol, port }
}

static SCHEMES: [Scheme; 8] = [
    scheme("amqp", Protocol::Amqp091, 5_672),
    scheme("amqp10", Protocol::Amqp10, 5_672),
    scheme("nats", Protocol::Nats, 4_222),
    scheme("jetstream", Protocol::JetStream, 4_222),
    scheme("mqtt", Protocol::Mqtt, 1_883),
    scheme("mqtt5", Protocol::Mqtt, 1_883),
    scheme("stomp", Protocol::Stomp, 61_613),
    scheme("redis", Protocol::Resp, 6_379),
];

/// A protocol that loads can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protocol {
    /// AMQP 0-9-1: queues, acknowledgements, confirms.
    Amqp091,
    /// AMQP 1.0: queues and topics, outcomes, transactions.
    Amqp10,
    /// NATS: subjects, at most once.
    Nats,
    /// NATS with JetStream: subjects at most once, and streams.
    JetStream,
    /// MQTT 3.1.1 or 5: topics, QoS 0 to 2.
    Mqtt,
    /// STOMP 1.2: destinations, receipts.
    Stomp,
    /// RESP, Redis's: channels at most once, and streams.
    Resp,
}

impl Protocol {
    /// The name to display.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Amqp091 => "AMQP 0-9-1",
            Protocol::Amqp10 => "AMQP 1.0",
            Protocol::Nats => "NATS",
            Protocol::JetStream => "JetStream",
            Protocol::Mqtt => "MQTT",
            Protocol::Stomp => "STOMP",
            Protocol::Resp => "RESP",
        }
    }

    /// The name to display for direct messages.
    pub fn direct_name(self) -> &'static str {
        match self {
            Protocol::JetStream => Protocol::Nats.name(),
            _ => self.name(),
        }
    }

    /// What separates the parts of a name.
    pub fn separator(self) -> char {
        match self {
            Protocol::Amqp091 | Protocol::Amqp10 | Protocol::Stomp => '-',
            Protocol::Nats | Protocol::JetStream | Protocol::Resp => '.',
            Protocol::Mqtt => '/',
        }
    }

    /// Whether messages go through named exchanges to queues that are declared.
    pub fn has_exchanges(self) -> bool {
        self == Protocol::Amqp091
    }

    /// Whether it has neither confirms nor acknowledgements nor storage.
    pub fn is_at_most_once(self) -> bool {
        self == Protocol::Nats
    }

    /// Whether a persistent message is only guaranteed once confirmed.
    pub fn keeps_confirmed_only(self) -> bool {
        matches!(self, Protocol::JetStream | Protocol::Mqtt)
    }

    /// Whether direct messages to a slow subscriber may be dropped instead of delaying the publisher.
    pub fn drops(self) -> bool {
        matches!(self, Protocol::Nats | Protocol::JetStream | Protocol::Mqtt | Protocol::Resp)
    }

    /// Whether a publisher must read even if nothing is confirmed: pings, which a broker expects to be
    /// answered, or credit.
    pub fn publishers_read(self) -> bool {
        matches!(self, Protocol::Nats | Protocol::JetStream | Protocol::Amqp10)
    }
}

/// A broker's address: `scheme://user:password@host:port/virtual-host`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Target {
    scheme: &'static Scheme,
    pub(super) login: Option<Login>,
    host: String,
    port: u16,
    /// `/` unless given; of AMQP and STOMP only.
    pub(super) virtual_host: String,
}

/// The part of an address before `@`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Login {
    /// The name; empty for Redis's default user, and a token of NATS if there is no password.
    pub(super) user: String,
    pub(super) password: Option<String>,
}

impl Login {
    /// The password; empty unless given.
    pub(super) fn password(&self) -> &str {
        self.password.as_deref().unwrap_or_default()
    }
}

impl Target {
    /// Reads an argument of the command line, and adds the password that was given elsewhere.
    pub fn given(text: &str) -> Result<Target, String> {
        let mut target: Target = text.parse()?;
        if target.login.as_ref().is_some_and(|login| login.password.is_none()) {
            target.add_password(secrets::password(None)?);
        }
        Ok(target)
    }

    /// Adds the password of the user that the address names. Where it names none before `@`, the password is
    /// a token of NATS, or that of the default user.
    pub(super) fn add_password(&mut self, given: Option<String>) {
        let is_nats = matches!(self.scheme.protocol, Protocol::Nats | Protocol::JetStream);
        let (Some(login), Some(password)) = (&mut self.login, given) else { return };
        match login.user.is_empty() && is_nats {
            true => login.user = password,
            false => login.password = Some(password),
        }
    }

    /// Which protocol is spoken there.
    pub fn protocol(&self) -> Protocol {
        self.scheme.protocol
    }

    /// The name to display for direct messages, with the version where addresses name it.
    pub fn direct_name(&self) -> &'static str {
        match self.scheme.name {
            "mqtt5" => "MQTT 5",
            _ => self.scheme.protocol.direct_name(),
        }
    }

    /// The name before `://`.
    pub fn scheme(&self) -> &'static str {
        self.scheme.name
    }

    /// Host name or address.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// TCP port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The login; `guest` with the password `guest` unless given, as of RabbitMQ.
    pub(super) fn login_or_guest(&self) -> Login {
        let guest = || Login { user: "guest".to_owned(), password: Some("guest".to_owned()) };
        self.login.clone().unwrap_or_else(guest)
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Target, String> {
        let found = text.split_once("://").and_then(|(name, rest)| {
            Some((SCHEMES.iter().find(|scheme| scheme.name == name)?, rest))
        });
        let Some((scheme, rest)) = found else {
            let schemes: Vec<String> =
                SCHEMES.iter().map(|scheme| format!("`{}://`", scheme.name)).collect();
            return Err(format!("`{text}` starts with none of {}", schemes.join(", ")));
        };
        let has_virtual_hosts =
            matches!(scheme.protocol, Protocol::Amqp091 | Protocol::Amqp10 | Protocol::Stomp);
        // Elsewhere a password may have a slash.
        let login_end = if has_virtual_hosts { rest.find('/') } else { None };
        let login_end = rest[..login_end.unwrap_or(rest.len())].rfind('@');
        let (login, rest) = match login_end {
            Some(at) => (Some(read_login(&rest[..at])?), &rest[at + 1..]),
            None => (None, rest),
        };
        let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
        if !path.is_empty() && !has_virtual_hosts {
            let name = scheme.name;
            return Err(format!("`{name}://` has no virtual hosts: `/{path}` means nothing there"));
        }
        let (host, port) = match address.rsplit_once(':') {
            Some((host, port)) => {
                (host, port.parse().map_err(|_| format!("`{port}` is not a port"))?)
            }
            None => (address, scheme.port),
        };
        if host.is_empty() {
            return Err(format!("an address with `{}://` names no host", scheme.name));
        }
        // RabbitMQ's URI specification maps a path of `/` to an empty name, which is never what the user
        // means.
        let virtual_host = if path.is_empty() { "/".to_owned() } else { decode(path)? };
        Ok(Target { scheme, login, host: host.to_owned(), port, virtual_host })
    }
}

fn read_login(text: &str) -> Result<Login, String> {
    let (user, password) = match text.split_once(':') {
        Some((user, password)) => (user, Some(decode(password)?)),
        None => (text, None),
    };
    Ok(Login { user: decode(user)?, password })
}

impl TryFrom<String> for Target {
    type Error = String;

    fn try_from(text: String) -> Result<Target, String> {
        text.parse()
    }
}

/// The whole address including the login, for workers that connect on behalf of this process; reports
/// use `Display`, which leaves the login out.
impl From<Target> for String {
    fn from(target: Target) -> String {
        let shown = target.to_string();
        let Some(login) = target.login else { return shown };
        let password = login.password.map_or(String::new(), |it| format!(":{}", encode(&it)));
        let login = format!("://{}{password}@", encode(&login.user));
        shown.replacen("://", &login, 1)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}:{}", self.scheme.name, self.host, self.port)?;
        match self.virtual_host.as_str() {
            "/" => Ok(()),
            name => write!(f, "/{name}"),
        }
    }
}

/// Percent-encodes all but letters, digits and four marks (RFC 3986, 2.3).
fn encode(text: &str) -> String {
    let mut encoded = String::new();
    for octet in text.bytes() {
        match octet {
            b'-' | b'.' | b'_' | b'~' => encoded.push(char::from(octet)),
            _ if octet.is_ascii_alphanumeric() => encoded.push(char::from(octet)),
            _ => encoded += &format!("%{octet:02X}"),
        }
    }
    encoded
}

/// Undoes percent-encoding.
fn decode(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let digits = tail.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        let octet = digits.and_then(|pair| u8::from_str_radix(pair, 16).ok());
        bytes.push(octet.ok_or_else(|| format!("`{text}` has a broken percent-encoding"))?);
        rest = &tail[2..];
    }
    String::from_utf8(bytes).map_err(|_| format!("`{text}` is not UTF-8"))
}
