//! The classic measurements as data: the parameters of each text, its terms, and its printed figures, in
//! `texts`. Does not know how they are run.

mod cases;
mod metric;
mod parameters;
mod work;

pub(crate) use metric::{Better, metric};
pub(crate) use parameters::{Parameters, Setting};
pub(crate) use work::{Broker, Case, Work};

use crate::output::grouped;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

#[cfg(test)]
mod tests;

/// The texts, in the order in which `all` runs their presets.
const TEXTS: [&str; 6] = [
    include_str!("texts/pang.toml"),
    include_str!("texts/joram.toml"),
    include_str!("texts/osu.toml"),
    include_str!("texts/solace.toml"),
    include_str!("texts/xmlblaster.toml"),
    include_str!("texts/own.toml"),
];

/// A publication, with what its presets have unless they say otherwise.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    name: String,
    #[serde(default)]
    columns: Vec<String>,
    #[serde(default)]
    plots: Vec<Plot>,
    preset: Vec<Preset>,
}

/// One named measurement.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Preset {
    /// Its name on the command line.
    pub(crate) name: String,
    /// The publication that it comes from.
    #[serde(skip)]
    pub(crate) text: String,
    /// What it measures, in one line.
    pub(crate) about: String,
    /// What differs from the text, and what the text leaves open.
    #[serde(default)]
    pub(crate) notes: Vec<String>,
    /// Name of the parameter that varies from case to case.
    pub(crate) axis: String,
    /// Whether the axis is drawn on a logarithmic scale.
    #[serde(default)]
    pub(crate) axis_log: bool,
    /// Whether place 0 means `as fast as it goes`, which has no place on the axis.
    #[serde(default)]
    pub(crate) zero_is_free: bool,
    /// Names of places on the axis, where the text has names for them.
    #[serde(default)]
    places: BTreeMap<String, String>,
    /// The figure that stands for it in an overview; without it the first column at the last place.
    #[serde(default)]
    pub(crate) overview: Option<Headline>,
    /// Its metrics, the most important first.
    #[serde(default)]
    pub(crate) columns: Vec<String>,
    /// Its charts; those of its text if it has no such list.
    plots: Option<Vec<Plot>>,
    /// The parameters with the values of the text.
    parameters: Parameters,
    /// The parameters that a quick run changes, with their values.
    quick: BTreeMap<String, String>,
    /// What its rates are measured beside.
    #[serde(default)]
    pub(crate) baseline: Baseline,
    /// Whether each broker is started anew for it.
    #[serde(default)]
    pub(crate) fresh: bool,
    /// The figures that the text printed.
    #[serde(default)]
    pub(crate) history: Vec<History>,
}

/// A metric at a place of a series.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Headline {
    /// The metric.
    pub(crate) metric: String,
    /// The series; empty for any.
    #[serde(default)]
    pub(crate) series: String,
    /// The place; the last one without it, or where there is none.
    pub(crate) x: Option<f64>,
    /// The best of all cases, in these words, instead of one case.
    pub(crate) best: Option<String>,
}

/// What its rates are measured beside.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Baseline {
    /// None.
    #[default]
    None,
    /// Messages per second through a bare TCP relay.
    Relay,
    /// A round trip through a bare TCP relay.
    RoundTrip,
    /// Octets per second of plain writes with fdatasync.
    Disk,
}

/// Its charts.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Plot {
    /// Mean travel times, group after group, over the run.
    Travels,
    /// Deliveries (or publishes) per second, memory and CPU over the run.
    Seconds,
    /// A metric against the axis.
    #[serde(untagged)]
    Against(String),
}

/// Printed figures of a system.
#[derive(Debug, Deserialize)]
pub(crate) struct History {
    /// The system.
    pub(crate) system: String,
    /// The series; empty for all.
    #[serde(default)]
    pub(crate) series: String,
    /// The metric.
    pub(crate) metric: String,
    /// Places where the text has a typo, and the figure here is corrected.
    #[serde(default)]
    pub(crate) corrected: Vec<f64>,
    /// The figures.
    #[serde(flatten)]
    pub(crate) points: Points,
}

/// Printed figures by place.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Points {
    /// The same at all places.
    All(f64),
    /// At these places of the axis.
    At(Vec<(f64, f64)>),
}

impl History {
    /// The figure of a series at a place, if there is one.
    pub(crate) fn at(&self, series: &str, x: f64) -> Option<f64> {
        if !self.series.is_empty() && self.series != series {
            return None;
        }
        match &self.points {
            Points::All(value) => Some(*value),
            Points::At(points) => points.iter().find(|(at, _)| *at == x).map(|(_, value)| *value),
        }
    }
}

impl Preset {
    /// The parameters before the user changes them.
    pub(crate) fn defaults(&self, quick: bool) -> Parameters {
        let mut parameters = self.parameters.clone();
        for (name, value) in self.quick.iter().filter(|_| quick) {
            parameters.set(name, value).expect("quick values are of parameters that exist");
        }
        parameters
    }

    /// A place of a series in words: `queue, transacted producer`, `1 KB, 50 subscribers`.
    pub(crate) fn place(&self, series: &str, x: f64) -> String {
        let place = match self.places.get(&x.to_string()) {
            Some(name) => name.clone(),
            None if self.zero_is_free && x == 0.0 => "unlimited".to_owned(),
            None => format!("{} {}", shown_place(x), self.unit(x == 1.0)),
        };
        if series.is_empty() { place } else { format!("{series}, {place}") }
    }

    /// A place alone, as a cell of the axis's column.
    pub(crate) fn place_cell(&self, x: f64) -> String {
        self.places.get(&x.to_string()).cloned().unwrap_or_else(|| shown_place(x))
    }

    /// What the axis counts, of one or of several.
    fn unit(&self, is_one: bool) -> &str {
        // What stands in brackets is about places that have no number.
        let axis = self.axis.split(" (").next().unwrap_or_default();
        let axis = axis.strip_prefix("message ").unwrap_or(axis);
        let singular = axis.strip_suffix('s').filter(|it| !it.ends_with('/') && is_one);
        singular.unwrap_or(axis)
    }

    /// The parameters of a run that differ from the text's, of which its printed figures are: name, the
    /// text's value, and the run's. Lists are places, and how long and how often is no matter.
    pub(crate) fn changed<'a>(
        &'a self,
        parameters: &'a BTreeMap<String, String>,
    ) -> impl Iterator<Item = (&'a str, &'a str, &'a str)> {
        const OF_THE_RUN: [&str; 4] = ["runs", "seconds", "warm_up", "settle"];
        let is_list = |value: &str| value.contains([',']) || value.contains("..");
        let texts =
            self.parameters.all().iter().filter(move |(name, value)| {
                !OF_THE_RUN.contains(&name.as_str()) && !is_list(value)
            });
        texts.filter_map(|(name, text)| {
            let value = parameters.get(name)?;
            (value != text).then_some((name.as_str(), text.as_str(), value.as_str()))
        })
    }

    /// Its charts.
    pub(crate) fn plots(&self) -> &[Plot] {
        self.plots.as_deref().unwrap_or_default()
    }

    /// The systems that the text has figures of, of one metric or of all.
    pub(crate) fn systems(&self, key: Option<&str>) -> Vec<&str> {
        let mut systems: Vec<&str> = Vec::new();
        for history in self.history.iter().filter(|it| key.is_none_or(|key| it.metric == key)) {
            if !systems.contains(&history.system.as_str()) {
                systems.push(&history.system);
            }
        }
        systems
    }
}

/// A place on an axis.
fn shown_place(x: f64) -> String {
    if x.fract() == 0.0 { grouped(x) } else { x.to_string() }
}

/// All presets, in the order in which `all` runs them.
pub(crate) fn all() -> impl Iterator<Item = &'static Preset> {
    static PRESETS: LazyLock<Vec<Preset>> =
        LazyLock::new(|| TEXTS.into_iter().flat_map(read).collect());
    PRESETS.iter()
}

fn read(text: &str) -> Vec<Preset> {
    let text: Text = toml::from_str(text).expect("the file is part of the program");
    let mut presets = text.preset;
    for preset in &mut presets {
        preset.text.clone_from(&text.name);
        preset.plots.get_or_insert_with(|| text.plots.clone());
        if preset.columns.is_empty() {
            preset.columns.clone_from(&text.columns);
        }
    }
    presets
}

/// The preset of that name.
pub(crate) fn find(name: &str) -> Option<&'static Preset> {
    all().find(|preset| preset.name == name)
}
