//! Who listens to what in one virtual host: an index of patterns, each with its listeners.
//!
//! Looking a remembered subject up costs one hash whatever else is listened to; coming and going costs
//! the depth of the pattern. Knows listeners as slots and nothing of their connections.

use super::cache::{Cache, Found};
use crate::routing::patterns::{MatchScratch, NONE, NodeId, Patterns, Syntax};
use crate::slab::Slab;
use foldhash::fast::FixedState;
use std::hash::BuildHasher;

/// Subjects as [`crate::Listen`] has them.
const SUBJECT: Syntax = Syntax { separator: '.', one: "*", many: None, some: Some(">") };

/// All who listen to one pattern.
#[derive(Debug)]
pub(super) struct Leaf {
    node: NodeId,
    pattern: Box<str>,
    /// Those who get every message.
    pub(super) all: Vec<u32>,
    /// Those who share them. One without members waits for the next group.
    pub(super) groups: Vec<Group>,
}

/// Listeners of whom one gets each message.
#[derive(Debug)]
pub(super) struct Group {
    name: Box<str>,
    pub(super) members: Vec<u32>,
    /// Whose turn it is, more or less.
    turn: u32,
}

impl Group {
    /// The member whose turn it is.
    pub(super) fn next(&mut self) -> u32 {
        self.turn = (self.turn + 1) % u32::try_from(self.members.len()).unwrap_or(u32::MAX);
        self.members[self.turn as usize]
    }
}

/// Where a listener is listed: what takes it out again without looking for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    leaf: u32,
    /// The group, or [`NONE`].
    group: u32,
    index: u32,
}

/// The index.
#[derive(Debug)]
pub(crate) struct Interest {
    patterns: Patterns,
    leaves: Slab<Leaf>,
    cache: Cache,
    scratch: MatchScratch,
    hasher: FixedState,
}

impl Interest {
    pub(crate) fn new(seed: u64) -> Interest {
        Interest {
            patterns: Patterns::new(seed),
            leaves: Slab::default(),
            cache: Cache::default(),
            scratch: MatchScratch::new(seed),
            hasher: FixedState::with_seed(seed),
        }
    }

    /// Whether nobody listens to anything.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.leaves.len() == 0
    }

    /// Appends the leaves of all patterns that match `subject` to `out`.
    #[inline]
    pub(super) fn find(&mut self, subject: &str, out: &mut Vec<u32>) {
        match self.cache.find(self.hasher.hash_one(subject), subject) {
            Found::Leaves(leaves) => out.extend_from_slice(leaves),
            Found::Nothing(leaves) => {
                let words = SUBJECT.words(subject);
                self.patterns.matches(words, &mut self.scratch, |leaf| leaves.push(leaf));
                out.extend_from_slice(leaves);
            }
        }
    }

    #[inline]
    pub(super) fn leaf(&self, leaf: u32) -> Option<&Leaf> {
        self.leaves.get(leaf)
    }

    pub(super) fn group_mut(&mut self, leaf: u32, group: usize) -> &mut Group {
        &mut self.leaves.get_mut(leaf).expect("the caller has looked").groups[group]
    }

    /// Whether a group of that name listens to one of `earlier` patterns too: groups of one name are
    /// one group to a message, whatever its members listen to.
    pub(super) fn is_served(&self, earlier: &[u32], leaf: u32, group: usize) -> bool {
        let name = &self.leaves.get(leaf).expect("the caller has looked").groups[group].name;
        let earlier = earlier.iter().filter_map(|leaf| self.leaves.get(*leaf));
        let mut groups = earlier.flat_map(|leaf| &leaf.groups);
        groups.any(|group| group.name == *name && !group.members.is_empty())
    }

    /// Lists a listener.
    pub(super) fn add(&mut self, pattern: &str, group: Option<&str>, listener: u32) -> Place {
        let node = self.patterns.insert(SUBJECT.pattern(pattern));
        let mut leaf = self.patterns.head(node);
        if leaf == NONE {
            let (all, groups) = (Vec::new(), Vec::new());
            leaf = self.leaves.insert(Leaf { node, pattern: pattern.into(), all, groups });
            self.patterns.set_head(node, leaf);
            self.changed(pattern, leaf, true);
        }
        let listed = self.leaves.get_mut(leaf).expect("patterns lead to leaves in use");
        let group = group.map_or(NONE, |name| listed.group(name));
        let members = listed.members(group);
        members.push(listener);
        let index = u32::try_from(members.len() - 1).expect("limits keep listeners below 2^32");
        Place { leaf, group, index }
    }

    /// Takes a listener out. Returns the listener that is now in its place, if another one is.
    pub(super) fn remove(&mut self, place: Place) -> Option<u32> {
        let Place { leaf, group, index } = place;
        let listed = self.leaves.get_mut(leaf).expect("listeners are listed in leaves in use");
        let members = listed.members(group);
        members.swap_remove(index as usize);
        let moved = members.get(index as usize).copied();
        let is_deserted =
            listed.all.is_empty() && listed.groups.iter().all(|group| group.members.is_empty());
        if is_deserted {
            let deserted = self.leaves.remove(leaf).expect("it was found just now");
            self.patterns.set_head(deserted.node, NONE);
            self.changed(&deserted.pattern, leaf, false);
        }
        moved
    }

    fn changed(&mut self, pattern: &str, leaf: u32, added: bool) {
        if pattern.split('.').any(|word| word == "*" || word == ">") {
            self.cache.pattern_changed(pattern, leaf, added);
        } else {
            self.cache.literal_changed(self.hasher.hash_one(pattern), pattern, leaf, added);
        }
    }

    /// How many patterns are listened to, and how many subjects are remembered.
    #[cfg(test)]
    pub(super) fn size(&self) -> (usize, usize) {
        (self.leaves.len(), self.cache.len())
    }
}

impl Leaf {
    /// The group of that name, made where it is missing.
    fn group(&mut self, name: &str) -> u32 {
        let live = |group: &Group| !group.members.is_empty();
        let found = self.groups.iter().position(|group| live(group) && &*group.name == name);
        let at = found.or_else(|| self.groups.iter().position(|group| !live(group)));
        let at = at.unwrap_or_else(|| {
            self.groups.push(Group { name: name.into(), members: Vec::new(), turn: 0 });
            self.groups.len() - 1
        });
        if found.is_none() {
            self.groups[at].name = name.into();
        }
        u32::try_from(at).expect("limits keep groups below 2^32")
    }

    fn members(&mut self, group: u32) -> &mut Vec<u32> {
        if group == NONE { &mut self.all } else { &mut self.groups[group as usize].members }
    }
}
