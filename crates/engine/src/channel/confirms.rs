//! Publisher confirms of one channel: numbers go out in order, many at once where that is possible.

use crate::{ChannelId, Confirm, Effects, Position, PublishRefusal, Refusal, RefusalKind};
use std::collections::VecDeque;

/// The publishes of a channel that are not confirmed yet. Refusals go out immediately, so that a
/// later confirm of several never covers them.
#[derive(Debug, Default)]
pub(crate) struct Confirms {
    /// Every publish is confirmed, also one that is refused for what would otherwise be an error.
    pub(crate) explained: bool,
    /// The number of the last publish.
    last: u64,
    /// Every number up to this one was told.
    told: u64,
    /// Numbers up to this one can be confirmed, except refused ones.
    ready: u64,
    /// How many of them will be told as taken.
    ready_count: u64,
    /// What waits for flushes, in order.
    waiting: VecDeque<Waiting>,
}

/// Publishes that wait for one flush.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    position: Position,
    /// The number of the last one.
    up_to: u64,
    /// How many there are; refused ones are not among them.
    count: u64,
}

impl Waiting {
    #[inline]
    fn add(&mut self, number: u64) {
        self.up_to = number;
        self.count += 1;
    }
}

impl Confirms {
    /// Counts a publish and says its number.
    #[inline]
    pub(crate) fn count(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// How many publishes were not told about yet.
    pub(crate) fn untold(&self) -> u64 {
        self.last - self.told
    }

    /// The number of the last publish.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// The publish of that number is taken over once the record at `position` is flushed, or at once
    /// where there is none. One that waits for nothing does not overtake one that waits.
    #[inline]
    pub(crate) fn taken(&mut self, number: u64, position: Option<Position>) {
        match (position, self.waiting.back_mut()) {
            (None, None) => {
                self.ready = number;
                self.ready_count += 1;
            }
            (None, Some(last)) => last.add(number),
            (Some(position), Some(last)) if last.position == position => last.add(number),
            (Some(position), _) => {
                self.waiting.push_back(Waiting { position, up_to: number, count: 1 });
            }
        }
    }

    /// The publish of that number is refused.
    pub(crate) fn refused<F: Effects>(
        &mut self,
        number: u64,
        channel: ChannelId,
        why: &Refusal,
        fx: &mut F,
    ) {
        let refused = Some(PublishRefusal { kind: why.kind, text: &why.text });
        fx.confirm(channel, Confirm { number, multiple: false, refused });
        if self.told + 1 == number {
            self.told = number;
            self.ready = number;
        }
    }

    /// Everything before `position` is flushed.
    pub(crate) fn flushed(&mut self, position: Position) {
        while let Some(waiting) = self.waiting.front().copied() {
            if waiting.position >= position {
                break;
            }
            self.waiting.pop_front();
            self.ready = waiting.up_to;
            self.ready_count += waiting.count;
        }
    }

    /// Tells what is ready; says how many publishes that were.
    pub(crate) fn tell<F: Effects>(&mut self, channel: ChannelId, fx: &mut F) -> u64 {
        if self.ready > self.told {
            let multiple = self.ready > self.told + 1;
            fx.confirm(channel, Confirm { number: self.ready, multiple, refused: None });
            self.told = self.ready;
        }
        std::mem::take(&mut self.ready_count)
    }

    /// Nothing will be flushed any more: refuses all that waits. Says how many were ready before.
    pub(crate) fn fail<F: Effects>(&mut self, channel: ChannelId, fx: &mut F) -> u64 {
        let told = self.tell(channel, fx);
        if let Some(Waiting { up_to: number, .. }) = self.waiting.back().copied() {
            let (kind, text) = (RefusalKind::StorageUnavailable, "the journal failed");
            let refused = Some(PublishRefusal { kind, text });
            fx.confirm(channel, Confirm { number, multiple: true, refused });
            self.waiting.clear();
            self.told = number;
            self.ready = number;
        }
        told
    }

    /// Whether a flush is waited for.
    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }
}
