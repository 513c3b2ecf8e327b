//! A delivery that was settled, and of whose settling its consumer may be sure, never comes again.
//!
//! Sure until the next crash: once the broker has answered something later on the same channel. Sure
//! for good: once a commit said so, or once a message that was published after that answer and had to
//! be stored was confirmed, because the journal is flushed in order. (A message that a consumer took
//! for settled as it came is never stored: its confirm says nothing about the journal.) Not while the
//! broker settles many a part in each turn: answers pass them.
//!
//! What had been sent before may arrive late, however much later: only what a consumer gets after an
//! answer to something that it asked since then shows that the message was there still.

use crate::history::{Ending, Event, History, MessageId, Outcome, Publish, QueueIndex};
use std::collections::{BTreeMap, BTreeSet};

type Copy = (QueueIndex, MessageId);

#[derive(Default)]
struct Settled {
    /// Sent, and not known to have arrived.
    sent: BTreeMap<u32, Vec<Copy>>,
    in_transaction: BTreeMap<u32, Vec<Copy>>,
    /// Known to have arrived, with the event that says so.
    arrived: Vec<(usize, Copy)>,
    until_crash: BTreeSet<Copy>,
    for_good: BTreeSet<Copy>,
    /// The event since which either is so.
    since: BTreeMap<Copy, usize>,
}

pub(super) fn check(history: &History) -> Result<(), String> {
    let mut settled = Settled::default();
    let mut published_at = BTreeMap::new();
    let mut latest = Latest::default();
    let mut in_parts = false;
    for (at, (_, event)) in history.events.iter().enumerate() {
        match event {
            Event::Publish(publish) if is_lasting(history, publish) => {
                published_at.insert(publish.message, at);
            }
            Event::Confirm { message, accepted: true } => {
                if let Some(published) = published_at.remove(message) {
                    settled.flushed(published);
                }
            }
            Event::Settle { outcome: Outcome::Requeue, .. } => {}
            Event::Settle { consumer, queue, message, transaction, .. } => {
                let copy = (*queue, *message);
                match transaction {
                    Some(number) => settled.in_transaction.entry(*number).or_default().push(copy),
                    None => settled.sent.entry(*consumer).or_default().push(copy),
                }
            }
            Event::Subscribe(subscription) => {
                // Nothing comes to it that was sent before it was asked for.
                latest.answered.insert(subscription.consumer, at);
            }
            Event::Asking { consumer } => {
                latest.asked.insert(*consumer, at);
            }
            Event::SettlesInParts(now) => in_parts = *now,
            Event::Synced { consumer } => {
                if !in_parts {
                    settled.synced(at, *consumer);
                }
                latest.answered(*consumer);
            }
            Event::Transaction { transaction, ending: Ending::Committed } => {
                let copies = settled.in_transaction.remove(transaction).unwrap_or_default();
                settled.since.extend(copies.iter().map(|copy| (*copy, at)));
                settled.for_good.extend(copies);
            }
            Event::Crashed => {
                settled.until_crash.clear();
                settled.arrived.clear();
                settled.sent.clear();
            }
            Event::Deliver(delivery) => {
                let Some(message) = delivery.message else { continue };
                let copy = (delivery.queue, message);
                let Some(asked) = latest.answered.get(&delivery.consumer) else { continue };
                if settled.since.get(&copy).is_none_or(|since| since >= asked) {
                    continue;
                }
                let name = &history.plan.queues[delivery.queue].name;
                if settled.for_good.contains(&copy) {
                    return Err(format!(
                        "{message:?} of '{name}' came after its settling was flushed"
                    ));
                }
                if settled.until_crash.contains(&copy) {
                    return Err(format!("{message:?} of '{name}' came again after it was settled"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn is_lasting(history: &History, publish: &Publish) -> bool {
    publish.persistent && publish.to.iter().any(|queue| history.plan.stores(*queue))
}

/// Of each consumer, the events at which it asked something.
#[derive(Default)]
struct Latest {
    asked: BTreeMap<u32, usize>,
    /// The newest question that was answered: what comes now was sent after the broker had got it.
    answered: BTreeMap<u32, usize>,
}

impl Latest {
    fn answered(&mut self, consumer: u32) {
        if let Some(asked) = self.asked.remove(&consumer) {
            self.answered.insert(consumer, asked);
        }
    }
}

impl Settled {
    fn synced(&mut self, at: usize, consumer: u32) {
        for copy in self.sent.remove(&consumer).unwrap_or_default() {
            self.arrived.push((at, copy));
            let is_news = self.until_crash.insert(copy) && !self.for_good.contains(&copy);
            if is_news {
                self.since.insert(copy, at);
            }
        }
    }

    /// Something that was published at event `published` is flushed.
    fn flushed(&mut self, published: usize) {
        let count = self.arrived.partition_point(|(at, _)| *at < published);
        self.for_good.extend(self.arrived.drain(..count).map(|(_, copy)| copy));
    }
}
