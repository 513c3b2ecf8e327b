//! A client without echo does not receive its own messages.

use crate::checks::subscriptions::Subscriptions;
use crate::history::History;

pub(super) fn check(history: &History) -> Result<(), String> {
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
