//! What becomes of messages that consumers with credit return, and of their drains. Each such consumer is the
//! only one of its queue, as the plan says.

use crate::history::{Event, History, MessageId, Outcome};
use crate::plan::{Client, Plan, QueueIndex};
use std::collections::{BTreeMap, BTreeSet};

/// The queues that a client takes from with credit.
fn queues(plan: &Plan) -> BTreeSet<QueueIndex> {
    let takers = plan.clients.iter().filter_map(|client| match client {
        Client::Amqp10(taker) => Some(taker.queue),
        _ => None,
    });
    takers.collect()
}

/// A message counts as failed at most as often as it was returned as that: releases, ends in good order and
/// lost connections do not count.
pub(super) fn counted_rightly(history: &History) -> Result<(), String> {
    let queues = queues(&history.plan);
    let mut failed: BTreeMap<(QueueIndex, MessageId), u64> = BTreeMap::new();
    for (_, event) in &history.events {
        match event {
            Event::Settle { queue, message, outcome: Outcome::Requeue, .. } => {
                *failed.entry((*queue, *message)).or_default() += 1;
            }
            // From here on another client takes, whose lost connections count.
            Event::Draining => break,
            Event::Deliver(delivery) if queues.contains(&delivery.queue) => {
                let Some(message) = delivery.message else { continue };
                let most = failed.get(&(delivery.queue, message)).copied().unwrap_or(0);
                if delivery.requeues > most {
                    let name = &history.plan.queues[delivery.queue].name;
                    let count = delivery.requeues;
                    return Err(format!(
                        "{message:?} of '{name}' came with {count} failed deliveries of {most}"
                    ));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// What a consumer has returned, as the broker knows, comes again before anything newer of its producer does
/// for the first time. Not judged where the broker may not know yet that an earlier consumer of the queue is
/// gone, which may get it.
pub(super) fn in_place(history: &History) -> Result<(), String> {
    let queues = queues(&history.plan);
    let mut consumers: BTreeMap<u32, QueueIndex> = BTreeMap::new();
    let mut has_remains: BTreeSet<QueueIndex> = BTreeSet::new();
    // By consumer: what it returned, and those of which the broker knows.
    let mut returned: BTreeMap<u32, (BTreeSet<MessageId>, BTreeSet<MessageId>)> = BTreeMap::new();
    for (_, event) in &history.events {
        match event {
            Event::Settle { consumer, queue, message, outcome, .. }
                if outcome.returns() && queues.contains(queue) =>
            {
                returned.entry(*consumer).or_default().0.insert(*message);
            }
            Event::Synced { consumer } => {
                if let Some((told, known)) = returned.get_mut(consumer) {
                    known.append(told);
                }
            }
            Event::Consume(consume) => {
                consumers.insert(consume.consumer, consume.queue);
            }
            Event::Ended { consumer } => {
                returned.remove(consumer);
                has_remains.extend(consumers.get(consumer));
            }
            Event::Crashed | Event::Closed => {
                returned.clear();
                has_remains.clear();
            }
            Event::Deliver(delivery) => {
                let Some((told, known)) = returned.get_mut(&delivery.consumer) else { continue };
                let Some(message) = delivery.message else { continue };
                told.remove(&message);
                known.remove(&message);
                let before = known.range(..message).next_back();
                let before = before.filter(|it| it.producer() == message.producer());
                let is_judged = !delivery.redelivered && !has_remains.contains(&delivery.queue);
                if let Some(before) = before.filter(|_| is_judged) {
                    let name = &history.plan.queues[delivery.queue].name;
                    return Err(format!(
                        "'{name}' delivered {message:?} before {before:?}, returned"
                    ));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// What is known of one queue.
#[derive(Default)]
struct Known {
    delivered: BTreeSet<MessageId>,
    /// Confirmed, and never delivered.
    fresh: BTreeSet<MessageId>,
    /// Those of them at the time of the drain that is under way.
    asked: BTreeSet<MessageId>,
    /// The consumer that is there.
    consumer: Option<u32>,
    /// A consumer may be there of which the broker does not know yet that it is gone.
    has_remains: bool,
}

/// A drain says that nothing is left only when nothing is that was there before it.
pub(super) fn drained_completely(history: &History) -> Result<(), String> {
    let mut queues: BTreeMap<QueueIndex, Known> =
        queues(&history.plan).into_iter().map(|queue| (queue, Known::default())).collect();
    let mut to: BTreeMap<MessageId, QueueIndex> = BTreeMap::new();
    for (_, event) in &history.events {
        match event {
            Event::Publish(publish) => {
                if let [queue] = publish.to[..] {
                    to.insert(publish.message, queue);
                }
            }
            Event::Confirm { message, accepted: true } => {
                let known = to.get(message).and_then(|queue| queues.get_mut(queue));
                if let Some(known) = known.filter(|known| !known.delivered.contains(message)) {
                    known.fresh.insert(*message);
                }
            }
            Event::Deliver(delivery) => {
                let message = delivery.message.unwrap_or_default();
                if let Some(known) = queues.get_mut(&delivery.queue) {
                    known.delivered.insert(message);
                    known.fresh.remove(&message);
                    known.asked.remove(&message);
                }
            }
            Event::Consume(consume) => {
                let known = queues.get_mut(&consume.queue);
                known.into_iter().for_each(|known| known.consumer = Some(consume.consumer));
            }
            Event::Ended { consumer } => {
                let known = queues.values_mut().find(|known| known.consumer == Some(*consumer));
                known.into_iter().for_each(|known| known.has_remains = true);
            }
            Event::Crashed | Event::Closed => queues.values_mut().for_each(|known| {
                known.fresh.clear();
                known.asked.clear();
                known.has_remains = false;
            }),
            Event::Asking { consumer } => {
                let known = queues.values_mut().find(|known| known.consumer == Some(*consumer));
                known.into_iter().for_each(|known| known.asked = known.fresh.clone());
            }
            Event::NothingLeft { consumer } => {
                let found = queues.iter().find(|(_, known)| known.consumer == Some(*consumer));
                let Some((queue, known)) = found.filter(|(_, known)| !known.has_remains) else {
                    continue;
                };
                if let Some(message) = known.asked.first() {
                    let name = &history.plan.queues[*queue].name;
                    return Err(format!("'{name}' was said to have nothing left but {message:?}"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}
