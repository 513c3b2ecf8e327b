//! How the broker treats its clients, its memory and its spill.

use crate::history::{DISK_FULL, Event, History, SPILL_FAULTS};
use angarium_engine::SlowConsumerPolicy;
use angarium_node::UNDERWAY_BYTES_MAX;

/// Bytes of a control answer or of several confirms, which are written even to a full output.
const ANSWER_BYTES: u64 = 64 << 10;
/// Bytes that each queue may read back while memory is full, for a waiting consumer.
const AHEAD_BYTES: u64 = 64 << 10;
/// The node shuts down, or an operator closes the connection (spec 1.8, connection-forced).
const CONNECTION_FORCED: u16 = 320;

/// The node's memory stays within its configured sizes, whatever clients and disk do.
pub(super) fn memory_bounded(history: &History) -> Result<(), String> {
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

/// Clients are only refused where the plan lets them collide or the disk failed, and never for
/// breaking the protocol.
pub(super) fn refused_rightly(history: &History) -> Result<(), String> {
    let mut has_failed = false;
    for (_, event) in &history.events {
        match event {
            Event::Fault(_) => has_failed = true,
            Event::ErrorReported { text, .. } => {
                return Err(format!("a client got an error: {text}"));
            }
            Event::Refused { code: CONNECTION_FORCED, .. } => {}
            Event::Refused { code, text } => {
                // 4xx are soft errors: the request cannot be met. 5xx are errors of client or
                // broker.
                let is_soft = (400..500).contains(code) || (*code == 506 && has_failed);
                if !is_soft || !(history.plan.may_refuse || has_failed) {
                    return Err(format!("a client was refused: {code} {text}"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The broker closes a connection of its own accord only if the client is a slow consumer and the
/// policy is to disconnect it.
pub(super) fn only_slow_consumers_closed(history: &History) -> Result<(), String> {
    let plan = &history.plan;
    let may_go = plan.slow_consumer_policy == SlowConsumerPolicy::Disconnect && plan.can_be_slow();
    for (_, event) in &history.events {
        let Event::Dropped { client, why } = event else { continue };
        if !may_go || !why.starts_with("slow consumer") {
            return Err(format!("client {client} was dropped: {why}"));
        }
    }
    Ok(())
}

/// Spilled messages are lost only after a fault of the spill disk, above the limit of the spill,
/// or where the spill made room for the journal.
pub(super) fn spill_kept(history: &History) -> Result<(), String> {
    let plan = &history.plan;
    if plan.slow_consumer_policy != SlowConsumerPolicy::Spool || plan.spill.chunks_max.is_some() {
        return Ok(());
    }
    for (_, event) in &history.events {
        match event {
            Event::Fault(fault) if SPILL_FAULTS.contains(fault) || *fault == DISK_FULL => break,
            Event::Receive(direct) if direct.missed > 0 => {
                let (who, missed) = (direct.subscription, direct.missed);
                return Err(format!("subscription {who} missed {missed} on a disk without faults"));
            }
            _ => {}
        }
    }
    Ok(())
}
