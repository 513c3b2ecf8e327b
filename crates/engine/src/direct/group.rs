//! Groups: listeners of whom one gets each message. Knows members as slots, and nothing of messages.
//!
//! A group's members may listen to different patterns. It is listed in parts then, one for each pattern,
//! and to a message that several of these match the parts are one group.

use super::interest::Interest;
use crate::{ShardId, Shards};

/// The members who listen to one pattern.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) name: Box<str>,
    pub(super) members: Vec<u32>,
    /// Members on other shards.
    elsewhere: Vec<(ShardId, u32)>,
    /// Whose turn it is, more or less.
    turn: u32,
    /// Lots drawn for messages to this part and others, or to other shards.
    lots: u64,
    /// The last emission that it was gathered for as a further part.
    seen: u64,
}

/// A part of a group: the leaf of its pattern, and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
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

impl Group {
    pub(super) fn new(name: &str) -> Group {
        let (members, elsewhere) = (Vec::new(), Vec::new());
        Group { name: name.into(), members, elsewhere, turn: 0, lots: 0, seen: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty() && self.elsewhere.is_empty()
    }

    /// The member here whose turn it is.
    pub(super) fn next(&mut self) -> u32 {
        self.turn = (self.turn + 1) % self.here();
        self.members[self.turn as usize]
    }

    /// One of `all` lots. In any row of messages each has nearly as many as another, where all draw and
    /// where some do: multiples of the golden ratio spread evenly.
    fn draw(&mut self, all: u64) -> u64 {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        self.lots = self.lots.wrapping_add(1);
        ((self.lots.wrapping_mul(GOLDEN) >> 32) * all) >> 32
    }

    fn here(&self) -> u32 {
        u32::try_from(self.members.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn set_elsewhere(&mut self, shard: ShardId, members: u32) {
        self.elsewhere.retain(|(other, _)| *other != shard);
        if members > 0 {
            self.elsewhere.push((shard, members));
        }
    }
}

impl Interest {
    fn part(&self, part: Part) -> &Group {
        &self.leaf(part.leaf).expect("it was gathered just now").groups[part.group as usize]
    }

    pub(super) fn part_mut(&mut self, part: Part) -> &mut Group {
        self.group_mut(part.leaf, part.group)
    }

    /// Gathers the parts of a group, which is one of the first of `leaves`, in `out`: none where it has
    /// no members, or was gathered for this emission with an earlier leaf.
    #[inline]
    pub(super) fn gather(
        &mut self,
        leaves: &[u32],
        group: usize,
        emission: u64,
        out: &mut Vec<Part>,
    ) {
        out.clear();
        let Some((&leaf, others)) = leaves.split_first() else { return };
        let part = Part { leaf, group: group as u32 };
        let first = self.part(part);
        if first.is_empty() || first.seen == emission {
            return;
        }
        out.push(part);
        if !others.is_empty() {
            self.gather_others(others, emission, out);
        }
    }

    /// Adds the parts of the same group in other leaves.
    fn gather_others(&mut self, others: &[u32], emission: u64, out: &mut Vec<Part>) {
        let [first] = out[..] else { return };
        for &leaf in others {
            let Some(part) = self.part_named(leaf, &self.part(first).name) else { continue };
            out.push(part);
            self.part_mut(part).seen = emission;
        }
        in_order(out);
    }

    /// Gathers the parts of the group of that name.
    pub(super) fn gather_named(&self, leaves: &[u32], name: &str, out: &mut Vec<Part>) {
        out.clear();
        out.extend(leaves.iter().filter_map(|leaf| self.part_named(*leaf, name)));
        in_order(out);
    }

    fn part_named(&self, leaf: u32, name: &str) -> Option<Part> {
        let groups = &self.leaf(leaf)?.groups;
        let at = groups.iter().position(|group| *group.name == *name && !group.is_empty())?;
        Some(Part { leaf, group: at as u32 })
    }

    /// Whose turn a message is, where members here and on other shards have as many turns as each other.
    #[inline]
    pub(super) fn turn(&mut self, parts: &[Part]) -> Turn {
        match parts {
            [part] if self.part(*part).elsewhere.is_empty() => Turn::Here(0),
            _ => self.draw(parts),
        }
    }

    fn draw(&mut self, parts: &[Part]) -> Turn {
        let Some(&first) = parts.first() else { return Turn::Here(0) };
        let here = self.members_here(parts);
        let elsewhere = parts.iter().flat_map(|part| &self.part(*part).elsewhere);
        let all = elsewhere.fold(here, |sum, (_, members)| sum + u64::from(*members));
        let lot = self.part_mut(first).draw(all);
        let Some(lot) = lot.checked_sub(here) else {
            return Turn::Here(self.holder(parts, lot));
        };
        let mut elsewhere = parts.iter().flat_map(|part| &self.part(*part).elsewhere);
        let mut sum = 0;
        let holder = elsewhere.find(|(_, members)| {
            sum += u64::from(*members);
            lot < sum
        });
        holder.map_or(Turn::Here(0), |(shard, _)| Turn::Elsewhere(*shard))
    }

    /// The part whose turn a message is among those here.
    pub(super) fn turn_here(&mut self, parts: &[Part]) -> usize {
        let [first, _, ..] = *parts else { return 0 };
        let here = self.members_here(parts);
        let lot = self.part_mut(first).draw(here);
        self.holder(parts, lot)
    }

    fn members_here(&self, parts: &[Part]) -> u64 {
        parts.iter().map(|part| u64::from(self.part(*part).here())).sum()
    }

    /// The part that a member here belongs to, by its number among them all.
    fn holder(&self, parts: &[Part], number: u64) -> usize {
        let mut sum = 0;
        let holder = parts.iter().position(|part| {
            sum += u64::from(self.part(*part).here());
            number < sum
        });
        holder.unwrap_or(0)
    }

    /// Some other shard with members, for a message that nobody here could take, nor on the shards
    /// that were tried.
    pub(super) fn any_elsewhere(&self, parts: &[Part], tried: Shards) -> Option<ShardId> {
        let mut elsewhere = parts.iter().flat_map(|part| &self.part(*part).elsewhere);
        elsewhere.find(|(shard, _)| !tried.contains(*shard)).map(|(shard, _)| *shard)
    }

    /// The name that the parts have in common.
    pub(super) fn name(&self, parts: &[Part]) -> &str {
        parts.first().map_or("", |part| &self.part(*part).name)
    }
}

/// Leaves are found in any order, and the first part counts the lots.
fn in_order(parts: &mut [Part]) {
    parts.sort_unstable_by_key(|part| part.leaf);
}
