//! The headers of messages of any protocol, as STOMP clients get them.

use super::destination;
use super::frame::{Version, lines, put_name, put_value};
use super::properties::{PRIORITY, REPLY_TO, TIMESTAMP, is_of_frame, plain, text_header};
use crate::SUBJECT_EXCHANGE;
use crate::properties::{DELIVERY_COUNT_HEADER, DROPPED_HEADER, Property, is_plain, reason_name};
use crate::translation::{amended, visit};
use angarium_engine::{Annotations, MessageView};

/// Appends the headers of a message of any protocol.
#[inline]
pub(super) fn put_headers(out: &mut Vec<u8>, message: &MessageView<'_>, version: Version) {
    if message.persistent {
        out.extend_from_slice(b"persistent:true\n");
    }
    if message.format == crate::format::STOMP && is_plain(message.annotations) {
        put_kept(out, message.properties, version);
    } else {
        put_reworded(out, message, version);
    }
}

/// Appends headers that are not as they were published.
#[cold]
fn put_reworded(out: &mut Vec<u8>, message: &MessageView<'_>, version: Version) {
    put_own(out, message.annotations, version);
    let properties = amended(message);
    if message.format == crate::format::STOMP {
        return put_kept(out, &properties, version);
    }
    visit(message.format, &properties, &mut |property| {
        let mut put = |name: &str, value: &str| {
            put_name(out, name, version);
            out.push(b':');
            put_value(out, value, version);
            out.push(b'\n');
        };
        match property {
            Property::ReplyTo(address) => put(REPLY_TO, &destination::of_reply(address)),
            Property::ReplySubject(subject) => {
                put(REPLY_TO, &destination::of_message(SUBJECT_EXCHANGE, subject));
            }
            Property::Text(text, value) => put(text_header(text), value),
            Property::Priority(priority) => put(PRIORITY, &priority.to_string()),
            Property::Timestamp(seconds) => put(TIMESTAMP, &seconds.to_string()),
            Property::Header(name, _) if name.is_empty() || is_of_frame(name.as_bytes()) => {}
            Property::Header(name, value) => {
                let mut is_first = true;
                value.texts(&mut |text| {
                    // Of repeated headers the first counts for clients; the others are there to be seen.
                    put(name, text);
                    is_first = false;
                });
                if is_first {
                    put(name, "");
                }
            }
        }
        true
    });
}

/// Appends what the broker itself says of a message.
fn put_own(out: &mut Vec<u8>, annotations: &Annotations, version: Version) {
    let mut put = |name: &str, value: &str| {
        put_name(out, name, version);
        out.push(b':');
        put_value(out, value, version);
        out.push(b'\n');
    };
    if annotations.delivery_count > 0 {
        put(DELIVERY_COUNT_HEADER, &annotations.delivery_count.to_string());
    }
    if annotations.dropped > 0 {
        put(DROPPED_HEADER, &annotations.dropped.to_string());
    }
    for (which, death) in
        [("first", annotations.deaths.last()), ("last", annotations.deaths.first())]
    {
        let Some(death) = death else { continue };
        put(&format!("x-{which}-death-reason"), reason_name(death.reason));
        put(&format!("x-{which}-death-queue"), &death.queue);
        put(&format!("x-{which}-death-exchange"), &death.exchange);
    }
}

/// Appends kept headers, escaped as in a version.
#[inline]
fn put_kept(out: &mut Vec<u8>, kept: &[u8], version: Version) {
    let is_same = version == Version::V1_2 || memchr::memchr(b'\\', kept).is_none();
    if is_same {
        return out.extend_from_slice(kept);
    }
    for (name, value) in lines(kept) {
        put_name(out, &plain(name), version);
        out.push(b':');
        put_value(out, &plain(value), version);
        out.push(b'\n');
    }
}
