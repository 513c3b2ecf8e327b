//! What the threads of a run share: counters, stop signals, clock; and waiting for their end.

use crate::client::Error;
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, ScopedJoinHandle, Thread};
use std::time::{Duration, Instant};

/// Limit on the time until a sleeper notices the end of a run.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Progress of one worker. On its own cache lines, as only its worker writes it.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Counter {
    /// Messages published or delivered.
    pub messages: AtomicU64,
    /// Messages confirmed (producers), or body bytes delivered (consumers).
    pub confirmed_or_bytes: AtomicU64,
    /// Messages refused by `basic.nack` (producers).
    pub refused: AtomicU64,
}

/// Messages so far, over all producers and consumers.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counts {
    pub published: u64,
    pub confirmed: u64,
    pub refused: u64,
    pub delivered: u64,
    /// Body bytes.
    pub delivered_bytes: u64,
}

/// Shared by all workers of a run.
pub(super) struct Control {
    /// One per producer.
    pub producers: Vec<Counter>,
    /// One per consumer.
    pub consumers: Vec<Counter>,
    /// Tells producers to stop.
    pub stop_publishing: AtomicBool,
    /// Tells consumers to finish.
    pub stop_consuming: AtomicBool,
    /// Whether latencies are recorded.
    pub measuring: AtomicBool,
    waiting: AtomicBool,
    ahead: u64,
    copies: u64,
    /// The producers' threads, for consumers that wake them.
    pub parked: OnceLock<Vec<Thread>>,
    started_ns: OnceLock<u64>,
    pub epoch: Instant,
    /// Added to the time since `epoch`, for another machine's clock.
    pub offset_ns: i64,
}

impl Control {
    /// For this many workers; producers stay at most `ahead` messages before the consumers.
    pub(super) fn new(producers: usize, consumers: usize, ahead: u64, copies: u64) -> Control {
        let counters = |count| (0..count).map(|_| Counter::default()).collect();
        Control {
            producers: counters(producers),
            consumers: counters(consumers),
            stop_publishing: AtomicBool::new(false),
            stop_consuming: AtomicBool::new(false),
            measuring: AtomicBool::new(false),
            waiting: AtomicBool::new(false),
            ahead,
            copies,
            parked: OnceLock::new(),
            started_ns: OnceLock::new(),
            epoch: Instant::now(),
            offset_ns: 0,
        }
    }

    /// Nanoseconds since the run began.
    #[inline]
    pub(super) fn now_ns(&self) -> u64 {
        (self.epoch.elapsed().as_nanos() as u64).saturating_add_signed(self.offset_ns)
    }

    /// Called when a producer begins to publish. Returns when the first one did.
    pub(super) fn begin(&self, now_ns: u64) -> u64 {
        *self.started_ns.get_or_init(|| now_ns)
    }

    pub(super) fn published(&self) -> u64 {
        sum(&self.producers, |counter| &counter.messages)
    }

    pub(super) fn delivered(&self) -> u64 {
        sum(&self.consumers, |counter| &counter.messages)
    }

    pub(super) fn counts(&self) -> Counts {
        Counts {
            published: self.published(),
            confirmed: sum(&self.producers, |counter| &counter.confirmed_or_bytes),
            refused: sum(&self.producers, |counter| &counter.refused),
            delivered: self.delivered(),
            delivered_bytes: sum(&self.consumers, |counter| &counter.confirmed_or_bytes),
        }
    }

    /// How many of `wanted` messages may be published now; waits until it is worth a write or the run stops.
    #[inline]
    pub(super) fn allowance(&self, wanted: u64) -> u64 {
        if self.ahead == 0 {
            return wanted;
        }
        let worth = wanted.min(self.room_to_wake());
        loop {
            let allowed = self.room().min(wanted);
            if allowed >= worth || self.stop_publishing.load(Ordering::Relaxed) {
                return allowed;
            }
            if self.waiting.swap(true, Ordering::SeqCst) {
                // The timeout covers the race of two producers for the one flag.
                thread::park_timeout(Duration::from_millis(1));
            }
        }
    }

    /// Messages that may be published before some are delivered.
    fn room(&self) -> u64 {
        let undelivered = self.published().saturating_sub(self.delivered() / self.copies);
        self.ahead.saturating_sub(undelivered)
    }

    /// Waiting producers are woken at this much room: a wake-up for every few messages would cost more.
    fn room_to_wake(&self) -> u64 {
        self.ahead.div_ceil(2)
    }

    /// Wakes producers that wait for deliveries.
    #[inline]
    pub(super) fn progressed(&self) {
        if self.ahead == 0
            || !self.waiting.load(Ordering::SeqCst)
            || self.room() < self.room_to_wake()
        {
            return;
        }
        self.waiting.store(false, Ordering::SeqCst);
        for thread in self.parked.get().into_iter().flatten() {
            thread.unpark();
        }
    }
}

fn sum(counters: &[Counter], field: impl Fn(&Counter) -> &AtomicU64) -> u64 {
    counters.iter().map(|counter| field(counter).load(Ordering::Relaxed)).sum()
}

/// Stops all producers and consumers when dropped, after an error, too: a scope waits for its threads.
pub(super) struct StopOnDrop<'a>(pub &'a Control);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.stop_publishing.store(true, Ordering::Relaxed);
        self.0.stop_consuming.store(true, Ordering::Relaxed);
    }
}

/// Joins a thread; its panic continues in the calling thread.
pub(super) fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Joins all threads, then returns the first error, which is the one that ended the others.
pub(super) fn join<T>(
    handles: Vec<ScopedJoinHandle<'_, Result<T, Error>>>,
) -> Result<Vec<T>, Error> {
    let results: Vec<_> = handles.into_iter().map(joined).collect();
    results.into_iter().collect()
}

/// Sleeps for `span`, or until the run is over.
pub(super) fn rest(span: Duration, over: &impl Fn() -> bool) {
    let end = Instant::now() + span;
    while !over() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        thread::sleep(left.min(LOOK_EVERY));
    }
}
