//! Moments at which the machine itself stood still: a host that gives its virtual cores nothing, say. What
//! is late then is late whatever a broker does. Knows neither brokers nor loads.

use rustix::process::setpriority_process;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// For how long a sentry sleeps.
const SLEEP: Duration = Duration::from_millis(1);
/// One that comes so much too late was kept from running.
const PAUSE_MIN: Duration = Duration::from_millis(2);
/// The nice value that goes before other threads of its session or control group.
const HIGHEST_PRIORITY: i32 = -20;

/// For how long no core of the machine ran those that go before all others.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stalls {
    /// In all, microseconds.
    pub total_us: f64,
    /// At one time, microseconds.
    pub longest_us: f64,
}

/// From when to when one core's sentry did not run although it was due, in nanoseconds.
type Pause = (u64, u64);

/// Sentries, one on each core, that sleep and wake.
pub struct Watch {
    stop: Arc<AtomicBool>,
    sentries: Vec<JoinHandle<Option<Vec<Pause>>>>,
}

impl Watch {
    /// Begins to watch this machine's cores, as far as this process may use them. With a single one nobody
    /// could tell: there, whatever the kernel does in one piece looks the same.
    pub fn start() -> Option<Watch> {
        let cores = own_cores();
        if cores.len() < 2 {
            return None;
        }
        let (stop, start) = (Arc::new(AtomicBool::new(false)), Instant::now());
        let sentry = |core| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || stand_sentry(core, start, &stop))
        };
        let sentries = cores.into_iter().map(sentry).collect();
        Some(Watch { stop, sentries })
    }

    /// What was seen. `None` where the system does not let this process go before others: then a busy
    /// machine would look like one that stands still.
    pub fn finish(self) -> Option<Stalls> {
        self.stop.store(true, Ordering::Relaxed);
        let seen = self.sentries.into_iter().map(|it| it.join().expect("a sentry does not panic"));
        // All are joined, whatever the first of them says.
        let pauses: Vec<Option<Vec<Pause>>> = seen.collect();
        let pauses: Vec<Vec<Pause>> = pauses.into_iter().collect::<Option<_>>()?;
        Some(Stalls::of(&pauses.into_iter().reduce(|all, core| common(&all, &core))?))
    }
}

impl Stalls {
    fn of(pauses: &[Pause]) -> Stalls {
        let each = pauses.iter().map(|(from, to)| (to - from) as f64 / 1e3);
        Stalls { total_us: each.clone().sum(), longest_us: each.fold(0.0, f64::max) }
    }
}

fn own_cores() -> Vec<usize> {
    let allowed = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).collect()
}

/// Sleeps and wakes on one core. Returns when it woke too late, or `None` if it may not stand there.
fn stand_sentry(core: usize, start: Instant, stop: &AtomicBool) -> Option<Vec<Pause>> {
    let mut only = CpuSet::new();
    only.set(core);
    sched_setaffinity(None, &only).ok()?;
    // Linux gives each thread a nice value of its own, and 0 names the calling one (setpriority(2)).
    setpriority_process(None, HIGHEST_PRIORITY).ok()?;
    let now_ns = || start.elapsed().as_nanos() as u64;
    let mut pauses = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let due_ns = now_ns() + SLEEP.as_nanos() as u64;
        thread::sleep(SLEEP);
        let woke_ns = now_ns();
        if woke_ns >= due_ns + PAUSE_MIN.as_nanos() as u64 {
            pauses.push((due_ns, woke_ns));
        }
    }
    Some(pauses)
}

/// What two lists of pauses, each in order, have in common.
fn common(one: &[Pause], other: &[Pause]) -> Vec<Pause> {
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    let mut found = Vec::new();
    while let (Some(&&(from, to)), Some(&&(other_from, other_to))) = (one.peek(), other.peek()) {
        let (latest, earliest) = (from.max(other_from), to.min(other_to));
        if latest < earliest {
            found.push((latest, earliest));
        }
        // The one that ends first cannot meet another.
        if to < other_to {
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

    #[track_caller]
    fn check(one: &[Pause], other: &[Pause], both: &[Pause]) {
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
        let stalls = Stalls::of(&[(1_000, 3_000), (10_000, 15_000)]);
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
