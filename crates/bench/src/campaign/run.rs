//! The order of a campaign's runs, and the result of each.

use super::execute;
use super::progress::Progress;
use super::side::Side;
use crate::interrupt;
use crate::load::{self, End};
use crate::measure::bare_sockets::SocketSpeed;
use crate::measure::{bare_sockets, disk};
use crate::peer::Programs;
use crate::preset::{Baseline, Broker, Case, Parameters, Preset};
use crate::report::{
    Absent, CaseResult, DIED, Measurement, PresetResult, Raw, Report, Run, figure,
};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// How long the bare machine is measured, each thing alone; the disk for twice that.
const LIMIT_SPAN: Duration = Duration::from_millis(400);
/// Octets of a flush of the bare disk: about one flush of a journal under load.
const FLUSH_BYTES: u64 = 256 * 1024;
/// Length of the load before a preset, whose result is dropped: it warms up brokers that compile or allocate
/// as they run.
const WARM_UP: Duration = Duration::from_millis(400);

/// A preset with its parameters.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) preset: &'static Preset,
    pub(super) parameters: Parameters,
    pub(super) quick: bool,
}

/// A campaign before it runs.
pub(super) struct Campaign<'a> {
    pub(super) tasks: Vec<Task>,
    pub(super) sides: Vec<Side>,
    pub(super) programs: &'a Programs,
    /// Where brokers keep their data; its disk is measured for the limit.
    pub(super) folder: &'a Path,
    /// After this time without progress, missing messages count as lost.
    pub(super) drain: Duration,
    /// Addresses of the workers that run the loads; empty if they run here.
    pub(super) workers: &'a [String],
    pub(super) quiet: bool,
}

impl Campaign<'_> {
    /// Runs everything into `report`, which is complete up to the last run at any time.
    pub(super) fn run(mut self, report: &mut Report, save: &dyn Fn(&Report)) {
        self.limits(report);
        let runs: usize = self.tasks.iter().map(|task| self.count(task)).sum();
        let mut progress = Progress::new(runs, self.quiet);
        for task in std::mem::take(&mut self.tasks) {
            if interrupt::requested() {
                break;
            }
            self.preset(&task, report, &mut progress);
            if task.preset.columns.iter().any(|key| key == "of_fastest") {
                report.presets.last_mut().into_iter().for_each(PresetResult::set_shares);
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

    /// The number of runs of a task, as far as it is known before its brokers are started.
    fn count(&self, task: &Task) -> usize {
        cases_of_any(task).len() * self.sides.len() * rounds(&task.parameters)
    }

    /// Measures the bare machine with all message sizes of the campaign.
    fn limits(&self, report: &mut Report) {
        // The sockets of this machine are no limit for loads of other machines.
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
            // The faster of two: other programs may slow one of them.
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
            name: task.preset.name.clone(),
            quick: task.quick,
            parameters: task.parameters.all().clone(),
            cases: Vec::new(),
            absent: Vec::new(),
        });
        let result = report.presets.last_mut().expect("it was pushed just now");
        for (side, why) in self.sides.iter().enumerate().map(|(index, it)| (index, &it.dead)) {
            result.absent.extend(why.clone().map(|why| Absent { side, why }));
        }
        // The cases of each side: a broker may have cases of its own.
        let cases: Vec<Vec<Case>> =
            self.sides.iter().map(|side| cases_of(task, side, self.drain)).collect();
        for case in cases.iter().flatten() {
            if result.case(&case.series, case.x).is_none() {
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
                // Sides take turns, and each round another is first, so that drift affects all alike.
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
        if side.dead.is_some() {
            progress.skip();
            return;
        }
        let at = task.preset.place(&case.series, case.x);
        let what = format!("{} {at} {}", task.preset.name, side.label());
        progress.begin(&what);
        let run = execute::run(&case.work, side, self.workers, self.drain);
        if interrupt::requested() {
            // An interrupted run is no measurement.
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

    /// Starts the brokers that do not run, and warms up those just started.
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
            // A preset on a fresh broker measures its memory from the first connection on: no warm-up.
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
    // A broker that could not be started fails in the cases of any broker.
    let Some(target) = side.target() else { return cases_of_any(task) };
    let broker = Broker { target, targets: side.targets() };
    let mut cases = task.preset.cases(&task.parameters, &broker);
    for case in &mut cases {
        case.work.set_drain(drain);
        case.work.add_durable_queue_arguments(side.durable_queue_arguments());
    }
    cases
}

/// The cases of a broker of which only the default protocol is known.
fn cases_of_any(task: &Task) -> Vec<Case> {
    let target = "amqp://127.0.0.1".parse().expect("it is an address");
    let broker = Broker { target: &target, targets: std::slice::from_ref(&target) };
    task.preset.cases(&task.parameters, &broker)
}

fn brief(preset: &Preset, run: &Run) -> String {
    match run {
        Run::Refused(why) => format!("not possible: {why}"),
        Run::Failed(why) => format!("FAILED: {why}"),
        Run::Done(measurement) => {
            let shown = preset.columns.iter().filter_map(|key| {
                let value = measurement.metrics.get(key)?;
                let metric = crate::preset::metric(key);
                Some(format!("{} {} {}", metric.label, figure(key, *value), metric.unit))
            });
            let shown: Vec<String> = shown.take(3).map(|text| text.trim().to_owned()).collect();
            format!("{}{}", shown.join(", "), judged(measurement))
        }
    }
}

/// The verdict of a run as the end of its line, or why there is none.
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
