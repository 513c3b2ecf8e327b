//! The kinds of brokers that can be started here, and what their confirms are worth.

use super::setup::Setup;
use crate::client::Protocol;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// What a confirm of a persistent message guarantees.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
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
    #[value(skip)]
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
}

/// A kind of broker that this tool can start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Angarium.
    Angarium,
    /// RabbitMQ, with its STOMP and MQTT plugins.
    RabbitMq,
    /// nats-server, with JetStream if its streams are needed.
    Nats,
    /// Mosquitto.
    Mosquitto,
    /// rumqttd.
    Rumqttd,
    /// ActiveMQ Artemis.
    Artemis,
    /// ActiveMQ Classic.
    ActiveMq,
    /// Redis: channels and streams.
    Redis,
}

/// The argument that makes a queue one that RabbitMQ flushes before it confirms.
pub const QUORUM: (&str, &str) = ("x-queue-type", "quorum");

/// Brokers that users may ask for but this tool has no driver for.
pub const FOREIGN: [(&str, &str); 1] = [("kafka", "a protocol of its own")];

/// An entry of `brokers.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Broker {
    kind: Kind,
    schemes: Vec<String>,
    /// The file name of its program.
    pub(super) program: String,
    /// The argument with which it says its version.
    #[serde(default = "version")]
    pub(super) version: String,
    hint: String,
    /// What the names of the variables that it reads begin with.
    environment: Vec<String>,
    #[serde(default)]
    setup: Vec<Setup>,
}

fn version() -> String {
    "--version".to_owned()
}

fn brokers() -> &'static [Broker] {
    static BROKERS: LazyLock<BTreeMap<String, Vec<Broker>>> = LazyLock::new(|| {
        toml::from_str(include_str!("brokers.toml")).expect("the file is part of the program")
    });
    &BROKERS["broker"]
}

impl Kind {
    /// All kinds.
    pub fn all() -> impl Iterator<Item = Kind> {
        brokers().iter().map(|broker| broker.kind)
    }

    pub(super) fn broker(self) -> &'static Broker {
        brokers().iter().find(|broker| broker.kind == self).expect("every kind has an entry")
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Angarium => "angarium",
            Kind::RabbitMq => "rabbitmq",
            Kind::Nats => "nats",
            Kind::Mosquitto => "mosquitto",
            Kind::Rumqttd => "rumqttd",
            Kind::Artemis => "artemis",
            Kind::ActiveMq => "activemq",
            Kind::Redis => "redis",
        }
    }

    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::all().find(|kind| kind.name() == name)
    }

    /// The URI schemes of the protocols that it can be driven by, the default first.
    pub fn schemes(self) -> &'static [String] {
        &self.broker().schemes
    }

    /// What the names of the variables that it reads begin with.
    pub(super) fn environment(self) -> &'static [String] {
        &self.broker().environment
    }

    /// How to install it.
    pub fn hint(self) -> &'static str {
        &self.broker().hint
    }

    /// How it is started for loads by this scheme.
    pub(super) fn setup(self, scheme: &str) -> &'static Setup {
        let mut setups = self.broker().setup.iter();
        let found = setups.find(|it| it.scheme.as_ref().is_none_or(|it| it == scheme));
        found.expect("the last setup has no scheme")
    }

    /// What its confirms of persistent messages guarantee as it is configured here.
    pub fn level(self, protocol: Protocol) -> Level {
        match (self, protocol) {
            (_, Protocol::Nats) => Level::AtMostOnce,
            // STOMP and MQTT get classic queues, which RabbitMQ 4 does not flush.
            (Kind::RabbitMq, Protocol::Stomp | Protocol::Mqtt) => Level::PageCache,
            (Kind::Angarium | Kind::RabbitMq | Kind::Artemis | Kind::ActiveMq, _) => Level::Flushed,
            // It writes its store every second, and never before it confirms.
            (Kind::Mosquitto, _) => Level::Memory,
            // It stores nothing.
            (Kind::Rumqttd, _) => Level::Memory,
            // For streams; channels and subjects store and confirm nothing.
            (Kind::Redis, _) | (Kind::Nats, Protocol::JetStream) => Level::Flushed,
            (Kind::Nats, _) => Level::AtMostOnce,
        }
    }
}

impl Kind {
    /// Arguments of durable queues without which a confirm would mean less than [`Kind::level`] says.
    pub fn durable_queue_arguments(
        self,
        protocol: Protocol,
    ) -> &'static [(&'static str, &'static str)] {
        match (self, protocol) {
            (Kind::RabbitMq, Protocol::Amqp091) => &[QUORUM],
            _ => &[],
        }
    }

    /// The same in words, with the setting that it rests on.
    pub fn means(self, protocol: Protocol) -> &'static str {
        match (self, protocol) {
            (_, Protocol::Nats) => "nothing: messages are not confirmed",
            (Kind::Angarium, _) => {
                "the message is written and flushed (fdatasync); messages share flushes"
            }
            (Kind::RabbitMq, Protocol::Stomp | Protocol::Mqtt) => {
                "the message is written to the files of a classic queue, which RabbitMQ 4 does not flush"
            }
            (Kind::RabbitMq, _) => {
                "the message is in the log of a quorum queue of one member and flushed; messages share \
                 flushes. Durable queues are declared with x-queue-type=quorum: RabbitMQ 4 confirms what \
                 classic queues, its default, have written and not flushed"
            }
            (Kind::Nats, _) => {
                "the message is written and flushed by itself (sync_interval: always); by default \
                 nats-server flushes every two minutes"
            }
            (Kind::Mosquitto, _) => {
                "the message is in memory; the store is written to the disk every second \
                 (autosave_interval 1), so a kill takes what was confirmed since"
            }
            (Kind::Rumqttd, _) => "the message is in memory, and nowhere else",
            (Kind::Artemis, _) => {
                "the message is in the journal and flushed (journal-datasync, its default); flushes wait \
                 for journal-buffer-timeout, which `create` set by this disk"
            }
            (Kind::ActiveMq, _) => {
                "the message is in KahaDB's journal and flushed (journalDiskSyncStrategy=always)"
            }
            (Kind::Redis, _) => {
                "the command is in the append-only file and flushed (appendfsync always); commands share \
                 flushes"
            }
        }
    }
}

/// The error text for an unknown broker.
pub fn unknown(name: &str) -> String {
    let names: Vec<&str> = Kind::all().map(Kind::name).collect();
    let why = FOREIGN.iter().find(|(foreign, _)| *foreign == name);
    let why = why.map_or(String::new(), |(_, speaks)| {
        format!(": it speaks {speaks}, of which there is no driver")
    });
    format!("no peer `{name}`{why}; there are: {}", names.join(", "))
}
