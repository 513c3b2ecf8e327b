//! The broker's cost of idle connections, each with a subscription, and of one message to all of them.

use super::fanout_latency::{self, FanoutReceivers};
use super::message::Message;
use super::plan::DRAIN;
use super::topology;
use super::verdict::Verdict;
use crate::client::{Error, Link, Protocol, Route, Source, Target};
use crate::measure::process::Usage;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

/// The most idle connections of one run.
pub const CONNECTIONS_MAX: usize = 100_000;

/// Threads that reconnect all clients in a storm.
const STORM_THREADS: usize = 16;

/// The result.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct IdleCost {
    /// Number of connections.
    pub connections: u64,
    /// Connections per second while they were opened, each with its subscription.
    pub opened_per_s: f64,
    /// The broker's resident memory before.
    pub rss_before_kib: u64,
    /// The broker's resident memory with all of them open.
    pub rss_after_kib: u64,
    /// The difference per connection.
    pub kib_per_connection: f64,
    /// Cores of broker CPU while the connections are idle.
    pub idle_cpu_share: f64,
    /// Per wave, milliseconds until the last connection had the message.
    pub waves_ms: Vec<f64>,
    /// Milliseconds until all were connected and subscribed again after a simultaneous disconnect, if
    /// requested.
    pub storm_ms: Option<f64>,
    /// The verdict on the messages to all: at least one, and one more after a storm, which shows that
    /// every client is back.
    #[serde(default)]
    pub verdict: Verdict,
}

/// What to measure.
#[derive(Debug, Clone, Copy)]
pub struct IdlePlan {
    /// Number of connections.
    pub connections: usize,
    /// Pause before each measurement.
    pub settle: Duration,
    /// Number of timed waves. With 0, one untimed wave still checks every subscription.
    pub waves: usize,
    /// Whether all disconnect and reconnect.
    pub storm: bool,
    /// FanoutMessage are lost once nothing arrives for this long.
    pub drain: Duration,
}

impl IdlePlan {
    /// This many connections, without pauses, timed waves or a storm.
    pub fn of(connections: usize) -> IdlePlan {
        IdlePlan { connections, settle: Duration::ZERO, waves: 0, storm: false, drain: DRAIN }
    }
}

/// Opens connections to the broker of process `pid`, measures memory and CPU, sends the waves, and
/// closes them. With AMQP each connection has its own queue; with NATS all subscribe to one subject.
pub fn measure(target: &Target, pid: u32, plan: &IdlePlan) -> Result<IdleCost, Error> {
    raise_descriptor_limit(plan.connections as u64 + 100);
    // The first connection makes the broker allocate what is not per connection.
    let mut first = Link::open(target)?;
    let subscriptions = Subscriptions::new(target.protocol(), plan.connections);
    thread::sleep(plan.settle);
    let before = Usage::of_tree(pid).unwrap_or_default();
    let start = Instant::now();
    let mut sockets = Vec::with_capacity(plan.connections);
    for queue in &subscriptions.sources {
        let mut link = Link::open(target)?;
        link.declare_queue(queue, false, &[])?;
        link.subscribe(&Source::plain(queue), 0)?;
        sockets.push(link.into_stream());
    }
    let opened_per_s = plan.connections as f64 / start.elapsed().as_secs_f64();
    thread::sleep(plan.settle);
    let after = Usage::of_tree(pid).unwrap_or_default();
    let still = Instant::now();
    thread::sleep(plan.settle);
    let idle = Usage::of_tree(pid).unwrap_or_default();
    let idle_ns = idle.cpu_ns.saturating_sub(after.cpu_ns) as f64;
    let idle_cpu_share = idle_ns / still.elapsed().as_nanos() as f64;
    let mut message = subscriptions.prepare(&mut first, plan)?;
    let (mut waves_ms, mut verdict) = message.waves(&mut first, &sockets, plan.waves.max(1))?;
    waves_ms.truncate(plan.waves);
    drop(sockets);
    let mut storm_ms = None;
    if plan.storm {
        let (sockets, ms) = subscriptions.storm(target)?;
        storm_ms = Some(ms);
        // A broker may still be busy with the closed connections.
        thread::sleep(plan.settle);
        verdict.add(&message.waves(&mut first, &sockets, 1)?.1);
    }
    first.delete_exchange(&subscriptions.exchange)?;
    for queue in &subscriptions.sources {
        first.delete_queue(queue)?;
    }
    first.close()?;
    let grown_kib = after.rss_kib.saturating_sub(before.rss_kib);
    Ok(IdleCost {
        connections: plan.connections as u64,
        opened_per_s,
        rss_before_kib: before.rss_kib,
        rss_after_kib: after.rss_kib,
        kib_per_connection: grown_kib as f64 / plan.connections.max(1) as f64,
        idle_cpu_share,
        waves_ms,
        storm_ms,
        verdict,
    })
}

/// What the connections subscribe to, and the route to all of them.
struct Subscriptions {
    exchange: String,
    key: String,
    /// The source of each connection: its own queue, or the common subject.
    sources: Vec<String>,
}

impl Subscriptions {
    fn new(protocol: Protocol, count: usize) -> Subscriptions {
        let names = topology::Names::new(protocol);
        let all = names.fan_out("idle");
        if protocol.has_exchanges() {
            let sources = (0..count).map(|index| names.queue(&format!("idle-{index}"))).collect();
            return Subscriptions { exchange: all, key: String::new(), sources };
        }
        Subscriptions { exchange: String::new(), sources: vec![all.clone(); count], key: all }
    }

    /// Connects and subscribes all of them from several threads. Returns the sockets and the
    /// milliseconds until the last was ready.
    fn storm(&self, target: &Target) -> Result<(Vec<TcpStream>, f64), Error> {
        let start = Instant::now();
        let share = self.sources.len().div_ceil(STORM_THREADS).max(1);
        let links: Result<Vec<Vec<TcpStream>>, Error> = thread::scope(|scope| {
            let connect = |source: &String| -> Result<TcpStream, Error> {
                let mut link = Link::open(target)?;
                link.declare_queue(source, false, &[])?;
                link.subscribe(&Source::plain(source), 0)?;
                Ok(link.into_stream())
            };
            let threads: Vec<_> = self
                .sources
                .chunks(share)
                .map(|share| scope.spawn(move || share.iter().map(connect).collect()))
                .collect();
            let join = |it: thread::ScopedJoinHandle<'_, _>| it.join().expect("it does not panic");
            threads.into_iter().map(join).collect()
        });
        let storm_ms = start.elapsed().as_secs_f64() * 1e3;
        links.map(|links| (links.into_iter().flatten().collect(), storm_ms))
    }

    /// Declares the route and encodes the message to all.
    fn prepare(&self, link: &mut Link, plan: &IdlePlan) -> Result<FanoutMessage, Error> {
        link.declare_fan_out(&self.exchange, &self.sources)?;
        let route = Route { exchange: &self.exchange, key: &self.key, persistent: false };
        let message = Message::new(link, &route, &fanout_latency::body(), 0);
        Ok(FanoutMessage { message, drain: plan.drain })
    }
}

/// The message to all.
struct FanoutMessage {
    message: Message,
    drain: Duration,
}

impl FanoutMessage {
    /// Sends `count` waves. Returns the times of complete ones in milliseconds, and the verdict.
    fn waves(
        &mut self,
        link: &mut Link,
        sockets: &[TcpStream],
        count: usize,
    ) -> Result<(Vec<f64>, Verdict), Error> {
        let mut receivers = FanoutReceivers::new(sockets)?;
        let publish = |wave| Ok(link.write(self.message.stamped(wave))?);
        let waves_ms = receivers.waves(count, publish, self.drain)?;
        Ok((waves_ms, receivers.verdict()?))
    }
}

/// Raises the descriptor limit as far as the system allows; opening a socket fails if that is not
/// enough.
pub(crate) fn raise_descriptor_limit(needed: u64) {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return;
    }
    let current = limit.maximum.map_or(needed, |maximum| maximum.min(needed));
    let raised = Rlimit { current: Some(current), maximum: limit.maximum };
    // A refusal shows as the error of the connection that gets no descriptor.
    let _ = setrlimit(Resource::Nofile, raised);
}
