//! Bindings that stay and lead nowhere for the time being.

use super::bindings::{List, Target, Terms};
use super::{QueueKey, Router};
use crate::{Binding, ExchangeKind};

impl Router {
    /// The bindings that lead to a queue, where all come from topic exchanges and there are at most `most`.
    pub(crate) fn topic_bindings_to(&self, queue: QueueKey, most: usize) -> Option<Vec<Binding>> {
        let mut bindings = Vec::new();
        for view in self.bindings_to(queue) {
            let is_topic =
                self.exchange(view.source).is_ok_and(|it| it.kind == ExchangeKind::Topic);
            if !is_topic || bindings.len() == most {
                return None;
            }
            bindings.push(view.to_binding());
        }
        Some(bindings)
    }

    /// Whether a binding of a topic exchange leads to a queue that is one of `count` or more with that key.
    pub(crate) fn is_shared(&self, queue: QueueKey, binding: &Binding, count: usize) -> bool {
        self.pattern_binding(queue, binding).is_some_and(|id| {
            !self.bindings.get(id).is_suspended && self.bindings.is_among(List::Leaf, id, count)
        })
    }

    /// Suspends a binding of a topic exchange that leads to a queue, or has it lead there again.
    pub(crate) fn suspend(&mut self, queue: QueueKey, binding: &Binding, is_suspended: bool) {
        let Some(id) = self.pattern_binding(queue, binding) else { return };
        if self.bindings.get(id).is_suspended != is_suspended {
            self.bindings.get_mut(id).is_suspended = is_suspended;
            self.relink_pattern(id, !is_suspended);
            self.generation += 1;
        }
    }

    fn pattern_binding(&self, queue: QueueKey, binding: &Binding) -> Option<u32> {
        let source = self.exchanges.find(&binding.source)?;
        self.exchanges.get(source).patterns.as_ref()?;
        self.bindings.find(source, Target::Queue(queue), &binding.key, &Terms::of(binding))
    }
}
