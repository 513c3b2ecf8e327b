//! Messages that are encoded once; only stamp and tag change from one to the next.

use super::stamp::{self, Stamp, TIMED_BYTES};
use crate::client::{Encoded, Link, Route};

/// A body of this size.
pub(super) fn body(size_bytes: usize) -> Vec<u8> {
    (0..size_bytes).map(|at| b'a' + (at % 26) as u8).collect()
}

/// Stamps the messages of one producer.
#[derive(Debug, Clone)]
pub(super) struct Stamper {
    places: Encoded,
    /// Bytes of the body that the stamp takes.
    head: usize,
    /// The checksum of the body after the stamp; `None` if messages carry none.
    rest: Option<u32>,
    producer: u32,
}

impl Stamper {
    /// For messages with this body.
    pub(super) fn new(places: Encoded, body: &[u8], producer: u32, checksum: bool) -> Stamper {
        let head = body.len().min(TIMED_BYTES);
        let rest = checksum.then(|| crc32fast::hash(&body[head..]));
        Stamper { places, head, rest, producer }
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

/// One message that is sent again and again, each time with its own stamp and a checksum.
#[derive(Debug)]
pub(super) struct Message {
    bytes: Vec<u8>,
    stamper: Stamper,
}

impl Message {
    /// Encodes it for this route.
    pub(super) fn new(link: &Link, route: &Route<'_>, body: &[u8], producer: u32) -> Message {
        let mut bytes = Vec::new();
        let places = link.encode(route, body, &mut bytes);
        Message { bytes, stamper: Stamper::new(places, body, producer, true) }
    }

    /// Its bytes, stamped with this sequence number.
    #[inline]
    pub(super) fn stamped(&mut self, sequence: u64) -> &[u8] {
        self.stamper.write(&mut self.bytes, sequence, 0);
        &self.bytes
    }
}
