//! A transaction whose end its client does not know happened wholly or not at all.
//!
//! (That committed ones are kept, and rolled back ones never seen, other checks say.) Judged by what is
//! there after the last restart, since deliveries may go out before the flush that makes them last.

use crate::history::{Event, History, MessageId, Outcome, QueueIndex};
use std::collections::{BTreeMap, BTreeSet};

type Copy = (QueueIndex, MessageId);

#[derive(Default)]
struct Transaction {
    published: Vec<Copy>,
    settled: Vec<Copy>,
    is_asked: bool,
}

pub(super) fn check(history: &History) -> Result<(), String> {
    let mut transactions: BTreeMap<u32, Transaction> = BTreeMap::new();
    let mut removed = BTreeSet::new();
    let mut alive = BTreeSet::new();
    let mut is_drained = false;
    // Subscriptions since the last restart: others get what was under way before it.
    let mut subscribed = BTreeSet::new();
    let mut presettled = BTreeMap::new();
    let mut spilled: BTreeSet<QueueIndex> = BTreeSet::new();
    for (_, event) in &history.events {
        match event {
            Event::Subscribe(subscription) => {
                subscribed.insert(subscription.consumer);
                if subscription.presettled {
                    presettled.insert(subscription.consumer, subscription.queue);
                }
            }
            Event::Ended { consumer } => spilled.extend(presettled.get(consumer)),
            Event::Publish(publish) => {
                // Only those whose absence can be told: nothing but consumers takes them.
                let Some(number) = publish.transaction.filter(|_| publish.persistent) else {
                    continue;
                };
                let transaction = transactions.entry(number).or_default();
                let safe = |queue: &&QueueIndex| {
                    history.plan.queues[**queue].durable && !history.plan.loses(**queue)
                };
                let copies = publish.to.iter().filter(safe).map(|queue| (*queue, publish.message));
                transaction.published.extend(copies);
            }
            Event::Committing { transaction } => {
                transactions.entry(*transaction).or_default().is_asked = true;
            }
            Event::Transaction { transaction, .. } => {
                transactions.remove(transaction);
            }
            Event::Settle { queue, message, outcome, transaction, .. } => match transaction {
                Some(number) => {
                    transactions.entry(*number).or_default().settled.push((*queue, *message));
                }
                None if *outcome != Outcome::Requeue => {
                    removed.insert((*queue, *message));
                }
                None => {}
            },
            Event::Crashed | Event::Closed => {
                alive.clear();
                subscribed.clear();
            }
            Event::Deliver(delivery) => {
                let copy = delivery.message.map(|message| (delivery.queue, message));
                if presettled.contains_key(&delivery.consumer) {
                    removed.extend(copy);
                }
                if subscribed.contains(&delivery.consumer) {
                    alive.extend(copy);
                }
            }
            Event::Drained => is_drained = true,
            _ => {}
        }
    }
    // What another transaction, or a settle by itself, may have taken says nothing.
    let mut taken = removed;
    for transaction in transactions.values() {
        taken.extend(&transaction.settled);
        let is_spilled = |copy: &&Copy| spilled.contains(&copy.0);
        taken.extend(transaction.published.iter().filter(is_spilled));
    }
    for (number, transaction) in &transactions {
        if is_drained && transaction.is_asked {
            judge(*number, transaction, &alive, &taken)?;
        }
    }
    Ok(())
}

fn judge(
    number: u32,
    transaction: &Transaction,
    alive: &BTreeSet<Copy>,
    taken: &BTreeSet<Copy>,
) -> Result<(), String> {
    let present = transaction.published.iter().find(|copy| alive.contains(copy));
    let absent =
        transaction.published.iter().find(|copy| !alive.contains(copy) && !taken.contains(copy));
    let returned = transaction.settled.iter().find(|copy| alive.contains(copy));
    match (present, absent, returned) {
        (Some(there), Some(missing), _) => {
            Err(format!("of transaction {number}, {there:?} is there and {missing:?} is not"))
        }
        (Some(there), _, Some(returned)) => {
            Err(format!("of transaction {number}, {there:?} is there and {returned:?} not settled"))
        }
        _ => Ok(()),
    }
}
