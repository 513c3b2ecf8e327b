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

/// A TCP port for clients.
#[derive(Debug)]
pub struct ListenerKind {
    /// The setting with its address, and its name for people.
    pub name: &'static str,
    /// What its clients speak.
    pub protocol: Protocol,
    /// What carries it.
    pub transport: Transport,
    /// The port that clients try if none is named.
    pub default_port: u16,
    /// Where its clients are served.
    pub placement: Placement,
    /// Its address, if it is on.
    pub address: fn(&Settings) -> Option<SocketAddr>,
    /// Its own policy for slow consumers, if it has one.
    pub slow_consumer_policy: fn(&Settings) -> Option<SlowConsumerPolicy>,
}

/// A Unix socket for clients.
#[derive(Debug)]
pub struct SocketKind {
    /// The setting with its path.
    pub setting: &'static str,
    /// Its name for people.
    pub name: &'static str,
    /// What its clients speak.
    pub protocol: Protocol,
    /// Where its clients are served.
    pub placement: Placement,
    /// Its path, if it is on.
    pub path: fn(&Settings) -> Option<&Path>,
}

/// All ports.
pub static LISTENERS: [ListenerKind; 4] = [
    ListenerKind {
        name: "amqp",
        protocol: Protocol::Amqp091,
        transport: Transport::Tcp,
        default_port: 5672,
        placement: Placement::WithQueues,
        address: |settings| settings.amqp.0,
        slow_consumer_policy: |_| None,
    },
    ListenerKind {
        name: "amqps",
        protocol: Protocol::Amqp091,
        transport: Transport::Tls,
        default_port: 5671,
        placement: Placement::WithQueues,
        address: |settings| settings.amqps.0,
        slow_consumer_policy: |_| None,
    },
    ListenerKind {
        name: "nats",
        protocol: Protocol::Nats,
        transport: Transport::StartTls,
        default_port: 4222,
        placement: Placement::Anywhere,
        address: |settings| settings.nats.0,
        slow_consumer_policy: |_| None,
    },
    ListenerKind {
        name: "nats-tls",
        protocol: Protocol::Nats,
        transport: Transport::Tls,
        default_port: 4222,
        placement: Placement::Anywhere,
        address: |settings| settings.nats_tls.0,
        slow_consumer_policy: |settings| settings.nats_tls_slow_consumer_policy,
    },
];

/// All Unix sockets.
pub static SOCKETS: [SocketKind; 1] = [SocketKind {
    setting: "amqp-socket",
    name: "amqp",
    protocol: Protocol::Amqp091,
    placement: Placement::WithQueues,
    path: |settings| settings.amqp_socket.as_deref(),
}];

/// The port that clients of that listener try if none is named.
#[must_use]
pub fn default_port(name: &str) -> Option<u16> {
    LISTENERS.iter().find(|kind| kind.name == name).map(|kind| kind.default_port)
}
