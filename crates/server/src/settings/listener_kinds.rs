//! The kinds of listeners for clients, a row each: another protocol is further rows, and a setting for each.

use super::definitions::Settings;
use super::place::Places;
use angarium_engine::SlowConsumerPolicy;
use angarium_protocol::Protocol;

/// What carries a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A TCP port or Unix socket as it is.
    Tcp,
    /// TLS from the first byte.
    Tls,
    /// The same, whose client may begin TLS with its first byte, also behind the broker's greeting, if there
    /// is a certificate.
    StartTls,
}

/// Which shards serve a protocol's clients best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The shard with the queues, and others only if there are enough of them.
    WithQueues,
    /// Any shard; that with the queues last.
    Anywhere,
}

/// TCP ports and Unix sockets for clients.
#[derive(Debug)]
pub struct ListenerKind {
    /// Its name, and that of the setting with its places.
    pub name: &'static str,
    /// What its clients speak.
    pub protocol: Protocol,
    /// What carries it.
    pub transport: Transport,
    /// The port that clients try if none is named.
    pub default_port: u16,
    /// Where its clients are served.
    pub placement: Placement,
    /// Its places; none: it is off.
    pub places: fn(&Settings) -> &Places,
    /// Its own policy for slow consumers, if it has one.
    pub slow_consumer_policy: fn(&Settings) -> Option<SlowConsumerPolicy>,
}

const AMQP: ListenerKind = ListenerKind {
    name: "amqp",
    protocol: Protocol::Amqp,
    transport: Transport::Tcp,
    default_port: 5672,
    placement: Placement::WithQueues,
    places: |settings| &settings.amqp,
    slow_consumer_policy: |_| None,
};

const NATS: ListenerKind = ListenerKind {
    name: "nats",
    protocol: Protocol::Nats,
    transport: Transport::StartTls,
    default_port: 4222,
    placement: Placement::Anywhere,
    places: |settings| &settings.nats,
    slow_consumer_policy: |_| None,
};

const MQTT: ListenerKind = ListenerKind {
    name: "mqtt",
    protocol: Protocol::Mqtt,
    transport: Transport::Tcp,
    default_port: 1883,
    placement: Placement::Anywhere,
    places: |settings| &settings.mqtt,
    slow_consumer_policy: |_| None,
};

const STOMP: ListenerKind = ListenerKind {
    name: "stomp",
    protocol: Protocol::Stomp,
    transport: Transport::Tcp,
    default_port: 61_613,
    placement: Placement::WithQueues,
    places: |settings| &settings.stomp,
    slow_consumer_policy: |_| None,
};

const WS: ListenerKind = ListenerKind {
    name: "ws",
    protocol: Protocol::WebSocket,
    transport: Transport::Tcp,
    default_port: 8083,
    placement: Placement::Anywhere,
    places: |settings| &settings.ws,
    slow_consumer_policy: |_| None,
};

const ANY: ListenerKind = ListenerKind {
    name: "any",
    protocol: Protocol::Any,
    transport: Transport::StartTls,
    default_port: 5672,
    placement: Placement::Anywhere,
    places: |settings| &settings.any,
    slow_consumer_policy: |_| None,
};

/// All of them.
pub static LISTENERS: [ListenerKind; 11] = [
    AMQP,
    ListenerKind {
        name: "amqps",
        transport: Transport::Tls,
        default_port: 5671,
        places: |settings| &settings.amqps,
        ..AMQP
    },
    MQTT,
    ListenerKind {
        name: "mqtts",
        transport: Transport::Tls,
        default_port: 8883,
        places: |settings| &settings.mqtts,
        ..MQTT
    },
    NATS,
    ListenerKind {
        name: "nats-tls",
        transport: Transport::Tls,
        places: |settings| &settings.nats_tls,
        slow_consumer_policy: |settings| settings.nats_tls_slow_consumer_policy,
        ..NATS
    },
    STOMP,
    ListenerKind {
        name: "stomps",
        transport: Transport::Tls,
        default_port: 61_614,
        places: |settings| &settings.stomps,
        ..STOMP
    },
    WS,
    ListenerKind {
        name: "wss",
        transport: Transport::Tls,
        default_port: 8084,
        places: |settings| &settings.wss,
        ..WS
    },
    ANY,
];

/// The port that clients of that listener try if none is named.
pub fn default_port(name: &str) -> Option<u16> {
    LISTENERS.iter().find(|kind| kind.name == name).map(|kind| kind.default_port)
}
