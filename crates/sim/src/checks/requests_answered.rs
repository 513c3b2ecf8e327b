//! A request gets an answer if there is a responder, and 503 if there is none; never both.

use super::one_of_a_group::must_receive;
use super::subscriptions::{Published, Subscriber, Subscriptions, takes};
use crate::history::{Event, History};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(history: &History) -> Result<(), String> {
    let subscriptions = Subscriptions::of(history);
    let requests: BTreeMap<&str, &Published<'_>> = subscriptions
        .published
        .values()
        .filter_map(|published| Some((published.publish.reply.as_deref()?, published)))
        .collect();
    // Inboxes that received an answer.
    let received = subscriptions.subscribers.values().flat_map(|subscriber| &subscriber.received);
    let answered: BTreeSet<&str> = received.map(|(_, direct)| direct.subject.as_str()).collect();
    let mut refused = BTreeSet::new();
    for (_, event) in &history.events {
        let Event::NoResponders { inbox, subject } = event else { continue };
        let Some(published) =
            requests.get(inbox.as_str()).filter(|published| published.publish.subject == *subject)
        else {
            return Err(format!("nobody asked '{subject}' from '{inbox}', and 503 came"));
        };
        if !refused.insert(inbox.as_str()) {
            return Err(format!("503 came twice to '{inbox}'"));
        }
        let message = published.publish.message;
        if answered.contains(inbox.as_str()) {
            return Err(format!("request {message:?} got an answer, and 503"));
        }
        let mut subscribers = subscriptions.subscribers.values();
        if let Some(subscriber) =
            subscribers.find(|subscriber| subscriptions.surely_receives(subscriber, published))
        {
            let who = subscriber.subscription.number;
            return Err(format!("request {message:?} got 503 though {who} was there"));
        }
    }
    for (inbox, published) in requests {
        let has_answer = answered.contains(inbox);
        let has_refusal = refused.contains(inbox);
        if !has_answer && !has_refusal && waits(&subscriptions, inbox, published) {
            judge(&subscriptions, published)?;
        }
    }
    Ok(())
}

/// Whether the broker processed the request, and its requester waited until the end.
fn waits(subscriptions: &Subscriptions<'_>, inbox: &str, published: &Published<'_>) -> bool {
    let is_own = |subscriber: &&Subscriber<'_>| {
        let is_here = subscriber.subscription.connection == published.publish.connection;
        is_here && subscriber.group().is_none() && takes(&subscriber.subscription.pattern, inbox)
    };
    let at_once =
        |subscriber: &Subscriber<'_>| subscriber.ends.iter().any(|end| end.after.is_none());
    let mut own = subscriptions.subscribers.values().filter(is_own);
    let is_there = own.any(|subscriber| {
        subscriptions.stays(subscriber)
            && !at_once(subscriber)
            && subscriber.subscription.takes_headers
    });
    published.processed.is_some() && is_there
}

/// Judges a request that got neither an answer nor 503.
fn judge(subscriptions: &Subscriptions<'_>, published: &Published<'_>) -> Result<(), String> {
    let message = published.publish.message;
    let routed = subscriptions.history.plan.routed(&published.publish.subject);
    let mut subscribers = subscriptions.subscribers.values();
    if routed.is_empty() && !subscribers.any(|it| subscriptions.may_receive(it, published)) {
        return Err(format!("request {message:?} had no responder, and no 503 came"));
    }
    if subscriptions.can_be_slow {
        return Ok(());
    }
    let mut services: BTreeMap<Option<&str>, Vec<&Subscriber<'_>>> = BTreeMap::new();
    for subscriber in subscriptions.subscribers.values() {
        if subscriber.subscription.answers {
            services.entry(subscriber.group()).or_default().push(subscriber);
        }
    }
    for (group, members) in services {
        let surely = |it: &&Subscriber<'_>| subscriptions.surely_receives(it, published);
        let must = match group {
            None => members.iter().any(surely),
            Some(_) => must_receive(subscriptions, &members, published),
        };
        if must {
            return Err(format!("request {message:?} had a responder, and no answer came"));
        }
    }
    Ok(())
}
