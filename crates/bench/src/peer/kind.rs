//! The kinds of brokers that can be started here, and what their confirms are worth.

use crate::client::Protocol;
use serde::{Deserialize, Serialize};

/// What a confirm of a persistent message guarantees.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// There are no confirms.
    AtMostOnce,
    /// It is in the broker's memory.
    Memory,
    /// It is in the kernel's page cache.
    PageCache,
    /// It is on disk.
    Flushed,
    /// Not known.
    #[default]
    Unknown,
}

impl Level {
    /// The name to display.
    pub fn name(self) -> &'static str {
        match self {
            Level::AtMostOnce => "at most once",
            Level::Memory => "in memory",
            Level::PageCache => "page cache",
            Level::Flushed => "flushed",
            Level::Unknown => "unknown",
        }
    }

    /// Parses a name in kebab case.
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

/// A kind of broker that this tool can start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Angarium.
    Angarium,
    /// RabbitMQ, with its STOMP and MQTT plugins.
    RabbitMq,
    /// nats-server, with JetStream if its streams are needed.
    Nats,
    /// Mosquitto.
    Mosquitto,
    /// ActiveMQ Artemis.
    Artemis,
    /// ActiveMQ Classic.
    ActiveMq,
    /// Redis: channels and streams.
    Redis,
}

/// Brokers that users may ask for but this tool has no driver for.
pub const FOREIGN: [(&str, &str); 1] = [("kafka", "a protocol of its own")];

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 7] = [
        Kind::Angarium,
        Kind::RabbitMq,
        Kind::Nats,
        Kind::Mosquitto,
        Kind::Artemis,
        Kind::ActiveMq,
        Kind::Redis,
    ];

    /// Its name on the command line.
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

    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The URI schemes of the protocols that it can be driven by, the default first.
    pub fn schemes(self) -> &'static [&'static str] {
        match self {
            Kind::Angarium => &["amqp", "nats"],
            Kind::RabbitMq => &["amqp", "stomp", "mqtt"],
            Kind::Nats => &["nats", "jetstream"],
            Kind::Mosquitto => &["mqtt", "mqtt5"],
            // Its one port speaks all protocols; this tool has no AMQP 1.0 driver yet.
            Kind::Artemis => &["stomp", "mqtt", "mqtt5"],
            Kind::ActiveMq => &["stomp", "mqtt"],
            Kind::Redis => &["redis"],
        }
    }

    /// How to install it.
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

    /// What its confirms of persistent messages guarantee as it is configured here.
    pub fn level(self, protocol: Protocol) -> Level {
        match (self, protocol) {
            (_, Protocol::Nats) => Level::AtMostOnce,
            (Kind::Angarium | Kind::RabbitMq | Kind::Artemis | Kind::ActiveMq, _) => Level::Flushed,
            // It writes its store now and then, and never before it confirms.
            (Kind::Mosquitto, _) => Level::Memory,
            // For streams; channels and subjects store and confirm nothing.
            (Kind::Redis, _) | (Kind::Nats, Protocol::JetStream) => Level::Flushed,
            (Kind::Nats, _) => Level::AtMostOnce,
        }
    }
}

/// The error text for an unknown broker.
pub fn unknown(name: &str) -> String {
    let names: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
    let why = FOREIGN.iter().find(|(foreign, _)| *foreign == name);
    let why = why.map_or(String::new(), |(_, speaks)| {
        format!(": it speaks {speaks}, of which there is no driver")
    });
    format!("no peer `{name}`{why}; there are: {}", names.join(", "))
}
