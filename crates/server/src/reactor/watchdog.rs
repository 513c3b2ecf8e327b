//! Times a shard's turn: names every step that took more than a millisecond, for which all other clients
//! of the shard have waited, and says when the turn has done enough for sockets.
//!
//! A step is what is done for one socket that is ready, for a letter, for a few connections' output, or
//! once a turn. The clock is read after each: once for a read, however large, never for a message.
//!
//! On a machine that is busy with other programs most such steps only waited for a processor. The thread's
//! own processor time tells: it takes a call into the kernel, some hundred nanoseconds, so it is read when a
//! step was slow, and otherwise just often enough to know where that step began.

use super::shard::Shard;
use crate::reactor::slow_step_log::{Named, NamedClient, SlowSteps};
use angarium_engine::{ConnectionId, Time};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// What a step may take.
const STEP_MAX: Duration = Duration::from_millis(1);
/// What a turn may take of sockets: the rest of them have the next one, so that answers, output and timers
/// wait no longer, however many clients send.
const TURN_MAX: Duration = Duration::from_millis(2);
/// From here on an operator wants to know, whatever the log level; of a processor.
const GRAVE: Duration = Duration::from_millis(10);
/// How old the last reading of the processor time may be when a step begins: what a step took of the
/// processor is known to within this.
const READING_AGE_MAX: Duration = Duration::from_micros(500);

/// What this thread has had of a processor.
fn processor_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

/// What a shard did last.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// Opened letters: results of disk jobs, requests of administration, batches of other shards.
    Letters,
    /// Read from a client's socket, or wrote to it.
    Client(usize),
    /// Took new clients.
    Accept,
    /// What had become due: timers, heartbeats.
    Due,
    /// Served queues, answered requests, ended the turn.
    EndTurn,
    /// Handed work out to threads, sent the last few connections' output, looked at paused ones.
    Rest,
    /// Sent output, to this connection last.
    Send(ConnectionId),
}

impl Step {
    /// What it is in words; `received`: bytes that were read in it.
    fn did(self, received: usize) -> String {
        let did = match self {
            Step::Letters => "opened letters from other threads",
            Step::Client(_) if received > 0 => {
                return format!("took {received} bytes from a client");
            }
            Step::Client(_) => "served a client's socket",
            Step::Accept => "took new clients",
            Step::Due => "did what was due",
            Step::EndTurn => "ended the turn: queues, answers, checkpoint",
            Step::Rest => "handed out work, sent the last output",
            Step::Send(_) => "sent output",
        };
        did.to_owned()
    }
}

/// A step that took too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slow {
    took: Duration,
    /// What it had of a processor, at most.
    processor: Duration,
}

impl Slow {
    /// Whether it would not have been slow with a processor of its own.
    fn was_held_up(self) -> bool {
        self.processor <= STEP_MAX
    }
}

/// The times of steps.
#[derive(Debug, Default)]
pub(super) struct Watchdog {
    /// When the last step ended.
    at: Time,
    /// When this turn went over to sockets.
    sockets_from: Time,
    /// When the processor time was last read, and what it was.
    reading: (Time, Duration),
    slow: SlowSteps,
    /// Bytes that were last read from a client.
    pub(super) received: usize,
}

impl Watchdog {
    /// A turn begins.
    pub(super) fn begin(&mut self, now: Time) {
        self.begin_at(now, processor_time);
    }

    fn begin_at(&mut self, now: Time, processor_time: impl FnOnce() -> Duration) {
        self.at = now;
        self.received = 0;
        if now.since(self.reading.0) > READING_AGE_MAX {
            self.reading = (now, processor_time());
        }
    }

    /// The turn goes over to sockets.
    pub(super) fn begin_sockets(&mut self) {
        self.sockets_from = self.at;
    }

    /// Whether the turn has done enough for sockets when its last step ended.
    #[inline]
    pub(super) fn is_time_up(&self) -> bool {
        self.at.since(self.sockets_from) >= TURN_MAX
    }

    /// A step has ended; whether it took too long.
    #[inline]
    pub(super) fn look(&mut self, now: Time) -> Option<Slow> {
        self.ended(now, processor_time)
    }

    /// When a step is to be named that was slow before.
    #[inline]
    pub(super) fn deadline(&self) -> Option<Time> {
        self.slow.deadline()
    }

    /// A step has ended; how long it took, where that is too long.
    #[inline]
    fn ended(&mut self, now: Time, processor_time: impl FnOnce() -> Duration) -> Option<Slow> {
        let took = now.since(self.at);
        self.at = now;
        if now.since(self.reading.0) <= READING_AGE_MAX {
            return None;
        }
        let (_, before) = std::mem::replace(&mut self.reading, (now, processor_time()));
        let processor = self.reading.1.saturating_sub(before).min(took);
        (took > STEP_MAX).then_some(Slow { took, processor })
    }
}

impl Shard {
    /// A step has ended.
    #[inline]
    pub(super) fn watch_step(&mut self, step: Step) {
        if let Some(slow) = self.watchdog.look(self.clock.now()) {
            self.name_step(step, slow);
        }
        self.watchdog.received = 0;
    }

    #[cold]
    pub(super) fn name_step(&mut self, step: Step, slow: Slow) {
        let micros = u64::try_from(slow.took.as_micros()).unwrap_or(u64::MAX);
        let processor = u64::try_from(slow.processor.as_micros()).unwrap_or(u64::MAX);
        if slow.was_held_up() {
            self.counters.held_up_steps += 1;
        } else {
            self.counters.slow_steps += 1;
            self.counters.slow_step_micros += micros;
        }
        let (did, client) = (step.did(self.watchdog.received), self.client_of(step));
        self.watchdog.slow.note(Named { did, micros, processor, client });
        self.name_slow_step();
    }

    /// Writes into the log what is to be said now of slow steps.
    pub(super) fn name_slow_step(&mut self) {
        let Some((named, held_back)) = self.watchdog.slow.next(self.clock.now()) else { return };
        let Named { did, micros, processor, client } = named;
        let NamedClient { connection, peer, user } = client;
        // A level has to be a constant where an event is written.
        macro_rules! log {
            ($level:ident) => {
                tracing::$level!(
                    did,
                    micros,
                    processor,
                    connection,
                    peer,
                    user,
                    held_back,
                    "a slow step"
                )
            };
        }
        if u128::from(processor) >= GRAVE.as_micros() {
            log!(warn);
        } else {
            log!(debug);
        }
    }

    fn client_of(&self, step: Step) -> NamedClient {
        let id = match step {
            Step::Client(index) => self.clients.id_of(index),
            Step::Send(id) => Some(id),
            _ => None,
        };
        let connection = id.and_then(|id| self.node.connection(self.now, id));
        connection.map_or_else(NamedClient::default, |connection| NamedClient {
            connection: Some(connection.figures.number),
            peer: Some(connection.info.peer.address.clone()),
            user: Some(connection.info.user.to_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread; how much time has passed by the wall clock and on a processor, in microseconds.
    #[derive(Default)]
    struct Thread {
        wall: u64,
        processor: u64,
        readings: u64,
        watchdog: Watchdog,
    }

    impl Thread {
        fn pass(&mut self, wall: u64, processor: u64) {
            self.wall += wall;
            self.processor += processor;
        }

        fn begin(&mut self) {
            let Thread { wall, processor, readings, watchdog } = self;
            watchdog.begin_at(Time(*wall), || {
                *readings += 1;
                Duration::from_micros(*processor)
            });
        }

        /// Has a step of that length end; what it took as far as is known.
        fn step(&mut self, wall: u64, processor: u64) -> Option<(u64, u64)> {
            self.pass(wall, processor);
            let Thread { wall, processor, readings, watchdog } = self;
            let slow = watchdog.ended(Time(*wall), || {
                *readings += 1;
                Duration::from_micros(*processor)
            })?;
            Some((slow.took.as_micros() as u64, slow.processor.as_micros() as u64))
        }
    }

    #[test]
    fn sockets_have_two_milliseconds_of_a_turn_whatever_came_before() {
        let mut thread = Thread::default();
        thread.begin();
        thread.step(50_000, 50_000);
        thread.watchdog.begin_sockets();
        for expected in [false, false, false, true] {
            thread.step(500, 500);
            assert_eq!(thread.watchdog.is_time_up(), expected, "after {} us", thread.wall);
        }
        thread.begin();
        thread.watchdog.begin_sockets();
        assert!(!thread.watchdog.is_time_up());
    }

    #[test]
    fn only_what_takes_longer_than_a_millisecond_is_named() {
        let mut thread = Thread { wall: 5_000_000, ..Thread::default() };
        thread.begin();
        for (took, slow) in [
            (10, None),
            (1_000, None),
            (1_001, Some((1_001, 1_001))),
            (489, None),
            (50_000, Some((50_000, 50_000))),
            (1, None),
        ] {
            assert_eq!(thread.step(took, took), slow, "{took}");
        }
        // What passes between turns is sleep.
        thread.pass(4_000_000, 0);
        thread.begin();
        assert_eq!(thread.step(100, 100), None);
    }

    #[test]
    fn steps_that_waited_for_a_processor_are_told_from_slow_ones() {
        let held_up = |(took, processor)| {
            let [took, processor] = [took, processor].map(Duration::from_micros);
            Slow { took, processor }.was_held_up()
        };
        let mut thread = Thread::default();
        thread.begin();
        let waited = thread.step(77_000, 300).unwrap();
        assert_eq!(waited, (77_000, 300));
        assert!(held_up(waited));
        let slow = thread.step(77_000, 2_000).unwrap();
        assert_eq!(slow, (77_000, 2_000));
        assert!(!held_up(slow));
        // What passed between the last reading and the step counts as the step's.
        assert_eq!(thread.step(400, 400), None);
        assert_eq!(thread.step(2_000, 100), Some((2_000, 500)));
    }

    #[test]
    fn the_processor_time_is_read_seldom() {
        let mut thread = Thread { wall: 1_000_000, ..Thread::default() };
        for _ in 0..1_000 {
            thread.pass(10, 0);
            thread.begin();
            (0..4).for_each(|_| assert_eq!(thread.step(10, 10), None));
        }
        assert!((90..=100).contains(&thread.readings), "{}", thread.readings);
    }
}
