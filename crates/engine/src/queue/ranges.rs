//! A set of sequence numbers kept as ranges.

use std::collections::BTreeMap;

/// Disjoint, non-adjacent ranges by their first number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges {
    /// First number to last number, both included.
    ranges: BTreeMap<u64, u64>,
}

impl Ranges {
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(crate) fn contains(&self, number: u64) -> bool {
        self.ranges.range(..=number).next_back().is_some_and(|(_, last)| *last >= number)
    }

    /// Adds one number.
    pub(crate) fn insert(&mut self, number: u64) {
        if self.contains(number) {
            return;
        }
        let mut first = number;
        let mut last = number;
        if let Some((before, end)) = self.ranges.range(..number).next_back()
            && *end + 1 == number
        {
            first = *before;
        }
        if let Some(end) = number.checked_add(1).and_then(|next| self.ranges.remove(&next)) {
            last = end;
        }
        self.ranges.insert(first, last);
    }

    /// Adds every number from `first` to `last`, both included.
    pub(crate) fn insert_range(&mut self, first: u64, last: u64) {
        self.remove_range(first, last);
        self.ranges.insert(first, last);
    }

    /// Forgets every number from `first` to `last`, both included.
    pub(crate) fn remove_range(&mut self, first: u64, last: u64) {
        if let Some((&from, &to)) = self.ranges.range(..first).next_back()
            && to >= first
        {
            self.ranges.insert(from, first - 1);
            if to > last {
                self.ranges.insert(last + 1, to);
                return;
            }
        }
        while let Some((&from, &to)) = self.ranges.range(first..=last).next() {
            self.ranges.remove(&from);
            if to > last {
                self.ranges.insert(last + 1, to);
            }
        }
    }

    /// First and last number of each range, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.ranges.iter().map(|(first, last)| (*first, *last))
    }

    /// How many ranges.
    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
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
