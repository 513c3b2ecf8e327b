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
fn verb<T: Copy>(input: &[u8], verbs: &[(&str, T)]) -> Result<Option<(T, usize)>, Malformed> {
    let mut may_come = false;
    for (verb, meaning) in verbs {
        let seen = input.len().min(verb.len());
        if input[..seen].eq_ignore_ascii_case(&verb.as_bytes()[..seen]) {
            if seen == verb.len() {
                return Ok(Some((*meaning, seen)));
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

/// What is last in the line of a message.
#[derive(Debug)]
struct Sizes<'a> {
    /// Where replies go; empty: nowhere.
    reply: &'a [u8],
    header_bytes: usize,
    /// Headers included.
    payload_bytes: usize,
}

impl<'a> Sizes<'a> {
    #[inline]
    fn read(
        arguments: &[&'a [u8]],
        has_headers: bool,
        payload_bytes_max: usize,
    ) -> Result<Sizes<'a>, Malformed> {
        let sized = |digits: &[u8]| number(digits).ok_or(Malformed::Arguments);
        let (reply, header_bytes, payload_bytes) = match (arguments, has_headers) {
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
        Ok(Sizes { reply, header_bytes, payload_bytes })
    }
}

/// The payload of `bytes` at `at` and where it ends with its line end; `None`: it has not arrived.
#[inline]
fn payload(input: &[u8], at: usize, bytes: usize) -> Result<Option<(&[u8], usize)>, Malformed> {
    let end = at + bytes;
    match input.get(end..) {
        Some([b'\r', b'\n', ..]) => Ok(Some((&input[at..end], end + 2))),
        None | Some([] | [b'\r']) => Ok(None),
        Some(_) => Err(Malformed::UnknownOperation),
    }
}
