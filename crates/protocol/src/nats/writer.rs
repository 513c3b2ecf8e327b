//! What the engine sends to a connection, written in NATS's protocol straight into its outlet.

use super::codec::{Message, server};
use super::frame::{END, put_last_number};
use super::{fault, mapping};
use crate::properties::{amended, is_plain};
use crate::{LargeBody, Outlet};
use angarium_engine::{DirectMessage, Format, Subscribe};

/// Writes MSG, or HMSG where the message has headers and the client understands them.
#[inline]
pub(crate) fn write_direct(outlet: &mut Outlet, direct: &DirectMessage<'_>) {
    let message = &direct.message;
    // What NATS clients publish in a row is told as they wrote it; dead letters may have any other subject,
    // and no more all of their headers.
    let is_told = direct.route != 0
        || (mapping::is_one_word(message.routing_key) && is_plain(message.annotations));
    if message.format != Format::Nats || direct.missed > 0 || !is_told {
        return write_reworded(outlet, direct);
    }
    let (reply, headers) = mapping::split(message.properties);
    write(outlet, direct, message.routing_key, reply, headers);
}

/// Writes several messages without properties that have all but their payloads in common.
pub(crate) fn write_direct_batch(
    outlet: &mut Outlet,
    direct: &DirectMessage<'_>,
    bodies: &[&[u8]],
) {
    let message = Message {
        subject: direct.message.routing_key.as_bytes(),
        sid: direct.subscription.as_bytes(),
        reply: &[],
        headers: &[],
        body: &[],
    };
    let (mut line, mut size) = (&[][..], None);
    for body in bodies {
        if size != Some(body.len()) {
            line = outlet.control_line.whole(direct, &Message { body, ..message });
            size = Some(body.len());
        }
        put_body(line, body, &mut outlet.bytes);
    }
}

/// The same for a message whose subject, reply or headers are not what its publisher wrote: one of
/// another protocol, or the first behind some that the client missed.
#[cold]
fn write_reworded(outlet: &mut Outlet, direct: &DirectMessage<'_>) {
    let message = &direct.message;
    let properties = amended(message);
    let (reply, mut headers) = mapping::shown(message.format, &properties);
    if direct.missed > 0 {
        headers = mapping::with_missed(&headers, direct.missed).into();
    }
    write(outlet, direct, &mapping::shown_subject(message), &reply, &headers);
}

/// Writes what a client hears where a subscription has ended that it may not have any more.
pub(crate) fn write_forbidden(outlet: &mut Outlet, listened: &Subscribe<'_>) {
    let text = fault::subscription_violation(listened);
    server::write_error(&mut outlet.bytes, &text);
}

/// The control line of a listener's last message, kept for as long as the next ones have the same.
#[derive(Debug, Default)]
pub(crate) struct ControlLine {
    /// Whose it is, and of which messages, as [`DirectMessage`] has both; zero: nobody's.
    tag: u64,
    route: u64,
    /// The names, and the size of a message without reply and headers.
    bytes: Vec<u8>,
    names_bytes: usize,
    size: usize,
}

impl ControlLine {
    /// What a message of a cached route begins with, up to the reply.
    #[inline]
    fn names(&mut self, direct: &DirectMessage<'_>, message: &Message<'_>) -> &[u8] {
        if self.route != direct.route || self.tag != direct.tag {
            self.keep(direct, message);
        }
        &self.bytes[..self.names_bytes]
    }

    /// All that a message of a cached route has before its payload, where it has neither reply nor headers.
    #[inline]
    fn whole(&mut self, direct: &DirectMessage<'_>, message: &Message<'_>) -> &[u8] {
        let size = message.body.len();
        if self.size != size || self.route != direct.route || self.tag != direct.tag {
            self.keep_whole(direct, message);
        }
        &self.bytes
    }

    #[inline(never)]
    fn keep(&mut self, direct: &DirectMessage<'_>, message: &Message<'_>) {
        (self.tag, self.route, self.size) = (direct.tag, direct.route, usize::MAX);
        self.bytes.clear();
        message.write_names(&mut self.bytes);
        self.names_bytes = self.bytes.len();
    }

    #[inline(never)]
    fn keep_whole(&mut self, direct: &DirectMessage<'_>, message: &Message<'_>) {
        if self.route != direct.route || self.tag != direct.tag {
            self.keep(direct, message);
        }
        self.size = message.body.len();
        self.bytes.truncate(self.names_bytes);
        put_last_number(&mut self.bytes, self.size);
    }
}

#[inline(always)]
fn write(
    outlet: &mut Outlet,
    direct: &DirectMessage<'_>,
    subject: &str,
    reply: &[u8],
    headers: &[u8],
) {
    let message = Message {
        subject: subject.as_bytes(),
        sid: direct.subscription.as_bytes(),
        reply,
        headers: if outlet.takes_headers { headers } else { &[] },
        body: direct.message.body,
    };
    if let Some(body) = direct.message.shared {
        message.write_before_body(&mut outlet.bytes);
        outlet.large = Some(LargeBody::plain(body, END).into());
    } else if direct.route == 0 || !message.headers.is_empty() {
        message.write(&mut outlet.bytes);
    } else if reply.is_empty() {
        put_body(outlet.control_line.whole(direct, &message), message.body, &mut outlet.bytes);
    } else {
        message.write_behind(outlet.control_line.names(direct, &message), &mut outlet.bytes);
    }
}

/// Appends a payload and what is before it.
#[inline]
fn put_body(line: &[u8], body: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(line);
    out.extend_from_slice(body);
    out.extend_from_slice(END);
}
