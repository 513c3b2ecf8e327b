//! How long a new subscriber waits for its first message while others are published.

use super::control::joined;
use super::message::{self, Message};
use super::topology::Names;
use super::verdict::{Checked, Judge, Tally, Verdict};
use crate::client::{Error, Link, PATIENCE, Route, Source, Target};
use crate::interrupt;
use crate::measure::latency::{Latencies, Summary};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Limit on the wait for a first message.
const FIRST_MAX: Duration = Duration::from_secs(10);
/// Messages that a subscriber receives after its first, for the verdict.
const FOLLOWING: u64 = 10;
/// Read timeout for those.
const FOLLOWING_MAX: Duration = Duration::from_secs(1);

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
pub(super) fn receive(
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
    let mut message = Message::new(&link, &route, &message::body(size_bytes), 0);
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
