//! Latency histograms and their summaries.

use hdrhistogram::Histogram;
use hdrhistogram::iterators::IterationValue;
use serde::{Deserialize, Serialize};

/// The longest distinguished latency: a minute.
const NS_MAX: u64 = 60_000_000_000;

/// A histogram of nanoseconds with three significant digits; on the wire, pairs of value and count.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(from = "Vec<(u64, u64)>", into = "Vec<(u64, u64)>")]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        Latencies(Histogram::new_with_max(NS_MAX, 3).expect("the bounds are constants that fit"))
    }
}

impl From<Latencies> for Vec<(u64, u64)> {
    fn from(latencies: Latencies) -> Vec<(u64, u64)> {
        let pair = |it: IterationValue<u64>| (it.value_iterated_to(), it.count_at_value());
        latencies.0.iter_recorded().map(pair).collect()
    }
}

impl From<Vec<(u64, u64)>> for Latencies {
    fn from(pairs: Vec<(u64, u64)>) -> Latencies {
        let mut latencies = Latencies::default();
        pairs.iter().for_each(|&(ns, count)| latencies.0.saturating_record_n(ns, count));
        latencies
    }
}

impl Latencies {
    /// Adds one latency.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.0.saturating_record(ns);
    }

    /// Adds all of another histogram.
    pub fn merge(&mut self, other: &Latencies) {
        self.0.add(&other.0).expect("both have the same bounds");
    }

    /// The summary; `None` if nothing was recorded.
    pub fn summary(&self) -> Option<Summary> {
        let at = |quantile: f64| self.0.value_at_quantile(quantile) as f64 / 1e3;
        (!self.0.is_empty()).then(|| Summary {
            count: self.0.len(),
            mean_us: self.0.mean() / 1e3,
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: self.0.max() as f64 / 1e3,
        })
    }
}

/// Quantiles in microseconds.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of latencies.
    pub count: u64,
    /// Their mean.
    pub mean_us: f64,
    /// The median.
    pub p50_us: f64,
    /// The 90th percentile.
    pub p90_us: f64,
    /// The 99th percentile.
    pub p99_us: f64,
    /// The 99.9th percentile.
    pub p999_us: f64,
    /// The maximum.
    pub max_us: f64,
}
