//! Taking out of queues what lies in them, when nobody publishes any more.

use super::aggregate::verdict;
use super::consumer::{Consumed, Consuming, start_consumers};
use super::control::Control;
use super::plan::Plan;
use super::producer::Produced;
use super::progress_timeout;
use super::tally::Verdict;
use super::threads::join;
use super::topology::Topology;
use crate::client::{Error, Protocol};
use crate::interrupt;
use std::sync::atomic::Ordering;
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

/// Deliveries that are acknowledged together where messages are kept.
const ACK_EVERY: u32 = 50;
/// Deliveries that may be unacknowledged there.
const PREFETCH: u16 = 500;

/// Runs the consumers of `plan` until `expected` messages came and nothing more has for `silence`, or
/// until nothing has for the plan's drain time.
pub(super) fn drain_queues(
    plan: &Plan,
    topology: &Topology,
    control: &Control,
    expected: u64,
    silence: Duration,
) -> Result<Vec<Consumed>, Error> {
    thread::scope(|scope| {
        let outcome = take(scope, plan, topology, control, (expected, silence));
        // After an error, too: the scope waits for every thread.
        control.stop_consuming.store(true, Ordering::Relaxed);
        join(outcome?)
    })
}

fn take<'scope>(
    scope: &'scope Scope<'scope, '_>,
    plan: &'scope Plan,
    topology: &Topology,
    control: &'scope Control,
    (expected, beyond): (u64, Duration),
) -> Result<Consuming<'scope>, Error> {
    let consumers = start_consumers(scope, plan, topology, control, 0..plan.consumers)?;
    let broken = || interrupt::requested() || consumers.iter().any(|it| it.is_finished());
    let done = || control.delivered() >= expected || broken();
    progress_timeout::wait(plan, control, &done, &mut || {});
    // What comes beyond that.
    let (mut moved, mut seen) = (Instant::now(), control.delivered());
    while moved.elapsed() < beyond && !broken() {
        thread::sleep(Duration::from_millis(1));
        if control.delivered() != seen {
            (moved, seen) = (Instant::now(), control.delivered());
        }
    }
    Ok(consumers)
}

/// Why nothing can be said of messages that are published to nobody, if so: the broker keeps none of
/// them.
pub(super) fn forgotten(plan: &Plan) -> Option<&'static str> {
    match plan.target.protocol() {
        Protocol::Nats => Some("nobody listens, and a subject keeps nothing"),
        Protocol::Mqtt if !plan.persistent => Some("nobody listens, and no session keeps them"),
        Protocol::JetStream if !plan.is_kept() => {
            Some("nobody listens, and a subject keeps nothing")
        }
        Protocol::Resp if !plan.is_kept() => Some("nobody listens, and a channel keeps nothing"),
        _ => None,
    }
}

/// Reads back what the producers of `plan` left in queues without consumers, and judges it. `None` where
/// it was broken off.
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
    let expected = published * plan.copies();
    let consumed = drain_queues(&plan, topology, &control, expected, Duration::ZERO)?;
    Ok(verdict(&plan, produced, &consumed).filter(|_| !interrupt::requested()))
}
