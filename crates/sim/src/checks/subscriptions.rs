//! What a history says about direct messages, put in order for the checks: who listened to what and
//! since when, what was published, and what of that the broker is known to have had.
//!
//! Only what clients can know counts. That a listener is known to listen, or a message to be processed,
//! follows from an answer to something that was asked later on the same connection.

use crate::history::{Emit, Ending, Event, Hear, History, Listen, MessageId};
use angarium_engine::Time;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Longest time after which the broker knows that a client is gone.
const NOTICE: Duration = Duration::from_secs(5);

/// A listener's end as its client asked for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    /// After so many messages in all; `None`: at once.
    pub(super) after: Option<u64>,
    /// The event by which the broker is known to know.
    pub(super) known: Option<usize>,
}

/// A listener.
#[derive(Debug)]
pub(super) struct Ear<'a> {
    pub(super) listen: &'a Listen,
    /// The event of its beginning: the broker may know of it from then on.
    asked: usize,
    /// The event from which on it is known to listen.
    sure: Option<usize>,
    pub(super) ends: Vec<End>,
    /// The event by which its client knows that the connection has ended.
    parted: Option<usize>,
    /// The event from which on the broker has surely forgotten it.
    gone: Option<usize>,
    /// What it heard, with the events.
    pub(super) heard: Vec<(usize, &'a Hear)>,
}

/// A message and what is known of it.
#[derive(Debug)]
pub(super) struct Said<'a> {
    pub(super) emit: &'a Emit,
    /// The event of its publishing.
    pub(super) at: usize,
    /// The event by which the broker is known to have processed it.
    pub(super) processed: Option<usize>,
}

/// See the module.
pub(super) struct Hearing<'a> {
    history: &'a History,
    pub(super) ears: BTreeMap<u32, Ear<'a>>,
    pub(super) said: BTreeMap<MessageId, Said<'a>>,
    /// Messages of transactions that were not committed, or not known to be.
    pub(super) undone: BTreeSet<MessageId>,
    /// The event after which only last words are said.
    caught_up: Option<usize>,
    /// The event after which nothing is under way.
    pub(super) all_said: Option<usize>,
    restarts: Vec<usize>,
}

impl<'a> Hearing<'a> {
    pub(super) fn of(history: &'a History) -> Hearing<'a> {
        let mut hearing = Hearing {
            history,
            ears: BTreeMap::new(),
            said: BTreeMap::new(),
            undone: BTreeSet::new(),
            caught_up: None,
            all_said: None,
            restarts: Vec::new(),
        };
        let mut transactions: BTreeMap<u32, Vec<MessageId>> = BTreeMap::new();
        let mut asked_to_commit = BTreeSet::new();
        for (at, (_, event)) in history.events.iter().enumerate() {
            match event {
                Event::Publish(publish) => {
                    if let Some(transaction) = publish.transaction {
                        transactions.entry(transaction).or_default().push(publish.message);
                    }
                }
                Event::Committing { transaction } => {
                    asked_to_commit.insert(*transaction);
                }
                Event::Transaction { transaction, ending: Ending::Committed } => {
                    for message in transactions.get(transaction).into_iter().flatten() {
                        hearing.processed(*message, at);
                    }
                }
                Event::Confirm { message, accepted: true } => hearing.processed(*message, at),
                _ => hearing.take(at, event),
            }
        }
        let open = transactions.iter().filter(|(number, _)| !asked_to_commit.contains(*number));
        hearing.undone.extend(open.flat_map(|(_, messages)| messages));
        let gone: Vec<_> = hearing.ears.values().map(|ear| hearing.gone(ear)).collect();
        for (ear, gone) in hearing.ears.values_mut().zip(gone) {
            ear.gone = gone;
        }
        hearing
    }

    fn take(&mut self, at: usize, event: &'a Event) {
        match event {
            Event::Emit(emit) => {
                self.said.insert(emit.message, Said { emit, at, processed: None });
            }
            Event::Flushed { message } => {
                let first = MessageId::new(message.producer(), 0);
                for said in self.said.range_mut(first..=*message).map(|(_, said)| said) {
                    said.processed.get_or_insert(at);
                }
            }
            Event::Listen(listen) => {
                self.ears.insert(listen.listener, Ear::new(listen, at));
            }
            Event::Listens { listener } => self.with(*listener, |ear| ear.sure = Some(at)),
            Event::Unlisten { listener, after } => {
                let end = End { after: *after, known: None };
                self.with(*listener, |ear| ear.ends.push(end));
            }
            Event::Unlistened { listener } => self.with(*listener, |ear| {
                if let Some(end) = ear.ends.iter_mut().find(|end| end.known.is_none()) {
                    end.known = Some(at);
                }
            }),
            Event::Hear(hear) => self.with(hear.listener, |ear| ear.heard.push((at, hear))),
            Event::Parted { connection } => {
                let on_it = |ear: &&mut Ear<'_>| ear.listen.connection == *connection;
                self.ears.values_mut().filter(on_it).for_each(|ear| ear.parted = Some(at));
            }
            Event::CaughtUp => self.caught_up = Some(at),
            Event::AllSaid => self.all_said = Some(at),
            Event::Crashed | Event::Closed => self.restarts.push(at),
            _ => {}
        }
    }

    fn with(&mut self, listener: u32, act: impl FnOnce(&mut Ear<'a>)) {
        if let Some(ear) = self.ears.get_mut(&listener) {
            act(ear);
        }
    }

    fn processed(&mut self, message: MessageId, at: usize) {
        if let Some(said) = self.said.get_mut(&message) {
            said.processed.get_or_insert(at);
        }
    }

    fn time(&self, at: usize) -> Time {
        self.history.events[at].0
    }

    /// Whether a message was published after all who were behind had caught up.
    pub(super) fn is_last_word(&self, message: MessageId) -> bool {
        let said = self.said.get(&message);
        said.is_some_and(|said| self.caught_up.is_some_and(|caught_up| said.at > caught_up))
    }

    /// Whether it was connected until all was said.
    pub(super) fn stays(&self, ear: &Ear<'_>) -> bool {
        let stayed = |all| ear.parted.is_none_or(|parted| parted > all);
        self.all_said.is_some_and(stayed)
    }

    /// Whether it listened, for sure, from before a message until all was said.
    pub(super) fn surely_hears(&self, ear: &Ear<'_>, said: &Said<'_>) -> bool {
        let is_there = ear.knows_before(said.at) && self.stays(ear);
        is_there && !ear.has_ended() && ear.is_for(said.emit)
    }

    /// Whether the broker may have handed it a message when it processed that.
    pub(super) fn may_hear(&self, ear: &Ear<'_>, said: &Said<'_>) -> bool {
        let is_after = said.processed.is_some_and(|processed| ear.asked > processed);
        let is_over = ear.gone.is_some_and(|gone| gone < said.at);
        ear.is_for(said.emit) && !is_after && !is_over
    }

    /// Whether what the broker handed it may be lost: its connection ended before all was said.
    pub(super) fn may_lose(&self, ear: &Ear<'_>) -> bool {
        !self.stays(ear) && !ear.ends.iter().any(|end| end.is_known_at_once())
    }

    fn gone(&self, ear: &Ear<'_>) -> Option<usize> {
        let ended = ear.ends.iter().filter_map(|end| match end.after {
            None => end.known,
            Some(after) => {
                let last = usize::try_from(after).ok().and_then(|after| ear.heard.get(after - 1));
                end.known.zip(last).map(|(known, (heard, _))| known.max(*heard))
            }
        });
        let lost = ear.parted.and_then(|parted| {
            let late = self.time(parted).plus(NOTICE);
            let noticed = self.history.events.partition_point(|(time, _)| *time <= late);
            let noticed = Some(noticed).filter(|at| *at < self.history.events.len());
            let restarted = self.restarts.iter().copied().find(|restart| *restart > parted);
            noticed.into_iter().chain(restarted).min()
        });
        ended.chain(lost).min()
    }
}

impl End {
    fn is_known_at_once(&self) -> bool {
        self.after.is_none() && self.known.is_some()
    }
}

impl<'a> Ear<'a> {
    fn new(listen: &'a Listen, asked: usize) -> Ear<'a> {
        let (ends, heard) = (Vec::new(), Vec::new());
        Ear { listen, asked, sure: None, ends, parted: None, gone: None, heard }
    }

    /// It was known to listen before this event.
    pub(super) fn knows_before(&self, at: usize) -> bool {
        self.sure.is_some_and(|sure| sure < at)
    }

    /// Whether messages like this one are for it.
    pub(super) fn is_for(&self, emit: &Emit) -> bool {
        let is_own = emit.connection == self.listen.connection && !emit.echo;
        !is_own && takes(&self.listen.pattern, &emit.subject)
    }

    /// Whether it has heard all that it wanted to, or wanted no more.
    pub(super) fn has_ended(&self) -> bool {
        let heard = self.heard.len() as u64;
        self.ends.iter().any(|end| end.after.is_none_or(|after| heard >= after))
    }

    /// The group, if it is a member of one.
    pub(super) fn group(&self) -> Option<&str> {
        self.listen.group.as_deref()
    }
}

/// Wildcards straight from their definition: `*` is any one token, a last `>` one or more.
pub(super) fn takes(pattern: &str, subject: &str) -> bool {
    let mut tokens = subject.split('.');
    for wanted in pattern.split('.') {
        match tokens.next() {
            None => return false,
            Some(_) if wanted == ">" => return true,
            Some(token) if wanted != "*" && wanted != token => return false,
            Some(_) => {}
        }
    }
    tokens.next().is_none()
}
