//! What a host can choose for WebSocket.

/// Settings that all connections share.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Names by which clients may address the broker, besides IP addresses and `localhost`; `*`: any.
    pub names: Vec<String>,
    /// Origins whose pages may connect, besides those of the address that they connect to; `*`: any.
    pub origins: Vec<String>,
}
