//! A measured span: the counters at both ends, and what each second between them brought.

use super::control::Control;
use super::live_rates;
use super::outcome::Second;
use crate::measure::process::{self, Ticks, Usage};
use crate::measure::stalls::Stalls;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often a span is looked at.
pub(super) const SAMPLE: Duration = Duration::from_secs(1);
/// The most seconds that are kept one by one.
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

/// What was measured.
pub(super) struct Span {
    pub(super) start: Snapshot,
    pub(super) end: Snapshot,
    pub(super) seconds: Vec<Second>,
    pub(super) instructions: Option<u64>,
    pub(super) stalls: Option<Stalls>,
}

impl Span {
    /// The slowest and the fastest second; zeros where there was none.
    pub(super) fn extremes(&self, consumed: bool) -> (f64, f64) {
        let rate = |second: &Second| if consumed { second.delivered } else { second.published };
        let rates = self.seconds.iter().map(rate);
        let least = rates.clone().fold(f64::INFINITY, f64::min);
        if least.is_finite() { (least, rates.fold(0.0, f64::max)) } else { (0.0, 0.0) }
    }
}

/// Looks at a run while it is measured.
pub(super) struct Sampler<'a> {
    control: &'a Control,
    broker_pid: Option<u32>,
    start: Snapshot,
    /// When it was last looked at, and the counters then.
    last: (Instant, u64, u64, u64),
    seconds: Vec<Second>,
}

impl<'a> Sampler<'a> {
    /// The span begins now; latencies count from now on.
    pub(super) fn start(control: &'a Control, broker_pid: Option<u32>) -> Sampler<'a> {
        // What it held in loads before this one is not this one's.
        if let Some(pid) = broker_pid {
            Usage::forget_peaks(pid);
        }
        let start = Snapshot::take(control, broker_pid);
        control.measuring.store(true, Ordering::Relaxed);
        let cpu_ns = start.broker.as_ref().map_or(0, |usage| usage.cpu_ns);
        let last = (start.at, start.published, start.delivered, cpu_ns);
        Sampler { control, broker_pid, start, last, seconds: Vec::new() }
    }

    /// How long it has lasted.
    pub(super) fn elapsed(&self) -> Duration {
        self.start.at.elapsed()
    }

    /// Notes what came since the last look.
    pub(super) fn look(&mut self) {
        let (published, delivered) = (self.control.published(), self.control.delivered());
        let usage = self.broker_pid.and_then(Usage::of_tree);
        let now = Instant::now();
        let (at, published_before, delivered_before, cpu_before) = self.last;
        let span_s = (now - at).as_secs_f64();
        let cpu_ns = usage.as_ref().map_or(0, |usage| usage.cpu_ns);
        self.last = (now, published, delivered, cpu_ns);
        // What is much shorter than a second says nothing.
        if span_s < SAMPLE.as_secs_f64() / 2.0 || self.seconds.len() == SECONDS_MAX {
            return;
        }
        let second = Second {
            at_s: (now - self.start.at).as_secs_f64(),
            published: (published - published_before) as f64 / span_s,
            delivered: (delivered - delivered_before) as f64 / span_s,
            broker_cpu_share: cpu_ns.saturating_sub(cpu_before) as f64 / 1e9 / span_s,
            broker_rss_kib: usage.map_or(0, |usage| usage.rss_kib),
        };
        live_rates::set(second.published, second.delivered);
        self.seconds.push(second);
    }

    /// The span ends now.
    pub(super) fn finish(self) -> Span {
        self.control.measuring.store(false, Ordering::Relaxed);
        live_rates::set(0.0, 0.0);
        let end = Snapshot::take(self.control, self.broker_pid);
        Span { start: self.start, end, seconds: self.seconds, instructions: None, stalls: None }
    }
}
