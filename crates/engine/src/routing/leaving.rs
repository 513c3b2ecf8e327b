//! Exchanges and queues that are deleted: they lead nowhere and have no name any more; their bindings go with
//! them, or some in each turn where they are many.

use super::bindings::{ExchangeKey, Target};
use super::patterns::NONE;
use super::{Change, DeletedExchange, QueueKey, Router};

/// Bindings that go before others get their turn.
const BINDINGS_AT_ONCE: usize = 1_024;

impl Router {
    /// Whether a target is still there.
    #[inline]
    pub(super) fn is_live(&self, target: Target) -> bool {
        if self.leaving.is_empty() {
            return true;
        }
        match target {
            Target::Queue(queue) => self.queues.get(&queue).is_some_and(|entry| !entry.is_gone),
            Target::Exchange(key) => self.exchanges.get(key).is_live(),
        }
    }

    /// Whether bindings are left of what was deleted.
    pub(crate) fn has_leaving(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// The queues of which bindings are left: their keys are not free yet.
    pub(crate) fn leaving_queues(&self) -> impl Iterator<Item = QueueKey> {
        self.leaving.iter().filter_map(|target| match target {
            Target::Queue(queue) => Some(*queue),
            Target::Exchange(_) => None,
        })
    }

    /// Goes on with bindings of what was deleted; returns the queue of which there are none any more, if it
    /// is one.
    pub(crate) fn drop_some_bindings(&mut self, change: &mut Change) -> Option<QueueKey> {
        let target = *self.leaving.front()?;
        if !self.drop_bindings_of(target, change) {
            return None;
        }
        self.leaving.pop_front();
        match target {
            Target::Queue(queue) => Some(queue),
            Target::Exchange(_) => None,
        }
    }

    /// An exchange goes: nobody finds it any more.
    pub(super) fn take_exchange(&mut self, key: ExchangeKey, change: &mut Change) {
        self.exchanges.retire(key);
        self.generation += 1;
        self.leave(Target::Exchange(key), change);
    }

    /// Lets go of what was deleted, with its bindings; says whether none is left.
    pub(super) fn leave(&mut self, target: Target, change: &mut Change) -> bool {
        let is_done = self.drop_bindings_of(target, change);
        if !is_done {
            self.leaving.push_back(target);
        }
        is_done
    }

    /// Drops bindings of what was deleted, as many as there is time for, and then itself; says whether it
    /// did.
    fn drop_bindings_of(&mut self, target: Target, change: &mut Change) -> bool {
        let most = if self.hold_auto_delete { usize::MAX } else { BINDINGS_AT_ONCE };
        let mut sources = Vec::new();
        let mut count = 0;
        let is_done = loop {
            let (next, is_incoming) = self.next_binding_of(target);
            if next == NONE {
                break true;
            }
            if count == most {
                break false;
            }
            let source = self.drop_binding(next);
            count += 1;
            if is_incoming && sources.last() != Some(&source) {
                sources.push(source);
            }
        };
        change.bindings_removed += count;
        if is_done {
            match target {
                Target::Queue(queue) => {
                    self.queues.remove(&queue);
                }
                Target::Exchange(key) => {
                    let exchange = self.exchanges.remove(key);
                    self.tally.went(exchange.by, exchange.bytes());
                }
            }
        }
        self.auto_delete(sources, change);
        is_done
    }

    /// The next binding of what was deleted, or [`NONE`]; and whether it leads there.
    fn next_binding_of(&self, target: Target) -> (u32, bool) {
        match target {
            Target::Queue(queue) => (self.queues.get(&queue).map_or(NONE, |it| it.incoming), true),
            Target::Exchange(key) => {
                let exchange = self.exchanges.get(key);
                match exchange.outgoing {
                    NONE => (exchange.incoming, true),
                    outgoing => (outgoing, false),
                }
            }
        }
    }

    /// Deletes those of `sources` that are to go with their last binding and have none left, and what follows
    /// from that.
    pub(super) fn auto_delete(&mut self, sources: Vec<ExchangeKey>, change: &mut Change) {
        if self.hold_auto_delete {
            return;
        }
        for key in sources {
            let Some(exchange) = self.exchanges.try_get(key) else { continue };
            let options = &exchange.options;
            if options.auto_delete && exchange.outgoing_count == 0 && exchange.is_live() {
                let (name, durable) = (exchange.name.as_ref().to_owned(), options.durable);
                change.auto_deleted.push(DeletedExchange { name, durable });
                self.take_exchange(key, change);
            }
        }
    }
}
