//! What was measured on each side, round by round, and medians over the rounds.

use super::side::{OURS, Side};
use super::table::{Section, median, spread};
use crate::load::Outcome;

/// What was measured on one side, round by round.
#[derive(Debug)]
pub(super) struct SideRuns<T> {
    pub(super) side: String,
    pub(super) runs: Vec<T>,
}

/// What was measured on all sides.
#[derive(Debug)]
pub(super) struct Runs<T>(pub(super) Vec<SideRuns<T>>);

impl<T> Runs<T> {
    /// Measures each side in turn, in each round.
    pub(super) fn measure<'a>(
        sides: impl IntoIterator<Item = &'a Side>,
        rounds: usize,
        mut measure: impl FnMut(&Side) -> Result<T, String>,
    ) -> Result<Runs<T>, String> {
        let sides: Vec<&Side> = sides.into_iter().collect();
        let none = |side: &&Side| SideRuns { side: side.name.clone(), runs: Vec::new() };
        let mut found: Vec<SideRuns<T>> = sides.iter().map(none).collect();
        for _ in 0..rounds {
            for (side, found) in sides.iter().zip(&mut found) {
                found.runs.push(measure(side)?);
            }
        }
        Ok(Runs(found))
    }

    /// Our runs, if our broker was measured.
    pub(super) fn ours(&self) -> Option<&[T]> {
        self.0.iter().find(|it| it.side == OURS).map(|it| it.runs.as_slice())
    }

    /// Our median of `value` and the peer's.
    pub(super) fn medians(&self, value: impl Fn(&T) -> f64) -> Medians {
        self.medians_beside("", value)
    }

    /// The same, of the peer whose name begins with `peer`.
    pub(super) fn medians_beside(&self, peer: &str, value: impl Fn(&T) -> f64) -> Medians {
        let of = |is_meant: &dyn Fn(&str) -> bool| {
            let found = self.0.iter().find(|it| is_meant(&it.side));
            found.map(|it| median(it.runs.iter().map(&value)))
        };
        let theirs = of(&|side| side != OURS && side.starts_with(peer));
        Medians { ours: of(&|side| side == OURS), theirs }
    }

    /// Adds a figure of each side: the median, the least and the most of `value`.
    pub(super) fn show(
        &self,
        section: &mut Section,
        what: &str,
        unit: Unit,
        value: impl Fn(&T) -> f64,
    ) {
        self.show_all(section, what, unit, |run| vec![value(run)]);
    }

    /// Like [`Self::show`] of several values of each run, or of none.
    pub(super) fn show_all(
        &self,
        section: &mut Section,
        what: &str,
        unit: Unit,
        values: impl Fn(&T) -> Vec<f64>,
    ) {
        for SideRuns { side, runs } in &self.0 {
            let values: Vec<f64> = runs.iter().flat_map(&values).collect();
            if !values.is_empty() {
                section.value(side, what, spread(values, unit.decimals) + unit.name);
            }
        }
    }
}

/// What follows a figure, and the figure's decimals.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unit {
    pub(super) name: &'static str,
    pub(super) decimals: usize,
}

/// A unit with that many decimals.
pub(super) const fn unit(name: &'static str, decimals: usize) -> Unit {
    Unit { name, decimals }
}

/// Medians over the rounds of each side that is there.
pub(super) struct Medians {
    pub(super) ours: Option<f64>,
    pub(super) theirs: Option<f64>,
}

impl Medians {
    /// Ours in parts of theirs.
    pub(super) fn ratio(&self) -> Option<f64> {
        Some(self.ours? / self.theirs?)
    }
}

/// One run of a load by the peer's own tool.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct ToolRun {
    /// Deliveries per second to all subscribers.
    pub(super) delivered_per_s: f64,
    /// Broker CPU nanoseconds per delivery.
    pub(super) broker_ns: f64,
    /// CPU nanoseconds of the tool per delivery.
    pub(super) tool_ns: f64,
}

impl Runs<ToolRun> {
    /// Adds the figures of each side.
    pub(super) fn describe(&self, section: &mut Section) {
        self.show(section, "msgs/s", unit("", 0), |run| run.delivered_per_s);
        self.show(section, "broker CPU", unit(" ns", 0), |run| run.broker_ns);
        self.show(section, "tool CPU", unit(" ns", 0), |run| run.tool_ns);
    }
}

/// Deliveries per second, or what was confirmed or published where none consumes.
pub(super) fn rate_of(outcome: &Outcome) -> f64 {
    match outcome.rates.delivered {
        0.0 => outcome.rates.confirmed.max(outcome.rates.published),
        delivered => delivered,
    }
}

/// Broker memory at its most, in MiB.
pub(super) fn broker_mib(outcome: &Outcome) -> f64 {
    outcome.broker.as_ref().map_or(0.0, |broker| broker.rss_peak_kib as f64 / 1024.0)
}

/// Broker CPU nanoseconds a message.
pub(super) fn broker_ns(outcome: &Outcome) -> f64 {
    outcome.broker.as_ref().map_or(0.0, |broker| broker.cpu_ns_per_message)
}
