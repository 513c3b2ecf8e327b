//! The limits of MQTT and what else a host can choose for it, with defaults.

use angarium_engine::Overflow;
use std::time::Duration;

/// Settings that all connections share.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long a client may take from connecting to a login.
    pub handshake_timeout: Duration,
    /// Largest packet that is taken from a client that has logged in.
    pub packet_bytes_max: usize,
    /// Messages with QoS 1 or 2 that a client of version 5 may have on their way to us.
    pub receive_maximum: u16,
    /// Messages with QoS 1 or 2 that are on their way to a client which does not say how many it takes.
    pub send_maximum: u16,
    /// Messages that wait for a session at most. `None`: any number.
    pub session_messages_max: Option<u64>,
    /// Bytes of them at most.
    pub session_bytes_max: Option<u64>,
    /// What happens to one more.
    pub session_overflow: Overflow,
    /// Topic aliases that a client of version 5 may use.
    pub topic_alias_maximum: u16,
    /// Whether messages are retained.
    pub retain_available: bool,
    /// Longest keep-alive: clients of version 5 that ask for more, or for none, get this. `None`: any.
    pub keep_alive_max: Option<Duration>,
    /// The virtual host of clients that name none.
    pub vhost: String,
    /// From this is made up what logins by SCRAM say of users that are not there; the same at each start.
    pub scram_secret: [u8; 32],
    /// Who clients are that say nothing of themselves; `None`: they are refused.
    pub anonymous_user: Option<String>,
}

/// Largest CONNECT: all of its fields as long as they may be would be more, and are of no use.
pub(super) const CONNECT_BYTES_MAX: usize = 256 << 10;

/// Longest reason string.
pub(super) const REASON_BYTES_MAX: usize = 1024;

/// Answers of the engine that are awaited at most while more is taken from the client.
pub(super) const PENDING_MAX: usize = 1_024;

/// Subscriptions that a client may have.
pub(super) const SUBSCRIPTIONS_MAX: usize = 10_000;

impl Default for Settings {
    fn default() -> Self {
        Settings {
            handshake_timeout: Duration::from_secs(10),
            packet_bytes_max: 128 << 20,
            receive_maximum: 1024,
            send_maximum: 1024,
            session_messages_max: None,
            session_bytes_max: None,
            session_overflow: Overflow::DropHead,
            topic_alias_maximum: 64,
            retain_available: true,
            keep_alive_max: None,
            vhost: "/".to_owned(),
            scram_secret: [0; 32],
            anonymous_user: Some("guest".to_owned()),
        }
    }
}
