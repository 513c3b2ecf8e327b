//! The classic measurements as data: what each text ran, with its own parameters, its own terms and
//! the figures that it printed. Knows nothing of how they are run.

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
pub(crate) use parameters::{Parameters, lines, setting};
pub(crate) use work::{Broker, Case, Work};

#[cfg(test)]
mod tests;

/// One named measurement.
#[derive(Debug)]
pub(crate) struct Preset {
    /// What it is asked for by.
    pub(crate) name: &'static str,
    /// The text that it comes from.
    pub(crate) text: &'static str,
    /// What it measures, in one line.
    pub(crate) about: &'static str,
    /// What differs from the text, and what the text leaves open.
    pub(crate) notes: &'static [&'static str],
    /// What varies from case to case.
    pub(crate) axis: &'static str,
    /// Whether that is better drawn on a logarithmic scale.
    pub(crate) axis_log: bool,
    /// Whether place 0 means `as fast as it goes`, which is nowhere on the axis.
    pub(crate) zero_is_free: bool,
    /// What is measured, the most telling first.
    pub(crate) columns: &'static [&'static str],
    /// What is drawn.
    pub(crate) plots: &'static [Plot],
    /// The parameters, as in the text: name and value.
    pub(crate) parameters: &'static [(&'static str, &'static str)],
    /// What a quick run changes of them.
    pub(crate) quick: &'static [(&'static str, &'static str)],
    /// What physical limit its rates are set against.
    pub(crate) baseline: Baseline,
    /// Whether each broker must have been started for it alone.
    pub(crate) fresh: bool,
    /// The cases against one broker.
    pub(crate) cases: fn(&Parameters, &Broker<'_>) -> Vec<Case>,
    /// What the text printed.
    pub(crate) history: &'static [History],
}

/// What a preset is where it says nothing else.
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
    /// None that would say anything.
    None,
    /// Messages per second through a bare TCP relay.
    Relay,
    /// A round trip through a bare TCP relay.
    RoundTrip,
    /// Octets per second of plain writes with fdatasync.
    Disk,
}

/// What is drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Plot {
    /// A metric against the axis.
    Against(&'static str),
    /// Mean travel times, group after group, over the run.
    Travels,
    /// Deliveries (or publishes) per second, memory and CPU over the run.
    Seconds,
}

/// Figures that a text printed.
#[derive(Debug)]
pub(crate) struct History {
    /// Whose.
    pub(crate) system: &'static str,
    /// Of which series; empty for all.
    pub(crate) series: &'static str,
    /// Of what.
    pub(crate) metric: &'static str,
    /// How much.
    pub(crate) points: Points,
}

/// The figures themselves.
#[derive(Debug)]
pub(crate) enum Points {
    /// The same wherever.
    All(f64),
    /// At these places of the axis.
    At(&'static [(f64, f64)]),
}

impl History {
    /// The figure at a place, if there is one.
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
    /// The parameters before anybody changed them.
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

/// All of them, in the order in which `all` runs them.
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

/// The one of that name.
pub(crate) fn find(name: &str) -> Option<&'static Preset> {
    all().find(|preset| preset.name == name)
}
