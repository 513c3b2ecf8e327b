//! Messages that are encoded once: only their stamps and their tags change from one to the next.

use super::stamp::{self, Stamp, TIMED_BYTES};
use crate::client::{Encoded, Link, Route};

/// A body of so many octets.
pub(super) fn body(size_bytes: usize) -> Vec<u8> {
    (0..size_bytes).map(|at| b'a' + (at % 26) as u8).collect()
}

/// What stamps the messages of one producer, which are all alike.
#[derive(Debug, Clone)]
pub(super) struct Seal {
    places: Encoded,
    /// Octets of the body that a stamp may take.
    head: usize,
    /// The checksum of what follows them; `None` if messages carry none.
    rest: Option<u32>,
    producer: u32,
}

impl Seal {
    /// For messages with this body.
    pub(super) fn new(places: Encoded, body: &[u8], producer: u32, checksum: bool) -> Seal {
        let head = body.len().min(TIMED_BYTES);
        let rest = checksum.then(|| crc32fast::hash(&body[head..]));
        Seal { places, head, rest, producer }
    }

    /// Writes stamp and tag into an encoded message.
    #[inline]
    pub(super) fn write(&self, message: &mut [u8], sequence: u64, sent_ns: u64) {
        let mut stamp = Stamp { producer: self.producer, checksum: 0, sequence, sent_ns };
        if let Some(rest) = self.rest {
            stamp.checksum = stamp::checksum(&stamp, rest);
        }
        self.places.write_tag(message, sequence + 1);
        let body_at = self.places.body_at;
        stamp.write(&mut message[body_at..body_at + self.head]);
    }
}

/// One message that is sent again and again, each time with a stamp of its own and a checksum.
#[derive(Debug)]
pub(super) struct Message {
    bytes: Vec<u8>,
    seal: Seal,
}

impl Message {
    /// As it is published there.
    pub(super) fn new(link: &Link, route: &Route<'_>, body: &[u8], producer: u32) -> Message {
        let mut bytes = Vec::new();
        let places = link.encode(route, body, &mut bytes);
        Message { bytes, seal: Seal::new(places, body, producer, true) }
    }

    /// Its octets as those of the message with that number.
    #[inline]
    pub(super) fn stamped(&mut self, sequence: u64) -> &[u8] {
        self.seal.write(&mut self.bytes, sequence, 0);
        &self.bytes
    }
}
