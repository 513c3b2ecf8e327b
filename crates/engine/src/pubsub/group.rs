//! Groups of subscribers: one member gets each message. Members are slots; independent of messages.
//!
//! The members of a group may subscribe to different patterns. The group then has a part for each
//! pattern; for a message that several of these match, the parts are one group.

use super::interest::{Interest, Leaf};
use crate::{ShardId, Shards};

/// The members who subscribe to one pattern.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) name: Box<str>,
    /// The name's.
    pub(super) hash: u64,
    pub(super) members: Vec<u32>,
    /// Members on other shards, by shard.
    elsewhere: Vec<(ShardId, u32)>,
    /// Whose turn it is, more or less.
    turn: u32,
    /// Lots drawn for messages to this part and others, or to other shards.
    lots: u64,
}

/// A part of a group: the leaf of its pattern, and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// The name's.
    hash: u64,
    leaf: u32,
    group: u32,
}

/// Whose turn it is to take a message to a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// A part here: its place among the parts.
    Here(usize),
    Elsewhere(ShardId),
}

/// Which groups get a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToGroups {
    None,
    /// All of those that subscribe: it was emitted.
    All,
    /// Those without a shared queue, from which the others get it: it was published.
    Unshared,
}

impl Group {
    pub(super) fn new(name: &str, hash: u64) -> Group {
        let (members, elsewhere) = (Vec::new(), Vec::new());
        Group { name: name.into(), hash, members, elsewhere, turn: 0, lots: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty() && self.elsewhere.is_empty()
    }

    /// The member here whose turn it is.
    pub(super) fn next(&mut self) -> u32 {
        self.turn = (self.turn + 1) % self.here();
        self.members[self.turn as usize]
    }

    /// One of `all` lots. Multiples of the golden ratio spread evenly: each lot is drawn nearly as often as
    /// another in any series of messages, whether all groups draw or some. The series of different shards
    /// are apart by multiples of the root of two, so that simultaneous messages spread as well.
    fn draw(&mut self, all: u64, shard: ShardId) -> u64 {
        const GOLDEN_RATIO: u64 = 0x9e37_79b9_7f4a_7c15;
        const ROOT_OF_TWO: u64 = 0x6a09_e667_f3bc_c909;
        self.lots = self.lots.wrapping_add(1);
        let start = u64::from(shard.0).wrapping_mul(ROOT_OF_TWO);
        let place = self.lots.wrapping_mul(GOLDEN_RATIO).wrapping_add(start);
        ((place >> 32) * all) >> 32
    }

    /// The members of shard `own`, which is this one, and with `elsewhere` those of the others: in one order
    /// on all shards.
    fn by_shard(&self, own: ShardId, elsewhere: bool) -> impl Iterator<Item = (ShardId, u32)> {
        let others = if elsewhere { &self.elsewhere[..] } else { &[] };
        let (before, after) = others.split_at(others.partition_point(|(shard, _)| *shard < own));
        let here = std::iter::once((own, self.here()));
        before.iter().copied().chain(here).chain(after.iter().copied())
    }

    fn here(&self) -> u32 {
        u32::try_from(self.members.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn set_elsewhere(&mut self, shard: ShardId, members: u32) {
        let place = self.elsewhere.binary_search_by_key(&shard, |(other, _)| *other);
        match place {
            Ok(at) if members == 0 => drop(self.elsewhere.remove(at)),
            Ok(at) => self.elsewhere[at].1 = members,
            Err(_) if members == 0 => {}
            Err(at) => self.elsewhere.insert(at, (shard, members)),
        }
    }
}

impl Interest {
    fn part(&self, part: Part) -> &Group {
        let leaf = self.leaf(part.leaf).expect("it was gathered just now");
        leaf.group(part.group).expect("it was gathered just now")
    }

    pub(super) fn part_mut(&mut self, part: Part) -> &mut Group {
        self.group_mut(part.leaf, part.group)
    }

    /// Gathers the parts of all groups in `out`: those of one group next to each other, in the order of
    /// their leaves.
    #[inline]
    pub(super) fn gather(&self, leaves: &[u32], groups: ToGroups, out: &mut Vec<Part>) {
        out.clear();
        let mut are_mixed = false;
        for &leaf in leaves {
            let Some(here) = self.leaf(leaf).and_then(Leaf::groups) else { continue };
            are_mixed |= !out.is_empty();
            out.extend(here.iter().map(|(group, it)| Part { hash: it.hash, leaf, group }));
        }
        if groups == ToGroups::Unshared && self.has_shared() {
            self.leave_shared_out(out);
        }
        if are_mixed {
            self.put_together(out);
        }
    }

    /// Leaves out the groups that have a shared queue.
    #[cold]
    fn leave_shared_out(&self, parts: &mut Vec<Part>) {
        parts.retain(|part| !self.is_shared(&self.part(*part).name));
    }

    /// Sorts parts of several leaves by their groups, which costs far less for many groups than to look
    /// each up in all leaves.
    fn put_together(&self, parts: &mut [Part]) {
        let name = |part: &Part| &self.part(*part).name;
        parts.sort_unstable_by(|one, other| {
            let by_name = one.hash.cmp(&other.hash).then_with(|| name(one).cmp(name(other)));
            by_name.then(one.leaf.cmp(&other.leaf))
        });
    }

    /// Takes the parts of the first group off those that were gathered.
    #[inline]
    pub(super) fn next_group<'a>(&self, parts: &mut &'a [Part]) -> Option<&'a [Part]> {
        let (first, others) = parts.split_first()?;
        let is_same = |other: &Part| {
            // No leaf has two groups of one name.
            other.leaf != first.leaf
                && other.hash == first.hash
                && self.part(*other).name == self.part(*first).name
        };
        let end = 1 + others.iter().take_while(|other| is_same(other)).count();
        let (group, rest) = parts.split_at(end);
        *parts = rest;
        Some(group)
    }

    /// Gathers the parts of the group of that name.
    pub(super) fn gather_named(&self, leaves: &[u32], name: &str, out: &mut Vec<Part>) {
        out.clear();
        let hash = self.hash(name);
        out.extend(leaves.iter().filter_map(|&leaf| {
            let group = self.leaf(leaf)?.groups()?.find(name, hash)?;
            Some(Part { hash, leaf, group })
        }));
        // Leaves are found in any order, and the first part counts the lots.
        out.sort_unstable_by_key(|part| part.leaf);
    }

    /// Whose turn a message is, where members on shard `own`, which is here, and on others have as many turns
    /// as each other.
    #[inline]
    pub(super) fn turn(&mut self, parts: &[Part], own: ShardId) -> Turn {
        match parts {
            [part] if self.part(*part).elsewhere.is_empty() => Turn::Here(0),
            _ => match self.draw(parts, own, true) {
                (shard, part) if shard == own => Turn::Here(part),
                (shard, _) => Turn::Elsewhere(shard),
            },
        }
    }

    /// The part whose turn a message is among those here.
    pub(super) fn turn_here(&mut self, parts: &[Part], own: ShardId) -> usize {
        if parts.len() < 2 {
            return 0;
        }
        self.draw(parts, own, false).1
    }

    /// Draws one of the members here, and of those `elsewhere`, too: its shard and its part's place.
    fn draw(&mut self, parts: &[Part], own: ShardId, elsewhere: bool) -> (ShardId, usize) {
        let Some(&first) = parts.first() else { return (own, 0) };
        let by_shard = |it: &Part| self.part(*it).by_shard(own, elsewhere);
        let all = parts.iter().flat_map(by_shard).map(|(_, members)| u64::from(members)).sum();
        let mut lot = self.part_mut(first).draw(all, own);
        for (at, part) in parts.iter().enumerate() {
            for (shard, members) in self.part(*part).by_shard(own, elsewhere) {
                match lot.checked_sub(u64::from(members)) {
                    Some(rest) => lot = rest,
                    None => return (shard, at),
                }
            }
        }
        (own, 0)
    }

    /// Some other shard with members, for a message that no member here and on the shards that were tried
    /// could take.
    pub(super) fn any_elsewhere(&self, parts: &[Part], tried: Shards) -> Option<ShardId> {
        let mut elsewhere = parts.iter().flat_map(|part| &self.part(*part).elsewhere);
        elsewhere.find(|(shard, _)| !tried.contains(*shard)).map(|(shard, _)| *shard)
    }

    /// The name that the parts have in common.
    pub(super) fn name(&self, parts: &[Part]) -> &str {
        parts.first().map_or("", |part| &self.part(*part).name)
    }
}
