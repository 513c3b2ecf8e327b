//! The coordinator: distributes a plan over workers, measures, drains, aggregates.

use super::wire::{
    Answer, Part, PartOutcome, Progress, Request, SIGN_EVERY, SILENCE_MAX, VERSION, Wire,
};
use crate::client::Error;
use crate::interrupt;
use crate::load::aggregate::aggregate;
use crate::load::control::Control;
use crate::load::outcome::Outcome;
use crate::load::plan::{End, Plan};
use crate::load::progress_timeout;
use crate::load::run::{judge_left, measure_for, run as run_here, undelivered};
use crate::load::sampler::{Sampler, Span};
use crate::load::threads::rest;
use crate::load::topology::Topology;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// Interval between progress requests.
const POLL: Duration = Duration::from_millis(20);
/// Round trips of the clock comparison; the quickest counts.
const CLOCK_ROUND_TRIPS: usize = 200;
/// Limit on the preparation of all workers together.
const PREPARED_WITHIN: Duration = Duration::from_secs(60);

/// Shared by the threads that serve one worker each.
struct Shared<'a> {
    control: &'a Control,
    go: AtomicBool,
    prepared: AtomicUsize,
    published: AtomicUsize,
    broken: AtomicBool,
    /// The error of the first failed worker; later ones fail as a consequence.
    why: OnceLock<String>,
    /// CPU time of each worker.
    cpu: Vec<Mutex<CpuSpan>>,
}

/// CPU time of a worker's process at the start and the end of the measured span.
#[derive(Debug, Default)]
struct CpuSpan {
    start_ns: u64,
    end_ns: u64,
}

/// The counters that hold the sums of a worker: those of its first producer and its first consumer.
#[derive(Debug, Clone, Copy)]
struct Slots {
    producer: usize,
    consumer: usize,
}

/// A connected worker.
struct Greeted {
    wire: Wire,
    /// Added to the worker's clock to get this process's.
    offset_ns: i64,
    /// The most that the offset is wrong.
    error_ns: u64,
}

/// Runs `plan` on the workers at these addresses, or in this process if there are none. The workers and
/// this process must all reach the plan's target.
pub fn run(plan: &Plan, workers: &[String], broker_pid: Option<u32>) -> Result<Outcome, Error> {
    match workers {
        [] => run_here(plan, broker_pid),
        _ => run_within(plan, workers, broker_pid, SILENCE_MAX),
    }
}

/// Runs `plan` on workers, with another limit on a worker's silence.
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

/// Says why the plan cannot be distributed over these workers, if so.
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
    let shared = Shared {
        control: &control,
        go: AtomicBool::new(false),
        prepared: AtomicUsize::new(0),
        published: AtomicUsize::new(0),
        broken: AtomicBool::new(false),
        why: OnceLock::new(),
        cpu: workers.iter().map(|_| Mutex::new(CpuSpan::default())).collect(),
    };
    let (mut span, parts) = thread::scope(|scope| {
        let shared = &shared;
        let threads: Vec<_> = wires
            .into_iter()
            .zip(workers)
            .enumerate()
            .map(|(index, (wire, address))| {
                let slots = Slots {
                    producer: share(plan.producers, index, workers.len()).start,
                    consumer: share(plan.consumers, index, workers.len()).start,
                };
                scope.spawn(move || {
                    let part = serve_worker(wire, shared, index, slots);
                    part.map_err(|error| {
                        // Only the first is kept.
                        let _ = shared.why.set(worker_error(address, &error).to_string());
                        shared.broken.store(true, Ordering::SeqCst);
                    })
                })
            })
            .collect();
        let span = run_span(plan, shared, workers.len(), broker_pid);
        let join = "those who speak to workers do not panic";
        let parts: Vec<Result<PartOutcome, ()>> =
            threads.into_iter().map(|it| it.join().expect(join)).collect();
        (span, parts)
    });
    if let Some(why) = shared.why.get() {
        return Err(io::Error::other(why.clone()).into());
    }
    let (mut produced, mut consumed) = (Vec::new(), Vec::new());
    for part in parts.into_iter().flatten() {
        produced.extend(part.produced);
        consumed.extend(part.consumed);
    }
    // This machine's CPU use says nothing about the workers'.
    span.start.machine = None;
    let mut outcome = aggregate(plan, &control, &span, &produced, &consumed);
    // The ends are on two machines, each with its own error.
    outcome.clock_error_us = Some(2.0 * error_ns as f64 / 1e3);
    outcome.workers = workers.len() as u64;
    let cpu_ns: u64 =
        shared.cpu.iter().filter_map(|it| it.lock().ok()).map(|it| it.end_ns - it.start_ns).sum();
    outcome.tool.cpu_share = cpu_ns as f64 / 1e9 / outcome.measured_s.max(1e-9);
    outcome.tool.cpu_ns_per_message = cpu_ns as f64 / outcome.messages.max(1) as f64;
    judge_left(plan, topology, &produced, &mut outcome)?;
    Ok(outcome)
}

/// Connects to the workers and then sends each its part. Returns also the largest clock error.
fn prepare(
    plan: &Plan,
    topology: &Topology,
    workers: &[String],
    control: &Control,
    silence: Duration,
) -> Result<(Vec<Wire>, u64), Error> {
    let (mut greeted, mut worst_ns) = (Vec::new(), 0);
    for address in workers {
        let worker =
            greet(address, control, silence).map_err(|error| worker_error(address, &error))?;
        worst_ns = worst_ns.max(worker.error_ns);
        greeted.push(worker);
    }
    let mut wires = Vec::new();
    for (index, Greeted { mut wire, offset_ns, .. }) in greeted.into_iter().enumerate() {
        let part = Part {
            plan: plan.clone(),
            topology: topology.clone(),
            producers: share(plan.producers, index, workers.len()),
            consumers: share(plan.consumers, index, workers.len()),
            offset_ns,
        };
        let told = wire.send(&Request::Prepare(Box::new(part)));
        told.map_err(|error| worker_error(&workers[index], &error))?;
        wires.push(wire);
    }
    Ok((wires, worst_ns))
}

/// Part `part` of `parts` of `count` items.
pub(super) fn share(count: usize, part: usize, parts: usize) -> std::ops::Range<usize> {
    count * part / parts..count * (part + 1) / parts
}

/// Connects to a worker and compares clocks; the error is half of the quickest round trip.
fn greet(address: &str, control: &Control, silence: Duration) -> Result<Greeted, Error> {
    let mut wire = Wire::new(connect(address, silence)?, silence)?;
    wire.send(&Request::Hello { version: VERSION })?;
    match wire.receive()? {
        Some(Answer::Hello { version }) if version == VERSION => {}
        other => return Err(unexpected(&other)),
    }
    let (mut offset_ns, mut error_ns) = (0, u64::MAX);
    for _ in 0..CLOCK_ROUND_TRIPS {
        let before = control.now_ns();
        wire.send(&Request::Clock)?;
        let Some(Answer::Clock { now_ns }) = wire.receive()? else {
            return Err(unexpected(&None));
        };
        let after = control.now_ns();
        if (after - before).div_ceil(2) < error_ns {
            error_ns = (after - before).div_ceil(2);
            offset_ns = (before + (after - before) / 2).wrapping_sub(now_ns) as i64;
        }
    }
    Ok(Greeted { wire, offset_ns, error_ns })
}

/// Connects to the first address that accepts.
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

/// Marks an error as the worker's; other errors are the broker's.
fn worker_error(who: &str, error: &Error) -> Error {
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

/// Serves one worker from its preparation to its outcome, and adds its counts to those of its first
/// producer and consumer.
fn serve_worker(
    mut wire: Wire,
    shared: &Shared<'_>,
    index: usize,
    slots: Slots,
) -> Result<PartOutcome, Error> {
    let control = shared.control;
    match answer(&mut wire, || control.stop_consuming.load(Ordering::SeqCst))? {
        Some(Answer::Prepared) => shared.prepared.fetch_add(1, Ordering::SeqCst),
        other => return Err(unexpected(&other)),
    };
    let (mut said_done, mut signed) = (false, Instant::now());
    loop {
        let stopping = control.stop_publishing.load(Ordering::SeqCst);
        let finishing = control.stop_consuming.load(Ordering::SeqCst);
        let waiting = !shared.go.load(Ordering::SeqCst) && !finishing;
        if waiting && signed.elapsed() < SIGN_EVERY {
            thread::sleep(POLL / 4);
            continue;
        }
        signed = Instant::now();
        let measuring = control.measuring.load(Ordering::Relaxed);
        let request = match (stopping && !said_done, finishing && said_done) {
            _ if waiting => Request::Wait,
            (true, _) => Request::StopPublishing,
            (_, true) => Request::Finish,
            _ => Request::Go { measuring },
        };
        let stopped = matches!(request, Request::StopPublishing);
        wire.send(&request)?;
        let progress = match answer(&mut wire, || false)? {
            Some(Answer::Progress(_)) if waiting => continue,
            Some(Answer::Progress(progress)) => progress,
            Some(Answer::Outcome(outcome)) => return Ok(*outcome),
            other => return Err(unexpected(&other)),
        };
        add_progress(shared, &progress, index, slots, measuring);
        if stopped || progress.producers_done && !said_done {
            if stopped {
                said_done = true;
            }
            if stopped || progress.producers_done {
                shared.published.fetch_or(1 << index.min(62), Ordering::SeqCst);
            }
        }
        shared.broken.fetch_or(progress.broken, Ordering::SeqCst);
        thread::sleep(POLL);
    }
}

/// The worker's answer, after any number of `Working`; an error if those continue when it is too late.
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

fn add_progress(
    shared: &Shared<'_>,
    progress: &Progress,
    index: usize,
    slots: Slots,
    measuring: bool,
) {
    if let Some(counter) = shared.control.producers.get(slots.producer) {
        counter.messages.store(progress.published, Ordering::Relaxed);
        counter.confirmed_or_bytes.store(progress.confirmed, Ordering::Relaxed);
        counter.refused.store(progress.refused, Ordering::Relaxed);
    }
    if let Some(counter) = shared.control.consumers.get(slots.consumer) {
        counter.messages.store(progress.delivered, Ordering::Relaxed);
        counter.confirmed_or_bytes.store(progress.delivered_bytes, Ordering::Relaxed);
    }
    if let Ok(mut cpu) = shared.cpu[index].lock() {
        if cpu.start_ns == 0 || !measuring && cpu.end_ns == 0 {
            cpu.start_ns = progress.cpu_ns;
        }
        if measuring {
            cpu.end_ns = progress.cpu_ns;
        }
        cpu.end_ns = cpu.end_ns.max(cpu.start_ns);
    }
}

/// Starts all workers, measures the span, stops publishing, drains.
fn run_span(plan: &Plan, shared: &Shared<'_>, workers: usize, broker_pid: Option<u32>) -> Span {
    let control = shared.control;
    let broken = || interrupt::requested() || shared.broken.load(Ordering::SeqCst);
    let waiting = Instant::now();
    while shared.prepared.load(Ordering::SeqCst) < workers && !broken() {
        thread::sleep(POLL / 4);
        if waiting.elapsed() > PREPARED_WITHIN {
            let within = PREPARED_WITHIN.as_secs();
            let _ = shared.why.set(format!("the workers were not prepared within {within} s"));
            shared.broken.store(true, Ordering::SeqCst);
        }
    }
    let all = usize::MAX >> (usize::BITS as usize - workers.min(63));
    let published = || shared.published.load(Ordering::SeqCst) & all == all;
    let span = match plan.end {
        End::After { warm_up, measured } => {
            shared.go.store(true, Ordering::SeqCst);
            rest(warm_up, &broken);
            measure_for(measured, control, broker_pid, &broken)
        }
        End::Count(total) => {
            let mut sampler = Sampler::start(control, broker_pid);
            shared.go.store(true, Ordering::SeqCst);
            let done =
                || control.published() >= total && published() && undelivered(plan, control) == 0;
            progress_timeout::wait(plan, control, &|| done() || broken(), &mut || sampler.look());
            sampler.finish()
        }
    };
    shared.published.store(0, Ordering::SeqCst);
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
