//! The classic measurements as data: the parameters of each text, its terms, and its printed figures. Does
//! not know how they are run.

mod joram;
mod metric;
mod osu;
mod own;
mod pang;
mod parameters;
mod solace;
mod work;
mod xmlblaster;

pub(crate) use metric::{Better, metric};
pub(crate) use parameters::{Parameters, Setting};
pub(crate) use work::{Broker, Case, Work};

#[cfg(test)]
mod tests;

/// One named measurement.
#[derive(Debug)]
pub(crate) struct Preset {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// The publication that it comes from.
    pub(crate) text: &'static str,
    /// What it measures, in one line.
    pub(crate) about: &'static str,
    /// What differs from the text, and what the text leaves open.
    pub(crate) notes: &'static [&'static str],
    /// Name of the parameter that varies from case to case.
    pub(crate) axis: &'static str,
    /// Whether the axis is drawn on a logarithmic scale.
    pub(crate) axis_log: bool,
    /// Whether place 0 means `as fast as it goes`, which has no place on the axis.
    pub(crate) zero_is_free: bool,
    /// Its metrics, the most important first.
    pub(crate) columns: &'static [&'static str],
    /// Its charts.
    pub(crate) plots: &'static [Plot],
    /// The parameters with the values of the text.
    pub(crate) parameters: &'static [(&'static str, &'static str)],
    /// The parameters that a quick run changes, with their values.
    pub(crate) quick: &'static [(&'static str, &'static str)],
    /// The physical limit that its rates are compared with.
    pub(crate) baseline: Baseline,
    /// Whether each broker is started anew for it.
    pub(crate) fresh: bool,
    /// The cases against one broker.
    pub(crate) cases: fn(&Parameters, &Broker<'_>) -> Vec<Case>,
    /// The figures that the text printed.
    pub(crate) history: &'static [History],
}

/// The defaults of a preset.
const PLAIN: Preset = Preset {
    name: "",
    text: "",
    about: "",
    notes: &[],
    axis: "",
    axis_log: false,
    zero_is_free: false,
    columns: &[],
    plots: &[],
    parameters: &[],
    quick: &[],
    baseline: Baseline::None,
    fresh: false,
    cases: |_, _| Vec::new(),
    history: &[],
};

/// A physical limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Baseline {
    /// None.
    None,
    /// Messages per second through a bare TCP relay.
    Relay,
    /// A round trip through a bare TCP relay.
    RoundTrip,
    /// Octets per second of plain writes with fdatasync.
    Disk,
}

/// Its charts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Plot {
    /// A metric against the axis.
    Against(&'static str),
    /// Mean travel times, group after group, over the run.
    Travels,
    /// Deliveries (or publishes) per second, memory and CPU over the run.
    Seconds,
}

/// Printed figures of a system.
#[derive(Debug)]
pub(crate) struct History {
    /// The system.
    pub(crate) system: &'static str,
    /// The series; empty for all.
    pub(crate) series: &'static str,
    /// The metric.
    pub(crate) metric: &'static str,
    /// The figures.
    pub(crate) points: Points,
}

/// Printed figures by place.
#[derive(Debug)]
pub(crate) enum Points {
    /// The same at all places.
    All(f64),
    /// At these places of the axis.
    At(&'static [(f64, f64)]),
}

impl History {
    /// The figure of a series at a place, if there is one.
    pub(crate) fn at(&self, series: &str, x: f64) -> Option<f64> {
        if !self.series.is_empty() && self.series != series {
            return None;
        }
        match self.points {
            Points::All(value) => Some(value),
            Points::At(points) => points.iter().find(|(at, _)| *at == x).map(|(_, value)| *value),
        }
    }
}

impl Preset {
    /// The parameters before the user changes them.
    pub(crate) fn defaults(&self, quick: bool) -> Parameters {
        let mut parameters = Parameters::new(self.parameters);
        if quick {
            for (name, value) in self.quick {
                parameters.set(name, value).expect("quick values are of parameters that exist");
            }
        }
        parameters
    }
}

/// All presets, in the order in which `all` runs them.
pub(crate) fn all() -> impl Iterator<Item = &'static Preset> {
    [
        pang::PRESETS,
        joram::PRESETS,
        osu::PRESETS,
        solace::PRESETS,
        xmlblaster::PRESETS,
        own::PRESETS,
    ]
    .into_iter()
    .flatten()
}

/// The preset of that name.
pub(crate) fn find(name: &str) -> Option<&'static Preset> {
    all().find(|preset| preset.name == name)
}
