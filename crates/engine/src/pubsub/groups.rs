//! The groups that subscribe to one pattern, found by their names.
//!
//! A group keeps its place for as long as it has members; the next one may have it then.

use super::group::Group;
use crate::foundation::table::Table;

/// Up to this many groups are searched one by one.
const FEW: usize = 8;

/// At least one group with members, once that has its first.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// By place. The last one has members.
    list: Vec<Group>,
    /// Places without members; some are behind the end of `list`.
    vacant: Vec<u32>,
    /// How many have members.
    live: usize,
    /// Places by name, once there were more than a few.
    by_name: Option<Box<Table<u32>>>,
}

impl Groups {
    /// Whether none has members.
    pub(super) fn are_none(&self) -> bool {
        self.live == 0
    }

    pub(super) fn get(&self, place: u32) -> Option<&Group> {
        self.list.get(place as usize)
    }

    pub(super) fn get_mut(&mut self, place: u32) -> Option<&mut Group> {
        self.list.get_mut(place as usize)
    }

    /// Those with members, and their places.
    #[inline]
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Group)> + Clone {
        let places = (0_u32..).zip(&self.list);
        places.filter(|(_, group)| !group.is_empty())
    }

    /// How many have members.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.live
    }

    /// The first with members from a place on.
    pub(super) fn next_from(&self, place: u32) -> Option<(u32, &Group)> {
        let places = (place..).zip(self.list.get(place as usize..)?);
        places.into_iter().find(|(_, group)| !group.is_empty())
    }

    /// The place of the group of that name.
    pub(super) fn find(&self, name: &str, hash: u64) -> Option<u32> {
        let is_it = |group: &Group| group.hash == hash && *group.name == *name;
        match &self.by_name {
            Some(places) => places.find(hash, |place| self.get(*place).is_some_and(is_it)).copied(),
            None => self.iter().find(|(_, group)| is_it(group)).map(|(place, _)| place),
        }
    }

    /// The place of the group of that name, made where it is missing. Who makes it gives it members, or
    /// says that it has none ([`Groups::lost_members`]).
    pub(super) fn find_or_make(&mut self, name: &str, hash: u64) -> u32 {
        if let Some(place) = self.find(name, hash) {
            return place;
        }
        let group = Group::new(name, hash);
        let place = self.take_vacant().unwrap_or_else(|| {
            u32::try_from(self.list.len()).expect("limits keep groups below 2^32")
        });
        match self.list.get_mut(place as usize) {
            Some(vacant) => *vacant = group,
            None => self.list.push(group),
        }
        self.live += 1;
        self.note(place, hash);
        place
    }

    /// A place without members.
    fn take_vacant(&mut self) -> Option<u32> {
        std::iter::from_fn(|| self.vacant.pop()).find(|place| (*place as usize) < self.list.len())
    }

    /// Notes the place of a new group.
    fn note(&mut self, place: u32, hash: u64) {
        let Groups { list, by_name, live, .. } = self;
        let hash_of = |place: &u32| list.get(*place as usize).map_or(0, |group| group.hash);
        if let Some(by_name) = by_name {
            by_name.insert_unique(hash, place, hash_of);
        } else if *live > FEW {
            let mut places = Box::<Table<u32>>::default();
            let live = (0_u32..).zip(&*list).filter(|(at, it)| *at == place || !it.is_empty());
            for (at, group) in live {
                places.insert_unique(group.hash, at, hash_of);
            }
            *by_name = Some(places);
        }
    }

    /// A group has lost members, here or elsewhere: it may have none left.
    pub(super) fn lost_members(&mut self, place: u32) {
        let Some(group) = self.get(place).filter(|group| group.is_empty()) else { return };
        let hash = group.hash;
        if let Some(by_name) = &mut self.by_name {
            by_name.remove(hash, |other| *other == place);
        }
        self.live -= 1;
        self.vacant.push(place);
        while self.list.pop_if(|last| last.is_empty()).is_some() {}
    }

    /// How much is kept: groups, and places without members.
    #[cfg(test)]
    pub(super) fn size(&self) -> (usize, usize) {
        (self.list.len(), self.vacant.len())
    }
}
