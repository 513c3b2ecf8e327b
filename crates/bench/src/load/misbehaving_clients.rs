//! Clients that behave badly: what a broker must keep from all others. Knows nothing about those.

use super::control::Control;
use super::plan::{End, Plan};
use super::producer::Producer;
use crate::client::amqp091::Argument;
use crate::client::{Error, Head, Link, Protocol, Receiver, Route, Source, Target, is_timeout};
use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::process::setpriority_process;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, Scope};
use std::time::Duration;

/// How often a slow one reads.
const SLOW_INTERVAL: Duration = Duration::from_millis(10);
/// How long an misbehaving one waits before it looks whether it is over, and before it comes back.
pub(super) const PATIENCE: Duration = Duration::from_millis(50);
/// What the kernel may keep for those that do not read: little, so that the broker feels it.
pub(super) const RECEIVE_BUFFER_BYTES: usize = 32 * 1024;
/// Octets of a flood that are written at once.
pub(super) const FLOOD_BYTES: usize = 64 * 1024;
/// The flood's queue drops what is beyond; without a limit it would fill the broker's memory.
const FLOOD_QUEUE_MAX: i64 = 20_000;
/// The nice value of their threads.
const LOWEST_PRIORITY: i32 = 19;
/// Unacknowledged deliveries of one that drains, and how many it acknowledges at once.
const DRAIN_PREFETCH: u16 = 2_000;
const DRAIN_ACKS: u64 = 100;

/// How many of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Misbehaving {
    /// They subscribe and never read.
    pub stalled: usize,
    /// They read a twentieth of what comes.
    pub slow: usize,
    /// They publish as fast as the broker lets them.
    pub flooding: usize,
    /// They consume and never acknowledge; queues only.
    pub unacking: usize,
    /// One drains a durable queue with so many octets of bodies in it; queues only, 0 is none.
    pub backlog_bytes: u64,
}

impl Misbehaving {
    /// Whether one drains a backlog.
    pub(super) fn drains(&self) -> bool {
        self.backlog_bytes > 0
    }
}

/// What they did, while they do it.
#[derive(Debug, Default)]
pub(super) struct Deeds {
    /// It is over.
    pub(super) stop: AtomicBool,
    /// Octets that flooded.
    pub(super) flooded_bytes: AtomicU64,
    /// Messages of the backlog that were drained.
    pub(super) drained: AtomicU64,
    /// Octets that came for that.
    pub(super) drained_bytes: AtomicU64,
    /// Octets that were consumed and never acknowledged.
    pub(super) unacked_bytes: AtomicU64,
    /// Connections that the broker ended.
    pub(super) cut_off: AtomicU64,
}

impl Deeds {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Where they do it: with AMQP on queues of their own, with NATS on the subjects of the others.
#[derive(Debug, Clone)]
pub(super) struct Scene {
    target: Target,
    /// Subjects or queues that a slow one listens to, in turn.
    slow: Vec<String>,
    stalled: String,
    flood: String,
    backlog: String,
    size_bytes: usize,
    /// Octets per second that a slow one reads.
    slow_bytes_per_s: u64,
}

impl Scene {
    /// Beside a run of `plan` over `names`, of which each carries the same share of the rate.
    pub(super) fn new(plan: &Plan, names: &[String]) -> Scene {
        let above = |name: &str| name.rsplit_once(['.', '-', '/']).map_or("", |it| it.0).to_owned();
        let above = above(&names[0]);
        let per_name = plan.rate * plan.size_bytes as u64 / names.len() as u64;
        let protocol = plan.target.protocol();
        let dash = protocol.separator();
        let flood = format!("{above}{dash}flood");
        let (stalled, slow) = match protocol {
            Protocol::Nats | Protocol::JetStream | Protocol::Resp => {
                (format!("{above}.*"), names.to_vec())
            }
            Protocol::Mqtt => (format!("{above}/+"), names.to_vec()),
            Protocol::Amqp091 | Protocol::Stomp => (flood.clone(), vec![flood.clone()]),
        };
        Scene {
            target: plan.target.clone(),
            slow,
            stalled,
            flood,
            backlog: format!("{above}{dash}backlog"),
            size_bytes: plan.size_bytes,
            slow_bytes_per_s: (per_name / 20).max(1_000),
        }
    }

    /// Declares and fills what they need.
    pub(super) fn set(
        &self,
        link: &mut Link,
        plan: &Plan,
        misbehaving: &Misbehaving,
    ) -> Result<(), Error> {
        let limit = [("x-max-length".to_owned(), Argument::Integer(FLOOD_QUEUE_MAX))];
        link.declare_queue(&self.flood, false, &limit)?;
        link.declare_queue(&self.backlog, true, &[])?;
        let count = misbehaving.backlog_bytes / self.size_bytes.max(1) as u64;
        if count == 0 {
            return Ok(());
        }
        let fill = Plan {
            producers: 1,
            consumers: 0,
            queues: 1,
            persistent: true,
            window: 2_000,
            rate: 0,
            ahead: 0,
            latency: false,
            end: End::Count(count),
            ..plan.clone()
        };
        let control = Control::new(1, 0, 0, 1);
        let route = Route { exchange: "", key: &self.backlog, persistent: true };
        Producer::connect(&fill, &control, 0, &route)?.run().map(drop)
    }

    /// Octets per second that a slow one reads.
    pub(super) fn slow_bytes_per_s(&self) -> u64 {
        self.slow_bytes_per_s
    }

    /// Deletes what was declared.
    pub(super) fn strike(&self, link: &mut Link) -> Result<(), Error> {
        link.delete_queue(&self.flood)?;
        link.delete_queue(&self.backlog)
    }

    /// Connects all of them and lets them loose until `deeds.stop`.
    pub(super) fn release<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        misbehaving: &Misbehaving,
        deeds: &'scope Deeds,
    ) -> Result<(), Error> {
        for _ in 0..misbehaving.stalled {
            let link = self.listen(&self.stalled, true)?;
            spawn(scope, move || stall(link.into_stream(), deeds));
        }
        for index in 0..misbehaving.slow {
            let name = &self.slow[index % self.slow.len()];
            let link = self.listen(name, true)?;
            spawn(scope, move || {
                // It comes back, as clients do, and is no faster then.
                let again = || self.listen(name, true).ok().map(Link::into_stream);
                dawdle(link.into_stream(), self.slow_bytes_per_s, deeds, again);
            });
        }
        for _ in 0..misbehaving.unacking {
            let link = self.listen(&self.flood, false)?;
            spawn(scope, move || keep(link, deeds));
        }
        if misbehaving.drains() {
            let mut link = Link::open(&self.target)?;
            let source = Source { auto_ack: false, ..Source::plain(&self.backlog) };
            link.subscribe(&source, DRAIN_PREFETCH)?;
            link.stream().set_read_timeout(Some(PATIENCE))?;
            spawn(scope, move || drain(link, deeds));
        }
        for _ in 0..misbehaving.flooding {
            let link = self.open_to_flood()?;
            spawn(scope, move || self.flood(link, deeds));
        }
        Ok(())
    }

    fn listen(&self, name: &str, auto_ack: bool) -> Result<Link, Error> {
        let mut link = Link::open(&self.target)?;
        set_socket_recv_buffer_size(link.stream(), RECEIVE_BUFFER_BYTES)
            .map_err(io::Error::from)?;
        link.subscribe(&Source { auto_ack, ..Source::plain(name) }, 0)?;
        link.stream().set_read_timeout(Some(PATIENCE))?;
        Ok(link)
    }

    fn open_to_flood(&self) -> Result<Link, Error> {
        let mut link = Link::open(&self.target)?;
        link.disable_replies()?;
        Ok(link)
    }

    fn flood(&self, link: Link, deeds: &Deeds) {
        let mut message = Vec::new();
        let route = Route { exchange: "", key: &self.flood, persistent: false };
        link.encode(&route, &vec![b'f'; self.size_bytes], &mut message);
        let count = (FLOOD_BYTES / message.len()).max(1);
        let batch = message.repeat(count);
        let mut link = Some(link);
        while !deeds.is_over() {
            let Some(open) = &link else {
                thread::sleep(PATIENCE);
                link = self.open_to_flood().ok();
                continue;
            };
            if pour(open.stream(), &batch, deeds).is_err() {
                deeds.cut_off.fetch_add(1, Ordering::Relaxed);
                link = None;
            }
        }
    }
}

/// Reads nothing until it is over.
pub(super) fn stall(mut stream: TcpStream, deeds: &Deeds) {
    while !deeds.is_over() {
        thread::sleep(PATIENCE);
    }
    // What the broker sent before it lost patience comes first; behind it is the end, if any.
    let mut buffer = vec![0; FLOOD_BYTES];
    loop {
        match stream.read(&mut buffer) {
            Ok(count) if count > 0 => {}
            Err(error) if is_timeout(&error) => return,
            Ok(_) | Err(_) => break,
        }
    }
    deeds.cut_off.fetch_add(1, Ordering::Relaxed);
}

/// Reads so many octets a second. Once cut off, goes on with what `again` opens, if anything.
pub(super) fn dawdle(
    mut stream: TcpStream,
    bytes_per_s: u64,
    deeds: &Deeds,
    mut again: impl FnMut() -> Option<TcpStream>,
) {
    let per_read = bytes_per_s * SLOW_INTERVAL.as_millis() as u64 / 1_000;
    let mut buffer = vec![0; per_read.max(1) as usize];
    while !deeds.is_over() {
        thread::sleep(SLOW_INTERVAL);
        match stream.read(&mut buffer) {
            Ok(count) if count > 0 => continue,
            Err(error) if is_timeout(&error) => continue,
            Ok(_) | Err(_) => {}
        }
        deeds.cut_off.fetch_add(1, Ordering::Relaxed);
        thread::sleep(PATIENCE);
        match again() {
            Some(next) => stream = next,
            None => return,
        }
    }
}

/// Writes the batch again and again, until it is over or the connection is.
pub(super) fn pour(mut stream: &TcpStream, batch: &[u8], deeds: &Deeds) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut at = 0;
    while !deeds.is_over() {
        match stream.write(&batch[at..]) {
            Ok(count) => {
                at = (at + count) % batch.len();
                deeds.flooded_bytes.fetch_add(count as u64, Ordering::Relaxed);
            }
            Err(error) if is_timeout(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Starts one that gives way to all other threads. It would have a machine of its own; here it shares the
/// cores with broker and healthy clients, and what those lose is not to be its doing.
pub(super) fn spawn<'scope>(
    scope: &'scope Scope<'scope, '_>,
    misbehaving: impl FnOnce() + Send + 'scope,
) {
    scope.spawn(move || {
        // Where the system does not allow it, the run is only less fair to the broker.
        let _ = setpriority_process(None, LOWEST_PRIORITY);
        misbehaving();
    });
}

/// Takes every delivery and acknowledges none.
fn keep(mut link: Link, deeds: &Deeds) {
    while !deeds.is_over() {
        let taken = link.fill_within().and_then(|count| {
            deeds.unacked_bytes.fetch_add(count.unwrap_or(0) as u64, Ordering::Relaxed);
            link.parse(&mut ())
        });
        if taken.is_err() {
            deeds.cut_off.fetch_add(1, Ordering::Relaxed);
            return;
        }
    }
}

/// Counts deliveries and knows the last one's tag.
#[derive(Default)]
struct Drained {
    count: u64,
    tag: u64,
}

impl Receiver for Drained {
    fn begin(&mut self, head: Head) {
        self.tag = head.tag;
    }

    fn complete(&mut self) {
        self.count += 1;
    }
}

/// Takes and acknowledges as fast as it can.
fn drain(mut link: Link, deeds: &Deeds) {
    let (mut drained, mut acknowledged, mut acks) = (Drained::default(), 0, Vec::new());
    let mut step = || -> Result<(), Error> {
        // Deliveries may have come with the answer to the subscription.
        link.parse(&mut drained)?;
        if drained.count - acknowledged >= DRAIN_ACKS {
            acks.clear();
            link.encode_ack(&mut acks, drained.tag, true);
            link.write(&acks)?;
            acknowledged = drained.count;
        }
        deeds.drained.store(drained.count, Ordering::Relaxed);
        let count = link.fill_within()?.unwrap_or(0);
        deeds.drained_bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(())
    };
    while !deeds.is_over() {
        if step().is_err() {
            deeds.cut_off.fetch_add(1, Ordering::Relaxed);
            return;
        }
    }
}
