//! A large message that has not arrived whole.

use super::frame::Head;
use angarium_engine::{Bytes, GatheredBody};

/// A SEND whose headers have arrived, and not all of its body.
#[derive(Debug)]
pub(super) struct Reassembly {
    pub(super) head: Vec<u8>,
    pub(super) length: Option<u64>,
    pub(super) body: GatheredBody,
    /// The body once it is complete: the message may have to be presented again.
    pub(super) whole: Option<Bytes>,
}

impl Reassembly {
    pub(super) fn new(head: &Head<'_>, bytes: &[u8]) -> Reassembly {
        let length = head.content_length;
        Reassembly { head: bytes.to_vec(), length, body: GatheredBody::default(), whole: None }
    }

    /// Bytes of it that are kept.
    pub(super) fn held_bytes(&self) -> usize {
        self.head.len() + self.body.len() + self.whole.as_ref().map_or(0, Bytes::len)
    }

    /// How much of `input` is still body.
    pub(super) fn part(&self, input: &[u8]) -> usize {
        match self.length {
            _ if self.whole.is_some() => 0,
            Some(length) => {
                let missing = length - self.body.len() as u64;
                input.len().min(usize::try_from(missing).unwrap_or(usize::MAX))
            }
            None => memchr::memchr(0, input).unwrap_or(input.len()),
        }
    }
}
