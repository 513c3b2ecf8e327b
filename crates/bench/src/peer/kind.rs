//! The kinds of brokers that can be started here, and what their confirms are worth.

use crate::client::Protocol;
use serde::{Deserialize, Serialize};

/// What a confirm of a persistent message says.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// There are none.
    AtMostOnce,
    /// The broker has it in its memory.
    Memory,
    /// The kernel has it in its page cache.
    PageCache,
    /// The disk has it.
    Flushed,
    /// Nobody said.
    #[default]
    Unknown,
}

impl Level {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Level::AtMostOnce => "at most once",
            Level::Memory => "in memory",
            Level::PageCache => "page cache",
            Level::Flushed => "flushed",
            Level::Unknown => "unknown",
        }
    }

    /// Reads one of the names with dashes.
    pub fn from_text(text: &str) -> Result<Level, String> {
        Ok(match text {
            "at-most-once" => Level::AtMostOnce,
            "memory" => Level::Memory,
            "page-cache" => Level::PageCache,
            "flushed" => Level::Flushed,
            _ => return Err("at-most-once, memory, page-cache or flushed".to_owned()),
        })
    }
}

/// A broker that we know how to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Our own.
    Angarium,
    /// RabbitMQ, with its STOMP and MQTT plugins.
    RabbitMq,
    /// nats-server, with JetStream where its streams are asked for.
    Nats,
    /// Mosquitto.
    Mosquitto,
    /// ActiveMQ Artemis.
    Artemis,
    /// The classic ActiveMQ.
    ActiveMq,
    /// Redis, by channels and streams.
    Redis,
}

/// Brokers that are asked for and cannot be measured: this tool speaks none of what they speak.
pub const FOREIGN: [(&str, &str); 1] = [("kafka", "a protocol of its own")];

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 7] = [
        Kind::Angarium,
        Kind::RabbitMq,
        Kind::Nats,
        Kind::Mosquitto,
        Kind::Artemis,
        Kind::ActiveMq,
        Kind::Redis,
    ];

    /// What it is asked for by.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Angarium => "angarium",
            Kind::RabbitMq => "rabbitmq",
            Kind::Nats => "nats",
            Kind::Mosquitto => "mosquitto",
            Kind::Artemis => "artemis",
            Kind::ActiveMq => "activemq",
            Kind::Redis => "redis",
        }
    }

    /// The one of that name.
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The protocols that we can speak to it, the one that loads use first.
    pub fn schemes(self) -> &'static [&'static str] {
        match self {
            Kind::Angarium => &["amqp", "nats"],
            Kind::RabbitMq => &["amqp", "stomp", "mqtt"],
            Kind::Nats => &["nats", "jetstream"],
            Kind::Mosquitto => &["mqtt", "mqtt5"],
            // Its one port speaks them all; AMQP 1.0 is not spoken by this tool yet.
            Kind::Artemis => &["stomp", "mqtt", "mqtt5"],
            Kind::ActiveMq => &["stomp", "mqtt"],
            Kind::Redis => &["redis"],
        }
    }

    /// How to have it.
    pub fn hint(self) -> &'static str {
        match self {
            Kind::Angarium => "this program, or `--program angarium=PATH`",
            Kind::RabbitMq => "on Debian: apt-get install rabbitmq-server",
            Kind::Nats => "go install github.com/nats-io/nats-server/v2@latest",
            Kind::Mosquitto => "on Debian: apt-get install mosquitto",
            Kind::Redis => "on Debian: apt-get install redis-server",
            Kind::Artemis => {
                "from Maven: org.apache.activemq:apache-artemis:tar.gz:bin; then \
                 `--program artemis=FOLDER/bin/artemis`"
            }
            Kind::ActiveMq => {
                "from Maven: org.apache.activemq:apache-activemq:tar.gz:bin; then \
                 `--program activemq=FOLDER/bin/activemq`"
            }
        }
    }

    /// What its confirms of persistent messages say as it is configured here.
    pub fn level(self, protocol: Protocol) -> Level {
        match (self, protocol) {
            (_, Protocol::Nats) => Level::AtMostOnce,
            (Kind::Angarium | Kind::RabbitMq | Kind::Artemis | Kind::ActiveMq, _) => Level::Flushed,
            // It writes its store now and then, and never before it confirms.
            (Kind::Mosquitto, _) => Level::Memory,
            // Of what is added to a stream; a channel or a subject keeps and confirms nothing.
            (Kind::Redis, _) | (Kind::Nats, Protocol::JetStream) => Level::Flushed,
            (Kind::Nats, _) => Level::AtMostOnce,
        }
    }
}

/// What to say about a broker that we do not know.
pub fn unknown(name: &str) -> String {
    let names: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
    let why = FOREIGN.iter().find(|(foreign, _)| *foreign == name);
    let why = why.map_or(String::new(), |(_, speaks)| {
        format!(": it speaks {speaks}, of which there is no driver")
    });
    format!("no peer `{name}`{why}; there are: {}", names.join(", "))
}
