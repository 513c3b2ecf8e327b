//! What a node is made with.

use crate::memory::account::MemoryLimits;
use crate::spill::SpillOptions;
use angarium_engine::limits::Limits;
use angarium_engine::{HandedOut, Quota, ShardId};
use angarium_protocol::{UndecidedSettings, amqp10, amqp091, mqtt, nats, stomp, websocket};
use std::sync::Arc;
use std::time::Duration;

/// What a node is made with.
#[derive(Clone, Debug)]
pub struct Options {
    /// Seeds every random choice; drawn anew for each run, unpredictably.
    pub seed: [u8; 32],
    /// The engine's limits.
    pub limits: Limits,
    /// The journal's sizes.
    pub journal: angarium_journal::Options,
    /// What AMQP 0-9-1 connections are offered.
    pub amqp091: Arc<amqp091::Settings>,
    /// What AMQP 1.0 connections are offered.
    pub amqp10: Arc<amqp10::Settings>,
    /// What MQTT connections are offered.
    pub mqtt: Arc<mqtt::Settings>,
    /// What NATS connections are offered and held to.
    pub nats: Arc<nats::Settings>,
    /// What STOMP connections are offered and held to.
    pub stomp: Arc<stomp::Settings>,
    /// Whose requests open WebSockets.
    pub websocket: Arc<websocket::Settings>,
    /// How long it may be unknown what a client speaks.
    pub undecided: UndecidedSettings,
    /// Unsent bytes beyond which a connection gets no further deliveries.
    pub outbox_bytes_max: usize,
    /// What everybody may use; quotas of users and what connections say themselves come first.
    pub quota: Quota,
    /// What peers may make the broker hold in memory.
    pub memory: MemoryLimits,
    /// How long a client may take nothing of its output; `None`: for ever.
    pub send_timeout: Option<Duration>,
    /// The log of direct messages that wait for connections that are too slow.
    pub spill: SpillOptions,
    /// Users that may only connect from this very host.
    pub local_users: Vec<String>,
    /// Which of the broker's shards this is.
    pub shard: ShardId,
    /// How many there are.
    pub shards: usize,
    /// How far messages may have been handed out when the last process was killed, by queue; `None`: not
    /// known.
    pub handed_out: Option<HandedOut>,
}

impl Options {
    /// Of a broker of one shard, with everything as it is by default.
    pub fn alone(seed: [u8; 32]) -> Options {
        Options {
            seed,
            limits: Limits::default(),
            journal: angarium_journal::Options::default(),
            amqp091: amqp091::Settings::default().into(),
            amqp10: amqp10::Settings::default().into(),
            mqtt: mqtt::Settings::default().into(),
            nats: nats::Settings::default().into(),
            stomp: stomp::Settings::default().into(),
            websocket: websocket::Settings::default().into(),
            undecided: UndecidedSettings::default(),
            outbox_bytes_max: 256 << 10,
            quota: Quota::default(),
            memory: MemoryLimits::NONE,
            send_timeout: Some(Duration::from_secs(30)),
            spill: SpillOptions::default(),
            local_users: Vec::new(),
            shard: ShardId::HOME,
            shards: 1,
            handed_out: None,
        }
    }

    /// The number by which people know the connection that was accepted here as the one of that serial
    /// number: those of all shards differ, and none is used again.
    pub(crate) fn number_of(&self, serial: u64) -> u64 {
        serial * self.shards as u64 + u64::from(self.shard.0)
    }
}

/// The shard, of `shards`, of the connection with that number.
pub fn shard_of(number: u64, shards: usize) -> usize {
    (number % shards as u64) as usize
}
