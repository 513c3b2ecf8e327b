//! Names every step of a shard's turn that took more than a millisecond: all other clients of the shard
//! have waited for it.
//!
//! A step is what is done for one socket that is ready, for a letter, for a few connections' output, or
//! once a turn. The clock is read after each: at most once for 64 KiB of input, never for a message.

use super::shard::Shard;
use crate::logs::OncePerSecond;
use angarium_engine::{ConnectionId, Time};
use std::time::{Duration, Instant};

/// What a step may take.
const STEP_MAX: Duration = Duration::from_millis(1);
/// From here on an operator wants to know, whatever the log level.
const GRAVE: Duration = Duration::from_millis(10);

/// What a shard did last.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// Opened letters: results of disk jobs, requests of administration, parcels of other shards.
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

/// The times of steps.
#[derive(Debug, Default)]
pub(super) struct Watchdog {
    /// When the last step ended.
    at: Time,
    complaints: OncePerSecond,
    /// Bytes that were last read from a client.
    pub(super) received: usize,
}

impl Watchdog {
    /// A turn begins.
    pub(super) fn begin(&mut self, now: Time) {
        self.at = now;
        self.received = 0;
    }

    /// A step has ended; how long it took, where that is too long.
    #[inline]
    fn ended(&mut self, now: Time) -> Option<Duration> {
        let took = now.since(self.at);
        self.at = now;
        (took > STEP_MAX).then_some(took)
    }
}

impl Shard {
    /// A step has ended.
    #[inline]
    pub(super) fn watch_step(&mut self, step: Step) {
        let now = self.clock.now();
        if let Some(took) = self.watchdog.ended(now) {
            self.name_step(step, took);
        }
        self.watchdog.received = 0;
    }

    #[cold]
    fn name_step(&mut self, step: Step, took: Duration) {
        self.counters.slow_steps += 1;
        self.counters.slow_step_micros += u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let Some(held_back) = self.watchdog.complaints.pass(Instant::now()) else { return };
        let received = self.watchdog.received;
        let did = match step {
            Step::Letters => "opened letters from other threads".to_owned(),
            Step::Client(_) if received > 0 => format!("took {received} bytes from a client"),
            Step::Client(_) => "served a client's socket".to_owned(),
            Step::Accept => "took new clients".to_owned(),
            Step::Due => "did what was due".to_owned(),
            Step::EndTurn => "ended the turn: queues, answers, checkpoint".to_owned(),
            Step::Rest => "handed out work, sent the last output".to_owned(),
            Step::Send(_) => "sent output".to_owned(),
        };
        let id = match step {
            Step::Client(index) => self.clients.id_of(index),
            Step::Send(id) => Some(id),
            _ => None,
        };
        let connection = id.and_then(|id| self.node.connection(self.now, id));
        let session = connection.as_ref().map(|connection| connection.session);
        let peer = session.map(|session| session.peer.address.as_str());
        let user = session.map(|session| session.user);
        let connection = connection.as_ref().map(|connection| connection.id.0);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        if took < GRAVE {
            tracing::info!(did, micros, connection, peer, user, held_back, "a slow step");
        } else {
            tracing::warn!(did, micros, connection, peer, user, held_back, "a slow step");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_takes_longer_than_a_millisecond_is_named() {
        let mut watchdog = Watchdog::default();
        watchdog.begin(Time(5_000_000));
        for (at, slow) in [
            (5_000_010, None),
            (5_001_010, None),
            (5_002_011, Some(1_001)),
            (5_002_500, None),
            (5_052_500, Some(50_000)),
            (5_052_501, None),
        ] {
            let took = watchdog.ended(Time(at));
            assert_eq!(took, slow.map(Duration::from_micros), "{at}");
        }
        // What passes between turns is sleep.
        watchdog.begin(Time(9_000_000));
        assert_eq!(watchdog.ended(Time(9_000_100)), None);
    }
}
