//! One piece of a connection's output that waits to be sent, from which direct messages may be taken out,
//! whole ones only.
//!
//! Independent of what the messages look like.

use super::marks::{Marked, Whose};
use angarium_engine::Lost;
use angarium_protocol::SharedBody;

/// What is taken out leaves a hole in its piece until that is the next to be sent, where it is less than
/// this part of it: everything around it would have to be copied. So the pieces of a slow consumer take at
/// most a fifteenth more than what they hold.
const HOLES_PART: usize = 16;
/// Subscriptions whose losses are counted together before they are reported.
const COUNTS: usize = 16;
/// A piece has at most that part of its room unused, when it has ended.
const UNUSED_PART: usize = 16;

/// A piece.
#[derive(Debug, Default)]
pub(super) struct Piece {
    bytes: Vec<u8>,
    /// The messages that may be taken out or, where it has holes, those that were.
    marks: Box<[u8]>,
    holes_bytes: usize,
    /// The body that comes behind its bytes, where that is large.
    large: Option<Box<SharedBody>>,
}

impl Piece {
    /// One from which nothing may be taken out.
    pub(super) fn plain(bytes: Vec<u8>, large: Option<Box<SharedBody>>) -> Piece {
        Piece { bytes, large, ..Piece::default() }
    }

    /// One with the messages that `marks` tell of, or with a single one that has a large body.
    pub(super) fn marked(
        bytes: Vec<u8>,
        marks: Box<[u8]>,
        large: Option<Box<SharedBody>>,
    ) -> Piece {
        let is_loose = bytes.capacity() - bytes.len() > bytes.capacity() / UNUSED_PART;
        // An allocator asked to shrink need not free anything.
        let bytes = if is_loose { bytes.as_slice().to_vec() } else { bytes };
        Piece { bytes, marks, large, holes_bytes: 0 }
    }

    /// Bytes before what is large that are to be sent, and those of them that are sent already.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.holes_bytes
    }

    /// All of them; only without holes.
    pub(super) fn bytes(&self) -> &[u8] {
        debug_assert!(self.holes_bytes == 0);
        &self.bytes
    }

    /// Whether messages that were taken out are still among them.
    pub(super) fn has_holes(&self) -> bool {
        self.holes_bytes > 0
    }

    /// Its unsent parts after the first `sent` bytes; only without holes.
    pub(super) fn pending(&self, sent: usize) -> impl Iterator<Item = &[u8]> {
        let own = Some(&self.bytes()[sent..]).filter(|own| !own.is_empty());
        own.into_iter().chain(self.large.iter().flat_map(|large| large.parts()))
    }

    /// How much is still to be sent of it, if none of its bytes is.
    pub(super) fn left(&self) -> usize {
        self.len() + self.large.as_ref().map_or(0, |large| large.left())
    }

    /// Its own bytes and `bytes` more are sent; returns how many of these belong to later pieces.
    pub(super) fn advance(&mut self, bytes: usize) -> usize {
        (self.bytes, self.holes_bytes) = (Vec::new(), 0);
        self.large.as_mut().map_or(bytes, |large| large.advance(bytes))
    }

    pub(super) fn marks_len(&self) -> usize {
        self.marks.len()
    }

    /// Takes all messages out but those that are sent at least in part, as its first `sent` bytes are. Says
    /// which subscription misses what, of most of them once; returns their bytes.
    pub(super) fn take_out(&mut self, sent: usize, mut lost: impl FnMut(Whose, Lost)) -> usize {
        let mut bytes = 0;
        // What comes before the large body is gone once it is sent.
        let has_begun = self.bytes.is_empty();
        let sent = if has_begun { usize::MAX } else { sent };
        let mut counts: [Option<(Whose, Lost)>; COUNTS] = [None; COUNTS];
        for message in Marked::new(&self.marks).skip_while(|message| message.start < sent) {
            bytes += message.bytes;
            let one = Lost::one(message.untold);
            match &mut counts[message.whose.tag as usize % COUNTS] {
                Some((whose, count)) if *whose == message.whose => *count += one,
                other => {
                    let before = other.replace((message.whose, one));
                    before.into_iter().for_each(|(whose, count)| lost(whose, count));
                }
            }
        }
        counts.into_iter().flatten().for_each(|(whose, count)| lost(whose, count));
        self.holes_bytes = bytes;
        if bytes == 0 {
            self.marks = Box::default();
            return 0;
        }
        // It belongs to the only message.
        let large = self.large.take();
        bytes + large.map_or(0, |large| large.left())
    }

    /// Whether what was taken out may stay in it for now.
    pub(super) fn may_keep_holes(&self) -> bool {
        self.holes_bytes < self.bytes.len() / HOLES_PART
    }

    /// Makes what is left of it, from `sent` on, one; nothing was taken out of the next `kept` bytes. Nothing
    /// can be taken out of it any more. Returns how many bytes were copied.
    pub(super) fn close_holes(&mut self, sent: usize, kept: usize) -> usize {
        if self.holes_bytes == 0 && sent == 0 {
            return 0;
        }
        let mut left = Vec::with_capacity(self.len() - sent);
        let mut from = sent;
        // Where all goes it is not to be looked at twice.
        if self.len() > sent {
            for message in
                Marked::new(&self.marks).skip_while(|message| message.start < sent + kept)
            {
                left.extend_from_slice(&self.bytes[from..message.start]);
                from = message.start + message.bytes;
            }
            left.extend_from_slice(&self.bytes[from..]);
        }
        *self = Piece::plain(left, None);
        self.bytes.len()
    }

    /// Appends another one that has no holes, if nothing large comes between them and both together are no
    /// more than `most` bytes. Returns how many were copied.
    pub(super) fn append(&mut self, other: &Piece, most: usize) -> Option<usize> {
        let bytes = other.bytes();
        debug_assert!(other.large.is_none());
        if self.large.is_some() || self.bytes.len() + bytes.len() > most {
            return None;
        }
        let mut copied = bytes.len();
        if self.bytes.capacity() - self.bytes.len() < bytes.len() {
            copied += self.bytes.len();
            self.bytes.reserve_exact(bytes.len().max(most / UNUSED_PART));
        }
        self.bytes.extend_from_slice(bytes);
        Some(copied)
    }

    /// Bytes of memory that it has.
    #[cfg(test)]
    pub(super) fn room(&self) -> usize {
        self.bytes.capacity() + self.marks.len()
    }
}
