//! What clients send: CONNECT, PUB, HPUB, SUB, UNSUB, PING, PONG, read where it lies and written.

use super::{Head, Malformed, parted, verb, whole_payload};
use crate::nats::frame::{self, Arguments, number, put_number};

/// What a server takes from its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest control line.
    pub control_line_bytes_max: usize,
    /// Largest payload, headers included.
    pub payload_bytes_max: usize,
    /// HPUB is taken: the client has said that it knows headers.
    pub takes_headers: bool,
}

/// An operation of a client's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientOp<'a> {
    /// Who it is and what it wants, as JSON.
    Connect(&'a [u8]),
    /// A message.
    Publish(Publish<'a>),
    /// A subscription.
    Subscribe {
        /// The subject or pattern.
        subject: &'a [u8],
        /// The queue group; empty: none.
        group: &'a [u8],
        /// What the client calls it.
        sid: &'a [u8],
    },
    /// The end of a subscription.
    Unsubscribe {
        /// Which.
        sid: &'a [u8],
        /// It ends after this many messages in all; `None`: now.
        max: Option<usize>,
    },
    /// Is anybody there?
    Ping,
    /// Yes.
    Pong,
    /// What only servers say (`+OK`, `INFO`), without effect.
    Ignored,
    /// An error that the client tells the server.
    Error(&'a [u8]),
}

/// A message on its way in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Publish<'a> {
    /// Its subject.
    pub subject: &'a [u8],
    /// Where replies go; empty: nowhere.
    pub reply: &'a [u8],
    /// The header block with the empty line that ends it; empty: none.
    pub headers: &'a [u8],
    /// The payload.
    pub body: &'a [u8],
}

const VERBS: &[&str] =
    &["PUB", "HPUB", "PING", "PONG", "SUB", "UNSUB", "CONNECT", "+OK", "-ERR", "INFO"];

impl<'a> ClientOp<'a> {
    /// The operation that `input` begins with and how many bytes it takes; `None`: not all of it has
    /// arrived. Errors are returned as early as possible, before the payload has arrived.
    #[inline]
    pub fn decode(
        input: &'a [u8],
        limits: &Limits,
    ) -> Result<Option<(ClientOp<'a>, usize)>, Malformed> {
        if let Some(&[p, u, b, b' ']) = input.first_chunk::<4>()
            && [p | 0x20, u | 0x20, b | 0x20] == *b"pub"
        {
            return match plain_publish(input, limits) {
                Some(found) => Ok(Some(found)),
                None => decode_publish(input, 3, false, limits),
            };
        }
        decode_other(input, limits)
    }
}

/// PUB as all libraries write it. `None`: it is written otherwise, wrong, or not all there.
#[inline]
fn plain_publish<'a>(input: &'a [u8], limits: &Limits) -> Option<(ClientOp<'a>, usize)> {
    let (subject, at) = frame::plain(input, 4)?;
    let (reply, bytes, at) = frame::reply_and_size(input, at)?;
    let (body, end) = plain_payload(input, at, bytes, limits)?;
    Some((ClientOp::Publish(Publish { subject, reply, headers: &[], body }), end))
}

/// The payload behind the line of a PUB, and where that ends. `None`: too long, wrong, or not all there.
#[inline(always)]
fn plain_payload<'a>(
    input: &'a [u8],
    at: usize,
    bytes: usize,
    limits: &Limits,
) -> Option<(&'a [u8], usize)> {
    // What precedes the payload is the line with its verb, one blank and its line end.
    if bytes > limits.payload_bytes_max || at > limits.control_line_bytes_max {
        return None;
    }
    whole_payload(input, at, bytes)
}

/// Consecutive PUBs to one subject, without a reply, as all libraries write them. The line of one is most
/// often that of the next one, too, and then known.
#[derive(Debug, Default)]
pub struct RepeatedPublish<'a> {
    line: &'a [u8],
    payload_bytes: usize,
}

impl<'a> RepeatedPublish<'a> {
    /// The payload of the next one, which `input` begins with, and where it ends. `None`: something else
    /// follows, or not all of it is there.
    #[inline]
    pub fn next(
        &mut self,
        input: &'a [u8],
        subject: &[u8],
        limits: &Limits,
    ) -> Option<(&'a [u8], usize)> {
        if self.line.is_empty() || !input.starts_with(self.line) {
            self.read_line(input, subject)?;
        }
        plain_payload(input, self.line.len(), self.payload_bytes, limits)
    }

    #[inline]
    fn read_line(&mut self, input: &'a [u8], subject: &[u8]) -> Option<()> {
        input.strip_prefix(b"PUB ")?.strip_prefix(subject)?.strip_prefix(b" ")?;
        let (bytes, end) = frame::last_number(input, b"PUB ".len() + subject.len() + 1)?;
        (self.line, self.payload_bytes) = (&input[..end], bytes);
        Some(())
    }
}

fn decode_other<'a>(
    input: &'a [u8],
    limits: &Limits,
) -> Result<Option<(ClientOp<'a>, usize)>, Malformed> {
    let Some(verb) = verb(input, VERBS)? else { return Ok(None) };
    let at = verb.len();
    if !matches!(verb, "PING" | "PONG" | "+OK" | "CONNECT") && parted(input, at)?.is_none() {
        return Ok(None);
    }
    let op = match verb {
        "PUB" => return decode_publish(input, at, false, limits),
        "HPUB" => return decode_publish(input, at, true, limits),
        "SUB" => return decode_line(input, at, limits, subscribe),
        "UNSUB" => return decode_line(input, at, limits, unsubscribe),
        "CONNECT" => ClientOp::Connect,
        "PING" => |_| ClientOp::Ping,
        "PONG" => |_| ClientOp::Pong,
        "-ERR" => ClientOp::Error,
        // +OK and INFO.
        _ => |_| ClientOp::Ignored,
    };
    let line = frame::rest(input, at, limits.control_line_bytes_max)?;
    Ok(line.map(|(text, end)| (op(text), end)))
}

#[inline]
fn decode_publish<'a>(
    input: &'a [u8],
    at: usize,
    has_headers: bool,
    limits: &Limits,
) -> Result<Option<(ClientOp<'a>, usize)>, Malformed> {
    let Some(head) = read_head(input, at, has_headers, limits)? else { return Ok(None) };
    let Some((headers, body, end)) = head.payload(input)? else { return Ok(None) };
    let Head { subject, reply, .. } = head;
    Ok(Some((ClientOp::Publish(Publish { subject, reply, headers, body }), end)))
}

#[inline]
fn read_head<'a>(
    input: &'a [u8],
    at: usize,
    has_headers: bool,
    limits: &Limits,
) -> Result<Option<Head<'a>>, Malformed> {
    let Some(arguments) = Arguments::read(input, at, limits.control_line_bytes_max)? else {
        return Ok(None);
    };
    if has_headers && !limits.takes_headers {
        return Err(Malformed::Headers);
    }
    let Some([subject, last @ ..]) = arguments.all() else { return Err(Malformed::Arguments) };
    Head::new(subject, last, arguments.end, has_headers, limits.payload_bytes_max).map(Some)
}

impl<'a> Head<'a> {
    /// The PUB or HPUB that `input` begins with; `None`: not all of its line has arrived, or it is none.
    pub fn read(input: &'a [u8], limits: &Limits) -> Result<Option<Head<'a>>, Malformed> {
        match verb(input, VERBS)? {
            Some(verb @ ("PUB" | "HPUB")) => read_head(input, verb.len(), verb == "HPUB", limits),
            _ => Ok(None),
        }
    }
}

/// An operation that is nothing but its control line; `op` makes it of the arguments, if they are right.
fn decode_line<'a>(
    input: &'a [u8],
    at: usize,
    limits: &Limits,
    op: impl FnOnce(&[&'a [u8]]) -> Option<ClientOp<'a>>,
) -> Result<Option<(ClientOp<'a>, usize)>, Malformed> {
    let Some(arguments) = Arguments::read(input, at, limits.control_line_bytes_max)? else {
        return Ok(None);
    };
    let op = arguments.all().and_then(op).ok_or(Malformed::Arguments)?;
    Ok(Some((op, arguments.end)))
}

fn subscribe<'a>(arguments: &[&'a [u8]]) -> Option<ClientOp<'a>> {
    match *arguments {
        [subject, sid] => Some(ClientOp::Subscribe { subject, group: &[], sid }),
        [subject, group, sid] => Some(ClientOp::Subscribe { subject, group, sid }),
        _ => None,
    }
}

fn unsubscribe<'a>(arguments: &[&'a [u8]]) -> Option<ClientOp<'a>> {
    match *arguments {
        [sid] => Some(ClientOp::Unsubscribe { sid, max: None }),
        // As with nats-server, what is no positive number ends the subscription now.
        [sid, max] => Some(ClientOp::Unsubscribe { sid, max: number(max).filter(|max| *max > 0) }),
        _ => None,
    }
}

impl Publish<'_> {
    /// Appends PUB, or HPUB where there are headers.
    #[inline]
    pub fn write(&self, out: &mut Vec<u8>) {
        let names = self.subject.len() + self.reply.len();
        out.reserve(32 + names + self.headers.len() + self.body.len());
        out.extend_from_slice(if self.headers.is_empty() { b"PUB " } else { b"HPUB " });
        out.extend_from_slice(self.subject);
        out.push(b' ');
        if !self.reply.is_empty() {
            out.extend_from_slice(self.reply);
            out.push(b' ');
        }
        super::server::put_payload(out, self.headers, self.body);
    }
}

/// Appends SUB; an empty group: none.
pub fn write_subscribe(out: &mut Vec<u8>, subject: &[u8], group: &[u8], sid: &[u8]) {
    out.extend_from_slice(b"SUB ");
    out.extend_from_slice(subject);
    if !group.is_empty() {
        out.push(b' ');
        out.extend_from_slice(group);
    }
    out.push(b' ');
    out.extend_from_slice(sid);
    out.extend_from_slice(frame::END);
}

/// Appends UNSUB.
pub fn write_unsubscribe(out: &mut Vec<u8>, sid: &[u8], max: Option<usize>) {
    out.extend_from_slice(b"UNSUB ");
    out.extend_from_slice(sid);
    if let Some(max) = max {
        out.push(b' ');
        put_number(out, max);
    }
    out.extend_from_slice(frame::END);
}

/// Appends PING.
pub fn write_ping(out: &mut Vec<u8>) {
    out.extend_from_slice(b"PING\r\n");
}

/// Appends PONG.
pub fn write_pong(out: &mut Vec<u8>) {
    out.extend_from_slice(b"PONG\r\n");
}
