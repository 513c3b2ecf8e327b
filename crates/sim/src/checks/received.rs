//! What a subscriber receives of direct messages: promises about each message.

use crate::checks::subscriptions::{Subscriber, Subscriptions, takes};
use crate::history::{DirectMessage, Event, HeadersSeen, History, MessageId};
use std::collections::{BTreeMap, BTreeSet};

/// No subscriber receives a direct message twice.
pub(super) fn at_most_once(history: &History) -> Result<(), String> {
    let mut received = BTreeSet::new();
    for (_, event) in &history.events {
        if let Event::Receive(direct) = event
            && let Some(message) = direct.message
            && !received.insert((direct.subscription, message))
        {
            return Err(format!("subscription {} received {message:?} twice", direct.subscription));
        }
    }
    Ok(())
}

/// A received direct message was published to a subject of the subscription and not rolled back,
/// and its subject, reply subject, headers and body are unchanged.
pub(super) fn as_sent(history: &History) -> Result<(), String> {
    let subscriptions = Subscriptions::of(history);
    for subscriber in subscriptions.subscribers.values() {
        for (at, direct) in &subscriber.received {
            judge_message(&subscriptions, subscriber, *at, direct)?;
        }
    }
    Ok(())
}

fn judge_message(
    subscriptions: &Subscriptions<'_>,
    subscriber: &Subscriber<'_>,
    at: usize,
    direct: &DirectMessage,
) -> Result<(), String> {
    let who = direct.subscription;
    let Some(message) = direct.message else {
        return Err(format!("subscription {who} received a body that nobody published"));
    };
    let published = subscriptions.published.get(&message).filter(|published| published.at < at);
    let Some(publish) = published.map(|published| published.publish) else {
        return Err(format!("subscription {who} received {message:?} that nobody published"));
    };
    let has_headers = publish.has_headers && subscriber.subscription.takes_headers;
    let headers = if has_headers { HeadersSeen::Own } else { HeadersSeen::None };
    let is_for_it = takes(&subscriber.subscription.pattern, &direct.subject);
    let wrongs = [
        (direct.subject != publish.subject, "another subject"),
        (!is_for_it, "a subject that it does not subscribe to"),
        (direct.reply != publish.reply, "another reply subject"),
        (direct.headers != headers, "other headers"),
        (subscriptions.undone.contains(&message), "no commit of its transaction"),
    ];
    match wrongs.iter().find(|(is_so, _)| *is_so) {
        Some((_, what)) => Err(format!("subscription {who} received {message:?} with {what}")),
        None => Ok(()),
    }
}

/// A subscriber receives the messages of one publisher in the order in which they were published.
///
/// The exception: a message handed on to another shard, because the group's members on the first
/// shard have left or are slow consumers, may come after later ones.
pub(super) fn in_order(history: &History) -> Result<(), String> {
    let subscriptions = Subscriptions::of(history);
    let mut newest: BTreeMap<(u32, u32), MessageId> = BTreeMap::new();
    for (_, event) in &history.events {
        let Event::Receive(direct) = event else { continue };
        let Some(message) = direct.message else { continue };
        let who = direct.subscription;
        let before = newest.entry((who, message.producer())).or_insert(message);
        if *before > message && !may_be_late(&subscriptions, who) {
            return Err(format!("subscription {who} received {before:?} before {message:?}"));
        }
        *before = message.max(*before);
    }
    Ok(())
}

/// Whether messages of the subscriber may have been handed on from another member of its group.
fn may_be_late(subscriptions: &Subscriptions<'_>, subscription: u32) -> bool {
    let own = subscriptions.subscribers.get(&subscription).and_then(Subscriber::group);
    let passes_on = |other: &Subscriber<'_>| {
        subscriptions.can_be_slow || !other.ends.is_empty() || !subscriptions.stays(other)
    };
    let mut others = subscriptions.subscribers.values().filter(|other| {
        other.subscription.number != subscription && own.is_some() && other.group() == own
    });
    subscriptions.history.plan.shards.count > 1 && others.any(passes_on)
}

/// A subscriber receives nothing after the broker is known to have processed its unsubscribe.
pub(super) fn nothing_after_unsubscribe(history: &History) -> Result<(), String> {
    let subscriptions = Subscriptions::of(history);
    for (subscription, subscriber) in &subscriptions.subscribers {
        let known =
            subscriber.ends.iter().filter(|end| end.after.is_none()).filter_map(|end| end.known);
        let Some(known) = known.min() else { continue };
        if let Some((_, direct)) = subscriber.received.iter().find(|(at, _)| *at > known) {
            let message = direct.message;
            return Err(format!("subscription {subscription} had ended and received {message:?}"));
        }
    }
    Ok(())
}

/// A subscription with a limit receives at most that many messages, or those already under way
/// when the broker learned of the limit. That it receives no fewer is part of
/// `received_completely`.
pub(super) fn until_exact(history: &History) -> Result<(), String> {
    let subscriptions = Subscriptions::of(history);
    for (subscription, subscriber) in &subscriptions.subscribers {
        for end in &subscriber.ends {
            let (Some(after), Some(known)) = (end.after, end.known) else { continue };
            let on_their_way =
                subscriber.received.iter().filter(|(at, _)| *at < known).count() as u64;
            let most = after.max(on_their_way);
            let received = subscriber.received.len() as u64;
            if received > most {
                return Err(format!(
                    "subscription {subscription} wanted {most} messages and received {received}"
                ));
            }
        }
    }
    Ok(())
}

/// A client without echo does not receive its own messages.
pub(super) fn no_echo(history: &History) -> Result<(), String> {
    let subscriptions = Subscriptions::of(history);
    for (subscription, subscriber) in &subscriptions.subscribers {
        for message in subscriber.received.iter().filter_map(|(_, direct)| direct.message) {
            let publish = subscriptions.published.get(&message).map(|published| published.publish);
            let is_own = |connection| connection == subscriber.subscription.connection;
            if publish.is_some_and(|publish| !publish.echo && is_own(publish.connection)) {
                return Err(format!("subscription {subscription} received its own {message:?}"));
            }
        }
    }
    Ok(())
}
