//! What a request of management comes to: a question to the engine, or its answer.

use super::super::codec::{MessageId, OwnedValue, Value};
use angarium_engine::Request;

/// What a request comes to next.
#[derive(Debug)]
pub(in super::super) enum Step {
    /// The engine is asked; its reply continues the [`Call`].
    Ask(Request),
    /// The answer: a message, all sections of it.
    Answer(Vec<u8>),
}

/// A request and what it comes to first.
#[derive(Debug)]
pub(in super::super) struct Begun<C> {
    /// What continues with the engine's reply; `None`: it is answered.
    pub(in super::super) call: Option<C>,
    pub(in super::super) step: Step,
    /// Where the answer goes: an address, or the link that is paired with the request's (`$me`).
    pub(in super::super) reply_to: Option<String>,
}

impl<C> Begun<C> {
    /// The same, with what continues made into something else.
    pub(super) fn map<D>(self, call: impl FnOnce(C) -> D) -> Begun<D> {
        Begun { call: self.call.map(call), step: self.step, reply_to: self.reply_to }
    }
}

/// An id that was kept from a request.
pub(super) fn message_id(id: Option<&OwnedValue>) -> Option<MessageId<'_>> {
    match id?.value() {
        Value::ULong(id) => Some(MessageId::ULong(id)),
        Value::Uuid(id) => Some(MessageId::Uuid(id)),
        Value::Binary(id) => Some(MessageId::Binary(id)),
        Value::String(id) => Some(MessageId::String(id)),
        _ => None,
    }
}
