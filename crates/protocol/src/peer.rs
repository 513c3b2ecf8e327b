//! The other end of a connection: its protocol, where it comes from, how it authenticates, and what listings
//! show of it.

use crate::scram::Proof;
use angarium_engine::{SlowConsumerPolicy, Time};

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// AMQP 0-9-1, or AMQP 1.0: the first bytes of a connection say which.
    #[default]
    Amqp,
    /// MQTT: the first packet of a connection says which version.
    Mqtt,
    /// NATS.
    Nats,
    /// STOMP.
    Stomp,
    /// What is inside a WebSocket: its request says it, or the first bytes in it.
    WebSocket,
    /// Any of them, or what is inside a WebSocket: the first bytes of a connection say it.
    Any,
}

impl Protocol {
    /// The one whose clients wait to be greeted.
    pub const GREETING: Protocol = Protocol::Nats;

    /// Whether it is never text.
    #[must_use]
    pub fn is_binary(self) -> bool {
        matches!(self, Protocol::Amqp | Protocol::Mqtt)
    }
}

/// The other end of a connection, as the transport knows it.
#[derive(Clone, Debug, Default)]
pub struct Peer {
    /// Its protocol.
    pub protocol: Protocol,
    /// Where it comes from, for logs and listings: `127.0.0.1:52144`.
    pub address: String,
    /// It comes from this host: loopback or Unix socket.
    pub local: bool,
    /// The transport is encrypted.
    pub encrypted: bool,
    /// Something lies between the transport and the protocol: it is encrypted from the beginning or not at
    /// all.
    pub is_framed: bool,
    /// The verified name in the peer's TLS certificate.
    pub certificate_name: Option<String>,
    /// The slow-consumer policy of its listener.
    pub slow_consumer_policy: Option<SlowConsumerPolicy>,
}

/// How a client authenticates. The debug form leaves secrets out.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// Name and password.
    Password {
        /// Who.
        user: String,
        /// The secret, as it was sent.
        password: String,
    },
    /// The name in a verified certificate.
    Certificate {
        /// The name in the certificate.
        user: String,
    },
    /// An nkey: the user is named by its public key, and has signed what it was sent.
    NKey {
        /// The public key, as nkeys are written: `U` and more letters.
        user_key: String,
        /// What was to be signed.
        nonce: String,
        /// The signature, in base64.
        signature: String,
    },
    /// What proves that the client knows the password, by SCRAM.
    Scram {
        /// Who.
        user: String,
        /// What it has said.
        proof: Proof,
    },
    /// Nothing, where the listener has a user for such clients.
    Anonymous {
        /// That user.
        user: String,
    },
}

impl Credentials {
    /// What a response of the SASL mechanism PLAIN says (RFC 4616): authorization identity, name and
    /// password, parted by NUL. Nobody acts for another user.
    pub(crate) fn of_plain(response: &[u8]) -> Option<Credentials> {
        let mut parts = str::from_utf8(response).ok()?.split('\0');
        let (on_behalf_of, user, password) = (parts.next()?, parts.next()?, parts.next()?);
        let is_itself = on_behalf_of.is_empty() || on_behalf_of == user;
        let is_understood = is_itself && parts.next().is_none();
        let (user, password) = (user.to_owned(), password.to_owned());
        is_understood.then_some(Credentials::Password { user, password })
    }

    /// The user's name, as it is claimed.
    #[must_use]
    pub fn user(&self) -> &str {
        match self {
            Credentials::Password { user, .. }
            | Credentials::Scram { user, .. }
            | Credentials::Certificate { user }
            | Credentials::NKey { user_key: user, .. }
            | Credentials::Anonymous { user } => user,
        }
    }
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = match self {
            Credentials::Password { .. } => "Password",
            Credentials::Certificate { .. } => "Certificate",
            Credentials::NKey { .. } => "NKey",
            Credentials::Scram { .. } => "Scram",
            Credentials::Anonymous { .. } => "Anonymous",
        };
        f.debug_struct(kind).field("user", &self.user()).finish_non_exhaustive()
    }
}

/// A client whose credentials were right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The user's name.
    pub user: String,
}

/// The host's answer to credentials: `Err` says why, for the log; clients get no detail.
pub type Authentication = Result<Identity, String>;

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
    /// When it last sent anything.
    pub last_input: Time,
}
