//! A subscriber receives the messages of one publisher in the order in which they were published.
//!
//! The exception: a message handed on to another shard, because the group's members on the first
//! shard have left or are slow consumers, may come after later ones.

use crate::checks::subscriptions::{Subscriber, Subscriptions};
use crate::history::{Event, History, MessageId};
use std::collections::BTreeMap;

pub(super) fn check(history: &History) -> Result<(), String> {
    let subscriptions = Subscriptions::of(history);
    let mut newest: BTreeMap<(u32, u32), MessageId> = BTreeMap::new();
    for (_, event) in &history.events {
        let Event::Receive(direct) = event else { continue };
        let Some(message) = direct.message else { continue };
        let who = direct.subscription;
        let before = newest.entry((who, message.producer())).or_insert(message);
        if *before > message && !may_be_late(history, &subscriptions, who) {
            return Err(format!("subscription {who} received {before:?} before {message:?}"));
        }
        *before = message.max(*before);
    }
    Ok(())
}

/// Whether messages of the subscriber may have been handed on from another member of its group.
fn may_be_late(history: &History, subscriptions: &Subscriptions<'_>, subscription: u32) -> bool {
    let group = |subscriber: &Subscriber<'_>| subscriber.group().map(str::to_owned);
    let Some(own) = subscriptions.subscribers.get(&subscription).and_then(group) else {
        return false;
    };
    let is_other = |subscriber: &&Subscriber<'_>| {
        subscriber.subscription.number != subscription
            && subscriber.group().is_some_and(|group| *group == own)
    };
    let mut others = subscriptions.subscribers.values().filter(is_other);
    let passes_on = |subscriber: &Subscriber<'_>| {
        history.plan.can_be_slow()
            || !subscriber.ends.is_empty()
            || !subscriptions.stays(subscriber)
    };
    history.plan.shards.count > 1 && others.any(passes_on)
}
