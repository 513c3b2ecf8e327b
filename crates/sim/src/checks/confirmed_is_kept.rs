//! A confirmed message stays until a consumer has settled it, and queues hold only what is routed
//! to them.
//!
//! A direct message of a NATS client, which gets no confirms, stays in the queues it is routed to
//! as long as the node runs and the disk is sound.

use crate::history::{DISK_FULL, Ending, Event, History, MessageId, Outcome, Publish};
use crate::plan::QueueIndex;
use std::collections::{BTreeMap, BTreeSet};

/// What the history of a whole run says.
#[derive(Default)]
struct Ledger<'a> {
    /// Publishes with the index of their event.
    publishes: BTreeMap<MessageId, (usize, &'a Publish)>,
    confirmed: BTreeSet<MessageId>,
    /// Direct messages that the node is known to have processed while all queues existed.
    routed: BTreeSet<MessageId>,
    /// Messages published while all queues existed.
    had_queues: BTreeSet<MessageId>,
    /// Messages that a consumer may have settled, or that were delivered at the end.
    accounted: BTreeSet<(QueueIndex, MessageId)>,
    /// Queues whose presettled deliveries may have got lost on their way.
    spilled: BTreeSet<QueueIndex>,
    last_restart: usize,
    /// The disk was full once. A transient message that becomes a dead letter then, and for which
    /// memory has no room, is dropped rather than kept beyond the limits.
    was_full: bool,
    /// The disk failed in some way.
    has_failed: bool,
    is_drained: bool,
}

pub(super) fn check(history: &History) -> Result<(), String> {
    let ledger = ledger(history)?;
    if !ledger.is_drained {
        return Ok(());
    }
    for message in ledger.confirmed.union(&ledger.routed) {
        let Some((at, publish)) = ledger.publishes.get(message) else { continue };
        for queue in &publish.to {
            if is_expected(history, &ledger, *at, publish, *queue) {
                let reach = history.plan.reach(*queue);
                if !reach.iter().any(|queue| ledger.accounted.contains(&(*queue, *message))) {
                    let name = &history.plan.queues[*queue].name;
                    let is_confirmed = ledger.confirmed.contains(message);
                    let how = if is_confirmed { "confirmed" } else { "routed" };
                    return Err(format!("{message:?} was {how} and is not in queue '{name}'"));
                }
            }
        }
    }
    Ok(())
}

/// Whether only a consumer may have removed the message from the queue.
fn is_expected(
    history: &History,
    ledger: &Ledger<'_>,
    published_at: usize,
    publish: &Publish,
    queue: QueueIndex,
) -> bool {
    let plan = &history.plan;
    let is_confirmed = ledger.confirmed.contains(&publish.message);
    let survives = is_confirmed && publish.persistent && plan.queues[queue].durable;
    let expires = publish.expires && plan.queues[queue].dead_letters_to.is_none();
    let may_drop = ledger.was_full && !survives && plan.queues[queue].dead_letters_to.is_some();
    !plan.loses(queue)
        && !expires
        && !may_drop
        && (is_confirmed || !ledger.has_failed)
        && (survives || ledger.last_restart < published_at)
        && !plan.reach(queue).iter().any(|queue| ledger.spilled.contains(queue))
}

fn ledger(history: &History) -> Result<Ledger<'_>, String> {
    let mut ledger = Ledger::default();
    let mut committed = BTreeMap::new();
    let mut presettled = BTreeMap::new();
    let mut rolled_back = BTreeSet::new();
    let mut is_draining = false;
    let mut has_queues = false;
    for (_, event) in &history.events {
        if let Event::Transaction { transaction, ending: Ending::RolledBack } = event {
            rolled_back.insert(*transaction);
        }
    }
    for (at, (_, event)) in history.events.iter().enumerate() {
        match event {
            Event::Publish(publish) => {
                ledger.publishes.insert(publish.message, (at, publish));
                ledger.had_queues.extend(has_queues.then_some(publish.message));
                if let Some(transaction) = publish.transaction {
                    committed.entry(transaction).or_insert_with(Vec::new).push(publish.message);
                }
            }
            Event::Confirm { message, accepted: true } => {
                ledger.confirmed.insert(*message);
                // A client that gets a confirm has declared all queues before. The confirm of a
                // message from before a restart may arrive after it.
                let published = ledger.publishes.get(message);
                has_queues |= published.is_some_and(|(at, _)| *at >= ledger.last_restart);
            }
            Event::Flushed { message } => {
                let of_publisher = MessageId::new(message.producer(), 0)..=*message;
                ledger.routed.extend(ledger.had_queues.range(of_publisher));
            }
            Event::Return { message } => check_return(history, &ledger, *message)?,
            Event::Transaction { transaction, ending: Ending::Committed } => {
                ledger.confirmed.extend(committed.remove(transaction).unwrap_or_default());
            }
            Event::Consume(consume) if consume.presettled => {
                presettled.insert(consume.consumer, consume.queue);
            }
            Event::Ended { consumer } => ledger.spilled.extend(presettled.get(consumer)),
            Event::Deliver(delivery) => {
                let is_gone = is_draining || presettled.contains_key(&delivery.consumer);
                if let (true, Some(message)) = (is_gone, delivery.message) {
                    ledger.accounted.insert((delivery.queue, message));
                }
            }
            Event::Settle { queue, message, outcome, transaction, .. } => {
                let is_undone = transaction.is_some_and(|number| rolled_back.contains(&number));
                let moves = *outcome == Outcome::Discard
                    && history.plan.queues[*queue].dead_letters_to.is_some();
                if !outcome.returns() && !is_undone && !moves {
                    ledger.accounted.insert((*queue, *message));
                }
            }
            Event::Crashed | Event::Closed => {
                ledger.last_restart = at;
                has_queues = false;
            }
            Event::Fault(fault) => {
                ledger.has_failed = true;
                ledger.was_full |= *fault == DISK_FULL;
            }
            Event::Draining => is_draining = true,
            Event::Drained => ledger.is_drained = true,
            _ => {}
        }
    }
    Ok(ledger)
}

/// A message is only returned where it is routed to no queue.
fn check_return(history: &History, ledger: &Ledger<'_>, message: MessageId) -> Result<(), String> {
    let Some((_, publish)) = ledger.publishes.get(&message) else {
        return Err(format!("{message:?} was returned and never published"));
    };
    match publish.to.iter().find(|queue| !history.plan.queues[**queue].lossy) {
        Some(queue) => Err(format!(
            "{message:?} was returned as unroutable although queue '{}' takes it",
            history.plan.queues[*queue].name
        )),
        None => Ok(()),
    }
}
