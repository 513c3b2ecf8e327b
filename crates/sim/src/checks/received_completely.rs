//! A subscriber receives every message published while it is subscribed, or learns how many it
//! missed.
//!
//! Judged before each later message of the same publisher, and at the end if the subscriber stays
//! connected. Members of groups are judged by `one_of_a_group`.

use crate::checks::subscriptions::{Published, Subscriber, Subscriptions};
use crate::history::{History, MessageId};
use angarium_engine::SlowConsumerPolicy;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(history: &History) -> Result<(), String> {
    let subscriptions = Subscriptions::of(history);
    for subscriber in subscriptions.subscribers.values() {
        // The count comes in a header: without headers there is none.
        let is_told = !subscriptions.can_be_slow || subscriber.subscription.takes_headers;
        if is_told && subscriber.group().is_none() {
            judge(&subscriptions, subscriber)?;
        }
    }
    Ok(())
}

fn judge(subscriptions: &Subscriptions<'_>, subscriber: &Subscriber<'_>) -> Result<(), String> {
    let can_be_slow = subscriptions.can_be_slow;
    let policy = subscriptions.history.plan.slow_consumer_policy;
    // A message written before the oldest ones were dropped, or spilled before others were lost,
    // does not count those. Final messages do; where they may be dropped too, only the very last
    // does. A dropped message takes its count with it, and others of the same read do not repeat
    // it.
    let last = subscriber.received.iter().filter_map(|(_, direct)| direct.message).next_back();
    let is_final = |published: &&Published<'_>| subscriptions.is_final(published.publish.message);
    let counts_missed = |message| match policy {
        SlowConsumerPolicy::DropOldest => {
            let is_last = Some(message) == last && subscriptions.is_final(message);
            is_last && !missed(subscriptions, subscriber).iter().any(is_final)
        }
        SlowConsumerPolicy::Spool => subscriptions.is_final(message),
        SlowConsumerPolicy::DropNew
        | SlowConsumerPolicy::Disconnect
        | SlowConsumerPolicy::Conflate => true,
    };
    // Where the disk keeps very little, final messages may get lost themselves with none after
    // them; and a message dropped for others of the same read is counted once all of these are
    // written.
    let keeps_final_messages =
        !matches!(policy, SlowConsumerPolicy::Spool | SlowConsumerPolicy::DropOldest);
    let counts =
        |published: &&Published<'_>| keeps_final_messages || !can_be_slow || !is_final(published);
    let who = subscriber.subscription.number;
    let mut newest: BTreeMap<u32, MessageId> = BTreeMap::new();
    let (mut missing, mut counted) = (0, 0);
    for (_, direct) in &subscriber.received {
        let Some(message) = direct.message else { continue };
        let before = newest.insert(message.producer(), message);
        let after = before.unwrap_or(MessageId::new(message.producer(), 0));
        missing += expected(subscriptions, subscriber, after, message).filter(counts).count();
        counted += usize::try_from(direct.missed).unwrap_or(usize::MAX);
        if missing > counted && counts_missed(message) {
            return Err(format!(
                "subscription {who} received {message:?} and misses {missing} before it, \
                 {counted} of them counted"
            ));
        }
    }
    let end = subscriber.received.last().map_or(0, |(at, _)| *at);
    let missed_at_most =
        || missed(subscriptions, subscriber).iter().filter(|published| published.at < end).count();
    if counted > 0 && (!can_be_slow || counted > missed_at_most()) {
        return Err(format!(
            "subscription {who} did not miss {counted} messages that were counted"
        ));
    }
    if !can_be_slow && subscriptions.stays(subscriber) && !subscriber.has_ended() {
        let all = subscriptions.published.keys().map(|message| message.producer());
        for producer in all.collect::<BTreeSet<u32>>() {
            let nothing = MessageId::new(producer, 0);
            let after = newest.get(&producer).copied().unwrap_or(nothing);
            let end = MessageId::new(producer + 1, 0);
            if let Some(published) = expected(subscriptions, subscriber, after, end).next() {
                let message = published.publish.message;
                return Err(format!("subscription {who} never received {message:?}"));
            }
        }
    }
    Ok(())
}

/// The messages of a publisher between two others, exclusive, that the subscriber must receive.
fn expected<'h>(
    subscriptions: &'h Subscriptions<'_>,
    subscriber: &'h Subscriber<'_>,
    after: MessageId,
    before: MessageId,
) -> impl Iterator<Item = &'h Published<'h>> {
    let range = MessageId(after.0 + 1)..before;
    let between = (range.start < range.end).then(|| subscriptions.published.range(range));
    between.into_iter().flatten().map(|(_, published)| published).filter(|published| {
        let is_known = published.processed.is_some() && subscriber.knows_before(published.at);
        is_known && subscriber.is_for(published.publish)
    })
}

/// The messages for the subscriber that it did not receive.
fn missed<'h>(
    subscriptions: &'h Subscriptions<'_>,
    subscriber: &Subscriber<'_>,
) -> Vec<&'h Published<'h>> {
    let received: BTreeSet<_> =
        subscriber.received.iter().filter_map(|(_, direct)| direct.message).collect();
    let is_missed = |published: &&Published<'_>| {
        let message = published.publish.message;
        subscriber.is_for(published.publish) && !received.contains(&message)
    };
    subscriptions.published.values().filter(is_missed).collect()
}
