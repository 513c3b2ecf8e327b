//! A delivery whose settle is known to be processed never comes again.
//!
//! Known until the next crash: the broker has answered a later request on the same channel. Known
//! for good: a commit was confirmed, or a stored message published after that answer was, because
//! the journal is flushed in order. (A presettled message is never stored: its confirm says
//! nothing about the journal.) Not while the broker carries out settles over several turns:
//! answers overtake them.
//!
//! A delivery sent before may arrive any time later: only a delivery after the answer to a request
//! sent since then shows that the message was still there.

use crate::history::{Ending, Event, History, MessageId};
use crate::plan::QueueIndex;
use std::collections::{BTreeMap, BTreeSet};

type Copy = (QueueIndex, MessageId);

#[derive(Default)]
struct Settled {
    /// Sent and not known to be processed.
    sent: BTreeMap<u32, Vec<Copy>>,
    in_transaction: BTreeMap<u32, Vec<Copy>>,
    /// Known to be processed, with the event that says so.
    arrived: Vec<(usize, Copy)>,
    until_crash: BTreeSet<Copy>,
    for_good: BTreeSet<Copy>,
    /// The event since which either holds.
    since: BTreeMap<Copy, usize>,
}

pub(super) fn check(history: &History) -> Result<(), String> {
    let mut settled = Settled::default();
    let mut published_at = BTreeMap::new();
    // The events of each consumer's newest request, and of its newest answered one: later deliveries
    // were sent after the broker received that.
    let (mut asked, mut answered) = (BTreeMap::new(), BTreeMap::new());
    let mut in_parts = false;
    for (at, (_, event)) in history.events.iter().enumerate() {
        match event {
            Event::Publish(publish) => {
                let is_stored = publish.to.iter().any(|queue| history.plan.stores(*queue));
                published_at
                    .extend((publish.persistent && is_stored).then_some((publish.message, at)));
            }
            Event::Confirm { message, accepted: true } => {
                if let Some(published) = published_at.remove(message) {
                    settled.flushed(published);
                }
            }
            Event::Settle { outcome, .. } if outcome.returns() => {}
            Event::Settle { consumer, queue, message, transaction, .. } => {
                let copy = (*queue, *message);
                match transaction {
                    Some(number) => settled.in_transaction.entry(*number).or_default().push(copy),
                    None => settled.sent.entry(*consumer).or_default().push(copy),
                }
            }
            Event::Consume(consume) => {
                // Deliveries to it are sent after it was asked for.
                answered.insert(consume.consumer, at);
            }
            Event::Asking { consumer } => {
                asked.insert(*consumer, at);
            }
            Event::SettlesInParts(now) => in_parts = *now,
            Event::Synced { consumer } => {
                if !in_parts {
                    settled.synced(at, *consumer);
                }
                answered.extend(asked.remove_entry(consumer));
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
                let Some(asked) = answered.get(&delivery.consumer) else { continue };
                if let Some(how) = settled.broken_by((delivery.queue, message), *asked) {
                    let name = &history.plan.queues[delivery.queue].name;
                    return Err(format!("{message:?} of '{name}' came {how}"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

impl Settled {
    /// Why a delivery that was sent after event `asked` is wrong.
    fn broken_by(&self, copy: Copy, asked: usize) -> Option<&'static str> {
        match self.since.get(&copy) {
            None => None,
            Some(since) if *since >= asked => None,
            _ if self.for_good.contains(&copy) => Some("after its settling was flushed"),
            _ if self.until_crash.contains(&copy) => Some("again after it was settled"),
            _ => None,
        }
    }

    fn synced(&mut self, at: usize, consumer: u32) {
        for copy in self.sent.remove(&consumer).unwrap_or_default() {
            self.arrived.push((at, copy));
            let is_news = self.until_crash.insert(copy) && !self.for_good.contains(&copy);
            if is_news {
                self.since.insert(copy, at);
            }
        }
    }

    /// The message published at event `published` is flushed.
    fn flushed(&mut self, published: usize) {
        let count = self.arrived.partition_point(|(at, _)| *at < published);
        self.for_good.extend(self.arrived.drain(..count).map(|(_, copy)| copy));
    }
}
