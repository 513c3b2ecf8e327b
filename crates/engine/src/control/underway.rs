//! Purges and deletions of virtual hosts that are under way, as data.

use crate::LoadId;
use crate::channel::transaction::ChannelPlace;
use crate::consumer::unsettled::Unsettled;
use crate::publish::held::DelayKey;
use crate::queue::ranges::Ranges;
use crate::storage::codec::Writer;
use std::collections::VecDeque;
use std::ops::Range;

/// What a range of numbers takes in memory.
const RANGE_BYTES: usize = 32;

/// A purge of which there is no record yet.
#[derive(Debug)]
pub(crate) struct Purge {
    /// Who waits for the answer, and what that waits for; `None`: it is given at once.
    pub(super) answers: Option<(ChannelPlace, u64)>,
    /// The number of the queue.
    pub(super) queue: u64,
    /// Only messages before this number may be gone.
    pub(super) before: u64,
    /// What has gone, as [`crate::queue::reclaim::Departures`] numbers it.
    pub(super) departed: Range<u64>,
    /// Messages that were out; they may be settled by now.
    pub(super) kept: Ranges,
    /// Those that do not survive a restart, too: what is known of single messages is kept of them alone.
    pub(super) keeps_all: bool,
    pub(super) next: Next,
    /// Those of `kept` that are written down already, and how many ranges they are.
    pub(super) record: Vec<u8>,
    pub(super) ranges: u64,
}

/// What is looked at next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next {
    Channel { slot: u32, tag: u64 },
    Transaction { slot: u32, number: u64 },
    Settling { number: u64, tag: u64 },
    Dying(LoadId),
    Notes { seq: u64 },
    Ranges,
    Nothing,
}

/// Steps that may still be done in this turn.
pub(super) struct Steps(pub(super) usize);

impl Steps {
    pub(super) fn spend(&mut self) -> bool {
        let has = self.0 > 0;
        self.0 = self.0.saturating_sub(1);
        has
    }
}

/// All purges that are not complete, in their order.
#[derive(Debug, Default)]
pub(crate) struct Purges(pub(super) VecDeque<Purge>);

impl Purges {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What they take in memory.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes =
            |it: &Purge| size_of::<Purge>() + it.kept.len() * RANGE_BYTES + it.record.capacity();
        self.0.iter().map(bytes).sum::<usize>() as u64
    }

    /// A message of a queue that was on its way is back in the queue, or with its channel.
    #[cold]
    pub(crate) fn keep(&mut self, queue: u64, seq: u64) {
        let of_queue = self.0.iter_mut().filter(|it| it.queue == queue && seq < it.before);
        for purge in of_queue.filter(|it| !matches!(it.next, Next::Ranges | Next::Nothing)) {
            purge.kept.insert(seq);
        }
    }
}

impl Purge {
    /// Looks at deliveries from a tag on; says where the turn ended, if it did.
    pub(super) fn look_at(
        &mut self,
        unsettled: &Unsettled,
        from: u64,
        steps: &mut Steps,
    ) -> Option<u64> {
        if !self.keeps_all && !unsettled.has_durable() {
            return None;
        }
        for (tag, delivered) in unsettled.onward(from) {
            if !steps.spend() {
                return Some(tag);
            }
            if delivered.queue_number == self.queue && delivered.entry.seq < self.before {
                self.kept.insert(delivered.entry.seq);
            }
        }
        None
    }

    /// Writes down what stays.
    pub(super) fn write_some(&mut self, steps: &mut Steps) -> Next {
        let mut writer = Writer(&mut self.record);
        while steps.spend() {
            let Some((first, last)) = self.kept.pop_first() else { return Next::Nothing };
            writer.varint(first);
            writer.varint(last - first);
            self.ranges += 1;
        }
        Next::Ranges
    }
}

/// The deletion of a virtual host that is under way.
#[derive(Debug)]
pub(crate) struct VhostDeletion {
    pub(super) vhost: u32,
    pub(super) next: NextDeleted,
    /// Who waits for the answer, and what that waits for.
    pub(super) answers: (ChannelPlace, u64),
}

/// What is deleted next.
#[derive(Clone, Copy, Debug)]
pub(super) enum NextDeleted {
    Queues { slot: u32 },
    Delays { unreadable: bool, behind: Option<DelayKey> },
    Retained,
    Sessions { slot: usize },
    Vhost,
}
