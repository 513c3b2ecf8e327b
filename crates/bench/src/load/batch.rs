//! A batch of messages, encoded once; only their stamps change. Independent of sockets.

use super::message::{self, Stamper};
use super::plan::Plan;
use super::topology::{FIRST_DIGITS, Topology};
use crate::client::{Encoded, fake_broker, write_decimal};

/// A batch, which is one write, has at least the first; all batches together have the second, if there
/// are few producers. Larger writes cost less per message, as long as all batches fit into a processor's
/// cache.
const BATCH_BYTES: usize = 64 * 1024;
const ALL_BATCHES_BYTES: usize = 256 * 1024;

/// A batch of messages, encoded once.
pub(super) struct Batch {
    bytes: Vec<u8>,
    message_bytes: usize,
    stamper: Stamper,
    capacity: u64,
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
    Batch::new(plan, 0, |body, out| fake_broker.deliver(source.name, body, out)).message().len()
}

impl Batch {
    /// A batch of one producer; `encode` appends a message with this body.
    pub(super) fn new(
        plan: &Plan,
        producer: usize,
        encode: impl FnOnce(&[u8], &mut Vec<u8>) -> Encoded,
    ) -> Batch {
        let body = message::body(plan.size_bytes);
        let mut bytes = Vec::new();
        let places = encode(&body, &mut bytes);
        let message_bytes = bytes.len();
        let batch_bytes = (ALL_BATCHES_BYTES / plan.producers.max(1)).max(BATCH_BYTES);
        let capacity = (batch_bytes / message_bytes).max(1);
        let message = bytes.clone();
        let spread = Digits::find(&message[..places.body_at], plan.spread);
        for _ in 1..capacity {
            bytes.extend_from_slice(&message);
        }
        let stamper = Stamper::new(places, &body, producer as u32, plan.checksum);
        Batch { bytes, message_bytes, stamper, capacity: capacity as u64, spread }
    }

    /// Messages per batch.
    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The bytes of the whole batch.
    pub(super) fn whole(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes of the first message.
    pub(super) fn message(&self) -> &[u8] {
        &self.bytes[..self.message_bytes]
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
