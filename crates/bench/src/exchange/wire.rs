//! The messages of the exchange: nine bytes each, the mean size in OSU's text.

use super::order_book::{Order, Quote};

/// Bytes of a message.
pub(crate) const MESSAGE_BYTES: usize = 9;

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Message {
    /// An order to buy.
    Buy(Order),
    /// An order to sell.
    Sell(Order),
    /// The engine has accepted an order.
    Confirmed(Order),
    /// The engine has matched an order.
    Traded(Order),
    /// The best bid and ask changed.
    Quote(Quote),
    /// The number of accepted orders.
    Measured(u32),
}

impl Message {
    /// `kind(1) number(4) price(2) check(2)`, little-endian.
    pub(super) fn encode(self) -> [u8; MESSAGE_BYTES] {
        let (kind, number, price) = match self {
            Message::Buy(order) => (b'B', order.number, order.price),
            Message::Sell(order) => (b'S', order.number, order.price),
            Message::Confirmed(order) => (b'C', order.number, order.price),
            Message::Traded(order) => (b'T', order.number, order.price),
            Message::Quote(quote) => (b'Q', u32::from(quote.bid), quote.ask),
            Message::Measured(count) => (b'M', count, 0),
        };
        let mut octets = [0; MESSAGE_BYTES];
        octets[0] = kind;
        octets[1..5].copy_from_slice(&number.to_le_bytes());
        octets[5..7].copy_from_slice(&price.to_le_bytes());
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
        let number = u32::from_le_bytes([octets[1], octets[2], octets[3], octets[4]]);
        let price = u16::from_le_bytes([octets[5], octets[6]]);
        let order = Order { number, price };
        Some(match octets[0] {
            b'B' => Message::Buy(order),
            b'S' => Message::Sell(order),
            b'C' => Message::Confirmed(order),
            b'T' => Message::Traded(order),
            b'Q' => Message::Quote(Quote { bid: number as u16, ask: price }),
            b'M' => Message::Measured(number),
            _ => return None,
        })
    }
}

/// Half of a CRC-32 over the bytes before it.
fn check(octets: &[u8; MESSAGE_BYTES]) -> u16 {
    crc32fast::hash(&octets[..7]) as u16
}
