//! A direct message on its way from one shard to another, and its encoding.
//!
//! Independent of subscriptions. The bytes never leave the process, so their layout has no version.

use crate::interface::message::{BODY_APART, NO_ANNOTATIONS};
use crate::storage::codec::{Malformed, Reader, Writer};
use crate::{Annotations, Bytes, ConnectionId, Format, MessageView, Names, ShardId, Shards};

/// The subjects by which a message is looked up: its own, and further ones that some protocols let
/// a publisher name. A subscriber of several of them gets it once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subjects<'a> {
    pub(super) first: &'a str,
    /// As [`Writer::text`] writes each.
    further: &'a [u8],
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
    /// The publisher wants to know if nobody takes it.
    pub asks: bool,
    /// The subject that subscribers are looked up by.
    pub subject: &'a str,
    /// The message.
    pub message: MessageView<'a>,
    /// As [`crate::Delivery`] has it. All of a cached route have a [`Row`] in common.
    pub cached_route: u64,
    /// Exchange and routing key are those that every emitted message has.
    pub(super) is_emitted: bool,
    /// Further subjects, as [`Subjects`] has them.
    pub(super) further: &'a [u8],
    pub(super) audience: Audience<'a>,
    pub(super) vhost: &'a str,
}

/// The header of a batch of direct messages: all that they have in common, which is everything
/// except properties and payload. It goes to another shard once, before the first of them.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// The shard that they were published on.
    pub origin: ShardId,
    /// The connection there that published them.
    pub publisher: Option<ConnectionId>,
    vhost: &'a str,
    subject: &'a str,
    format: Format,
    persistent: bool,
}

/// A message that may go to other shards: a [`Forward`] without its audience.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unaddressed<'a> {
    pub(super) origin: ShardId,
    pub(super) publisher: Option<ConnectionId>,
    pub(super) asks: bool,
    pub(super) vhost: &'a str,
    pub(super) subjects: Subjects<'a>,
    pub(super) message: &'a MessageView<'a>,
    pub(super) is_emitted: bool,
    pub(super) route: u64,
}

impl<'a> Unaddressed<'a> {
    /// Addresses it.
    pub(super) fn to<'b>(&self, audience: Audience<'b>) -> Forward<'b>
    where
        'a: 'b,
    {
        let Unaddressed {
            origin,
            publisher,
            asks,
            vhost,
            subjects,
            message,
            is_emitted,
            route: cached_route,
        } = *self;
        let Subjects { first: subject, further } = subjects;
        let message = *message;
        Forward {
            origin,
            publisher,
            asks,
            subject,
            further,
            message,
            is_emitted,
            cached_route,
            audience,
            vhost,
        }
    }
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

/// Messages in a row without properties, which differ in payload alone.
#[derive(Clone, Copy, Debug)]
pub struct DirectBatch<'a> {
    /// The subject.
    pub subject: &'a str,
    /// Whether subscribers of the same connection hear them.
    pub echo: bool,
    /// What their properties would be written in.
    pub format: Format,
    /// Whether a queue keeps them as persistent ones.
    pub persistent: bool,
    /// The payloads.
    pub bodies: &'a [&'a [u8]],
}

impl<'a> DirectBatch<'a> {
    /// Messages of one batch, at most.
    pub const MESSAGES_MAX: usize = 64;
    /// Fewer are as well taken one by one.
    pub const MESSAGES_MIN: usize = 2;

    /// One of the messages.
    #[inline]
    pub(super) fn message(&self, names: &'static Names, body: &'a [u8]) -> MessageView<'a> {
        MessageView {
            exchange: names.subject_exchange,
            routing_key: self.subject,
            format: self.format,
            properties: &[],
            body,
            shared: None,
            persistent: self.persistent,
            annotations: &NO_ANNOTATIONS,
        }
    }
}

const ASKS: u8 = 1;
const HAS_PUBLISHER: u8 = 2;
const TO_GROUP: u8 = 4;
const HAS_ECHO: u8 = 8;
/// Exchange and key are those that every emitted message has: they are not written.
const IS_EMITTED: u8 = 16;
const HAS_FURTHER: u8 = 32;

impl<'a> Forward<'a> {
    #[inline]
    pub(super) fn subjects(&self) -> Subjects<'a> {
        Subjects { first: self.subject, further: self.further }
    }

    /// Appends its bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        let Forward {
            origin,
            publisher,
            asks,
            subject,
            further,
            message,
            is_emitted,
            audience,
            vhost,
            ..
        } = self;
        let (is_group, has_echo) = match audience {
            Audience::All => (false, false),
            Audience::Group { echo, .. } => (true, *echo),
        };
        let flags = u8::from(*asks) * ASKS
            + u8::from(publisher.is_some()) * HAS_PUBLISHER
            + u8::from(is_group) * TO_GROUP
            + u8::from(has_echo) * HAS_ECHO
            + u8::from(*is_emitted) * IS_EMITTED
            + u8::from(!further.is_empty()) * HAS_FURTHER
            + u8::from(message.shared.is_some()) * BODY_APART;
        let mut writer = Writer(out);
        writer.u8(flags);
        writer.u8(origin.0);
        if let Some(publisher) = publisher {
            writer.u32(publisher.0);
        }
        if let Audience::Group { name, tried, .. } = audience {
            writer.text(name);
            writer.u64(tried.bits());
        }
        writer.text(vhost);
        writer.text(subject);
        if !further.is_empty() {
            writer.bytes(further);
        }
        if *is_emitted {
            MessageView { exchange: "", routing_key: "", ..*message }.write(out);
        } else {
            message.write(out);
        }
    }

    /// Takes the bytes apart; `annotations` is room for what the broker knows about the message, `apart`
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
        let origin = ShardId(reader.u8()?);
        let publisher = if has(HAS_PUBLISHER) { Some(ConnectionId(reader.u32()?)) } else { None };
        let audience = if has(TO_GROUP) {
            let (name, tried) = (reader.text()?, Shards::of_bits(reader.u64()?));
            Audience::Group { name, tried, echo: has(HAS_ECHO) }
        } else {
            Audience::All
        };
        let (vhost, subject) = (reader.text()?, reader.text()?);
        let further = if has(HAS_FURTHER) { reader.bytes()? } else { &[] };
        let mut message = MessageView::parse(reader.0, annotations, apart)?;
        let is_emitted = has(IS_EMITTED);
        if is_emitted {
            (message.exchange, message.routing_key) = (names.subject_exchange, subject);
        }
        let (asks, cached_route) = (has(ASKS), 0);
        Ok(Forward {
            origin,
            publisher,
            asks,
            subject,
            further,
            message,
            is_emitted,
            cached_route,
            audience,
            vhost,
        })
    }

    /// Appends what it has in common with the others of its cached route.
    pub fn write_row(&self, out: &mut Vec<u8>) {
        let Forward { origin, publisher, subject, message, vhost, .. } = self;
        let mut writer = Writer(out);
        writer.u8(origin.0);
        writer.put(publisher);
        writer.text(vhost);
        writer.text(subject);
        writer.u8(message.format.0);
        writer.bool(message.persistent);
    }
}

impl<'a> Row<'a> {
    /// Takes apart what [`Forward::write_row`] wrote.
    pub fn parse(bytes: &'a [u8]) -> Result<Row<'a>, Malformed> {
        let mut reader = Reader(bytes);
        let row = Row {
            origin: ShardId(reader.u8()?),
            publisher: reader.get()?,
            vhost: reader.text()?,
            subject: reader.text()?,
            format: Format(reader.u8()?),
            persistent: reader.bool()?,
        };
        reader.end()?;
        Ok(row)
    }

    /// Several of its messages, without properties.
    #[inline]
    #[must_use]
    pub fn batch(&self, bodies: &'a [&'a [u8]]) -> DirectBatch<'a> {
        let Row { subject, format, persistent, .. } = *self;
        // None of its publisher's connection subscribes here.
        DirectBatch { subject, echo: true, format, persistent, bodies }
    }

    /// One of its messages.
    #[inline]
    #[must_use]
    pub fn forward(
        &self,
        names: &'static Names,
        properties: &'a [u8],
        body: &'a [u8],
    ) -> Forward<'a> {
        let Row { origin, publisher, vhost, subject, format, persistent } = *self;
        let message = MessageView {
            exchange: names.subject_exchange,
            routing_key: subject,
            format,
            properties,
            body,
            shared: None,
            persistent,
            annotations: &NO_ANNOTATIONS,
        };
        let (audience, further, asks, is_emitted, cached_route) =
            (Audience::All, &[], false, true, 0);
        Forward {
            origin,
            publisher,
            asks,
            subject,
            further,
            message,
            is_emitted,
            cached_route,
            audience,
            vhost,
        }
    }
}
