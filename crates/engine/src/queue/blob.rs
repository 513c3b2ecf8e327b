//! A message's bytes in memory, shared by the queues that hold it, and on their way there and to the journal.

use super::stored::Stored;
use crate::foundation::shared_body::share;
use crate::{Effects, Position, SharedRecord};
use bytes::Bytes;
use std::sync::Arc;

/// What a message in memory costs beyond its bytes.
pub(crate) const ENTRY_COST: u64 = 64;

/// A message as [`super::stored`] describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Blob {
    /// All of it. One that was read back stays inside the record that it came in, behind `start` other bytes:
    /// nothing is copied.
    Whole { record: Arc<[u8]>, start: u32 },
    /// One with a large body.
    Large(Arc<Large>),
}

/// A large body, and what is around it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Large {
    around: Box<[u8]>,
    body: Bytes,
}

impl Blob {
    /// The message that a record ends with, if it is sound. `large_bytes`: from which its body
    /// is large.
    pub(crate) fn at_end_of(
        record: &Arc<[u8]>,
        message: &[u8],
        large_bytes: usize,
    ) -> Option<Blob> {
        let stored = Stored::parse(message).ok()?;
        stored.check().ok()?;
        let start = record.len() - message.len();
        let body = stored.content.body;
        if body.len() < large_bytes {
            let start = u32::try_from(start).expect("records are below 1 GiB");
            return Some(Blob::Whole { record: Arc::clone(record), start });
        }
        let at = stored.body_at();
        let around = [&message[..at], &message[at + body.len()..]].concat().into();
        let body = share(Arc::clone(record)).slice(start + at..start + at + body.len());
        Some(Blob::Large(Arc::new(Large { around, body })))
    }

    #[inline]
    pub(crate) fn stored(&self) -> Stored<'_> {
        let stored = match self {
            Blob::Whole { record, start } => Stored::parse(&record[*start as usize..]),
            Blob::Large(large) => Stored::parse_with(&large.around, Some(&large.body)),
        };
        stored.expect("messages in memory were checked")
    }

    /// What memory it takes up in a queue.
    #[inline]
    pub(crate) fn cost(&self) -> u64 {
        self.len() as u64 + ENTRY_COST
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        match self {
            Blob::Whole { record, start } => record.len() - *start as usize,
            Blob::Large(large) => large.around.len() + large.body.len(),
        }
    }
}

/// A message that has been encoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Encoded<'a> {
    /// All of it, or all around its body.
    pub(super) bytes: &'a [u8],
    /// A large body, and where it belongs.
    pub(super) body: Option<(usize, &'a Bytes)>,
}

impl Encoded<'_> {
    #[inline]
    pub(crate) fn len(self) -> usize {
        self.bytes.len() + self.body.map_or(0, |(_, body)| body.len())
    }

    /// For memory.
    #[inline]
    pub(crate) fn to_blob(self) -> Blob {
        match self.body {
            None => Blob::Whole { record: Arc::from(self.bytes), start: 0 },
            Some((_, body)) => {
                Blob::Large(Arc::new(Large { around: self.bytes.into(), body: body.clone() }))
            }
        }
    }

    /// Appends it to the journal, as the end of a record that begins so.
    #[inline]
    pub(crate) fn append<F: Effects>(self, record: &[u8], durable: bool, fx: &mut F) -> Position {
        match self.body {
            None => fx.append(&[record, self.bytes], durable),
            Some((at, body)) => {
                let (before, after) = self.bytes.split_at(at);
                let record = SharedRecord { before: &[record, before], shared: body, after };
                fx.append_shared(record, durable)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::message::NO_ANNOTATIONS;
    use crate::queue::stored::Incoming;
    use crate::{Annotations, Content, Death, DeathReason, Format, Time};
    use std::time::Duration;

    fn death() -> Death {
        Death {
            reason: DeathReason::Expired,
            queue: "q".to_owned(),
            exchange: "x".to_owned(),
            routing_keys: vec!["k".to_owned()],
            count: 2,
            time: Time(3),
            original_ttl: None,
        }
    }

    /// A message with a large body is the same bytes whether that is shared or not: on its way in, and back
    /// from a record.
    #[track_caller]
    fn check(annotations: &Annotations) {
        let body = Bytes::from(vec![7; 100]);
        let content = Content {
            format: Format(1),
            properties: b"pp",
            body: &body,
            shared: None,
            persistent: true,
            priority: 3,
            ttl: Some(Duration::from_micros(9)),
        };
        let copied = Incoming {
            exchange: "x",
            routing_key: "key",
            also_to: &["cc"],
            content,
            redelivered: false,
            annotations,
            sent: None,
            from: None,
        };
        let shared = Incoming { content: Content { shared: Some(&body), ..content }, ..copied };
        let (mut all, mut around) = (Vec::new(), Vec::new());
        let (copied, shared) = (copied.encode(&mut all), shared.encode(&mut around));
        assert_eq!(copied.len(), shared.len());
        let (at, _) = shared.body.expect("it is shared");
        let bytes = [&shared.bytes[..at], &body, &shared.bytes[at..]].concat();
        assert_eq!(bytes, copied.bytes);

        let record: Arc<[u8]> = [b"record", &bytes[..]].concat().into();
        let read = Blob::at_end_of(&record, &record[6..], 100).expect("it is sound");
        for blob in [&read, &shared.to_blob(), &copied.to_blob()] {
            assert_eq!(blob.len(), bytes.len());
            let stored = blob.stored();
            assert_eq!((stored.exchange, stored.routing_key), ("x", "key"));
            assert_eq!(stored.also_to(), ["cc"]);
            assert_eq!((stored.content.properties, stored.content.body), (&b"pp"[..], &body[..]));
            assert_eq!(stored.annotations(0).deaths, annotations.deaths);
            assert_eq!(stored.content.shared.is_some(), matches!(blob, Blob::Large(_)));
        }
        assert!(matches!(read, Blob::Large(_)));
    }

    #[test]
    fn what_is_shared_is_the_same_bytes() {
        check(&NO_ANNOTATIONS);
        check(&Annotations { deaths: vec![death(), death()], ..Annotations::default() });
    }
}
