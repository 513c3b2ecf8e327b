//! All sessions: by slot, by name, by record number, by holder.

use super::Session;
use crate::foundation::slab::Slab;
use crate::{ChannelId, Position};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// All sessions.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    slots: Slab<Session>,
    /// Slots by virtual host and name.
    names: BTreeMap<u32, BTreeMap<Arc<str>, u32>>,
    /// Slots by number.
    numbers: BTreeMap<u64, u32>,
    /// How many each user owns.
    users: BTreeMap<Arc<str>, usize>,
    held: BTreeSet<(ChannelId, u32)>,
    pub(crate) next_number: u64,
    /// Records of ends that are not flushed, by virtual host and name. A crash would undo the end: the answer
    /// to a claim of that name waits for it.
    ending: BTreeMap<(u32, Arc<str>), Position>,
}

/// To be read; what changes the indexes is below.
impl std::ops::Deref for Sessions {
    type Target = Slab<Session>;
    fn deref(&self) -> &Slab<Session> {
        &self.slots
    }
}

/// Owner, name and holder of a session are changed below only.
impl std::ops::DerefMut for Sessions {
    fn deref_mut(&mut self) -> &mut Slab<Session> {
        &mut self.slots
    }
}

impl Sessions {
    pub(crate) fn new() -> Sessions {
        Sessions { next_number: 1, ..Sessions::default() }
    }

    pub(crate) fn count_in_vhost(&self, vhost: u32) -> usize {
        self.names.get(&vhost).map_or(0, BTreeMap::len)
    }

    pub(crate) fn count_of_user(&self, user: &str) -> usize {
        self.users.get(user).copied().unwrap_or(0)
    }

    /// The slot of a session by name.
    pub(crate) fn find(&self, vhost: u32, name: &str) -> Option<u32> {
        self.names.get(&vhost)?.get(name).copied()
    }

    /// The slot of a session by number.
    pub(crate) fn numbered(&self, number: u64) -> Option<u32> {
        self.numbers.get(&number).copied()
    }

    /// Adds a session; no other has its name or number.
    pub(crate) fn insert(&mut self, session: Session) -> u32 {
        self.next_number = self.next_number.max(session.number.saturating_add(1));
        *self.users.entry(Arc::clone(&session.user)).or_default() += 1;
        let slot = self.slots.next_slot();
        self.names.entry(session.vhost).or_default().insert(Arc::clone(&session.name), slot);
        self.numbers.insert(session.number, slot);
        self.held.extend(session.holder.map(|holder| (holder, slot)));
        self.slots.insert(session)
    }

    /// Takes a session out.
    pub(crate) fn remove(&mut self, slot: u32) -> Option<Session> {
        let session = self.slots.remove(slot)?;
        self.numbers.remove(&session.number);
        self.names.get_mut(&session.vhost).map(|names| names.remove(&session.name));
        if let Some(count) = self.users.get_mut(&session.user) {
            *count -= 1;
            if *count == 0 {
                self.users.remove(&session.user);
            }
        }
        if let Some(holder) = session.holder {
            self.held.remove(&(holder, slot));
        }
        Some(session)
    }

    /// Changes who holds a session; returns who did.
    pub(crate) fn set_holder(&mut self, slot: u32, holder: Option<ChannelId>) -> Option<ChannelId> {
        let session = self.slots.get_mut(slot)?;
        let before = std::mem::replace(&mut session.holder, holder);
        if let Some(before) = before {
            self.held.remove(&(before, slot));
        }
        self.held.extend(holder.map(|holder| (holder, slot)));
        before
    }

    /// How many are held.
    pub(crate) fn held_count(&self) -> usize {
        self.held.len()
    }

    /// One of the sessions that a channel holds.
    pub(crate) fn held_by(&self, channel: ChannelId) -> Option<u32> {
        let (holder, slot) = self.held.range((channel, 0)..).next()?;
        (*holder == channel).then_some(*slot)
    }

    /// All sessions that a channel holds.
    pub(crate) fn all_held_by(&self, channel: ChannelId) -> Vec<u32> {
        let held = self.held.range((channel, 0)..=(channel, u32::MAX));
        held.map(|(_, slot)| *slot).collect()
    }

    /// The record of a session's end is at `position`.
    pub(crate) fn note_ending(&mut self, vhost: u32, name: &Arc<str>, position: Position) {
        self.ending.insert((vhost, Arc::clone(name)), position);
    }

    /// The record of the end of a session of that name, if it is not flushed.
    pub(crate) fn ending(&self, vhost: u32, name: &str) -> Option<Position> {
        self.ending.get(&(vhost, name.into())).copied()
    }

    /// Everything before `position` is flushed.
    pub(crate) fn flushed(&mut self, position: Position) {
        self.ending.retain(|_, at| *at >= position);
    }
}

#[cfg(test)]
impl Sessions {
    /// Panics where the indexes disagree.
    pub(crate) fn check_invariants(&self) {
        let count = self.slots.len();
        assert_eq!(self.numbers.len(), count);
        assert_eq!(self.names.values().map(BTreeMap::len).sum::<usize>(), count);
        assert_eq!(self.users.values().sum::<usize>(), count);
        assert_eq!(self.held.len(), self.iter().filter(|(_, it)| it.holder.is_some()).count());
        for (slot, session) in self.iter() {
            assert_eq!(self.find(session.vhost, &session.name), Some(slot));
            assert_eq!(self.numbered(session.number), Some(slot));
            assert!(session.number < self.next_number);
            match session.holder {
                Some(holder) => {
                    assert!(self.held.contains(&(holder, slot)));
                    assert_eq!((session.detached_at, session.expires_at), (None, None));
                }
                None => assert!(session.detached_at.is_some()),
            }
        }
    }
}
