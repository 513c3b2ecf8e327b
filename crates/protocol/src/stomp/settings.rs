//! The limits of STOMP and what else a host can choose for it, with defaults.

use super::frame::Limits;
use std::time::Duration;

/// Settings that all connections share.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How the broker calls itself in CONNECTED.
    pub server: String,
    /// Bytes of a frame's command and headers.
    pub head_bytes_max: usize,
    /// Largest message body.
    pub body_bytes_max: u64,
    /// Most subscriptions of a connection.
    pub subscriptions_max: u16,
    /// The shortest time between heart-beats that the broker gives or expects.
    pub heart_beat_min: Duration,
    /// How long a client may take from connecting to CONNECT.
    pub handshake_timeout: Duration,
    /// How long the broker waits until a client that has said DISCONNECT closes the connection.
    pub close_timeout: Duration,
    /// The virtual host of clients that name none that is there.
    pub vhost: String,
    /// Who clients are that say nothing of themselves; `None`: they are refused.
    pub anonymous_user: Option<String>,
}

impl Settings {
    /// The limits of frames.
    #[must_use]
    pub fn limits(&self) -> Limits {
        let Settings { head_bytes_max, body_bytes_max, .. } = *self;
        Limits { head_bytes_max, body_bytes_max }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            server: concat!("Angarium/", env!("CARGO_PKG_VERSION")).to_owned(),
            head_bytes_max: 64 << 10,
            body_bytes_max: 128 << 20,
            subscriptions_max: 4_096,
            heart_beat_min: Duration::from_secs(1),
            handshake_timeout: Duration::from_secs(10),
            close_timeout: Duration::from_secs(5),
            vhost: "/".to_owned(),
            anonymous_user: Some("guest".to_owned()),
        }
    }
}
