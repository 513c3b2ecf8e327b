//! Channels whose producers pause because of a queue that has more than its consumers keep up with.

use crate::{ChannelId, Time};
use std::collections::VecDeque;

/// All pauses, each channel and number of a queue once, by their ends.
#[derive(Debug, Default)]
pub(crate) struct Pauses {
    all: VecDeque<Pause>,
    /// When the timer goes off.
    pub(crate) timer: Option<Time>,
}

/// One channel pauses with what it sends to one queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pause {
    pub(crate) channel: ChannelId,
    /// The number of the queue.
    pub(crate) queue: u64,
    pub(crate) until: Time,
}

impl Pauses {
    /// Adds a pause, which ends after all others, unless there is one of that channel and queue; says whether
    /// it did.
    pub(crate) fn add(&mut self, pause: Pause) -> bool {
        let Pause { channel, queue, .. } = pause;
        let is_new = !self.all.iter().any(|it| it.channel == channel && it.queue == queue);
        if is_new {
            self.all.push_back(pause);
        }
        is_new
    }

    /// The pause that ends first.
    pub(crate) fn first(&self) -> Option<Pause> {
        self.all.front().copied()
    }

    /// Takes the pause that ends first, if it is over.
    pub(crate) fn take_over(&mut self, now: Time) -> Option<Pause> {
        if self.first()?.until > now { None } else { self.all.pop_front() }
    }

    /// A channel has ended.
    pub(crate) fn channel_left(&mut self, channel: ChannelId) {
        if !self.all.is_empty() {
            self.all.retain(|it| it.channel != channel);
        }
    }
}
