//! Logs that memory is short, who holds most of it and what follows, and that it no longer is.

use angarium_node::{MemoryNews, Node};

/// Logs what is new.
pub(super) fn look(node: &mut Node) {
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
