//! The coordinator: shares a plan out, keeps the time, measures, drains, judges.

use super::super::conclude::conclude;
use super::super::consumer::Consumed;
use super::super::control::Control;
use super::super::outcome::Outcome;
use super::super::plan::{End, Plan};
use super::super::producer::Produced;
use super::super::run::{rest, undelivered, wait_with_progress};
use super::super::span::{SAMPLE, Sampler, Span};
use super::super::topology::Topology;
use super::wire::{Answer, Ask, Part, PartOutcome, Progress, VERSION, Wire};
use crate::client::{Error, Link};
use crate::interrupt;
use std::io;
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How often workers say how far they are.
const POLL: Duration = Duration::from_millis(20);
/// Looks at a worker's clock, of which the quickest counts.
const CLOCK_LOOKS: usize = 200;

/// What the threads that speak to the workers share.
struct Table<'a> {
    control: &'a Control,
    go: AtomicBool,
    prepared: AtomicUsize,
    published: AtomicUsize,
    broken: AtomicBool,
    /// CPU that each worker has taken.
    cpu_ns: Vec<Mutex<(u64, u64)>>,
}

/// Runs `plan` by the workers at these addresses; the plan's target is theirs to reach, and ours too.
pub fn run(plan: &Plan, workers: &[String], broker_pid: Option<u32>) -> Result<Outcome, Error> {
    check(plan, workers).map_err(Error::Closed)?;
    let topology = Topology::of(plan);
    let mut link = Link::open(&plan.target)?;
    topology.declare(&mut link, plan)?;
    let outcome = coordinate(plan, &topology, workers, broker_pid);
    let deleted = topology.delete(&mut link);
    let outcome = outcome?;
    deleted?;
    link.close()?;
    Ok(outcome)
}

/// Says why these workers cannot share the plan out, if they cannot.
pub fn check(plan: &Plan, workers: &[String]) -> Result<(), String> {
    if plan.ahead > 0 && workers.len() > 1 && !plan.is_in_pairs() {
        let why = "a bound on undelivered messages cannot be kept over several machines, but where \
                   each producer has a consumer of its own";
        return Err(why.to_owned());
    }
    Ok(())
}

fn coordinate(
    plan: &Plan,
    topology: &Topology,
    workers: &[String],
    broker_pid: Option<u32>,
) -> Result<Outcome, Error> {
    let control = Control::new(plan.producers, plan.consumers, 0, plan.copies());
    let mut wires = Vec::new();
    let mut error_ns = 0;
    for (index, address) in workers.iter().enumerate() {
        let prepared = prepare(plan, topology, workers, index, &control);
        let (wire, clock_error_ns) = prepared.map_err(|error| named(address, &error))?;
        error_ns = error_ns.max(clock_error_ns);
        wires.push(wire);
    }
    let table = Table {
        control: &control,
        go: AtomicBool::new(false),
        prepared: AtomicUsize::new(0),
        published: AtomicUsize::new(0),
        broken: AtomicBool::new(false),
        cpu_ns: workers.iter().map(|_| Mutex::new((0, 0))).collect(),
    };
    let (mut span, parts) = thread::scope(|scope| {
        let table = &table;
        let threads: Vec<_> = wires
            .into_iter()
            .zip(workers)
            .enumerate()
            .map(|(index, (wire, address))| {
                let slots = (
                    share(plan.producers, index, workers.len()).start,
                    share(plan.consumers, index, workers.len()).start,
                );
                scope.spawn(move || {
                    let part = attend(wire, table, index, slots);
                    let part = part.map_err(|error| named(address, &error));
                    table.broken.fetch_or(part.is_err(), Ordering::SeqCst);
                    part
                })
            })
            .collect();
        let span = keep_time(plan, table, workers.len(), broker_pid);
        let join = "those who speak to workers do not panic";
        let parts: Result<Vec<PartOutcome>, Error> =
            threads.into_iter().map(|it| it.join().expect(join)).collect();
        (span, parts)
    });
    let (mut produced, mut consumed) = (Vec::new(), Vec::new());
    for part in parts? {
        produced.extend(part.produced.into_iter().map(Produced::from));
        consumed.extend(part.consumed.into_iter().map(Consumed::from));
    }
    // What keeps this machine busy says nothing about theirs.
    span.start.machine = None;
    let mut outcome = conclude(plan, &control, &span, &produced, &consumed);
    // Two ends on two machines: each may be off by its own error.
    outcome.clock_error_us = Some(2.0 * error_ns as f64 / 1e3);
    outcome.workers = workers.len() as u64;
    let cpu_ns: u64 =
        table.cpu_ns.iter().filter_map(|it| it.lock().ok()).map(|it| it.1 - it.0).sum();
    outcome.tool.cpu_share = cpu_ns as f64 / 1e9 / outcome.measured_s.max(1e-9);
    outcome.tool.cpu_ns_per_message = cpu_ns as f64 / outcome.messages.max(1) as f64;
    Ok(outcome)
}

/// Connects to one of the workers and tells it its part. Returns how wrong its clock may be, too.
fn prepare(
    plan: &Plan,
    topology: &Topology,
    workers: &[String],
    index: usize,
    control: &Control,
) -> Result<(Wire, u64), Error> {
    let (mut wire, offset_ns, error_ns) = greet(&workers[index], control)?;
    let part = Part {
        plan: plan.clone(),
        topology: topology.clone(),
        producers: share(plan.producers, index, workers.len()),
        consumers: share(plan.consumers, index, workers.len()),
        offset_ns,
    };
    wire.send(&Ask::Prepare(Box::new(part)))?;
    Ok((wire, error_ns))
}

/// The share of one of `parts` in `count`.
pub(super) fn share(count: usize, part: usize, parts: usize) -> std::ops::Range<usize> {
    count * part / parts..count * (part + 1) / parts
}

/// Connects to a worker. Returns what is to be added to its clock to have ours, and by how much that
/// may be wrong: half of the quickest look.
fn greet(address: &str, control: &Control) -> Result<(Wire, i64, u64), Error> {
    let mut wire = Wire::new(TcpStream::connect(address)?)?;
    wire.send(&Ask::Hello { version: VERSION })?;
    match wire.receive()? {
        Some(Answer::Hello { version }) if version == VERSION => {}
        other => return Err(unexpected(&other)),
    }
    let (mut offset_ns, mut error_ns) = (0, u64::MAX);
    for _ in 0..CLOCK_LOOKS {
        let before = control.now_ns();
        wire.send(&Ask::Clock)?;
        let Some(Answer::Clock { now_ns }) = wire.receive()? else {
            return Err(unexpected(&None));
        };
        let after = control.now_ns();
        if (after - before).div_ceil(2) < error_ns {
            error_ns = (after - before).div_ceil(2);
            offset_ns = (before + (after - before) / 2) as i64 - now_ns as i64;
        }
    }
    Ok((wire, offset_ns, error_ns))
}

/// The same, and that it is a worker's: other errors are the broker's.
fn named(who: &str, error: &Error) -> Error {
    io::Error::other(format!("the worker at {who}: {error}")).into()
}

fn unexpected(answer: &Option<Answer>) -> Error {
    let why = match answer {
        Some(Answer::Failed(why)) => why.clone(),
        None => "it ended".to_owned(),
        Some(other) => format!("it sent {other:?}"),
    };
    io::Error::other(why).into()
}

/// Speaks to one worker from its preparation to its outcome, and enters its counts at its first
/// producer and its first consumer.
fn attend(
    mut wire: Wire,
    table: &Table<'_>,
    index: usize,
    slots: (usize, usize),
) -> Result<PartOutcome, Error> {
    let control = table.control;
    match wire.receive()? {
        Some(Answer::Prepared) => table.prepared.fetch_add(1, Ordering::SeqCst),
        other => return Err(unexpected(&other)),
    };
    let mut said_done = false;
    loop {
        let stopping = control.stop_publishing.load(Ordering::SeqCst);
        let finishing = control.stop_consuming.load(Ordering::SeqCst);
        if !table.go.load(Ordering::SeqCst) && !finishing {
            thread::sleep(POLL / 4);
            continue;
        }
        let measuring = control.measuring.load(Ordering::Relaxed);
        let ask = match (stopping && !said_done, finishing && said_done) {
            (true, _) => Ask::StopPublishing,
            (_, true) => Ask::Finish,
            _ => Ask::Go { measuring },
        };
        let stopped = matches!(ask, Ask::StopPublishing);
        wire.send(&ask)?;
        let progress = match wire.receive()? {
            Some(Answer::Progress(progress)) => progress,
            Some(Answer::Outcome(outcome)) => return Ok(*outcome),
            other => return Err(unexpected(&other)),
        };
        enter(table, &progress, index, slots, measuring);
        if stopped || progress.producers_done && !said_done {
            if stopped {
                said_done = true;
            }
            if stopped || progress.producers_done {
                table.published.fetch_or(1 << index.min(62), Ordering::SeqCst);
            }
        }
        table.broken.fetch_or(progress.broken, Ordering::SeqCst);
        thread::sleep(POLL);
    }
}

fn enter(
    table: &Table<'_>,
    progress: &Progress,
    index: usize,
    slots: (usize, usize),
    measuring: bool,
) {
    if let Some(counter) = table.control.producers.get(slots.0) {
        counter.messages.store(progress.published, Ordering::Relaxed);
        counter.second.store(progress.confirmed, Ordering::Relaxed);
        counter.refused.store(progress.refused, Ordering::Relaxed);
    }
    if let Some(counter) = table.control.consumers.get(slots.1) {
        counter.messages.store(progress.delivered, Ordering::Relaxed);
        counter.second.store(progress.delivered_bytes, Ordering::Relaxed);
    }
    if let Ok(mut cpu) = table.cpu_ns[index].lock() {
        if cpu.0 == 0 || !measuring && cpu.1 == 0 {
            cpu.0 = progress.cpu_ns;
        }
        if measuring {
            cpu.1 = progress.cpu_ns;
        }
        cpu.1 = cpu.1.max(cpu.0);
    }
}

/// Starts all, measures the span, stops, drains.
fn keep_time(plan: &Plan, table: &Table<'_>, workers: usize, broker_pid: Option<u32>) -> Span {
    let control = table.control;
    let broken = || interrupt::requested() || table.broken.load(Ordering::SeqCst);
    let waiting = Instant::now();
    while table.prepared.load(Ordering::SeqCst) < workers && !broken() {
        thread::sleep(POLL / 4);
        if waiting.elapsed() > Duration::from_secs(60) {
            table.broken.store(true, Ordering::SeqCst);
        }
    }
    let all = usize::MAX >> (usize::BITS as usize - workers.min(63));
    let published = || table.published.load(Ordering::SeqCst) & all == all;
    let span = match plan.end {
        End::After { warm_up, measured } => {
            table.go.store(true, Ordering::SeqCst);
            rest(warm_up, &broken);
            let mut sampler = Sampler::start(control, broker_pid);
            while sampler.elapsed() < measured && !broken() {
                rest(SAMPLE.min(measured.saturating_sub(sampler.elapsed())), &broken);
                sampler.look();
            }
            sampler.finish()
        }
        End::Count(total) => {
            let mut sampler = Sampler::start(control, broker_pid);
            table.go.store(true, Ordering::SeqCst);
            let done =
                || control.published() >= total && published() && undelivered(plan, control) == 0;
            wait_with_progress(plan, control, &|| done() || broken(), &mut || sampler.look());
            sampler.finish()
        }
    };
    table.published.store(0, Ordering::SeqCst);
    control.stop_publishing.store(true, Ordering::SeqCst);
    while !published() && !broken() {
        thread::sleep(POLL / 4);
    }
    if plan.consumers > 0 {
        let done = || undelivered(plan, control) == 0 || broken();
        wait_with_progress(plan, control, &done, &mut || {});
    }
    control.stop_consuming.store(true, Ordering::SeqCst);
    span
}
