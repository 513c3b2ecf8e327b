//! Drains queues that no producer fills.

use super::aggregate::verdict;
use super::consumer::{Consumed, Consuming, start_consumers};
use super::control::Control;
use super::plan::Plan;
use super::producer::Produced;
use super::progress_timeout;
use super::threads::join;
use super::topology::Topology;
use super::verdict::Verdict;
use crate::client::{Error, Protocol};
use crate::interrupt;
use std::sync::atomic::Ordering;
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

/// Deliveries per acknowledgement, where messages are stored.
const ACK_EVERY: u32 = 50;
/// Limit on unacknowledged deliveries, where messages are stored.
const PREFETCH: u16 = 500;

/// When queues count as drained.
#[derive(Debug, Clone, Copy)]
pub(super) struct Drained {
    /// Messages that must arrive.
    pub(super) expected: u64,
    /// How long nothing more must arrive after that.
    pub(super) silence: Duration,
}

/// Runs the consumers of `plan` until the queues are drained, or until nothing arrives for the plan's
/// drain time.
pub(super) fn drain_queues(
    plan: &Plan,
    topology: &Topology,
    control: &Control,
    drained: Drained,
) -> Result<Vec<Consumed>, Error> {
    thread::scope(|scope| {
        let outcome = consume(scope, plan, topology, control, drained);
        // After an error, too: the scope waits for every thread.
        control.stop_consuming.store(true, Ordering::Relaxed);
        join(outcome?)
    })
}

fn consume<'scope>(
    scope: &'scope Scope<'scope, '_>,
    plan: &'scope Plan,
    topology: &Topology,
    control: &'scope Control,
    drained: Drained,
) -> Result<Consuming<'scope>, Error> {
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
    Ok(consumers)
}

/// Why messages published without consumers cannot be judged, if so: the broker does not store them.
pub(super) fn forgotten(plan: &Plan) -> Option<&'static str> {
    match plan.target.protocol() {
        Protocol::Nats => Some("without subscribers a subject keeps nothing"),
        Protocol::Mqtt if !plan.persistent => {
            Some("without subscribers or sessions nothing is kept")
        }
        Protocol::JetStream if !plan.is_kept() => {
            Some("without subscribers a subject keeps nothing")
        }
        Protocol::Resp if !plan.is_kept() => Some("without subscribers a channel keeps nothing"),
        _ => None,
    }
}

/// Reads back and judges what the producers of `plan` left in queues without consumers. `None` if
/// interrupted.
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
