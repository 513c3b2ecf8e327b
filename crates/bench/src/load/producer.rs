//! A producer: sends pre-encoded batches and receives confirms. Independent of consumers.

use super::control::Control;
use super::message::Batch;
use super::pace::Pace;
use super::plan::Plan;
use super::topology::Topology;
use super::window::Window;
use crate::client::{Confirm, Error, Link, Receiver, Route};
use crate::measure::latency::Latencies;
use crate::measure::process;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Produced {
    /// Messages published.
    pub published: u64,
    /// From sending to the confirm.
    pub confirm_latencies: Option<Latencies>,
    /// When the first and the last message were written, in nanoseconds of the run.
    pub first_ns: u64,
    pub last_ns: u64,
    /// When the broker had taken all of them, as far as the protocol tells.
    pub settled_ns: u64,
    /// The tool's own lateness per batch: the time after it was due and could be written.
    pub lags: Latencies,
    /// Messages due at the end.
    pub due: u64,
    /// CPU time of its thread, and as cores.
    pub cpu_ns: u64,
    pub cpu_share: f64,
}

/// A connected producer that has not started.
pub(super) struct Producer<'a> {
    plan: &'a Plan,
    control: &'a Control,
    index: usize,
    link: Link,
    pub(super) batch: Batch,
    window: Option<Window>,
    pace: Option<Pace>,
    published: u64,
    latencies: Option<Latencies>,
    begun_ns: u64,
    /// Since when the producer could write what is due.
    free_ns: u64,
    lags: Latencies,
    committing: bool,
}

pub(super) fn connect_producers<'a>(
    plan: &'a Plan,
    topology: &Topology,
    control: &'a Control,
    which: Range<usize>,
) -> Result<Vec<Producer<'a>>, Error> {
    which
        .map(|index| Producer::connect(plan, control, index, &topology.route(plan, index)))
        .collect()
}

/// Starts the threads of producers, once per run.
pub(super) fn start_producers<'scope>(
    scope: &'scope Scope<'scope, '_>,
    control: &Control,
    producers: Vec<Producer<'scope>>,
) -> Vec<ScopedJoinHandle<'scope, Result<Produced, Error>>> {
    let start = |producer: Producer<'scope>| scope.spawn(move || producer.run());
    let threads: Vec<_> = producers.into_iter().map(start).collect();
    let handles = threads.iter().map(|it| it.thread().clone()).collect();
    control.parked.set(handles).expect("the producers start once per run");
    threads
}

impl<'a> Producer<'a> {
    /// Connects and prepares the batch.
    pub(super) fn connect(
        plan: &'a Plan,
        control: &'a Control,
        index: usize,
        route: &Route<'_>,
    ) -> Result<Producer<'a>, Error> {
        let mut link = plan.connect()?;
        if plan.window > 0 {
            link.select_confirms()?;
        } else if plan.commit_publishes > 0 {
            link.select_transactions()?;
            link.begin_transaction()?;
        } else {
            link.disable_replies()?;
        }
        link.prepare(route)?;
        let batch = Batch::new(plan, index, |body, out| link.encode(route, body, out));
        Ok(Producer {
            plan,
            control,
            index,
            link,
            batch,
            window: (plan.window > 0).then(|| Window::new(plan.window)),
            pace: None,
            published: 0,
            latencies: (plan.latency && plan.window > 0).then(Latencies::default),
            begun_ns: 0,
            free_ns: 0,
            lags: Latencies::default(),
            committing: false,
        })
    }

    /// Publishes until the plan or the control stops it, then receives the last confirms.
    pub(super) fn run(mut self) -> Result<Produced, Error> {
        self.begun_ns = self.control.now_ns();
        let start_ns = self.control.begin(self.begun_ns);
        // A thread that starts later counts as the tool's own lag.
        self.free_ns = start_ns;
        self.pace = Pace::of(self.plan.rate, self.index, self.plan.producers, start_ns);
        let share = self.plan.share_of(self.index);
        while self.published < share && !self.control.stop_publishing.load(Ordering::Relaxed) {
            let room = self.window.as_ref().map_or(u64::MAX, Window::room).min(self.link.room());
            if room == 0 {
                self.take_input()?;
                continue;
            }
            let transaction = match u64::from(self.plan.commit_publishes) {
                0 => u64::MAX,
                size => size - self.published % size,
            };
            let wanted = self.batch.capacity.min(share - self.published).min(room).min(transaction);
            let due = self.due(wanted)?;
            let count = if due == 0 { 0 } else { self.control.allowance(due) };
            if count > 0 {
                self.publish(count)?;
            }
            if count == transaction {
                self.commit()?;
            }
        }
        let last_ns = self.control.now_ns();
        let due = self.pace.map_or(0, |pace| pace.due_by(last_ns));
        if self.plan.commit_publishes > 0 {
            self.commit()?;
        }
        while self.window.as_ref().is_some_and(|window| !window.is_empty()) {
            self.take_input()?;
        }
        // The answer means that the broker has taken everything sent before.
        self.link.send_end()?;
        self.link.expect_end(&mut ())?;
        let settled_ns = self.control.now_ns();
        self.link.close()?;
        let cpu_ns = process::thread_cpu_ns();
        let lived_ns = self.control.now_ns() - self.begun_ns;
        Ok(Produced {
            published: self.published,
            confirm_latencies: self.latencies,
            first_ns: self.begun_ns,
            last_ns,
            settled_ns,
            lags: self.lags,
            due: due.min(share),
            cpu_ns,
            cpu_share: cpu_ns as f64 / lived_ns.max(1) as f64,
        })
    }

    #[inline]
    fn publish(&mut self, count: u64) -> Result<(), Error> {
        let (first, published) = (self.published, self.published + count);
        // One clock reading per batch, none without latencies. With a pace, a message's latency starts
        // when it was due, so that a stalled broker shows in the messages delayed behind the stall.
        let now_ns = if self.plan.latency { self.control.now_ns() } else { 0 };
        if let Some(pace) = &self.pace {
            let possible_ns = pace.due_ns(first).max(self.free_ns);
            self.lags.record(self.control.now_ns().saturating_sub(possible_ns));
        }
        let bytes = match self.pace.filter(|_| self.plan.latency) {
            Some(pace) => self.batch.stamp(count, first, |index| pace.due_ns(first + index)),
            None => self.batch.stamp(count, first, |_| now_ns),
        };
        if let Err(error) = self.link.write(bytes) {
            return Err(self.reason(error));
        }
        if let Some(window) = &mut self.window {
            window.sent(count, now_ns);
        }
        if self.pace.is_some() {
            self.free_ns = self.control.now_ns();
        }
        self.published = published;
        self.control.producers[self.index].messages.store(published, Ordering::Relaxed);
        Ok(())
    }

    /// How many of `wanted` messages are due. If none is, sleeps or receives confirms until one is.
    fn due(&mut self, wanted: u64) -> Result<u64, Error> {
        let Some(pace) = &self.pace else { return Ok(wanted) };
        let now_ns = self.control.now_ns();
        let due = pace.due_by(now_ns).saturating_sub(self.published).min(wanted);
        if due > 0 {
            return Ok(due);
        }
        let wait_ns = pace.due_ns(self.published).saturating_sub(now_ns).min(100_000_000);
        let has_input = self.link.protocol().publishers_read()
            || self.window.as_ref().is_some_and(|window| !window.is_empty());
        if !has_input {
            thread::sleep(Duration::from_nanos(wait_ns));
        } else if readable_within(&self.link, wait_ns)? {
            self.take_input()?;
        }
        Ok(0)
    }

    fn take_input(&mut self) -> Result<(), Error> {
        self.link.fill_some()?;
        let measured = self.control.measuring.load(Ordering::Relaxed);
        let mut latencies = self.latencies.as_mut().filter(|_| measured);
        let now_ns = if latencies.is_some() { self.control.now_ns() } else { 0 };
        let record = |sent_ns: u64| {
            if let Some(latencies) = &mut latencies {
                latencies.record(now_ns.saturating_sub(sent_ns));
            }
        };
        let mut confirms = Confirms {
            window: self.window.as_mut(),
            record,
            confirmed: 0,
            refused: 0,
            committed: false,
        };
        self.link.parse(&mut confirms)?;
        let counter = &self.control.producers[self.index];
        counter.confirmed_or_bytes.fetch_add(confirms.confirmed, Ordering::Relaxed);
        counter.refused.fetch_add(confirms.refused, Ordering::Relaxed);
        if confirms.committed {
            self.committing = false;
        }
        if self.pace.is_some() {
            self.free_ns = self.control.now_ns();
        }
        Ok(())
    }

    /// Commits the transaction and waits for the answer, as a synchronous client does.
    fn commit(&mut self) -> Result<(), Error> {
        let mut out = Vec::new();
        self.link.encode_commit(&mut out);
        self.link.write(&out)?;
        self.committing = true;
        while self.committing {
            self.take_input()?;
        }
        let transaction = self.link.transaction();
        self.batch.join_transaction(transaction, self.plan.commit_publishes.into())?;
        let counter = &self.control.producers[self.index];
        counter.confirmed_or_bytes.store(self.published, Ordering::Relaxed);
        Ok(())
    }

    /// The broker's reason for closing the connection, if it gave one.
    fn reason(&mut self, otherwise: Error) -> Error {
        match self.link.expect_end(&mut ()) {
            Err(closed @ Error::Closed(_)) => closed,
            _ => otherwise,
        }
    }
}

struct Confirms<'a, F> {
    window: Option<&'a mut Window>,
    record: F,
    confirmed: u64,
    refused: u64,
    committed: bool,
}

impl<F: FnMut(u64)> Receiver for Confirms<'_, F> {
    #[inline]
    fn confirm(&mut self, confirm: Confirm) -> Result<(), Error> {
        let Some(window) = &mut self.window else { return Ok(()) };
        let settled = if confirm.refused { &mut self.refused } else { &mut self.confirmed };
        *settled += window.confirm(confirm, &mut self.record)?;
        Ok(())
    }

    fn committed(&mut self) {
        self.committed = true;
    }
}

/// Waits for input, more precisely than a socket's read timeout, which counts in ticks.
fn readable_within(link: &Link, wait_ns: u64) -> Result<bool, Error> {
    let timeout = Timespec::try_from(Duration::from_nanos(wait_ns)).expect("a short wait");
    let mut sockets = [PollFd::new(link.stream(), PollFlags::IN)];
    match poll(&mut sockets, Some(&timeout)) {
        Ok(ready) => Ok(ready > 0),
        // The caller checks the schedule again.
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(std::io::Error::from(error).into()),
    }
}
