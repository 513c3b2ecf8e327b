//! The broker closes a connection of its own accord only if the client is a slow consumer and the
//! policy is to disconnect it.

use crate::history::{Event, History};
use angarium_engine::SlowConsumerPolicy;

pub(super) fn check(history: &History) -> Result<(), String> {
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
