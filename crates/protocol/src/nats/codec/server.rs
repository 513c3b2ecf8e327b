//! What servers send: INFO, MSG, HMSG, PING, PONG, +OK, -ERR, written and, for clients, read where it
//! lies.

use super::{Head, Malformed, parted, verb, whole_payload};
use crate::nats::frame::{self, Arguments, put_last_number, put_number};

/// Longest control line that a client takes: INFO of a large cluster is long.
const CONTROL_LINE_BYTES_MAX: usize = 1 << 20;

/// An operation of a server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerOp<'a> {
    /// What the server is, as JSON.
    Info(&'a [u8]),
    /// A message.
    Message(Message<'a>),
    /// Is anybody there?
    Ping,
    /// Yes.
    Pong,
    /// Done (to verbose clients).
    Ok,
    /// An error, without the quotes around it.
    Error(&'a [u8]),
}

/// A message on its way out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Message<'a> {
    /// Its subject.
    pub subject: &'a [u8],
    /// The subscription it is for.
    pub sid: &'a [u8],
    /// Where replies go; empty: nowhere.
    pub reply: &'a [u8],
    /// The header block with the empty line that ends it; empty: none.
    pub headers: &'a [u8],
    /// The payload.
    pub body: &'a [u8],
}

const VERBS: &[&str] = &["MSG", "HMSG", "PING", "PONG", "+OK", "-ERR", "INFO"];

impl<'a> ServerOp<'a> {
    /// The operation that `input` begins with and how many bytes it takes; `None`: not all of it has
    /// arrived. A payload of more than `payload_bytes_max` is an error.
    #[inline]
    pub fn decode(
        input: &'a [u8],
        payload_bytes_max: usize,
    ) -> Result<Option<(ServerOp<'a>, usize)>, Malformed> {
        if input.starts_with(b"MSG ") {
            return match plain_message(input, payload_bytes_max) {
                Some(found) => Ok(Some(found)),
                None => decode_message(input, 3, false, payload_bytes_max),
            };
        }
        let Some(verb) = verb(input, VERBS)? else { return Ok(None) };
        let at = verb.len();
        if !matches!(verb, "PING" | "PONG" | "+OK") && parted(input, at)?.is_none() {
            return Ok(None);
        }
        let op = match verb {
            "MSG" => return decode_message(input, at, false, payload_bytes_max),
            "HMSG" => return decode_message(input, at, true, payload_bytes_max),
            "INFO" => ServerOp::Info,
            "PING" => |_| ServerOp::Ping,
            "PONG" => |_| ServerOp::Pong,
            "+OK" => |_| ServerOp::Ok,
            // -ERR.
            _ => |text| ServerOp::Error(unquoted(text)),
        };
        let line = frame::rest(input, at, CONTROL_LINE_BYTES_MAX)?;
        Ok(line.map(|(text, end)| (op(text), end)))
    }
}

/// MSG as all servers write it. `None`: it is written otherwise, wrong, or not all there.
#[inline]
fn plain_message(input: &[u8], payload_bytes_max: usize) -> Option<(ServerOp<'_>, usize)> {
    let (subject, at) = frame::plain(input, 4)?;
    let (sid, at) = frame::plain(input, at)?;
    let (reply, bytes, at) = frame::reply_and_size(input, at)?;
    if bytes > payload_bytes_max {
        return None;
    }
    let (body, end) = whole_payload(input, at, bytes)?;
    Some((ServerOp::Message(Message { subject, sid, reply, headers: &[], body }), end))
}

/// Reads what a server sends where most of it is messages to one subject for one subscription, without a
/// reply: the line of one is most often that of the next one, too, and then known.
#[derive(Debug, Default)]
pub struct RepeatedMessage {
    line: Vec<u8>,
    subject_bytes: usize,
    sid_bytes: usize,
    payload_bytes: usize,
}

impl RepeatedMessage {
    /// As [`ServerOp::decode`], with the same largest payload each time.
    #[inline]
    pub fn decode<'a>(
        &mut self,
        input: &'a [u8],
        payload_bytes_max: usize,
    ) -> Result<Option<(ServerOp<'a>, usize)>, Malformed> {
        if let Some((message, used)) = self.next(input) {
            return Ok(Some((ServerOp::Message(message), used)));
        }
        let found = ServerOp::decode(input, payload_bytes_max)?;
        if let Some((ServerOp::Message(message), used)) = &found {
            self.keep(&input[..used - frame::END.len() - message.body.len()], message);
        }
        Ok(found)
    }

    /// The message that `input` begins with, if its line is the known one and all of it is there.
    #[inline]
    fn next<'a>(&self, input: &'a [u8]) -> Option<(Message<'a>, usize)> {
        let at = self.line.len();
        if at == 0 || !input.starts_with(&self.line) {
            return None;
        }
        let (body, end) = whole_payload(input, at, self.payload_bytes)?;
        let (subject, rest) = input["MSG ".len()..].split_at(self.subject_bytes);
        let sid = &rest[1..=self.sid_bytes];
        Some((Message { subject, sid, reply: &[], headers: &[], body }, end))
    }

    /// Notes a message's line, if it is written as all servers write it and has no reply.
    #[inline]
    fn keep(&mut self, line: &[u8], message: &Message<'_>) {
        let Message { subject, sid, body, .. } = message;
        self.line.clear();
        let names = line.strip_prefix(b"MSG ").and_then(|names| names.strip_prefix(*subject));
        let rest = names.and_then(|names| names.strip_prefix(b" ")?.strip_prefix(*sid));
        if rest.is_some() && message.reply.is_empty() {
            self.line.extend_from_slice(line);
            self.subject_bytes = subject.len();
            self.sid_bytes = sid.len();
            self.payload_bytes = body.len();
        }
    }
}

fn unquoted(text: &[u8]) -> &[u8] {
    let text = text.strip_prefix(b"'").unwrap_or(text);
    text.strip_suffix(b"'").unwrap_or(text)
}

#[inline]
fn decode_message<'a>(
    input: &'a [u8],
    at: usize,
    has_headers: bool,
    payload_bytes_max: usize,
) -> Result<Option<(ServerOp<'a>, usize)>, Malformed> {
    let Some(arguments) = Arguments::read(input, at, CONTROL_LINE_BYTES_MAX)? else {
        return Ok(None);
    };
    let Some([subject, sid, last @ ..]) = arguments.all() else {
        return Err(Malformed::Arguments);
    };
    let head = Head::new(subject, last, arguments.end, has_headers, payload_bytes_max)?;
    let Some((headers, body, end)) = head.payload(input)? else { return Ok(None) };
    let message = Message { subject, sid, reply: head.reply, headers, body };
    Ok(Some((ServerOp::Message(message), end)))
}

impl Message<'_> {
    /// Appends MSG, or HMSG where there are headers.
    #[inline]
    pub fn write(&self, out: &mut Vec<u8>) {
        out.reserve(self.subject.len() + self.sid.len() + self.rest_bytes_max());
        self.write_before_body(out);
        out.extend_from_slice(self.body);
        out.extend_from_slice(frame::END);
    }

    /// Appends MSG, or HMSG where there are headers, up to the body.
    #[inline]
    pub(crate) fn write_before_body(&self, out: &mut Vec<u8>) {
        if !self.headers.is_empty() {
            out.push(b'H');
        }
        self.write_names(out);
        self.write_reply(out);
        put_before_body(out, self.headers, self.body);
    }

    /// Appends what MSG begins with: what is the same for every message to a subject for a subscription.
    #[inline]
    pub(crate) fn write_names(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"MSG ");
        out.extend_from_slice(self.subject);
        out.push(b' ');
        out.extend_from_slice(self.sid);
        out.push(b' ');
    }

    /// Appends MSG where `names` is what [`Message::write_names`] wrote. It has no headers.
    #[inline]
    pub(crate) fn write_behind(&self, names: &[u8], out: &mut Vec<u8>) {
        out.reserve(names.len() + self.rest_bytes_max());
        out.extend_from_slice(names);
        self.write_reply(out);
        put_payload(out, self.headers, self.body);
    }

    /// How much it is without subject and subscription, and a little more.
    #[inline]
    fn rest_bytes_max(&self) -> usize {
        36 + self.reply.len() + self.headers.len() + self.body.len()
    }

    #[inline]
    fn write_reply(&self, out: &mut Vec<u8>) {
        if !self.reply.is_empty() {
            out.extend_from_slice(self.reply);
            out.push(b' ');
        }
    }
}

/// Appends the sizes that end a control line, and what they announce.
#[inline]
pub(super) fn put_payload(out: &mut Vec<u8>, headers: &[u8], body: &[u8]) {
    put_before_body(out, headers, body);
    out.extend_from_slice(body);
    out.extend_from_slice(frame::END);
}

#[inline]
fn put_before_body(out: &mut Vec<u8>, headers: &[u8], body: &[u8]) {
    if headers.is_empty() {
        put_last_number(out, body.len());
    } else {
        put_number(out, headers.len());
        out.push(b' ');
        put_last_number(out, headers.len() + body.len());
        out.extend_from_slice(headers);
    }
}

/// Appends +OK.
#[inline]
pub fn write_ok(out: &mut Vec<u8>) {
    out.extend_from_slice(b"+OK\r\n");
}

/// Appends -ERR; line ends in the text become spaces, so that it stays one line.
pub fn write_error(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(b"-ERR '");
    out.extend(text.bytes().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }));
    out.extend_from_slice(b"'\r\n");
}
