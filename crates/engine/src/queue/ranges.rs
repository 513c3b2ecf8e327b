//! A set of sequence numbers kept as ranges.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Disjoint, non-adjacent ranges. Numbers mostly come in order, so that the last range grows: it is
/// kept apart, and a set that is one range costs no allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges {
    /// First number to last number, both included; all before `newest`.
    older: BTreeMap<u64, u64>,
    /// The range of the highest numbers; there is one unless the set is empty.
    newest: Option<(u64, u64)>,
}

impl Ranges {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.newest.is_none()
    }

    pub(crate) fn clear(&mut self) {
        self.older.clear();
        self.newest = None;
    }

    pub(crate) fn contains(&self, number: u64) -> bool {
        match self.newest {
            None => false,
            Some((first, last)) if number >= first => number <= last,
            Some(_) => {
                self.older.range(..=number).next_back().is_some_and(|(_, last)| *last >= number)
            }
        }
    }

    #[inline]
    pub(crate) fn insert(&mut self, number: u64) {
        match &mut self.newest {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            None => self.newest = Some((number, number)),
            Some(_) => self.insert_apart(number),
        }
    }

    /// Adds a number that does not just follow the highest one.
    fn insert_apart(&mut self, number: u64) {
        if self.contains(number) {
            return;
        }
        self.change(|ranges| {
            let mut first = number;
            let mut last = number;
            if let Some((before, end)) = ranges.range(..number).next_back()
                && *end + 1 == number
            {
                first = *before;
            }
            if let Some(end) = number.checked_add(1).and_then(|next| ranges.remove(&next)) {
                last = end;
            }
            ranges.insert(first, last);
        });
    }

    /// Adds every number from `first` to `last`, both included.
    pub(crate) fn insert_range(&mut self, first: u64, last: u64) {
        self.change(|ranges| {
            remove(ranges, first, last);
            ranges.insert(first, last);
        });
    }

    /// Forgets every number from `first` to `last`, both included.
    pub(crate) fn remove_range(&mut self, first: u64, last: u64) {
        if self.newest.is_some_and(|(_, highest)| highest >= first) {
            self.change(|ranges| remove(ranges, first, last));
        }
    }

    /// Changes the ranges as one map.
    fn change(&mut self, change: impl FnOnce(&mut BTreeMap<u64, u64>)) {
        self.older.extend(self.newest.take());
        change(&mut self.older);
        self.newest = self.older.pop_last();
    }

    /// Takes the range of the lowest numbers out.
    pub(crate) fn pop_first(&mut self) -> Option<(u64, u64)> {
        self.older.pop_first().or_else(|| self.newest.take())
    }

    /// The numbers within bounds, in order.
    pub(crate) fn numbers(&self, within: RangeInclusive<u64>) -> impl Iterator<Item = u64> {
        let (first, last) = within.into_inner();
        let before = self.older.range(..first).next_back();
        let ranges = before.into_iter().chain(self.older.range(first..=last));
        let ranges = ranges.map(|(first, last)| (*first, *last)).chain(self.newest);
        ranges.flat_map(move |(from, to)| from.max(first)..=to.min(last))
    }

    /// First and last number of each range, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> + Clone {
        self.older.iter().map(|(first, last)| (*first, *last)).chain(self.newest)
    }

    pub(crate) fn len(&self) -> usize {
        self.older.len() + usize::from(self.newest.is_some())
    }
}

/// Takes every number from `first` to `last` out of ranges.
fn remove(ranges: &mut BTreeMap<u64, u64>, first: u64, last: u64) {
    if let Some((&from, &to)) = ranges.range(..first).next_back()
        && to >= first
    {
        ranges.insert(from, first - 1);
        if to > last {
            ranges.insert(last + 1, to);
            return;
        }
    }
    while let Some((&from, &to)) = ranges.range(first..=last).next() {
        ranges.remove(&from);
        if to > last {
            ranges.insert(last + 1, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(numbers: &[u64], expect: &[(u64, u64)]) -> Ranges {
        let mut ranges = Ranges::default();
        for number in numbers {
            ranges.insert(*number);
        }
        assert_eq!(ranges.iter().collect::<Vec<_>>(), expect);
        for number in numbers {
            assert!(ranges.contains(*number));
        }
        ranges
    }

    #[test]
    fn neighbours_join() {
        check(&[1, 2, 3], &[(1, 3)]);
        check(&[3, 2, 1], &[(1, 3)]);
        check(&[1, 3, 2], &[(1, 3)]);
        check(&[1, 3, 5, 3], &[(1, 1), (3, 3), (5, 5)]);
        check(&[u64::MAX, 0], &[(0, 0), (u64::MAX, u64::MAX)]);
    }

    #[test]
    fn numbers_are_found_within_bounds_and_taken_from_the_front() {
        let mut ranges = check(&[2, 3, 4, 8, 9], &[(2, 4), (8, 9)]);
        for (within, expect) in [
            (0..=1, &[][..]),
            (0..=3, &[2, 3]),
            (3..=8, &[3, 4, 8]),
            (5..=7, &[]),
            (9..=u64::MAX, &[9]),
        ] {
            assert_eq!(ranges.numbers(within).collect::<Vec<_>>(), expect);
        }
        let taken: Vec<_> = std::iter::from_fn(|| ranges.pop_first()).collect();
        assert_eq!((taken, ranges.is_empty()), (vec![(2, 4), (8, 9)], true));
    }

    #[test]
    fn removing_cuts_ranges() {
        for (first, last, expect) in [
            (0, 1, &[(2, 4), (8, 9)][..]),
            (2, 4, &[(8, 9)]),
            (3, 3, &[(2, 2), (4, 4), (8, 9)]),
            (3, 8, &[(2, 2), (9, 9)]),
            (0, u64::MAX, &[]),
            (5, 7, &[(2, 4), (8, 9)]),
        ] {
            let mut ranges = check(&[2, 3, 4, 8, 9], &[(2, 4), (8, 9)]);
            ranges.remove_range(first, last);
            assert_eq!(ranges.iter().collect::<Vec<_>>(), expect, "without {first} to {last}");
        }
    }
}
