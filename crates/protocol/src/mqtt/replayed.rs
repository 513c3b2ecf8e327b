//! What tells retained messages that come for a subscription from others: a note that each has with it, the
//! subscription, as the session keeps it, and its filter.
//!
//! So they have the QoS and the identifier of the subscription that they were asked for, whatever others the
//! client has by the time that they are sent.

use super::codec::Filter;
use super::subscriptions::{Matched, SUBSCRIPTION_BYTES, Subscription};
use angarium_engine::{Bytes, MessageView};

/// The note for a subscription.
pub(super) fn note(text: &str, subscription: &Subscription) -> Bytes {
    [&subscription.encode(), text.as_bytes()].concat().into()
}

/// What the note of a retained message says.
#[derive(Debug)]
pub(super) struct Replayed<'a> {
    subscription: Subscription,
    text: &'a str,
}

impl<'a> Replayed<'a> {
    /// What is noted of a message; `None`: it is not a retained one.
    #[inline]
    pub(super) fn of(message: &MessageView<'a>) -> Option<Replayed<'a>> {
        let note = &message.annotations.changed;
        if note.is_empty() { None } else { Replayed::read(note) }
    }

    #[cold]
    fn read(note: &'a [u8]) -> Option<Replayed<'a>> {
        let (subscription, text) = note.split_at_checked(SUBSCRIPTION_BYTES)?;
        let text = str::from_utf8(text).ok()?;
        let filter = Filter::read(text).ok()?;
        let subscription = Subscription::decode(&filter, subscription)?;
        Some(Replayed { subscription, text })
    }

    /// The subscription as the only one that the message matches; none where its patterns match more than its
    /// filter.
    pub(super) fn matched(&self, topic: &str) -> Matched {
        let mut matched = Matched::default();
        if self.subscription.takes(self.text, topic.as_bytes()) {
            matched.add(&self.subscription);
        }
        matched
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mqtt::codec::{FilterOptions, Qos};
    use angarium_engine::{Annotations, Format};

    fn subscription(qos: Qos) -> Subscription {
        let options = FilterOptions { qos, ..FilterOptions::default() };
        Subscription::new(&Filter::read("+/b").unwrap(), options, 7)
    }

    #[test]
    fn a_note_says_which_subscription_it_was() {
        let note = note("+/b", &subscription(Qos::AtLeastOnce));
        for (note, topic, expected) in [
            (&note[..], "a/b", Some((Qos::AtLeastOnce, vec![7], 1))),
            (&note[..], "$a/b", Some((Qos::AtMostOnce, vec![], 0))),
            (b"", "a/b", None),
            (b"\x01", "a/b", None),
            (b"\x03\0\0\0\0a", "a", None),
            (b"\x01\0\0\0\0a#", "a", None),
        ] {
            let annotations =
                Annotations { changed: Bytes::copy_from_slice(note), ..Annotations::default() };
            let message = MessageView {
                exchange: "",
                routing_key: "",
                format: Format(0),
                properties: b"",
                body: b"",
                shared: None,
                persistent: false,
                priority: 0,
                ttl: None,
                annotations: &annotations,
            };
            let found = Replayed::of(&message).map(|it| it.matched(topic));
            let found = found.map(|it| (it.qos, it.identifiers, it.count));
            assert_eq!(found, expected, "{note:?}");
        }
    }
}
