//! What a host decides for all NATS connections of a listener.

use std::time::Duration;

/// Whether a listener's connections are encrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tls {
    /// It has no certificate.
    #[default]
    None,
    /// A client may begin TLS after INFO.
    Available,
    /// A client must begin TLS, after INFO or before it.
    Required,
}

/// Settings of NATS connections.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Identifies this server to clients.
    pub server_id: String,
    /// The server's name, as clients see it.
    pub server_name: String,
    /// The version of nats-server whose client protocol this is: clients compare it to tell what a
    /// server can do.
    pub version: String,
    /// The address in INFO.
    pub host: String,
    /// The port in INFO.
    pub port: u16,
    /// Where else clients may connect.
    pub connect_urls: Vec<String>,
    /// Largest payload with its headers.
    pub payload_bytes_max: usize,
    /// Longest control line.
    pub control_line_bytes_max: usize,
    /// A client that was silent this long gets PING.
    pub ping_interval: Duration,
    /// PINGs that may be unanswered before the client is given up.
    pub pings_out_max: u32,
    /// Longest time from the beginning to a login.
    pub login_timeout: Duration,
    /// How long a client has to go elsewhere once it was told that the server goes.
    pub lame_duck: Duration,
    /// The virtual host of users that name none.
    pub vhost: String,
    /// Who clients are that say nothing of themselves; `None`: they are refused.
    pub anonymous_user: Option<String>,
    /// Whose password a token is; `None`: tokens are refused.
    pub token_user: Option<String>,
    /// Whether connections are encrypted.
    pub tls: Tls,
    /// Whether clients have to show a certificate when they begin TLS.
    pub tls_verify: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            server_id: "ANGARIUM".to_owned(),
            server_name: "angarium".to_owned(),
            version: "2.15.3".to_owned(),
            host: "0.0.0.0".to_owned(),
            port: 4222,
            connect_urls: Vec::new(),
            payload_bytes_max: 1 << 20,
            control_line_bytes_max: super::frame::CONTROL_LINE_BYTES_MAX,
            ping_interval: Duration::from_secs(120),
            pings_out_max: 2,
            login_timeout: Duration::from_secs(10),
            lame_duck: Duration::from_millis(500),
            vhost: "/".to_owned(),
            anonymous_user: Some("guest".to_owned()),
            token_user: Some("token".to_owned()),
            tls: Tls::None,
            tls_verify: false,
        }
    }
}
