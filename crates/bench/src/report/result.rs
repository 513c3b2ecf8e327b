//! The result of a campaign, with everything that is needed to repeat it, as the JSON file holds it. Text and
//! pages are made from it alone.

use super::Machine;
use crate::load::{Bottleneck, Schedule, Second, Verdict};
use crate::measure::disk::DiskSpeed;
use crate::peer::Level;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How the failure of a run begins whose broker ended.
pub(crate) const DIED: &str = "the broker died";

/// The version of this format.
pub(crate) const FORMAT: u32 = 1;

/// A campaign.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// See [`FORMAT`].
    pub(crate) format: u32,
    /// The version of this tool.
    pub(crate) tool: String,
    /// The command line that made it.
    pub(crate) command: Vec<String>,
    /// When it began, in seconds since 1970 (UTC).
    pub(crate) started_unix_s: u64,
    /// How long it took, in seconds.
    pub(crate) took_s: f64,
    /// Where it ran.
    pub(crate) machine: Machine,
    /// Why it is incomplete, if it is.
    pub(crate) partial: Option<String>,
    /// Addresses of the workers that ran the loads; empty if the loads ran here.
    #[serde(default)]
    pub(crate) workers: Vec<String>,
    /// The brokers.
    pub(crate) sides: Vec<SideInfo>,
    /// The bare sockets, by octets of a message.
    pub(crate) raw: BTreeMap<u64, Raw>,
    /// The bare disk.
    pub(crate) disk: Option<DiskSpeed>,
    /// The measurements.
    pub(crate) presets: Vec<PresetResult>,
}

/// A broker.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SideInfo {
    /// Its name in this report.
    pub(crate) label: String,
    /// Its version.
    pub(crate) version: String,
    /// Where it listened; the password is not in it.
    pub(crate) target: String,
    /// What its confirms of persistent messages mean.
    pub(crate) level: Level,
    /// The same in words, if the tool started it.
    #[serde(default)]
    pub(crate) means: String,
    /// Its variables, command line and files, if the tool started it.
    pub(crate) configuration: String,
}

/// The bare sockets with messages of one size.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Raw {
    /// Messages per second through a relay.
    pub(crate) messages_per_s: f64,
    /// Octets per second of the same.
    pub(crate) bytes_per_s: f64,
    /// CPU of all three parties for each message, in nanoseconds.
    pub(crate) cpu_ns_per_message: f64,
    /// The median round trip through the relay, in microseconds.
    pub(crate) round_trip_us: f64,
}

/// One preset.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PresetResult {
    /// Its name.
    pub(crate) name: String,
    /// Whether quick parameters were used.
    pub(crate) quick: bool,
    /// The parameters.
    pub(crate) parameters: BTreeMap<String, String>,
    /// Its cases in order.
    pub(crate) cases: Vec<CaseResult>,
    /// Brokers that could not be measured at all.
    #[serde(default)]
    pub(crate) absent: Vec<Absent>,
}

/// A broker that a preset could not measure.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Absent {
    /// Its index among the report's sides.
    pub(crate) side: usize,
    /// Why.
    pub(crate) why: String,
}

/// One place of one series.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CaseResult {
    /// The series.
    pub(crate) series: String,
    /// The place on the axis.
    pub(crate) x: f64,
    /// Octets of a message.
    pub(crate) size_bytes: u64,
    /// The runs of each side, in the order of the report's sides.
    pub(crate) sides: Vec<Vec<Run>>,
}

/// One run of one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Run {
    /// It is complete.
    Done(Box<Measurement>),
    /// Why the broker or the protocol cannot do it.
    Refused(String),
    /// Why it failed.
    Failed(String),
}

/// The measurements of one run.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measurement {
    /// The load in words.
    pub(crate) plan: String,
    /// Figures by the name of their metric.
    pub(crate) metrics: BTreeMap<String, f64>,
    /// The verdict on the messages.
    pub(crate) verdict: Option<Verdict>,
    /// Why there is no verdict, where the messages could not be judged.
    #[serde(default)]
    pub(crate) unjudged: Option<String>,
    /// Whether loss is a failure whatever the speed: messages were persistent.
    pub(crate) persistent: bool,
    /// Whether loss is what the broker's confirms allow: it was killed, and they do not mean that messages
    /// survive that.
    #[serde(default)]
    pub(crate) loss_allowed: bool,
    /// Failures other than the verdict.
    pub(crate) faults: Vec<String>,
    /// Its bottleneck.
    pub(crate) bottleneck: Option<Bottleneck>,
    /// How well the schedule was kept, where there was one.
    pub(crate) schedule: Option<Schedule>,
    /// Whether publishers kept no pace and waited for no answer: times are then those of the queue before the
    /// consumers.
    #[serde(default)]
    pub(crate) saturated: bool,
    /// Greatest error of its workers' clocks, in microseconds, where there were workers.
    pub(crate) clock_error_us: Option<f64>,
    /// Whether the next message waited for an answer to the one before, or for room.
    pub(crate) closed_loop: bool,
    /// Mean travel times, group after group, in microseconds.
    pub(crate) travels_us: Vec<f32>,
    /// Deliveries of each of those groups.
    pub(crate) travel_group: u64,
    /// Second by second.
    pub(crate) seconds: Vec<Second>,
    /// Further remarks.
    pub(crate) notes: Vec<String>,
}

impl Measurement {
    /// All failures, the verdict included; none if the run is clean.
    pub(crate) fn failures(&self) -> Vec<String> {
        let mut failures = self.faults.clone();
        if let Some(verdict) = self.verdict.as_ref().filter(|verdict| !verdict.is_clean()) {
            failures.push(verdict.describe());
        }
        failures
    }

    /// In one word: `ok`, `LOSS` where loss is allowed, `FAIL`.
    pub(crate) fn word(&self) -> &'static str {
        if self.failures().is_empty() {
            return "ok";
        }
        let lost_only = |verdict: &Verdict| {
            verdict.duplicated + verdict.reordered + verdict.invented + verdict.corrupt == 0
        };
        let allowed = (!self.persistent || self.loss_allowed)
            && self.faults.is_empty()
            && self.verdict.as_ref().is_some_and(lost_only);
        if allowed { "LOSS" } else { "FAIL" }
    }
}

impl CaseResult {
    /// The runs of a side.
    pub(crate) fn runs(&self, side: usize) -> impl Iterator<Item = &Run> {
        self.sides.get(side).into_iter().flatten()
    }

    /// The complete runs of a side.
    pub(crate) fn done(&self, side: usize) -> impl Iterator<Item = &Measurement> {
        self.runs(side).filter_map(|run| match run {
            Run::Done(measurement) => Some(&**measurement),
            Run::Refused(_) | Run::Failed(_) => None,
        })
    }

    /// A metric of a side's complete runs.
    pub(crate) fn values(&self, side: usize, metric: &str) -> Vec<f64> {
        self.done(side).filter_map(|it| it.metrics.get(metric).copied()).collect()
    }

    /// The median of a metric over a side's complete runs.
    pub(crate) fn median(&self, side: usize, metric: &str) -> Option<f64> {
        median(&self.values(side, metric))
    }

    /// Whether a run of a side failed.
    pub(crate) fn failed(&self, side: usize) -> bool {
        self.runs(side).any(|run| matches!(run, Run::Failed(_)))
    }
}

impl PresetResult {
    /// The case at a place of a series.
    pub(crate) fn case(&self, series: &str, x: f64) -> Option<&CaseResult> {
        self.cases.iter().find(|case| case.series == series && case.x == x)
    }

    /// The indices of the sides that could be measured.
    pub(crate) fn present(&self, sides: usize) -> impl Iterator<Item = usize> {
        (0..sides).filter(|side| self.absent.iter().all(|absent| absent.side != *side))
    }

    /// The complete runs of a side in all cases.
    pub(crate) fn done(&self, side: usize) -> impl Iterator<Item = &Measurement> {
        self.cases.iter().flat_map(move |case| case.done(side))
    }

    /// Names and values of its parameters.
    pub(crate) fn parameters(&self, separator: &str) -> String {
        let shown = self.parameters.iter().map(|(name, value)| format!("{name}={value}"));
        shown.collect::<Vec<_>>().join(separator)
    }

    /// Sets the metric `of_fastest` of each run: its rate in percent of its side's fastest case.
    pub(crate) fn set_shares(&mut self) {
        let sides = self.cases.iter().map(|case| case.sides.len()).max().unwrap_or(0);
        for side in 0..sides {
            let rates = self.cases.iter().filter_map(|case| case.median(side, "out_rate"));
            let fastest = rates.fold(0.0, f64::max);
            let runs = self.cases.iter_mut().filter_map(|case| case.sides.get_mut(side)).flatten();
            for run in runs {
                let Run::Done(measurement) = run else { continue };
                if let Some(rate) = measurement.metrics.get("out_rate").filter(|_| fastest > 0.0) {
                    let share = rate / fastest * 100.0;
                    measurement.metrics.insert("of_fastest".to_owned(), share);
                }
            }
        }
    }
}

impl Report {
    /// Which sides lack runs, and why; `None` if none does.
    pub(crate) fn lacks(&self) -> Option<String> {
        let cases = || self.presets.iter().flat_map(|preset| &preset.cases);
        let lacks = |(side, info): (usize, &SideInfo)| {
            let runs: Vec<&Run> = cases().flat_map(|case| case.runs(side)).collect();
            let failed = |run: &&&Run| matches!(run, Run::Failed(_));
            let died = |run: &&Run| matches!(run, Run::Failed(why) if why.starts_with(DIED));
            let is_absent = |it: &PresetResult| it.absent.iter().any(|absent| absent.side == side);
            match runs.iter().filter(failed).count() {
                0 if self.presets.iter().any(is_absent) => {
                    Some(format!("{} was not measured", info.label))
                }
                0 => None,
                _ if runs.iter().any(died) => Some(format!("{} died", info.label)),
                failed => Some(format!("{failed} of {} runs of {} failed", runs.len(), info.label)),
            }
        };
        let lacks: Vec<String> = self.sides.iter().enumerate().filter_map(lacks).collect();
        (!lacks.is_empty()).then(|| lacks.join(", "))
    }

    /// The indices of the brokers that some preset could measure.
    pub(crate) fn up(&self) -> Vec<usize> {
        let is_there = |side: &usize| {
            self.presets.iter().any(|it| it.absent.iter().all(|absent| absent.side != *side))
        };
        (0..self.sides.len()).filter(is_there).collect()
    }

    /// The brokers that no preset could measure, a line each.
    pub(crate) fn down(&self) -> Vec<String> {
        let why = |side: usize| {
            let absent = |it: &PresetResult| {
                it.absent.iter().find(|absent| absent.side == side).map(|absent| absent.why.clone())
            };
            let all: Option<Vec<String>> = self.presets.iter().map(absent).collect();
            all?.into_iter().next()
        };
        let sides = self.sides.iter().enumerate();
        let down = sides.filter_map(|(side, info)| Some(format!("{}: {}", info.label, why(side)?)));
        down.map(|line| format!("not measured: {line}")).collect()
    }

    /// Whether every broker was measured, no run failed and no verdict is `FAIL`.
    pub(crate) fn is_clean(&self) -> bool {
        if self.presets.iter().any(|preset| !preset.absent.is_empty()) {
            return false;
        }
        let cases = self.presets.iter().flat_map(|preset| &preset.cases);
        let mut runs = cases.flat_map(|case| case.sides.iter().flatten());
        runs.all(|run| match run {
            Run::Done(measurement) => measurement.word() != "FAIL",
            Run::Refused(_) => true,
            Run::Failed(_) => false,
        })
    }
}

/// The middle value; the mean of the middle two of an even count.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => None,
        count if count % 2 == 1 => Some(sorted[count / 2]),
        count => Some((sorted[count / 2 - 1] + sorted[count / 2]) / 2.0),
    }
}

/// The least and the greatest of some values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Extent {
    /// The least; infinite if there is none.
    pub(crate) low: f64,
    /// The greatest; infinite and negative if there is none.
    pub(crate) high: f64,
}

impl Extent {
    /// Of these values.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Extent {
        let none = Extent { low: f64::INFINITY, high: f64::NEG_INFINITY };
        let wider = |it: Extent, value| Extent { low: it.low.min(value), high: it.high.max(value) };
        values.into_iter().fold(none, wider)
    }
}
