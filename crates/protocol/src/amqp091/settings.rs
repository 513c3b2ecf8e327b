//! The limits of AMQP 0-9-1 and what else a host can choose for it, with defaults.

use std::time::Duration;

/// Settings that all connections share.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Most channels per connection.
    pub channels_max: u16,
    /// Largest frame, with its head and end.
    pub frame_bytes_max: u32,
    /// Seconds between signs of life that we suggest; the client has the last word. 0: none.
    pub heartbeat_seconds: u16,
    /// How long a client may take from connecting to connection.open.
    pub handshake_timeout: Duration,
    /// How long we wait for the answer to our connection.close.
    pub close_timeout: Duration,
    /// Largest message body.
    pub body_bytes_max: u64,
    /// The broker that clients take us for: some choose by it what they do. `docs/protocols/clients.md` says
    /// which, and why it is this one.
    pub product: String,
    /// Its version.
    pub version: String,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            channels_max: 2047,
            frame_bytes_max: 131_072,
            heartbeat_seconds: 60,
            handshake_timeout: Duration::from_secs(10),
            close_timeout: Duration::from_secs(5),
            body_bytes_max: 128 << 20,
            product: "RabbitMQ".to_owned(),
            version: "3.13.7".to_owned(),
        }
    }
}
