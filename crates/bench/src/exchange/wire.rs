//! The messages of the exchange: nine bytes each, the mean size in OSU's text.

pub(crate) const MESSAGE_BYTES: usize = 9;

/// What a message says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// An order to buy.
    Buy = b'B',
    /// An order to sell.
    Sell = b'S',
    /// The engine has accepted an order.
    Confirmed = b'C',
    /// The engine has matched an order.
    Traded = b'T',
    /// The best bid, as the number, and the best ask, as the price, changed.
    Quote = b'Q',
    /// The number of accepted orders.
    Measured = b'M',
}

const KINDS: [Kind; 6] =
    [Kind::Buy, Kind::Sell, Kind::Confirmed, Kind::Traded, Kind::Quote, Kind::Measured];

/// A message, of an order with this number and price unless its kind says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) kind: Kind,
    pub(super) number: u32,
    pub(super) price: u16,
}

impl Message {
    /// `kind(1) number(4) price(2) check(2)`, little-endian.
    pub(super) fn encode(self) -> [u8; MESSAGE_BYTES] {
        let mut octets = [0; MESSAGE_BYTES];
        octets[0] = self.kind as u8;
        octets[1..5].copy_from_slice(&self.number.to_le_bytes());
        octets[5..7].copy_from_slice(&self.price.to_le_bytes());
        let check = check(&octets);
        octets[7..].copy_from_slice(&check.to_le_bytes());
        octets
    }

    /// `None` for anything malformed or damaged.
    pub(super) fn decode(octets: &[u8]) -> Option<Message> {
        let octets: &[u8; MESSAGE_BYTES] = octets.try_into().ok()?;
        if octets[7..] != check(octets).to_le_bytes() {
            return None;
        }
        let kind = KINDS.into_iter().find(|kind| *kind as u8 == octets[0])?;
        let number = u32::from_le_bytes([octets[1], octets[2], octets[3], octets[4]]);
        Some(Message { kind, number, price: u16::from_le_bytes([octets[5], octets[6]]) })
    }
}

/// Half of a CRC-32 over the bytes before it.
fn check(octets: &[u8; MESSAGE_BYTES]) -> u16 {
    crc32fast::hash(&octets[..7]) as u16
}
