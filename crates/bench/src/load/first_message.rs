//! The time to a first message: of a new subscriber while others are published, and of a broker that starts.

use super::control::joined;
use super::message::{self, Message};
use super::topology::Names;
use super::verdict::{Checked, Judge, Tally, Verdict};
use crate::client::{Error, Link, PATIENCE, Route, Source, Target};
use crate::interrupt;
use crate::measure::latency::{Latencies, Summary};
use crate::peer::CommandBroker;
use serde::{Deserialize, Serialize};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Limit on the wait for a first message.
const FIRST_MAX: Duration = Duration::from_secs(10);
/// Messages that a subscriber receives after its first, for the verdict.
const FOLLOWING: u64 = 10;
/// Read timeout for those.
const FOLLOWING_MAX: Duration = Duration::from_secs(1);
/// Interval between attempts to connect to a broker that starts.
const RETRY: Duration = Duration::from_micros(200);
/// The queue of its first message; not durable, so it disappears with the broker.
const START_QUEUE: &str = "angarium-bench-start";
/// Bytes of that message.
const START_BYTES: usize = 32;

/// The result.
#[derive(Debug, Clone, PartialEq)]
pub struct FirstMessage {
    /// From a subscriber's connect to its first message.
    pub times: Option<Summary>,
    /// What became of the messages from each subscriber's first to its last.
    pub verdict: Verdict,
}

struct Subscribed {
    /// From its connect to its first message.
    waited: Duration,
    tally: Tally,
}

/// One subscriber after the other connects, subscribes and waits, while `rate` messages a second are
/// published. With queues, each declares and binds its own within the time.
pub fn measure(
    target: &Target,
    size_bytes: usize,
    rate: u64,
    attempts: usize,
) -> Result<FirstMessage, Error> {
    let mut owner = Link::open(target)?;
    let names = Names::new(target.protocol());
    let exchange = names.fan_out("first");
    owner.declare_fan_out(&exchange, &[])?;
    let stop = AtomicBool::new(false);
    let found = thread::scope(|scope| {
        let publishing = scope.spawn(|| publish(target, &exchange, size_bytes, rate, &stop));
        let subscribed = (0..attempts).take_while(|_| !interrupt::requested()).map(|attempt| {
            let queue = names.queue(&format!("first-{attempt}"));
            subscribe(target, &exchange, &queue, size_bytes)
        });
        let subscribed: Result<Vec<Subscribed>, Error> = subscribed.collect();
        stop.store(true, Ordering::Relaxed);
        let published = joined(publishing);
        published.and_then(|published| Ok(judge(&subscribed?, published, size_bytes)))
    });
    owner.delete_exchange(&exchange)?;
    owner.close()?;
    found
}

fn judge(subscribed: &[Subscribed], published: u64, size_bytes: usize) -> FirstMessage {
    let mut verdict = Verdict::new(Checked::of(size_bytes, true));
    let mut times = Latencies::default();
    for Subscribed { waited, tally } in subscribed {
        times.record(waited.as_nanos() as u64);
        verdict.add_stretch(tally, published);
    }
    FirstMessage { times: times.summary(), verdict }
}

/// Receives until `count` messages are judged; `false` if a read exceeds the timeout before.
fn receive(
    link: &mut Link,
    judge: &mut Judge,
    count: u64,
    patience: Duration,
) -> Result<bool, Error> {
    link.stream().set_read_timeout(Some(patience))?;
    link.parse(judge)?;
    while judge.messages < count {
        if link.fill_within()?.is_none() {
            return Ok(false);
        }
        link.parse(judge)?;
    }
    Ok(true)
}

fn subscribe(
    target: &Target,
    exchange: &str,
    queue: &str,
    size_bytes: usize,
) -> Result<Subscribed, Error> {
    let mut judge = Judge::new(1, size_bytes, true);
    let start = Instant::now();
    let mut link = Link::open(target)?;
    let name = if target.protocol().has_exchanges() { queue } else { exchange };
    link.declare_queue(queue, false, &[])?;
    link.declare_fan_out(exchange, &[queue.to_owned()])?;
    link.subscribe(&Source::plain(name), 0)?;
    if !receive(&mut link, &mut judge, 1, FIRST_MAX)? {
        let what = format!("nothing to a new subscriber in {} s", FIRST_MAX.as_secs());
        return Err(Error::Invalid(what));
    }
    let waited = start.elapsed();
    receive(&mut link, &mut judge, 1 + FOLLOWING, FOLLOWING_MAX)?;
    link.stream().set_read_timeout(Some(PATIENCE))?;
    link.send_end()?;
    link.expect_end(&mut judge)?;
    link.close()?;
    let mut owner = Link::open(target)?;
    owner.delete_queue(queue)?;
    owner.close()?;
    Ok(Subscribed { waited, tally: judge.tally })
}

/// Publishes until told to stop. Returns the number of messages.
fn publish(
    target: &Target,
    exchange: &str,
    size_bytes: usize,
    rate: u64,
    stop: &AtomicBool,
) -> Result<u64, Error> {
    let mut link = Link::open(target)?;
    let key = if target.protocol().has_exchanges() { "" } else { exchange };
    let route = Route { exchange, key, persistent: false };
    let mut message = Message::new(&mut link, &route, &message::body(size_bytes), 0)?;
    let (start, interval) = (Instant::now(), Duration::from_secs_f64(1.0 / rate.max(1) as f64));
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(interval.mul_f64(message.sent as f64).saturating_sub(start.elapsed()));
        link.write(message.next())?;
    }
    // The answer means that the broker has taken everything; its pings are answered meanwhile.
    link.send_end()?;
    link.expect_end(&mut ())?;
    link.close()?;
    Ok(message.sent)
}

/// How long a broker takes to start.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct StartTime {
    /// Until a connection was accepted.
    pub listening_ms: f64,
    /// Until an undamaged message was delivered through a new queue.
    pub first_message_ms: f64,
}

/// Starts `command`, which listens at `target` in the foreground, measures, and stops it by SIGTERM.
pub fn measure_start(
    command: &[String],
    target: &Target,
    patience: Duration,
) -> Result<StartTime, Error> {
    let start = Instant::now();
    let (broker, mut link) =
        CommandBroker::start_open(command, target, patience, RETRY, Stdio::null())?;
    let listening_ms = start.elapsed().as_secs_f64() * 1e3;
    pass_one(&mut link)?;
    let first_message_ms = start.elapsed().as_secs_f64() * 1e3;
    link.close()?;
    drop(broker);
    Ok(StartTime { listening_ms, first_message_ms })
}

/// Sends one message through a new queue of a running broker; an error unless it arrives undamaged.
pub fn deliver_first(target: &Target) -> Result<(), Error> {
    let mut link = Link::open(target)?;
    pass_one(&mut link)?;
    link.close()
}

fn pass_one(link: &mut Link) -> Result<(), Error> {
    link.declare_queue(START_QUEUE, false, &[])?;
    link.subscribe(&Source::plain(START_QUEUE), 0)?;
    let route = Route { exchange: "", key: START_QUEUE, persistent: false };
    let mut message = Message::new(link, &route, &message::body(START_BYTES), 0)?;
    link.write(message.next())?;
    let mut judge = Judge::new(1, START_BYTES, true);
    receive(link, &mut judge, 1, PATIENCE)?;
    let mut verdict = Verdict::default();
    verdict.add_queue(&judge.tally, &[1]);
    if !verdict.is_clean() {
        return Err(Error::Invalid(format!("a first message: {}", verdict.describe())));
    }
    Ok(())
}
