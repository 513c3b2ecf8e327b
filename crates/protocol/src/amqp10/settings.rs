//! The limits of AMQP 1.0 and what else a host can choose for it, with defaults.

use std::time::Duration;

/// Settings that all connections share.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How the broker calls itself in open frames, and the node that it is.
    pub container_id: String,
    /// Most sessions per connection.
    pub sessions_max: u16,
    /// Most links per session.
    pub links_max: u32,
    /// Largest frame that is taken, in octets.
    pub frame_bytes_max: u32,
    /// Transfer frames that a peer may send on a session before a flow frame allows more.
    pub incoming_window: u32,
    /// Messages that a sending peer may have on their way on one link, unconfirmed ones included.
    pub link_credit: u32,
    /// How long a client may be silent, as our open frame says; it is given up after twice that.
    pub idle_timeout: Duration,
    /// How long a client may take from connecting to the open frame.
    pub handshake_timeout: Duration,
    /// How long we wait for the answer to our close frame.
    pub close_timeout: Duration,
    /// Largest message body.
    pub body_bytes_max: u64,
    /// Octets of a message beside its body.
    pub properties_bytes_max: usize,
    /// The virtual host of clients whose open frame names none of them.
    pub vhost: String,
    /// Who clients are that say nothing of themselves; `None`: they are refused.
    pub anonymous_user: Option<String>,
    /// From this is made up what logins by SCRAM say of users that are not there; the same at each start.
    pub scram_secret: [u8; 32],
    /// Queues that clients name as addresses and that are not there are declared, where the user may do that.
    pub creates_queues: bool,
    /// The broker that clients take us for: some choose by it what they do, see `docs/protocols/clients.md`.
    pub product: String,
    /// Its version.
    pub version: String,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            container_id: "angarium".to_owned(),
            sessions_max: 1024,
            links_max: 1024,
            frame_bytes_max: 131_072,
            incoming_window: 4096,
            link_credit: 1000,
            idle_timeout: Duration::from_secs(60),
            handshake_timeout: Duration::from_secs(10),
            close_timeout: Duration::from_secs(5),
            body_bytes_max: 128 << 20,
            properties_bytes_max: 1 << 20,
            vhost: "/".to_owned(),
            anonymous_user: Some("guest".to_owned()),
            scram_secret: [0; 32],
            creates_queues: true,
            product: "RabbitMQ".to_owned(),
            version: "4.2.1".to_owned(),
        }
    }
}
