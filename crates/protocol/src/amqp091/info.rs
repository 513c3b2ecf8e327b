//! What a connection tells about itself, for listings.

use super::codec::wire::truncated;
use super::codec::{FieldValue, Table};
use crate::Peer;

/// What a client said about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientProperties {
    /// The name that the program gave the connection.
    pub connection_name: Option<String>,
    /// The client library.
    pub product: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// What it runs on.
    pub platform: Option<String>,
}

/// A connection as listings show it.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionInfo<'a> {
    /// The other end.
    pub peer: &'a Peer,
    /// Who it is; empty before it is known.
    pub user: &'a str,
    /// Which virtual host it uses; empty before it is open.
    pub vhost: &'a str,
    /// What the client said about itself.
    pub client: &'a ClientProperties,
    /// `starting`, `tuning`, `opening`, `running`, `blocked`, `closing`.
    pub state: &'static str,
    /// Open channels.
    pub channels: usize,
    /// Largest frame agreed.
    pub frame_bytes_max: u32,
    /// Seconds between signs of life; 0: none.
    pub heartbeat_seconds: u16,
    /// The protocol.
    pub protocol: &'static str,
}

/// What a client said it understands, of what changes how we talk to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Capabilities {
    pub(super) consumer_cancel_notify: bool,
    pub(super) connection_blocked: bool,
    pub(super) authentication_failure_close: bool,
}

impl ClientProperties {
    pub(super) fn read(table: Table<'_>) -> ClientProperties {
        let text = |name| table.text(name).map(|text| truncated(text).to_owned());
        ClientProperties {
            connection_name: text("connection_name"),
            product: text("product"),
            version: text("version"),
            platform: text("platform"),
        }
    }
}

impl Capabilities {
    pub(super) fn read(table: Table<'_>) -> Capabilities {
        let Some(FieldValue::Table(capabilities)) = table.get("capabilities") else {
            return Capabilities::default();
        };
        let has = |name| capabilities.get(name) == Some(FieldValue::Bool(true));
        Capabilities {
            consumer_cancel_notify: has("consumer_cancel_notify"),
            connection_blocked: has("connection.blocked"),
            authentication_failure_close: has("authentication_failure_close"),
        }
    }
}
