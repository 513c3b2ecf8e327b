//! Samples a run: the counters at the start and end of the measured span, and the rates of each second.

use super::control::Control;
use super::live_rates;
use super::outcome::Second;
use crate::measure::process::{self, Ticks, Usage};
use crate::measure::stalls::Stalls;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Interval between two samples.
pub(super) const SAMPLE: Duration = Duration::from_secs(1);
/// Limit on the seconds that are kept.
const SECONDS_MAX: usize = 100_000;

/// All counters at one moment.
pub(super) struct Snapshot {
    pub(super) at: Instant,
    pub(super) published: u64,
    pub(super) confirmed: u64,
    pub(super) delivered: u64,
    pub(super) delivered_bytes: u64,
    pub(super) broker: Option<Usage>,
    pub(super) tool_cpu_ns: u64,
    pub(super) machine: Option<Ticks>,
    pub(super) flushes: Option<u64>,
}

impl Snapshot {
    fn take(control: &Control, broker_pid: Option<u32>) -> Snapshot {
        Snapshot {
            at: Instant::now(),
            published: control.published(),
            confirmed: control.confirmed(),
            delivered: control.delivered(),
            delivered_bytes: control.delivered_bytes(),
            broker: broker_pid.and_then(Usage::of_tree),
            tool_cpu_ns: process::own_cpu_ns(),
            machine: process::machine_ticks(),
            flushes: process::disk_flushes(),
        }
    }
}

/// A measured span.
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

/// The counters that the rates of a second are derived from.
#[derive(Debug, Clone, Copy)]
struct Sample {
    at: Instant,
    published: u64,
    delivered: u64,
    broker_cpu_ns: u64,
}

/// Samples a run while it is measured.
pub(super) struct Sampler<'a> {
    control: &'a Control,
    broker_pid: Option<u32>,
    start: Snapshot,
    /// The last sample.
    last: Sample,
    seconds: Vec<Second>,
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
        let last = Sample {
            at: start.at,
            published: start.published,
            delivered: start.delivered,
            broker_cpu_ns: start.broker.as_ref().map_or(0, |usage| usage.cpu_ns),
        };
        Sampler { control, broker_pid, start, last, seconds: Vec::new() }
    }

    /// How long the span has lasted.
    pub(super) fn elapsed(&self) -> Duration {
        self.start.at.elapsed()
    }

    /// Records the rates since the last sample.
    pub(super) fn look(&mut self) {
        let (published, delivered) = (self.control.published(), self.control.delivered());
        let usage = self.broker_pid.and_then(Usage::of_tree);
        let broker_cpu_ns = usage.as_ref().map_or(0, |usage| usage.cpu_ns);
        let now = Sample { at: Instant::now(), published, delivered, broker_cpu_ns };
        let before = std::mem::replace(&mut self.last, now);
        let span_s = (now.at - before.at).as_secs_f64();
        // Much shorter intervals are not representative.
        if span_s < SAMPLE.as_secs_f64() / 2.0 || self.seconds.len() == SECONDS_MAX {
            return;
        }
        let second = Second {
            at_s: (now.at - self.start.at).as_secs_f64(),
            published: (published - before.published) as f64 / span_s,
            delivered: (delivered - before.delivered) as f64 / span_s,
            broker_cpu_share: broker_cpu_ns.saturating_sub(before.broker_cpu_ns) as f64
                / 1e9
                / span_s,
            broker_rss_kib: usage.map_or(0, |usage| usage.rss_kib),
        };
        live_rates::set(second.published, second.delivered);
        self.seconds.push(second);
    }

    /// Ends the span.
    pub(super) fn finish(self) -> Span {
        self.control.measuring.store(false, Ordering::Relaxed);
        live_rates::set(0.0, 0.0);
        let end = Snapshot::take(self.control, self.broker_pid);
        Span { start: self.start, end, seconds: self.seconds, instructions: None, stalls: None }
    }
}
