//! What answers of the engine are awaited for.

use super::codec::Reason;

/// What an answer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pending {
    /// Nothing comes of it.
    Nothing,
    /// The session, from CONNECT on.
    Claim,
    /// Something that has to be there before CONNACK.
    Beginning,
    /// The session, which is to have a queue.
    Queue,
    /// A part of a SUBSCRIBE or UNSUBSCRIBE: of its filter of that index, or of all of it.
    Subscribing(Option<usize>),
    /// The message of that packet identifier is released.
    Release(u16),
    /// Another message may have that packet identifier.
    Complete(u16, Reason),
}
