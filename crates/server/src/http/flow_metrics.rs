//! What metrics show of clients that are too slow, or send too much.

use super::views::Series;
use angarium_node::{Node, SpillLoss};

/// What has happened.
pub(super) fn counters(node: &Node) -> Vec<Series> {
    let (engine, stats, spill) = (node.engine().counters(), node.stats(), node.spill_stats());
    let (_, episodes) = node.slow_consumer_episodes();
    vec![
        ("angarium_direct_published", "Direct messages in.", engine.emitted),
        ("angarium_direct_delivered", "Direct messages out.", engine.heard),
        ("angarium_direct_missed", "Missed by slow clients.", engine.missed),
        ("angarium_direct_undelivered", "Without a subscriber.", engine.unheard),
        ("angarium_slow_consumer_episodes", "Times a client was too slow.", episodes),
        (
            "angarium_slow_consumers_disconnected",
            "Disconnected for it.",
            stats.slow_consumers_disconnected,
        ),
        ("angarium_spill_messages", "Messages spooled for slow clients.", spill.messages),
        ("angarium_spill_failures", "Chunks of them lost by the disk.", spill.failures),
        ("angarium_throttled", "Times a client was read from later.", stats.throttled),
    ]
}

/// Messages that were to wait on the disk and were missed, by why.
pub(super) fn missed(node: &Node) -> Vec<(&'static str, u64)> {
    SpillLoss::ALL.into_iter().map(|loss| (loss.name(), node.spill_missed(loss))).collect()
}

/// How things are.
pub(super) fn gauges(node: &Node) -> Vec<Series> {
    let spill = node.spill_stats();
    let (slow_consumers, _) = node.slow_consumer_episodes();
    vec![
        ("angarium_slow_consumers", "Clients that are too slow now.", slow_consumers),
        ("angarium_spill_slow_consumers", "Clients with spooled messages.", spill.slow_consumers),
        ("angarium_spill_bytes", "Bytes of spooled messages.", spill.bytes),
    ]
}
