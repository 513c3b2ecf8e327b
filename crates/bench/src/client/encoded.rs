//! An encoded message: where its body lies, and where the tag that its confirm will name.

/// Packet identifiers of MQTT: 1 to this (2.2.1).
pub(super) const PACKET_IDS: u64 = 65_535;

/// Where the parts of an encoded message lie that change from one message to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoded {
    /// Offset of the body's first byte.
    pub body_at: usize,
    tag: Option<Tag>,
    transaction: Option<TransactionId>,
}

/// Where a message carries the id of its transaction (AMQP 1.0).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TransactionId {
    at: usize,
    bytes: usize,
}

/// Where and how a message carries the tag that its confirm will name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tag {
    /// A packet identifier of two bytes (MQTT).
    PacketId { at: usize },
    /// Decimal digits: of a receipt (STOMP), or of the reply subject (JetStream).
    Digits { at: usize, count: usize },
    /// A delivery-id of four bytes, and a delivery tag of four (AMQP 1.0).
    Delivery { id_at: usize, tag_at: usize },
}

impl Encoded {
    /// A message without a tag.
    pub(super) fn body_at(body_at: usize) -> Encoded {
        Encoded { body_at, tag: None, transaction: None }
    }

    /// With a packet identifier at this offset, if any.
    pub(super) fn with_packet_id(self, at: Option<usize>) -> Encoded {
        Encoded { tag: at.map(|at| Tag::PacketId { at }), ..self }
    }

    /// With a tag of `count` decimal digits at this offset, if any.
    pub(super) fn with_digits(self, at: Option<usize>, count: usize) -> Encoded {
        Encoded { tag: at.map(|at| Tag::Digits { at, count }), ..self }
    }

    /// With a delivery-id and a delivery tag at these offsets.
    pub(super) fn with_delivery_id(self, id_at: usize, tag_at: usize) -> Encoded {
        Encoded { tag: Some(Tag::Delivery { id_at, tag_at }), ..self }
    }

    /// With the id of a transaction at this offset.
    pub(super) fn with_transaction(self, at: usize, bytes: usize) -> Encoded {
        Encoded { transaction: Some(TransactionId { at, bytes }), ..self }
    }

    /// Writes the id of the message's transaction, where it has one: `false` if the id is of another length.
    pub fn write_transaction(&self, message: &mut [u8], id: &[u8]) -> bool {
        let Some(TransactionId { at, bytes }) = self.transaction else { return true };
        let is_as_long = id.len() == bytes;
        if is_as_long {
            message[at..at + bytes].copy_from_slice(id);
        }
        is_as_long
    }

    /// Writes the tag, which counts from 1, where the protocol carries one.
    #[inline]
    pub fn write_tag(&self, message: &mut [u8], tag: u64) {
        match self.tag {
            None => {}
            Some(Tag::PacketId { at }) => {
                message[at..at + 2].copy_from_slice(&packet_id_of(tag).to_be_bytes());
            }
            Some(Tag::Delivery { id_at, tag_at }) => {
                let number = (tag as u32).to_be_bytes();
                message[id_at..id_at + 4].copy_from_slice(&number);
                message[tag_at..tag_at + 4].copy_from_slice(&number);
            }
            Some(Tag::Digits { at, count }) => write_decimal(&mut message[at..at + count], tag),
        }
    }
}

/// The MQTT packet identifier of the message with this tag.
#[inline]
pub(super) fn packet_id_of(tag: u64) -> u16 {
    ((tag - 1) % PACKET_IDS + 1) as u16
}

/// Writes a number in decimal over all of `digits`, with leading zeros.
#[inline]
pub(crate) fn write_decimal(digits: &mut [u8], mut number: u64) {
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}
