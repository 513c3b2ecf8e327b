//! The broker's memory per stored message.

use super::backlog::read_back;
use super::control::Control;
use super::plan::{End, Plan};
use super::producer::{Produced, Producer};
use super::topology::Topology;
use super::verdict::Verdict;
use crate::client::{Error, Protocol, Target};
use crate::measure::process::Usage;
use std::thread;
use std::time::Duration;

const SETTLE: Duration = Duration::from_millis(500);
/// Confirm window, where only confirmed messages are stored.
const WINDOW: usize = 1_000;

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
pub fn measure(
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
