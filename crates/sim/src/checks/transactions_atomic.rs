//! A transaction whose end its client does not know happened wholly or not at all.
//!
//! (That committed ones are kept, and rolled back ones never seen, other checks say.) Judged by what is
//! there after the last restart, since deliveries may go out before the flush that makes them last.

use crate::history::{Event, History, MessageId, Outcome, QueueIndex};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
struct Transaction {
    published: Vec<(QueueIndex, MessageId)>,
    settled: Vec<(QueueIndex, MessageId)>,
    is_asked: bool,
}

pub(super) fn check(history: &History) -> Result<(), String> {
    let mut transactions: BTreeMap<u32, Transaction> = BTreeMap::new();
    let mut removed = BTreeSet::new();
    let mut alive = BTreeSet::new();
    let mut is_drained = false;
    for (_, event) in &history.events {
        match event {
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
            Event::Crashed | Event::Closed => alive.clear(),
            Event::Deliver(delivery) => {
                alive.extend(delivery.message.map(|message| (delivery.queue, message)));
            }
            Event::Drained => is_drained = true,
            _ => {}
        }
    }
    // What another transaction, or a settle by itself, may have taken says nothing.
    let mut taken = removed;
    for transaction in transactions.values() {
        taken.extend(&transaction.settled);
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
    alive: &BTreeSet<(QueueIndex, MessageId)>,
    taken: &BTreeSet<(QueueIndex, MessageId)>,
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
