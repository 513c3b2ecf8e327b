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

    /// Adds a range that touches none of those that are there.
    pub(crate) fn insert_range(&mut self, first: u64, last: u64) {
        self.ranges.insert(first, last);
    }

    /// How many of the numbers lie between `first` and `last`, both included.
    pub(crate) fn count_within(&self, first: u64, last: u64) -> u64 {
        let before = self.ranges.range(..first).next_back();
        before
            .into_iter()
            .chain(self.ranges.range(first..=last))
            .map(|(from, to)| (to.min(&last) + 1).saturating_sub(*from.max(&first)))
            .sum()
    }

    /// Forgets every number up to and including `last`.
    pub(crate) fn forget_until(&mut self, last: u64) {
        while let Some((&from, &to)) = self.ranges.first_key_value() {
            if from > last {
                return;
            }
            self.ranges.pop_first();
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
    fn counting_and_forgetting_cut_ranges() {
        let mut ranges = check(&[2, 3, 4, 8, 9], &[(2, 4), (8, 9)]);
        assert_eq!(ranges.count_within(0, 20), 5);
        assert_eq!(ranges.count_within(3, 8), 3);
        assert_eq!(ranges.count_within(5, 7), 0);
        ranges.forget_until(3);
        assert_eq!(ranges.iter().collect::<Vec<_>>(), [(4, 4), (8, 9)]);
        ranges.forget_until(9);
        assert!(ranges.is_empty());
    }
}
