//! Request and reply between two connections, one message at a time: what a message's way through
//! the broker and back takes. A closed loop: it says nothing about a loaded broker.

use super::judge::Judge;
use super::message::{self, Message};
use super::plan::Plan;
use super::tally::{Checked, Verdict};
use super::threads::joined;
use super::topology::Names;
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
/// How long the far end waits before it looks whether the run is over.
const IDLE: Duration = Duration::from_millis(10);
/// Who asks and who replies, as stamps name them.
const NEAR: usize = 0;
const FAR: usize = 1;

/// What it came to.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoundTrips {
    /// The broker's address.
    pub broker_uri: String,
    /// Octets of a request, and of a reply.
    pub size_bytes: u64,
    /// From writing the request to having read the reply. None where a broker sent what nobody had asked
    /// for: whose reply came is not known then.
    pub latency: Option<Summary>,
    /// What the broker's processes took for each round trip, which is two messages.
    pub broker: Option<Cost>,
    /// What became of requests and replies.
    #[serde(default)]
    pub verdict: Verdict,
}

/// What an end hears.
struct Ear {
    judge: Judge,
    /// Octets of the delivery at hand that have not come.
    left: u64,
}

impl Receiver for Ear {
    fn begin(&mut self, head: Head) {
        self.left = head.size;
        self.judge.begin(head.redelivered);
    }

    fn body(&mut self, octets: &[u8]) {
        self.left = self.left.saturating_sub(octets.len() as u64);
        self.judge.body(octets);
    }

    fn complete(&mut self) {
        self.judge.complete();
    }
}

/// Tells of a delivery as soon as its last octet is there, and judges it only then: nobody waits for the
/// checksum.
struct Prompt<'a, F> {
    ear: &'a mut Ear,
    whole: F,
}

impl<F: FnMut()> Receiver for Prompt<'_, F> {
    #[inline]
    fn begin(&mut self, head: Head) {
        self.ear.begin(head);
        if head.size == 0 {
            (self.whole)();
        }
    }

    #[inline]
    fn body(&mut self, octets: &[u8]) {
        if !octets.is_empty() && self.ear.left == octets.len() as u64 {
            (self.whole)();
        }
        self.ear.body(octets);
    }

    #[inline]
    fn complete(&mut self) {
        self.ear.complete();
    }
}

/// What an end says.
struct Voice {
    message: Message,
    said: u64,
}

impl Voice {
    #[inline]
    fn next(&mut self) -> &[u8] {
        let bytes = self.message.stamped(self.said);
        self.said += 1;
        bytes
    }
}

/// One end: a subscription to what the other sends, and a message for the other.
struct End {
    link: Link,
    ear: Ear,
    voice: Voice,
}

impl End {
    fn open(
        target: &Target,
        who: usize,
        hears: &str,
        says: &str,
        size_bytes: usize,
    ) -> Result<End, Error> {
        let mut link = Link::open(target)?;
        link.subscribe(&Source::plain(hears), 0)?;
        let route = Route { exchange: "", key: says, persistent: false };
        let message = Message::new(&link, &route, &message::body(size_bytes), who as u32);
        let judge = Judge::new(2, size_bytes, Plan::has_room_for_checksums(size_bytes));
        Ok(End { link, ear: Ear { judge, left: 0 }, voice: Voice { message, said: 0 } })
    }

    /// Reads once, and calls `whole` for each delivery. Returns whether something came in time.
    #[inline]
    fn hear(&mut self, whole: impl FnMut(&mut Voice)) -> Result<bool, Error> {
        let mut whole = whole;
        if self.link.fill_within()?.is_none() {
            return Ok(false);
        }
        let (ear, voice) = (&mut self.ear, &mut self.voice);
        self.link.parse(&mut Prompt { ear, whole: || whole(voice) })?;
        Ok(true)
    }

    /// Sends a message back for each that comes, until it is told that no more do and none does.
    fn answer(mut self, over: &AtomicBool) -> Result<End, Error> {
        let mut stream = self.link.stream().try_clone()?;
        self.link.stream().set_read_timeout(Some(IDLE))?;
        loop {
            let mut written = Ok(());
            let came = self.hear(|voice| {
                if written.is_ok() {
                    written = stream.write_all(voice.next());
                }
            })?;
            written?;
            if !came && over.load(Ordering::Relaxed) {
                return Ok(self);
            }
        }
    }

    /// One request, and its reply; `None` if nothing comes in time.
    #[inline]
    fn ask(&mut self) -> Result<Option<Duration>, Error> {
        let mut answered = None;
        let bytes = self.voice.next();
        let before = Instant::now();
        self.link.write(bytes)?;
        while answered.is_none() {
            let came = self.hear(|_| answered = answered.or_else(|| Some(before.elapsed())))?;
            if !came {
                return Ok(None);
            }
        }
        Ok(answered)
    }

    /// Ends the subscription and takes what is on its way. Returns what was heard and how much was said.
    fn end(mut self) -> Result<(Judge, u64), Error> {
        self.link.stream().set_read_timeout(Some(PATIENCE))?;
        self.link.send_end()?;
        self.link.expect_end(&mut self.ear)?;
        self.link.close()?;
        Ok((self.ear.judge, self.voice.said))
    }
}

/// Measures for `span`, after as much warm-up as a fifth of it. What does not come for `drain` is lost,
/// and ends the loop: it has nothing to answer any more.
pub fn measure(
    target: &Target,
    broker_pid: Option<u32>,
    size_bytes: usize,
    span: Duration,
    drain: Duration,
) -> Result<RoundTrips, Error> {
    let size_bytes = size_bytes.min(SIZE_BYTES_MAX);
    let names = Names::new(target.protocol());
    let (request, reply) = (names.queue("ask"), names.queue("say"));
    let mut owner = Link::open(target)?;
    owner.declare_queue(&request, false, &[])?;
    owner.declare_queue(&reply, false, &[])?;
    let mut near = End::open(target, NEAR, &reply, &request, size_bytes)?;
    let far = End::open(target, FAR, &request, &reply, size_bytes)?;
    // A socket takes no patience of zero.
    near.link.stream().set_read_timeout(Some(drain.max(IDLE)))?;
    let over = AtomicBool::new(false);
    let (outcome, far) = thread::scope(|scope| {
        let answering = scope.spawn(|| far.answer(&over));
        let outcome = ask(&mut near, broker_pid, span);
        over.store(true, Ordering::Relaxed);
        let far = joined(answering);
        (outcome, far)
    });
    let (latencies, broker) = outcome?;
    let far = far?;
    // Replies that nobody waited for: to requests that came twice.
    while near.ear.judge.messages() < far.voice.said && near.hear(|_| ())? {}
    let verdict = judge(near.end()?, far.end()?, size_bytes);
    owner.delete_queue(&request)?;
    owner.delete_queue(&reply)?;
    let whose = verdict.duplicated + verdict.reordered + verdict.invented == 0;
    Ok(RoundTrips {
        broker_uri: target.to_string(),
        size_bytes: size_bytes as u64,
        latency: latencies.summary().filter(|_| whose),
        broker,
        verdict,
    })
}

/// Two queues, each with one producer.
fn judge(near: (Judge, u64), far: (Judge, u64), size_bytes: usize) -> Verdict {
    let checksum = Plan::has_room_for_checksums(size_bytes);
    let mut verdict = Verdict::new(Checked::of(size_bytes, checksum));
    let ((replies, asked), (requests, replied)) = (near, far);
    verdict.add_queue(requests.tally(), &[asked, 0]);
    verdict.add_queue(replies.tally(), &[0, replied]);
    verdict
}

fn ask(
    near: &mut End,
    broker_pid: Option<u32>,
    span: Duration,
) -> Result<(Latencies, Option<Cost>), Error> {
    let usage = || broker_pid.and_then(Usage::of_tree);
    let (warm, mut lost) = (Instant::now(), false);
    while warm.elapsed() < span / 5 && !lost {
        lost = near.ask()?.is_none();
    }
    let (start, before) = (Instant::now(), usage());
    let (mut latencies, mut count) = (Latencies::new(), 0);
    while start.elapsed() < span && !lost && !interrupt::requested() {
        let Some(time) = near.ask()? else { break };
        latencies.record(time.as_nanos() as u64);
        count += 1;
    }
    let span_s = start.elapsed().as_secs_f64();
    let cost =
        before.zip(usage()).map(|(before, after)| Cost::between(&before, &after, span_s, count));
    Ok((latencies, cost))
}
