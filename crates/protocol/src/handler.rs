//! What every protocol's handler has in common: what it is given, what it may call, how it ends.
//!
//! A connection is two halves that are never borrowed at once: the *handler* parses input and asks the
//! engine; the *writer* takes output, from the handler and, for what the engine sends, from the host.

use crate::Writer;
use crate::connection_query::{Findings, Survey};
use angarium_engine::{
    ChannelId, ConnectionId, Effects, Engine, Refusal, Reply, Settle, SlowConsumerPolicy, Time,
};

/// What is spoken on a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// AMQP 0-9-1.
    #[default]
    Amqp091,
    /// NATS.
    Nats,
}

impl Protocol {
    /// Whether its clients subscribe to subjects, and are sent direct messages unasked.
    #[must_use]
    pub fn has_subscriptions(self) -> bool {
        match self {
            Protocol::Amqp091 => false,
            Protocol::Nats => true,
        }
    }
}

/// The other end of a connection, as the transport knows it.
#[derive(Clone, Debug, Default)]
pub struct Peer {
    /// What is spoken.
    pub protocol: Protocol,
    /// Where it comes from, for logs and listings: `127.0.0.1:52144`.
    pub address: String,
    /// It comes from this very host: loopback or Unix socket.
    pub local: bool,
    /// The transport is encrypted.
    pub encrypted: bool,
    /// The verified name in the peer's TLS certificate.
    pub certificate_name: Option<String>,
    /// What becomes of direct messages for which it is too slow, where its listener says so.
    pub slow_consumer_policy: Option<SlowConsumerPolicy>,
}

/// How a client says who it is. Its debug form leaves secrets out.
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
    /// Nothing, where the listener has a user for such clients.
    Anonymous {
        /// That user.
        user: String,
    },
}

impl Credentials {
    /// The user's name, as it is claimed.
    #[must_use]
    pub fn user(&self) -> &str {
        match self {
            Credentials::Password { user, .. }
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

/// What a session can reach during one call.
pub trait Host: Effects {
    /// Where output for a connection is written.
    fn writer(&mut self, connection: ConnectionId) -> &mut Writer;
    /// All subscribers of what the connection has just published are above their high-water mark: the host
    /// may stall it for a moment.
    fn stall(&mut self, now: Time, publisher: ConnectionId);
    /// Whether messages that were handed to the connection wait elsewhere than in its output. Once they
    /// do no longer, the host calls [`ProtocolHandler::caught_up`].
    fn is_behind(&self, connection: ConnectionId) -> bool {
        let _ = connection;
        false
    }
    /// Whether all shards know what the connection listens to. Where not, what it sends next waits, but
    /// for more of the same: whoever hears of it may answer by way of any shard.
    fn is_settled(&self, connection: ConnectionId) -> bool {
        let _ = connection;
        true
    }
    /// Whether all is done that the connection has asked for, and all has come that is said to it for that.
    /// Where not, it is when the connection [is settled](ProtocolHandler::settled).
    fn is_done(&mut self, connection: ConnectionId) -> bool {
        let _ = connection;
        true
    }
    /// Whether a connection of which not all is known may have still more of it to be told.
    fn may_tell_more(&self, connection: ConnectionId) -> bool {
        let _ = connection;
        true
    }
    /// Has credentials checked; the answer comes by [`ProtocolHandler::authenticated`], later.
    fn authenticate(&mut self, connection: ConnectionId, credentials: Credentials);
    /// Has the connections of all shards looked at; what is found comes by [`ProtocolHandler::surveyed`], at once or
    /// later, and until then the session [waits](ProtocolHandler::is_waiting).
    fn survey(&mut self, connection: ConnectionId, survey: Survey);
    /// A login was refused, for a reason that is not the host's answer to its credentials: the log is
    /// to say why, since the client is not told.
    fn login_refused(&mut self, why: String);
}

/// One call's surroundings.
#[derive(Debug)]
pub struct Context<'a, W> {
    /// The time of this turn.
    pub now: Time,
    /// The engine.
    pub engine: &'a mut Engine,
    /// The rest.
    pub host: &'a mut W,
}

/// The connection is over: flush its output, then close the transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Close {
    /// For the log.
    pub reason: String,
}

/// One connection's state machine, without the socket. Implemented once per protocol; the host holds
/// an enum of them.
pub trait ProtocolHandler {
    /// The connection was accepted: where the server speaks first, it does. Called once, before all
    /// else.
    fn begin<W: Host>(&mut self, context: &mut Context<'_, W>) {
        let _ = context;
    }
    /// Takes input and returns how many bytes of it were used; the host presents the rest again, at once or
    /// with what follows it. While [`ProtocolHandler::is_waiting`], it uses nothing.
    fn receive<W: Host>(
        &mut self,
        context: &mut Context<'_, W>,
        input: &[u8],
    ) -> Result<usize, Close>;
    /// The engine's answer to this session's request. The host calls it after `receive` returned.
    fn replied<W: Host>(
        &mut self,
        context: &mut Context<'_, W>,
        session: ChannelId,
        reply: Result<Reply, Refusal>,
    ) -> Result<(), Close>;
    /// The answer to [`Host::authenticate`].
    fn authenticated<W: Host>(
        &mut self,
        context: &mut Context<'_, W>,
        answer: Authentication,
    ) -> Result<(), Close>;
    /// What [`Host::survey`] has found.
    fn surveyed<W: Host>(&mut self, context: &mut Context<'_, W>, found: &Findings) {
        let _ = (context, found);
    }
    /// Nobody on another shard took a message that it had emitted, and asked about.
    fn unheard<W: Host>(&mut self, context: &mut Context<'_, W>, subject: &str, reply: &str) {
        let _ = (context, subject, reply);
    }
    /// All shards know what it did before; where it waited for that, it goes on.
    fn settled<W: Host>(&mut self, context: &mut Context<'_, W>) -> Result<(), Close> {
        let _ = context;
        Ok(())
    }
    /// A publish, or a settle, that had been taken here was refused at home; the session is closed there.
    fn refused<W: Host>(
        &mut self,
        context: &mut Context<'_, W>,
        session: ChannelId,
        settle: Option<Settle>,
        refusal: Refusal,
    ) {
        let _ = (context, session, settle, refusal);
    }
    /// Whether an answer must come before more input can be taken.
    fn is_waiting(&self) -> bool;
    /// The broker can (`None`) or cannot (why) take persistent messages now. Called when that
    /// changes, and for a connection that begins while the broker cannot.
    fn blocked<W: Host>(&mut self, context: &mut Context<'_, W>, why: Option<&str>);
    /// All that had waited elsewhere is in the output.
    fn caught_up<W: Host>(&mut self, context: &mut Context<'_, W>) {
        let _ = context;
    }
    /// The host chose not to read from the peer up to `now`: its silence until then proves nothing.
    fn unread(&mut self, now: Time);
    /// The broker closes the connection: shutdown, or an operator's wish.
    fn close<W: Host>(&mut self, context: &mut Context<'_, W>, why: &str);
    /// The transport is gone; tells the engine. Nothing is called after it.
    fn disconnected<W: Host>(&mut self, context: &mut Context<'_, W>);
    /// When [`ProtocolHandler::expire`] next has something to do (heartbeats, handshake timeout).
    fn deadline(&self) -> Option<Time>;
    /// Does what has become due.
    fn expire<W: Host>(&mut self, context: &mut Context<'_, W>) -> Result<(), Close>;
}
