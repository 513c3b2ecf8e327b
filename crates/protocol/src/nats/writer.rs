//! What the engine sends to a connection, written in NATS's protocol straight into its output.

use super::codec::{Message, server};
use super::frame::{END, put_last_number};
use super::responses::Requests;
use super::{fault, mapping};
use crate::output::{Output, ProtocolWriter};
use crate::properties::is_plain;
use crate::shared_body::SharedBody;
use crate::translation::{amended, with_payload};
use angarium_engine::{DirectMessage, Subscribe};
use std::borrow::Cow;

/// What NATS needs to write to a connection.
#[derive(Debug, Default)]
pub struct Writer {
    /// The client understands headers.
    takes_headers: bool,
    control_line: ControlLine,
    /// What it was sent and may answer, if its user may answer what it is sent.
    pub(super) requests: Option<Box<Requests>>,
}

impl Writer {
    /// The writer for a client that understands headers or does not.
    #[must_use]
    pub fn new(takes_headers: bool) -> Writer {
        Writer { takes_headers, ..Writer::default() }
    }

    /// Writes a message whose subject, reply or headers are not what its publisher wrote: one of another
    /// protocol, or the first after some that the client missed.
    #[cold]
    fn write_reworded(&mut self, out: &mut Output, direct: &DirectMessage<'_>) {
        let mut body = Cow::Borrowed(direct.message.body);
        let message = with_payload(&direct.message, &mut body);
        let direct = &DirectMessage { message, ..*direct };
        let message = &direct.message;
        let properties = amended(message);
        let (reply, mut headers) = mapping::shown(message.format, &properties);
        if direct.missed > 0 {
            headers = mapping::with_missed(&headers, direct.missed).into();
        }
        let subject = &mapping::shown_subject(message);
        let subject = subject.as_bytes();
        self.write(
            out,
            direct,
            Message { subject, reply: &reply, headers: &headers, ..plain(direct) },
        );
    }

    #[inline(always)]
    fn write(&mut self, out: &mut Output, direct: &DirectMessage<'_>, mut message: Message<'_>) {
        if !self.takes_headers {
            message.headers = &[];
        }
        if !message.reply.is_empty()
            && let Some(requests) = &mut self.requests
        {
            requests.sent(message.reply);
        }
        if let Some(body) = direct.message.shared {
            message.write_before_body(&mut out.bytes);
            out.shared_body = Some(SharedBody::plain(body, END).into());
        } else if direct.route == 0 || !message.headers.is_empty() {
            message.write(&mut out.bytes);
        } else if message.reply.is_empty() {
            put_body(self.control_line.whole(direct, &message), message.body, &mut out.bytes);
        } else {
            message.write_behind(self.control_line.names(direct, &message), &mut out.bytes);
        }
    }
}

impl ProtocolWriter for Writer {
    /// Writes MSG, or HMSG where the message has headers and the client understands them.
    #[inline]
    fn send_direct(&mut self, out: &mut Output, direct: &DirectMessage<'_>) {
        let message = &direct.message;
        // Messages by a cached route are written as their publisher wrote them. Dead letters may have any
        // other subject, and fewer headers.
        let is_verbatim = direct.route != 0
            || (mapping::is_one_word(message.routing_key) && is_plain(message.annotations));
        if message.format != crate::format::NATS || direct.missed > 0 || !is_verbatim {
            return self.write_reworded(out, direct);
        }
        let (reply, headers) = mapping::split(message.properties);
        self.write(out, direct, Message { reply, headers, ..plain(direct) });
    }

    fn send_direct_batch(
        &mut self,
        out: &mut Output,
        direct: &DirectMessage<'_>,
        bodies: &[&[u8]],
    ) {
        let message = plain(direct);
        let (mut line, mut size) = (&[][..], None);
        for body in bodies {
            if size != Some(body.len()) {
                line = self.control_line.whole(direct, &Message { body, ..message });
                size = Some(body.len());
            }
            put_body(line, body, &mut out.bytes);
        }
    }

    /// Messages without headers are the same for every client.
    #[inline]
    fn writes_batches_like(&self, _: &Writer) -> bool {
        true
    }

    /// Writes -ERR with a permissions violation.
    fn subscription_revoked(&mut self, out: &mut Output, subscribed: &Subscribe<'_>) {
        server::write_error(&mut out.bytes, &fault::subscription_violation(subscribed));
    }

    fn has_subscribers(&self) -> bool {
        true
    }
}

/// A message as its publisher named it, without reply and headers.
#[inline(always)]
fn plain<'a>(direct: &DirectMessage<'a>) -> Message<'a> {
    Message {
        subject: direct.message.routing_key.as_bytes(),
        sid: direct.subscription.as_bytes(),
        body: direct.message.body,
        ..Message::default()
    }
}

/// The control line of the connection's last message, reused while the next ones have the same.
#[derive(Debug, Default)]
struct ControlLine {
    /// Its subscriber and cached route, as [`DirectMessage`] has both; zero: there is none.
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

/// Appends a payload and what is before it.
#[inline]
fn put_body(line: &[u8], body: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(line);
    out.extend_from_slice(body);
    out.extend_from_slice(END);
}
