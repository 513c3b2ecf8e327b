//! Fills queues without consumers and drains queues without producers: rates, and memory per message.

use super::aggregate::verdict;
use super::consumer::{Consumed, start_consumers};
use super::control::{Control, StopOnDrop, join};
use super::plan::{End, Plan};
use super::producer::{Produced, Producer, connect_producers, start_producers};
use super::progress_timeout;
use super::topology::Topology;
use super::verdict::Verdict;
use crate::client::{Error, Protocol, Target};
use crate::interrupt;
use crate::measure::process::{Cost, Usage};
use serde::{Deserialize, Serialize};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

/// Deliveries per acknowledgement, where messages are stored.
const ACK_EVERY: u32 = 50;
/// Limit on unacknowledged deliveries, where messages are stored.
const PREFETCH: u16 = 500;
/// Between storing and measuring the memory.
const SETTLE: Duration = Duration::from_millis(500);
/// Confirm window of the memory measurement, where only confirmed messages are stored.
const WINDOW: usize = 1_000;

/// The result of filling and draining.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct BacklogOutcome {
    /// Messages per second into the queues; confirmed, if the plan has confirms.
    pub fill_rate: f64,
    /// Messages per second out of the queues.
    pub drain_rate: f64,
    /// Body bytes per second into the queues.
    pub fill_bytes: f64,
    /// Messages.
    pub messages: u64,
    /// What became of them.
    pub verdict: Verdict,
    /// What the broker used while the queues were filled.
    pub broker_filling: Option<Cost>,
    /// What the broker used while they were drained.
    pub broker_draining: Option<Cost>,
}

/// Runs the producers of `plan` to their end, then its consumers.
pub fn measure(plan: &Plan, broker_pid: Option<u32>) -> Result<BacklogOutcome, Error> {
    let topology = Topology::of(plan);
    topology.declared_for(plan, |_| fill_and_drain(plan, &topology, broker_pid))
}

fn fill_and_drain(
    plan: &Plan,
    topology: &Topology,
    broker_pid: Option<u32>,
) -> Result<BacklogOutcome, Error> {
    let usage = || broker_pid.and_then(Usage::of_tree);
    let control = Control::new(plan.producers, plan.consumers, 0, plan.copies());
    if let Some(pid) = broker_pid {
        Usage::forget_peaks(pid);
    }
    let ready = connect_producers(plan, topology, &control, 0..plan.producers)?;
    let (before, start) = (usage(), Instant::now());
    let produced = thread::scope(|scope| {
        let producers = start_producers(scope, &control, ready);
        while !producers.iter().all(|it| it.is_finished()) {
            thread::sleep(Duration::from_millis(1));
            if interrupt::requested() {
                control.stop_publishing.store(true, Ordering::Relaxed);
            }
        }
        join(producers)
    })?;
    let (full, fill_s) = (usage(), start.elapsed().as_secs_f64());
    let messages: u64 = produced.iter().map(|it| it.published).sum();
    let draining = Instant::now();
    let drained = Drained { expected: messages * plan.copies(), silence: Duration::ZERO };
    let consumed = drain_queues(plan, topology, &control, drained)?;
    let (empty, drain_s) = (usage(), draining.elapsed().as_secs_f64());
    let fill_rate = messages as f64 / fill_s;
    Ok(BacklogOutcome {
        fill_rate,
        drain_rate: control.delivered() as f64 / drain_s,
        fill_bytes: fill_rate * plan.size_bytes as f64,
        messages,
        verdict: verdict(plan, &produced, &consumed).unwrap_or_default(),
        broker_filling: Cost::between(before.as_ref(), full.as_ref(), fill_s, messages),
        broker_draining: Cost::between(full.as_ref(), empty.as_ref(), drain_s, messages),
    })
}

/// When queues count as drained.
pub(super) struct Drained {
    pub(super) expected: u64,
    /// How long nothing more must arrive after that.
    pub(super) silence: Duration,
}

/// Runs the consumers of `plan` until queues are drained or nothing arrives for its drain time.
pub(super) fn drain_queues(
    plan: &Plan,
    topology: &Topology,
    control: &Control,
    drained: Drained,
) -> Result<Vec<Consumed>, Error> {
    thread::scope(|scope| {
        let _stop = StopOnDrop(control);
        let consumers = start_consumers(scope, plan, topology, control, 0..plan.consumers)?;
        let broken = || interrupt::requested() || consumers.iter().any(|it| it.is_finished());
        let done = || control.delivered() >= drained.expected || broken();
        progress_timeout::wait(plan, control, &done, &mut || {});
        // Messages beyond the expected ones.
        let (mut moved, mut seen) = (Instant::now(), control.delivered());
        while moved.elapsed() < drained.silence && !broken() {
            thread::sleep(Duration::from_millis(1));
            if control.delivered() != seen {
                (moved, seen) = (Instant::now(), control.delivered());
            }
        }
        control.stop_consuming.store(true, Ordering::Relaxed);
        join(consumers)
    })
}

/// Why messages published without consumers cannot be judged, if so: the broker does not store them.
pub(super) fn forgotten(plan: &Plan) -> Option<&'static str> {
    let kept = plan.is_kept();
    match plan.target.protocol() {
        Protocol::Mqtt if !plan.persistent => {
            Some("without subscribers or sessions nothing is kept")
        }
        Protocol::Nats | Protocol::JetStream if !kept => {
            Some("without subscribers a subject keeps nothing")
        }
        Protocol::Amqp10 if plan.fan_out && !(plan.persistent && plan.durable_queues) => {
            Some("without durable subscriptions a topic keeps nothing")
        }
        Protocol::Resp if !kept => Some("without subscribers a channel keeps nothing"),
        _ => None,
    }
}

/// Judges what the producers of `plan` left in queues without consumers; `None` if interrupted.
pub(super) fn read_back(
    plan: &Plan,
    topology: &Topology,
    produced: &[Produced],
) -> Result<Option<Verdict>, Error> {
    let kept = plan.is_kept();
    let plan = Plan {
        consumers: plan.queues,
        ack_every: if kept { ACK_EVERY } else { 0 },
        prefetch: if kept { PREFETCH } else { 0 },
        commit_acks: false,
        latency: false,
        ..plan.clone()
    };
    let control = Control::new(0, plan.consumers, 0, plan.copies());
    let published: u64 = produced.iter().map(|it| it.published).sum();
    let drained = Drained { expected: published * plan.copies(), silence: Duration::ZERO };
    let consumed = drain_queues(&plan, topology, &control, drained)?;
    Ok(verdict(&plan, produced, &consumed).filter(|_| !interrupt::requested()))
}

/// Resident memory before and after, and the verdict on the messages.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryPerMessage {
    /// Resident memory before the first message.
    pub before_kib: u64,
    /// Resident memory with all messages stored.
    pub after_kib: u64,
    /// Bytes of resident memory per message.
    pub bytes_each: f64,
    /// The verdict on the messages, read back after the measurement; `None` if interrupted.
    pub verdict: Option<Verdict>,
}

/// Stores `messages` in one queue, measures the broker's memory, and reads them back; one message before
/// covers one-time allocations. Messages are lost once nothing arrives for `drain`.
pub fn memory_per_message(
    target: &Target,
    pid: u32,
    messages: u64,
    size_bytes: usize,
    drain: Duration,
) -> Result<MemoryPerMessage, Error> {
    if target.protocol().is_at_most_once() {
        return Err(Error::Closed("without queues nothing is stored".to_owned()));
    }
    // Protocols with both channels and streams store only confirmed messages here.
    let has_both = matches!(target.protocol(), Protocol::Resp | Protocol::JetStream);
    let window = if has_both { WINDOW } else { 0 };
    let base = Plan::new(target.clone());
    let checksum = Plan::has_room_for_checksums(size_bytes);
    let plan = Plan { producers: 2, consumers: 0, size_bytes, window, drain, checksum, ..base };
    plan.check().map_err(Error::Closed)?;
    let topology = Topology::of(&plan);
    topology.declared_for(&plan, |_| store(&plan, &topology, pid, messages))
}

fn store(
    plan: &Plan,
    topology: &Topology,
    pid: u32,
    messages: u64,
) -> Result<MemoryPerMessage, Error> {
    let rss_kib = || {
        thread::sleep(SETTLE);
        Usage::of_tree(pid).map_or(0, |usage| usage.rss_kib)
    };
    // The first producer sends the one message before, the second one the others: half of twice as many.
    let store = |producer: usize, total: u64| -> Result<Produced, Error> {
        let plan = Plan { end: End::Count(total), ..plan.clone() };
        let control = Control::new(plan.producers, 0, 0, 1);
        let route = topology.route(&plan, producer);
        Producer::connect(&plan, &control, producer, &route)?.run()
    };
    let first = store(0, 1)?;
    let before_kib = rss_kib();
    let others = store(1, 2 * messages)?;
    let after_kib = rss_kib();
    let verdict = read_back(plan, topology, &[first, others])?;
    let grown = after_kib.saturating_sub(before_kib) as f64 * 1024.0;
    let bytes_each = grown / messages.max(1) as f64;
    Ok(MemoryPerMessage { before_kib, after_kib, bytes_each, verdict })
}
