//! One direct message among those who listen to it: who is handed it, and how many heard it.

use super::interest::Group;
use super::listen::Listener;
use crate::slab::Slab;
use crate::{Effects, Heard, MessageView, Reached, Shards};

/// One message on its way, by which it is told from others.
#[derive(Clone, Copy)]
pub(super) struct Emission<'a> {
    pub(super) number: u64,
    /// As [`crate::Delivery`] has it.
    pub(super) streak: u64,
    pub(super) message: &'a MessageView<'a>,
    /// Shards that a group's member is not to be looked for on.
    pub(super) tried: Shards,
}

/// Counts who heard one message.
#[derive(Debug, Default)]
pub(super) struct Hearing {
    pub(super) heard: u64,
    pub(super) missed: u64,
    /// Somebody has little unsent.
    has_free: bool,
}

impl Hearing {
    #[inline]
    pub(super) fn count(&mut self, heard: Heard) {
        match heard {
            Heard::Well => {
                self.heard += 1;
                self.has_free = true;
            }
            Heard::Crowded => self.heard += 1,
            Heard::Missed => self.missed += 1,
        }
    }

    /// Hands the message to all of them.
    #[inline]
    pub(super) fn count_all<F: Effects>(
        &mut self,
        all: &[u32],
        listeners: &mut Slab<Listener>,
        spent: &mut Vec<u32>,
        is_deaf: impl Fn(&Listener) -> bool,
        emission: Emission<'_>,
        fx: &mut F,
    ) {
        for &slot in all {
            let Some(listener) = listeners.get_mut(slot) else { continue };
            if !is_deaf(listener) {
                self.count(listener.hear(emission, fx));
                if listener.heard >= listener.until {
                    spent.push(slot);
                }
            }
        }
    }

    /// Hands the message to the next member of a group that keeps up; says whether there was one to
    /// hand it to.
    pub(super) fn count_one<F: Effects>(
        &mut self,
        group: &mut Group,
        listeners: &mut Slab<Listener>,
        spent: &mut Vec<u32>,
        is_deaf: impl Fn(&Listener) -> bool,
        emission: Emission<'_>,
        fx: &mut F,
    ) -> bool {
        let mut has_missed = false;
        for _ in 0..group.members.len() {
            let slot = group.next();
            let Some(listener) = listeners.get_mut(slot) else { continue };
            if is_deaf(listener) {
                continue;
            }
            match listener.hear(emission, fx) {
                Heard::Missed => {
                    // It is another one's now.
                    listener.missed -= 1;
                    has_missed = true;
                }
                heard => {
                    self.count(heard);
                    if listener.heard >= listener.until {
                        spent.push(slot);
                    }
                    return true;
                }
            }
        }
        if has_missed && group.any_elsewhere(emission.tried).is_none() {
            self.count(Heard::Missed);
        }
        false
    }

    #[inline]
    pub(super) fn reached(&self) -> Reached {
        let listeners = u32::try_from(self.heard + self.missed).unwrap_or(u32::MAX);
        Reached { listeners, queues: 0, crowded: listeners > 0 && !self.has_free }
    }
}
