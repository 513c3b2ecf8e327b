//! What consumers get from queues: promises about each delivery.

use crate::history::{Consume, Delivery, Ending, Event, History, MessageId, Publish};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
struct Known<'a> {
    publishes: BTreeMap<MessageId, (usize, &'a Publish)>,
    /// Transactions whose commit was requested.
    committing: BTreeSet<u32>,
    rolled_back: BTreeSet<u32>,
    refused: BTreeSet<MessageId>,
    last_restart: usize,
    /// When each consumer started: one from before a restart gets deliveries that were under way.
    consumers: BTreeMap<u32, usize>,
    /// A refusal may mean that the disk failed, after which the message may exist or not.
    has_failed: bool,
}

/// Every delivery was published to its queue with that body. Messages that are rolled back,
/// refused, or not to survive a restart are never delivered.
pub(super) fn nothing_invented(history: &History) -> Result<(), String> {
    let mut known = Known::default();
    for (at, (_, event)) in history.events.iter().enumerate() {
        match event {
            Event::Publish(publish) => {
                known.publishes.insert(publish.message, (at, publish));
            }
            Event::Committing { transaction } => {
                known.committing.insert(*transaction);
            }
            Event::Transaction { transaction, ending: Ending::RolledBack } => {
                known.rolled_back.insert(*transaction);
            }
            Event::Confirm { message, accepted: false } => {
                known.refused.insert(*message);
            }
            Event::Consume(consume) => {
                known.consumers.insert(consume.consumer, at);
            }
            Event::Crashed | Event::Closed => known.last_restart = at,
            Event::Fault(_) => known.has_failed = true,
            Event::Deliver(delivery) => check_delivery(history, &known, delivery)?,
            _ => {}
        }
    }
    Ok(())
}

fn check_delivery(history: &History, known: &Known<'_>, delivery: &Delivery) -> Result<(), String> {
    let name = &history.plan.queues[delivery.queue].name;
    let Some(message) = delivery.message else {
        return Err(format!("queue '{name}' delivered a body that nobody published"));
    };
    let Some((at, publish)) = known.publishes.get(&message) else {
        return Err(format!("queue '{name}' delivered {message:?} that nobody published"));
    };
    let origin =
        publish.to.iter().find(|queue| history.plan.reach(**queue).contains(&delivery.queue));
    let Some(origin) = origin else {
        return Err(format!("{message:?} was not published to queue '{name}'"));
    };
    let survives = publish.persistent && history.plan.queues[*origin].durable;
    let is_new = known.consumers.get(&delivery.consumer).is_none_or(|at| *at > known.last_restart);
    if !survives && is_new && *at < known.last_restart {
        return Err(format!("{message:?} in '{name}' was not to survive a restart, and did"));
    }
    if let Some(transaction) = publish.transaction
        && (!known.committing.contains(&transaction) || known.rolled_back.contains(&transaction))
    {
        return Err(format!("{message:?} was delivered and its transaction not committed"));
    }
    let is_only_copy = publish.to.len() == 1 && *origin == delivery.queue;
    if is_only_copy && !known.has_failed && known.refused.contains(&message) {
        return Err(format!("{message:?} was refused, and delivered"));
    }
    Ok(())
}

/// Messages of one producer come out of one queue in the order in which they went in.
///
/// While clients come and go, only deliveries not marked as redelivered are judged. During the
/// drain at the end each queue has a single consumer, and all deliveries must be in order.
pub(super) fn order_kept(history: &History) -> Result<(), String> {
    let plan = &history.plan;
    let mut publishes: BTreeMap<MessageId, &Publish> = BTreeMap::new();
    // The last message of each (consumer, producer, priority): one consumer has one queue.
    let mut newest: BTreeMap<(u32, u32, u8), MessageId> = BTreeMap::new();
    let mut is_draining = false;
    for (_, event) in &history.events {
        match event {
            Event::Publish(publish) => {
                publishes.insert(publish.message, publish);
            }
            Event::Draining => is_draining = true,
            Event::Deliver(delivery) => {
                let Some(message) = delivery.message else { continue };
                let Some(publish) = publishes.get(&message) else { continue };
                if publish.held_until.is_some() || plan.is_dead_letter_target(delivery.queue) {
                    continue;
                }
                if delivery.redelivered && !is_draining {
                    continue;
                }
                let queue = &plan.queues[delivery.queue];
                let priority = queue.priority_max.map_or(0, |max| max.min(publish.priority));
                let key = (delivery.consumer, message.producer(), priority);
                if let Some(before) = newest.insert(key, message).filter(|before| *before > message)
                {
                    let name = &queue.name;
                    return Err(format!("queue '{name}' delivered {before:?} before {message:?}"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Of all deliveries of one message from one queue, at most one is not marked as redelivered.
///
/// The unmarked one need not arrive first: it may have been under way on a connection that stalled.
pub(super) fn no_unmarked_duplicate(history: &History) -> Result<(), String> {
    let mut unmarked = BTreeSet::new();
    let mut crashes = 0;
    let mut epochs = BTreeMap::new();
    for (_, event) in &history.events {
        match event {
            Event::Crashed => crashes += 1,
            Event::Consume(consume) => {
                epochs.insert(consume.consumer, crashes);
            }
            Event::Deliver(delivery) if !delivery.redelivered => {
                // A crash undoes a move into a dead-letter queue that was not flushed; repeated,
                // it enqueues a new message.
                let is_target = history.plan.is_dead_letter_target(delivery.queue);
                let epoch = epochs.get(&delivery.consumer).copied().filter(|_| is_target);
                if !unmarked.insert((delivery.queue, delivery.message, epoch)) {
                    let name = &history.plan.queues[delivery.queue].name;
                    let message = delivery.message;
                    return Err(format!("{message:?} came twice from '{name}', unmarked"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// No consumer has more unsettled deliveries, or bytes of them, than it gave credit for.
///
/// Judged where deliveries arrive: the client does not count deliveries it has settled, even if
/// the broker does not know yet, so it never counts more than the broker did.
pub(super) fn credit_respected(history: &History) -> Result<(), String> {
    let mut consumers: BTreeMap<u32, (&Consume, BTreeMap<MessageId, u64>)> = BTreeMap::new();
    for (_, event) in &history.events {
        match event {
            Event::Consume(consume) if !consume.presettled => {
                consumers.insert(consume.consumer, (consume, BTreeMap::new()));
            }
            Event::Settle { consumer, message, .. } => {
                if let Some((_, unsettled)) = consumers.get_mut(consumer) {
                    unsettled.remove(message);
                }
            }
            Event::Ended { consumer } => {
                consumers.remove(consumer);
            }
            Event::Deliver(delivery) => {
                let Some((consume, unsettled)) = consumers.get_mut(&delivery.consumer) else {
                    continue;
                };
                let Some(message) = delivery.message else { continue };
                let consumer = delivery.consumer;
                let sum = unsettled.values().sum::<u64>() + delivery.bytes;
                let limit = consume.bytes_max;
                if limit > 0 && !unsettled.is_empty() && sum > limit {
                    return Err(format!("consumer {consumer} got {sum} of {limit} bytes"));
                }
                unsettled.insert(message, delivery.bytes);
                let limit = consume.messages_max;
                if limit > 0 && unsettled.len() as u64 > limit {
                    return Err(format!("consumer {consumer} got more than {limit} messages"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}
