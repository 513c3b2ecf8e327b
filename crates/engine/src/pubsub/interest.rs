//! Who subscribes to what in one virtual host: an index of patterns, each with its subscribers.
//!
//! Looking a remembered subject up costs one hash whatever else is subscribed to; coming and going costs
//! the depth of the pattern. Subscribers are slots here; independent of their connections.

use super::cache::Cache;
use super::forward::Subjects;
use super::group::Group;
use super::groups::Groups;
use crate::foundation::slab::Slab;
use crate::routing::forms::{Forms, signs};
use crate::routing::patterns::{MatchScratch, NONE, NodeId, Patterns, Syntax, TOPIC, Word};
use crate::{ShardId, Shards};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::collections::BTreeSet;
use std::hash::BuildHasher;
use std::sync::Arc;

/// Subjects as [`crate::Subscribe`] has them.
const SUBJECT: Syntax = Syntax { separator: '.', one: "*", many: None, some: Some(">") };

/// How a pattern is written: as subscribers do, or as the bindings of topic exchanges do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Subject,
    Topic,
}

impl Dialect {
    fn syntax(self) -> Syntax {
        match self {
            Dialect::Subject => SUBJECT,
            Dialect::Topic => TOPIC,
        }
    }

    /// Whether a pattern matches a subject.
    pub(super) fn matches(self, pattern: &str, subject: &str) -> bool {
        self.syntax().matches(pattern, subject)
    }
}

/// All who subscribe to one pattern.
#[derive(Debug)]
pub(super) struct Leaf {
    node: NodeId,
    /// As subscribers write it, once there was one: queues may write the same in another way.
    pattern: Box<str>,
    dialect: Dialect,
    /// Those who get every message.
    pub(super) all: Vec<u32>,
    /// Other shards with subscribers that get every message.
    elsewhere: Shards,
    /// Queues at home catch it, which is another shard.
    is_caught: bool,
    /// Those who share them, where there are any.
    groups: Option<Box<Groups>>,
}

/// Where a subscriber is listed: what takes it out again without looking for it.
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
    /// The forms of patterns that count, by the user who subscribes.
    forms: HashMap<Arc<str>, Forms, FixedState>,
    /// Names of groups that get what is published from a shared queue.
    shared: BTreeSet<Arc<str>>,
    seed: u64,
    hasher: FixedState,
}

impl Interest {
    pub(crate) fn new(seed: u64) -> Interest {
        Interest {
            patterns: Patterns::new(seed),
            leaves: Slab::default(),
            cache: Cache::default(),
            scratch: MatchScratch::default(),
            forms: HashMap::with_hasher(FixedState::with_seed(seed)),
            shared: BTreeSet::new(),
            seed,
            hasher: FixedState::with_seed(seed),
        }
    }

    /// Whether there are no subscribers at all.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.leaves.len() == 0
    }

    /// A group gets what is published from a shared queue, and only what is emitted as subscribers.
    pub(crate) fn share(&mut self, group: &Arc<str>) {
        self.shared.insert(Arc::clone(group));
    }

    /// It gets everything as subscribers again.
    pub(crate) fn unshare(&mut self, group: &str) {
        self.shared.remove(group);
    }

    /// Whether a group has a shared queue.
    pub(super) fn is_shared(&self, group: &str) -> bool {
        self.shared.contains(group)
    }

    /// Whether any has.
    #[inline]
    pub(crate) fn has_shared(&self) -> bool {
        !self.shared.is_empty()
    }

    /// Appends the leaves of all patterns that match `subject` to `out`; returns how many nodes of the
    /// index were looked at for it.
    #[inline]
    pub(super) fn find(&mut self, subject: &str, out: &mut Vec<u32>) -> usize {
        let hash = self.hasher.hash_one(subject);
        if let Some(leaves) = self.cache.find(hash, subject) {
            out.extend_from_slice(leaves);
            return 0;
        }
        let before = out.len();
        let words = SUBJECT.words(subject);
        let visited = self.patterns.matches(words, &mut self.scratch, |leaf| out.push(leaf));
        self.cache.put(hash, subject, &out[before..]);
        visited
    }

    /// As [`Interest::find`] for all of a message's subjects: what matches several of them is there once.
    #[inline]
    pub(super) fn find_any(&mut self, subjects: Subjects<'_>, out: &mut Vec<u32>) -> usize {
        if subjects.are_several() {
            return self.find_each(subjects, out);
        }
        self.find(subjects.first, out)
    }

    #[cold]
    fn find_each(&mut self, subjects: Subjects<'_>, out: &mut Vec<u32>) -> usize {
        let before = out.len();
        let visited = subjects.each().map(|subject| self.find(subject, out)).sum();
        let mut found = out.split_off(before);
        found.sort_unstable();
        found.dedup();
        out.append(&mut found);
        visited
    }

    #[inline]
    pub(super) fn leaf(&self, leaf: u32) -> Option<&Leaf> {
        self.leaves.get(leaf)
    }

    fn leaf_mut(&mut self, leaf: u32) -> &mut Leaf {
        self.leaves.get_mut(leaf).expect("patterns and places lead to leaves in use")
    }

    pub(super) fn group_mut(&mut self, leaf: u32, group: u32) -> &mut Group {
        let groups = self.leaf_mut(leaf).groups.as_mut().expect("the caller has looked");
        groups.get_mut(group).expect("the caller has looked")
    }

    /// The hash of a group's name.
    pub(super) fn hash(&self, name: &str) -> u64 {
        self.hasher.hash_one(name)
    }

    /// Whether what these leaves lead to is one group, which has members elsewhere alone.
    #[cold]
    pub(super) fn is_one_group_elsewhere(&self, leaves: &[u32]) -> bool {
        let leaves = leaves.iter().filter_map(|leaf| self.leaves.get(*leaf));
        let mut groups = leaves.flat_map(|leaf| leaf.groups().into_iter().flat_map(Groups::iter));
        groups.next().is_some_and(|(_, group)| group.members.is_empty()) && groups.next().is_none()
    }

    /// Counts a pattern for a user, if all that it subscribes to here make a match look at no more than
    /// `most` states then; says whether they do.
    pub(super) fn admit(&mut self, user: &Arc<str>, pattern: &str, most: u64) -> bool {
        let Some(signs) = signs(SUBJECT.pattern(pattern), self.seed) else { return true };
        let seed = self.seed;
        let forms = self.forms.entry(Arc::clone(user)).or_insert_with(|| Forms::new(seed));
        let is_admitted = forms.admit(&signs, most);
        if forms.is_empty() {
            self.forms.remove(user);
        }
        is_admitted
    }

    /// A subscription that was admitted has ended.
    fn release(&mut self, user: &str, leaf: u32) {
        let leaf = self.leaves.get(leaf).expect("subscribers are listed in leaves in use");
        let Some(signs) = signs(SUBJECT.pattern(&leaf.pattern), self.seed) else { return };
        if let Some(forms) = self.forms.get_mut(user) {
            forms.remove(&signs);
            if forms.is_empty() {
                self.forms.remove(user);
            }
        }
    }

    /// Lists a subscriber.
    pub(super) fn add(&mut self, pattern: &str, group: Option<&str>, subscriber: u32) -> Place {
        let (leaf, group) = self.grow_group(pattern, group);
        let members = self.leaf_mut(leaf).members(group);
        members.push(subscriber);
        let index = u32::try_from(members.len() - 1).expect("limits keep subscribers below 2^32");
        Place { leaf, group, index }
    }

    /// Takes a subscriber of that user out. Returns the subscriber that is now in its place, if another one
    /// is.
    pub(super) fn remove(&mut self, place: Place, user: Option<&str>) -> Option<u32> {
        let Place { leaf, group, index } = place;
        if let Some(user) = user {
            self.release(user, leaf);
        }
        let listed = self.leaf_mut(leaf);
        let members = listed.members(group);
        members.swap_remove(index as usize);
        let moved = members.get(index as usize).copied();
        listed.lost_members(group);
        self.prune(leaf);
        moved
    }

    /// What is subscribed to at a place, in which group, and by how many.
    pub(super) fn place(&self, place: Place) -> (&str, Option<&str>, usize) {
        let leaf = self.leaves.get(place.leaf).expect("subscribers are listed in leaves in use");
        match leaf.group(place.group) {
            Some(group) => (&leaf.pattern, Some(&group.name), group.members.len()),
            None => (&leaf.pattern, None, leaf.all.len()),
        }
    }

    /// Sets how many subscribers of a pattern another shard has, in a group or outside of
    /// groups.
    pub(super) fn set_elsewhere(
        &mut self,
        shard: ShardId,
        pattern: &str,
        group: Option<&str>,
        members: u32,
    ) {
        let (leaf, place) = self.grow_group(pattern, group);
        if group.is_some() {
            self.group_mut(leaf, place).set_elsewhere(shard, members);
            self.leaf_mut(leaf).lost_members(place);
        } else {
            let elsewhere = &mut self.leaf_mut(leaf).elsewhere;
            *elsewhere = elsewhere.without(shard);
            if members > 0 {
                *elsewhere = elsewhere.and(Shards::one(shard));
            }
        }
        self.prune(leaf);
    }

    /// A queue at home catches what a topic exchange's pattern matches, or none does any more.
    pub(super) fn set_caught(&mut self, pattern: &str, is_caught: bool) {
        let leaf = self.grow(pattern, Dialect::Topic);
        self.leaf_mut(leaf).is_caught = is_caught;
        self.prune(leaf);
    }

    /// The leaf of a pattern and the place of a group in it, both made where they are missing; without a
    /// group, [`NONE`].
    fn grow_group(&mut self, pattern: &str, group: Option<&str>) -> (u32, u32) {
        let leaf = self.grow(pattern, Dialect::Subject);
        let Some(name) = group else { return (leaf, NONE) };
        let hash = self.hash(name);
        let groups = self.leaf_mut(leaf).groups.get_or_insert_default();
        (leaf, groups.find_or_make(name, hash))
    }

    /// The leaf of a pattern, made where it is missing.
    fn grow(&mut self, pattern: &str, dialect: Dialect) -> u32 {
        let node = self.patterns.insert(dialect.syntax().pattern(pattern));
        let mut leaf = self.patterns.head(node);
        if leaf == NONE {
            leaf = self.leaves.insert(Leaf {
                node,
                pattern: pattern.into(),
                dialect,
                all: Vec::new(),
                elsewhere: Shards::NONE,
                is_caught: false,
                groups: None,
            });
            self.patterns.set_head(node, leaf);
            self.changed(pattern, dialect, leaf, true);
        } else if dialect == Dialect::Subject {
            // Other shards learn the pattern as the first subscriber wrote it: `*.#`
            // and `>` are one.
            let leaf = self.leaf_mut(leaf);
            if leaf.dialect != dialect {
                (leaf.pattern, leaf.dialect) = (pattern.into(), dialect);
            }
        }
        leaf
    }

    /// Takes a leaf out whose pattern has no subscribers left.
    fn prune(&mut self, leaf: u32) {
        let listed = self.leaves.get(leaf).expect("the caller has looked");
        let is_deserted =
            listed.all.is_empty() && listed.shards().is_empty() && !listed.has_groups();
        if is_deserted {
            let deserted = self.leaves.remove(leaf).expect("it was found just now");
            self.patterns.set_head(deserted.node, NONE);
            self.changed(&deserted.pattern, deserted.dialect, leaf, false);
        }
    }

    fn changed(&mut self, pattern: &str, dialect: Dialect, leaf: u32, added: bool) {
        let syntax = dialect.syntax();
        if syntax.pattern(pattern).all(|word| matches!(word, Word::Literal(_))) {
            self.cache.literal_changed(self.hasher.hash_one(pattern), pattern, leaf, added);
        } else {
            self.cache.pattern_changed(pattern, dialect, leaf, added);
        }
    }

    /// How many patterns are subscribed to, how many subjects are remembered, how many patterns of theirs,
    /// and for how many of these there is room.
    #[cfg(test)]
    pub(super) fn size(&self) -> (usize, usize, usize, usize) {
        let (subjects, leaves, room) = self.cache.size();
        (self.leaves.len(), subjects, leaves, room)
    }
}

impl Leaf {
    /// The other shards where every message is wanted.
    #[inline]
    pub(super) fn shards(&self) -> Shards {
        let home = if self.is_caught { Shards::one(ShardId::HOME) } else { Shards::NONE };
        self.elsewhere.and(home)
    }

    /// Whether any group has members, here or elsewhere.
    #[inline]
    pub(super) fn has_groups(&self) -> bool {
        self.groups.is_some()
    }

    #[inline]
    pub(super) fn groups(&self) -> Option<&Groups> {
        self.groups.as_deref()
    }

    /// The group at a place.
    #[inline]
    pub(super) fn group(&self, place: u32) -> Option<&Group> {
        self.groups.as_ref()?.get(place)
    }

    /// As [`Groups::lost_members`]; nothing to those outside of groups.
    fn lost_members(&mut self, group: u32) {
        let Some(groups) = self.groups.as_mut().filter(|_| group != NONE) else { return };
        groups.lost_members(group);
        if groups.are_none() {
            self.groups = None;
        }
    }

    fn members(&mut self, group: u32) -> &mut Vec<u32> {
        let groups = self.groups.as_mut().filter(|_| group != NONE);
        match groups.and_then(|groups| groups.get_mut(group)) {
            Some(group) => &mut group.members,
            None => &mut self.all,
        }
    }
}
