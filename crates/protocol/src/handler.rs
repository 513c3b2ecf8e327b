//! What every protocol's handler has in common: what it is given, what it may call, how it ends.
//!
//! A connection is two halves that are never borrowed together: the *handler* parses input and asks the
//! engine; the *writer* takes output, from the handler and, for what the engine sends, from the host.

use crate::broker_figures::ToldTopics;
use crate::connection_query::{ConnectionQuery, QueryResult};
use crate::peer::{Authentication, Credentials};
use crate::writer::Writer;
use angarium_engine::{
    ChannelId, ConnectionId, Effects, Engine, Refusal, Reply, SessionLoss, Settle, Time,
};

/// What a handler can reach during one call.
pub trait Host: Effects {
    /// Where output for a connection is written.
    fn writer(&mut self, connection: ConnectionId) -> &mut Writer;
    /// All subscribers of what the connection has just published are above their high-water mark: the host
    /// may stall it for a moment.
    fn stall(&mut self, now: Time, publisher: ConnectionId);
    /// A subscriber that a message of the publisher reached keeps up: later stalls are shorter.
    fn note_quick(&mut self, publisher: ConnectionId);
    /// Whether the connection has spilled messages. Once they are all written to its output, the host calls
    /// [`ProtocolHandler::spill_drained`].
    fn has_spilled_messages(&self, _connection: ConnectionId) -> bool {
        false
    }
    /// Whether all shards know every subscription of the connection. Where not, its other operations wait:
    /// a responder may answer by way of any shard.
    fn is_known_to_shards(&self, _connection: ConnectionId) -> bool {
        true
    }
    /// Whether every request of this connection is complete on all shards, and all answers have arrived.
    /// Where not, [`ProtocolHandler::known_to_shards`] is called once they have.
    fn are_requests_complete(&mut self, _connection: ConnectionId) -> bool {
        true
    }
    /// Whether a connection with subscriptions that not all shards know may add more.
    fn may_broadcast_more(&self, _connection: ConnectionId) -> bool {
        true
    }
    /// The connection begins anew, as after a login: what is spilled for it is dropped.
    fn begins_anew(&mut self, _connection: ConnectionId) {}
    /// Has credentials checked; the answer comes by [`ProtocolHandler::authenticated`], later.
    fn authenticate(&mut self, connection: ConnectionId, credentials: Credentials);
    /// Asks home whether a connection may enter a virtual host, where [`Engine::has_to_ask`] says so; the
    /// answer comes by [`ProtocolHandler::entered`], later.
    fn ask_to_enter(&mut self, connection: ConnectionId, vhost: &str);
    /// The connection has entered a virtual host some time after it logged in.
    fn has_entered(&mut self, _connection: ConnectionId) {}
    /// Queries the connections of all shards; the result comes by [`ProtocolHandler::connections_found`],
    /// in the same call or later. Until then the handler [waits](ProtocolHandler::is_waiting).
    fn query_connections(&mut self, connection: ConnectionId, query: ConnectionQuery);
    /// What the broker tells about itself, and to whom: [`ProtocolHandler::broker_topics_changed`] is called
    /// for connections that are put there. `None`: nothing, ever.
    fn broker_topics(&mut self) -> Option<&mut ToldTopics> {
        None
    }
    /// A login was refused for another reason than the host's answer to its credentials; for the log.
    fn login_refused(&mut self, why: String);
}

/// What a call has access to.
#[derive(Debug)]
pub struct Context<'a, W> {
    /// The time of this turn.
    pub now: Time,
    /// The engine.
    pub engine: &'a mut Engine,
    /// What embeds the handler.
    pub host: &'a mut W,
}

/// Why a client is refused before it says anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnedAway {
    /// There are as many connections as there may be.
    TooMany,
    /// As many have begun in this second as may.
    TooFast,
    /// The system refuses memory.
    NoMemory,
}

/// The connection ends: flush its output, then close the transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Close {
    /// For the log.
    pub reason: String,
}

/// One connection's state machine, without the socket. Implemented once per protocol; the host holds
/// an enum of them.
pub trait ProtocolHandler {
    /// The connection was accepted: writes the server's greeting, where the protocol has one. Called once,
    /// before anything else.
    fn begin(&mut self, _context: &mut Context<impl Host>) {}
    /// Takes input and returns how many bytes of it were used; the host presents the rest again, with or
    /// without further input. While [`ProtocolHandler::is_waiting`], it uses none.
    fn receive(&mut self, context: &mut Context<impl Host>, input: &[u8]) -> Result<usize, Close>;
    /// The engine's answer to a request of a channel. The host calls it after `receive` returned.
    fn replied(
        &mut self,
        _context: &mut Context<impl Host>,
        _id: ChannelId,
        _reply: Result<Reply, Refusal>,
    ) {
    }
    /// The answer to [`Host::authenticate`].
    fn authenticated(
        &mut self,
        context: &mut Context<impl Host>,
        answer: Authentication,
    ) -> Result<(), Close>;
    /// The engine has the answer to [`Host::ask_to_enter`].
    fn entered(&mut self, context: &mut Context<impl Host>) -> Result<(), Close>;
    /// The answer to [`Host::query_connections`].
    fn connections_found(&mut self, _context: &mut Context<impl Host>, _found: &QueryResult) {}
    /// A request that was forwarded to other shards has no responders there either.
    fn no_responders(&mut self, _context: &mut Context<impl Host>, _subject: &str, _reply: &str) {}
    /// All shards know its subscriptions, and its requests are complete: goes on where it waited for that.
    fn known_to_shards(&mut self, _context: &mut Context<impl Host>) -> Result<(), Close> {
        Ok(())
    }
    /// The home shard refused a publish or a settle that was accepted here, and closed the channel.
    fn refused(
        &mut self,
        _context: &mut Context<impl Host>,
        _id: ChannelId,
        _settle: Option<Settle>,
        _refusal: Refusal,
    ) {
    }
    /// The engine has closed a channel for what the client did not do.
    fn channel_failed(&mut self, _context: &mut Context<impl Host>, _id: ChannelId, _why: Refusal) {
    }
    /// One of its channels has lost a session: called before the claim that took it is answered.
    fn session_lost(
        &mut self,
        _context: &mut Context<impl Host>,
        _id: ChannelId,
        _session: &str,
        _why: SessionLoss,
    ) -> Result<(), Close> {
        Ok(())
    }
    /// What the broker tells about itself has changed, which the handler has asked to hear of.
    fn broker_topics_changed(&mut self, _context: &mut Context<impl Host>) {}
    /// What its writer has written leaves something to do ([`Output::calls_handler`](crate::Output)).
    fn written(&mut self, _context: &mut Context<impl Host>) -> Result<(), Close> {
        Ok(())
    }
    /// Whether it takes no input before an answer arrives.
    fn is_waiting(&self) -> bool;
    /// The broker can (`None`) or cannot (why) take persistent messages now. Called when that
    /// changes, and for a connection that begins while the broker cannot.
    fn blocked(&mut self, _context: &mut Context<impl Host>, _why: Option<&str>) {}
    /// All spilled messages of the connection are written to its output.
    fn spill_drained(&mut self, _context: &mut Context<impl Host>) {}
    /// Whether it drops what comes, or part of it, until the peer has closed the connection or a channel.
    fn drops_input(&self) -> bool {
        false
    }
    /// Bytes of input that it keeps: messages that have not arrived whole.
    fn held_bytes(&self) -> usize;
    /// Memory is short, and has been for a while: refuses the messages that have not arrived whole.
    fn refuse_unfinished(&mut self, context: &mut Context<impl Host>) -> Result<(), Close>;
    /// The host did not read from the peer until `now`: its silence until then does not count.
    fn reading_paused(&mut self, now: Time);
    /// The client may be lost: sends it something that harms no client, where the protocol has that.
    fn doubted(&mut self, _context: &mut Context<impl Host>) {}
    /// The broker closes the connection: shutdown, or on request of an operator.
    fn close(&mut self, context: &mut Context<impl Host>, why: &str);
    /// The transport is closed; ends the connection in the engine. Nothing is called after it.
    fn disconnected(&mut self, context: &mut Context<impl Host>);
    /// When [`ProtocolHandler::expire`] next has something to do (heartbeats, handshake timeout).
    fn deadline(&self) -> Option<Time>;
    /// Handles deadlines that have passed.
    fn expire(&mut self, context: &mut Context<impl Host>) -> Result<(), Close>;
}
