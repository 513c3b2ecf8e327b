//! When what has not come is given up: after a silence that is the broker's own. A machine that lets
//! neither it nor us run is no reason to count its messages as lost.

use super::control::Control;
use super::plan::Plan;
use super::sampler::SAMPLE;
use crate::client::Link;
use std::thread;
use std::time::{Duration, Instant};

/// How often it is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// Between looks that are further apart than that, it was us who were not there.
const LOOK_MAX: Duration = Duration::from_millis(10);
/// A broker that is there greets within this part of the silence that is waited for.
const GREETING_PART: u32 = 10;
/// How often one that was slow to greet is waited for anew.
const ROUNDS_MAX: u32 = 10;

/// How long nothing has moved, as far as we were there to see.
#[derive(Debug)]
struct Silence {
    seen: Duration,
    limit: Duration,
}

impl Silence {
    fn new(limit: Duration) -> Silence {
        Silence { seen: Duration::ZERO, limit }
    }

    /// Notes a look, so long after the last. Returns whether it has been silent for as long as is waited.
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
    let count = || control.published() + control.confirmed() + control.delivered();
    let (mut silence, mut before) = (Silence::new(plan.drain), count());
    let (mut looked, mut called, mut rounds) = (Instant::now(), Instant::now(), 0);
    while !done() {
        thread::sleep(LOOK_EVERY);
        let now = count();
        let since = looked.elapsed();
        looked += since;
        if silence.look(since, now != before) {
            // What is missing is about to be called lost, or the run to be cut short.
            if rounds == ROUNDS_MAX || greets_in_time(plan) && count() == before {
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

/// Whether the broker takes a new client as quickly as one does that has nothing else to do. One that
/// does not take it at all has had the patience of a connection, and no more will come of it.
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
        // Not there for a while.
        check(&[(5_000, false)], false);
        check(&[(5_000, false), (5_000, false)], false);
        check(&[(5_000, false), (5_000, false), (5_000, false)], true);
        // What moves begins anew.
        check(&[(10, false), (10, false), (10, true)], false);
        check(&[(10, true), (10, false), (10, false), (10, false)], true);
    }
}
