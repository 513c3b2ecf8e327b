//! A broker's address: its scheme selects the protocol.

use super::authority::encode;
use super::{VhostUri, mqtt, nats, resp};
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// The scheme of NATS addresses with JetStream.
const JETSTREAM: &str = "jetstream://";

/// A protocol that loads can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protocol {
    /// AMQP 0-9-1: queues, acknowledgements, confirms.
    Amqp091,
    /// NATS: subjects, at most once.
    Nats,
    /// NATS with JetStream: subjects at most once, and streams.
    JetStream,
    /// MQTT 3.1.1 or 5: topics, QoS 0 and 1.
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
            Protocol::Amqp091 | Protocol::Stomp => '-',
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

    /// Whether brokers ping clients and disconnect those that do not answer.
    pub fn pings(self) -> bool {
        matches!(self, Protocol::Nats | Protocol::JetStream)
    }
}

/// A broker's address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Target {
    /// `amqp://`
    Amqp091(VhostUri),
    /// `nats://`
    Nats(nats::Uri),
    /// `jetstream://`
    JetStream(nats::Uri),
    /// `mqtt://`, `mqtt5://`
    Mqtt(mqtt::Uri),
    /// `stomp://`
    Stomp(VhostUri),
    /// `redis://`
    Resp(resp::Uri),
}

impl Target {
    /// Which protocol is spoken there.
    pub fn protocol(&self) -> Protocol {
        match self {
            Target::Amqp091(_) => Protocol::Amqp091,
            Target::Nats(_) => Protocol::Nats,
            Target::JetStream(_) => Protocol::JetStream,
            Target::Mqtt(_) => Protocol::Mqtt,
            Target::Stomp(_) => Protocol::Stomp,
            Target::Resp(_) => Protocol::Resp,
        }
    }

    /// Host name or address.
    pub fn host(&self) -> &str {
        match self {
            Target::Amqp091(uri) | Target::Stomp(uri) => &uri.host,
            Target::Nats(uri) | Target::JetStream(uri) => &uri.host,
            Target::Mqtt(uri) => &uri.host,
            Target::Resp(uri) => &uri.host,
        }
    }

    /// TCP port.
    pub fn port(&self) -> u16 {
        match self {
            Target::Amqp091(uri) | Target::Stomp(uri) => uri.port,
            Target::Nats(uri) | Target::JetStream(uri) => uri.port,
            Target::Mqtt(uri) => uri.port,
            Target::Resp(uri) => uri.port,
        }
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Target, String> {
        match text.split_once("://") {
            Some(("amqp", _)) => text.parse().map(Target::Amqp091),
            Some(("nats", _)) => text.parse().map(Target::Nats),
            Some(("jetstream", _)) => nats::Uri::parse(text, JETSTREAM).map(Target::JetStream),
            Some(("mqtt" | "mqtt5", _)) => text.parse().map(Target::Mqtt),
            Some(("stomp", _)) => text.parse().map(Target::Stomp),
            Some(("redis", _)) => text.parse().map(Target::Resp),
            _ => Err(format!(
                "`{text}` starts with none of `amqp://`, `nats://`, `jetstream://`, `mqtt://`, `mqtt5://`, \
                 `stomp://`, `redis://`"
            )),
        }
    }
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
        let login = match &target {
            Target::Amqp091(uri) | Target::Stomp(uri) => Some((&uri.user, Some(&uri.password))),
            Target::Mqtt(uri) => uri.login.as_ref().map(|it| (&it.user, Some(&it.password))),
            Target::Resp(uri) => uri.login.as_ref().map(|it| (&it.user, Some(&it.password))),
            Target::Nats(uri) | Target::JetStream(uri) => match &uri.login {
                nats::Login::None => None,
                nats::Login::Token(token) => Some((token, None)),
                nats::Login::User(user, password) => Some((user, Some(password))),
            },
        };
        let Some((scheme, rest)) = shown.split_once("://") else { return shown };
        match login {
            None => shown,
            Some((user, None)) => format!("{scheme}://{}@{rest}", encode(user)),
            Some((user, Some(password))) => {
                format!("{scheme}://{}:{}@{rest}", encode(user), encode(password))
            }
        }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Target::Amqp091(uri) | Target::Stomp(uri) => uri.fmt(f),
            Target::Nats(uri) => uri.fmt(f),
            Target::JetStream(uri) => write!(f, "{JETSTREAM}{}:{}", uri.host, uri.port),
            Target::Mqtt(uri) => uri.fmt(f),
            Target::Resp(uri) => uri.fmt(f),
        }
    }
}
