//! Throttles publishers that put more into a queue than its consumers get.

use crate::node::Node;
use angarium_engine::{ConnectionId, Time};
use std::time::Duration;

/// How long such a connection is not read from while no other is active. With 64 KiB read at once
/// it may send 64 MB a second even then: it is slowed down, not stopped, so that nothing can wait for it in
/// a circle.
const PAUSE: Duration = Duration::from_millis(1);
/// The longest, beside others: shorter than home's word counts.
const PAUSE_MAX: Duration = Duration::from_millis(4);
/// Beside others the pause is as long as a queue takes to hand out these bytes of its backlog: twice what is
/// read at once, so that input has half the rate of output (decision 0013).
const PAUSE_BYTES: u64 = 128 << 10;

/// The least input at once from which home's word counts: half of what is read at once, since encrypted
/// input is smaller here.
const MUCH_BYTES: usize = 16 << 10;
/// How long after its input a connection is there for others.
const COMPANY: Duration = Duration::from_millis(1);
/// For how long home's word that a connection outruns consumers counts: it comes when more has been read.
const HOME_SAID: Duration = Duration::from_millis(5);

/// Who else is active.
#[derive(Debug, Default)]
pub(crate) struct Company {
    /// Who sent last, and when.
    last: Option<ConnectionId>,
    last_sent: Time,
    /// When any other one last sent.
    others_sent: Time,
}

impl Company {
    /// Input came from a connection.
    #[inline]
    pub(crate) fn note(&mut self, now: Time, connection: ConnectionId) {
        if self.last.replace(connection) != Some(connection) {
            self.others_sent = self.last_sent;
        }
        self.last_sent = now;
    }

    /// Whether others than `connection` have just sent something.
    fn is_there(&self, now: Time, connection: ConnectionId) -> bool {
        let is_last = self.last == Some(connection);
        let sent = if is_last { self.others_sent } else { self.last_sent };
        now.since(sent) < COMPANY
    }
}

/// Paused connections, and when the pause ends: `length` after it began for the first of them.
#[derive(Debug)]
struct Pause {
    length: Duration,
    paused: Vec<ConnectionId>,
    until: Option<Time>,
}

impl Pause {
    fn new(length: Duration) -> Pause {
        Pause { length, paused: Vec::new(), until: None }
    }

    fn add(&mut self, now: Time, connection: ConnectionId) {
        self.paused.push(connection);
        self.until.get_or_insert(now.plus(self.length));
    }

    /// Takes all once the pause has ended.
    fn take_due(&mut self, now: Time) -> Vec<ConnectionId> {
        match self.until.take_if(|due| *due <= now) {
            Some(_) => std::mem::take(&mut self.paused),
            None => Vec::new(),
        }
    }
}

/// Connections that are slowed down, alone or beside others.
#[derive(Debug)]
pub(crate) struct Slowed {
    alone: Pause,
    beside_others: Pause,
}

impl Slowed {
    /// With pauses for a queue that hands out that much of its backlog per second beside others.
    pub(crate) fn new(backlog_bytes_per_second: u64) -> Slowed {
        let nanos = PAUSE_BYTES * 1_000_000_000 / backlog_bytes_per_second.max(1);
        let beside_others = Duration::from_nanos(nanos).clamp(PAUSE, PAUSE_MAX);
        Slowed { alone: Pause::new(PAUSE), beside_others: Pause::new(beside_others) }
    }

    /// When the first of them go on.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let all = [self.alone.until, self.beside_others.until];
        all.into_iter().flatten().min()
    }
}

impl Node {
    /// The connection outruns consumers and is not read from for a moment.
    pub(crate) fn slow_down(&mut self, now: Time, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        if !std::mem::replace(&mut connection.is_slowed, true) {
            connection.last_slowed = now;
            let is_beside_others = self.flow.company.is_there(now, id);
            let Slowed { alone, beside_others } = &mut self.flow.slowed;
            let pause = if is_beside_others { beside_others } else { alone };
            pause.add(now, id);
        }
    }

    /// After `bytes` of input: pauses the connection if home has just said that it outruns consumers.
    #[inline]
    pub(crate) fn note_input(&mut self, now: Time, id: ConnectionId, bytes: usize) {
        self.flow.company.note(now, id);
        let outran = match self.connections.get(id) {
            Some(connection) if bytes >= MUCH_BYTES => connection.outran_at_home,
            _ => None,
        };
        if outran.is_some_and(|said| now.since(said) < HOME_SAID) {
            self.slow_down(now, id);
        }
    }

    /// Its shard: what the connection sent was more than consumers get.
    pub(crate) fn note_outrun_at_home(&mut self, now: Time, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.outran_at_home = Some(now);
        self.slow_down(now, id);
    }

    /// Lets connections go on whose pause is over.
    pub(crate) fn let_slowed_go_on(&mut self, now: Time) {
        let alone = self.flow.slowed.alone.take_due(now);
        for id in alone.into_iter().chain(self.flow.slowed.beside_others.take_due(now)) {
            if let Some(connection) = self.connections.get_mut(id) {
                connection.is_slowed = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For how many microseconds a connection is not read from beside others, by the rate of a drain.
    #[track_caller]
    fn check(bytes_per_second: u64, micros: u64) {
        let mut slowed = Slowed::new(bytes_per_second);
        let due = Time(1).plus(Duration::from_micros(micros));
        slowed.beside_others.add(Time(1), ConnectionId(7));
        slowed.beside_others.add(due, ConnectionId(8));
        assert_eq!(slowed.deadline(), Some(due), "{bytes_per_second} bytes a second");
        assert!(slowed.beside_others.take_due(Time(due.0 - 1)).is_empty());
        assert_eq!(slowed.beside_others.take_due(due), [ConnectionId(7), ConnectionId(8)]);
        assert_eq!(slowed.deadline(), None);
    }

    #[test]
    fn the_pause_beside_others_goes_by_the_rate_of_a_drain() {
        check(0, 4_000);
        check(16 << 20, 4_000);
        check(32 << 20, 3_906);
        check(64 << 20, 1_953);
        check(128 << 20, 1_000);
        check(u64::MAX, 1_000);
    }
}
