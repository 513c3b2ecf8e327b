//! No consumer has more unsettled deliveries, or bytes of them, than it gave credit for.
//!
//! Judged where deliveries arrive: the client does not count deliveries it has settled, even if
//! the broker does not know yet, so it never counts more than the broker did.

use crate::history::{Consume, Event, History, MessageId};
use std::collections::BTreeMap;

pub(super) fn check(history: &History) -> Result<(), String> {
    let mut consumers: BTreeMap<u32, (&Consume, BTreeMap<MessageId, u64>)> = BTreeMap::new();
    for (_, event) in &history.events {
        match event {
            Event::Consume(consume) if !consume.presettled => {
                consumers.insert(consume.consumer, (consume, BTreeMap::new()));
            }
            Event::Settle { consumer, message, .. } => {
                if let Some((_, unsettled)) = consumers.get_mut(consumer) {
                    unsettled.remove(message);
                }
            }
            Event::Ended { consumer } => {
                consumers.remove(consumer);
            }
            Event::Deliver(delivery) => {
                let Some((consume, unsettled)) = consumers.get_mut(&delivery.consumer) else {
                    continue;
                };
                let bytes: u64 = unsettled.values().sum();
                let Some(message) = delivery.message else { continue };
                let limit = consume.bytes_max;
                if limit > 0 && !unsettled.is_empty() && bytes + delivery.bytes > limit {
                    let sum = bytes + delivery.bytes;
                    return Err(format!(
                        "consumer {} got {sum} of {limit} bytes",
                        delivery.consumer
                    ));
                }
                unsettled.insert(message, delivery.bytes);
                let limit = consume.messages_max;
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
