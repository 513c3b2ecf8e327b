//! The metrics: name, unit, decimals, and which direction is better.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Which direction is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Better {
    /// More.
    Higher,
    /// Less.
    Lower,
}

/// A metric.
#[derive(Debug)]
pub(crate) struct Metric {
    /// Its name in results.
    pub(crate) key: String,
    /// Its name in texts.
    pub(crate) label: String,
    /// Its unit.
    pub(crate) unit: String,
    /// Digits after the point.
    pub(crate) decimals: usize,
    /// Which direction is better.
    pub(crate) better: Better,
}

impl Metric {
    /// Its name in texts, with its unit.
    pub(crate) fn title(&self) -> String {
        match self.unit.as_str() {
            "" => self.label.clone(),
            unit => format!("{}, {unit}", self.label),
        }
    }
}

/// A line of `metrics.toml` after the name: label, unit, decimals.
#[derive(Deserialize)]
struct Line(String, String, usize);

static METRICS: LazyLock<BTreeMap<String, Metric>> = LazyLock::new(|| {
    let lines: BTreeMap<Better, BTreeMap<String, Line>> =
        toml::from_str(include_str!("metrics.toml")).expect("the file is part of the program");
    let mut metrics = BTreeMap::new();
    for (better, lines) in lines {
        for (key, Line(label, unit, decimals)) in lines {
            metrics.insert(key.clone(), Metric { key, label, unit, decimals, better });
        }
    }
    metrics
});

/// The metric of that key.
pub(crate) fn metric(key: &str) -> &'static Metric {
    static UNKNOWN: LazyLock<Metric> = LazyLock::new(|| Metric {
        key: "unknown".to_owned(),
        label: "unknown".to_owned(),
        unit: String::new(),
        decimals: 2,
        better: Better::Higher,
    });
    METRICS.get(key).unwrap_or(&UNKNOWN)
}
