//! A delivery that was settled, and of whose settling its consumer may be sure, never comes again.
//!
//! Sure until the next crash: once the broker has answered something later on the same channel. Sure
//! for good: once a commit said so, or once a persistent message that was published after that answer
//! was confirmed, because the journal is flushed in order.

use crate::history::{Ending, Event, History, MessageId, Outcome, QueueIndex};
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
}

pub(super) fn check(history: &History) -> Result<(), String> {
    let mut settled = Settled::default();
    let mut published_at = BTreeMap::new();
    for (at, (_, event)) in history.events.iter().enumerate() {
        match event {
            Event::Publish(publish) if publish.persistent => {
                if publish.to.iter().any(|queue| history.plan.queues[*queue].durable) {
                    published_at.insert(publish.message, at);
                }
            }
            Event::Confirm { message, accepted: true } => {
                if let Some(published) = published_at.remove(message) {
                    settled.flushed(published);
                }
            }
            Event::Settle { consumer, queue, message, outcome, transaction } => {
                if *outcome != Outcome::Requeue {
                    let copy = (*queue, *message);
                    match transaction {
                        Some(number) => {
                            settled.in_transaction.entry(*number).or_default().push(copy)
                        }
                        None => settled.sent.entry(*consumer).or_default().push(copy),
                    }
                }
            }
            Event::Synced { consumer } => settled.synced(at, *consumer),
            Event::Transaction { transaction, ending: Ending::Committed } => {
                let copies = settled.in_transaction.remove(transaction).unwrap_or_default();
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

impl Settled {
    fn synced(&mut self, at: usize, consumer: u32) {
        for copy in self.sent.remove(&consumer).unwrap_or_default() {
            self.arrived.push((at, copy));
            self.until_crash.insert(copy);
        }
    }

    /// Something that was published at event `published` is flushed.
    fn flushed(&mut self, published: usize) {
        let count = self.arrived.partition_point(|(at, _)| *at < published);
        self.for_good.extend(self.arrived.drain(..count).map(|(_, copy)| copy));
    }
}
