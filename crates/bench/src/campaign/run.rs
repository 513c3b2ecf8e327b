//! The order of runs, and what is kept of each.

use super::execute;
use super::progress::Progress;
use super::side::Side;
use crate::interrupt;
use crate::load::{self, End};
use crate::measure::bare_sockets::SocketSpeed;
use crate::measure::{bare_sockets, disk};
use crate::peer::Programs;
use crate::preset::{Baseline, Broker, Case, Parameters, Preset};
use crate::report::{CaseResult, DIED, Measurement, PresetResult, Raw, Report, Run, figure};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// How long each physical limit is measured.
const LIMIT_SPAN: Duration = Duration::from_millis(400);
/// Octets of a flush of the bare disk: about what a journal under load writes at once.
const FLUSH_BYTES: u64 = 256 * 1024;
/// Loads before a preset whose results are dropped: brokers that compile or allocate as they go are
/// warm then.
const WARM_UP: Duration = Duration::from_millis(400);

/// A preset with the parameters it is to run with.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) preset: &'static Preset,
    pub(super) parameters: Parameters,
    pub(super) quick: bool,
}

/// What a campaign needs.
pub(super) struct Campaign<'a> {
    pub(super) tasks: Vec<Task>,
    pub(super) sides: Vec<Side>,
    pub(super) programs: &'a Programs,
    /// Where brokers keep their data; its disk is measured.
    pub(super) folder: &'a Path,
    /// Without any progress for so long, what is missing is lost.
    pub(super) drain: Duration,
    /// Where loads come from, if not from here.
    pub(super) workers: &'a [String],
    pub(super) quiet: bool,
}

impl Campaign<'_> {
    /// Runs everything into `report`, which is right at any time.
    pub(super) fn run(mut self, report: &mut Report, save: &dyn Fn(&Report)) {
        self.limits(report);
        let runs: usize = self.tasks.iter().map(|task| self.count(task)).sum();
        let mut progress = Progress::new(runs, self.quiet);
        for task in std::mem::take(&mut self.tasks) {
            if interrupt::requested() {
                break;
            }
            self.preset(&task, report, &mut progress);
            if let Some(result) =
                report.presets.last_mut().filter(|_| task.preset.columns.contains(&"of_fastest"))
            {
                result.set_shares();
            }
            save(report);
        }
        for side in &mut self.sides {
            side.stop();
        }
        report.partial = match interrupt::requested() {
            true => Some("it was interrupted".to_owned()),
            false => report.lacks(),
        };
    }

    /// How many runs a task has, as far as that is known before its brokers are started.
    fn count(&self, task: &Task) -> usize {
        cases_of_any(task).len() * self.sides.len() * rounds(&task.parameters)
    }

    /// Measures the physical limits of all sizes that will be asked for.
    fn limits(&self, report: &mut Report) {
        // The sockets of this machine do not bound what comes from others.
        let wanted = |baseline: Baseline| {
            self.workers.is_empty() && matches!(baseline, Baseline::Relay | Baseline::RoundTrip)
        };
        let mut sizes = BTreeSet::new();
        for task in self.tasks.iter().filter(|task| wanted(task.preset.baseline)) {
            let cases = cases_of_any(task).into_iter().map(|case| case.size_bytes);
            sizes.extend(cases.filter(|size| *size <= bare_sockets::SIZE_BYTES_MAX));
        }
        for size in sizes {
            if interrupt::requested() {
                return;
            }
            // The better of two: it is a limit, and others may run beside one of them.
            let looks = [(); 2].map(|()| bare_sockets::measure(size, LIMIT_SPAN / 2));
            let faster = |a: &SocketSpeed, b: &SocketSpeed| a.bytes_per_s.total_cmp(&b.bytes_per_s);
            let looks: Result<Vec<SocketSpeed>, _> = looks.into_iter().collect();
            match looks.map(|looks| looks.into_iter().max_by(faster).unwrap_or_default()) {
                Ok(speed) => {
                    let raw = Raw {
                        messages_per_s: speed.messages_per_s,
                        bytes_per_s: speed.bytes_per_s,
                        cpu_ns_per_message: speed.cpu_ns_per_message,
                        round_trip_us: speed.round_trip.map_or(0.0, |trip| trip.p50_us),
                    };
                    report.raw.insert(size as u64, raw);
                }
                Err(error) => eprintln!("bare sockets, {size} B: {error}"),
            }
        }
        if self.tasks.iter().any(|task| task.preset.baseline == Baseline::Disk) {
            match disk::measure(self.folder, FLUSH_BYTES, LIMIT_SPAN * 2) {
                Ok(speed) => report.disk = Some(speed),
                Err(error) => eprintln!("bare disk: {error}"),
            }
        }
    }

    fn preset(&mut self, task: &Task, report: &mut Report, progress: &mut Progress) {
        self.make_ready(task, report, progress);
        report.presets.push(PresetResult {
            name: task.preset.name.to_owned(),
            quick: task.quick,
            parameters: task
                .parameters
                .iter()
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            cases: Vec::new(),
        });
        let result = report.presets.last_mut().expect("it was pushed just now");
        // The cases of all sides, by their places: a broker may have some of its own.
        let cases: Vec<Vec<Case>> =
            self.sides.iter().map(|side| cases_of(task, side, self.drain)).collect();
        for case in cases.iter().flatten() {
            if !result.cases.iter().any(|it| it.series == case.series && it.x == case.x) {
                result.cases.push(CaseResult {
                    series: case.series.clone(),
                    x: case.x,
                    size_bytes: case.size_bytes as u64,
                    sides: vec![Vec::new(); self.sides.len()],
                });
            }
        }
        for place in &mut result.cases {
            for round in 0..rounds(&task.parameters) {
                // In turn, and each round another is first: what drifts hits all alike.
                for turn in 0..self.sides.len() {
                    let index = (turn + round) % self.sides.len();
                    let wanted = |case: &&Case| case.series == place.series && case.x == place.x;
                    let Some(case) = cases[index].iter().find(wanted) else { continue };
                    if interrupt::requested() {
                        return;
                    }
                    self.one(task, case, index, place, progress);
                }
            }
        }
    }

    fn one(
        &mut self,
        task: &Task,
        case: &Case,
        index: usize,
        place: &mut CaseResult,
        progress: &mut Progress,
    ) {
        let side = &mut self.sides[index];
        let at = format!("{} {}", case.series, case.x);
        let what = format!("{} {} {}", task.preset.name, at.trim(), side.label());
        if let Some(why) = &side.dead {
            place.sides[index].push(Run::Failed(why.clone()));
            progress.end(&what, "not there any more");
            return;
        }
        progress.begin(&what);
        let run = execute::run(&case.work, side, self.workers, self.drain);
        if interrupt::requested() {
            // What was broken off is no measurement.
            return;
        }
        if let Run::Failed(why) = &run
            && side.has_ended()
        {
            let why = format!("{DIED}: {why}");
            side.dead = Some(why.clone());
            progress.end(&what, &why);
            place.sides[index].push(Run::Failed(why));
            return;
        }
        progress.end(&what, &brief(task.preset, &run));
        place.sides[index].push(run);
    }

    /// Starts the brokers that are not there, and warms up those that were just started.
    fn make_ready(&mut self, task: &Task, report: &mut Report, progress: &mut Progress) {
        for (index, side) in self.sides.iter_mut().enumerate() {
            let was_there = side.target().is_some() && side.dead.is_none();
            if let Err(why) = side.ready(self.programs, task.preset.fresh) {
                progress.note(&format!("{}: {why}", side.label()));
                side.dead = Some(why);
                continue;
            }
            report.sides[index] = side.info();
            let Some(target) = side.target().filter(|_| !was_there || task.preset.fresh) else {
                continue;
            };
            let broker = Broker { target, targets: side.targets() };
            let end = End::After { warm_up: Duration::ZERO, measured: WARM_UP };
            let plan = load::Plan { end, ..broker.direct(100, 1) };
            // Memory is looked at from the first connection on, so there it stays cold.
            if !task.preset.fresh
                && let Err(error) = load::run(&plan, None)
            {
                progress.note(&format!("{}: {error}", side.label()));
                side.dead = Some(error.to_string());
            }
        }
    }
}

fn rounds(parameters: &Parameters) -> usize {
    (parameters.count("runs") as usize).max(1)
}

fn cases_of(task: &Task, side: &Side, drain: Duration) -> Vec<Case> {
    // What could not be started fails in all that any broker could have done.
    let Some(target) = side.target() else { return cases_of_any(task) };
    let broker = Broker { target, targets: side.targets() };
    let mut cases = (task.preset.cases)(&task.parameters, &broker);
    cases.iter_mut().for_each(|case| case.work.set_drain(drain));
    cases
}

/// The cases of a broker that nobody knows more of.
fn cases_of_any(task: &Task) -> Vec<Case> {
    let target = "amqp://127.0.0.1".parse().expect("it is an address");
    let broker = Broker { target: &target, targets: std::slice::from_ref(&target) };
    (task.preset.cases)(&task.parameters, &broker)
}

fn brief(preset: &Preset, run: &Run) -> String {
    match run {
        Run::Refused(why) => format!("not possible: {why}"),
        Run::Failed(why) => format!("FAILED: {why}"),
        Run::Done(measurement) => {
            let shown = preset.columns.iter().filter_map(|key| {
                let value = measurement.metrics.get(*key)?;
                let metric = crate::preset::metric(key);
                Some(format!("{} {} {}", metric.label, figure(key, *value), metric.unit))
            });
            let shown: Vec<String> = shown.take(3).map(|text| text.trim().to_owned()).collect();
            format!("{}{}", shown.join(", "), judged(measurement))
        }
    }
}

/// The verdict, where there is one: what became of the messages is said of every run.
fn judged(measurement: &Measurement) -> String {
    let failures = measurement.failures();
    match &measurement.verdict {
        Some(verdict) if failures.is_empty() => format!("  ok: {}", verdict.describe()),
        None if failures.is_empty() => {
            let why = measurement.unjudged.as_ref();
            why.map_or(String::new(), |why| format!("  not judged: {why}"))
        }
        _ => format!("  {}: {}", measurement.word(), failures.join("; ")),
    }
}
