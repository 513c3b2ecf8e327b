//! What stored messages take of the broker's memory.

use super::control::Control;
use super::plan::{End, Plan};
use super::producer::Producer;
use super::topology::Topology;
use crate::client::{Error, Link, Protocol, Target};
use crate::measure::process::Usage;
use std::thread;
use std::time::Duration;

/// Between storing and looking.
const SETTLE: Duration = Duration::from_millis(500);

/// Messages that wait for their confirms, where only what is confirmed is stored.
const WINDOW: usize = 1_000;

/// Memory before and after, in KiB.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stored {
    /// Resident before the first message.
    pub before_kib: u64,
    /// And with all of them.
    pub after_kib: u64,
    /// Octets of resident memory per message.
    pub bytes_each: f64,
}

/// Stores `messages` in one queue and looks at the broker's memory. A queue is declared and one
/// message passed before, so that what is set up once is not counted.
pub fn measure(
    target: &Target,
    pid: u32,
    messages: u64,
    size_bytes: usize,
) -> Result<Stored, Error> {
    // With channels beside streams, only what is confirmed is kept.
    let has_both = matches!(target.protocol(), Protocol::Resp | Protocol::JetStream);
    let window = if has_both { WINDOW } else { 0 };
    let end = End::Count(messages);
    let plan = Plan { consumers: 0, size_bytes, window, end, ..Plan::new(target.clone()) };
    plan.check().map_err(Error::Closed)?;
    if target.protocol().is_at_most_once() {
        return Err(Error::Closed("without queues nothing is stored".to_owned()));
    }
    let topology = Topology::of(&plan);
    let mut link = Link::open(target)?;
    topology.declare(&mut link, &plan)?;
    let store = |plan: &Plan| -> Result<(), Error> {
        let control = Control::new(1, 0, 0, 1);
        Producer::connect(plan, &control, 0, &topology.route(plan, 0))?.run().map(drop)
    };
    store(&Plan { end: End::Count(1), ..plan.clone() })?;
    thread::sleep(SETTLE);
    let before_kib = Usage::of_tree(pid).map_or(0, |usage| usage.rss_kib);
    let stored = store(&plan);
    thread::sleep(SETTLE);
    let after_kib = Usage::of_tree(pid).map_or(0, |usage| usage.rss_kib);
    topology.delete(&mut link)?;
    link.close()?;
    stored?;
    let grown = after_kib.saturating_sub(before_kib) as f64 * 1024.0;
    Ok(Stored { before_kib, after_kib, bytes_each: grown / messages.max(1) as f64 })
}
