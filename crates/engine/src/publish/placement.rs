//! The place that a message gets in a queue while it is published.

use crate::queue::Queue;
use crate::queue::blob::Blob;
use crate::queue::entry::{Entry, Fetch, NEVER};
use crate::queue::stored::Incoming;
use crate::{Position, Time};

/// Where one queue puts a message that is being published.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placement {
    pub(super) queue: u32,
    pub(super) seq: u64,
    pub(super) expires: Time,
    pub(super) durable: bool,
    /// Its publisher waits until it is flushed.
    pub(super) flushes: bool,
    /// Its consumer does.
    pub(super) waits_for_flush: bool,
    /// The consumer that gets it without its waiting in the queue.
    pub(super) taker: Option<u32>,
    /// The queue is full. It has the message only until the group of records is complete.
    pub(super) refused: bool,
}

impl Placement {
    /// The next place in a queue.
    #[inline]
    pub(super) fn new(
        queue: &mut Queue,
        slot: u32,
        now: Time,
        incoming: &Incoming<'_>,
    ) -> Placement {
        let content = &incoming.content;
        let by_queue = queue.options.message_ttl.map_or(NEVER, |ttl| now.plus(ttl));
        let expires = incoming.expires(now).map_or(by_queue, |at| at.min(by_queue));
        let seq = queue.next_seq;
        queue.next_seq += 1;
        let durable = content.persistent && queue.stores;
        let flushes = durable && queue.flushes;
        let waits_for_flush = durable && queue.own.as_ref().is_some_and(|own| own.waits_for_flush);
        let (taker, refused) = (None, false);
        Placement { queue: slot, seq, expires, durable, flushes, waits_for_flush, taker, refused }
    }

    /// What the queue has of the message then.
    pub(super) fn entry(
        self,
        queue: &Queue,
        position: Position,
        message: Option<Blob>,
        incoming: &Incoming<'_>,
        mark: bool,
    ) -> Entry {
        Entry {
            seq: self.seq,
            position,
            expires: self.expires,
            message,
            bytes: incoming.content.body.len() as u32,
            requeues: 0,
            durable: self.durable,
            redelivered: incoming.redelivered,
            fetch: Fetch::Idle,
            lane: queue.lane_of(incoming.content.priority),
            mark,
        }
    }
}
