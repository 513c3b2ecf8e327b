//! Replays as data: who is shown which retained messages, and how far each has come.

use super::subject::{Key, Pattern};
use crate::foundation::slab::Slab;
use crate::{ChannelId, Position};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// A replay that is under way.
#[derive(Debug)]
pub(crate) struct Running {
    /// Tells it from others that had its slot.
    pub(super) number: u64,
    pub(super) name: Box<str>,
    pub(super) key: Box<str>,
    pub(super) pattern: Pattern,
    pub(super) note: Bytes,
    pub(super) vhost: u32,
    /// Whose rights it takes; `None`: everything is allowed.
    pub(super) user: Option<Arc<str>>,
    /// The name of its client, if it has one.
    pub(super) client: Option<Box<str>>,
    /// The channel that is shown messages; none while its session is detached.
    pub(super) channel: Option<ChannelId>,
    /// The number of the session that it belongs to.
    pub(super) session: Option<u64>,
    /// No key before this one is left.
    pub(super) next: Vec<u8>,
    /// Only messages that were retained before this number are shown.
    pub(super) before: u64,
    /// It waits for the journal.
    pub(super) is_loading: bool,
    /// A load failed: what follows is read singly.
    pub(super) reads_singly: bool,
    pub(super) is_awake: bool,
}

/// A message that a replay wants to show.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) key: Key,
    pub(super) number: u64,
    /// Where its record was.
    pub(super) position: Position,
}

/// What a replay has asked the journal for.
#[derive(Debug)]
pub(crate) struct ReplayLoad {
    pub(super) slot: u32,
    pub(super) number: u64,
    pub(super) wanted: Vec<Asked>,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Replays {
    all: Slab<Running>,
    by_channel: BTreeMap<ChannelId, BTreeSet<u32>>,
    by_session: BTreeMap<u64, BTreeSet<u32>>,
    /// Those that may have something to show, each once.
    awake: VecDeque<u32>,
    next_number: u64,
    bytes: u64,
}

impl Running {
    /// One that has shown nothing.
    pub(super) fn new(key: Box<str>, pattern: Pattern, before: u64) -> Running {
        Running {
            number: 0,
            name: "".into(),
            key,
            next: pattern.first(),
            pattern,
            note: Bytes::new(),
            vhost: 0,
            user: None,
            client: None,
            channel: None,
            session: None,
            before,
            is_loading: false,
            reads_singly: false,
            is_awake: false,
        }
    }

    /// About how much memory it takes.
    fn bytes(&self) -> u64 {
        let client = self.client.as_ref().map_or(0, |it| it.len());
        let texts = self.name.len() + 3 * self.key.len() + self.note.len() + client;
        (size_of::<Running>() + 256 + texts) as u64
    }
}

impl Replays {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.all.len() == 0
    }

    /// About how much memory they take.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether one of them may have something to show.
    #[inline]
    pub(crate) fn has_work(&self) -> bool {
        !self.awake.is_empty()
    }

    pub(super) fn get(&self, slot: u32) -> Option<&Running> {
        self.all.get(slot)
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut Running> {
        self.all.get_mut(slot)
    }

    /// How many a channel has.
    pub(super) fn count_of(&self, channel: ChannelId) -> usize {
        self.by_channel.get(&channel).map_or(0, BTreeSet::len)
    }

    /// Slots of those of a channel.
    pub(super) fn of_channel(&self, channel: ChannelId) -> Vec<u32> {
        self.by_channel.get(&channel).into_iter().flatten().copied().collect()
    }

    /// Slots of those of a session.
    pub(crate) fn of_session(&self, session: u64) -> Vec<u32> {
        self.by_session.get(&session).into_iter().flatten().copied().collect()
    }

    /// Begins one.
    pub(super) fn add(&mut self, running: Running) {
        let number = self.next_number;
        self.next_number += 1;
        let (channel, session) = (running.channel, running.session);
        self.bytes += running.bytes();
        let slot = self.all.insert(Running { number, ..running });
        if let Some(channel) = channel {
            self.by_channel.entry(channel).or_default().insert(slot);
        }
        if let Some(session) = session {
            self.by_session.entry(session).or_default().insert(slot);
        }
        self.wake(slot);
    }

    /// Ends one.
    pub(super) fn remove(&mut self, slot: u32) -> Option<Running> {
        self.set_channel(slot, None);
        let running = self.all.remove(slot)?;
        self.bytes -= running.bytes();
        if let Some(session) = running.session {
            take_out(&mut self.by_session, session, slot);
        }
        Some(running)
    }

    /// Shows it to another channel, or to none.
    pub(super) fn set_channel(&mut self, slot: u32, channel: Option<ChannelId>) {
        let Some(running) = self.all.get_mut(slot) else { return };
        if let Some(before) = std::mem::replace(&mut running.channel, channel) {
            take_out(&mut self.by_channel, before, slot);
        }
        if let Some(channel) = channel {
            self.by_channel.entry(channel).or_default().insert(slot);
        }
    }

    /// It may have something to show.
    pub(super) fn wake(&mut self, slot: u32) {
        let Some(running) = self.all.get_mut(slot) else { return };
        if !std::mem::replace(&mut running.is_awake, true) {
            self.awake.push_back(slot);
        }
    }

    pub(super) fn wake_all(&mut self) {
        let slots: Vec<u32> = self.all.iter().map(|(slot, _)| slot).collect();
        slots.into_iter().for_each(|slot| self.wake(slot));
    }

    /// Takes those that have been awake for longest, at most `most`.
    pub(super) fn take_awake(&mut self, most: usize) -> Vec<u32> {
        let count = self.awake.len().min(most);
        let awake: Vec<u32> = self.awake.drain(..count).collect();
        for slot in &awake {
            if let Some(running) = self.all.get_mut(*slot) {
                running.is_awake = false;
            }
        }
        awake
    }
}

fn take_out<K: Ord>(slots: &mut BTreeMap<K, BTreeSet<u32>>, of: K, slot: u32) {
    if let Some(theirs) = slots.get_mut(&of) {
        theirs.remove(&slot);
        if theirs.is_empty() {
            slots.remove(&of);
        }
    }
}
