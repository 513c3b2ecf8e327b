//! A message as it is kept: one blob, the same in memory and in the journal.
//!
//! ```text
//! flags u8 | format u8 | priority u8 | exchange length u8 | further keys u8 | 0 u8
//! | key length u16 | properties length u32 | body length u32 | time to live in microseconds u64
//! | exchange | key | further keys, each length u16 + text | properties | body | changed | from | deaths
//! ```

use super::blob::Encoded;
use crate::interface::message::NO_ANNOTATIONS;
use crate::storage::codec::{Malformed, Reader, Writer};
use crate::{Annotations, Content, Death, DeathReason, Format, MessageView, Publish, Time};
use bytes::Bytes;
use std::time::Duration;

const PERSISTENT: u8 = 1;
const DEAD: u8 = 2;
const TTL_REMOVED: u8 = 4;
const FURTHER_KEYS_REMOVED: u8 = 8;
const DELAYED: u8 = 16;
const CHANGED: u8 = 32;
const FROM: u8 = 64;
const KNOWN_FLAGS: u8 =
    PERSISTENT | DEAD | TTL_REMOVED | FURTHER_KEYS_REMOVED | DELAYED | CHANGED | FROM;
const NO_TTL: u64 = u64::MAX;
/// Bytes before the exchange's name.
const FIXED_BYTES: usize = 24;

/// A message on its way into queues, borrowed from wherever it comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incoming<'a> {
    pub(crate) exchange: &'a str,
    pub(crate) routing_key: &'a str,
    pub(crate) also_to: &'a [&'a str],
    pub(crate) content: Content<'a>,
    /// It may have been delivered before, by way of where it comes from.
    pub(crate) redelivered: bool,
    /// Dead-letter history, where it has one.
    pub(crate) annotations: &'a Annotations,
    /// When it was sent, where that was before now.
    pub(crate) sent: Option<Time>,
    /// The client that published it, where its queues are found only later. What is in a queue does not
    /// say.
    pub(crate) from: Option<&'a str>,
}

impl<'a> Incoming<'a> {
    /// What a publisher hands in.
    #[inline]
    pub(crate) fn of(publish: &Publish<'a>) -> Incoming<'a> {
        Incoming {
            exchange: publish.exchange,
            routing_key: publish.routing_key,
            also_to: publish.also_to,
            content: publish.content,
            redelivered: false,
            annotations: &NO_ANNOTATIONS,
            sent: None,
            from: None,
        }
    }

    /// When its own time to live ends, if it has one. One of 0 is for a consumer that can take the message as
    /// it comes.
    #[inline]
    pub(crate) fn expires(&self, now: Time) -> Option<Time> {
        let ttl = self.content.ttl?;
        Some(self.sent.filter(|_| !ttl.is_zero()).unwrap_or(now).plus(ttl))
    }

    /// Whether its time to live has passed since it was sent: no consumer gets it.
    #[inline]
    pub(crate) fn is_late(&self, now: Time) -> bool {
        self.sent.is_some() && self.has_run_out(now)
    }

    #[cold]
    fn has_run_out(&self, now: Time) -> bool {
        self.content.ttl.is_some_and(|ttl| !ttl.is_zero())
            && self.expires(now).is_some_and(|at| at <= now)
    }

    /// As a delivery shows it.
    #[inline]
    pub(crate) fn view(&self) -> MessageView<'a> {
        MessageView {
            exchange: self.exchange,
            routing_key: self.routing_key,
            format: self.content.format,
            properties: self.content.properties,
            body: self.content.body,
            shared: self.content.shared,
            persistent: self.content.persistent,
            priority: self.content.priority,
            ttl: self.content.ttl,
            annotations: self.annotations,
        }
    }

    /// Makes the blob, in a buffer that is empty.
    pub(crate) fn encode(&self, out: &'a mut Vec<u8>) -> Encoded<'a> {
        let content = &self.content;
        debug_assert!(out.is_empty(), "a blob is all there is in its buffer");
        debug_assert!(content.shared.is_none_or(|shared| **shared == *content.body));
        let dead = !self.annotations.deaths.is_empty();
        let flags = u8::from(content.persistent) * PERSISTENT
            + u8::from(dead) * DEAD
            + u8::from(self.annotations.ttl_removed) * TTL_REMOVED
            + u8::from(self.annotations.further_keys_removed) * FURTHER_KEYS_REMOVED
            + u8::from(self.annotations.delayed) * DELAYED
            + u8::from(!self.annotations.changed.is_empty()) * CHANGED
            + u8::from(self.from.is_some()) * FROM;
        let byte = |length: usize| u8::try_from(length).expect("names were checked to fit a byte");
        let pair = |length: usize| u16::try_from(length).expect("keys were checked to be short");
        let word = |length: usize| u32::try_from(length).expect("bodies were checked to be small");
        let mut fixed = [0; FIXED_BYTES];
        fixed[0] = flags;
        fixed[1] = content.format.0;
        fixed[2] = content.priority;
        fixed[3] = byte(self.exchange.len());
        fixed[4] = byte(self.also_to.len());
        fixed[6..8].copy_from_slice(&pair(self.routing_key.len()).to_le_bytes());
        fixed[8..12].copy_from_slice(&word(content.properties.len()).to_le_bytes());
        fixed[12..16].copy_from_slice(&word(content.body.len()).to_le_bytes());
        fixed[16..].copy_from_slice(&content.ttl.map_or(NO_TTL, micros).to_le_bytes());
        out.extend_from_slice(&fixed);
        out.extend_from_slice(self.exchange.as_bytes());
        out.extend_from_slice(self.routing_key.as_bytes());
        for key in self.also_to {
            out.extend_from_slice(&pair(key.len()).to_le_bytes());
            out.extend_from_slice(key.as_bytes());
        }
        out.extend_from_slice(content.properties);
        let body_at = out.len();
        if content.shared.is_none() {
            out.extend_from_slice(content.body);
        }
        if flags & CHANGED != 0 {
            Writer(out).bytes(&self.annotations.changed);
        }
        if let Some(from) = self.from {
            Writer(out).text(from);
        }
        if dead {
            write_deaths(&mut Writer(out), &self.annotations.deaths);
        }
        Encoded { bytes: out, body: content.shared.map(|body| (body_at, body)) }
    }
}

/// A duration as records have it; the longest one there is stands for none.
fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(NO_TTL - 1)
}

/// A stored message, taken apart.
#[derive(Clone, Debug)]
pub(crate) struct Stored<'a> {
    pub(crate) exchange: &'a str,
    pub(crate) routing_key: &'a str,
    further_keys: u8,
    further: &'a [u8],
    pub(crate) content: Content<'a>,
    changed: &'a [u8],
    /// The client that published it, if that is known.
    pub(crate) from: Option<&'a str>,
    deaths: &'a [u8],
    flags: u8,
}

impl<'a> Stored<'a> {
    /// Takes a blob apart.
    #[inline]
    pub(crate) fn parse(blob: &'a [u8]) -> Result<Stored<'a>, Malformed> {
        Stored::parse_with(blob, None)
    }

    /// Takes one apart whose body may be somewhere else.
    #[inline(always)]
    pub(super) fn parse_with(
        blob: &'a [u8],
        shared: Option<&'a Bytes>,
    ) -> Result<Stored<'a>, Malformed> {
        let mut reader = Reader(blob);
        let fixed: &[u8; 8] = reader.take(8)?.try_into().expect("eight bytes were taken");
        let [flags, format, priority, exchange_length, further_keys, _, low, high] = *fixed;
        let key_length = u16::from_le_bytes([low, high]);
        if flags & !KNOWN_FLAGS != 0 {
            return Err(format!("message flags {flags:#x} are unknown"));
        }
        let format = Format(format);
        let properties_length = reader.u32()?;
        let body_length = reader.u32()?;
        let ttl = reader.u64()?;
        let exchange = text(reader.take(exchange_length.into())?)?;
        let routing_key = text(reader.take(key_length.into())?)?;
        let mut rest = reader;
        for _ in 0..further_keys {
            take_further_key(&mut reader)?;
        }
        let further = rest.take(rest.0.len() - reader.0.len())?;
        let properties = reader.take(properties_length as usize)?;
        let body = match shared {
            None => reader.take(body_length as usize)?,
            Some(shared) => shared,
        };
        let content = Content {
            format,
            properties,
            body,
            shared,
            persistent: flags & PERSISTENT != 0,
            priority,
            ttl: (ttl != NO_TTL).then(|| Duration::from_micros(ttl)),
        };
        let changed = if flags & CHANGED == 0 { &[] } else { reader.bytes()? };
        let from = if flags & FROM == 0 { None } else { Some(reader.text()?) };
        if flags & DEAD == 0 && !reader.0.is_empty() {
            return Err(format!("{} bytes too many after a message", reader.0.len()));
        }
        let deaths = reader.0;
        Ok(Stored {
            exchange,
            routing_key,
            further_keys,
            further,
            content,
            changed,
            from,
            deaths,
            flags,
        })
    }

    /// The name of its queue, if it was published to that one by its name alone.
    pub(crate) fn queue_name(&self) -> Option<String> {
        let is_by_name = self.exchange.is_empty() && self.further_keys == 0;
        let name = Some(self.routing_key).filter(|name| is_by_name && !name.is_empty());
        name.map(str::to_owned)
    }

    /// Where in the blob the body begins.
    pub(crate) fn body_at(&self) -> usize {
        FIXED_BYTES
            + self.exchange.len()
            + self.routing_key.len()
            + self.further.len()
            + self.content.properties.len()
    }

    /// Checks what [`Stored::parse`] leaves unread: the further routing keys and the deaths.
    pub(crate) fn check(&self) -> Result<(), Malformed> {
        self.read_further_keys()?;
        self.read_deaths()?;
        Ok(())
    }

    fn read_further_keys(&self) -> Result<Vec<&'a str>, Malformed> {
        let mut reader = Reader(self.further);
        let read_key = |_| text(take_further_key(&mut reader)?);
        (0..self.further_keys).map(read_key).collect()
    }

    #[inline]
    fn read_deaths(&self) -> Result<Vec<Death>, Malformed> {
        if self.flags & DEAD == 0 {
            return Ok(Vec::new());
        }
        let mut reader = Reader(self.deaths);
        let deaths = read_deaths(&mut reader)?;
        reader.end()?;
        Ok(deaths)
    }

    /// The further routing keys, which were checked.
    pub(crate) fn also_to(&self) -> Vec<&'a str> {
        self.read_further_keys().expect("messages in memory were checked")
    }

    /// On its way into queues again; `also_to` are its further keys.
    #[inline]
    pub(crate) fn incoming<'b>(
        &'b self,
        also_to: &'b [&'b str],
        redelivered: bool,
        annotations: &'b Annotations,
    ) -> Incoming<'b> {
        Incoming {
            exchange: self.exchange,
            routing_key: self.routing_key,
            also_to,
            content: self.content,
            redelivered,
            annotations,
            sent: None,
            from: None,
        }
    }

    /// What the broker knows about it, which was checked.
    #[inline]
    pub(crate) fn annotations(&self, delivery_count: u32) -> Annotations {
        Annotations {
            delivery_count,
            deaths: self.read_deaths().expect("messages in memory were checked"),
            ttl_removed: self.flags & TTL_REMOVED != 0,
            further_keys_removed: self.flags & FURTHER_KEYS_REMOVED != 0,
            delayed: self.flags & DELAYED != 0,
            dropped: 0,
            changed: Bytes::copy_from_slice(self.changed),
        }
    }

    /// As a delivery shows it.
    #[inline]
    pub(crate) fn view<'b>(&'b self, annotations: &'b Annotations) -> MessageView<'b> {
        self.incoming(&[], false, annotations).view()
    }
}

/// One of the further routing keys.
fn take_further_key<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Malformed> {
    let length = [reader.u8()?, reader.u8()?];
    reader.take(u16::from_le_bytes(length).into())
}

#[inline]
fn text(bytes: &[u8]) -> Result<&str, Malformed> {
    std::str::from_utf8(bytes).map_err(|error| error.to_string())
}

pub(crate) fn write_deaths(writer: &mut Writer<'_>, deaths: &[Death]) {
    writer.varint(deaths.len() as u64);
    for death in deaths {
        writer.u8(death.reason as u8);
        writer.text(&death.queue);
        writer.text(&death.exchange);
        writer.varint(death.routing_keys.len() as u64);
        for key in &death.routing_keys {
            writer.text(key);
        }
        writer.varint(death.count);
        writer.u64(death.time.0);
        writer.put(&death.original_ttl.map(micros));
    }
}

pub(crate) fn read_deaths(reader: &mut Reader<'_>) -> Result<Vec<Death>, Malformed> {
    let mut deaths = Vec::new();
    for _ in 0..reader.count()? {
        let reason = match reader.u8()? {
            0 => DeathReason::Rejected,
            1 => DeathReason::Expired,
            2 => DeathReason::MaxLength,
            3 => DeathReason::DeliveryLimit,
            other => return Err(format!("reason of death {other} is unknown")),
        };
        let queue = reader.text()?.to_owned();
        let exchange = reader.text()?.to_owned();
        let count = reader.count()?;
        let keys = (0..count).map(|_| Ok(reader.text()?.to_owned()));
        let routing_keys = keys.collect::<Result<_, Malformed>>()?;
        let count = reader.varint()?;
        let time = Time(reader.u64()?);
        let original_ttl = reader.get()?;
        deaths.push(Death { reason, queue, exchange, routing_keys, count, time, original_ttl });
    }
    Ok(deaths)
}
