//! A delivery that was settled, and of whose settling its consumer may be sure, never comes again.
//!
//! Sure until the next crash: once the broker has answered something later on the same channel. Sure
//! for good: once a commit said so, or once a persistent message that was published after that answer
//! was confirmed, because the journal is flushed in order. (What was under way on a connection that is
//! cut may arrive late; only a consumer that is answered later still can be sure of what it got.)

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
    let mut last_synced = BTreeMap::new();
    let mut subscribed = BTreeMap::new();
    for (at, (_, event)) in history.events.iter().enumerate() {
        match event {
            Event::Synced { consumer } => last_synced.insert(*consumer, at),
            Event::Subscribe(subscription) => subscribed.insert(subscription.consumer, at),
            _ => None,
        };
    }
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
            Event::Synced { consumer } => settled.synced(at, *consumer),
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
                let is_live = last_synced.get(&delivery.consumer).is_some_and(|last| *last > at);
                let began = subscribed.get(&delivery.consumer).copied().unwrap_or(usize::MAX);
                if !is_live && settled.since.get(&copy).is_none_or(|since| *since >= began) {
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
    publish.persistent && publish.to.iter().any(|queue| history.plan.queues[*queue].durable)
}

impl Settled {
    fn synced(&mut self, at: usize, consumer: u32) {
        for copy in self.sent.remove(&consumer).unwrap_or_default() {
            self.arrived.push((at, copy));
            self.until_crash.insert(copy);
            self.since.entry(copy).or_insert(at);
        }
    }

    /// Something that was published at event `published` is flushed.
    fn flushed(&mut self, published: usize) {
        let count = self.arrived.partition_point(|(at, _)| *at < published);
        self.for_good.extend(self.arrived.drain(..count).map(|(_, copy)| copy));
    }
}
