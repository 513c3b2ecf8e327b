//! No consumer has more unsettled deliveries, or bytes of them, than it gave credit for.
//!
//! Judged where deliveries arrive: what the client has settled it no longer counts, even if the broker
//! does not know yet, so that the client never counts more than the broker did.

use crate::history::{Event, History, MessageId, Subscription};
use std::collections::BTreeMap;

pub(super) fn check(history: &History) -> Result<(), String> {
    let mut subscriptions: BTreeMap<u32, (&Subscription, BTreeMap<MessageId, u64>)> =
        BTreeMap::new();
    for (_, event) in &history.events {
        match event {
            Event::Subscribe(subscription) if !subscription.presettled => {
                subscriptions.insert(subscription.consumer, (subscription, BTreeMap::new()));
            }
            Event::Settle { consumer, message, .. } => {
                if let Some((_, unsettled)) = subscriptions.get_mut(consumer) {
                    unsettled.remove(message);
                }
            }
            Event::Ended { consumer } => {
                subscriptions.remove(consumer);
            }
            Event::Deliver(delivery) => {
                let Some((subscription, unsettled)) = subscriptions.get_mut(&delivery.consumer)
                else {
                    continue;
                };
                let bytes: u64 = unsettled.values().sum();
                let Some(message) = delivery.message else { continue };
                let limit = subscription.bytes_max;
                if limit > 0 && !unsettled.is_empty() && bytes + delivery.bytes > limit {
                    let sum = bytes + delivery.bytes;
                    return Err(format!(
                        "consumer {} got {sum} of {limit} bytes",
                        delivery.consumer
                    ));
                }
                unsettled.insert(message, delivery.bytes);
                let limit = subscription.messages_max;
                if limit > 0 && unsettled.len() as u64 > limit {
                    let consumer = delivery.consumer;
                    return Err(format!("consumer {consumer} got more than {limit} messages"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}
