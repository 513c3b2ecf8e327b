//! Clients that misbehave: stalled, slow, flooding, never acknowledging, and draining a backlog.

use crate::client::amqp091::Argument;
use crate::client::{Error, Head, Link, Protocol, Receiver, Route, Source, Target, is_timeout};
use crate::load::control::Control;
use crate::load::plan::{End, Plan};
use crate::load::producer::Producer;
use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::process::setpriority_process;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, Scope};
use std::time::Duration;

/// How often a slow client reads.
const SLOW_INTERVAL: Duration = Duration::from_millis(10);
/// Socket timeout, after which a client checks whether the run is over; pause before it reconnects.
pub(super) const PATIENCE: Duration = Duration::from_millis(50);
/// Receive buffer of clients that do not read: small, so that the broker notices.
pub(super) const RECEIVE_BUFFER_BYTES: usize = 32 * 1024;
pub(super) const FLOOD_BYTES: usize = 64 * 1024;
/// Maximum length of the flood's queue, which would otherwise fill the broker's memory.
const FLOOD_QUEUE_MAX: i64 = 20_000;
/// The nice value of their threads.
const LOWEST_PRIORITY: i32 = 19;
/// Prefetch of the draining client, and deliveries per acknowledgement.
const DRAIN_PREFETCH: u16 = 2_000;
const DRAIN_ACKS: u64 = 100;

/// How many clients of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Misbehaving {
    /// They subscribe and never read.
    pub stalled: usize,
    /// They read a twentieth of what is sent to them.
    pub slow: usize,
    /// They publish as fast as the broker lets them.
    pub flooding: usize,
    /// They consume and never acknowledge; queues only.
    pub unacking: usize,
    /// One client drains a durable queue with this many body bytes; queues only, 0 for none.
    pub backlog_bytes: u64,
}

/// What the clients did so far, and their stop signal.
#[derive(Debug, Default)]
pub(super) struct Activity {
    pub(super) stop: AtomicBool,
    pub(super) flooded_bytes: AtomicU64,
    pub(super) drained: AtomicU64,
    /// Bytes received by the draining client.
    pub(super) drained_bytes: AtomicU64,
    /// Bytes received and never acknowledged.
    pub(super) unacked_bytes: AtomicU64,
    /// Connections that the broker closed.
    pub(super) cut_off: AtomicU64,
}

impl Activity {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Repeats a step until the run is over or the broker closes the connection.
    fn repeat(&self, mut step: impl FnMut() -> Result<(), Error>) {
        while !self.is_over() {
            if step().is_err() {
                self.cut_off.fetch_add(1, Ordering::Relaxed);
                return;
            }
        }
    }
}

/// What they act on: with AMQP their own queues, with NATS the subjects of the healthy clients.
pub(super) struct Fixture {
    target: Target,
    /// Subjects or queues of slow clients, in turn.
    slow: Vec<String>,
    stalled: String,
    flood: String,
    backlog: String,
    size_bytes: usize,
    /// Bytes per second that a slow client reads.
    pub(super) slow_bytes_per_s: u64,
}

impl Fixture {
    /// Beside a run of `plan` over `names`, which share its rate evenly.
    pub(super) fn new(plan: &Plan, names: &[String]) -> Fixture {
        let above = names[0].rsplit_once(['.', '-', '/']).map_or("", |(above, _)| above);
        let per_name = plan.rate * plan.size_bytes as u64 / names.len() as u64;
        let protocol = plan.target.protocol();
        let dash = protocol.separator();
        let flood = format!("{above}{dash}flood");
        let (stalled, slow) = match protocol {
            Protocol::Nats | Protocol::JetStream | Protocol::Resp => {
                (format!("{above}.*"), names.to_vec())
            }
            Protocol::Mqtt => (format!("{above}/+"), names.to_vec()),
            Protocol::Amqp091 | Protocol::Amqp10 | Protocol::Stomp => {
                (flood.clone(), vec![flood.clone()])
            }
        };
        Fixture {
            target: plan.target.clone(),
            slow,
            stalled,
            flood,
            backlog: format!("{above}{dash}backlog"),
            size_bytes: plan.size_bytes,
            slow_bytes_per_s: (per_name / 20).max(1_000),
        }
    }

    /// Declares their queues and fills the backlog.
    pub(super) fn declare(
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
        let base = Plan::new(self.target.clone());
        let (size_bytes, checksum, end) = (self.size_bytes, plan.checksum, End::Count(count));
        let fill = Plan {
            consumers: 0,
            persistent: true,
            window: 2_000,
            size_bytes,
            checksum,
            end,
            ..base
        };
        let control = Control::new(1, 0, 0, 1);
        let route = Route { exchange: "", key: &self.backlog, persistent: true };
        Producer::connect(&fill, &control, 0, &route)?.run().map(drop)
    }

    pub(super) fn delete(&self, link: &mut Link) -> Result<(), Error> {
        link.delete_queue(&self.flood)?;
        link.delete_queue(&self.backlog)
    }

    /// Connects all of them and runs them until `activity.stop`.
    pub(super) fn release<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        misbehaving: &Misbehaving,
        activity: &'scope Activity,
    ) -> Result<(), Error> {
        for _ in 0..misbehaving.stalled {
            let link = self.subscribe(&self.stalled, true)?;
            spawn(scope, move || never_read(link.into_stream(), activity));
        }
        for index in 0..misbehaving.slow {
            let name = &self.slow[index % self.slow.len()];
            let link = self.subscribe(name, true)?;
            spawn(scope, move || {
                // It reconnects, as clients do, and stays slow.
                let reconnect = || self.subscribe(name, true).ok().map(Link::into_stream);
                read_slowly(link.into_stream(), self.slow_bytes_per_s, activity, reconnect);
            });
        }
        for _ in 0..misbehaving.unacking {
            let link = self.subscribe(&self.flood, false)?;
            spawn(scope, move || never_acknowledge(link, activity));
        }
        if misbehaving.backlog_bytes > 0 {
            let mut link = Link::open(&self.target)?;
            let source = Source { auto_ack: false, ..Source::plain(&self.backlog) };
            link.subscribe(&source, DRAIN_PREFETCH)?;
            link.stream().set_read_timeout(Some(PATIENCE))?;
            spawn(scope, move || drain(link, activity));
        }
        for _ in 0..misbehaving.flooding {
            let link = self.open_to_flood()?;
            spawn(scope, move || self.flood(link, activity));
        }
        Ok(())
    }

    fn subscribe(&self, name: &str, auto_ack: bool) -> Result<Link, Error> {
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

    fn flood(&self, link: Link, activity: &Activity) {
        let mut link = Some(link);
        while !activity.is_over() {
            let Some(open) = &mut link else {
                thread::sleep(PATIENCE);
                link = self.open_to_flood().ok();
                continue;
            };
            if self.flood_over(open, activity).is_err() {
                activity.cut_off.fetch_add(1, Ordering::Relaxed);
                link = None;
            }
        }
    }

    /// Publishes as fast as the broker lets it until the run is over or the connection fails.
    fn flood_over(&self, link: &mut Link, activity: &Activity) -> Result<(), Error> {
        let mut message = Vec::new();
        let route = Route { exchange: "", key: &self.flood, persistent: false };
        link.prepare(&route)?;
        let places = link.encode(&route, &vec![b'f'; self.size_bytes], &mut message);
        let count = (FLOOD_BYTES / message.len()).max(1);
        let mut batch = message.repeat(count);
        if link.protocol() != Protocol::Amqp10 {
            return Ok(write_flood(link.stream(), &batch, activity)?);
        }
        let mut sent = 0;
        link.stream().set_read_timeout(Some(PATIENCE))?;
        while !activity.is_over() {
            let room = link.room().min(count as u64) as usize;
            if room == 0 {
                link.fill_within()?;
                link.parse(&mut ())?;
                continue;
            }
            let granted = &mut batch[..room * message.len()];
            for message in granted.chunks_exact_mut(message.len()) {
                sent += 1;
                places.write_tag(message, sent);
            }
            link.write(granted)?;
            activity.flooded_bytes.fetch_add(granted.len() as u64, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Reads nothing until the run is over.
pub(super) fn never_read(mut stream: TcpStream, activity: &Activity) {
    while !activity.is_over() {
        thread::sleep(PATIENCE);
    }
    // Data sent before a disconnect comes first, then the end of the stream, if any.
    let mut buffer = vec![0; FLOOD_BYTES];
    loop {
        match stream.read(&mut buffer) {
            Ok(count) if count > 0 => {}
            Err(error) if is_timeout(&error) => return,
            Ok(_) | Err(_) => break,
        }
    }
    activity.cut_off.fetch_add(1, Ordering::Relaxed);
}

/// Reads this many bytes a second. Once disconnected, continues with what `reconnect` opens, if anything.
pub(super) fn read_slowly(
    mut stream: TcpStream,
    bytes_per_s: u64,
    activity: &Activity,
    mut reconnect: impl FnMut() -> Option<TcpStream>,
) {
    let per_read = bytes_per_s * SLOW_INTERVAL.as_millis() as u64 / 1_000;
    let mut buffer = vec![0; per_read.max(1) as usize];
    while !activity.is_over() {
        thread::sleep(SLOW_INTERVAL);
        match stream.read(&mut buffer) {
            Ok(count) if count > 0 => continue,
            Err(error) if is_timeout(&error) => continue,
            Ok(_) | Err(_) => {}
        }
        activity.cut_off.fetch_add(1, Ordering::Relaxed);
        thread::sleep(PATIENCE);
        match reconnect() {
            Some(next) => stream = next,
            None => return,
        }
    }
}

/// Writes the batch again and again until the run is over or the connection fails.
pub(super) fn write_flood(
    mut stream: &TcpStream,
    batch: &[u8],
    activity: &Activity,
) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut at = 0;
    while !activity.is_over() {
        match stream.write(&batch[at..]) {
            Ok(count) => {
                at = (at + count) % batch.len();
                activity.flooded_bytes.fetch_add(count as u64, Ordering::Relaxed);
            }
            Err(error) if is_timeout(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Starts a thread that yields to all others: a client on its own machine would take no CPU from them.
pub(super) fn spawn<'scope>(
    scope: &'scope Scope<'scope, '_>,
    misbehaving: impl FnOnce() + Send + 'scope,
) {
    scope.spawn(move || {
        // If the system refuses, the run is only less fair to the broker.
        let _ = setpriority_process(None, LOWEST_PRIORITY);
        misbehaving();
    });
}

fn never_acknowledge(mut link: Link, activity: &Activity) {
    activity.repeat(|| {
        let count = link.fill_within()?.unwrap_or(0);
        activity.unacked_bytes.fetch_add(count as u64, Ordering::Relaxed);
        link.parse(&mut ())
    });
}

/// Counts deliveries and keeps the last tag.
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

/// Receives and acknowledges as fast as possible.
fn drain(mut link: Link, activity: &Activity) {
    let (mut drained, mut acknowledged, mut acks) = (Drained::default(), 0, Vec::new());
    activity.repeat(|| {
        // Deliveries may have arrived together with the answer to the subscription.
        link.parse(&mut drained)?;
        if drained.count - acknowledged >= DRAIN_ACKS {
            acks.clear();
            link.encode_ack(&mut acks, drained.tag, true);
            link.write(&acks)?;
            acknowledged = drained.count;
        }
        activity.drained.store(drained.count, Ordering::Relaxed);
        let count = link.fill_within()?.unwrap_or(0);
        activity.drained_bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(())
    });
}
