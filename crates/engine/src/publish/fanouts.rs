//! Messages that have not reached all of their very many recipients: which go on, which wait, and what
//! follows when they have. Independent of how they reach them.

use crate::publish::held::DelayKey;
use crate::publish::taken::{PublishNumber, Taken};
use crate::pubsub::ToSubscribers;
use crate::queue::blob::Blob;
use crate::routing::QueueKey;
use crate::routing::walk::Walk;
use crate::{ChannelId, ConnectionId, LoadId, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::RangeInclusive;

/// Fan-outs that are carried out in turn; the others wait, and know their message alone. One of them is of
/// no client's publish at most.
const ACTIVE_MAX: usize = 8;
/// Dead letters to very many queues that may wait before queues keep what they would let go of.
const LETTERS_MAX: usize = 256;

/// Queues found repeatedly that are kept, beyond as many as there are different ones.
const REPEATED_MAX: usize = 8_192;

/// The fan-outs that have not reached all yet.
#[derive(Debug, Default)]
pub(crate) struct WideFanouts {
    pub(crate) active: VecDeque<Fanout>,
    /// Those of clients, of which each has one or two, and dead letters and delayed messages.
    published: VecDeque<Fanout>,
    letters: VecDeque<Fanout>,
    is_letter_active: bool,
    /// Connections whose further input waits, and for what.
    holding: BTreeMap<ConnectionId, Held>,
    /// What messages take in memory that are no connection's.
    others_bytes: u64,
    /// Body bytes that queues are still to get, each queue's counted, by virtual host.
    outstanding: BTreeMap<u32, u64>,
    /// Numbers them.
    pub(crate) begun: u64,
    /// The numbers of those that are there.
    numbers: BTreeSet<u64>,
}

/// Fan-outs for which a connection waits.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    fanouts: usize,
    /// What their messages take in memory.
    bytes: u64,
}

#[derive(Debug)]
pub(crate) struct Fanout {
    number: u64,
    /// The publisher.
    pub(crate) by: Option<ConnectionId>,
    is_letter: bool,
    /// What its message takes in memory.
    bytes: u64,
    pub(crate) work: Work,
}

#[derive(Debug)]
pub(crate) enum Work {
    Queues(Box<ToQueues>),
    Subscribers(Box<ToSubscribers>),
}

/// A message on its way to queues.
#[derive(Debug)]
pub(crate) struct ToQueues {
    pub(crate) vhost: u32,
    pub(crate) message: Blob,
    pub(crate) body_bytes: u64,
    /// Body bytes that queues are still to get of it.
    pub(crate) outstanding: u64,
    /// When it was sent, from where its time to live counts in all queues alike.
    pub(crate) sent: Option<Time>,
    pub(crate) redelivered: bool,
    pub(crate) search: Search,
    /// The queues found, with their numbers: another one may have the slot by the time.
    pub(crate) targets: Vec<(QueueKey, u64)>,
    /// How many of these are different.
    pub(crate) different: usize,
    pub(crate) next: usize,
    /// What is decided once its way is walked to the end; `None`: it was when the message came.
    pub(crate) undecided: Option<Undecided>,
    pub(crate) wants_flush: bool,
    pub(crate) taken: Taken,
    /// The number of its publish, if a session takes it once.
    pub(crate) once: Option<PublishNumber>,
    pub(crate) then: Then,
}

/// How far the queues of a message are found.
#[derive(Debug)]
pub(crate) enum Search {
    Ahead,
    Underway(Box<Walk>),
    Over,
}

/// A message with a long way: what is known of it at its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Undecided {
    /// It may come to the exchange of subjects, and to those who subscribe.
    pub(crate) to_subjects: bool,
    /// Its publisher wants it back where it goes nowhere.
    pub(crate) mandatory: bool,
    /// Somebody subscribes to it.
    pub(crate) is_heard: bool,
}

/// How many queues a message was found to go to, and whether these are all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) queues: usize,
    pub(crate) undecided: Option<Undecided>,
}

impl Extent {
    /// `is_whole`: they are all; otherwise: whether it may come to subjects.
    pub(crate) fn of(queues: usize, is_whole: bool, to_subjects: bool) -> Extent {
        let undecided = Undecided { to_subjects, mandatory: false, is_heard: false };
        Extent { queues, undecided: (!is_whole).then_some(undecided) }
    }
}

/// What follows when all queues have it.
#[derive(Debug)]
pub(crate) enum Then {
    /// Its publisher gets a confirm, if its channel is still open.
    Confirm(Option<ChannelId>),
    Nothing,
    /// The message leaves the queue that it was a dead letter of; names it among those that wait to become
    /// dead letters.
    Leave(LoadId),
    /// It is not delayed any more.
    EndDelay(DelayKey),
}

impl Work {
    fn message_bytes(&self) -> u64 {
        match self {
            Work::Queues(work) => size_of::<ToQueues>() as u64 + work.message.cost(),
            Work::Subscribers(work) => work.message_bytes(),
        }
    }

    /// What the list of those takes who are still to get it.
    fn list_bytes(&self) -> u64 {
        match self {
            Work::Queues(work) => (work.targets.capacity() * size_of::<(QueueKey, u64)>()) as u64,
            Work::Subscribers(work) => work.list_bytes(),
        }
    }
}

impl ToQueues {
    /// No further queue gets it.
    fn end(&mut self) {
        (self.search, self.targets, self.next) = (Search::Over, Vec::new(), 0);
        (self.undecided, self.outstanding) = (None, 0);
    }

    /// Takes in queues that were found, each once.
    pub(crate) fn found(&mut self, targets: impl Iterator<Item = (QueueKey, u64)>) {
        self.targets.extend(targets);
        let is_over = matches!(self.search, Search::Over);
        if is_over || self.targets.len() > 2 * self.different + REPEATED_MAX {
            self.targets.sort_unstable();
            self.targets.dedup();
            self.different = self.targets.len();
        }
    }
}

impl WideFanouts {
    /// Whether there are none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.active.is_empty()
    }

    /// Whether a connection's last message has not reached all.
    #[inline]
    pub(crate) fn hold(&self, connection: ConnectionId) -> bool {
        !self.active.is_empty() && self.holding.contains_key(&connection)
    }

    pub(crate) fn begin(&mut self, by: Option<ConnectionId>, is_letter: bool, work: Work) {
        self.begun += 1;
        self.numbers.insert(self.begun);
        let bytes = work.message_bytes();
        self.count(by, bytes);
        if let Work::Queues(work) = &work {
            *self.outstanding.entry(work.vhost).or_default() += work.outstanding;
        }
        let fanout = Fanout { number: self.begun, by, is_letter, bytes, work };
        if is_letter { &mut self.letters } else { &mut self.published }.push_back(fanout);
        self.activate();
    }

    /// Counts a message for the connection that waits for it.
    fn count(&mut self, by: Option<ConnectionId>, bytes: u64) {
        let Some(by) = by else {
            self.others_bytes += bytes;
            return;
        };
        let held = self.holding.entry(by).or_default();
        held.fanouts += 1;
        held.bytes += bytes;
    }

    /// What messages take in memory for which a connection waits.
    pub(crate) fn bytes_of(&self, connection: ConnectionId) -> u64 {
        self.holding.get(&connection).map_or(0, |held| held.bytes)
    }

    /// What all others take, and the lists of who is still to get a message.
    pub(crate) fn other_bytes(&self) -> u64 {
        self.others_bytes + self.active.iter().map(|it| it.work.list_bytes()).sum::<u64>()
    }

    /// Body bytes that the queues of a virtual host are still to get, each queue's counted.
    pub(crate) fn outstanding_in(&self, vhost: u32) -> u64 {
        self.outstanding.get(&vhost).copied().unwrap_or(0)
    }

    /// Queues of a virtual host are still to get that many bytes more.
    pub(crate) fn found_more(&mut self, vhost: u32, bytes: u64) {
        if bytes > 0 {
            *self.outstanding.entry(vhost).or_default() += bytes;
        }
    }

    /// Queues of a virtual host have got that many bytes.
    pub(crate) fn placed(&mut self, vhost: u32, bytes: u64) {
        if let Some(all) = self.outstanding.get_mut(&vhost) {
            *all -= bytes;
            if *all == 0 {
                self.outstanding.remove(&vhost);
            }
        }
    }

    /// Begins with those that wait, as far as there is room.
    fn activate(&mut self) {
        if !self.is_letter_active
            && let Some(letter) = self.letters.pop_front()
        {
            self.is_letter_active = true;
            self.active.push_back(letter);
        }
        while self.active.len() < ACTIVE_MAX
            && let Some(published) = self.published.pop_front()
        {
            self.active.push_back(published);
        }
    }

    /// All has reached all.
    pub(crate) fn ended(&mut self, fanout: &Fanout) {
        self.numbers.remove(&fanout.number);
        self.is_letter_active &= !fanout.is_letter;
        let held = fanout.by.and_then(|by| Some((by, self.holding.get_mut(&by)?)));
        if let Some((by, held)) = held {
            held.fanouts -= 1;
            held.bytes -= fanout.bytes;
            if held.fanouts == 0 {
                self.holding.remove(&by);
            }
        } else {
            self.others_bytes -= fanout.bytes;
        }
        self.activate();
    }

    /// Whether queues are to keep for the time being what would become a dead letter.
    #[inline]
    pub(crate) fn has_many_letters(&self) -> bool {
        self.letters.len() >= LETTERS_MAX
    }

    /// Whether those with these numbers have reached all.
    pub(crate) fn are_done(&self, numbers: RangeInclusive<u64>) -> bool {
        self.numbers.range(numbers).next().is_none()
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Fanout> {
        self.active.iter_mut().chain(&mut self.published).chain(&mut self.letters)
    }

    /// A connection goes. What it has published still reaches all.
    pub(crate) fn publisher_left(&mut self, connection: ConnectionId) {
        let Some(held) = self.holding.remove(&connection) else { return };
        self.others_bytes += held.bytes;
        for fanout in self.all_mut().filter(|it| it.by == Some(connection)) {
            fanout.by = None;
        }
    }

    /// A channel goes: nobody gets the confirm.
    pub(crate) fn channel_left(&mut self, id: ChannelId) {
        for fanout in self.all_mut() {
            if let Work::Queues(work) = &mut fanout.work
                && let Then::Confirm(channel) = &mut work.then
                && *channel == Some(id)
            {
                *channel = None;
            }
        }
    }

    /// A virtual host goes.
    pub(crate) fn vhost_left(&mut self, vhost: u32) {
        self.outstanding.remove(&vhost);
        for fanout in self.all_mut() {
            match &mut fanout.work {
                Work::Queues(work) if work.vhost == vhost => work.end(),
                Work::Subscribers(work) if work.vhost == vhost => work.end(),
                _ => {}
            }
        }
    }
}
