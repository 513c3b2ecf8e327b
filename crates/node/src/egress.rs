//! A connection's output: what is unsent, who waits for room in it, and what becomes of direct
//! messages that a laggard has no room for.
//!
//! Knows bytes, not messages: what a delivery looks like is its protocol's business.

use angarium_engine::{ConnectionId, ShardId};
use angarium_protocol::Outlet;
use std::cell::Cell;

/// What becomes of a connection that is too far behind for a further direct message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Laggard {
    /// It is disconnected.
    #[default]
    Disconnect,
    /// It misses the message, and is told how many it missed with the next one that it gets.
    DropNew,
}

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
    /// What becomes of it when it is too far behind.
    pub(crate) laggard: Laggard,
    /// Publishers that are not read from before some of this is sent.
    holds: Vec<Publisher>,
    /// Nothing of it was sent for a while although there was something: it holds nobody up.
    is_stalled: bool,
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
        if self.sent == self.outlet.bytes.len() {
            self.outlet.bytes.clear();
            self.sent = 0;
        } else if self.sent > self.outlet.bytes.len() / 2 {
            // Moves less than was sent, so that the sum of all moves stays linear.
            self.outlet.bytes.drain(..self.sent);
            self.sent = 0;
        }
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
    }
}
