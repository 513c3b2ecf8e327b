//! A connection's output: what is unsent, who waits for room in it, and what it says about direct
//! messages that it has no room for.
//!
//! Knows bytes, not messages: what a delivery looks like is its protocol's business.

use crate::episodes::Lag;
use crate::guest::Guest;
use crate::oldest::{Droppable, Whose};
use angarium_engine::{ConnectionId, Laggard, Lost, ShardId};
use angarium_protocol::Outlet;
use std::cell::Cell;

/// Somebody who publishes direct messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Publisher {
    /// On this shard.
    Here(ConnectionId),
    /// On another one.
    There(ShardId, ConnectionId),
}

/// A connection's output and what the host must know about it.
#[derive(Debug, Default)]
pub(crate) struct Egress {
    pub(crate) outlet: Outlet,
    /// Bytes at the start of `outlet.bytes` that are already sent.
    pub(crate) sent: usize,
    /// It is in `World::dirty`.
    pub(crate) is_dirty: bool,
    /// The engine was refused room; tell it when there is some.
    pub(crate) wants_room: Cell<bool>,
    /// What becomes of direct messages when it is too far behind.
    pub(crate) laggard: Laggard,
    /// What is to become of them from the time on when none waits in the spill log.
    pub(crate) next_laggard: Option<Laggard>,
    /// Unsent bytes with which it is.
    pub(crate) unsent_max: usize,
    /// Unsent bytes up to which direct messages are written without a look at all that.
    pub(crate) plain_max: usize,
    /// What it has missed since it has been too slow.
    pub(crate) lag: Lag,
    /// Its number in the spill log, where it has something there.
    pub(crate) spooled: Option<u32>,
    /// What may be taken out of the output, where something may.
    droppable: Option<Box<Droppable>>,
    /// Publishers that are not read from before some of this is sent.
    holds: Vec<Publisher>,
    /// Nothing of it was sent for a while although there was something: it holds nobody up.
    is_stalled: bool,
    /// At home: it is a connection of another shard, and this is not where its output goes.
    pub(crate) guest: Option<Box<Guest>>,
    /// On another shard: bytes of deliveries from home that home does not know to have left.
    pub(crate) delivered: u64,
    /// Something of it was sent since [`Egress::look_for_stall`].
    has_moved: bool,
}

impl Egress {
    /// Bytes still to be sent.
    #[inline]
    pub(crate) fn pending(&self) -> &[u8] {
        &self.outlet.bytes[self.sent..]
    }

    /// Notes that `bytes` were sent.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.sent += bytes;
        self.has_moved = true;
        self.is_stalled = false;
        debug_assert!(self.sent <= self.outlet.bytes.len());
        self.forget_sent();
    }

    /// Frees the room of what is sent, now and then.
    fn forget_sent(&mut self) {
        let sent = self.sent;
        if sent == self.outlet.bytes.len() {
            self.outlet.bytes.clear();
        } else if sent > self.outlet.bytes.len() / 2 {
            // Moves less than was sent, so that the sum of all moves stays linear.
            self.outlet.bytes.drain(..sent);
        } else {
            return;
        }
        self.sent = 0;
        if let Some(droppable) = &mut self.droppable {
            droppable.left(sent);
        }
    }

    /// A message was written from `start` on that may be taken out again, and with it what it tells
    /// of.
    pub(crate) fn written_droppable(&mut self, start: usize, whose: Whose, missed: u64) {
        let end = self.outlet.bytes.len();
        self.droppable.get_or_insert_default().written(start, end, whose, missed);
    }

    /// Takes the oldest of those out, of at least `wanted` bytes together.
    pub(crate) fn drop_oldest(&mut self, wanted: usize, lost: impl FnMut(Whose, Lost)) {
        let Some(droppable) = &mut self.droppable else { return };
        droppable.drop_oldest(&mut self.outlet.bytes, &mut self.sent, wanted, lost);
        self.forget_sent();
    }

    /// Whether nobody waits for it, because it takes nothing.
    pub(crate) fn is_stalled(&self) -> bool {
        self.is_stalled
    }

    /// Lets a publisher wait for this; says whether it does. One that waits already waits once.
    pub(crate) fn hold(&mut self, publisher: Publisher) -> bool {
        if self.is_stalled {
            return false;
        }
        self.holds.push(publisher);
        true
    }

    /// Takes those that wait, to let them go on.
    pub(crate) fn release(&mut self) -> Vec<Publisher> {
        std::mem::take(&mut self.holds)
    }

    /// Called now and then. Where nothing was sent since the last time although others wait for it, it
    /// is stalled: returns those that waited, to go on without it.
    pub(crate) fn look_for_stall(&mut self) -> Vec<Publisher> {
        if std::mem::take(&mut self.has_moved) || self.holds.is_empty() {
            return Vec::new();
        }
        self.is_stalled = true;
        self.release()
    }

    /// Makes it that of the next connection in its slot, which may be listed as dirty already.
    pub(crate) fn renew(&mut self) {
        *self = Egress { is_dirty: self.is_dirty, ..Egress::default() };
    }

    /// Drops all that is unsent: its peer is not waited for.
    pub(crate) fn discard(&mut self) {
        self.outlet.bytes = Vec::new();
        self.sent = 0;
        self.droppable = None;
    }
}
