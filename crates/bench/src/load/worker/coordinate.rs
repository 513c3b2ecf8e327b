//! The coordinator: distributes a plan over workers, measures, drains, aggregates.

use super::wire::{Answer, Part, Progress, Request, SIGN_EVERY, SILENCE_MAX, VERSION, Wire};
use crate::client::Error;
use crate::interrupt;
use crate::load::aggregate::aggregate;
use crate::load::consumer::Consumed;
use crate::load::control::{Control, joined, rest};
use crate::load::outcome::Outcome;
use crate::load::plan::{End, Plan};
use crate::load::producer::Produced;
use crate::load::run::{drain, judge_left, measure_count, measure_for, run as run_here};
use crate::load::sampler::{Sampler, Span};
use crate::load::topology::Topology;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

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
}

/// What a worker's part came to.
struct PartOutcome {
    produced: Vec<Produced>,
    consumed: Vec<Consumed>,
    /// CPU time of the worker's process over the measured span.
    cpu_ns: u64,
}

impl Shared<'_> {
    /// Ends the run; only the first reason is kept.
    fn fail(&self, why: String) {
        let _ = self.why.set(why);
        self.broken.store(true, Ordering::SeqCst);
    }
}

/// The producers and consumers of a worker; the counters of the first of each hold the sums.
struct Slots {
    producers: Range<usize>,
    consumers: Range<usize>,
}

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
    };
    let (mut span, parts) = thread::scope(|scope| {
        let shared = &shared;
        let threads: Vec<_> = wires
            .into_iter()
            .zip(workers)
            .enumerate()
            .map(|(index, (wire, address))| {
                let slots = Slots {
                    producers: share(plan.producers, index, workers.len()),
                    consumers: share(plan.consumers, index, workers.len()),
                };
                scope.spawn(move || {
                    let part = serve_worker(wire, shared, index, slots);
                    part.inspect_err(|error| shared.fail(worker_error(address, error).to_string()))
                })
            })
            .collect();
        let span = run_span(plan, shared, workers.len(), broker_pid);
        (span, threads.into_iter().map(joined).collect::<Vec<_>>())
    });
    if let Some(why) = shared.why.get() {
        return Err(io::Error::other(why.clone()).into());
    }
    let (mut produced, mut consumed, mut cpu_ns) = (Vec::new(), Vec::new(), 0);
    for part in parts.into_iter().flatten() {
        produced.extend(part.produced);
        consumed.extend(part.consumed);
        cpu_ns += part.cpu_ns;
    }
    // This machine's CPU use says nothing about the workers'.
    span.start.machine = None;
    let mut outcome = aggregate(plan, &control, &span, &produced, &consumed);
    // The ends are on two machines, each with its own error.
    outcome.clock_error_us = Some(2.0 * error_ns as f64 / 1e3);
    outcome.workers = workers.len() as u64;
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
    let greet = |address: &String| {
        greet(address, control, silence).map_err(|error| worker_error(address, &error))
    };
    let greeted = workers.iter().map(greet).collect::<Result<Vec<Greeted>, Error>>()?;
    let worst_ns = greeted.iter().map(|it| it.error_ns).max().unwrap_or(0);
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
pub(super) fn share(count: usize, part: usize, parts: usize) -> Range<usize> {
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
        found = found.or_else(|_| TcpStream::connect_timeout(&address, patience));
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

/// Serves one worker from its preparation to its outcome, and counts its progress.
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
    // CPU time of the worker's process before the measured span, and over it.
    let (mut before_ns, mut cpu_ns) = (0, 0);
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
            Some(Answer::Outcome { produced, consumed }) => {
                return Ok(PartOutcome { produced, consumed, cpu_ns });
            }
            other => return Err(unexpected(&other)),
        };
        add_progress(control, &progress, &slots);
        if measuring && before_ns > 0 {
            cpu_ns = progress.cpu_ns - before_ns;
        } else if cpu_ns == 0 {
            before_ns = progress.cpu_ns;
        }
        said_done |= stopped;
        if stopped || progress.producers_done {
            shared.published.fetch_or(1 << index.min(62), Ordering::SeqCst);
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

fn add_progress(control: &Control, Progress { counts, .. }: &Progress, slots: &Slots) {
    if let Some(counter) = control.producers[slots.producers.clone()].first() {
        counter.messages.store(counts.published, Ordering::Relaxed);
        counter.confirmed_or_bytes.store(counts.confirmed, Ordering::Relaxed);
        counter.refused.store(counts.refused, Ordering::Relaxed);
    }
    if let Some(counter) = control.consumers[slots.consumers.clone()].first() {
        counter.messages.store(counts.delivered, Ordering::Relaxed);
        counter.confirmed_or_bytes.store(counts.delivered_bytes, Ordering::Relaxed);
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
            shared.fail(format!("the workers were not prepared within {within} s"));
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
            let sampler = Sampler::start(control, broker_pid);
            shared.go.store(true, Ordering::SeqCst);
            measure_count(plan, total, control, Some(sampler), &broken, &published)
        }
    };
    shared.published.store(0, Ordering::SeqCst);
    control.stop_publishing.store(true, Ordering::SeqCst);
    while !published() && !broken() {
        thread::sleep(POLL / 4);
    }
    drain(plan, control, &broken);
    control.stop_consuming.store(true, Ordering::SeqCst);
    span
}
