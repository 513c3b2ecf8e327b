//! Request and reply between two connections, one message at a time: what a message's way through
//! the broker and back takes. A closed loop: it says nothing about a loaded broker.

use super::topology::Names;
use crate::client::{Error, Link, Receiver, Route, Source, Target};
use crate::measure::latency::{Latencies, Summary};
use crate::measure::process::{Cost, Usage};
use serde::{Deserialize, Serialize};
use std::net::Shutdown;
use std::thread;
use std::time::{Duration, Instant};

/// The largest message: it must fit into the socket's buffers on both sides.
pub const SIZE_BYTES_MAX: usize = 64 * 1024;

/// What it came to.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoundTrips {
    /// The broker's address.
    pub broker_uri: String,
    /// Octets of a request, and of a reply.
    pub size_bytes: u64,
    /// From writing the request to having read the reply.
    pub latency: Option<Summary>,
    /// What the broker's processes took for each round trip, which is two messages.
    pub broker: Option<Cost>,
}

/// Counts whole deliveries.
#[derive(Default)]
struct Arrived(u64);

impl Receiver for Arrived {
    fn complete(&mut self) {
        self.0 += 1;
    }
}

/// One end: a subscription to what the other sends, and a message for the other, encoded once.
struct End {
    link: Link,
    message: Vec<u8>,
    arrived: Arrived,
}

impl End {
    fn open(target: &Target, hears: &str, says: &str, size_bytes: usize) -> Result<End, Error> {
        let mut link = Link::open(target)?;
        link.subscribe(&Source::plain(hears), 0)?;
        let mut message = Vec::new();
        let route = Route { exchange: "", key: says, persistent: false };
        link.encode(&route, &vec![b'x'; size_bytes], &mut message);
        Ok(End { link, message, arrived: Arrived::default() })
    }

    /// Waits for at least one delivery. Returns how many came; 0 is the end of the stream.
    #[inline]
    fn wait(&mut self) -> Result<u64, Error> {
        let before = self.arrived.0;
        while self.arrived.0 == before {
            if self.link.fill()? == 0 {
                return Ok(0);
            }
            self.link.parse(&mut self.arrived)?;
        }
        Ok(self.arrived.0 - before)
    }

    /// Sends a message back for each that comes, until the end of the stream.
    fn answer(&mut self) -> Result<(), Error> {
        loop {
            let count = self.wait()?;
            if count == 0 {
                return Ok(());
            }
            for _ in 0..count {
                self.link.write(&self.message)?;
            }
        }
    }
}

/// Measures for `span`, after as much warm-up as a fifth of it.
pub fn measure(
    target: &Target,
    broker_pid: Option<u32>,
    size_bytes: usize,
    span: Duration,
) -> Result<RoundTrips, Error> {
    let size_bytes = size_bytes.min(SIZE_BYTES_MAX);
    let names = Names::new(target.protocol());
    let (request, reply) = (names.queue("ask"), names.queue("say"));
    let mut owner = Link::open(target)?;
    owner.declare_queue(&request, false, &[])?;
    owner.declare_queue(&reply, false, &[])?;
    let mut near = End::open(target, &reply, &request, size_bytes)?;
    let mut far = End::open(target, &request, &reply, size_bytes)?;
    let stopper = far.link.stream().try_clone()?;
    let outcome = thread::scope(|scope| {
        let answering = scope.spawn(move || far.answer());
        let outcome = ask(&mut near, broker_pid, span);
        // The far end waits in a read, which this ends.
        let stopped = stopper.shutdown(Shutdown::Both);
        // What it says after that tells nothing; what it said before has ended the loop above.
        let _ = answering.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        stopped?;
        outcome
    });
    owner.delete_queue(&request)?;
    owner.delete_queue(&reply)?;
    let (latencies, broker) = outcome?;
    Ok(RoundTrips {
        broker_uri: target.to_string(),
        size_bytes: size_bytes as u64,
        latency: latencies.summary(),
        broker,
    })
}

fn ask(
    near: &mut End,
    broker_pid: Option<u32>,
    span: Duration,
) -> Result<(Latencies, Option<Cost>), Error> {
    let usage = || broker_pid.and_then(Usage::of_tree);
    let round_trip = |near: &mut End| -> Result<u64, Error> {
        let before = Instant::now();
        near.link.write(&near.message)?;
        match near.wait()? {
            0 => Err(Error::hung_up()),
            1 => Ok(before.elapsed().as_nanos() as u64),
            count => Err(Error::Nonsense(format!("{count} replies to one request"))),
        }
    };
    let warm = Instant::now();
    while warm.elapsed() < span / 5 {
        round_trip(near)?;
    }
    let (start, before) = (Instant::now(), usage());
    let (mut latencies, mut count) = (Latencies::new(), 0);
    while start.elapsed() < span {
        latencies.record(round_trip(near)?);
        count += 1;
    }
    let span_s = start.elapsed().as_secs_f64();
    let cost =
        before.zip(usage()).map(|(before, after)| Cost::between(&before, &after, span_s, count));
    Ok((latencies, cost))
}
