//! A message that was delivered before is marked as redelivered when it comes again.

use crate::history::{Event, History};
use std::collections::BTreeSet;

pub(super) fn check(history: &History) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for (_, event) in &history.events {
        match event {
            Event::Deliver(delivery) => {
                let is_again = !seen.insert((delivery.queue, delivery.message));
                if is_again && !delivery.redelivered {
                    let name = &history.plan.queues[delivery.queue].name;
                    let message = delivery.message;
                    return Err(format!("{message:?} came twice from '{name}', unmarked"));
                }
            }
            // A move into a dead-letter queue that was not flushed is undone by a crash; made again, it
            // puts a new message there.
            Event::Crashed => seen.retain(|(queue, _)| !history.plan.is_dead_letter_target(*queue)),
            _ => {}
        }
    }
    Ok(())
}
