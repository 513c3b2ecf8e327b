//! Samples a run: the counters at the start and end of the measured span, and the rates of each second.

use super::control::{Control, Counts};
use super::outcome::Second;
use crate::measure::process::{self, Ticks, Usage};
use crate::measure::stalls::Stalls;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub(super) const SAMPLE: Duration = Duration::from_secs(1);
/// Limit on the seconds that are kept.
const SECONDS_MAX: usize = 100_000;

/// Messages per second of the running load, for progress displays; one load runs at a time.
static PUBLISHED: AtomicU64 = AtomicU64::new(0);
static DELIVERED: AtomicU64 = AtomicU64::new(0);

/// Messages published and delivered in the last measured second of the running load.
pub(crate) fn live_rates() -> (u64, u64) {
    (PUBLISHED.load(Ordering::Relaxed), DELIVERED.load(Ordering::Relaxed))
}

fn set_live_rates(published: f64, delivered: f64) {
    PUBLISHED.store(published as u64, Ordering::Relaxed);
    DELIVERED.store(delivered as u64, Ordering::Relaxed);
}

#[derive(Clone)]
pub(super) struct Snapshot {
    pub(super) at: Instant,
    pub(super) counts: Counts,
    pub(super) broker: Option<Usage>,
    pub(super) tool_cpu_ns: u64,
    pub(super) machine: Option<Ticks>,
    pub(super) flushes: Option<u64>,
}

impl Snapshot {
    fn take(control: &Control, broker_pid: Option<u32>) -> Snapshot {
        Snapshot {
            at: Instant::now(),
            counts: control.counts(),
            broker: broker_pid.and_then(Usage::of_tree),
            tool_cpu_ns: process::own_cpu_ns(),
            machine: process::machine_ticks(),
            flushes: process::disk_flushes(),
        }
    }
}

pub(super) struct Span {
    pub(super) start: Snapshot,
    pub(super) end: Snapshot,
    pub(super) seconds: Vec<Second>,
    pub(super) instructions: Option<u64>,
    pub(super) stalls: Option<Stalls>,
}

impl Span {
    /// The rates of the slowest and the fastest second; zeros without any.
    pub(super) fn extremes(&self, consumed: bool) -> (f64, f64) {
        let rate = |second: &Second| if consumed { second.delivered } else { second.published };
        let rates = self.seconds.iter().map(rate);
        let least = rates.clone().fold(f64::INFINITY, f64::min);
        if least.is_finite() { (least, rates.fold(0.0, f64::max)) } else { (0.0, 0.0) }
    }
}

pub(super) struct Sampler<'a> {
    control: &'a Control,
    broker_pid: Option<u32>,
    /// Ends with the last sample.
    span: Span,
}

impl<'a> Sampler<'a> {
    /// Starts the span; latencies count from now on.
    pub(super) fn start(control: &'a Control, broker_pid: Option<u32>) -> Sampler<'a> {
        // Memory peaks of earlier loads do not count.
        if let Some(pid) = broker_pid {
            Usage::forget_peaks(pid);
        }
        let start = Snapshot::take(control, broker_pid);
        control.measuring.store(true, Ordering::Relaxed);
        let (end, seconds) = (start.clone(), Vec::new());
        let span = Span { start, end, seconds, instructions: None, stalls: None };
        Sampler { control, broker_pid, span }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.span.start.at.elapsed()
    }

    /// Records the rates since the last sample.
    pub(super) fn look(&mut self) {
        let now = Snapshot::take(self.control, self.broker_pid);
        let before = std::mem::replace(&mut self.span.end, now);
        let now = &self.span.end;
        let span_s = (now.at - before.at).as_secs_f64();
        // Much shorter intervals are not representative.
        if span_s < SAMPLE.as_secs_f64() / 2.0 || self.span.seconds.len() == SECONDS_MAX {
            return;
        }
        let per_s =
            |count: fn(&Snapshot) -> u64| count(now).saturating_sub(count(&before)) as f64 / span_s;
        let second = Second {
            at_s: (now.at - self.span.start.at).as_secs_f64(),
            published: per_s(|it| it.counts.published),
            delivered: per_s(|it| it.counts.delivered),
            broker_cpu_share: per_s(|it| it.broker.as_ref().map_or(0, |it| it.cpu_ns)) / 1e9,
            broker_rss_kib: now.broker.as_ref().map_or(0, |usage| usage.rss_kib),
        };
        set_live_rates(second.published, second.delivered);
        self.span.seconds.push(second);
    }

    pub(super) fn finish(self) -> Span {
        self.control.measuring.store(false, Ordering::Relaxed);
        set_live_rates(0.0, 0.0);
        Span { end: Snapshot::take(self.control, self.broker_pid), ..self.span }
    }
}
