//! Spilled messages are lost only after a fault of the spill disk, above the limit of the spill,
//! or where the spill made room for the journal.

use crate::history::{DISK_FULL, Event, History, SPILL_FAULTS};
use angarium_engine::SlowConsumerPolicy;

pub(super) fn check(history: &History) -> Result<(), String> {
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
