//! Exactly one member of a queue group receives a message, whatever patterns the members subscribe
//! to.
//!
//! None does where it was handed to a member whose connection was lost.

use crate::checks::subscriptions::{Published, Subscriber, Subscriptions};
use crate::history::{History, MessageId};
use std::collections::BTreeMap;

pub(super) fn check(history: &History) -> Result<(), String> {
    let subscriptions = Subscriptions::of(history);
    let mut groups: BTreeMap<&str, Vec<&Subscriber<'_>>> = BTreeMap::new();
    for subscriber in subscriptions.subscribers.values() {
        if let Some(group) = subscriber.group() {
            groups.entry(group).or_default().push(subscriber);
        }
    }
    for (group, members) in &groups {
        let mut received: BTreeMap<MessageId, u32> = BTreeMap::new();
        for (_, direct) in members.iter().flat_map(|subscriber| &subscriber.received) {
            let Some(message) = direct.message else { continue };
            if let Some(other) = received
                .insert(message, direct.subscription)
                .filter(|other| *other != direct.subscription)
            {
                let both = format!("{other} and {}", direct.subscription);
                return Err(format!("{both}, of group '{group}', received {message:?}"));
            }
        }
        // A slow consumer is passed over silently.
        if subscriptions.can_be_slow {
            continue;
        }
        for (message, published) in &subscriptions.published {
            if published.processed.is_some()
                && !received.contains_key(message)
                && must_receive(&subscriptions, members, published)
            {
                return Err(format!("nobody of group '{group}' received {message:?}"));
            }
        }
    }
    Ok(())
}

/// Whether one of a group must receive a message: a member is subscribed, and no other may have
/// lost it.
pub(super) fn must_receive(
    subscriptions: &Subscriptions<'_>,
    members: &[&Subscriber<'_>],
    published: &Published<'_>,
) -> bool {
    let is_lost = |member: &&Subscriber<'_>| {
        subscriptions.may_receive(member, published) && subscriptions.may_lose(member)
    };
    members.iter().any(|member| subscriptions.surely_receives(member, published))
        && !members.iter().any(is_lost)
}
