//! What one channel has published: the numbers of its messages, and which are not confirmed yet.

use super::Scene;
use crate::history::{Event, MessageId};
use std::collections::BTreeMap;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Publishes {
    /// This connection's number as a producer.
    producer: u32,
    sequence: u32,
    unconfirmed: BTreeMap<u64, MessageId>,
}

impl Publishes {
    /// Those of a new connection.
    pub(super) fn begin(scene: &mut Scene<'_>) -> Publishes {
        scene.numbers.producer += 1;
        Publishes { producer: scene.numbers.producer, ..Publishes::default() }
    }

    /// The number of the next message.
    pub(super) fn next(&mut self) -> MessageId {
        self.sequence += 1;
        MessageId::new(self.producer, self.sequence)
    }

    /// The newest message is one that the broker confirms.
    pub(super) fn await_confirm(&mut self, message: MessageId) {
        self.unconfirmed.insert(self.sequence.into(), message);
    }

    /// The broker confirmed one, or all up to it; notes each.
    pub(super) fn told(&mut self, scene: &mut Scene<'_>, tag: u64, multiple: bool, accepted: bool) {
        if multiple {
            let later = self.unconfirmed.split_off(&(tag + 1));
            for message in std::mem::replace(&mut self.unconfirmed, later).into_values() {
                scene.note(Event::Confirm { message, accepted });
            }
        } else if let Some(message) = self.unconfirmed.remove(&tag) {
            scene.note(Event::Confirm { message, accepted });
        } else {
            // The history has no word for it; a code that no broker sends stands for it.
            let text = format!("publish {tag} was confirmed and is not waiting for it");
            scene.note(Event::Refused { code: 0, text });
        }
    }

    /// How many are not confirmed.
    pub(super) fn unconfirmed(&self) -> usize {
        self.unconfirmed.len()
    }

    pub(super) fn are_confirmed(&self) -> bool {
        self.unconfirmed.is_empty()
    }

    /// The connection has ended: what is not confirmed will not be.
    pub(super) fn end(&mut self) {
        self.unconfirmed.clear();
    }
}
