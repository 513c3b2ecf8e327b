//! Every delivery was published to its queue with that body. Messages that are rolled back,
//! refused, or not to survive a restart are never delivered.

use crate::history::{Delivery, Ending, Event, History, MessageId, Publish};
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

pub(super) fn check(history: &History) -> Result<(), String> {
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
