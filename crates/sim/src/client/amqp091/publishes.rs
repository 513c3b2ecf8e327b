//! The publishes of one channel: their numbers, and which are not confirmed.

use super::context::Context;
use crate::history::{Event, MessageId};
use std::collections::BTreeMap;

/// The publishes of one channel.
#[derive(Debug, Default)]
pub(super) struct Publishes {
    /// This connection's number as a producer.
    producer: u32,
    sequence: u32,
    unconfirmed: BTreeMap<u64, MessageId>,
}

impl Publishes {
    /// Starts anew for a new connection.
    pub(super) fn begin(context: &mut Context<'_>) -> Publishes {
        context.numbers.producer += 1;
        Publishes { producer: context.numbers.producer, ..Publishes::default() }
    }

    /// The number of the next message.
    pub(super) fn next(&mut self) -> MessageId {
        self.sequence += 1;
        MessageId::new(self.producer, self.sequence)
    }

    /// Expects a confirm of the newest message.
    pub(super) fn await_confirm(&mut self, message: MessageId) {
        self.unconfirmed.insert(self.sequence.into(), message);
    }

    /// Records a confirm: of one message, or of all up to it.
    pub(super) fn record_confirm(
        &mut self,
        context: &mut Context<'_>,
        tag: u64,
        multiple: bool,
        accepted: bool,
    ) {
        if multiple {
            let later = self.unconfirmed.split_off(&(tag + 1));
            for message in std::mem::replace(&mut self.unconfirmed, later).into_values() {
                context.note(Event::Confirm { message, accepted });
            }
        } else if let Some(message) = self.unconfirmed.remove(&tag) {
            context.note(Event::Confirm { message, accepted });
        } else {
            // Recorded as a refusal with a code that no broker sends.
            let text = format!("publish {tag} was confirmed and is not waiting for it");
            context.note(Event::Refused { code: 0, text });
        }
    }

    /// How many are not confirmed.
    pub(super) fn unconfirmed(&self) -> usize {
        self.unconfirmed.len()
    }

    pub(super) fn are_confirmed(&self) -> bool {
        self.unconfirmed.is_empty()
    }

    /// Ends with the connection: no more confirms will come.
    pub(super) fn end(&mut self) {
        self.unconfirmed.clear();
    }
}
