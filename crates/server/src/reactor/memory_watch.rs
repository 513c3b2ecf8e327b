//! Has the node take nothing more while the system refuses memory, and logs that memory is short by its
//! account: who holds most of it and what follows.

use super::shard::Shard;
use crate::allocator;
use angarium_node::{MemoryNews, Node};
use std::time::Duration;

/// How often it gives memory back while the system refuses memory.
const GIVE_BACK_INTERVAL: Duration = Duration::from_millis(250);

impl Shard {
    /// Looks at memory once a turn.
    pub(super) fn watch_memory(&mut self) {
        let is_exhausted = allocator::is_exhausted();
        self.node.set_no_memory(self.now, is_exhausted);
        if is_exhausted && self.gives_back_at <= self.now {
            self.gives_back_at = self.now.plus(GIVE_BACK_INTERVAL);
            allocator::give_back();
        }
        tell_shortage(&mut self.node);
    }
}

/// Logs what is new.
fn tell_shortage(node: &mut Node) {
    let Some(news) = node.next_memory_news() else { return };
    let MemoryNews { is_short, held, max, largest, messages } = news;
    let largest_user = largest.as_ref().map(|owner| &*owner.user);
    let largest_user_bytes = largest.as_ref().map(|owner| owner.held);
    if is_short {
        tracing::warn!(
            held_bytes = held,
            max_bytes = max,
            largest_user,
            largest_user_bytes,
            messages_bytes = messages,
            "memory is short: connections and users that hold most are not read from while their messages \
             are unfinished, get no further deliveries, and are refused transactions, declarations, \
             bindings, consumers and subscriptions; others go on (memory-max, `angarium connection list`)"
        );
    } else {
        tracing::info!(held_bytes = held, max_bytes = max, "memory is no longer short");
    }
}
