//! Logs: a message for many detached sessions is stored once.
//!
//! A log is a queue without consumers that belongs to the engine. It has one binding, and takes what sessions
//! with that binding and those bounds miss while they are detached. Their own bindings are suspended
//! meanwhile (`suspend.rs`), so that a publish costs as much as there are logs that match. Messages have one
//! number over all logs, their arrival: it is their place in each of them, and each session knows the arrival
//! up to which it has all. A session that is claimed takes what it missed into its own queue, a bounded part
//! at a time, in the order of arrival, each message once (`drain.rs`); at the end its bindings lead to its
//! queue again. What all sessions of a log have passed leaves it, and with its last session the log goes
//! (`space.rs`).

mod drain;
mod space;
mod suspend;

use crate::Position;
use crate::queue::entry::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Bindings of one session that logs stand in for; one with more stays with its own queue.
const PARTS_MAX: usize = 64;

/// Where a session is in its logs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogCursor {
    /// It has all that arrived before this.
    pub(crate) at: u64,
    pub(crate) parts: Vec<LogPart>,
}

/// What a session gets of one log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogPart {
    /// The number of its queue.
    pub(crate) log: u64,
    /// The first arrival, and that behind the last.
    pub(crate) from: u64,
    pub(crate) until: u64,
    /// What the log had dropped when that was last looked at, as far as this process knows.
    pub(crate) dropped: u64,
}

impl LogCursor {
    /// About how much memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<LogCursor>() + self.parts.len() * (size_of::<LogPart>() + MEMBER_BYTES)
    }
}

/// What a session takes in the list of a log.
const MEMBER_BYTES: usize = 48;

/// A session in a log: the first arrival that it is still to get there, its number, and where its part
/// begins.
type Member = (u64, u64, u64);

/// What is known of a log beside its queue.
#[derive(Debug, Default)]
struct Log {
    members: BTreeSet<Member>,
    /// What it is found by.
    key: Vec<u8>,
    /// A page of it, as it was read last.
    page: Option<ReadPage>,
    /// Pages of which messages were found to be gone.
    lost: BTreeSet<Position>,
    /// Sessions that wait for a page, if one is being read.
    waiting: Option<Vec<u64>>,
}

#[derive(Debug)]
struct ReadPage {
    position: Position,
    /// Nothing where it can neither be read nor made anew.
    entries: Option<Vec<Entry>>,
}

/// A page of a log that is being read.
#[derive(Debug)]
pub(crate) struct LogLoad {
    /// The number of its queue.
    pub(crate) log: u64,
    pub(crate) position: Position,
    pub(crate) searched: Option<Searched>,
}

/// The record of a page is lost, so its messages are looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Searched {
    /// A repair gave it up.
    is_given_up: bool,
}

/// All logs, and the sessions that are about to go to them or to come back.
#[derive(Debug, Default)]
pub(crate) struct Logs {
    /// By the number of the queue.
    all: BTreeMap<u64, Log>,
    by_key: BTreeMap<Vec<u8>, u64>,
    /// The number of the next message that logs take.
    pub(crate) next_arrival: u64,
    /// The message at hand has that number.
    pub(crate) has_taken: bool,
    /// Numbers of sessions that were detached.
    detached: VecDeque<u64>,
    /// Numbers of sessions that take what they missed, and can go on.
    draining: VecDeque<u64>,
}

impl Logs {
    pub(crate) fn new() -> Logs {
        Logs { next_arrival: 1, ..Logs::default() }
    }

    /// Whether a session is about to go to logs, or to come back.
    #[inline]
    pub(crate) fn has_work(&self) -> bool {
        !(self.detached.is_empty() && self.draining.is_empty())
    }

    /// A session is detached from now on.
    pub(crate) fn session_detached(&mut self, session: u64) {
        self.detached.push_back(session);
    }

    /// A message has been given its place in all logs that take it.
    #[inline]
    pub(crate) fn end_arrival(&mut self) {
        if std::mem::take(&mut self.has_taken) {
            self.next_arrival = self.next_arrival.saturating_add(1);
        }
    }

    fn add_member(&mut self, session: u64, at: u64, part: &LogPart) {
        if let Some(log) = self.all.get_mut(&part.log) {
            log.members.insert((part.from.max(at), session, part.from));
        }
    }

    fn remove_member(&mut self, session: u64, at: u64, part: &LogPart) {
        if let Some(log) = self.all.get_mut(&part.log) {
            log.members.remove(&(part.from.max(at), session, part.from));
        }
    }
}

#[cfg(test)]
impl crate::engine::Engine {
    /// Panics where logs and the sessions in them disagree.
    pub(crate) fn check_logs(&self) {
        let mut expected: BTreeMap<u64, BTreeSet<Member>> = BTreeMap::new();
        for (_, session) in self.sessions.iter() {
            let Some(cursor) = &session.cursor else { continue };
            assert!(!cursor.parts.is_empty(), "a session in no log");
            for part in &cursor.parts {
                let member = (part.from.max(cursor.at), session.number, part.from);
                expected.entry(part.log).or_default().insert(member);
            }
        }
        let found = self.logs.all.iter().map(|(number, log)| (*number, log.members.clone()));
        assert_eq!(found.collect::<BTreeMap<_, _>>(), expected, "sessions in logs");
        assert_eq!(self.logs.by_key.len(), expected.len(), "logs that are found");
        for (_, queue) in self.queues.iter().filter(|(_, queue)| queue.options.is_log) {
            let members = expected.get(&queue.number).expect("a log without sessions");
            let lowest = members.first().map_or(0, |member| member.0);
            assert!(queue.next_seq <= self.logs.next_arrival, "a place behind the last");
            let first = queue.lanes.iter().flat_map(|lane| lane.entries()).map(|it| it.seq).min();
            assert!(first.is_none_or(|first| first >= lowest), "what all have passed is there");
        }
    }
}
