//! Stalls of the whole machine, as when a hypervisor does not run its virtual cores. Latencies during a
//! stall say nothing about a broker. Independent of brokers and loads.

use rustix::process::setpriority_process;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const SLEEP: Duration = Duration::from_millis(1);
/// A watcher that wakes this much too late was kept from running.
const PAUSE_MIN: Duration = Duration::from_millis(2);
/// The nice value with precedence over other threads of the session or control group.
const HIGHEST_PRIORITY: i32 = -20;

/// For how long no core ran its highest-priority thread.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stalls {
    /// Total, in microseconds.
    pub total_us: f64,
    /// Longest stall, in microseconds.
    pub longest_us: f64,
}

/// A time in which one core's watcher was due and did not run, in nanoseconds.
type Pause = Range<u64>;

/// Watcher threads, one on each core, that sleep and wake.
pub struct Watch {
    stop: Arc<AtomicBool>,
    watchers: Vec<JoinHandle<Option<Vec<Pause>>>>,
}

impl Watch {
    /// Watches the cores that this process may use; `None` with one, where long kernel sections look alike.
    pub fn start() -> Option<Watch> {
        let cores = own_cores();
        if cores.len() < 2 {
            return None;
        }
        let (stop, start) = (Arc::new(AtomicBool::new(false)), Instant::now());
        let watcher = |core| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || watch_core(core, start, &stop))
        };
        let watchers = cores.into_iter().map(watcher).collect();
        Some(Watch { stop, watchers })
    }

    /// Returns the stalls; `None` without a high priority: then a busy machine would look like a stalled one.
    pub fn finish(self) -> Option<Stalls> {
        self.stop.store(true, Ordering::Relaxed);
        let seen = self.watchers.into_iter().map(|it| it.join().expect("a watcher does not panic"));
        // All are joined before the first failure counts.
        let pauses: Vec<Option<Vec<Pause>>> = seen.collect();
        let pauses: Vec<Vec<Pause>> = pauses.into_iter().collect::<Option<_>>()?;
        Some(Stalls::of(&pauses.into_iter().reduce(|all, core| common(&all, &core))?))
    }
}

impl Stalls {
    fn of(pauses: &[Pause]) -> Stalls {
        let each = pauses.iter().map(|it| (it.end - it.start) as f64 / 1e3);
        Stalls { total_us: each.clone().sum(), longest_us: each.fold(0.0, f64::max) }
    }
}

fn own_cores() -> Vec<usize> {
    let allowed = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).collect()
}

/// Sleeps and wakes on one core. Returns when it woke too late; `None` without affinity or priority.
fn watch_core(core: usize, start: Instant, stop: &AtomicBool) -> Option<Vec<Pause>> {
    let mut only = CpuSet::new();
    only.set(core);
    sched_setaffinity(None, &only).ok()?;
    // On Linux each thread has its own nice value, and 0 is the calling one (setpriority(2)).
    setpriority_process(None, HIGHEST_PRIORITY).ok()?;
    let now_ns = || start.elapsed().as_nanos() as u64;
    let mut pauses = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let due_ns = now_ns() + SLEEP.as_nanos() as u64;
        thread::sleep(SLEEP);
        let woke_ns = now_ns();
        if woke_ns >= due_ns + PAUSE_MIN.as_nanos() as u64 {
            pauses.push(due_ns..woke_ns);
        }
    }
    Some(pauses)
}

/// The intersection of two ordered lists of pauses.
fn common(one: &[Pause], other: &[Pause]) -> Vec<Pause> {
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    let mut found = Vec::new();
    while let (Some(first), Some(second)) = (one.peek(), other.peek()) {
        let both = first.start.max(second.start)..first.end.min(second.end);
        let is_first_over = first.end < second.end;
        if !both.is_empty() {
            found.push(both);
        }
        // The one that ends first intersects no other.
        if is_first_over {
            one.next()
        } else {
            other.next()
        };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses(times: &[(u64, u64)]) -> Vec<Pause> {
        times.iter().map(|&(from, to)| from..to).collect()
    }

    #[track_caller]
    fn check(one: &[(u64, u64)], other: &[(u64, u64)], both: &[(u64, u64)]) {
        let [one, other, both] = [one, other, both].map(pauses);
        let (one, other) = (one.as_slice(), other.as_slice());
        assert_eq!(common(one, other), both, "{one:?} and {other:?}");
        assert_eq!(common(other, one), both, "{other:?} and {one:?}");
    }

    #[test]
    fn the_machine_stands_still_where_all_its_cores_do() {
        check(&[], &[], &[]);
        check(&[(10, 20)], &[], &[]);
        check(&[(10, 20)], &[(10, 20)], &[(10, 20)]);
        check(&[(10, 20)], &[(15, 30)], &[(15, 20)]);
        check(&[(10, 20)], &[(20, 30)], &[]);
        check(&[(10, 90)], &[(5, 15), (20, 30), (80, 99)], &[(10, 15), (20, 30), (80, 90)]);
        check(&[(10, 20), (30, 40)], &[(15, 35)], &[(15, 20), (30, 35)]);
        check(&[(10, 20), (50, 60)], &[(21, 49), (55, 56)], &[(55, 56)]);
    }

    #[test]
    fn what_it_stood_still_is_added_up() {
        assert_eq!(Stalls::of(&[]), Stalls::default());
        let stalls = Stalls::of(&pauses(&[(1_000, 3_000), (10_000, 15_000)]));
        assert_eq!((stalls.total_us, stalls.longest_us), (7.0, 5.0));
    }

    #[test]
    fn a_watch_ends_when_it_is_told_to() {
        if let Some(watch) = Watch::start() {
            thread::sleep(3 * SLEEP);
            if let Some(stalls) = watch.finish() {
                assert!(stalls.total_us >= stalls.longest_us, "{stalls:?}");
            }
        }
    }
}
