//! The coordinator: shares a plan out, keeps the time, measures, drains, judges.

use super::super::aggregate::aggregate;
use super::super::control::Control;
use super::super::outcome::Outcome;
use super::super::plan::{End, Plan};
use super::super::progress_timeout;
use super::super::run::{judge_left, measure_for, run as run_here, undelivered};
use super::super::sampler::{Sampler, Span};
use super::super::threads::rest;
use super::super::topology::Topology;
use super::wire::{
    Answer, Ask, Part, PartOutcome, Progress, SIGN_EVERY, SILENCE_MAX, VERSION, Wire,
};
use crate::client::Error;
use crate::interrupt;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// How often workers say how far they are.
const POLL: Duration = Duration::from_millis(20);
/// Looks at a worker's clock, of which the quickest counts.
const CLOCK_LOOKS: usize = 200;
/// How long all workers together may take to be prepared.
const PREPARED_WITHIN: Duration = Duration::from_secs(60);

/// What the threads that speak to the workers share.
struct Table<'a> {
    control: &'a Control,
    go: AtomicBool,
    prepared: AtomicUsize,
    published: AtomicUsize,
    broken: AtomicBool,
    /// What the first worker said that broke: those after it break for its sake.
    why: OnceLock<String>,
    /// CPU that each worker has taken.
    cpu_ns: Vec<Mutex<(u64, u64)>>,
}

/// Runs `plan` on the workers at these addresses, or in this process if there are none. The workers and
/// this process must all reach the plan's target.
pub fn run(plan: &Plan, workers: &[String], broker_pid: Option<u32>) -> Result<Outcome, Error> {
    match workers {
        [] => run_here(plan, broker_pid),
        _ => run_within(plan, workers, broker_pid, SILENCE_MAX),
    }
}

/// The same with another limit on how long a worker may be silent before the run ends.
pub fn run_within(
    plan: &Plan,
    workers: &[String],
    broker_pid: Option<u32>,
    silence: Duration,
) -> Result<Outcome, Error> {
    check(plan, workers).map_err(io::Error::other)?;
    let topology = Topology::of(plan);
    topology.declared_for(plan, |_| coordinate(plan, &topology, workers, broker_pid, silence))
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
    silence: Duration,
) -> Result<Outcome, Error> {
    let control = Control::new(plan.producers, plan.consumers, 0, plan.copies());
    let (wires, error_ns) = prepare(plan, topology, workers, &control, silence)?;
    let table = Table {
        control: &control,
        go: AtomicBool::new(false),
        prepared: AtomicUsize::new(0),
        published: AtomicUsize::new(0),
        broken: AtomicBool::new(false),
        why: OnceLock::new(),
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
                    part.map_err(|error| {
                        // Only the first is kept.
                        let _ = table.why.set(named(address, &error).to_string());
                        table.broken.store(true, Ordering::SeqCst);
                    })
                })
            })
            .collect();
        let span = keep_time(plan, table, workers.len(), broker_pid);
        let join = "those who speak to workers do not panic";
        let parts: Vec<Result<PartOutcome, ()>> =
            threads.into_iter().map(|it| it.join().expect(join)).collect();
        (span, parts)
    });
    if let Some(why) = table.why.get() {
        return Err(io::Error::other(why.clone()).into());
    }
    let (mut produced, mut consumed) = (Vec::new(), Vec::new());
    for part in parts.into_iter().flatten() {
        produced.extend(part.produced);
        consumed.extend(part.consumed);
    }
    // What keeps this machine busy says nothing about theirs.
    span.start.machine = None;
    let mut outcome = aggregate(plan, &control, &span, &produced, &consumed);
    // Two ends on two machines: each may be off by its own error.
    outcome.clock_error_us = Some(2.0 * error_ns as f64 / 1e3);
    outcome.workers = workers.len() as u64;
    let cpu_ns: u64 =
        table.cpu_ns.iter().filter_map(|it| it.lock().ok()).map(|it| it.1 - it.0).sum();
    outcome.tool.cpu_share = cpu_ns as f64 / 1e9 / outcome.measured_s.max(1e-9);
    outcome.tool.cpu_ns_per_message = cpu_ns as f64 / outcome.messages.max(1) as f64;
    judge_left(plan, topology, &produced, &mut outcome)?;
    Ok(outcome)
}

/// Connects to the workers, and when all are there tells each its part. Returns how wrong a clock of
/// theirs may be, too.
fn prepare(
    plan: &Plan,
    topology: &Topology,
    workers: &[String],
    control: &Control,
    silence: Duration,
) -> Result<(Vec<Wire>, u64), Error> {
    let (mut greeted, mut worst_ns) = (Vec::new(), 0);
    for address in workers {
        let (wire, offset_ns, error_ns) =
            greet(address, control, silence).map_err(|error| named(address, &error))?;
        worst_ns = worst_ns.max(error_ns);
        greeted.push((wire, offset_ns));
    }
    let mut wires = Vec::new();
    for (index, (mut wire, offset_ns)) in greeted.into_iter().enumerate() {
        let part = Part {
            plan: plan.clone(),
            topology: topology.clone(),
            producers: share(plan.producers, index, workers.len()),
            consumers: share(plan.consumers, index, workers.len()),
            offset_ns,
        };
        let told = wire.send(&Ask::Prepare(Box::new(part)));
        told.map_err(|error| named(&workers[index], &error))?;
        wires.push(wire);
    }
    Ok((wires, worst_ns))
}

/// The share of one of `parts` in `count`.
pub(super) fn share(count: usize, part: usize, parts: usize) -> std::ops::Range<usize> {
    count * part / parts..count * (part + 1) / parts
}

/// Connects to a worker. Returns what is to be added to its clock to have ours, and by how much that
/// may be wrong: half of the quickest look.
fn greet(address: &str, control: &Control, silence: Duration) -> Result<(Wire, i64, u64), Error> {
    let mut wire = Wire::new(connect(address, silence)?, silence)?;
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
            offset_ns = (before + (after - before) / 2).wrapping_sub(now_ns) as i64;
        }
    }
    Ok((wire, offset_ns, error_ns))
}

/// By the first of its addresses that answers.
fn connect(address: &str, patience: Duration) -> io::Result<TcpStream> {
    let mut found = Err(io::Error::other("it has no address"));
    for address in address.to_socket_addrs()? {
        found = TcpStream::connect_timeout(&address, patience);
        if found.is_ok() {
            break;
        }
    }
    found
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
    match answer(&mut wire, || control.stop_consuming.load(Ordering::SeqCst))? {
        Some(Answer::Prepared) => table.prepared.fetch_add(1, Ordering::SeqCst),
        other => return Err(unexpected(&other)),
    };
    let (mut said_done, mut signed) = (false, Instant::now());
    loop {
        let stopping = control.stop_publishing.load(Ordering::SeqCst);
        let finishing = control.stop_consuming.load(Ordering::SeqCst);
        let waiting = !table.go.load(Ordering::SeqCst) && !finishing;
        if waiting && signed.elapsed() < SIGN_EVERY {
            thread::sleep(POLL / 4);
            continue;
        }
        signed = Instant::now();
        let measuring = control.measuring.load(Ordering::Relaxed);
        let ask = match (stopping && !said_done, finishing && said_done) {
            _ if waiting => Ask::Wait,
            (true, _) => Ask::StopPublishing,
            (_, true) => Ask::Finish,
            _ => Ask::Go { measuring },
        };
        let stopped = matches!(ask, Ask::StopPublishing);
        wire.send(&ask)?;
        let progress = match answer(&mut wire, || false)? {
            Some(Answer::Progress(_)) if waiting => continue,
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

/// What a worker says behind its signs; an error if it still gives them once it is too late.
fn answer(wire: &mut Wire, is_late: impl Fn() -> bool) -> Result<Option<Answer>, Error> {
    loop {
        match wire.receive()? {
            Some(Answer::Working) if is_late() => {
                return Err(io::Error::other("it was not prepared in time").into());
            }
            Some(Answer::Working) => {}
            other => return Ok(other),
        }
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
        if waiting.elapsed() > PREPARED_WITHIN {
            let within = PREPARED_WITHIN.as_secs();
            let _ = table.why.set(format!("the workers were not prepared within {within} s"));
            table.broken.store(true, Ordering::SeqCst);
        }
    }
    let all = usize::MAX >> (usize::BITS as usize - workers.min(63));
    let published = || table.published.load(Ordering::SeqCst) & all == all;
    let span = match plan.end {
        End::After { warm_up, measured } => {
            table.go.store(true, Ordering::SeqCst);
            rest(warm_up, &broken);
            measure_for(measured, control, broker_pid, &broken)
        }
        End::Count(total) => {
            let mut sampler = Sampler::start(control, broker_pid);
            table.go.store(true, Ordering::SeqCst);
            let done =
                || control.published() >= total && published() && undelivered(plan, control) == 0;
            progress_timeout::wait(plan, control, &|| done() || broken(), &mut || sampler.look());
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
        progress_timeout::wait(plan, control, &done, &mut || {});
    }
    control.stop_consuming.store(true, Ordering::SeqCst);
    span
}
