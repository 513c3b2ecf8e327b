//! A direct message on its way from one shard to another: what it is, and its bytes.
//!
//! Knows nothing of who listens. The bytes never leave the process, so their layout has no version.

use crate::codec::{Malformed, Reader, Writer};
use crate::queue::stored::{NO_ANNOTATIONS, read_deaths, write_deaths};
use crate::{Annotations, ConnectionId, Format, MessageView};

/// A direct message for those who listen on another shard.
#[derive(Clone, Copy, Debug)]
pub struct Forward<'a> {
    /// The connection that published it, on the shard it comes from; `None` where none is to wait for
    /// those who hear it.
    pub publisher: Option<ConnectionId>,
    /// The publisher wants to know if nobody takes it.
    pub asks: bool,
    /// The subject that listeners are looked up by.
    pub subject: &'a str,
    /// The message.
    pub message: MessageView<'a>,
    pub(super) audience: Audience<'a>,
    pub(super) vhost: &'a str,
}

/// Who of those who listen on the other shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audience<'a> {
    /// All outside of groups, and queues.
    All,
    /// One of a group. Where it has no member left there, the message may be handed on once: not if
    /// it was already.
    Group { name: &'a str, was_handed_on: bool },
}

const ASKS: u8 = 1;
const HAS_PUBLISHER: u8 = 2;
const TO_GROUP: u8 = 4;
const WAS_HANDED_ON: u8 = 8;
const PERSISTENT: u8 = 16;
const ANNOTATED: u8 = 32;
const TTL_REMOVED: u8 = 64;
const FURTHER_KEYS_REMOVED: u8 = 128;

impl<'a> Forward<'a> {
    pub(super) fn new(
        publisher: Option<ConnectionId>,
        asks: bool,
        (vhost, subject): (&'a str, &'a str),
        audience: Audience<'a>,
        message: &MessageView<'a>,
    ) -> Forward<'a> {
        Forward { publisher, asks, subject, message: *message, audience, vhost }
    }

    /// Appends its bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        let Forward { publisher, asks, subject, message, audience, vhost } = self;
        let annotations = message.annotations;
        let is_annotated = *annotations != NO_ANNOTATIONS;
        let (is_group, was_handed_on) = match audience {
            Audience::All => (false, false),
            Audience::Group { was_handed_on, .. } => (true, *was_handed_on),
        };
        let flags = u8::from(*asks) * ASKS
            + u8::from(publisher.is_some()) * HAS_PUBLISHER
            + u8::from(is_group) * TO_GROUP
            + u8::from(was_handed_on) * WAS_HANDED_ON
            + u8::from(message.persistent) * PERSISTENT
            + u8::from(is_annotated) * ANNOTATED
            + u8::from(annotations.ttl_removed) * TTL_REMOVED
            + u8::from(annotations.further_keys_removed) * FURTHER_KEYS_REMOVED;
        let mut writer = Writer(out);
        writer.u8(flags);
        writer.u8(message.format as u8);
        if let Some(publisher) = publisher {
            writer.u32(publisher.0);
        }
        if let Audience::Group { name, .. } = audience {
            writer.text(name);
        }
        writer.text(vhost);
        writer.text(subject);
        writer.text(message.exchange);
        // Most are published with the very key that listeners are looked up by.
        let key = (message.routing_key != *subject).then_some(message.routing_key);
        writer.option(key, |writer, key| writer.text(key));
        writer.bytes(message.properties);
        writer.bytes(message.body);
        if is_annotated {
            writer.u32(annotations.delivery_count);
            writer.bool(annotations.delayed);
            write_deaths(&mut writer, &annotations.deaths);
        }
    }

    /// Takes the bytes apart; `annotations` is room for what the broker knows about the message.
    pub fn parse(
        bytes: &'a [u8],
        annotations: &'a mut Annotations,
    ) -> Result<Forward<'a>, Malformed> {
        let mut reader = Reader(bytes);
        let flags = reader.u8()?;
        let format = Format::of(reader.u8()?)?;
        let has = |flag: u8| flags & flag != 0;
        let publisher = if has(HAS_PUBLISHER) { Some(ConnectionId(reader.u32()?)) } else { None };
        let audience = if has(TO_GROUP) {
            Audience::Group { name: reader.text()?, was_handed_on: has(WAS_HANDED_ON) }
        } else {
            Audience::All
        };
        let vhost = reader.text()?;
        let subject = reader.text()?;
        let exchange = reader.text()?;
        let key = reader.option(Reader::text)?;
        let properties = reader.bytes()?;
        let body = reader.bytes()?;
        *annotations = Annotations::default();
        if has(ANNOTATED) {
            annotations.delivery_count = reader.u32()?;
            annotations.delayed = reader.bool()?;
            annotations.deaths = read_deaths(&mut reader)?;
            annotations.ttl_removed = has(TTL_REMOVED);
            annotations.further_keys_removed = has(FURTHER_KEYS_REMOVED);
        }
        reader.end()?;
        let message = MessageView {
            exchange,
            routing_key: key.unwrap_or(subject),
            format,
            properties,
            body,
            persistent: has(PERSISTENT),
            annotations,
        };
        Ok(Forward { publisher, asks: has(ASKS), subject, message, audience, vhost })
    }
}
