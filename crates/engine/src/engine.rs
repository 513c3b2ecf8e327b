//! The engine's entry points: dispatch only, each rule lives in the module named after it.

use crate::limits::Limits;
use crate::{
    ConnectionId, Effects, LoadId, Loaded, Position, Publish, ReadHeaders, Refusal, Request,
    SessionId, Settle, Time,
};

/// What an engine is made with.
#[derive(Clone, Debug)]
pub struct Options {
    /// Seeds every random choice: made-up names, hash functions.
    pub seed: u64,
    /// The limits.
    pub limits: Limits,
    /// How to look at headers.
    pub read_headers: ReadHeaders,
}

/// Whether the journal can take records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageState {
    /// It can.
    Ready,
    /// No space: persistent publishes are refused (negative confirm), settles go on.
    Full,
    /// A write or flush failed: as `Full`, and for good.
    Failed,
}

/// One shard's messaging state.
#[derive(Debug)]
pub struct Engine {
    options: Options,
}

#[allow(clippy::todo, unused_variables)]
impl Engine {
    /// An engine with the virtual host `/` and nothing else.
    pub fn new(options: Options) -> Engine {
        Engine { options }
    }

    // ---- recovery: restore, then replay in order, then recovered ----

    /// Puts back what [`Engine::snapshot`] wrote. Does not call `retain`: the host keeps the counts.
    /// Errors: the text says what is wrong with the snapshot.
    pub fn restore(&mut self, snapshot: &[u8]) -> Result<(), String> {
        todo!()
    }
    /// Applies one record appended after the snapshot.
    pub fn replay<F: Effects>(
        &mut self,
        position: Position,
        record: &[u8],
        fx: &mut F,
    ) -> Result<(), String> {
        todo!()
    }
    /// Ends recovery: forgets what was not durable; every message that may have been delivered
    /// before is marked redelivered, all of them unless `clean`.
    pub fn recovered<F: Effects>(&mut self, now: Time, clean: bool, fx: &mut F) {
        todo!()
    }
    /// Appends the whole durable state to `out`; messages by position, not by content.
    pub fn snapshot(&self, out: &mut Vec<u8>) {
        todo!()
    }

    // ---- who is there ----

    /// A connection by `user` to `vhost` begins. Refused: unknown vhost (`NotFound`), no permission
    /// (`AccessRefused`).
    pub fn connect(
        &mut self,
        connection: ConnectionId,
        user: &str,
        vhost: &str,
    ) -> Result<(), Refusal> {
        todo!()
    }
    /// It ends: sessions closed, exclusive queues deleted.
    pub fn disconnect<F: Effects>(&mut self, now: Time, connection: ConnectionId, fx: &mut F) {
        todo!()
    }
    /// Opens a session; the host has made sure it is not open.
    pub fn open(&mut self, session: SessionId) {
        todo!()
    }
    /// Closes it: subscriptions end, unsettled deliveries are requeued, a transaction is forgotten.
    pub fn close<F: Effects>(&mut self, now: Time, session: SessionId, fx: &mut F) {
        todo!()
    }

    // ---- messages ----

    /// Routes a message to queues and consumers. Refused: no such exchange, no permission, body too
    /// large: the message is not taken and, in confirm mode, its number is not used.
    #[inline]
    pub fn publish<F: Effects>(
        &mut self,
        now: Time,
        session: SessionId,
        publish: &Publish<'_>,
        fx: &mut F,
    ) -> Result<(), Refusal> {
        todo!()
    }
    /// Settles deliveries. Refused: unknown tag (`PreconditionFailed`).
    #[inline]
    pub fn settle<F: Effects>(
        &mut self,
        now: Time,
        session: SessionId,
        settle: Settle,
        fx: &mut F,
    ) -> Result<(), Refusal> {
        todo!()
    }
    /// Everything else; answered by one [`Effects::reply`], at once or later.
    pub fn request<F: Effects>(
        &mut self,
        now: Time,
        session: SessionId,
        request: Request,
        fx: &mut F,
    ) {
        todo!()
    }
    /// Serves subscriptions that became able to take messages in this turn. The host calls it at the
    /// end of each turn: replies and deliveries of one turn thus keep their order.
    pub fn dispatch<F: Effects>(&mut self, now: Time, fx: &mut F) {
        todo!()
    }
    /// The connection's output has room again.
    pub fn writable<F: Effects>(&mut self, now: Time, connection: ConnectionId, fx: &mut F) {
        todo!()
    }

    // ---- storage ----

    /// Every record before `position` is flushed: confirms and commits that waited for it go out.
    pub fn durable<F: Effects>(&mut self, now: Time, position: Position, fx: &mut F) {
        todo!()
    }
    /// The journal's state changed. On `Failed`, everything that waits for a flush is refused.
    pub fn storage<F: Effects>(&mut self, now: Time, state: StorageState, fx: &mut F) {
        todo!()
    }
    /// Answers a load.
    pub fn loaded<F: Effects>(&mut self, now: Time, id: LoadId, records: Loaded, fx: &mut F) {
        todo!()
    }
    /// Appends anew whatever is still live in `segment`, so that it can be given back.
    pub fn relocate<F: Effects>(&mut self, now: Time, segment: u32, fx: &mut F) {
        todo!()
    }

    // ---- time ----

    /// When [`Engine::expire`] next has something to do.
    pub fn deadline(&self) -> Option<Time> {
        todo!()
    }
    /// Does what has become due: message and queue expiry, delays, settle timeouts.
    pub fn expire<F: Effects>(&mut self, now: Time, fx: &mut F) {
        todo!()
    }
}
