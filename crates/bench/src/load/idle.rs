//! The broker's cost of idle connections, each with a subscription, and of one message to all of them.

use super::control::join;
use super::fanout_latency::{self, FanoutReceivers, stamped_body};
use super::message::Message;
use super::plan::DRAIN;
use super::topology::Names;
use super::verdict::Verdict;
use crate::client::{Error, Link, Protocol, Route, Source, Target};
use crate::measure::bare_sockets;
use crate::measure::process::Usage;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// The most idle connections of one run.
pub const CONNECTIONS_MAX: usize = 100_000;
/// Threads that reconnect all clients in a storm.
const STORM_THREADS: usize = 16;
/// Descriptors left for other files.
const OTHER_DESCRIPTORS: u64 = 200;

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
    /// If requested, milliseconds from a simultaneous disconnect until all are subscribed again.
    pub storm_ms: Option<f64>,
    /// The verdict on at least one message to all; one after a storm shows that every client is back.
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
    /// Messages are lost once nothing arrives for this long.
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
    let sockets = connect(target, &subscriptions.sources)?;
    let opened_per_s = plan.connections as f64 / start.elapsed().as_secs_f64();
    thread::sleep(plan.settle);
    let after = Usage::of_tree(pid).unwrap_or_default();
    let still = Instant::now();
    thread::sleep(plan.settle);
    let idle = Usage::of_tree(pid).unwrap_or_default();
    let idle_ns = idle.cpu_ns.saturating_sub(after.cpu_ns) as f64;
    let idle_cpu_share = idle_ns / still.elapsed().as_nanos() as f64;
    first.declare_fan_out(&subscriptions.exchange, &subscriptions.sources)?;
    let drain = plan.drain;
    let mut waves =
        |sockets: &[TcpStream], count| subscriptions.waves(&mut first, sockets, count, drain);
    let (mut waves_ms, mut verdict) = waves(&sockets, plan.waves.max(1))?;
    waves_ms.truncate(plan.waves);
    drop(sockets);
    let mut storm_ms = None;
    if plan.storm {
        let start = Instant::now();
        let sockets = subscriptions.storm(target)?;
        storm_ms = Some(start.elapsed().as_secs_f64() * 1e3);
        // A broker may still be busy with the closed connections.
        thread::sleep(plan.settle);
        verdict.add(&waves(&sockets, 1)?.1);
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
        let names = Names::new(protocol);
        let all = names.fan_out("idle");
        if protocol.has_exchanges() {
            let sources = (0..count).map(|index| names.queue(&format!("idle-{index}"))).collect();
            return Subscriptions { exchange: all, key: String::new(), sources };
        }
        Subscriptions { exchange: String::new(), sources: vec![all.clone(); count], key: all }
    }

    /// Connects all of them from several threads.
    fn storm(&self, target: &Target) -> Result<Vec<TcpStream>, Error> {
        let share = self.sources.len().div_ceil(STORM_THREADS).max(1);
        let shares = thread::scope(|scope| {
            let start = |share| scope.spawn(move || connect(target, share));
            join(self.sources.chunks(share).map(start).collect())
        })?;
        Ok(shares.into_iter().flatten().collect())
    }

    /// Sends `count` waves. Returns the times of complete ones in milliseconds, and the verdict.
    fn waves(
        &self,
        link: &mut Link,
        sockets: &[TcpStream],
        count: usize,
        drain: Duration,
    ) -> Result<(Vec<f64>, Verdict), Error> {
        let route = Route { exchange: &self.exchange, key: &self.key, persistent: false };
        let mut message = Message::new(link, &route, &fanout_latency::body(), 0)?;
        let mut receivers = FanoutReceivers::new(sockets)?;
        let publish = |_| link.write(message.next());
        let waves_ms = receivers.waves(count, publish, drain)?;
        Ok((waves_ms, receivers.verdict()?))
    }
}

/// Opens a subscribed connection for each source.
fn connect(target: &Target, sources: &[String]) -> Result<Vec<TcpStream>, Error> {
    let connect = |source: &String| {
        let mut link = Link::open(target)?;
        link.declare_queue(source, false, &[])?;
        link.subscribe(&Source::plain(source), 0)?;
        Ok(link.into_stream())
    };
    sources.iter().map(connect).collect()
}

/// Raises the descriptor limit as far as the system allows; beyond that, opening a socket fails.
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

/// The machine's limit for one message to very many connections: on bare sockets with a writer per
/// processor, milliseconds of each wave until the last of `connections` sockets was read. If the
/// descriptor limit allows fewer sockets, the times are extrapolated in proportion.
pub(crate) fn measure_bare(connections: usize, waves: usize) -> Result<Vec<f64>, Error> {
    raise_descriptor_limit(2 * connections as u64 + OTHER_DESCRIPTORS);
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let pairs = (allowed.saturating_sub(OTHER_DESCRIPTORS) / 2).clamp(1, connections as u64);
    let pairs: io::Result<Vec<_>> = (0..pairs).map(|_| bare_sockets::pair()).collect();
    let (near, far): (Vec<_>, Vec<_>) = pairs?.into_iter().unzip();
    let part = far.len() as f64 / connections as f64;
    Ok(write_waves(&near, &far, waves)?.into_iter().map(|ms| ms / part).collect())
}

/// Writes each wave from all threads and reads it here. Returns the milliseconds of each.
fn write_waves(near: &[TcpStream], far: &[TcpStream], waves: usize) -> Result<Vec<f64>, Error> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut receivers = FanoutReceivers::new(near)?;
    thread::scope(|scope| {
        let writers: Vec<mpsc::Sender<u64>> = far
            .chunks(far.len().div_ceil(threads))
            .map(|share| {
                let (begin, begun) = mpsc::channel();
                scope.spawn(move || begun.iter().try_for_each(|wave| write_wave(share, wave)));
                begin
            })
            .collect();
        let publish = |wave| {
            for writer in &writers {
                // A failed writer shows as a wave that does not complete.
                let _ = writer.send(wave);
            }
            Ok(())
        };
        receivers.waves(waves, publish, DRAIN)
    })
}

fn write_wave(sockets: &[TcpStream], wave: u64) -> io::Result<()> {
    let body = stamped_body(wave);
    sockets.iter().try_for_each(|mut socket| socket.write_all(&body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wave_reaches_all_of_them() {
        let waves = measure_bare(50, 3).expect("loopback has ports");
        assert!(waves.len() == 3 && waves.iter().all(|&ms| ms > 0.0), "{waves:?}");
    }
}
