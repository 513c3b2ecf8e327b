//! Request and reply between two connections, one message at a time: the time through the broker and
//! back. A closed loop, which says nothing about a loaded broker.

use super::control::joined;
use super::message::{self, Message};
use super::topology::Names;
use super::verdict::{Checked, Judge, Tally, Verdict};
use crate::client::{Error, Head, Link, PATIENCE, Receiver, Route, Source, Target};
use crate::interrupt;
use crate::measure::latency::{Latencies, Summary};
use crate::measure::process::{Cost, Usage};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The largest message: it must fit into the socket's buffers on both sides.
pub const SIZE_BYTES_MAX: usize = 64 * 1024;
/// Read timeout of the replying end, after which it checks whether the run is over.
const IDLE: Duration = Duration::from_millis(10);
/// Producer numbers of the requesting and the replying end.
const REQUESTER: usize = 0;
const RESPONDER: usize = 1;

/// The result.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoundTrips {
    /// The broker's address.
    pub broker_uri: String,
    /// Bytes of a request and of a reply.
    pub size_bytes: u64,
    /// From writing the request to having read the reply; `None` if unexpected messages hinder matching.
    pub latency: Option<Summary>,
    /// What the broker's processes used per round trip of two messages.
    pub broker: Option<Cost>,
    /// The verdict on requests and replies.
    #[serde(default)]
    pub verdict: Verdict,
}

/// Calls `whole` as soon as a delivery's last byte arrives, before the delivery is judged: the checksum
/// is not part of the time.
struct EarlyNotice<'a, F> {
    judge: &'a mut Judge,
    left: &'a mut u64,
    whole: F,
}

impl<F: FnMut()> Receiver for EarlyNotice<'_, F> {
    #[inline]
    fn begin(&mut self, head: Head) {
        *self.left = head.size;
        self.judge.begin(head);
        if head.size == 0 {
            (self.whole)();
        }
    }

    #[inline]
    fn body(&mut self, octets: &[u8]) {
        if !octets.is_empty() && *self.left == octets.len() as u64 {
            (self.whole)();
        }
        *self.left = self.left.saturating_sub(octets.len() as u64);
        self.judge.body(octets);
    }

    #[inline]
    fn complete(&mut self) {
        self.judge.complete();
    }
}

/// One end: a subscription to the other's messages, and a message for the other.
struct End {
    link: Link,
    judge: Judge,
    /// Bytes of the current delivery still to come.
    left: u64,
    message: Message,
}

impl End {
    fn open(
        target: &Target,
        who: usize,
        from: &str,
        to: &str,
        size_bytes: usize,
    ) -> Result<End, Error> {
        let mut link = Link::open(target)?;
        link.subscribe(&Source::plain(from), 0)?;
        let route = Route { exchange: "", key: to, persistent: false };
        let message = Message::new(&mut link, &route, &message::body(size_bytes), who as u32)?;
        Ok(End { link, judge: Judge::new(2, size_bytes, true), left: 0, message })
    }

    /// Reads once, and calls `whole` for each delivery. Returns whether anything arrived in time.
    #[inline]
    fn receive(&mut self, mut whole: impl FnMut(&mut Message)) -> Result<bool, Error> {
        if self.link.fill_within()?.is_none() {
            return Ok(false);
        }
        let End { link, judge, left, message } = self;
        link.parse(&mut EarlyNotice { judge, left, whole: || whole(message) })?;
        Ok(true)
    }

    /// Sends a message for each delivery, until told that no more come and none does.
    fn answer(mut self, over: &AtomicBool) -> Result<End, Error> {
        let mut stream = self.link.stream().try_clone()?;
        self.link.stream().set_read_timeout(Some(IDLE))?;
        loop {
            let mut written = Ok(());
            let arrived = self.receive(|message| {
                if written.is_ok() {
                    written = stream.write_all(message.next());
                }
            })?;
            written?;
            if !arrived && over.load(Ordering::Relaxed) {
                return Ok(self);
            }
        }
    }

    /// Sends a request and waits for its reply; `None` if it does not arrive in time.
    #[inline]
    fn request(&mut self) -> Result<Option<Duration>, Error> {
        let mut answered = None;
        let bytes = self.message.next();
        let before = Instant::now();
        self.link.write(bytes)?;
        while answered.is_none() {
            let arrived =
                self.receive(|_| answered = answered.or_else(|| Some(before.elapsed())))?;
            if !arrived {
                return Ok(None);
            }
        }
        Ok(answered)
    }

    /// Ends the subscription and receives what is in flight.
    fn end(mut self) -> Result<Ended, Error> {
        self.link.stream().set_read_timeout(Some(PATIENCE))?;
        self.link.send_end()?;
        self.link.expect_end(&mut self.judge)?;
        self.link.close()?;
        Ok(Ended { received: self.judge.tally, sent: self.message.sent })
    }
}

/// Measures for `span`, after a warm-up of a fifth of it. A reply that does not arrive within `drain` is
/// lost and ends the loop.
pub fn measure(
    target: &Target,
    broker_pid: Option<u32>,
    size_bytes: usize,
    span: Duration,
    drain: Duration,
) -> Result<RoundTrips, Error> {
    let size_bytes = size_bytes.min(SIZE_BYTES_MAX);
    let names = Names::new(target.protocol());
    let (request, reply) = (names.queue("request"), names.queue("reply"));
    let mut owner = Link::open(target)?;
    owner.declare_queue(&request, false, &[])?;
    owner.declare_queue(&reply, false, &[])?;
    let mut requester = End::open(target, REQUESTER, &reply, &request, size_bytes)?;
    let responder = End::open(target, RESPONDER, &request, &reply, size_bytes)?;
    // A socket timeout must not be zero.
    requester.link.stream().set_read_timeout(Some(drain.max(IDLE)))?;
    let over = AtomicBool::new(false);
    let (outcome, responder) = thread::scope(|scope| {
        let answering = scope.spawn(|| responder.answer(&over));
        let outcome = ask(&mut requester, broker_pid, span);
        over.store(true, Ordering::Relaxed);
        let responder = joined(answering);
        (outcome, responder)
    });
    let (latencies, broker) = outcome?;
    let responder = responder?;
    // Replies to requests that were delivered twice.
    while requester.judge.messages < responder.message.sent && requester.receive(|_| ())? {}
    // Two queues, each with one producer.
    let (requester, responder) = (requester.end()?, responder.end()?);
    let mut verdict = Verdict::new(Checked::of(size_bytes, true));
    verdict.add_queue(&responder.received, &[requester.sent, 0]);
    verdict.add_queue(&requester.received, &[0, responder.sent]);
    owner.delete_queue(&request)?;
    owner.delete_queue(&reply)?;
    let matched = verdict.duplicated + verdict.reordered + verdict.invented == 0;
    Ok(RoundTrips {
        broker_uri: target.to_string(),
        size_bytes: size_bytes as u64,
        latency: latencies.summary().filter(|_| matched),
        broker,
        verdict,
    })
}

struct Ended {
    received: Tally,
    sent: u64,
}

fn ask(
    requester: &mut End,
    broker_pid: Option<u32>,
    span: Duration,
) -> Result<(Latencies, Option<Cost>), Error> {
    let usage = || broker_pid.and_then(Usage::of_tree);
    let (warm, mut lost) = (Instant::now(), false);
    while warm.elapsed() < span / 5 && !lost {
        lost = requester.request()?.is_none();
    }
    let (start, before) = (Instant::now(), usage());
    let (mut latencies, mut count) = (Latencies::default(), 0);
    while start.elapsed() < span && !lost && !interrupt::requested() {
        let Some(time) = requester.request()? else { break };
        latencies.record(time.as_nanos() as u64);
        count += 1;
    }
    let span_s = start.elapsed().as_secs_f64();
    Ok((latencies, Cost::between(before.as_ref(), usage().as_ref(), span_s, count)))
}
