//! A direct message on its way from one shard to another, and its encoding.
//!
//! Independent of subscriptions. The bytes never leave the process, so their layout has no version.

use crate::interface::message::{BODY_APART, NO_ANNOTATIONS};
use crate::storage::codec::{Malformed, Reader, Writer};
use crate::{Annotations, Bytes, ConnectionId, Content, MessageView, Names, ShardId, Shards};

/// The subjects by which a message is looked up: its own, and further ones that some protocols let
/// a publisher name. A subscriber of several of them gets it once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subjects<'a> {
    pub(super) first: &'a str,
    /// As [`Writer::text`] writes each.
    pub(super) further: &'a [u8],
}

impl<'a> Subjects<'a> {
    /// A message's only subject.
    #[inline]
    pub(super) fn one(first: &'a str) -> Subjects<'a> {
        Subjects { first, further: &[] }
    }

    /// With further ones, for which there is `room`.
    pub(super) fn several(first: &'a str, further: &[&str], room: &'a mut Vec<u8>) -> Subjects<'a> {
        further.iter().for_each(|subject| Writer(room).text(subject));
        Subjects { first, further: room }
    }

    #[inline]
    pub(super) fn are_several(self) -> bool {
        !self.further.is_empty()
    }

    pub(super) fn each(self) -> impl Iterator<Item = &'a str> + Clone {
        let mut further = Reader(self.further);
        let further = std::iter::from_fn(move || {
            (!further.0.is_empty()).then(|| further.text().expect("it was written as text"))
        });
        std::iter::once(self.first).chain(further)
    }
}

/// A direct message for those who subscribe on another shard.
#[derive(Clone, Copy, Debug)]
pub struct Forward<'a> {
    /// The shard that it was published on. Another one may have handed it on.
    pub origin: ShardId,
    /// The connection there that published it; `None` where none is to wait for those who hear it.
    pub publisher: Option<ConnectionId>,
    /// The connection there whose further messages come behind it, where that is not its publisher.
    pub(super) sender: Option<ConnectionId>,
    /// The publisher wants to know if nobody takes it.
    pub asks: bool,
    /// The subject that subscribers are looked up by.
    pub subject: &'a str,
    /// The message.
    pub message: MessageView<'a>,
    /// As [`crate::DirectMessage::route`]. All of a cached route have a header in common.
    pub cached_route: u64,
    /// Exchange and routing key are those that every emitted message has.
    pub(super) is_emitted: bool,
    /// Further subjects, as [`Subjects`] has them.
    pub(super) further: &'a [u8],
    pub(super) audience: Audience<'a>,
    pub(super) vhost: &'a str,
}

/// Who of those who subscribe on the other shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audience<'a> {
    /// All outside of groups, and queues.
    All,
    /// One of a group. Where it has no member left there, the message is handed on to a shard that
    /// was not tried yet. `echo`: the publisher's own subscribers hear it too.
    Group { name: &'a str, tried: Shards, echo: bool },
}

/// A message that is emitted to a subject, as subscribers get it.
#[inline]
pub(super) fn emitted<'a>(
    names: &'static Names,
    subject: &'a str,
    content: &Content<'a>,
) -> MessageView<'a> {
    MessageView {
        exchange: names.subject_exchange,
        routing_key: subject,
        format: content.format,
        properties: content.properties,
        body: content.body,
        shared: content.shared,
        persistent: content.persistent,
        priority: content.priority,
        ttl: content.ttl,
        annotations: &NO_ANNOTATIONS,
    }
}

const ASKS: u8 = 1;
const HAS_PUBLISHER: u8 = 2;
const TO_GROUP: u8 = 4;
const HAS_ECHO: u8 = 8;
/// Exchange and key are those that every emitted message has: they are not written.
const IS_EMITTED: u8 = 16;
const HAS_FURTHER: u8 = 32;
const HAS_SENDER: u8 = 64;

impl<'a> Forward<'a> {
    /// For all who subscribe to one subject outside of groups. It is emitted, if it has a publisher.
    #[inline]
    pub(super) fn new(
        origin: ShardId,
        publisher: Option<ConnectionId>,
        vhost: &'a str,
        subject: &'a str,
        message: MessageView<'a>,
    ) -> Forward<'a> {
        Forward {
            origin,
            publisher,
            sender: None,
            asks: false,
            subject,
            message,
            cached_route: 0,
            is_emitted: publisher.is_some(),
            further: &[],
            audience: Audience::All,
            vhost,
        }
    }

    #[inline]
    pub(super) fn subjects(&self) -> Subjects<'a> {
        Subjects { first: self.subject, further: self.further }
    }

    /// Appends its bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        let Forward { publisher, sender, subject, further, message, is_emitted, vhost, .. } = *self;
        let (group, has_echo) = match self.audience {
            Audience::All => (None, false),
            Audience::Group { name, tried, echo } => (Some((name, tried)), echo),
        };
        let flags = u8::from(self.asks) * ASKS
            + u8::from(publisher.is_some()) * HAS_PUBLISHER
            + u8::from(group.is_some()) * TO_GROUP
            + u8::from(has_echo) * HAS_ECHO
            + u8::from(is_emitted) * IS_EMITTED
            + u8::from(!further.is_empty()) * HAS_FURTHER
            + u8::from(sender.is_some()) * HAS_SENDER
            + u8::from(message.shared.is_some()) * BODY_APART;
        let mut writer = Writer(out);
        writer.u8(flags);
        writer.u8(self.origin.0);
        if let Some(publisher) = publisher {
            writer.put(&publisher);
        }
        if let Some(sender) = sender {
            writer.put(&sender);
        }
        if let Some(group) = group {
            writer.put(&group);
        }
        writer.text(vhost);
        writer.text(subject);
        if !further.is_empty() {
            writer.bytes(further);
        }
        if is_emitted {
            MessageView { exchange: "", routing_key: "", ..message }.write(out);
        } else {
            message.write(out);
        }
    }

    /// Takes the bytes apart; `annotations` is room for what the broker adds to the message, `apart`
    /// its body where that goes along.
    pub fn parse(
        bytes: &'a [u8],
        annotations: &'a mut Annotations,
        apart: Option<&'a Bytes>,
        names: &'static Names,
    ) -> Result<Forward<'a>, Malformed> {
        let mut reader = Reader(bytes);
        let flags = reader.u8()?;
        let has = |flag: u8| flags & flag != 0;
        let origin = reader.get()?;
        let publisher = if has(HAS_PUBLISHER) { Some(reader.get()?) } else { None };
        let sender = if has(HAS_SENDER) { Some(reader.get()?) } else { None };
        let audience = if has(TO_GROUP) {
            let (name, tried) = reader.get()?;
            Audience::Group { name, tried, echo: has(HAS_ECHO) }
        } else {
            Audience::All
        };
        let (vhost, subject) = reader.get()?;
        let further = if has(HAS_FURTHER) { reader.bytes()? } else { &[] };
        let mut message = MessageView::parse(reader.0, annotations, apart)?;
        let is_emitted = has(IS_EMITTED);
        if is_emitted {
            (message.exchange, message.routing_key) = (names.subject_exchange, subject);
        }
        let asks = has(ASKS);
        let forward = Forward::new(origin, publisher, vhost, subject, message);
        Ok(Forward { asks, sender, is_emitted, further, audience, ..forward })
    }

    /// The connection whose further messages come behind this one, if it is any's: its shard and itself.
    #[inline]
    #[must_use]
    pub fn order(&self) -> Option<(ShardId, ConnectionId)> {
        Some((self.origin, self.publisher.or(self.sender)?))
    }

    /// The same of one that is not taken apart.
    pub fn order_of(bytes: &[u8]) -> Result<Option<(ShardId, ConnectionId)>, Malformed> {
        let mut reader = Reader(bytes);
        let flags = reader.u8()?;
        let origin = reader.get()?;
        let has_sender = flags & (HAS_PUBLISHER | HAS_SENDER) != 0;
        Ok(if has_sender { Some((origin, reader.get()?)) } else { None })
    }

    /// Appends the header of a batch: what it has in common with the others of its cached route, which is
    /// everything except properties and payload. It goes to another shard once, before the first of them.
    pub fn write_header(&self, out: &mut Vec<u8>) {
        let Forward { origin, publisher, subject, message, vhost, .. } = self;
        let common = (*subject, message.format, message.persistent);
        let terms = (message.priority, message.ttl);
        Writer(out).put(&((*origin, *publisher, *vhost), common, terms));
    }

    /// Takes apart what [`Forward::write_header`] wrote: a message without properties and payload.
    pub fn parse_header(bytes: &'a [u8], names: &'static Names) -> Result<Forward<'a>, Malformed> {
        let ((origin, publisher, vhost), (subject, format, persistent), (priority, ttl)) =
            Reader(bytes).whole()?;
        let message = MessageView {
            exchange: names.subject_exchange,
            routing_key: subject,
            format,
            properties: &[],
            body: &[],
            shared: None,
            persistent,
            priority,
            ttl,
            annotations: &NO_ANNOTATIONS,
        };
        let forward = Forward::new(origin, publisher, vhost, subject, message);
        Ok(Forward { is_emitted: true, ..forward })
    }

    /// One message of the batch that it is the header of.
    #[inline]
    #[must_use]
    pub fn with(&self, properties: &'a [u8], body: &'a [u8]) -> Forward<'a> {
        Forward { message: MessageView { properties, body, ..self.message }, ..*self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{CONVENTIONS, TestHost};
    use crate::{Emit, Format, Time};
    use std::time::Duration;

    /// A message that lives for a while, on its way to a queue on another shard, by itself or in a batch.
    #[test]
    fn a_message_keeps_its_time_to_live_and_priority_between_shards() {
        let content = Content {
            format: Format(2),
            properties: b"",
            body: b"body",
            shared: None,
            persistent: true,
            priority: 4,
            ttl: Some(Duration::from_millis(5)),
        };
        let emit = Emit { subject: "a", echo: true, is_response: false, asks: false, content };
        let message = emitted(&CONVENTIONS.names, emit.subject, &content);
        let sent = Forward::new(ShardId(1), Some(ConnectionId(0)), "/", "a", message);
        let (mut whole, mut header) = (Vec::new(), Vec::new());
        sent.write(&mut whole);
        sent.write_header(&mut header);
        let mut room = Annotations::default();
        let alone = Forward::parse(&whole, &mut room, None, &CONVENTIONS.names).unwrap();
        let head = Forward::parse_header(&header, &CONVENTIONS.names).unwrap();
        for forward in [alone, head.with(b"", b"body")] {
            let mut host = TestHost::new();
            for line in ["a queue q priorities=9", "a bind amq.topic q #"] {
                host.run(line);
            }
            let reached = host.engine.forwarded(host.now, &forward, &mut None, &mut host.fx);
            assert_eq!(reached.queues, 1);
            let entry = host.engine.queues.iter().flat_map(|(_, it)| it.lanes.iter());
            let entry = entry.flat_map(|lane| lane.entries()).next().unwrap();
            let Time(now) = host.now;
            assert_eq!((entry.lane, entry.expires), (4, Time(now + 5_000)));
        }
    }
}
