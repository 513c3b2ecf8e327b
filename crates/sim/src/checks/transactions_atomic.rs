//! A transaction whose outcome its client does not know happened wholly or not at all.
//!
//! Other checks judge committed and rolled-back ones. Judged by what is there after the last
//! restart, since deliveries may be sent before the flush.

use crate::history::{Event, History, MessageId, Publish};
use crate::plan::QueueIndex;
use std::collections::{BTreeMap, BTreeSet};

type Copy = (QueueIndex, MessageId);

#[derive(Default)]
struct Transaction {
    published: Vec<Copy>,
    settled: Vec<Copy>,
    is_asked: bool,
}

/// What the history says up to the event read last.
#[derive(Default)]
struct Seen {
    /// Transactions whose outcome their client does not know.
    transactions: BTreeMap<u32, Transaction>,
    /// Removed by a settle outside transactions.
    removed: BTreeSet<Copy>,
    /// Delivered since the last restart.
    alive: BTreeSet<Copy>,
    /// Delivered since the last restart, and not settled by a transaction since.
    unsettled: BTreeSet<Copy>,
    /// Consumers since the last restart; others get deliveries that were under way before it.
    consumers: BTreeSet<u32>,
    /// Consumers whose deliveries are settled as they go out.
    presettled: BTreeMap<u32, QueueIndex>,
    /// Queues of such consumers that ended, perhaps with deliveries under way.
    spilled: BTreeSet<QueueIndex>,
    is_drained: bool,
}

pub(super) fn check(history: &History) -> Result<(), String> {
    let mut seen = Seen::default();
    for (_, event) in &history.events {
        seen.read(history, event);
    }
    // Messages that another transaction or settle may have removed say nothing.
    let mut taken = std::mem::take(&mut seen.removed);
    for transaction in seen.transactions.values() {
        taken.extend(&transaction.settled);
        let is_spilled = |copy: &&Copy| seen.spilled.contains(&copy.0);
        taken.extend(transaction.published.iter().filter(is_spilled));
    }
    for (number, transaction) in &seen.transactions {
        if seen.is_drained && transaction.is_asked {
            seen.judge(*number, transaction, &taken)?;
        }
    }
    Ok(())
}

impl Seen {
    fn read(&mut self, history: &History, event: &Event) {
        match event {
            Event::Consume(consume) => {
                self.consumers.insert(consume.consumer);
                if consume.presettled {
                    self.presettled.insert(consume.consumer, consume.queue);
                }
            }
            Event::Ended { consumer } => self.spilled.extend(self.presettled.get(consumer)),
            Event::Publish(publish) => self.published(history, publish),
            Event::Committing { transaction } => {
                self.transactions.entry(*transaction).or_default().is_asked = true;
            }
            Event::Transaction { transaction, .. } => {
                let ended = self.transactions.remove(transaction);
                self.removed.extend(ended.into_iter().flat_map(|ended| ended.settled));
            }
            Event::Settle { queue, message, outcome, transaction, .. } => match transaction {
                Some(number) => {
                    self.unsettled.remove(&(*queue, *message));
                    self.transactions.entry(*number).or_default().settled.push((*queue, *message));
                }
                None if !outcome.returns() => {
                    self.removed.insert((*queue, *message));
                }
                None => {}
            },
            Event::Crashed | Event::Closed => {
                self.alive.clear();
                self.unsettled.clear();
                self.consumers.clear();
            }
            Event::Deliver(delivery) => {
                let copy = delivery.message.map(|message| (delivery.queue, message));
                if self.presettled.contains_key(&delivery.consumer) {
                    self.removed.extend(copy);
                }
                if self.consumers.contains(&delivery.consumer) {
                    self.alive.extend(copy);
                    self.unsettled.extend(copy);
                }
            }
            Event::Drained => self.is_drained = true,
            _ => {}
        }
    }

    /// Keeps only publishes that nothing but consumers removes.
    fn published(&mut self, history: &History, publish: &Publish) {
        let Some(number) = publish.transaction.filter(|_| publish.persistent) else { return };
        let safe = |queue: &&QueueIndex| {
            history.plan.queues[**queue].durable && !history.plan.loses(**queue)
        };
        let copies = publish.to.iter().filter(safe).map(|queue| (*queue, publish.message));
        self.transactions.entry(number).or_default().published.extend(copies);
    }

    fn judge(
        &self,
        number: u32,
        transaction: &Transaction,
        taken: &BTreeSet<Copy>,
    ) -> Result<(), String> {
        let Transaction { published, settled, .. } = transaction;
        let is_absent = |copy: &&Copy| !self.alive.contains(copy) && !taken.contains(copy);
        let Some(there) = published.iter().find(|copy| self.alive.contains(copy)) else {
            return Ok(());
        };
        let problem = format!("of transaction {number}, {there:?} is there and");
        if let Some(missing) = published.iter().find(is_absent) {
            return Err(format!("{problem} {missing:?} is not"));
        }
        match settled.iter().find(|copy| self.unsettled.contains(copy)) {
            Some(returned) => Err(format!("{problem} {returned:?} not settled")),
            None => Ok(()),
        }
    }
}
