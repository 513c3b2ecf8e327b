//! Durations counted in fixed buckets: plain values of their shard, unlike the metrics of the library that
//! writes them out, which are shared by threads.

use std::time::Duration;

/// Upper bounds of the buckets, in microseconds.
const BOUNDS_US: [u64; 14] = [
    50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 500_000, 1_000_000,
    5_000_000,
];

/// Durations counted by size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// By bucket; the last one is for longer durations than all bounds.
    counts: [u64; BOUNDS_US.len() + 1],
    sum_us: u64,
}

impl Histogram {
    /// Counts a duration.
    pub fn count(&mut self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.counts[BOUNDS_US.partition_point(|bound| *bound < micros)] += 1;
        self.sum_us = self.sum_us.saturating_add(micros);
    }

    /// How many lie in each bucket, by its upper bound in seconds; the last one has none.
    pub fn buckets(&self) -> impl Iterator<Item = (f64, u64)> {
        let bounds = BOUNDS_US.iter().map(|bound| *bound as f64 / 1e6);
        bounds.chain([f64::INFINITY]).zip(self.counts)
    }

    /// How many were counted.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Sum of all durations, in seconds.
    pub fn sum_seconds(&self) -> f64 {
        self.sum_us as f64 / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_inclusive() {
        let mut histogram = Histogram::default();
        for micros in [0, 50, 51, 5_000_000, 5_000_001] {
            histogram.count(Duration::from_micros(micros));
        }
        let counted: Vec<(f64, u64)> =
            histogram.buckets().filter(|(_, count)| *count > 0).collect();
        assert_eq!(counted, [(50e-6, 2), (100e-6, 1), (5.0, 1), (f64::INFINITY, 1)]);
        assert_eq!(histogram.total(), 5);
        assert!((histogram.sum_seconds() - 10.000_102).abs() < 1e-9);
    }
}
