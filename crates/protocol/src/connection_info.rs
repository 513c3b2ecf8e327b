//! A connection of any protocol, as listings show it.

use crate::peer::Peer;

/// What a client said about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientProperties {
    /// The name that the program gave the connection.
    pub connection_name: Option<String>,
    /// The client library.
    pub product: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// Its platform.
    pub platform: Option<String>,
}

/// A connection as listings show it.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionInfo<'a> {
    /// The other end.
    pub peer: &'a Peer,
    /// Its user; empty before the login.
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
