//! Counts durations in fixed buckets, as Prometheus wants them.

use std::time::Duration;

/// Upper bounds of the buckets, in microseconds.
const BOUNDS_US: [u64; 14] = [
    50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 500_000, 1_000_000,
    5_000_000,
];

/// Durations counted by size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// One more than bounds: the last is for what exceeds them.
    counts: [u64; BOUNDS_US.len() + 1],
    sum_us: u64,
}

impl Histogram {
    /// Counts one.
    pub fn count(&mut self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.counts[BOUNDS_US.partition_point(|bound| *bound < micros)] += 1;
        self.sum_us = self.sum_us.saturating_add(micros);
    }

    /// For each bound in seconds: how many were at most as long.
    pub fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let mut sum = 0;
        BOUNDS_US.iter().zip(&self.counts).map(move |(bound, count)| {
            sum += count;
            (*bound as f64 / 1e6, sum)
        })
    }

    /// How many were counted.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// How long they took together, in seconds.
    #[must_use]
    pub fn sum_seconds(&self) -> f64 {
        self.sum_us as f64 / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_inclusive_and_counts_cumulative() {
        let mut histogram = Histogram::default();
        for micros in [0, 50, 51, 5_000_000, 5_000_001] {
            histogram.count(Duration::from_micros(micros));
        }
        let counted: Vec<(f64, u64)> = histogram.cumulative().collect();
        assert_eq!(counted[0], (50e-6, 2));
        assert_eq!(counted[1], (100e-6, 3));
        assert_eq!(*counted.last().unwrap(), (5.0, 4));
        assert_eq!(histogram.total(), 5);
        assert!((histogram.sum_seconds() - 10.000_102).abs() < 1e-9);
    }
}
