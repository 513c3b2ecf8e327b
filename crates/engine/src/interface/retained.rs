//! Retained messages: what a publish says of them, and what a subscriber asks for.

use bytes::Bytes;

/// Whether a message to a subject stays behind as the subject's retained message, in place of an earlier one.
/// One without payload takes that away. Each lasts until its time to live is over, and over restarts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retain {
    /// It does not.
    #[default]
    No,
    /// It does; a confirm says that this is safe, too.
    Yes,
    /// It does, and goes nowhere else: it was emitted. It is not confirmed, and dropped where it is refused.
    Only,
}

/// What a subscriber wants of the messages that are retained when it asks. They come one after the other, as
/// fast as the channel takes them, and as each subject has them by then; later ones do not, since the
/// subscriber gets them as they are published.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replay {
    /// Names it within its channel: deliveries carry the name as their consumer, and an earlier replay of
    /// that name ends.
    pub name: String,
    /// Their subjects, as the key of a binding to a topic exchange, with `#` at its end only. A wildcard as
    /// the first word does not stand for words that begin with `$`.
    pub key: String,
    /// Persistent ones go through the queue of the session that the channel holds, and the rest is the
    /// session's. All others are settled once they are sent.
    pub through_session: bool,
    /// What they have as [`Annotations::changed`](crate::Annotations::changed).
    pub note: Bytes,
}
