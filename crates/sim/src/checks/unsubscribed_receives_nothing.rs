//! A subscriber receives nothing after the broker is known to have processed its unsubscribe.

use crate::checks::subscriptions::Subscriptions;
use crate::history::History;

pub(super) fn check(history: &History) -> Result<(), String> {
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
