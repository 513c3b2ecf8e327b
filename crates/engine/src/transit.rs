//! Messages on their way from one shard to another: their bytes.
//!
//! The bytes never leave the process, so their layout has no version.

use crate::codec::{Malformed, Reader, Writer};
use crate::queue::stored::{NO_ANNOTATIONS, read_deaths, write_deaths};
use crate::{Annotations, Content, Format, MessageView, Publish};
use std::time::Duration;

const PERSISTENT: u8 = 1;
const ANNOTATED: u8 = 2;
const TTL_REMOVED: u8 = 4;
const FURTHER_KEYS_REMOVED: u8 = 8;
const DELAYED: u8 = 16;
const MANDATORY: u8 = 32;
const HAS_TTL: u8 = 64;
const HAS_DELAY: u8 = 128;

impl<'a> MessageView<'a> {
    /// Appends its bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        let annotations = self.annotations;
        let is_annotated = *annotations != NO_ANNOTATIONS;
        let flags = u8::from(self.persistent) * PERSISTENT
            + u8::from(is_annotated) * ANNOTATED
            + u8::from(annotations.ttl_removed) * TTL_REMOVED
            + u8::from(annotations.further_keys_removed) * FURTHER_KEYS_REMOVED
            + u8::from(annotations.delayed) * DELAYED;
        let mut writer = Writer(out);
        writer.u8(flags);
        writer.u8(self.format as u8);
        writer.text(self.exchange);
        writer.text(self.routing_key);
        writer.bytes(self.properties);
        writer.bytes(self.body);
        if is_annotated {
            writer.u32(annotations.delivery_count);
            write_deaths(&mut writer, &annotations.deaths);
        }
    }

    /// Takes the bytes apart; `annotations` is room for what the broker knows about the message.
    pub fn parse(
        bytes: &'a [u8],
        annotations: &'a mut Annotations,
    ) -> Result<MessageView<'a>, Malformed> {
        let mut reader = Reader(bytes);
        let flags = reader.u8()?;
        let has = |flag: u8| flags & flag != 0;
        let format = Format::of(reader.u8()?)?;
        let exchange = reader.text()?;
        let routing_key = reader.text()?;
        let properties = reader.bytes()?;
        let body = reader.bytes()?;
        *annotations = Annotations::default();
        if has(ANNOTATED) {
            *annotations = Annotations {
                delivery_count: reader.u32()?,
                deaths: read_deaths(&mut reader)?,
                ttl_removed: has(TTL_REMOVED),
                further_keys_removed: has(FURTHER_KEYS_REMOVED),
                delayed: has(DELAYED),
            };
        }
        reader.end()?;
        let persistent = has(PERSISTENT);
        Ok(MessageView { exchange, routing_key, format, properties, body, persistent, annotations })
    }
}

impl<'a> Publish<'a> {
    /// Appends its bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        let Content { format, properties, body, persistent, priority, ttl } = self.content;
        let flags = u8::from(persistent) * PERSISTENT
            + u8::from(self.mandatory) * MANDATORY
            + u8::from(ttl.is_some()) * HAS_TTL
            + u8::from(self.delay.is_some()) * HAS_DELAY;
        let mut writer = Writer(out);
        writer.u8(flags);
        writer.u8(format as u8);
        writer.u8(priority);
        for span in [ttl, self.delay].into_iter().flatten() {
            writer.u64(u64::try_from(span.as_micros()).unwrap_or(u64::MAX));
        }
        writer.text(self.exchange);
        writer.text(self.routing_key);
        writer.varint(self.also_to.len() as u64);
        for key in self.also_to {
            writer.text(key);
        }
        writer.bytes(properties);
        writer.bytes(body);
    }

    /// Takes the bytes apart; `also_to` is room for further routing keys.
    pub fn parse(bytes: &'a [u8], also_to: &'a mut Vec<&'a str>) -> Result<Publish<'a>, Malformed> {
        let mut reader = Reader(bytes);
        let flags = reader.u8()?;
        let has = |flag: u8| flags & flag != 0;
        let format = Format::of(reader.u8()?)?;
        let priority = reader.u8()?;
        let mut span = |flag: u8| -> Result<Option<Duration>, Malformed> {
            if has(flag) { reader.u64().map(Duration::from_micros).map(Some) } else { Ok(None) }
        };
        let (ttl, delay) = (span(HAS_TTL)?, span(HAS_DELAY)?);
        let exchange = reader.text()?;
        let routing_key = reader.text()?;
        for _ in 0..reader.count()? {
            also_to.push(reader.text()?);
        }
        let (properties, body) = (reader.bytes()?, reader.bytes()?);
        reader.end()?;
        let persistent = has(PERSISTENT);
        let content = Content { format, properties, body, persistent, priority, ttl };
        let mandatory = has(MANDATORY);
        Ok(Publish { exchange, routing_key, also_to, mandatory, delay, content })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Death, DeathReason, Time};

    #[test]
    fn publishes_come_back() {
        let content = Content {
            format: Format::Amqp091,
            properties: b"properties",
            body: b"body",
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
            delay: Some(Duration::from_secs(1)),
            content,
        };
        let content = Content { ttl: None, persistent: false, body: b"", ..content };
        let plain =
            Publish { exchange: "", also_to: &[], mandatory: false, delay: None, content, ..full };
        for publish in [full, plain] {
            let mut bytes = Vec::new();
            publish.write(&mut bytes);
            let mut keys = Vec::new();
            let read = Publish::parse(&bytes, &mut keys).unwrap();
            assert_eq!(format!("{read:?}"), format!("{publish:?}"));
            for cut in 0..bytes.len() {
                assert!(Publish::parse(&bytes[..cut], &mut Vec::new()).is_err(), "{cut}");
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
        };
        for annotations in [Annotations::default(), known] {
            let message = MessageView {
                exchange: "e",
                routing_key: "a subject that is longer than keys may be",
                format: Format::Nats,
                properties: b"",
                body: b"body",
                persistent: false,
                annotations: &annotations,
            };
            let mut bytes = Vec::new();
            message.write(&mut bytes);
            let mut room = Annotations::default();
            let read = MessageView::parse(&bytes, &mut room).unwrap();
            assert_eq!(format!("{read:?}"), format!("{message:?}"));
        }
    }
}
