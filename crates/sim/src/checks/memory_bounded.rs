//! What the node holds in memory stays within the sizes it was given, whatever clients and disk do.

use crate::history::{Event, History};
use crate::plan::Role;
use angarium_node::UNDERWAY_BYTES_MAX;

/// A control answer, or a batch of confirms, that may follow on a full outlet.
const ANSWER_BYTES: u64 = 64 << 10;
/// What each queue may read while memory is full because somebody waits for it.
const AHEAD_BYTES: u64 = 64 << 10;

pub(super) fn check(history: &History) -> Result<(), String> {
    let sizes = &history.plan.sizes;
    // One message passes every limit, else it would never pass; one read of input may, too.
    let slack = history.plan.body_max() + ANSWER_BYTES;
    let queues = history.plan.queues.len() as u64;
    let inputs = history.plan.clients.len() as u64;
    // Home gets all of that at once after a late turn.
    let underway = (history.plan.shards.count as u64 - 1) * UNDERWAY_BYTES_MAX;
    let is_direct = |role: &Role| matches!(role, Role::Requester(_) | Role::Nats(_));
    let has_direct = history.plan.roles().any(is_direct);
    let unsent = if has_direct { sizes.direct_bytes_max() } else { sizes.outbox_bytes_max };
    let unsent = unsent as u64;
    let bounds = [
        ("resident", sizes.resident_bytes_max + slack + queues * AHEAD_BYTES),
        ("outlet", unsent + slack),
        // What is in memory may become dead letters, or due, at any moment, and is appended then.
        ("backlog", sizes.backlog_bytes_max + sizes.resident_bytes_max + inputs * slack + underway),
    ];
    for (_, event) in &history.events {
        let Event::Measured(sample) = event else { continue };
        let values = [sample.resident_bytes, sample.outlet_bytes, sample.backlog_bytes];
        for ((what, bound), value) in bounds.iter().zip(values) {
            if value > *bound {
                return Err(format!("{value} bytes of {what} exceed {bound}"));
            }
        }
    }
    Ok(())
}
