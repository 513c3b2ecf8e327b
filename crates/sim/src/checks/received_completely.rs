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
    let can_be_slow = history.plan.can_be_slow();
    for subscriber in
        subscriptions.subscribers.values().filter(|subscriber| subscriber.group().is_none())
    {
        // The count comes in a header: without headers there is none.
        if !can_be_slow || subscriber.subscription.takes_headers {
            judge(&subscriptions, subscriber, can_be_slow, history.plan.slow_consumer_policy)?;
        }
    }
    Ok(())
}

fn judge(
    subscriptions: &Subscriptions<'_>,
    subscriber: &Subscriber<'_>,
    can_be_slow: bool,
    slow_consumer_policy: SlowConsumerPolicy,
) -> Result<(), String> {
    // A message written before the oldest ones were dropped, or spilled before others were lost,
    // does not count those. Final messages do; where they may be dropped too, only the very last
    // does. A dropped message takes its count with it, and others of the same read do not repeat
    // it.
    let last = subscriber.received.iter().filter_map(|(_, direct)| direct.message).next_back();
    let counts_missed = |message| match slow_consumer_policy {
        SlowConsumerPolicy::DropOldest => {
            Some(message) == last
                && subscriptions.is_final(message)
                && !misses_final_messages(subscriptions, subscriber)
        }
        SlowConsumerPolicy::Spool => subscriptions.is_final(message),
        SlowConsumerPolicy::DropNew | SlowConsumerPolicy::Disconnect => true,
    };
    // Where the disk keeps very little, final messages may get lost themselves with none after
    // them; and a message dropped for others of the same read is counted once all of these are
    // written.
    let keeps_final_messages =
        !matches!(slow_consumer_policy, SlowConsumerPolicy::Spool | SlowConsumerPolicy::DropOldest);
    let counts = |published: &&Published<'_>| {
        keeps_final_messages || !can_be_slow || !subscriptions.is_final(published.publish.message)
    };
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
    if counted > 0 && (!can_be_slow || counted > missed_at_most(subscriptions, subscriber)) {
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

/// Whether it may have missed some of the final messages.
fn misses_final_messages(subscriptions: &Subscriptions<'_>, subscriber: &Subscriber<'_>) -> bool {
    let received: BTreeSet<_> =
        subscriber.received.iter().filter_map(|(_, direct)| direct.message).collect();
    let mut final_messages =
        subscriptions.published.keys().filter(|message| subscriptions.is_final(**message));
    final_messages.any(|message| {
        subscriber.is_for(subscriptions.published[message].publish) && !received.contains(message)
    })
}

/// How many it may have missed before the last message that it received.
fn missed_at_most(subscriptions: &Subscriptions<'_>, subscriber: &Subscriber<'_>) -> usize {
    let received: BTreeSet<_> =
        subscriber.received.iter().filter_map(|(_, direct)| direct.message).collect();
    let last = subscriber.received.last().map_or(0, |(at, _)| *at);
    let published = subscriptions
        .published
        .values()
        .filter(|published| published.at < last && subscriber.is_for(published.publish));
    published.filter(|published| !received.contains(&published.publish.message)).count()
}
