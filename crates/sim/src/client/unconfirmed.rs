//! Publishes on one channel that the broker has not confirmed yet, by their numbers.

use super::Scene;
use crate::history::{Event, MessageId};
use std::collections::BTreeMap;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Unconfirmed(BTreeMap<u64, MessageId>);

impl Unconfirmed {
    pub(super) fn sent(&mut self, number: u64, message: MessageId) {
        self.0.insert(number, message);
    }

    /// The broker confirmed one, or all up to it; notes each.
    pub(super) fn told(&mut self, scene: &mut Scene<'_>, tag: u64, multiple: bool, accepted: bool) {
        if multiple {
            let later = self.0.split_off(&(tag + 1));
            for message in std::mem::replace(&mut self.0, later).into_values() {
                scene.note(Event::Confirm { message, accepted });
            }
        } else if let Some(message) = self.0.remove(&tag) {
            scene.note(Event::Confirm { message, accepted });
        } else {
            // The history has no word for it; a code that no broker sends stands for it.
            let text = format!("publish {tag} was confirmed and is not waiting for it");
            scene.note(Event::Refused { code: 0, text });
        }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
