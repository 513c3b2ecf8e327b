//! What an idle connection costs the broker: many of them, each with a queue and a consumer.

use super::topology;
use crate::client::{Error, Link, Source, Target};
use crate::measure::process::Usage;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};
use std::thread;
use std::time::{Duration, Instant};

/// The most idle connections of one run.
pub const CONNECTIONS_MAX: usize = 100_000;

/// What they cost.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct IdleCost {
    /// How many.
    pub connections: u64,
    /// Connections per second while they were opened, each with its queue and consumer.
    pub opened_per_s: f64,
    /// The broker's resident memory before.
    pub rss_before_kib: u64,
    /// And with all of them open.
    pub rss_after_kib: u64,
    /// The difference per connection.
    pub kib_per_connection: f64,
    /// Cores' worth of broker CPU while they did nothing.
    pub idle_cpu_share: f64,
}

/// Opens `count` connections to the broker of process `pid`, waits, looks, and closes them.
pub fn measure(
    target: &Target,
    pid: u32,
    count: usize,
    settle: Duration,
) -> Result<IdleCost, Error> {
    raise_descriptor_limit(count as u64 + 100);
    // The first connection makes the broker set up what is not per connection.
    let mut first = Link::open(target)?;
    let prefix = format!("{}-idle", topology::prefix(target.protocol()));
    thread::sleep(settle);
    let before = Usage::of_tree(pid).unwrap_or_default();
    let start = Instant::now();
    let mut sockets = Vec::with_capacity(count);
    for index in 0..count {
        let mut link = Link::open(target)?;
        let queue = format!("{prefix}-{index}");
        link.declare_queue(&queue, false, &[])?;
        link.subscribe(&Source { name: &queue, group: None, auto_ack: true }, 0)?;
        sockets.push(link.into_stream());
    }
    let opened_per_s = count as f64 / start.elapsed().as_secs_f64();
    thread::sleep(settle);
    let after = Usage::of_tree(pid).unwrap_or_default();
    let still = Instant::now();
    thread::sleep(settle);
    let idle = Usage::of_tree(pid).unwrap_or_default();
    let idle_ns = idle.cpu_ns.saturating_sub(after.cpu_ns) as f64;
    let idle_cpu_share = idle_ns / still.elapsed().as_nanos() as f64;
    drop(sockets);
    for index in 0..count {
        first.delete_queue(&format!("{prefix}-{index}"))?;
    }
    first.close()?;
    let grown_kib = after.rss_kib.saturating_sub(before.rss_kib);
    Ok(IdleCost {
        connections: count as u64,
        opened_per_s,
        rss_before_kib: before.rss_kib,
        rss_after_kib: after.rss_kib,
        kib_per_connection: grown_kib as f64 / count.max(1) as f64,
        idle_cpu_share,
    })
}

/// Allows as many sockets as the run needs, as far as the system lets us; opening them says if it
/// does not.
fn raise_descriptor_limit(needed: u64) {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return;
    }
    let current = limit.maximum.map_or(needed, |maximum| maximum.min(needed));
    let raised = Rlimit { current: Some(current), maximum: limit.maximum };
    // A refusal shows as the error of the connection that has no descriptor left.
    let _ = setrlimit(Resource::Nofile, raised);
}
