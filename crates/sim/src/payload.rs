//! Message bodies and headers that can be verified: their content follows from the message's
//! number and length.

use crate::history::MessageId;
use crate::random::Random;

/// Shortest body: the number, and enough filling to tell bodies apart.
pub const BYTES_MIN: usize = 16;

/// The body of message `id`, `length` bytes or [`BYTES_MIN`].
pub fn make(id: MessageId, length: usize) -> Vec<u8> {
    let length = length.max(BYTES_MIN);
    let mut body = id.0.to_be_bytes().to_vec();
    let mut filling = Random::new(id.0 ^ (length as u64).rotate_left(32));
    while body.len() < length {
        body.extend(filling.draw().to_be_bytes());
    }
    body.truncate(length);
    body
}

/// The number in a body, if it is, byte for byte, one that [`make`] made.
pub fn read(body: &[u8]) -> Option<MessageId> {
    let id = MessageId(u64::from_be_bytes(body.get(..8)?.try_into().ok()?));
    (make(id, body.len()) == body).then_some(id)
}

/// The header block of message `id`: a name that comes twice, values with colons, blanks and letters
/// beyond ASCII.
pub fn headers(id: MessageId) -> Vec<u8> {
    let mixed = Random::new(id.0).draw();
    let id = id.0;
    format!("NATS/1.0\r\nSim-Id: {id}\r\nSim-Text: a: {mixed:x} ü\r\nSim-Id: {mixed}\r\n\r\n")
        .into_bytes()
}
