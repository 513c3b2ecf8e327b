//! A queue with `x-expires` exists until that time without use has passed, and is deleted after it.
//!
//! A declaration is a use at some time between request and answer; without an answer, at any time
//! or never. A restart counts as a use.

use crate::history::{Event, History, MessageId};
use crate::plan::QueueIndex;
use angarium_engine::Time;
use std::collections::BTreeMap;
use std::time::Duration;

/// Time within which a running broker deletes an expired queue. A late shard deletes it at its
/// next turn.
const NOTICE: Duration = Duration::from_millis(1);

/// A declaration of a queue: when it was asked for and answered, and how many messages were in it.
#[derive(Clone, Copy)]
struct Declaration {
    asked: Time,
    answered: Time,
    messages: u64,
}

/// What its client knows about a queue.
#[derive(Default)]
struct Lease {
    last: Option<Declaration>,
    /// It holds a message that no consumer takes.
    is_marked: bool,
    /// It may have been used since: the broker was down, or a declaration got no answer.
    was_perhaps_used: bool,
}

pub(super) fn check(history: &History) -> Result<(), String> {
    let mut leases: BTreeMap<QueueIndex, Lease> = BTreeMap::new();
    let mut marks: BTreeMap<MessageId, QueueIndex> = BTreeMap::new();
    let notice = NOTICE + Duration::from_micros(history.plan.shards.late_max);
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
            Event::LeaseUnanswered { queue } => {
                leases.entry(*queue).or_default().was_perhaps_used = true;
            }
            Event::LeaseRenewed { queue, asked, messages } => {
                let lease = leases.entry(*queue).or_default();
                let queue = &history.plan.queues[*queue];
                let expires = Duration::from_millis(queue.expires.unwrap_or(u64::MAX / 2_000));
                let declaration =
                    Declaration { asked: *asked, answered: *now, messages: *messages };
                lease
                    .judge(declaration, expires, notice)
                    .map_err(|what| format!("queue '{}' was {what} its time", queue.name))?;
                *lease = Lease {
                    last: Some(declaration),
                    is_marked: *messages > 0,
                    was_perhaps_used: down_at.is_some_and(|down| down >= *asked),
                };
            }
            _ => {}
        }
    }
    Ok(())
}

impl Lease {
    /// Judges a declaration of a queue that is kept for `expires` without use, and deleted within
    /// `notice` after that.
    fn judge(
        &self,
        now: Declaration,
        expires: Duration,
        notice: Duration,
    ) -> Result<(), &'static str> {
        let Some(last) = self.last else { return Ok(()) };
        if now.messages == 0 && self.is_marked && now.answered < last.asked.plus(expires) {
            return Err("gone before");
        }
        let is_late = now.asked > last.answered.plus(expires + notice);
        if now.messages > 0 && !self.was_perhaps_used && is_late {
            return Err("there after");
        }
        Ok(())
    }
}
