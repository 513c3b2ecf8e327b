//! What the engine keeps of an AMQP 1.0 message, and the message made of it again.
//!
//! Its properties, in [AMQP 1.0's format](crate::format::AMQP10):
//!
//! ```text
//! flags u8 | body kind u8 | priority u8 | time to live in milliseconds u32, most significant octet first
//! | message annotations, properties, application properties and a footer before the body, as published
//! ```
//!
//! Its body is the octets of the one data section, which is what other protocols call a body; or all
//! sections of the body as they were published, with the footer behind them. The header is made anew for
//! each delivery, delivery annotations end here (part 3, 3.2.2).

use super::codec::{
    Body, BodyKind, Header, Limits, Malformed, Map, Properties, SectionKind, Sections, Value, wire,
};
use angarium_engine::{Content, MessageView};
use std::time::Duration;

/// Octets before the sections.
const FIXED_BYTES: usize = 7;
/// The header has a time to live.
const HAS_TTL: u8 = 1;
/// The header has a priority.
const HAS_PRIORITY: u8 = 2;
/// The priority of a message that has none (part 3, 3.2.1).
pub(super) const PRIORITY_DEFAULT: u8 = 4;
/// Octets of a body of lists or of a value beyond which it is not translated for other protocols.
const TRANSLATED_BYTES_MAX: usize = 1 << 20;

/// What a body is to other protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum KeptBody {
    /// The body that is kept is the octets of the one data section.
    Octets = 0,
    /// Sections that are octets, or no body.
    Sections = 1,
    /// A section whose value is text.
    Text = 2,
    /// Sections whose lists or value are shown as JSON.
    Structure = 3,
    /// The same, too large to be translated.
    LargeStructure = 4,
}

impl KeptBody {
    const ALL: [KeptBody; 5] = [
        KeptBody::Octets,
        KeptBody::Sections,
        KeptBody::Text,
        KeptBody::Structure,
        KeptBody::LargeStructure,
    ];

    fn of(sections: &Sections<'_>) -> Result<KeptBody, Malformed> {
        let Some(Body { kind, first, count, end }) = sections.body else {
            return Ok(KeptBody::Sections);
        };
        let structure = match end - first.start > TRANSLATED_BYTES_MAX {
            true => KeptBody::LargeStructure,
            false => KeptBody::Structure,
        };
        Ok(match kind {
            BodyKind::Data if count == 1 && end == sections.message().len() => KeptBody::Octets,
            BodyKind::Data => KeptBody::Sections,
            BodyKind::Sequence => {
                sections.sequences().try_for_each(|list| list.map(|_| ()))?;
                structure
            }
            BodyKind::Value => match sections.amqp_value()? {
                Some(Value::Binary(_) | Value::Null) | None => KeptBody::Sections,
                Some(Value::String(_) | Value::Symbol(_)) => KeptBody::Text,
                Some(_) => structure,
            },
        })
    }
}

/// A published message whose sections were checked, each once.
pub(super) struct Taken<'m> {
    /// What is kept of it.
    pub(super) content: Content<'m>,
    pub(super) properties: Properties<'m>,
    pub(super) annotations: Map<'m>,
}

/// Takes a published message; what is kept beside its body is written to `kept`. Reading that later finds no
/// error.
///
/// # Errors
/// A section that is not what it should be. The message is refused, the link goes on.
pub(super) fn take<'m>(
    sections: &Sections<'m>,
    kept: &'m mut Vec<u8>,
) -> Result<Taken<'m>, Malformed> {
    let header = sections.header()?;
    let annotations = sections.message_annotations()?;
    let properties = sections.properties()?;
    sections.application_properties()?;
    sections.footer()?;
    let content = content(sections, header, kept)?;
    Ok(Taken { content, properties, annotations })
}

/// What is kept of a published message.
fn content<'m>(
    sections: &Sections<'m>,
    header: Header,
    properties: &'m mut Vec<u8>,
) -> Result<Content<'m>, Malformed> {
    let kind = KeptBody::of(sections)?;
    let message = sections.message();
    let body_at = sections.body.map_or(message.len(), |body| body.first.start);
    let kept = [
        sections.message_annotations,
        sections.properties,
        sections.application_properties,
        sections.footer,
    ];
    let kept_at = kept.into_iter().flatten().map(|section| section.start).min();
    let kept_at = kept_at.unwrap_or(body_at).min(body_at);
    let has_priority = sections.header.is_some();
    let ttl = header.ttl.unwrap_or(0);
    let flags = if header.ttl.is_some() { HAS_TTL } else { 0 }
        + if has_priority { HAS_PRIORITY } else { 0 };
    properties.clear();
    properties.extend_from_slice(&[flags, kind as u8, header.priority]);
    properties.extend_from_slice(&ttl.to_be_bytes());
    properties.extend_from_slice(message.get(kept_at..body_at).unwrap_or_default());
    let body = match kind {
        KeptBody::Octets => sections.data().next().unwrap_or_default(),
        _ => message.get(body_at..).unwrap_or_default(),
    };
    Ok(Content {
        format: crate::format::AMQP10,
        properties,
        body,
        shared: None,
        persistent: header.durable,
        priority: header.priority,
        ttl: header.ttl.map(|millis| Duration::from_millis(millis.into())),
    })
}

/// The properties of a message in this format, taken apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept<'a> {
    pub(super) priority: Option<u8>,
    /// In milliseconds.
    pub(super) ttl: Option<u32>,
    pub(super) body: KeptBody,
    /// Annotations, properties, application properties and perhaps a footer, as they are encoded.
    pub(super) sections: &'a [u8],
}

impl<'a> Kept<'a> {
    /// Takes properties apart. Nothing, and a body of octets, where they are not in this format.
    #[inline]
    pub(super) fn of(properties: &'a [u8]) -> Kept<'a> {
        let nothing = Kept { priority: None, ttl: None, body: KeptBody::Octets, sections: &[] };
        let Some((fixed, sections)) = properties.split_first_chunk::<FIXED_BYTES>() else {
            return nothing;
        };
        let [flags, kind, priority, t0, t1, t2, t3] = *fixed;
        let Some(body) = KeptBody::ALL.get(usize::from(kind)).copied() else { return nothing };
        Kept {
            priority: (flags & HAS_PRIORITY != 0).then_some(priority),
            ttl: (flags & HAS_TTL != 0).then(|| u32::from_be_bytes([t0, t1, t2, t3])),
            body,
            sections,
        }
    }

    /// Its sections. They were checked when the message was taken; what is damaged since has none.
    pub(super) fn sections(&self) -> Sections<'a> {
        let limits = Limits { properties_bytes_max: usize::MAX };
        Sections::walk(self.sections, limits).unwrap_or_else(|_| {
            Sections::walk(&[], limits).expect("no sections at all are in order")
        })
    }

    /// The properties of this, with other sections.
    pub(super) fn encode(&self, fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let flags = if self.ttl.is_some() { HAS_TTL } else { 0 }
            + if self.priority.is_some() { HAS_PRIORITY } else { 0 };
        let mut properties = Vec::with_capacity(FIXED_BYTES + self.sections.len());
        let priority = self.priority.unwrap_or(PRIORITY_DEFAULT);
        properties.extend_from_slice(&[flags, self.body as u8, priority]);
        properties.extend_from_slice(&self.ttl.unwrap_or(0).to_be_bytes());
        fill(&mut properties);
        properties
    }
}

/// What the header of a delivery says beside what is kept with the message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivered {
    pub(super) durable: bool,
    /// Nobody had it before (`first-acquirer`).
    pub(super) is_first: bool,
    pub(super) delivery_count: u32,
}

impl Delivered {
    /// What a message's view says of its delivery.
    #[inline]
    pub(super) fn of(message: &MessageView<'_>, redelivered: bool) -> Delivered {
        let delivery_count = message.annotations.delivery_count;
        Delivered {
            durable: message.persistent,
            is_first: !redelivered && delivery_count == 0,
            delivery_count,
        }
    }
}

/// Appends what comes before the body that is kept: header, sections, and the head of the data section.
#[inline]
pub(super) fn put_before_body(
    out: &mut Vec<u8>,
    kept: &Kept<'_>,
    delivered: Delivered,
    body_bytes: usize,
) {
    put_header(out, kept, delivered);
    out.extend_from_slice(kept.sections);
    if kept.body == KeptBody::Octets {
        put_data_head(out, body_bytes);
    }
}

/// At most what a header and the head of a data section take.
pub(super) const HEADS_BYTES_MAX: usize = 32;

/// Appends the header section (part 3, 3.2.1).
#[inline]
fn put_header(out: &mut Vec<u8>, kept: &Kept<'_>, delivered: Delivered) {
    let boolean = |is_so| if is_so { wire::TRUE } else { wire::FALSE };
    let at = out.len();
    let code = SectionKind::Header as u8;
    out.extend_from_slice(&[wire::DESCRIBED, wire::SMALL_ULONG, code, wire::LIST8, 0, 5]);
    out.push(boolean(delivered.durable));
    match kept.priority {
        Some(priority) => out.extend_from_slice(&[wire::UBYTE, priority]),
        None => out.push(wire::NULL),
    }
    match kept.ttl {
        Some(ttl) => {
            out.push(wire::UINT);
            out.extend_from_slice(&ttl.to_be_bytes());
        }
        None => out.push(wire::NULL),
    }
    out.push(boolean(delivered.is_first));
    match u8::try_from(delivered.delivery_count) {
        Ok(0) => out.push(wire::UINT0),
        Ok(count) => out.extend_from_slice(&[wire::SMALL_UINT, count]),
        Err(_) => {
            out.push(wire::UINT);
            out.extend_from_slice(&delivered.delivery_count.to_be_bytes());
        }
    }
    out[at + 4] = (out.len() - at - 5) as u8;
}

/// Appends what a data section of that many octets begins with.
#[inline]
fn put_data_head(out: &mut Vec<u8>, bytes: usize) {
    out.extend_from_slice(&[wire::DESCRIBED, wire::SMALL_ULONG, SectionKind::Data as u8]);
    match u8::try_from(bytes) {
        Ok(short) => out.extend_from_slice(&[wire::BINARY8, short]),
        Err(_) => {
            out.push(wire::BINARY32);
            let long = u32::try_from(bytes).expect("bodies are below 4 GiB");
            out.extend_from_slice(&long.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amqp10::codec::{Field, Symbol, put_map_section, put_section};
    use crate::amqp10::payload;
    use angarium_engine::Annotations;

    const LIMITS: Limits = Limits { properties_bytes_max: 1 << 16 };

    fn message(header: Option<Header>, fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut message = Vec::new();
        if let Some(header) = header {
            header.write(&mut message);
        }
        put_map_section(&mut message, SectionKind::DeliveryAnnotations, |map| {
            map.put(&Symbol("x-opt-hop"), &1u32);
        });
        put_map_section(&mut message, SectionKind::MessageAnnotations, |map| {
            map.put(&Symbol("x-opt-jms-msg-type"), &5i8);
        });
        Properties { subject: Some("kind"), ..Properties::default() }.write(&mut message);
        fill(&mut message);
        message
    }

    /// Keeps a message, and delivers it: with another header and without delivery annotations.
    fn check(message: &[u8], kind: KeptBody, other_protocols: &[u8]) {
        let published = Sections::walk(message, LIMITS).expect("it is well-formed");
        let mut properties = Vec::new();
        let Taken { content, .. } = take(&published, &mut properties).expect("it is taken");
        let annotations = Annotations { delivery_count: 300, ..Annotations::default() };
        let view = MessageView {
            exchange: "",
            routing_key: "q",
            format: content.format,
            properties: content.properties,
            body: content.body,
            shared: None,
            persistent: content.persistent,
            priority: content.priority,
            ttl: content.ttl,
            annotations: &annotations,
        };
        assert_eq!(&*payload(&view), other_protocols);
        let kept = Kept::of(content.properties);
        assert_eq!(kept.body, kind);
        let mut delivered = Vec::new();
        put_before_body(&mut delivered, &kept, Delivered::of(&view, true), content.body.len());
        delivered.extend_from_slice(content.body);
        let sections = Sections::walk(&delivered, LIMITS).expect("it is well-formed");
        let header = published.header().expect("it was read before");
        assert_eq!(sections.header(), Ok(Header { delivery_count: 300, ..header }));
        assert_eq!(sections.delivery_annotations, None);
        let behind = |sections: &Sections<'_>, from: Option<usize>| {
            let from = from.expect("it has annotations");
            sections.message()[from..].to_vec()
        };
        let start = published.message_annotations.map(|section| section.start);
        let again = sections.message_annotations.map(|section| section.start);
        assert_eq!(behind(&sections, again), behind(&published, start));
    }

    #[test]
    fn messages_are_delivered_as_they_were_published() {
        let header = Header { durable: true, priority: 9, ttl: Some(70_000), ..Header::default() };
        for header in [None, Some(header), Some(Header::default())] {
            for size in [0, 1, 255, 256, 70_000] {
                let body = vec![7u8; size];
                let data = |out: &mut Vec<u8>| {
                    put_section(out, SectionKind::Data, &body.as_slice());
                };
                check(&message(header, data), KeptBody::Octets, &body);
            }
            let two = message(header, |out| {
                put_section(out, SectionKind::Data, &&b"ab"[..]);
                put_section(out, SectionKind::Data, &&b"c"[..]);
            });
            check(&two, KeptBody::Sections, b"abc");
            let with_footer = message(header, |out| {
                put_section(out, SectionKind::Data, &&b"ab"[..]);
                put_map_section(out, SectionKind::Footer, |map| {
                    map.put(&Symbol("sum"), &1u32);
                });
            });
            check(&with_footer, KeptBody::Sections, b"ab");
            let text = message(header, |out| put_section(out, SectionKind::Value, &"text"));
            check(&text, KeptBody::Text, b"text");
            let number = message(header, |out| put_section(out, SectionKind::Value, &7u32));
            check(&number, KeptBody::Structure, b"7");
            check(&message(header, |_| {}), KeptBody::Sections, b"");
        }
    }

    #[test]
    fn what_is_not_well_formed_is_refused() {
        let mut properties = Vec::new();
        for broken in [
            // A list of application properties' values.
            &[0, 0x53, 0x74, 0xc1, 5, 2, 0xa1, 1, b'a', 0x45][..],
            // An annotation whose key is a string.
            &[0, 0x53, 0x72, 0xc1, 5, 2, 0xa1, 1, b'a', 0x41],
            // A sequence whose count is wrong.
            &[0, 0x53, 0x76, 0xc0, 2, 2, 0x41],
        ] {
            let sections = Sections::walk(broken, LIMITS).expect("the sections are in order");
            assert!(take(&sections, &mut properties).is_err(), "{broken:x?}");
        }
    }
}
