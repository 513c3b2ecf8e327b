//! The callbacks of a link's parser. Independent of protocols.

use super::Error;

/// The start of a delivery.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Head {
    /// The tag to acknowledge; 0 where the protocol has none.
    pub tag: u64,
    /// The broker marked it as redelivered.
    pub redelivered: bool,
    /// Octets of the body.
    pub size: u64,
}

/// A confirm of published messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Confirm {
    /// The first published message has tag 1.
    pub tag: u64,
    /// Covers all tags up to this one.
    pub multiple: bool,
    /// The broker refused the message.
    pub refused: bool,
}

/// Receives what a link parses. A delivery is one `begin`, a `body` per piece, and one `complete`.
pub trait Receiver {
    /// A delivery begins.
    fn begin(&mut self, _head: Head) {}

    /// A piece of its body.
    fn body(&mut self, _octets: &[u8]) {}

    /// The delivery is complete.
    fn complete(&mut self) {}

    /// Published messages are confirmed or refused.
    fn confirm(&mut self, _confirm: Confirm) -> Result<(), Error> {
        Ok(())
    }

    /// A transaction is committed.
    fn committed(&mut self) {}

    /// The answer to [`super::Link::send_end`] arrived.
    fn ended(&mut self) {}
}

/// Ignores everything.
impl Receiver for () {}
