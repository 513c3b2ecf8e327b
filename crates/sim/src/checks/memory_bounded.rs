//! The node's memory stays within its configured sizes, whatever clients and disk do.

use crate::history::{Event, History};
use angarium_node::UNDERWAY_BYTES_MAX;

/// Bytes of a control answer or of several confirms, which are written even to a full output.
const ANSWER_BYTES: u64 = 64 << 10;
/// Bytes that each queue may read back while memory is full, for a waiting consumer.
const AHEAD_BYTES: u64 = 64 << 10;

pub(super) fn check(history: &History) -> Result<(), String> {
    let sizes = &history.plan.sizes;
    // One message may exceed every limit, else it would never pass; so may one read of input.
    let slack = history.plan.body_max() + ANSWER_BYTES;
    let queues = history.plan.queues.len() as u64;
    let inputs = history.plan.clients.len() as u64;
    // A late home shard gets all bytes under way in one turn.
    let underway = (history.plan.shards.count as u64 - 1) * UNDERWAY_BYTES_MAX;
    let has_direct = history.plan.has_direct_receivers();
    // A consumer of another shard may have three times as much under way as one at home.
    let ways = if history.plan.shards.count > 1 { 3 } else { 1 };
    let queued = sizes.outbox_bytes_max as u64 * ways;
    let unsent = if has_direct { queued.max(sizes.direct_bytes_max() as u64) } else { queued };
    let bounds = [
        ("resident", sizes.resident_bytes_max + slack + queues * AHEAD_BYTES),
        ("unsent", unsent + slack),
        // Messages in memory may become due or dead letters at any moment, and are appended then.
        ("backlog", sizes.backlog_bytes_max + sizes.resident_bytes_max + inputs * slack + underway),
    ];
    for (_, event) in &history.events {
        let Event::Measured(sample) = event else { continue };
        let values = [sample.resident_bytes, sample.unsent_bytes, sample.backlog_bytes];
        for ((what, bound), value) in bounds.iter().zip(values) {
            if value > *bound {
                return Err(format!("{value} bytes of {what} exceed {bound}"));
            }
        }
    }
    Ok(())
}
