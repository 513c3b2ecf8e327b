//! What waits on a disk for a slow client is missed only where that disk has failed before, where so much
//! waits that the oldest had to go, or where it made room for the journal.

use crate::history::{DISK_FULL, Event, History, SPOOL_FAULTS};
use angarium_engine::SlowConsumerPolicy;

pub(super) fn check(history: &History) -> Result<(), String> {
    let plan = &history.plan;
    if plan.slow_consumer_policy != SlowConsumerPolicy::Spool || plan.spool.chunks_max.is_some() {
        return Ok(());
    }
    for (_, event) in &history.events {
        match event {
            Event::Fault(fault) if SPOOL_FAULTS.contains(fault) || *fault == DISK_FULL => break,
            Event::Hear(hear) if hear.missed > 0 => {
                let (who, missed) = (hear.listener, hear.missed);
                return Err(format!("listener {who} missed {missed} on a disk without faults"));
            }
            _ => {}
        }
    }
    Ok(())
}
