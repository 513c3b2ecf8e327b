//! What a shard does at a certain time, and when that is.

use super::shard::{Shard, Stage};
use angarium_engine::Time;

impl Shard {
    /// When something is due next.
    pub(super) fn deadline(&self) -> Option<Time> {
        let drained_at = if let Stage::Draining(at) = self.stage { Some(at) } else { None };
        let named_at = self.watchdog.deadline();
        let refusal_at = self.refusals.deadline();
        let told_at = self.broker_topics.due;
        let others = [
            self.accept_again_at,
            drained_at,
            named_at,
            refusal_at,
            told_at,
            self.certificates_due(),
        ];
        [self.node.deadline(), self.clients.deadline()].into_iter().chain(others).flatten().min()
    }

    /// Runs what is due; says whether the node had anything.
    pub(super) fn do_what_is_due(&mut self) -> bool {
        let is_due = self.node.deadline().is_some_and(|due| due <= self.now);
        if is_due {
            self.node.expire(self.now);
        }
        self.tell_broker_topics();
        self.refuse_due();
        self.look_for_certificates();
        while let Some(index) = self.clients.next_overdue(self.now) {
            self.overdue(index);
        }
        if self.accept_again_at.is_some_and(|due| due <= self.now) {
            self.accept_again_at = None;
            self.watch_listeners(true);
        }
        is_due
    }
}
