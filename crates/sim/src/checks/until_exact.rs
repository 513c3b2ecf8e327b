//! A subscription with a limit receives at most that many messages, or those already under way
//! when the broker learned of the limit. That it receives no fewer is part of
//! `received_completely`.

use crate::checks::subscriptions::Subscriptions;
use crate::history::History;

pub(super) fn check(history: &History) -> Result<(), String> {
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
