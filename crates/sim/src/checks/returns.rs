//! What becomes of messages that consumers with credit return, and of their drains. Each such consumer is the
//! only one of its queue, as the plan says. A rolled back transaction returns what it has settled, as failed.

use crate::history::{Delivery, Ending, Event, History, MessageId, Outcome};
use crate::plan::amqp10::Client;
use crate::plan::{Plan, QueueIndex};
use std::collections::{BTreeMap, BTreeSet};

/// The queues that a client takes from with credit.
fn queues(plan: &Plan) -> BTreeSet<QueueIndex> {
    plan.amqp10_clients().filter_map(Client::takes_from).collect()
}

/// What a consumer has settled in transactions that have not ended: by transaction.
#[derive(Default)]
struct InTransactions(BTreeMap<u32, Vec<(u32, MessageId)>>);

impl InTransactions {
    fn settled(&mut self, transaction: u32, consumer: u32, message: MessageId) {
        self.0.entry(transaction).or_default().push((consumer, message));
    }

    fn ended(&mut self, transaction: u32) -> Vec<(u32, MessageId)> {
        self.0.remove(&transaction).unwrap_or_default()
    }

    /// It came again: it has been returned, although its client does not know yet.
    fn came(&mut self, consumer: u32, message: MessageId) {
        for settled in self.0.values_mut() {
            settled.retain(|it| *it != (consumer, message));
        }
    }
}

/// How often deliveries failed, as far as clients can know.
#[derive(Default)]
struct Counts {
    /// Most failed deliveries: what was returned as failed, or settled in a transaction.
    most: BTreeMap<(QueueIndex, MessageId), u64>,
    /// The count of the last delivery, by consumer.
    last: BTreeMap<(u32, MessageId), u64>,
    /// The count of the next delivery to the same consumer, which has returned the message.
    next: BTreeMap<(u32, MessageId), u64>,
    in_transactions: InTransactions,
}

impl Counts {
    fn returned(&mut self, consumer: u32, message: MessageId, is_failed: bool) {
        let key = (consumer, message);
        if let Some(count) = self.last.get(&key) {
            self.next.insert(key, count + u64::from(is_failed));
        }
    }

    fn judge(&mut self, delivery: &Delivery, message: MessageId) -> Result<(), String> {
        let (consumer, count) = (delivery.consumer, delivery.requeues);
        self.in_transactions.came(consumer, message);
        self.last.insert((consumer, message), count);
        let most = self.most.get(&(delivery.queue, message)).copied().unwrap_or(0);
        if count > most {
            return Err(format!("came with {count} failed deliveries of {most}"));
        }
        match self.next.remove(&(consumer, message)) {
            Some(next) if next != count => {
                Err(format!("came with {count} failed deliveries, and {next} failed"))
            }
            _ => Ok(()),
        }
    }
}

/// A message counts as failed as often as it was returned as that, or settled in a transaction that was
/// rolled back: releases, ends in good order and lost connections do not count.
pub(super) fn counted_rightly(history: &History) -> Result<(), String> {
    let queues = queues(&history.plan);
    let mut counts = Counts::default();
    for (_, event) in &history.events {
        match event {
            Event::Settle { consumer, queue, message, outcome, transaction } => {
                if transaction.is_some() || *outcome == Outcome::Requeue {
                    *counts.most.entry((*queue, *message)).or_default() += 1;
                }
                match transaction {
                    Some(number) => counts.in_transactions.settled(*number, *consumer, *message),
                    None if outcome.returns() => {
                        counts.returned(*consumer, *message, *outcome == Outcome::Requeue);
                    }
                    None => {}
                }
            }
            Event::Transaction { transaction, ending } => {
                let settled = counts.in_transactions.ended(*transaction);
                for (consumer, message) in settled.iter().filter(|_| *ending == Ending::RolledBack)
                {
                    counts.returned(*consumer, *message, true);
                }
            }
            // From here on another client takes, whose lost connections count.
            Event::Draining => break,
            Event::Deliver(delivery) if queues.contains(&delivery.queue) => {
                let Some(message) = delivery.message else { continue };
                let name = &history.plan.queues[delivery.queue].name;
                let judged = counts.judge(delivery, message);
                judged.map_err(|what| format!("{message:?} of '{name}' {what}"))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// What one consumer has returned and not got again.
#[derive(Default)]
struct Returned {
    /// Nothing says yet that the broker knows.
    told: BTreeSet<MessageId>,
    /// The broker knows.
    known: BTreeSet<MessageId>,
}

/// What a consumer has returned, as the broker knows, comes again before anything newer of its producer does
/// for the first time. Not judged where the broker may not know yet that an earlier consumer of the queue is
/// gone, which may get it.
pub(super) fn in_place(history: &History) -> Result<(), String> {
    let queues = queues(&history.plan);
    let mut consumers: BTreeMap<u32, QueueIndex> = BTreeMap::new();
    let mut has_remains: BTreeSet<QueueIndex> = BTreeSet::new();
    let mut returned: BTreeMap<u32, Returned> = BTreeMap::new();
    let (mut open, mut undoing) = (InTransactions::default(), InTransactions::default());
    for (_, event) in &history.events {
        match event {
            Event::Settle { consumer, message, transaction: Some(number), .. } => {
                open.settled(*number, *consumer, *message);
            }
            Event::Transaction { transaction, ending } => {
                let settled = open.ended(*transaction);
                if *ending == Ending::RolledBack {
                    undoing.0.insert(*transaction, settled);
                }
            }
            Event::Undone { transaction } => {
                for (consumer, message) in undoing.ended(*transaction) {
                    returned.entry(consumer).or_default().known.insert(message);
                }
            }
            Event::Settle { consumer, queue, message, outcome, .. }
                if outcome.returns() && queues.contains(queue) =>
            {
                returned.entry(*consumer).or_default().told.insert(*message);
            }
            Event::Synced { consumer } => {
                if let Some(Returned { told, known }) = returned.get_mut(consumer) {
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
                let Some(message) = delivery.message else { continue };
                for settled in [&mut open, &mut undoing] {
                    settled.came(delivery.consumer, message);
                }
                let Some(Returned { told, known }) = returned.get_mut(&delivery.consumer) else {
                    continue;
                };
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
    // Messages published since the last restart: the confirm of an older one may arrive after it.
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
            Event::Crashed | Event::Closed => {
                to.clear();
                for known in queues.values_mut() {
                    known.fresh.clear();
                    known.asked.clear();
                    known.has_remains = false;
                }
            }
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
