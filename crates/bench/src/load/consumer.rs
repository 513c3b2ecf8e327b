//! A consumer: receives deliveries, records their stamps, acknowledges. Independent of producers.

use super::control::Control;
use super::plan::Plan;
use super::topology::Topology;
use super::verdict::{Judge, Tally};
use crate::client::{Error, Head, Link, PATIENCE, Receiver, Source};
use crate::measure::latency::Latencies;
use crate::measure::process;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

/// Read timeout, after which a consumer checks whether the run is over.
const IDLE: Duration = Duration::from_millis(50);
/// Limit on the delivery groups whose travel time one consumer keeps.
const GROUPS_MAX: usize = 1 << 20;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Consumed {
    /// The messages it received.
    pub tally: Tally,
    /// From sending to the read that returned the message.
    pub latencies: Option<Latencies>,
    /// When it read its first and its last delivery, in nanoseconds of the run; 0 if none.
    pub first_ns: u64,
    pub last_ns: u64,
    /// Mean travel times of successive delivery groups, in microseconds.
    pub travels: Vec<f32>,
    /// CPU time of its thread, and as cores.
    pub cpu_ns: u64,
    pub cpu_share: f64,
    /// Why the broker disconnected it, where a protocol allows that for slow subscribers.
    pub cut_off: Option<String>,
}

pub(super) struct Consumer<'a> {
    control: &'a Control,
    index: usize,
    link: Link,
    sink: Sink,
    acks: Vec<u8>,
    begun_ns: u64,
    first_ns: u64,
    last_ns: u64,
    commits: bool,
}

pub(super) type Consuming<'scope> = Vec<ScopedJoinHandle<'scope, Result<Consumed, Error>>>;

/// Connects and starts these consumers of a plan.
pub(super) fn start_consumers<'scope>(
    scope: &'scope Scope<'scope, '_>,
    plan: &'scope Plan,
    topology: &Topology,
    control: &'scope Control,
    which: Range<usize>,
) -> Result<Consuming<'scope>, Error> {
    let mut consuming = Vec::new();
    for index in which {
        let source = topology.source(plan, index);
        let consumer = Consumer::connect(plan, control, index, &source)?;
        consuming.push(scope.spawn(move || consumer.run()));
    }
    Ok(consuming)
}

impl<'a> Consumer<'a> {
    pub(super) fn connect(
        plan: &'a Plan,
        control: &'a Control,
        index: usize,
        source: &Source<'_>,
    ) -> Result<Consumer<'a>, Error> {
        let mut link = plan.connect()?;
        if plan.commit_acks {
            link.select_transactions()?;
        }
        link.subscribe(source, plan.prefetch)?;
        link.stream().set_read_timeout(Some(IDLE))?;
        Ok(Consumer {
            control,
            index,
            link,
            sink: Sink {
                size_bytes: plan.size_bytes as u64,
                ack_every: plan.ack_every,
                tag: 0,
                judge: Judge::new(plan.producers, plan.size_bytes, plan.checksum),
                unacked: 0,
                settled: Vec::new(),
                latencies: plan.latency.then(Latencies::default),
                travels: Travels { size: plan.travel_group, ..Travels::default() },
                now_ns: 0,
                ended: false,
            },
            acks: Vec::new(),
            begun_ns: control.now_ns(),
            first_ns: 0,
            last_ns: 0,
            commits: plan.commit_acks,
        })
    }

    /// Receives deliveries until told to stop, then ends the subscription and receives what is still in
    /// flight. A disconnected subscriber of at-most-once messages returns what it has.
    pub(super) fn run(mut self) -> Result<Consumed, Error> {
        let at_most_once = self.link.protocol().drops();
        let cut_off = match self.take_all() {
            Ok(()) => None,
            Err(error) if at_most_once => Some(error.to_string()),
            Err(error) => return Err(error),
        };
        if cut_off.is_none() {
            // Only the answer is waited for now.
            self.link.stream().set_read_timeout(Some(PATIENCE))?;
            self.link.close()?;
        }
        let cpu_ns = process::thread_cpu_ns();
        let lived_ns = self.control.now_ns() - self.begun_ns;
        Ok(Consumed {
            tally: self.sink.judge.tally,
            latencies: self.sink.latencies,
            first_ns: self.first_ns,
            last_ns: self.last_ns,
            travels: self.sink.travels.means_us,
            cpu_ns,
            cpu_share: cpu_ns as f64 / lived_ns.max(1) as f64,
            cut_off,
        })
    }

    fn take_all(&mut self) -> Result<(), Error> {
        // Deliveries may have arrived together with the answer to the subscription.
        self.parse()?;
        while !self.control.stop_consuming.load(Ordering::Relaxed) {
            self.take_deliveries()?;
        }
        self.acknowledge_rest()?;
        self.link.send_end()?;
        while !self.sink.ended {
            self.take_deliveries()?;
        }
        Ok(())
    }

    fn take_deliveries(&mut self) -> Result<(), Error> {
        match self.link.fill_within()? {
            Some(_) => self.parse(),
            None => self.acknowledge_rest(),
        }
    }

    fn parse(&mut self) -> Result<(), Error> {
        let timed = self.sink.latencies.is_some() && self.control.measuring.load(Ordering::Relaxed);
        self.sink.now_ns = if timed { self.control.now_ns() } else { 0 };
        let before = self.sink.judge.messages;
        self.link.parse(&mut self.sink)?;
        let messages = self.sink.judge.messages;
        if messages > before {
            self.last_ns = self.control.now_ns();
            if before == 0 {
                self.first_ns = self.last_ns;
            }
        }
        let counter = &self.control.consumers[self.index];
        counter.messages.store(messages, Ordering::Relaxed);
        counter.confirmed_or_bytes.store(messages * self.sink.size_bytes, Ordering::Relaxed);
        self.control.progressed();
        self.acknowledge()
    }

    /// Acknowledges every complete group of `ack_every` deliveries that was parsed.
    fn acknowledge(&mut self) -> Result<(), Error> {
        if self.sink.settled.is_empty() {
            return Ok(());
        }
        for tag in self.sink.settled.drain(..) {
            self.link.encode_ack(&mut self.acks, tag, self.sink.ack_every > 1);
            if self.commits {
                self.link.encode_commit(&mut self.acks);
            }
        }
        self.link.write(&self.acks)?;
        self.acks.clear();
        Ok(())
    }

    /// Acknowledges an incomplete group.
    fn acknowledge_rest(&mut self) -> Result<(), Error> {
        if std::mem::take(&mut self.sink.unacked) > 0 {
            self.sink.settled.push(self.sink.tag);
        }
        self.acknowledge()
    }
}

/// Receives the deliveries of one connection.
struct Sink {
    size_bytes: u64,
    ack_every: u32,
    tag: u64,
    judge: Judge,
    unacked: u32,
    settled: Vec<u64>,
    latencies: Option<Latencies>,
    travels: Travels,
    now_ns: u64,
    ended: bool,
}

impl Receiver for Sink {
    #[inline]
    fn begin(&mut self, head: Head) {
        self.tag = head.tag;
        self.judge.begin(head);
    }

    #[inline]
    fn body(&mut self, octets: &[u8]) {
        self.judge.body(octets);
    }

    #[inline]
    fn complete(&mut self) {
        let stamp = self.judge.finish();
        if self.now_ns > 0
            && let Some(stamp) = stamp
            && let Some(latencies) = &mut self.latencies
        {
            let travel_ns = self.now_ns.saturating_sub(stamp.sent_ns);
            latencies.record(travel_ns);
            self.travels.record(travel_ns);
        }
        if self.ack_every > 0 {
            self.unacked += 1;
            if self.unacked == self.ack_every {
                self.settled.push(self.tag);
                self.unacked = 0;
            }
        }
    }

    fn ended(&mut self) {
        self.ended = true;
    }
}

/// Mean travel times of successive delivery groups.
#[derive(Default)]
struct Travels {
    size: u32,
    count: u32,
    sum_ns: u64,
    means_us: Vec<f32>,
}

impl Travels {
    #[inline]
    fn record(&mut self, ns: u64) {
        if self.size == 0 || self.means_us.len() == GROUPS_MAX {
            return;
        }
        self.sum_ns += ns;
        self.count += 1;
        if self.count == self.size {
            self.means_us.push((self.sum_ns as f64 / f64::from(self.size) / 1e3) as f32);
            (self.count, self.sum_ns) = (0, 0);
        }
    }
}
