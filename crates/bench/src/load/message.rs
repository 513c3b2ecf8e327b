//! Messages that are encoded once, alone and in batches; only stamp, tag and subject change.

use super::plan::Plan;
use super::stamp::{self, Stamp, TIMED_BYTES};
use super::topology::{FIRST_DIGITS, Topology};
use crate::client::{Encoded, Error, Link, Route, fake_broker, write_decimal};

pub(super) fn body(size_bytes: usize) -> Vec<u8> {
    (0..size_bytes).map(|at| b'a' + (at % 26) as u8).collect()
}

/// Stamps the messages of one producer.
pub(super) struct Stamper {
    places: Encoded,
    /// Bytes of the body that the stamp takes.
    head: usize,
    /// The checksum of the body after the stamp; `None` if messages carry none.
    rest: Option<u32>,
    producer: u32,
}

impl Stamper {
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
pub(super) struct Message {
    bytes: Vec<u8>,
    stamper: Stamper,
    /// How often it was sent.
    pub(super) sent: u64,
}

impl Message {
    pub(super) fn new(
        link: &mut Link,
        route: &Route<'_>,
        body: &[u8],
        producer: u32,
    ) -> Result<Message, Error> {
        let mut bytes = Vec::new();
        link.prepare(route)?;
        let places = link.encode(route, body, &mut bytes);
        Ok(Message { bytes, stamper: Stamper::new(places, body, producer, true), sent: 0 })
    }

    /// Its bytes, stamped with the next sequence number.
    #[inline]
    pub(super) fn next(&mut self) -> &[u8] {
        self.stamper.write(&mut self.bytes, self.sent, 0);
        self.sent += 1;
        &self.bytes
    }
}

/// A batch is one write of at least the first; with few producers, all batches together have the second.
/// Larger writes cost less per message as long as all batches fit into a processor's cache.
const BATCH_BYTES: usize = 64 * 1024;
const ALL_BATCHES_BYTES: usize = 256 * 1024;

pub(super) struct Batch {
    pub(super) bytes: Vec<u8>,
    pub(super) message_bytes: usize,
    stamper: Stamper,
    pub(super) capacity: u64,
    spread: Option<Digits>,
}

/// Where a subject's digits lie in a message, and how many subjects there are.
struct Digits {
    at: usize,
    subjects: u64,
}

impl Digits {
    fn find(message: &[u8], subjects: u64) -> Option<Digits> {
        let wanted = FIRST_DIGITS.as_bytes();
        let dot = message.windows(wanted.len()).position(|window| window == wanted)?;
        (subjects > 0).then_some(Digits { at: dot + 1, subjects })
    }

    #[inline]
    fn write(&self, message: &mut [u8], sequence: u64) {
        let digits = &mut message[self.at..self.at + FIRST_DIGITS.len() - 1];
        write_decimal(digits, sequence % self.subjects);
    }
}

/// Bytes on the wire of a delivered message of `plan`, if the broker adds no headers.
pub(crate) fn delivered_bytes(plan: &Plan) -> usize {
    let (fake_broker, topology) = (fake_broker(&plan.target), Topology::of(plan));
    let source = topology.source(plan, 0);
    Batch::new(plan, 0, |body, out| fake_broker.deliver(source.name, body, out)).message_bytes
}

impl Batch {
    /// A batch of one producer; `encode` appends a message with this body.
    pub(super) fn new(
        plan: &Plan,
        producer: usize,
        encode: impl FnOnce(&[u8], &mut Vec<u8>) -> Encoded,
    ) -> Batch {
        let body = body(plan.size_bytes);
        let mut message = Vec::new();
        let places = encode(&body, &mut message);
        let batch_bytes = (ALL_BATCHES_BYTES / plan.producers.max(1)).max(BATCH_BYTES);
        let capacity = (batch_bytes / message.len()).max(1);
        Batch {
            bytes: message.repeat(capacity),
            message_bytes: message.len(),
            stamper: Stamper::new(places, &body, producer as u32, plan.checksum),
            capacity: capacity as u64,
            spread: Digits::find(&message[..places.body_at], plan.spread),
        }
    }

    /// Moves the first `count` messages to another transaction.
    pub(super) fn join_transaction(&mut self, id: &[u8], count: u64) -> Result<(), Error> {
        let used = count.min(self.capacity) as usize * self.message_bytes;
        let mut messages = self.bytes[..used].chunks_exact_mut(self.message_bytes);
        match messages.all(|message| self.stamper.places.write_transaction(message, id)) {
            true => Ok(()),
            false => Err(Error::invalid("ids of transactions of several lengths")),
        }
    }

    /// Stamps the first `count` messages and returns their bytes.
    #[inline]
    pub(super) fn stamp(&mut self, count: u64, first: u64, sent_ns: impl Fn(u64) -> u64) -> &[u8] {
        let used = count as usize * self.message_bytes;
        for (index, message) in self.bytes[..used].chunks_exact_mut(self.message_bytes).enumerate()
        {
            let sequence = first + index as u64;
            if let Some(digits) = &self.spread {
                digits.write(message, sequence);
            }
            self.stamper.write(message, sequence, sent_ns(index as u64));
        }
        &self.bytes[..used]
    }
}

#[cfg(test)]
mod tests {
    use super::{Digits, Plan, delivered_bytes};

    #[test]
    fn octets_of_a_delivery_are_those_of_its_head_and_its_body() {
        for size_bytes in [100, 1_024] {
            let plan = Plan::new("nats://h".parse().expect("it is an address"));
            let octets = delivered_bytes(&Plan { size_bytes, ..plan });
            // `MSG bench.` with up to six digits, `.0 1 `, the size, and two line ends.
            let head = octets - size_bytes - size_bytes.to_string().len();
            assert!((20..=25).contains(&head), "{head}");
        }
    }

    #[test]
    fn messages_are_spread_over_subjects() {
        let mut message = b"PUB a.0.0000000 5\r\n".to_vec();
        let digits = Digits::find(&message, 100_000).expect("they are there");
        for (sequence, wanted) in
            [(0, "0000000"), (7, "0000007"), (99_999, "0099999"), (100_001, "0000001")]
        {
            digits.write(&mut message, sequence);
            assert_eq!(message, format!("PUB a.0.{wanted} 5\r\n").as_bytes());
        }
        assert!(Digits::find(b"PUB a.0 5\r\n", 100_000).is_none());
        assert!(Digits::find(&message, 0).is_none());
    }
}
