//! What a link tells a workload while it parses. Knows no protocol.

use super::Error;

/// How a delivery begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Head {
    /// What an acknowledgement names; 0 where the protocol has none.
    pub tag: u64,
    /// The broker says that it delivered this before.
    pub redelivered: bool,
    /// Octets of the body.
    pub size: u64,
}

/// A confirm of published messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Confirm {
    /// Which: the first published message has tag 1.
    pub tag: u64,
    /// All up to this one.
    pub multiple: bool,
    /// The broker did not take it.
    pub refused: bool,
}

/// Takes what a link parses. A delivery is `begin`, `body` as often as it came in pieces, and
/// `complete`.
pub trait Receiver {
    /// A delivery begins.
    fn begin(&mut self, _head: Head) {}

    /// A piece of its body.
    fn body(&mut self, _octets: &[u8]) {}

    /// Its last octet came.
    fn complete(&mut self) {}

    /// Published messages are settled.
    fn confirm(&mut self, _confirm: Confirm) -> Result<(), Error> {
        Ok(())
    }

    /// A transaction is committed.
    fn committed(&mut self) {}

    /// The broker has done all that was asked of it before [`super::Link::send_end`].
    fn ended(&mut self) {}
}

/// Takes everything and keeps nothing.
impl Receiver for () {}
