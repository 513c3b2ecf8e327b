//! Bytes to and from NATS operations, for brokers and for clients. Names no engine type.

pub mod client;
pub mod connect;
pub mod headers;
pub mod info;
pub mod server;
#[cfg(test)]
mod tests;

pub use client::{ClientOp, Limits, Publish};
pub use connect::Connect;
pub use headers::Headers;
pub use info::Info;
pub use server::{Message, ServerOp};

use super::frame::{self, number};

/// Bytes that are no operation, or none that is allowed; nothing after them can be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// No operation begins like this, or a payload does not end with CR LF.
    UnknownOperation,
    /// An operation's arguments are too few, too many, or not what they have to be.
    Arguments,
    /// A payload is announced that is larger than allowed.
    PayloadTooLarge,
    /// A control line is longer than allowed.
    LineTooLong,
    /// HPUB from a client that did not say that it knows headers.
    Headers,
}

impl From<frame::LineTooLong> for Malformed {
    fn from(_: frame::LineTooLong) -> Malformed {
        Malformed::LineTooLong
    }
}

/// Which of `verbs` the input begins with; `None`: too little has arrived to tell. Case is ignored.
fn verb(input: &[u8], verbs: &[&'static str]) -> Result<Option<&'static str>, Malformed> {
    let mut may_come = false;
    for verb in verbs {
        let seen = input.len().min(verb.len());
        if input[..seen].eq_ignore_ascii_case(&verb.as_bytes()[..seen]) {
            if seen == verb.len() {
                return Ok(Some(verb));
            }
            may_come = true;
        }
    }
    if may_come { Ok(None) } else { Err(Malformed::UnknownOperation) }
}

/// Whether a blank parts the verb from what follows it; `None`: that has not arrived.
fn parted(input: &[u8], at: usize) -> Result<Option<()>, Malformed> {
    match input.get(at) {
        Some(b' ' | b'\t') => Ok(Some(())),
        Some(_) => Err(Malformed::UnknownOperation),
        None => Ok(None),
    }
}

/// The line of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head<'a> {
    /// The message's subject.
    pub subject: &'a [u8],
    /// Where replies go; empty: nowhere.
    pub reply: &'a [u8],
    /// Bytes of the header block, which the payload begins with.
    pub header_bytes: usize,
    /// Bytes of the payload, headers included.
    pub payload_bytes: usize,
    /// Bytes of the line, with its end.
    pub line_bytes: usize,
}

/// Headers and body of a message, and where it ends with its line end.
type Payload<'a> = (&'a [u8], &'a [u8], usize);

impl<'a> Head<'a> {
    /// Reads what is last in the line: the reply subject and the sizes.
    #[inline]
    fn new(
        subject: &'a [u8],
        last: &[&'a [u8]],
        line_bytes: usize,
        has_headers: bool,
        payload_bytes_max: usize,
    ) -> Result<Head<'a>, Malformed> {
        let sized = |digits: &[u8]| number(digits).ok_or(Malformed::Arguments);
        let (reply, header_bytes, payload_bytes) = match (last, has_headers) {
            (&[size], false) => (&[][..], 0, sized(size)?),
            (&[reply, size], false) => (reply, 0, sized(size)?),
            (&[head, size], true) => (&[][..], sized(head)?, sized(size)?),
            (&[reply, head, size], true) => (reply, sized(head)?, sized(size)?),
            _ => return Err(Malformed::Arguments),
        };
        if header_bytes > payload_bytes {
            return Err(Malformed::Arguments);
        }
        if payload_bytes > payload_bytes_max {
            return Err(Malformed::PayloadTooLarge);
        }
        Ok(Head { subject, reply, header_bytes, payload_bytes, line_bytes })
    }

    /// The payload behind the line in `input`; `None`: not all of it has arrived.
    #[inline]
    fn payload<'i>(&self, input: &'i [u8]) -> Result<Option<Payload<'i>>, Malformed> {
        let end = self.line_bytes + self.payload_bytes;
        match input.get(end..) {
            Some([b'\r', b'\n', ..]) => {
                let (headers, body) = input[self.line_bytes..end].split_at(self.header_bytes);
                Ok(Some((headers, body, end + 2)))
            }
            None | Some([] | [b'\r']) => Ok(None),
            Some(_) => Err(Malformed::UnknownOperation),
        }
    }
}

/// The payload of `bytes` bytes at `at`, and where it ends with its line end; `None`: it has not arrived, or
/// does not end with CR LF.
#[inline(always)]
fn whole_payload(input: &[u8], at: usize, bytes: usize) -> Option<(&[u8], usize)> {
    let end = at + bytes;
    let [b'\r', b'\n', ..] = input.get(end..)? else { return None };
    Some((&input[at..end], end + 2))
}
