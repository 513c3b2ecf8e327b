//! What every protocol's session has in common: what it is given, what it may call, how it ends.
//!
//! A connection is two halves that are never borrowed at once: the *session* parses input and asks
//! the engine; the *outlet* is where output is written, by the session and, for deliveries, by the
//! host on the engine's behalf.

use crate::LargeBody;
use crate::connection_query::{Findings, Survey};
use angarium_engine::{
    ChannelId, ConnectionId, Delivery, DirectMessage, Effects, Engine, GetAnswer, MessageView,
    Refusal, Reply, Settle, SlowConsumerPolicy, Subscribe, Time,
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
    fn outlet(&mut self, connection: ConnectionId) -> &mut Outlet;
    /// All subscribers of what the connection has just published are above their high-water mark: the host
    /// may stall it for a moment.
    fn stall(&mut self, now: Time, publisher: ConnectionId);
    /// Whether messages that were handed to the connection wait elsewhere than in its outlet. Once they
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

/// The connection is over: flush what is in its outlet, then close the transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Close {
    /// For the log.
    pub reason: String,
}

/// Output of one connection: bytes to be sent, and what is needed to write deliveries.
#[derive(Debug, Default)]
pub struct Outlet {
    /// Bytes to be sent. The host sends and clears them.
    pub bytes: Vec<u8>,
    /// What comes behind those: the body of the message that was written last, where that is large and
    /// shared. The host takes it before anything else is written.
    pub large: Option<Box<LargeBody>>,
    /// Largest frame the peer takes, in bytes, as negotiated; 0: no limit.
    pub frame_bytes_max: u32,
    /// The peer wants to hear of the end of its subscriptions.
    pub takes_cancels: bool,
    /// The peer understands headers (NATS, where that is said).
    pub takes_headers: bool,
    /// What becomes of direct messages for which the peer is too slow, where it says so itself.
    pub slow_consumer_policy: Option<SlowConsumerPolicy>,
    /// What deliveries are written in.
    pub protocol: Protocol,
    /// Messages written so far.
    pub messages: u64,
    /// What the last message began with (NATS).
    pub(crate) control_line: crate::nats::ControlLine,
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
    /// All that had waited elsewhere is in the outlet.
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

impl Outlet {
    /// Copies a large body behind what comes before it, for a host that does not send it a part at a time.
    pub fn copy_large(&mut self) {
        if let Some(large) = self.large.take() {
            large.parts().for_each(|part| self.bytes.extend_from_slice(part));
        }
    }
    /// Writes a delivery in the connection's protocol.
    #[inline]
    pub fn deliver(&mut self, delivery: &Delivery<'_>) {
        self.messages += 1;
        match self.protocol {
            Protocol::Amqp091 => crate::amqp091::write_delivery(self, delivery),
            // NATS clients have no consumers.
            Protocol::Nats => {}
        }
    }
    /// Writes the answer to a get; only AMQP 0-9-1 has them.
    pub fn answer_get(&mut self, answer: &GetAnswer<'_>) {
        self.messages += 1;
        crate::amqp091::write_get_answer(self, answer);
    }
    /// Writes a direct message in the connection's protocol.
    #[inline]
    pub fn send_direct(&mut self, message: &DirectMessage<'_>) {
        self.messages += 1;
        match self.protocol {
            Protocol::Amqp091 => crate::amqp091::write_direct(self, message),
            Protocol::Nats => crate::nats::write_direct(self, message),
        }
    }
    /// Writes a batch of direct messages; only NATS has such.
    #[inline]
    pub fn send_direct_batch(&mut self, message: &DirectMessage<'_>, bodies: &[&[u8]]) {
        self.messages += bodies.len() as u64;
        crate::nats::write_direct_batch(self, message, bodies);
    }
    /// Writes a returned message; only AMQP 0-9-1 asks for them.
    pub fn returned(&mut self, channel: ChannelId, message: &MessageView<'_>) {
        crate::amqp091::write_returned(self, channel, message);
    }
    /// Writes a confirm; only AMQP 0-9-1 asks for them.
    pub fn confirm(&mut self, session: ChannelId, confirm: angarium_engine::Confirm) {
        crate::amqp091::write_confirm(self, session, confirm);
    }
    /// Writes the end of a subscription to a queue; only AMQP 0-9-1 has them.
    pub fn cancelled(&mut self, session: ChannelId, consumer: &str) {
        crate::amqp091::write_cancelled(self, session, consumer);
    }
    /// Writes that a subscription to direct messages has ended, because its user may not have it any more;
    /// only NATS has them.
    pub fn forbidden(&mut self, listened: &Subscribe<'_>) {
        crate::nats::write_forbidden(self, listened);
    }
}
