//! What clients are shown that browse: each message once and in order, all of them by the end, and none is
//! taken or changed by it.

use crate::history::{Event, History, MessageId, Publish, Sight};
use crate::plan::QueueIndex;
use std::collections::{BTreeMap, BTreeSet};

/// One pass through a queue.
#[derive(Default)]
struct Browse {
    queue: QueueIndex,
    /// The event with which it began.
    began: usize,
    seen: BTreeSet<MessageId>,
    /// The last message of each producer.
    newest: BTreeMap<u32, MessageId>,
    /// What is to be shown by the end of the drain that is under way.
    wanted: Vec<MessageId>,
}

/// What the history says up to the event read last.
#[derive(Default)]
struct Known<'a> {
    publishes: BTreeMap<MessageId, (usize, &'a Publish)>,
    /// Transactions whose commit was requested.
    committing: BTreeSet<u32>,
    last_restart: usize,
    /// Confirmed messages that no consumer has got, in queues without a consumer.
    waiting: BTreeMap<QueueIndex, BTreeSet<MessageId>>,
}

/// A browse shows what was published to its queue, each message once, each producer's in order, and by its
/// end all that was confirmed before the drain which ended it.
pub(super) fn shown_rightly(history: &History) -> Result<(), String> {
    let mut known = Known::default();
    let mut browses: BTreeMap<u32, Browse> = BTreeMap::new();
    for (at, (_, event)) in history.events.iter().enumerate() {
        match event {
            Event::Publish(publish) => {
                known.publishes.insert(publish.message, (at, publish));
            }
            Event::Committing { transaction } => {
                known.committing.insert(*transaction);
            }
            Event::Confirm { message, accepted: true } => known.confirmed(history, *message),
            Event::Crashed | Event::Closed => known.restarted(history, at),
            Event::Draining => break,
            Event::Browse { browse, queue } => {
                let begun = Browse { queue: *queue, began: at, ..Browse::default() };
                browses.insert(*browse, begun);
            }
            Event::BrowseAsks { browse } => {
                let Some(browse) = browses.get_mut(browse) else { continue };
                let waiting = known.waiting.get(&browse.queue).into_iter().flatten();
                browse.wanted = waiting.copied().collect();
            }
            Event::Saw(sight) => {
                let Some(browse) = browses.get_mut(&sight.browse) else { continue };
                let name = &history.plan.queues[browse.queue].name;
                let judged = known.judge(history, browse, sight);
                judged.map_err(|what| format!("a browser of '{name}' was shown {what}"))?;
            }
            Event::Browsed { browse } => {
                let Some(browse) = browses.get(browse) else { continue };
                let is_missing = |message: &&MessageId| !browse.seen.contains(message);
                if let Some(message) = browse.wanted.iter().find(is_missing) {
                    let name = &history.plan.queues[browse.queue].name;
                    return Err(format!("a browser of '{name}' was shown all but {message:?}"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

impl Known<'_> {
    fn confirmed(&mut self, history: &History, message: MessageId) {
        let Some((at, publish)) = self.publishes.get(&message) else { return };
        // The confirm of a message from before a restart may arrive after it.
        if *at < self.last_restart && !publish.persistent {
            return;
        }
        for queue in publish.to.iter().filter(|queue| !history.plan.has_consumer(**queue)) {
            self.waiting.entry(*queue).or_default().insert(message);
        }
    }

    fn restarted(&mut self, history: &History, at: usize) {
        self.last_restart = at;
        let publishes = &self.publishes;
        let is_persistent = |message: &MessageId| {
            publishes.get(message).is_some_and(|(_, publish)| publish.persistent)
        };
        for (queue, waiting) in &mut self.waiting {
            let is_durable = history.plan.queues[*queue].durable;
            waiting.retain(|message| is_durable && is_persistent(message));
        }
    }

    fn judge(&self, history: &History, browse: &mut Browse, sight: &Sight) -> Result<(), String> {
        let message = sight.message.ok_or("a body that nobody published")?;
        let published = self.publishes.get(&message);
        let (at, publish) = published.ok_or(format!("{message:?}, which nobody published"))?;
        if !publish.to.contains(&browse.queue) {
            return Err(format!("{message:?}, which was published to another queue"));
        }
        let survives = publish.persistent && history.plan.queues[browse.queue].durable;
        if !survives && *at < self.last_restart && browse.began > self.last_restart {
            return Err(format!("{message:?}, which was not to survive a restart"));
        }
        if publish.transaction.is_some_and(|number| !self.committing.contains(&number)) {
            return Err(format!("{message:?}, whose transaction is not committed"));
        }
        if !browse.seen.insert(message) {
            return Err(format!("{message:?} twice"));
        }
        // What was there before a restart may be marked: it may have been delivered.
        if sight.is_marked && *at >= self.last_restart && !history.plan.has_consumer(browse.queue) {
            return Err(format!("{message:?} marked as delivered before"));
        }
        let newest = browse.newest.entry(message.producer()).or_insert(message);
        if *newest > message {
            return Err(format!("{newest:?} before {message:?}"));
        }
        *newest = message;
        Ok(())
    }
}

/// Browsing takes nothing and leaves no mark: what no consumer got while clients worked comes at the end as
/// it went in. (That all of it comes is part of "confirmed is kept".)
pub(super) fn untouched(history: &History) -> Result<(), String> {
    let plan = &history.plan;
    let shown = plan.amqp10_clients().filter_map(|client| match client {
        crate::plan::amqp10::Client::Browser(browser) => Some(browser.queue),
        _ => None,
    });
    let shown: BTreeSet<QueueIndex> = shown.filter(|queue| !plan.has_consumer(*queue)).collect();
    let mut published: BTreeMap<MessageId, usize> = BTreeMap::new();
    let mut last_restart = 0;
    for (at, (_, event)) in history.events.iter().enumerate() {
        match event {
            Event::Publish(publish) => {
                published.insert(publish.message, at);
            }
            Event::Crashed | Event::Closed => last_restart = at,
            Event::Deliver(delivery) if shown.contains(&delivery.queue) => {
                let message = delivery.message.unwrap_or_default();
                let is_older = published.get(&message).is_none_or(|at| *at < last_restart);
                if delivery.requeues > 0 || (delivery.redelivered && !is_older) {
                    let name = &plan.queues[delivery.queue].name;
                    return Err(format!("{message:?} of '{name}' was only shown, and is marked"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}
