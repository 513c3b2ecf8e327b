//! Gives up on missing messages once the broker has made no progress for the drain time. Time in which
//! the machine stalls or the broker is merely slow to accept connections does not count.

use super::control::Control;
use super::plan::Plan;
use super::sampler::SAMPLE;
use crate::client::Link;
use std::thread;
use std::time::{Duration, Instant};

/// Interval between two looks at the progress.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// Of a longer interval, the excess is time in which this tool did not run.
const LOOK_MAX: Duration = Duration::from_millis(10);
/// A responsive broker accepts a connection within this part of the drain time.
const GREETING_PART: u32 = 10;
/// How often the wait starts over for a broker that is slow to accept connections.
const ROUNDS_MAX: u32 = 10;

/// How long no progress was seen.
struct Silence {
    seen: Duration,
    limit: Duration,
}

impl Silence {
    fn new(limit: Duration) -> Silence {
        Silence { seen: Duration::ZERO, limit }
    }

    /// Notes a look, `since` the last one. Returns whether the limit is reached.
    fn look(&mut self, since: Duration, moved: bool) -> bool {
        self.seen = if moved { Duration::ZERO } else { self.seen + since.min(LOOK_MAX) };
        self.seen >= self.limit
    }
}

/// Waits until `done`, or until nothing has moved for the plan's drain time and the broker is not merely
/// slow; calls `each` about once a second.
pub(super) fn wait(
    plan: &Plan,
    control: &Control,
    done: &impl Fn() -> bool,
    each: &mut impl FnMut(),
) {
    let (mut silence, mut before) = (Silence::new(plan.drain), control.counts());
    let (mut looked, mut called, mut rounds) = (Instant::now(), Instant::now(), 0);
    while !done() {
        thread::sleep(LOOK_EVERY);
        let now = control.counts();
        let since = looked.elapsed();
        looked += since;
        if silence.look(since, now != before) {
            // Missing messages are about to be declared lost, or the run to be cut short.
            if rounds == ROUNDS_MAX || greets_in_time(plan) && control.counts() == before {
                return;
            }
            rounds += 1;
            (silence, looked) = (Silence::new(plan.drain), Instant::now());
        }
        before = now;
        if called.elapsed() >= SAMPLE {
            each();
            called = Instant::now();
        }
    }
}

/// Whether the broker accepts a new client as quickly as an idle one does. One that does not accept it
/// at all has had the connection timeout, and gets no further wait.
fn greets_in_time(plan: &Plan) -> bool {
    let asked = Instant::now();
    match Link::open(&plan.target).and_then(Link::close) {
        Ok(()) => asked.elapsed() < plan.drain / GREETING_PART,
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_what_was_seen_of_it() {
        let ms = Duration::from_millis;
        let check = |looks: &[(u64, bool)], wanted: bool| {
            let mut silence = Silence::new(ms(30));
            let over = looks.iter().map(|(since, moved)| silence.look(ms(*since), *moved));
            assert_eq!(over.last(), Some(wanted), "{looks:?}");
        };
        check(&[(1, false); 29], false);
        check(&[(1, false); 30], true);
        // The tool did not run.
        check(&[(5_000, false)], false);
        check(&[(5_000, false), (5_000, false)], false);
        check(&[(5_000, false), (5_000, false), (5_000, false)], true);
        // Progress starts the wait over.
        check(&[(10, false), (10, false), (10, true)], false);
        check(&[(10, true), (10, false), (10, false), (10, false)], true);
    }
}
