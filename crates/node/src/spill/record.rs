//! One record of the spill log: a message, and after it its recipients.
//!
//! Stored bytes are not trusted: what does not fit together is no record.

use angarium_engine::{Annotations, Bytes, Format, MessageView, Time};
use std::time::Duration;

/// Length of all, format, flags, priority, when its time to live is over, lengths of exchange, key,
/// properties and body.
const HEAD_BYTES: usize = 4 + 1 + 1 + 1 + 8 + 2 + 2 + 4 + 4;
/// A slow consumer, one of its subscriptions, how many it missed before.
pub(super) const RECIPIENT_BYTES: usize = 4 + 4 + 4;
const PERSISTENT: u8 = 1;
/// Its time to live does not end.
const NEVER: Time = Time(u64::MAX);

/// What a spilled message shows of what the broker knows besides: nothing. Its properties have been changed
/// already where that changes them.
static NO_ANNOTATIONS: Annotations = Annotations {
    delivery_count: 0,
    deaths: Vec::new(),
    ttl_removed: false,
    further_keys_removed: false,
    delayed: false,
    dropped: 0,
    changed: Bytes::new(),
};

/// A subscription that a message waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Recipient {
    pub(super) slow_consumer: u32,
    /// Which of its subscriptions.
    pub(super) subscription: u32,
    /// How many messages it missed before this one.
    pub(super) missed: u32,
}

/// Bytes that a message takes, without recipients.
pub(super) fn size(message: &MessageView<'_>) -> usize {
    let MessageView { exchange, routing_key, properties, body, .. } = message;
    HEAD_BYTES + exchange.len() + routing_key.len() + properties.len() + body.len()
}

/// Appends a message up to its body; `false`: it has a part that is too long for the layout.
pub(super) fn begin(out: &mut Vec<u8>, now: Time, message: &MessageView<'_>) -> bool {
    let MessageView { exchange, routing_key, properties, body, .. } = message;
    let (Ok(length), Ok(exchange_length), Ok(key_length)) = (
        u32::try_from(size(message)),
        u16::try_from(exchange.len()),
        u16::try_from(routing_key.len()),
    ) else {
        return false;
    };
    out.extend_from_slice(&length.to_le_bytes());
    out.push(message.format.0);
    out.push(if message.persistent { PERSISTENT } else { 0 });
    out.push(message.priority);
    let expires = message.ttl.map_or(NEVER, |ttl| now.plus(ttl));
    out.extend_from_slice(&expires.0.to_le_bytes());
    out.extend_from_slice(&exchange_length.to_le_bytes());
    out.extend_from_slice(&key_length.to_le_bytes());
    for part in [properties, body] {
        let length = u32::try_from(part.len()).expect("the whole has fewer than 2^32");
        out.extend_from_slice(&length.to_le_bytes());
    }
    for part in [exchange.as_bytes(), routing_key.as_bytes(), properties] {
        out.extend_from_slice(part);
    }
    true
}

/// Appends a recipient to the record that begins at `start` and ends with `out`, of which `apart` bytes lie
/// elsewhere.
pub(super) fn add_recipient(out: &mut Vec<u8>, start: usize, apart: usize, recipient: Recipient) {
    for number in [recipient.slow_consumer, recipient.subscription, recipient.missed] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    let length = u32::try_from(out.len() - start + apart).unwrap_or(u32::MAX);
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// A record, taken apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'a> {
    /// Bytes of all of it.
    pub(super) bytes: usize,
    /// Without its time to live.
    pub(super) message: MessageView<'a>,
    expires: Time,
    recipients: &'a [u8],
}

impl<'a> Record<'a> {
    /// The record that `bytes` begin with. Of one whose body and recipients lie apart, they are what comes
    /// before.
    pub(super) fn read(bytes: &'a [u8], apart: Option<(&'a [u8], &'a [u8])>) -> Option<Record<'a>> {
        let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        let (length, head) = head.split_first_chunk::<4>()?;
        let ([format, flags, priority], head) = head.split_first_chunk::<3>()?;
        let (expires, head) = head.split_first_chunk::<8>()?;
        let [e, f, g, h, i, j, k, l, m, n, o, p] = *head.first_chunk::<12>()?;
        let bytes = u32::from_le_bytes(*length) as usize;
        let [exchange_bytes, key_bytes] = [[e, f], [g, h]].map(u16::from_le_bytes);
        let [properties_bytes, body_bytes] =
            [[i, j, k, l], [m, n, o, p]].map(|bytes| u32::from_le_bytes(bytes) as usize);
        let rest = if apart.is_none() { rest.get(..bytes.checked_sub(HEAD_BYTES)?)? } else { rest };
        let (exchange, rest) = rest.split_at_checked(exchange_bytes.into())?;
        let (key, rest) = rest.split_at_checked(key_bytes.into())?;
        let (properties, rest) = rest.split_at_checked(properties_bytes)?;
        let (body, recipients) = match apart {
            None => rest.split_at_checked(body_bytes)?,
            Some(apart) if rest.is_empty() && apart.0.len() == body_bytes => apart,
            Some(_) => return None,
        };
        let message = MessageView {
            exchange: std::str::from_utf8(exchange).ok()?,
            routing_key: std::str::from_utf8(key).ok()?,
            format: Format(*format),
            properties,
            body,
            shared: None,
            persistent: flags & PERSISTENT != 0,
            priority: *priority,
            ttl: None,
            annotations: &NO_ANNOTATIONS,
        };
        let expires = Time(u64::from_le_bytes(*expires));
        let is_whole = recipients.len().is_multiple_of(RECIPIENT_BYTES);
        is_whole.then_some(Record { bytes, message, expires, recipients })
    }

    /// Whether its time to live is over.
    pub(super) fn is_expired(&self, now: Time) -> bool {
        self.expires <= now
    }

    /// What is left of its time to live, if that ends.
    pub(super) fn ttl(&self, now: Time) -> Option<Duration> {
        (self.expires != NEVER).then(|| self.expires.since(now))
    }

    /// The next recipient, from number `from` on, that is this slow consumer; and its number.
    pub(super) fn recipient(&self, slow_consumer: u32, from: usize) -> Option<(usize, Recipient)> {
        let wanted = slow_consumer.to_le_bytes();
        let mut recipients = self.recipients.chunks_exact(RECIPIENT_BYTES).enumerate().skip(from);
        let (at, found) = recipients.find(|(_, recipient)| recipient[..4] == wanted)?;
        let number = |at: usize| {
            u32::from_le_bytes(found[at..at + 4].try_into().expect("a recipient has its length"))
        };
        Some((at, Recipient { slow_consumer, subscription: number(4), missed: number(8) }))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use angarium_engine::{ChannelId, ConnectionId, DirectMessage};

    pub(in crate::spill) fn delivery<'a>(key: &'a str, body: &'a [u8]) -> DirectMessage<'a> {
        let channel = ChannelId { connection: ConnectionId(1), number: 0 };
        let message = MessageView {
            exchange: "amq.topic",
            routing_key: key,
            format: Format(2),
            properties: b"\0\0",
            body,
            shared: None,
            persistent: true,
            priority: 7,
            ttl: None,
            annotations: &NO_ANNOTATIONS,
        };
        DirectMessage {
            channel,
            subscription: "1",
            tag: 1,
            missed: 0,
            slow_consumer_policy: None,
            emission: 1,
            route: 0,
            message,
        }
    }

    /// Appends a message.
    fn add(bytes: &mut Vec<u8>, key: &str) {
        let ttl = (key == "short").then_some(Duration::from_secs(5));
        let message = MessageView { ttl, ..delivery(key, b"body").message };
        assert!(begin(bytes, Time(1_000_000), &message));
        bytes.extend_from_slice(b"body");
    }

    #[test]
    fn a_record_comes_back_with_each_recipient() {
        let mut bytes = b"before".to_vec();
        add(&mut bytes, "a.b");
        for (slow_consumer, subscription, missed) in [(1, 0, 0), (2, 0, 7), (1, 3, 0)] {
            add_recipient(&mut bytes, 6, 0, Recipient { slow_consumer, subscription, missed });
        }
        bytes.extend_from_slice(b"after");
        let record = Record::read(&bytes[6..], None).unwrap();
        assert_eq!(record.bytes, bytes.len() - 11);
        assert_eq!(record.message.routing_key, "a.b");
        assert_eq!(record.message.body, b"body");
        assert_eq!(record.message.properties, b"\0\0");
        assert!(record.message.persistent);
        let of = |slow_consumer, from| {
            let found = record.recipient(slow_consumer, from);
            found.map(|(at, recipient)| (at, recipient.subscription, recipient.missed))
        };
        assert_eq!(of(1, 0), Some((0, 0, 0)));
        assert_eq!(of(1, 1), Some((2, 3, 0)));
        assert_eq!(of(1, 3), None);
        assert_eq!(of(2, 0), Some((1, 0, 7)));
        assert_eq!(of(3, 0), None);
    }

    #[test]
    fn what_is_left_of_a_time_to_live_comes_back() {
        for (key, now, ttl, is_expired) in [
            ("long", 9_000_000, None, false),
            ("short", 2_000_000, Some(Duration::from_secs(4)), false),
            ("short", 6_000_000, Some(Duration::ZERO), true),
        ] {
            let mut bytes = Vec::new();
            add(&mut bytes, key);
            let recipient = Recipient { slow_consumer: 1, subscription: 0, missed: 0 };
            add_recipient(&mut bytes, 0, 0, recipient);
            let record = Record::read(&bytes, None).unwrap();
            assert_eq!((record.ttl(Time(now)), record.is_expired(Time(now))), (ttl, is_expired));
            assert_eq!(record.message.priority, 7);
        }
    }

    #[test]
    fn nonsense_is_no_record() {
        let mut bytes = Vec::new();
        add(&mut bytes, "a.b");
        add_recipient(&mut bytes, 0, 0, Recipient { slow_consumer: 1, subscription: 1, missed: 0 });
        assert!(Record::read(&bytes, None).is_some());
        for length in 0..bytes.len() {
            assert!(Record::read(&bytes[..length], None).is_none(), "{length}");
        }
        for at in 0..bytes.len() {
            for change in [1, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] ^= change;
                let _ = Record::read(&damaged, None);
            }
        }
    }
}
