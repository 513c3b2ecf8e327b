//! Deliveries of a session that the peer has no room for yet: cut into frames, in turn for their links.

use super::transfer_frame::{self, First};
use angarium_engine::Bytes;
use std::collections::VecDeque;

/// Unsent octets of output beyond which large messages wait.
const OUTPUT_BYTES_MAX: usize = 256 << 10;
/// What a delivery takes in memory beside its octets.
const DELIVERY_BYTES: usize = size_of::<Waiting>() + 32;

/// A delivery that is not sent, or not all of it.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) handle: u32,
    /// The engine's; `None`: it is a message of the broker itself.
    pub(super) tag: Option<u64>,
    pub(super) settled: bool,
    /// The message, or what comes before its body.
    pub(super) head: Vec<u8>,
    /// Its body, where that is large.
    pub(super) body: Option<Bytes>,
    /// Octets that are sent.
    pub(super) sent: usize,
}

impl Held {
    fn bytes(&self) -> usize {
        self.head.len() + self.body.as_ref().map_or(0, Bytes::len)
    }
    /// Octets that are not sent.
    pub(super) fn left(&self) -> usize {
        self.bytes() - self.sent
    }
    /// Appends the next octets, as many as that.
    fn put(&mut self, out: &mut Vec<u8>, count: usize) {
        let end = self.sent + count;
        let from_head = self.head.get(self.sent..end.min(self.head.len())).unwrap_or_default();
        out.extend_from_slice(from_head);
        if let Some(body) = &self.body
            && end > self.head.len()
        {
            let start = self.sent.saturating_sub(self.head.len());
            out.extend_from_slice(&body[start..end - self.head.len()]);
        }
        self.sent = end;
    }
    /// Writes the next frame of it, of at most that many octets; says whether it was the last.
    fn put_frame(&mut self, out: &mut Vec<u8>, channel: u16, delivery_id: u32, max: usize) -> bool {
        let begun = if self.sent == 0 {
            let Held { handle, tag, settled, .. } = *self;
            let tag = tag.unwrap_or(delivery_id.into());
            transfer_frame::begin_first(out, channel, First { handle, delivery_id, tag, settled })
        } else {
            transfer_frame::begin_next(out, channel, self.handle)
        };
        let room = max.saturating_sub(begun.payload - begun.start).max(1);
        self.put(out, self.left().min(room));
        let is_last = self.left() == 0;
        transfer_frame::end(out, begun, !is_last);
        is_last
    }
}

/// What waits behind deliveries.
#[derive(Debug)]
pub(super) enum Waiting {
    /// A delivery.
    Delivery(Held),
    /// The link has nothing more to send: its credit is given up.
    Drained(u32),
}

/// One step of sending what is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A frame of that link was written; `begins`: the first of the delivery with that tag.
    Frame { begins: Option<Option<u64>>, handle: u32 },
    /// The credit of that link is to be given up.
    Drained(u32),
}

/// What a session holds back.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// In the order of their tags.
    fresh: VecDeque<Waiting>,
    /// Those that have begun, at most one of each link, in turn.
    begun: VecDeque<Held>,
    /// Whose turn it is: of a fresh one.
    is_fresh_next: bool,
    /// Octets that are left of all deliveries, and what they take beside these.
    bytes: usize,
}

impl Queue {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.fresh.is_empty() && self.begun.is_empty()
    }
    pub(super) fn push(&mut self, waiting: Waiting) {
        if let Waiting::Delivery(held) = &waiting {
            self.bytes += held.left() + DELIVERY_BYTES;
        }
        self.fresh.push_back(waiting);
    }
    /// Drops the deliveries of a link.
    pub(super) fn drop_link(&mut self, handle: u32) {
        let mut bytes = 0;
        self.fresh.retain(|waiting| match waiting {
            Waiting::Delivery(held) if held.handle == handle => {
                bytes += held.left() + DELIVERY_BYTES;
                false
            }
            Waiting::Drained(drained) => *drained != handle,
            Waiting::Delivery(_) => true,
        });
        self.begun.retain(|held| {
            bytes += if held.handle == handle { held.left() + DELIVERY_BYTES } else { 0 };
            held.handle != handle
        });
        self.bytes -= bytes;
    }
    /// What all deliveries take in memory, about.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
    /// Whether the next fresh one may be begun: none of its link has begun.
    fn may_begin(&self) -> bool {
        let handle = match self.fresh.front() {
            None => return false,
            Some(Waiting::Delivery(held)) => held.handle,
            Some(Waiting::Drained(handle)) => *handle,
        };
        self.begun.iter().all(|held| held.handle != handle)
    }
    /// Does the next step, where there is one: `window` says whether the peer takes another frame, and
    /// `next_id` is the id of a delivery that begins.
    pub(super) fn step(
        &mut self,
        out: &mut Vec<u8>,
        channel: u16,
        window: u32,
        next_id: u32,
        frame_bytes_max: usize,
    ) -> Option<Step> {
        let may_begin = self.may_begin();
        if may_begin && let Some(Waiting::Drained(handle)) = self.fresh.front() {
            let handle = *handle;
            self.fresh.pop_front();
            return Some(Step::Drained(handle));
        }
        if window == 0 || out.len() > OUTPUT_BYTES_MAX {
            return None;
        }
        let is_fresh = may_begin && (self.is_fresh_next || self.begun.is_empty());
        self.is_fresh_next = !is_fresh;
        let mut held = match is_fresh {
            true => match self.fresh.pop_front()? {
                Waiting::Delivery(held) => held,
                Waiting::Drained(handle) => return Some(Step::Drained(handle)),
            },
            false => self.begun.pop_front()?,
        };
        let begins = (held.sent == 0).then_some(held.tag);
        let handle = held.handle;
        let left = held.left();
        let is_last = held.put_frame(out, channel, next_id, frame_bytes_max);
        self.bytes -= left - held.left();
        if is_last {
            self.bytes -= DELIVERY_BYTES;
        } else {
            self.begun.push_back(held);
        }
        Some(Step::Frame { begins, handle })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(handle: u32, octets: usize) -> Waiting {
        let head = vec![7; octets];
        Waiting::Delivery(Held { handle, tag: Some(1), settled: false, head, body: None, sent: 0 })
    }

    #[test]
    fn what_is_held_counts_until_it_is_sent_or_dropped() {
        let mut queue = Queue::default();
        for (handle, octets) in [(1, 1_000), (2, 10), (1, 10)] {
            queue.push(delivery(handle, octets));
        }
        assert_eq!(queue.bytes(), 1_020 + 3 * DELIVERY_BYTES);
        let mut out = Vec::new();
        // The peer takes frames of 600 octets: the first of link 1, then all of link 2.
        let step = queue.step(&mut out, 0, 9, 0, 600);
        assert_eq!(step, Some(Step::Frame { begins: Some(Some(1)), handle: 1 }));
        assert!(queue.bytes() < 500 + 3 * DELIVERY_BYTES);
        queue.step(&mut out, 0, 9, 1, 600);
        let before = queue.bytes();
        queue.drop_link(1);
        assert!(before > queue.bytes());
        while queue.step(&mut out, 0, 9, 1, 600).is_some() {}
        assert_eq!((queue.bytes(), queue.is_empty()), (0, true));
    }
}
