//! The kinds of listeners for clients, a row each: another protocol is further rows, and a setting for each.

use super::definitions::Settings;
use angarium_engine::SlowConsumerPolicy;
use angarium_protocol::Protocol;
use std::net::SocketAddr;
use std::path::Path;

/// What carries a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// TLS from the first byte.
    Tls,
    /// TCP whose client may begin TLS after the broker's first message, if there is a certificate.
    StartTls,
    /// A Unix socket.
    Unix,
}

/// Which shards serve a protocol's clients best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The shard with the queues, and others only if there are enough of them.
    WithQueues,
    /// Any shard; that with the queues last.
    Anywhere,
}

/// Where a listener is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place<'a> {
    /// A TCP port.
    Tcp(SocketAddr),
    /// A file.
    Unix(&'a Path),
}

/// A TCP port or Unix socket for clients.
#[derive(Debug)]
pub struct ListenerKind {
    /// The setting with its place.
    pub setting: &'static str,
    /// Its name for people.
    pub name: &'static str,
    /// What its clients speak.
    pub protocol: Protocol,
    /// What carries it.
    pub transport: Transport,
    /// The port that clients try if none is named.
    pub default_port: u16,
    /// Where its clients are served.
    pub placement: Placement,
    /// Its place, if it is on.
    pub place: fn(&Settings) -> Option<Place<'_>>,
    /// Its own policy for slow consumers, if it has one.
    pub slow_consumer_policy: fn(&Settings) -> Option<SlowConsumerPolicy>,
}

const AMQP: ListenerKind = ListenerKind {
    setting: "amqp",
    name: "amqp",
    protocol: Protocol::Amqp,
    transport: Transport::Tcp,
    default_port: 5672,
    placement: Placement::WithQueues,
    place: |settings| settings.amqp.map(Place::Tcp),
    slow_consumer_policy: |_| None,
};

const NATS: ListenerKind = ListenerKind {
    setting: "nats",
    name: "nats",
    protocol: Protocol::Nats,
    transport: Transport::StartTls,
    default_port: 4222,
    placement: Placement::Anywhere,
    place: |settings| settings.nats.map(Place::Tcp),
    slow_consumer_policy: |_| None,
};

const MQTT: ListenerKind = ListenerKind {
    setting: "mqtt",
    name: "mqtt",
    protocol: Protocol::Mqtt,
    transport: Transport::Tcp,
    default_port: 1883,
    placement: Placement::Anywhere,
    place: |settings| settings.mqtt.map(Place::Tcp),
    slow_consumer_policy: |_| None,
};

const STOMP: ListenerKind = ListenerKind {
    setting: "stomp",
    name: "stomp",
    protocol: Protocol::Stomp,
    transport: Transport::Tcp,
    default_port: 61_613,
    placement: Placement::WithQueues,
    place: |settings| settings.stomp.map(Place::Tcp),
    slow_consumer_policy: |_| None,
};

/// All of them.
pub static LISTENERS: [ListenerKind; 9] = [
    AMQP,
    ListenerKind {
        setting: "amqps",
        name: "amqps",
        transport: Transport::Tls,
        default_port: 5671,
        place: |settings| settings.amqps.map(Place::Tcp),
        ..AMQP
    },
    MQTT,
    ListenerKind {
        setting: "mqtts",
        name: "mqtts",
        transport: Transport::Tls,
        default_port: 8883,
        place: |settings| settings.mqtts.map(Place::Tcp),
        ..MQTT
    },
    NATS,
    ListenerKind {
        setting: "nats-tls",
        name: "nats-tls",
        transport: Transport::Tls,
        place: |settings| settings.nats_tls.map(Place::Tcp),
        slow_consumer_policy: |settings| settings.nats_tls_slow_consumer_policy,
        ..NATS
    },
    ListenerKind {
        setting: "amqp-socket",
        transport: Transport::Unix,
        place: |settings| settings.amqp_socket.as_deref().map(Place::Unix),
        ..AMQP
    },
    STOMP,
    ListenerKind {
        setting: "stomps",
        name: "stomps",
        transport: Transport::Tls,
        default_port: 61_614,
        place: |settings| settings.stomps.map(Place::Tcp),
        ..STOMP
    },
];

/// The port that clients of that listener try if none is named.
pub fn default_port(name: &str) -> Option<u16> {
    LISTENERS.iter().find(|kind| kind.name == name).map(|kind| kind.default_port)
}
