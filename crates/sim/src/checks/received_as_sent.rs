//! A received direct message was published to a subject of the subscription and not rolled back,
//! and its subject, reply subject, headers and body are unchanged.

use crate::checks::subscriptions::{Subscriber, Subscriptions, takes};
use crate::history::{DirectMessage, HeadersSeen, History};

pub(super) fn check(history: &History) -> Result<(), String> {
    let subscriptions = Subscriptions::of(history);
    for subscriber in subscriptions.subscribers.values() {
        for (at, direct) in &subscriber.received {
            judge(&subscriptions, subscriber, *at, direct)?;
        }
    }
    Ok(())
}

fn judge(
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
    let wrong = |what: &str| Err(format!("subscription {who} received {message:?} with {what}"));
    if direct.subject != publish.subject {
        return wrong("another subject");
    }
    if !takes(&subscriber.subscription.pattern, &direct.subject) {
        return wrong("a subject that it does not listen to");
    }
    if direct.reply != publish.reply {
        return wrong("another reply subject");
    }
    let has_headers = publish.has_headers && subscriber.subscription.takes_headers;
    let headers = if has_headers { HeadersSeen::Own } else { HeadersSeen::None };
    if direct.headers != headers {
        return wrong("other headers");
    }
    if subscriptions.undone.contains(&message) {
        return wrong("no commit of its transaction");
    }
    Ok(())
}
