//! A queue that expires without use is there until then, and gone after.
//!
//! Every declaration is a use, at some time between question and answer; where none came, at whatever
//! time, or never. A restart is one, too.

use crate::history::{Event, History, MessageId, QueueIndex};
use angarium_engine::Time;
use std::collections::BTreeMap;
use std::time::Duration;

/// Time that the broker may take to notice, while it runs; a shard that does not get its turn notices
/// at the next.
const NOTICE: Duration = Duration::from_millis(1);

/// What its client knows of a queue.
#[derive(Default)]
struct Lease {
    /// When it was last declared: asked, answered.
    last: Option<(Time, Time)>,
    /// A message is in it that nobody takes.
    is_marked: bool,
    /// The broker was down since, or it was declared and nobody knows when.
    was_perhaps_used: bool,
}

pub(super) fn check(history: &History) -> Result<(), String> {
    let mut leases: BTreeMap<QueueIndex, Lease> = BTreeMap::new();
    let mut marks: BTreeMap<MessageId, QueueIndex> = BTreeMap::new();
    let notice = NOTICE + Duration::from_micros(history.plan.shards.nap_max);
    let mut down_at = None;
    for (now, event) in &history.events {
        match event {
            Event::Publish(publish) => {
                let expiring = |queue: &&QueueIndex| history.plan.queues[**queue].expires.is_some();
                if let Some(queue) = publish.to.iter().find(expiring) {
                    marks.insert(publish.message, *queue);
                }
            }
            Event::Confirm { message, accepted: true } => {
                if let Some(queue) = marks.get(message) {
                    leases.entry(*queue).or_default().is_marked = true;
                }
            }
            Event::Crashed | Event::Closed => {
                down_at = Some(*now);
                leases.values_mut().for_each(|lease| lease.was_perhaps_used = true);
            }
            Event::Unanswered { queue } => {
                leases.entry(*queue).or_default().was_perhaps_used = true;
            }
            Event::Visited { queue, asked, messages } => {
                let lease = leases.entry(*queue).or_default();
                let queue = &history.plan.queues[*queue];
                let expires = Duration::from_millis(queue.expires.unwrap_or(u64::MAX / 2_000));
                judge(&queue.name, (expires, notice), lease, (*asked, *now), *messages)?;
                *lease = Lease {
                    last: Some((*asked, *now)),
                    is_marked: *messages > 0,
                    was_perhaps_used: down_at.is_some_and(|down| down >= *asked),
                };
            }
            _ => {}
        }
    }
    Ok(())
}

fn judge(
    name: &str,
    (expires, notice): (Duration, Duration),
    lease: &Lease,
    (asked, answered): (Time, Time),
    messages: u64,
) -> Result<(), String> {
    let Some((before, until)) = lease.last else { return Ok(()) };
    if messages == 0 && lease.is_marked && answered < before.plus(expires) {
        return Err(format!("queue '{name}' was gone before its time"));
    }
    if messages > 0 && !lease.was_perhaps_used && asked > until.plus(expires + notice) {
        return Err(format!("queue '{name}' was there after its time"));
    }
    Ok(())
}
