//! Sessions that listen, and the listeners of those that have gone: they hear nothing more at once, and
//! are taken out a part at a time, however many they are. Knows not what they listened to.

use super::listen::Listeners;
use crate::slab::Slab;
use std::collections::VecDeque;

/// Sessions that listen or have listened.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    /// Whether each is still there.
    present: Slab<bool>,
    /// The listeners of those that have gone, which are taken out a part at a time.
    leaving: VecDeque<Listeners>,
}

impl Sessions {
    /// Whether there are listeners of sessions that have gone.
    #[inline]
    pub(super) fn are_leaving(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// One comes; its place.
    pub(super) fn come(&mut self) -> u32 {
        self.present.insert(true)
    }

    /// Whether one has gone that listeners are still there of.
    #[inline]
    pub(super) fn has_left(&self, whose: u32) -> bool {
        self.are_leaving() && self.is_absent(whose)
    }

    #[cold]
    fn is_absent(&self, whose: u32) -> bool {
        self.present.get(whose) != Some(&true)
    }

    /// One goes.
    pub(super) fn leave(&mut self, listeners: Listeners) {
        let Some(whose) = listeners.whose else { return };
        *self.present.get_mut(whose).expect("it listened") = false;
        self.leaving.push_back(listeners);
    }

    /// Takes the next part of those who are leaving.
    pub(super) fn next_part(&mut self) -> impl Iterator<Item = u32> + use<> {
        let mut part = None;
        if let Some(listeners) = self.leaving.front_mut() {
            part = listeners.slots.take_part();
            if listeners.slots.len() == 0 {
                listeners.whose.and_then(|whose| self.present.remove(whose));
                self.leaving.pop_front();
            }
        }
        part.into_iter().flatten()
    }

    /// How many are known.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.present.len()
    }
}
