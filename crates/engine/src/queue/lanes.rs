//! A queue's lanes, one for each priority. A lane is made when its first message comes, so priorities cost a
//! queue without messages nothing.

use super::lane::{Browsed, Lane};
use std::ops::{Index, IndexMut};

/// Stands for every lane that is not made.
static NONE: Lane = Lane::new();

/// Lanes by priority.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    count: usize,
    /// Up to the highest that is made.
    made: Vec<Option<Box<Lane>>>,
}

impl Lanes {
    /// Lanes for that many priorities.
    pub(crate) fn new(count: usize) -> Lanes {
        Lanes { count, made: Vec::new() }
    }

    /// How many priorities there are.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// The highest lane with something at its front.
    #[inline]
    pub(crate) fn first(&self) -> Option<usize> {
        self.made.iter().rposition(|lane| lane.as_ref().is_some_and(|lane| lane.has_front()))
    }

    /// A lane, if it is made.
    pub(crate) fn get_mut(&mut self, lane: usize) -> Option<&mut Lane> {
        self.made.get_mut(lane)?.as_deref_mut()
    }

    /// A lane, which is made if there is that priority.
    pub(crate) fn make(&mut self, lane: usize) -> Option<&mut Lane> {
        if lane >= self.count {
            return None;
        }
        if self.made.len() <= lane {
            self.made.resize_with(lane + 1, || None);
        }
        Some(self.made[lane].get_or_insert_default())
    }

    /// The first message of a lane from a number on, or the page that has it.
    pub(crate) fn browse(&mut self, lane: usize, seq: u64) -> Option<Browsed> {
        self.get_mut(lane)?.browse(seq)
    }

    /// The first lane from one on that is made, and its number.
    pub(crate) fn from(&mut self, lane: usize) -> Option<(usize, &mut Lane)> {
        self.numbered_mut().find(|(number, _)| *number >= lane)
    }

    /// All that are made.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Lane> {
        self.made.iter().flatten().map(|lane| &**lane)
    }

    pub(crate) fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Lane> {
        self.made.iter_mut().flatten().map(|lane| &mut **lane)
    }

    /// All that are made, with their numbers.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (usize, &Lane)> {
        let made = self.made.iter().enumerate();
        made.filter_map(|(number, lane)| Some((number, lane.as_deref()?)))
    }

    pub(crate) fn numbered_mut(&mut self) -> impl DoubleEndedIterator<Item = (usize, &mut Lane)> {
        let made = self.made.iter_mut().enumerate();
        made.filter_map(|(number, lane)| Some((number, lane.as_deref_mut()?)))
    }

    /// Takes all that are made out.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Lane> + use<> {
        std::mem::take(&mut self.made).into_iter().flatten().map(|lane| *lane)
    }
}

impl Index<usize> for Lanes {
    type Output = Lane;

    #[inline]
    fn index(&self, lane: usize) -> &Lane {
        self.made.get(lane).and_then(Option::as_deref).unwrap_or(&NONE)
    }
}

impl IndexMut<usize> for Lanes {
    #[inline]
    fn index_mut(&mut self, lane: usize) -> &mut Lane {
        // Messages and pages that are known are in lanes that there are.
        self.make(lane).expect("there is a lane for each priority")
    }
}
