//! Throttles publishers that put more into a queue than its consumers get, and floods: publishers most of
//! whose messages reach nobody, while others are active.

use crate::connection::read_pause::WaitsFor;
use crate::node::Node;
use crate::shard::message::FromHome;
use angarium_engine::{ConnectionId, Time};
use angarium_protocol::ProtocolHandler;
use std::time::Duration;

/// How long such a connection is not read from while no other is active. With 64 KiB read at once, or 32
/// where many are sent to, it may send 64 or 32 MB a second even then: it is slowed down, not stopped, so
/// that nothing can wait for it in a circle.
const PAUSE: Duration = Duration::from_millis(1);
/// The longest, beside others: shorter than home's word counts.
const PAUSE_MAX: Duration = Duration::from_millis(4);
/// Beside others the pause is as long as a queue takes to hand out these bytes of its backlog: twice what is
/// read at once, so that input has half the rate of output (decision 0013).
const PAUSE_BYTES: u64 = 128 << 10;

/// The least input at once that can be a flood: half of what is read at once, since encrypted input is
/// smaller here.
const FLOOD_BYTES: usize = 16 << 10;
/// How long after its input a connection is there for others.
const COMPANY: Duration = Duration::from_millis(1);
/// For how long what a connection sends is what home has said that it was, a flood or more than consumers
/// get: home's word comes when more has been read.
const HOME_SAID: Duration = Duration::from_millis(5);

/// Messages that the engine has taken, and those of them that reached nobody.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PublishCounts {
    taken: u64,
    wasted: u64,
}

/// Who else is active: publishers whose messages reach somebody.
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
    fn note(&mut self, now: Time, connection: ConnectionId) {
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

/// The requests of one remote connection in a row: about what its shard read from it at once.
#[derive(Debug)]
pub(crate) struct RemoteInput {
    remote: ConnectionId,
    /// Bytes of the words.
    bytes: usize,
    before: PublishCounts,
}

/// What home last said about a connection that sends too much, and when.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HomeSaid {
    /// A flood, and whether it disturbs others there.
    flood: Option<(Time, bool)>,
    /// More than consumers get.
    outran: Option<Time>,
}

impl HomeSaid {
    /// Whether home has just said that the connection floods, and if so whether it disturbs others there.
    #[inline]
    fn floods(&self, now: Time) -> Option<bool> {
        let (said, disturbs) = self.flood?;
        (now.since(said) < HOME_SAID).then_some(disturbs)
    }

    /// Whether home has just said that the connection outruns consumers.
    #[inline]
    fn outruns(&self, now: Time) -> bool {
        self.outran.is_some_and(|said| now.since(said) < HOME_SAID)
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
    /// The connection is not to be read from for a moment.
    pub(crate) fn slow_down(&mut self, now: Time, id: ConnectionId, why: WaitsFor) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        if !std::mem::replace(&mut connection.is_slowed, true) {
            connection.last_slowed = Some((why, now));
            self.stats.floods_paused += u64::from(why == WaitsFor::Flooded);
            let is_alone = why != WaitsFor::Flooded && !self.flow.company.is_there(now, id);
            let Slowed { alone, beside_others, .. } = &mut self.flow.slowed;
            let pause = if is_alone { alone } else { beside_others };
            pause.add(now, id);
        }
    }

    /// The engine's counts of published messages.
    #[inline]
    pub(crate) fn publish_counts(&self) -> PublishCounts {
        PublishCounts { taken: self.engine.taken(), wasted: self.engine.wasted() }
    }

    /// Whether most messages published since `before`, in `bytes` of input, reached nobody.
    #[inline]
    fn is_flood(&self, bytes: usize, before: PublishCounts) -> bool {
        bytes >= FLOOD_BYTES && self.is_waste(before)
    }

    #[inline]
    fn is_waste(&self, before: PublishCounts) -> bool {
        let PublishCounts { taken, wasted } = self.publish_counts();
        wasted - before.wasted > (taken - before.taken) / 2
    }

    /// After `bytes` of input: pauses the connection if they are a flood and others are active, or if home
    /// has just said that it outruns consumers. A flood among floods is not paused.
    #[inline]
    pub(crate) fn slow_flood(
        &mut self,
        now: Time,
        id: ConnectionId,
        bytes: usize,
        before: PublishCounts,
    ) {
        let home_said = match self.connections.get(id) {
            Some(connection) if bytes >= FLOOD_BYTES => connection.home_said,
            _ => HomeSaid::default(),
        };
        if home_said.outruns(now) {
            self.slow_down(now, id, WaitsFor::Consumers);
        }
        let floods_home = home_said.floods(now);
        if floods_home.is_none() && !self.is_flood(bytes, before) {
            self.flow.company.note(now, id);
        } else if floods_home == Some(true) || self.flow.company.is_there(now, id) {
            self.slow_down(now, id, WaitsFor::Flooded);
        }
    }

    /// After `bytes` of input of a connection that is being closed, or a channel of which is: what is dropped
    /// is read as slowly as a flood.
    #[inline]
    pub(crate) fn slow_dropped(&mut self, now: Time, id: ConnectionId, bytes: usize) {
        if bytes >= FLOOD_BYTES
            && let Some(connection) = self.connections.get(id)
            && connection.handler.drops_input()
        {
            self.slow_down(now, id, WaitsFor::Flooded);
        }
    }

    // ---- by way of home ----

    /// Home: a remote connection asks for something in `bytes`.
    #[inline]
    pub(crate) fn note_remote_input(&mut self, now: Time, remote: ConnectionId, bytes: usize) {
        if let Some(input) = self.flow.remote_input.as_mut().filter(|input| input.remote == remote)
        {
            input.bytes += bytes;
            return;
        }
        self.end_remote_input(now);
        self.flow.remote_input = Some(RemoteInput { remote, bytes, before: self.publish_counts() });
    }

    /// Home: ends a run of input of one remote connection. If it was a flood, tells its shard, which cannot
    /// see where messages went, and whether it disturbs others here.
    pub(crate) fn end_remote_input(&mut self, now: Time) {
        let Some(RemoteInput { remote: slot, bytes, before }) = self.flow.remote_input.take()
        else {
            return;
        };
        self.count_input(now, slot, bytes);
        if !self.is_waste(before) {
            self.flow.company.note(now, slot);
            return;
        }
        // Little of it may be a piece of a flood, cut off by the end of a batch: neither flood nor company.
        if bytes >= FLOOD_BYTES
            && let Some(remote) = &self.effects.outbox[slot.0 as usize].remote
        {
            let disturbs = self.flow.company.is_there(now, slot);
            let name = remote.last_name();
            self.effects.links.say(remote.shard, FromHome::Flood { name, disturbs });
        }
    }

    /// Its shard: what the connection sent was a flood.
    pub(crate) fn note_flood_at_home(&mut self, now: Time, id: ConnectionId, disturbs: bool) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.home_said.flood = Some((now, disturbs));
        if disturbs || self.flow.company.is_there(now, id) {
            self.slow_down(now, id, WaitsFor::Flooded);
        }
    }

    /// Its shard: what the connection sent was more than consumers get.
    pub(crate) fn note_outrun_at_home(&mut self, now: Time, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.home_said.outran = Some(now);
        self.slow_down(now, id, WaitsFor::Consumers);
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
