//! A connection's output: its unsent bytes, and the direct messages that may be dropped from them.
//!
//! Independent of what a message looks like in a protocol.

pub(crate) mod batch;
pub(crate) mod conflated;
mod frames;
mod marks;
mod oldest;
mod piece;
#[cfg(test)]
mod tests;

use self::conflated::Conflated;
use self::oldest::Droppable;
use self::piece::Piece;
use crate::flow::publisher_stall::WaitingPublishers;
use crate::memory::account::MemoryWait;
use crate::shard::remote_connection::RemoteConnection;
use angarium_engine::{SlowConsumerPolicy, drop_elsewhere};
use angarium_protocol::Writer;
use angarium_protocol::websocket::Outgoing;
use std::cell::Cell;
use std::collections::VecDeque;

pub(crate) use self::marks::Whose;

/// Unsent bytes beyond which further output goes into a new buffer: growing one buffer of tens of MB takes
/// ten milliseconds and more. A client that keeps up never has that much.
const PIECE_BYTES: usize = 512 << 10;
/// What is written in one turn may go beyond that.
const PIECE_CAPACITY: usize = PIECE_BYTES + (128 << 10);

/// Pieces whose room is kept while there are none.
const PIECES_KEPT: usize = 16;

/// To give more back to the system than this takes a millisecond and more.
const DROPPED_BYTES_MAX: usize = 4 << 20;

/// What a client misses that is too slow for direct messages, since it became so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlowConsumerInfo {
    /// What became of the first messages for which it was too slow: the subscription's policy, where it has
    /// its own.
    pub policy: SlowConsumerPolicy,
    /// Messages that it has missed.
    pub missed: u64,
    /// Messages that have waited on the disk for it.
    pub spooled: u64,
}

/// A connection's output and what the host has to know about it.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    pub(crate) writer: Writer,
    /// The frames in which it is sent, where it is.
    pub(crate) framing: Option<Box<Outgoing>>,
    /// What comes before the output's bytes. They are boxed, since the list moves when it grows: those of
    /// many slow consumers that are sent the same grow in the same step.
    pieces: VecDeque<Box<Piece>>,
    /// How much that is.
    pieces_bytes: usize,
    /// Bytes at the start of the first piece, or of `writer.output.bytes`, that are already sent.
    sent: usize,
    /// It is in `NodeEffects::dirty`.
    pub(crate) is_dirty: bool,
    /// The engine was refused room; tell it when there is some.
    pub(crate) wants_room: Cell<bool>,
    /// What becomes of direct messages when it is too far behind.
    pub(crate) slow_consumer_policy: SlowConsumerPolicy,
    /// The policy from the time on when no message waits in the spill log.
    pub(crate) next_policy: Option<SlowConsumerPolicy>,
    /// Unsent bytes beyond which its policy applies.
    pub(crate) unsent_max: usize,
    /// What [`Outbox::unsent_max`] is where memory is not short.
    pub(crate) unsent_allowed: usize,
    /// Its connection holds as much memory as it may: it gets no deliveries of queues.
    pub(crate) is_short: bool,
    /// It is in `NodeEffects::large_outputs`.
    pub(crate) is_large: bool,
    /// Whether its connection waits for memory.
    pub(crate) memory: MemoryWait,
    /// It is too far behind for direct messages, and to be ended for that.
    pub(crate) is_given_up: bool,
    /// Unsent bytes up to which direct messages are written without a look at the policy.
    pub(crate) plain_max: usize,
    /// What it has missed since it has been too slow.
    pub(crate) lag: SlowConsumerInfo,
    /// Its number in the spill log, where it has something there.
    pub(crate) spooled: Option<u32>,
    /// The last messages of subjects that wait for room; none where none does.
    pub(crate) conflated: Option<Box<Conflated>>,
    /// What may be taken out of the output, where something may.
    droppable: Option<Box<Droppable>>,
    /// Publishers that are not read from before some of this is sent.
    pub(crate) waiting: WaitingPublishers,
    /// At home: it is a connection of another shard, and this is not where its output goes.
    pub(crate) remote: Option<Box<RemoteConnection>>,
    /// On another shard: bytes of deliveries from home that home does not know to have left.
    pub(crate) delivered: u64,
    /// It has asked other shards for something that they need not answer, but may.
    pub(crate) is_owed: bool,
}

impl Outbox {
    /// How many bytes are still to be sent.
    #[inline]
    pub(crate) fn unsent(&self) -> usize {
        self.pieces_bytes + self.writer.output.bytes.len() - self.sent
    }

    /// Those, and bytes of queued messages that the peer has no room for.
    #[inline]
    pub(crate) fn unsent_and_held(&self) -> usize {
        self.unsent() + self.writer.output.held
    }

    /// Those, and bytes that are kept until they can be written.
    pub(crate) fn unsent_and_kept(&self) -> usize {
        self.unsent_and_held() + self.conflated.as_ref().map_or(0, |kept| kept.bytes())
    }

    /// What is to be sent next: all, or the rest of a piece, or of a part of one, or of a frame.
    #[inline]
    pub(crate) fn pending(&self) -> &[u8] {
        if self.framing.is_some() {
            return self.pending_parts().and_then(|mut parts| parts.next()).unwrap_or_default();
        }
        if self.pieces.is_empty() {
            return &self.writer.output.bytes[self.sent..];
        }
        self.parts().next().unwrap_or_default()
    }

    /// The same part by part, this one first, where it lies in several places.
    #[inline]
    pub(crate) fn pending_parts(&self) -> Option<impl Iterator<Item = &[u8]>> {
        let parts = (!self.pieces.is_empty() && self.framing.is_none()).then(|| self.parts());
        let frame = self.framing.as_ref().map(|framing| self.frame_parts(framing));
        let any = parts.is_some() || frame.is_some();
        any.then(|| frame.into_iter().flatten().chain(parts.into_iter().flatten()))
    }

    /// Those of them that lie in pieces, part by part, up to where some were taken out.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let sent = std::iter::once(self.sent).chain(std::iter::repeat(0));
        let pieces = self.pieces.iter().zip(sent).take_while(|(piece, _)| !piece.has_holes());
        pieces.flat_map(|(piece, sent)| piece.pending(sent))
    }

    /// Notes that `bytes` were sent; says whether a piece has ended, or part of what is large, and there is
    /// more.
    #[inline]
    pub(crate) fn advance(&mut self, bytes: usize) -> bool {
        self.waiting.note_sent();
        if !self.pieces.is_empty() {
            return self.advance_in_pieces(bytes);
        }
        self.sent += bytes;
        self.forget_sent();
        false
    }

    #[inline(never)]
    fn advance_in_pieces(&mut self, mut bytes: usize) -> bool {
        let mut has_ended = false;
        while let Some(piece) = self.pieces.front_mut() {
            let own = bytes.min(piece.len() - self.sent);
            self.sent += own;
            bytes -= own;
            if self.sent < piece.len() {
                return has_ended;
            }
            has_ended = true;
            let before = piece.left();
            bytes = piece.advance(bytes);
            self.pieces_bytes -= before - piece.left();
            self.sent = 0;
            if piece.left() > 0 {
                return true;
            }
            self.forget_piece();
            if bytes == 0 {
                return self.unsent() > 0;
            }
        }
        self.sent += bytes;
        self.forget_sent();
        has_ended && self.unsent() > 0
    }

    /// Ends a piece of output that has grown large.
    #[inline]
    pub(crate) fn part(&mut self) {
        if self.writer.output.bytes.len() >= PIECE_BYTES || self.droppable.is_some() {
            self.part_much();
        }
    }

    #[cold]
    fn part_much(&mut self) {
        let bytes = self.writer.output.bytes.len();
        if bytes >= PIECE_BYTES || bytes > self.small_piece_bytes() {
            self.end_piece();
        }
    }

    /// What is written becomes the last piece.
    fn end_piece(&mut self) {
        let is_small = self.droppable.is_some();
        let room = if is_small { self.small_piece_bytes() } else { PIECE_CAPACITY };
        let bytes = std::mem::replace(&mut self.writer.output.bytes, Vec::with_capacity(room));
        let piece = match &mut self.droppable {
            Some(droppable) => droppable.close(bytes, None),
            None => Piece::plain(bytes, None),
        };
        self.push_piece(piece);
    }

    fn push_piece(&mut self, piece: Piece) {
        self.pieces_bytes += piece.left();
        self.pieces.push_back(piece.into());
    }

    /// What is written becomes the last piece, and the large body that comes next belongs to it.
    #[cold]
    pub(crate) fn end_with_large(&mut self) {
        let Some(large) = self.writer.output.shared_body.take() else { return };
        if self.droppable.is_some() {
            self.end_piece();
        }
        let bytes = &mut self.writer.output.bytes;
        // Where there is nothing in it, its room is for what comes next.
        let bytes = if bytes.is_empty() { Vec::new() } else { std::mem::take(bytes) };
        self.push_piece(Piece::plain(bytes, Some(large)));
    }

    /// Frees the room of what is sent, now and then.
    fn forget_sent(&mut self) {
        let sent = self.sent;
        debug_assert!(sent <= self.writer.output.bytes.len());
        if sent == self.writer.output.bytes.len() {
            self.writer.output.bytes.clear();
            // What it was once behind is much more than it needs again, while it keeps up.
            if self.writer.output.bytes.capacity() > 4 * PIECE_BYTES {
                self.writer.output.bytes = Vec::new();
            }
            if let Some(droppable) = &mut self.droppable {
                droppable.all_left();
            }
        } else if sent > self.writer.output.bytes.len() / 2 && self.droppable.is_none() {
            // Moves less than was sent, so that the sum of all moves stays linear.
            self.writer.output.bytes.drain(..sent);
        } else {
            return;
        }
        self.sent = 0;
    }

    /// The first piece is sent.
    fn forget_piece(&mut self) {
        let piece = self.pieces.pop_front();
        if self.pieces.is_empty() {
            self.pieces.shrink_to(PIECES_KEPT);
        }
        if let (Some(droppable), Some(piece)) = (&mut self.droppable, &piece) {
            droppable.first_left(piece, self.pieces.front_mut().map(Box::as_mut));
        }
    }

    /// Resets it for the next connection in its slot, which may be listed as dirty already.
    pub(crate) fn renew(&mut self) {
        self.drop_pieces();
        let Outbox { is_dirty, is_large, .. } = *self;
        *self = Outbox { is_dirty, is_large, ..Outbox::default() };
    }

    /// Drops all that is unsent: its peer is not waited for.
    pub(crate) fn discard(&mut self) {
        self.writer.output.bytes = Vec::new();
        self.drop_pieces();
        self.sent = 0;
        self.droppable = None;
        self.conflated = None;
        if let Some(framing) = &mut self.framing {
            framing.discard();
        }
    }

    /// Drops all pieces; many of them on another thread.
    fn drop_pieces(&mut self) {
        let pieces = std::mem::take(&mut self.pieces);
        if std::mem::take(&mut self.pieces_bytes) > DROPPED_BYTES_MAX {
            drop_elsewhere(pieces);
        }
    }
}
