//! The consumers of one queue that take only some of its messages, in groups of those that take the same, and
//! what each group knows of the queue.

use crate::consumer::read_beside::ReadBeside;
use crate::foundation::deferred_drop::drop_elsewhere;
use crate::foundation::slab::Slab;
use crate::queue::notes::Waiting;
use crate::selector::Filter;
use crate::selector::filter_set::FilterSet;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::collections::{BTreeSet, VecDeque};

/// Messages that a group knows it would take: beyond them it looks only once it has taken some.
pub(crate) const KNOWN_MAX: usize = 1_024;
/// What each takes in memory, about.
const KNOWN_BYTES: usize = 16;

/// All groups of a queue.
#[derive(Debug)]
pub(crate) struct Filtered {
    groups: Slab<Group>,
    by_filter: HashMap<Filter, u32, FixedState>,
    /// What finds the groups that take a message.
    filters: FilterSet<u32>,
    /// Groups that may have something to take, each once.
    awake: VecDeque<u32>,
    /// What was read of the queue for them.
    pub(crate) reading: ReadBeside,
    /// Messages that came back and are in the journal only, which are looked at before anything else.
    again: BTreeSet<Waiting>,
    /// Whose turn it is among those that could take the same message.
    turn: usize,
    /// Messages that groups know they would take, of all of them.
    known: usize,
}

/// Consumers with the same filter.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) filter: Filter,
    consumers: usize,
    /// Those that can take messages, as far as is known, by priority and age.
    pub(crate) able: Vec<u32>,
    /// Where the round among equals goes on.
    pub(crate) turn: usize,
    /// By priority; of those that are not here it has seen everything.
    lanes: Vec<Seen>,
    /// Messages that it knows it would take, in all lanes.
    known: usize,
    /// Those that some consumers do not get.
    barred: BTreeSet<Waiting>,
    /// Lanes of which it has not seen everything.
    behind: usize,
    is_awake: bool,
}

/// What a group has seen of a lane.
#[derive(Debug)]
pub(crate) struct Seen {
    /// The numbers of messages that it would take, in order. Some may be gone.
    known: VecDeque<u64>,
    /// It has seen everything that is in the lane.
    is_current: bool,
    /// Otherwise: everything before this number.
    next: u64,
}

impl Default for Seen {
    fn default() -> Seen {
        Seen { known: VecDeque::new(), is_current: true, next: 0 }
    }
}

/// What can be read in memory of groups that are behind in a lane at the same place.
#[derive(Debug)]
pub(crate) struct Cohort {
    pub(crate) groups: Vec<u32>,
    /// Others are behind from here on.
    pub(crate) until: u64,
}

impl Group {
    fn lane_mut(&mut self, lane: usize) -> &mut Seen {
        if self.lanes.len() <= lane {
            self.lanes.resize_with(lane + 1, Seen::default);
        }
        &mut self.lanes[lane]
    }

    /// The next message of a lane that it would take, unless that is gone.
    pub(crate) fn first_known(&self, lane: usize) -> Option<u64> {
        self.lanes.get(lane)?.known.front().copied()
    }

    /// Forgets that message; says whether there was one.
    fn forget_first(&mut self, lane: usize) -> bool {
        let was_known = self.lane_mut(lane).known.pop_front().is_some();
        self.known -= usize::from(was_known);
        was_known
    }

    /// From which number on it has not seen a lane; `None`: it has seen all of it.
    pub(crate) fn unseen_from(&self, lane: usize) -> Option<u64> {
        self.lanes.get(lane).filter(|seen| !seen.is_current).map(|seen| seen.next)
    }

    /// It has seen a lane up to a number, or, `None`, all of it.
    fn has_seen(&mut self, lane: usize, up_to: Option<u64>) {
        let seen = self.lane_mut(lane);
        let was_behind = !seen.is_current;
        seen.is_current = up_to.is_none();
        seen.next = up_to.unwrap_or(0);
        let is_behind = !seen.is_current;
        self.behind = self.behind + usize::from(is_behind) - usize::from(was_behind);
    }

    /// Whether nothing is left in the queue that it could take.
    #[inline]
    pub(crate) fn has_nothing(&self) -> bool {
        self.known == 0 && self.behind == 0 && self.barred.is_empty()
    }

    /// The same for messages that some consumers do not get.
    pub(crate) fn has_seen_all(&self) -> bool {
        self.known == 0 && self.behind == 0
    }

    /// Messages that it would take and some consumers do not get.
    pub(crate) fn barred(&self) -> impl Iterator<Item = Waiting> {
        self.barred.iter().copied()
    }

    /// One of them is gone.
    pub(crate) fn forget_barred(&mut self, at: Waiting) {
        self.barred.remove(&at);
    }

    /// It would take a message that is the last of its lane; false: it does not note any more for now.
    fn note(&mut self, lane: usize, seq: u64) -> bool {
        if self.known >= KNOWN_MAX {
            return false;
        }
        self.lane_mut(lane).known.push_back(seq);
        self.known += 1;
        true
    }
}

impl Filtered {
    pub(crate) fn new(seed: u64) -> Filtered {
        Filtered {
            groups: Slab::default(),
            by_filter: HashMap::with_hasher(FixedState::with_seed(seed)),
            filters: FilterSet::new(seed),
            awake: VecDeque::new(),
            reading: ReadBeside::default(),
            again: BTreeSet::new(),
            turn: 0,
            known: 0,
        }
    }

    /// A group forgets the next message of a lane that it would take.
    pub(crate) fn forget_first(&mut self, group: u32, lane: usize) {
        if self.groups.get_mut(group).is_some_and(|group| group.forget_first(lane)) {
            self.known -= 1;
        }
    }

    /// Some consumers do not get the next message of a lane that a group would take.
    pub(crate) fn bar_first(&mut self, group: u32, lane: u8) {
        let first = self.groups.get(group).and_then(|group| group.first_known(lane.into()));
        self.forget_first(group, lane.into());
        if let Some(seq) = first {
            self.groups[group].barred.insert(Waiting::new(lane, seq));
        }
    }

    /// About how much memory it takes beside its consumers' filters.
    pub(crate) fn bytes(&self) -> u64 {
        let known = (self.known + self.again.len()) * KNOWN_BYTES;
        (known + self.groups.len() * size_of::<Group>()) as u64 + self.reading.bytes()
    }

    /// Terms that a message may have to be evaluated against with this filter, at most.
    pub(crate) fn terms_with(&self, filter: &Filter) -> usize {
        if self.by_filter.contains_key(filter) { 0 } else { self.filters.terms_with(filter) }
    }

    #[inline]
    pub(crate) fn filters(&self) -> &FilterSet<u32> {
        &self.filters
    }

    #[inline]
    pub(crate) fn get(&self, group: u32) -> Option<&Group> {
        self.groups.get(group)
    }

    pub(crate) fn get_mut(&mut self, group: u32) -> Option<&mut Group> {
        self.groups.get_mut(group)
    }

    /// A consumer with that filter comes. `unseen`: the lanes in which messages are.
    pub(crate) fn join(&mut self, filter: &Filter, unseen: impl Iterator<Item = usize>) -> u32 {
        if let Some(slot) = self.by_filter.get(filter) {
            self.groups[*slot].consumers += 1;
            return *slot;
        }
        let slot = self.groups.insert(Group {
            filter: filter.clone(),
            consumers: 1,
            able: Vec::new(),
            turn: 0,
            lanes: Vec::new(),
            known: 0,
            barred: BTreeSet::new(),
            behind: 0,
            is_awake: false,
        });
        unseen.for_each(|lane| self.groups[slot].has_seen(lane, Some(0)));
        self.by_filter.insert(filter.clone(), slot);
        self.filters.add(filter, slot);
        slot
    }

    /// A consumer goes; returns whether it was the last of all.
    pub(crate) fn leave(&mut self, slot: u32, consumer: u32) -> bool {
        let Some(group) = self.groups.get_mut(slot) else { return false };
        group.able.retain(|other| *other != consumer);
        group.turn = 0;
        group.consumers -= 1;
        if group.consumers == 0 {
            let group = self.groups.remove(slot).expect("it was there just now");
            self.known -= group.known;
            self.by_filter.remove(&group.filter);
            self.filters.remove(&group.filter, slot);
            if group.is_awake {
                self.awake.retain(|other| *other != slot);
            }
        }
        self.groups.len() == 0
    }

    /// Takes all consumers that are able to take messages.
    pub(crate) fn take_able(&mut self) -> Vec<u32> {
        let groups = self.groups.iter_mut().map(|(_, group)| group);
        groups.flat_map(|group| std::mem::take(&mut group.able)).collect()
    }

    /// A group may have something to take.
    #[inline]
    pub(crate) fn wake(&mut self, slot: u32) {
        let Some(group) = self.groups.get_mut(slot) else { return };
        if !std::mem::replace(&mut group.is_awake, true) {
            self.awake.push_back(slot);
        }
    }

    /// Wakes all whose consumers can take something.
    pub(crate) fn wake_all(&mut self) {
        let able = self.groups.iter().filter(|(_, group)| !group.able.is_empty());
        let able: Vec<u32> = able.map(|(slot, _)| slot).collect();
        able.into_iter().for_each(|slot| self.wake(slot));
    }

    /// The same, a certain one first.
    pub(crate) fn wake_first(&mut self, slot: u32) {
        if let Some(group) = self.groups.get_mut(slot) {
            group.is_awake = true;
            self.awake.retain(|other| *other != slot);
            self.awake.push_front(slot);
        }
    }

    /// A message came back that is in the journal only.
    pub(crate) fn look_again_at(&mut self, at: Waiting) {
        self.again.insert(at);
    }

    /// The next message to be looked at again.
    pub(crate) fn first_again(&self) -> Option<Waiting> {
        self.again.first().copied()
    }

    /// A message was looked at again, or is gone.
    pub(crate) fn looked_again_at(&mut self, at: Waiting) {
        self.again.remove(&at);
    }

    /// Whether no message is to be looked at again.
    pub(crate) fn is_up_to_date(&self) -> bool {
        self.again.is_empty()
    }

    /// The next messages that a group would take in a lane.
    pub(crate) fn known(&self, group: u32, lane: usize) -> impl Iterator<Item = u64> {
        let seen = self.groups.get(group).and_then(|group| group.lanes.get(lane));
        seen.into_iter().flat_map(|seen| seen.known.iter().copied())
    }

    /// The group that has been awake for longest.
    pub(crate) fn take_awake(&mut self) -> Option<u32> {
        let slot = self.awake.pop_front()?;
        self.groups[slot].is_awake = false;
        Some(slot)
    }

    /// Whose turn it is among `candidates` equal ones.
    pub(crate) fn next_turn(&mut self, candidates: usize) -> usize {
        self.turn = self.turn.wrapping_add(1);
        self.turn % candidates
    }

    /// A message comes that these groups would take, as the last of its lane; returns whether one of them
    /// can take it now, or soon.
    pub(crate) fn came(&mut self, groups: &[u32], lane: usize, seq: u64) -> bool {
        let mut is_wanted = false;
        for slot in groups {
            let Some(group) = self.groups.get_mut(*slot) else { continue };
            if group.unseen_from(lane).is_some() {
                continue;
            }
            match group.note(lane, seq) {
                true => self.known += 1,
                false => group.has_seen(lane, Some(seq)),
            }
            if !group.able.is_empty() {
                is_wanted = true;
                self.wake(*slot);
            }
        }
        is_wanted
    }

    /// The same for a message that comes back to its place.
    pub(crate) fn came_back(&mut self, groups: &[u32], lane: usize, seq: u64) -> bool {
        let mut is_wanted = false;
        for slot in groups {
            let Some(group) = self.groups.get_mut(*slot) else { continue };
            if group.unseen_from(lane).is_some_and(|next| seq >= next) {
                continue;
            }
            let known = &mut group.lane_mut(lane).known;
            if let Err(at) = known.binary_search(&seq) {
                known.insert(at, seq);
                group.known += 1;
                self.known += 1;
            }
            if !group.able.is_empty() {
                is_wanted = true;
                self.wake(*slot);
            }
        }
        is_wanted
    }

    /// The groups that are behind in a lane from the same number on.
    pub(crate) fn cohort(&self, lane: usize, from: u64) -> Cohort {
        let mut cohort = Cohort { groups: Vec::new(), until: u64::MAX };
        for (slot, group) in self.groups.iter() {
            match group.unseen_from(lane) {
                Some(next) if next == from => cohort.groups.push(slot),
                Some(next) if next > from => cohort.until = cohort.until.min(next),
                _ => {}
            }
        }
        cohort
    }

    /// A cohort looks at the next message of a lane, which `taking` would take, and those who can note no
    /// more stay behind.
    pub(crate) fn look_at(&mut self, cohort: &mut Cohort, taking: &[u32], lane: usize, seq: u64) {
        for slot in taking {
            let Some(at) = cohort.groups.iter().position(|other| other == slot) else { continue };
            let group = &mut self.groups[*slot];
            if group.note(lane, seq) {
                self.known += 1;
            } else {
                group.has_seen(lane, Some(seq));
                cohort.groups.swap_remove(at);
            }
        }
    }

    /// A cohort has seen a lane up to a number, or all of it.
    pub(crate) fn has_seen(&mut self, cohort: Cohort, lane: usize, up_to: Option<u64>) {
        for slot in cohort.groups {
            let group = &mut self.groups[slot];
            group.has_seen(lane, up_to);
            if !group.able.is_empty() && group.known > 0 {
                self.wake(slot);
            }
        }
    }

    /// Everything that was in the queue is gone.
    pub(crate) fn forget_all(&mut self) {
        drop_elsewhere(std::mem::take(&mut self.again));
        self.reading.forget();
        self.known = 0;
        for (_, group) in self.groups.iter_mut() {
            group.lanes.clear();
            group.barred.clear();
            (group.known, group.behind) = (0, 0);
        }
    }
}
