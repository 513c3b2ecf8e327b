//! The messages of the exchange: nine octets each, as many as the text's had in the mean.

/// Octets of every message.
pub(crate) const MESSAGE_BYTES: usize = 9;

/// What a message says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Message {
    /// Order `number` buys at a price.
    Buy(u32, u16),
    /// Order `number` sells at a price.
    Sell(u32, u16),
    /// Order `number` has been taken.
    Confirmed(u32, u16),
    /// Order `number` has been matched.
    Traded(u32, u16),
    /// The best bid and the best ask; 0 is none.
    Quote(u16, u16),
    /// So many orders have been taken.
    Measured(u32),
}

impl Message {
    /// `kind(1) number(4) price(2) check(2)`, least significant octet first.
    pub(super) fn encode(self) -> [u8; MESSAGE_BYTES] {
        let (kind, number, price) = match self {
            Message::Buy(number, price) => (b'B', number, price),
            Message::Sell(number, price) => (b'S', number, price),
            Message::Confirmed(number, price) => (b'C', number, price),
            Message::Traded(number, price) => (b'T', number, price),
            Message::Quote(bid, ask) => (b'Q', u32::from(bid), ask),
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

    /// `None` for what is none, or was harmed.
    pub(super) fn decode(octets: &[u8]) -> Option<Message> {
        let octets: &[u8; MESSAGE_BYTES] = octets.try_into().ok()?;
        if octets[7..] != check(octets).to_le_bytes() {
            return None;
        }
        let number = u32::from_le_bytes([octets[1], octets[2], octets[3], octets[4]]);
        let price = u16::from_le_bytes([octets[5], octets[6]]);
        Some(match octets[0] {
            b'B' => Message::Buy(number, price),
            b'S' => Message::Sell(number, price),
            b'C' => Message::Confirmed(number, price),
            b'T' => Message::Traded(number, price),
            b'Q' => Message::Quote(number as u16, price),
            b'M' => Message::Measured(number),
            _ => return None,
        })
    }
}

/// Half of a CRC-32 over what stands before it.
fn check(octets: &[u8; MESSAGE_BYTES]) -> u16 {
    crc32fast::hash(&octets[..7]) as u16
}
