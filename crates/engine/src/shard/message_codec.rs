//! Messages on their way from one shard to another: their bytes.
//!
//! The bytes never leave the process, so their layout has no version.

use crate::interface::message::{BODY_APART, NO_ANNOTATIONS};
use crate::queue::stored::{read_deaths, write_deaths};
use crate::storage::codec::{Malformed, Reader, Writer};
use crate::{Annotations, Content, MessageView, Publish, Retain, Time, TransactionId};
use bytes::Bytes;

// Flags of both.
const PERSISTENT: u8 = 1;

// Of a message on its way out.
const ANNOTATED: u8 = 2;
const TTL_REMOVED: u8 = 4;
const FURTHER_KEYS_REMOVED: u8 = 8;
const DELAYED: u8 = 16;
const LIVES_FOR: u8 = 32;
const HAS_PRIORITY: u8 = 64;

// Of one on its way in.
const MANDATORY: u8 = 2;
const HAS_TTL: u8 = 4;
const HAS_NOT_BEFORE: u8 = 8;
const IN_TRANSACTION: u8 = 16;
const RETAINED: u8 = 32;
const RETAINED_ONLY: u8 = 64;

/// The body that comes next, or goes along.
#[inline(always)]
fn body_of<'a>(
    reader: &mut Reader<'a>,
    is_apart: bool,
    apart: Option<&'a Bytes>,
) -> Result<(&'a [u8], Option<&'a Bytes>), Malformed> {
    if !is_apart {
        return Ok((reader.bytes()?, None));
    }
    let body = apart.ok_or_else(|| "a body that goes along is not there".to_owned())?;
    Ok((body, Some(body)))
}

impl<'a> MessageView<'a> {
    /// Appends its bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        let annotations = self.annotations;
        let is_annotated = *annotations != NO_ANNOTATIONS;
        let flags = u8::from(self.persistent) * PERSISTENT
            + u8::from(is_annotated) * ANNOTATED
            + u8::from(annotations.ttl_removed) * TTL_REMOVED
            + u8::from(annotations.further_keys_removed) * FURTHER_KEYS_REMOVED
            + u8::from(annotations.delayed) * DELAYED
            + u8::from(self.ttl.is_some()) * LIVES_FOR
            + u8::from(self.priority > 0) * HAS_PRIORITY
            + u8::from(self.shared.is_some()) * BODY_APART;
        let mut writer = Writer(out);
        writer.u8(flags);
        writer.put(&self.format);
        if let Some(ttl) = self.ttl {
            writer.put(&ttl);
        }
        if self.priority > 0 {
            writer.u8(self.priority);
        }
        writer.text(self.exchange);
        writer.text(self.routing_key);
        writer.bytes(self.properties);
        if self.shared.is_none() {
            writer.bytes(self.body);
        }
        if is_annotated {
            writer.u32(annotations.delivery_count);
            writer.varint(annotations.dropped);
            write_deaths(&mut writer, &annotations.deaths);
            writer.bytes(&annotations.changed);
        }
    }

    /// Takes the bytes apart; `annotations` is room for what the broker adds to the message, `apart`
    /// the body where that goes along.
    pub fn parse(
        bytes: &'a [u8],
        annotations: &'a mut Annotations,
        apart: Option<&'a Bytes>,
    ) -> Result<MessageView<'a>, Malformed> {
        let mut reader = Reader(bytes);
        let flags = reader.u8()?;
        let has = |flag: u8| flags & flag != 0;
        let format = reader.get()?;
        let ttl = if has(LIVES_FOR) { Some(reader.get()?) } else { None };
        let priority = if has(HAS_PRIORITY) { reader.u8()? } else { 0 };
        let (exchange, routing_key) = reader.get()?;
        let properties = reader.bytes()?;
        let (body, shared) = body_of(&mut reader, has(BODY_APART), apart)?;
        *annotations = Annotations::default();
        if has(ANNOTATED) {
            *annotations = Annotations {
                delivery_count: reader.u32()?,
                dropped: reader.varint()?,
                deaths: read_deaths(&mut reader)?,
                ttl_removed: has(TTL_REMOVED),
                further_keys_removed: has(FURTHER_KEYS_REMOVED),
                delayed: has(DELAYED),
                changed: Bytes::copy_from_slice(reader.bytes()?),
            };
        }
        reader.end()?;
        let persistent = has(PERSISTENT);
        Ok(MessageView {
            exchange,
            routing_key,
            format,
            properties,
            body,
            shared,
            persistent,
            priority,
            ttl,
            annotations,
        })
    }
}

impl<'a> Publish<'a> {
    /// Appends its bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        let Content { format, properties, body, shared, persistent, priority, ttl } = self.content;
        let flags = u8::from(persistent) * PERSISTENT
            + u8::from(self.mandatory) * MANDATORY
            + u8::from(ttl.is_some()) * HAS_TTL
            + u8::from(self.not_before.is_some()) * HAS_NOT_BEFORE
            + u8::from(self.transaction.is_some()) * IN_TRANSACTION
            + u8::from(self.retain == Retain::Yes) * RETAINED
            + u8::from(self.retain == Retain::Only) * RETAINED_ONLY
            + u8::from(shared.is_some()) * BODY_APART;
        let mut writer = Writer(out);
        writer.u8(flags);
        writer.put(&format);
        writer.u8(priority);
        if let Some(ttl) = ttl {
            writer.put(&ttl);
        }
        if let Some(Time(at)) = self.not_before {
            writer.u64(at);
        }
        if let Some(TransactionId(id)) = self.transaction {
            writer.u64(id);
        }
        writer.text(self.exchange);
        writer.text(self.routing_key);
        writer.varint(self.also_to.len() as u64);
        for key in self.also_to {
            writer.text(key);
        }
        writer.bytes(properties);
        if shared.is_none() {
            writer.bytes(body);
        }
    }

    /// Takes the bytes apart; `also_to` is room for further routing keys, `apart` the body where that goes
    /// along.
    pub fn parse(
        bytes: &'a [u8],
        also_to: &'a mut Vec<&'a str>,
        apart: Option<&'a Bytes>,
    ) -> Result<Publish<'a>, Malformed> {
        let mut reader = Reader(bytes);
        let flags = reader.u8()?;
        let has = |flag: u8| flags & flag != 0;
        let (format, priority) = reader.get()?;
        let ttl = if has(HAS_TTL) { Some(reader.get()?) } else { None };
        let not_before = if has(HAS_NOT_BEFORE) { Some(Time(reader.u64()?)) } else { None };
        let transaction =
            if has(IN_TRANSACTION) { Some(TransactionId(reader.u64()?)) } else { None };
        let (exchange, routing_key) = reader.get()?;
        for _ in 0..reader.count()? {
            also_to.push(reader.text()?);
        }
        let properties = reader.bytes()?;
        let (body, shared) = body_of(&mut reader, has(BODY_APART), apart)?;
        reader.end()?;
        let persistent = has(PERSISTENT);
        let content = Content { format, properties, body, shared, persistent, priority, ttl };
        let mandatory = has(MANDATORY);
        let retain = match (has(RETAINED), has(RETAINED_ONLY)) {
            (true, _) => Retain::Yes,
            (_, true) => Retain::Only,
            _ => Retain::No,
        };
        Ok(Publish {
            exchange,
            routing_key,
            also_to,
            mandatory,
            retain,
            not_before,
            transaction,
            content,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::is_body_apart;
    use crate::{Death, DeathReason, Format, Time};
    use std::time::Duration;

    #[test]
    fn publishes_come_back() {
        let content = Content {
            format: Format(1),
            properties: b"properties",
            body: b"body",
            shared: None,
            persistent: true,
            priority: 9,
            ttl: Some(Duration::from_millis(5)),
        };
        let keys = ["one", ""];
        let full = Publish {
            exchange: "exchange",
            routing_key: "key",
            also_to: &keys,
            mandatory: true,
            retain: Retain::Yes,
            not_before: Some(Time(17)),
            transaction: Some(TransactionId(3)),
            content,
        };
        let content = Content { ttl: None, persistent: false, body: b"", ..content };
        let plain = Publish {
            exchange: "",
            also_to: &[],
            retain: Retain::Only,
            not_before: None,
            transaction: None,
            content,
            ..full
        };
        let large = Bytes::from_static(b"large");
        let content = Content { body: &large, shared: Some(&large), ..full.content };
        let shared = Publish { content, ..full };
        for (publish, apart) in [(full, None), (plain, None), (shared, Some(&large))] {
            let mut bytes = Vec::new();
            publish.write(&mut bytes);
            assert_eq!(is_body_apart(&bytes), apart.is_some());
            let mut keys = Vec::new();
            let read = Publish::parse(&bytes, &mut keys, apart).unwrap();
            assert_eq!(format!("{read:?}"), format!("{publish:?}"));
            for cut in 0..bytes.len() {
                assert!(Publish::parse(&bytes[..cut], &mut Vec::new(), apart).is_err(), "{cut}");
            }
        }
    }

    #[test]
    fn messages_come_back_with_what_the_broker_knows() {
        let death = Death {
            reason: DeathReason::Expired,
            queue: "q".to_owned(),
            exchange: "x".to_owned(),
            routing_keys: vec!["k".to_owned()],
            count: 2,
            time: Time(3),
            original_ttl: None,
        };
        let known = Annotations {
            delivery_count: 4,
            deaths: vec![death],
            ttl_removed: true,
            further_keys_removed: false,
            delayed: true,
            dropped: 300,
            changed: Bytes::from_static(b"changed"),
        };
        for annotations in [Annotations::default(), known] {
            let message = MessageView {
                exchange: "e",
                routing_key: "a subject that is longer than keys may be",
                format: Format(2),
                properties: b"",
                body: b"body",
                shared: None,
                persistent: false,
                priority: 3,
                ttl: Some(Duration::from_millis(5)),
                annotations: &annotations,
            };
            let large = Bytes::from_static(b"large");
            let (priority, ttl) = (0, None);
            let shared =
                MessageView { body: &large, shared: Some(&large), priority, ttl, ..message };
            for (message, apart) in [(message, None), (shared, Some(&large))] {
                let mut bytes = Vec::new();
                message.write(&mut bytes);
                assert_eq!(is_body_apart(&bytes), apart.is_some());
                let mut room = Annotations::default();
                let read = MessageView::parse(&bytes, &mut room, apart).unwrap();
                assert_eq!(format!("{read:?}"), format!("{message:?}"));
            }
        }
    }
}
