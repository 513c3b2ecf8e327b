//! Messages to very many queues or subscribers: they reach some in each turn, and all in order.
//!
//! What a client sends next waits until its message has reached all, so that a publisher's messages keep
//! their order and it is the publisher whom a wide fan-out costs time. Recipients that come meanwhile get
//! nothing of it.

use crate::engine::Engine;
use crate::publish::fanouts::{Extent, Search, Then, ToQueues, Work};
use crate::publish::taken::{PublishNumber, Taken, Unwanted};
use crate::pubsub::ToSubscribers;
use crate::queue::stored::Incoming;
use crate::routing::QueueKey;
use crate::{ConnectionId, Effects, Publish, Time};
use std::ops::RangeInclusive;

/// Parts of a turn: each takes one message to a fourth of those whom a message reaches at once.
const PARTS: usize = 4;

impl Engine {
    /// Whether the last message of a connection has not reached all its recipients: what it sends next has to
    /// wait.
    #[inline]
    #[must_use]
    pub fn is_fanning_out(&self, connection: ConnectionId) -> bool {
        self.agenda.wide.hold(connection)
    }

    /// How many fan-outs to very many have begun, ever: they are numbered from 1 on.
    #[inline]
    #[must_use]
    pub fn wide_begun(&self) -> u64 {
        self.agenda.wide.begun
    }

    /// Whether the fan-outs with these numbers have reached all.
    #[must_use]
    pub fn are_wide_done(&self, numbers: RangeInclusive<u64>) -> bool {
        self.agenda.wide.are_done(numbers)
    }

    /// The connection at work has begun a fan-out and waits; others go on in what is left of the turn.
    pub fn let_others_go_on(&mut self) {
        self.work_budget.go_on();
    }

    /// Begins to put a client's message into very many queues, or to find its long way. Its publisher gets
    /// the confirm when all have it.
    #[cold]
    pub(super) fn begin_wide_publish<F: Effects>(
        &mut self,
        slot: u32,
        sent: Time,
        publish: &Publish<'_>,
        has_subjects: bool,
        mut extent: Extent,
        fx: &mut F,
    ) {
        let incoming = Incoming { sent: Some(sent), ..Incoming::of(publish) };
        let channel = &self.clients.channels[slot];
        let (id, vhost) = (channel.id, channel.vhost);
        let wants_flush = channel.confirms.is_some();
        let is_whole = extent.undecided.is_none();
        let may = (has_subjects || !is_whole) && self.may_be_delivered(slot, publish);
        if let Some(undecided) = &mut extent.undecided {
            (undecided.to_subjects, undecided.mandatory) = (may, publish.mandatory);
        }
        let (by, then) = (Some(id.connection), Then::Confirm(Some(id)));
        self.place_wide(by, vhost, &incoming, extent, wants_flush, then);
        if is_whole && may {
            self.publish_to_subscribers(vhost, &incoming, by, fx);
        }
        self.counters.published += 1;
    }

    /// Puts a message into very many queues, or has it go a long way, over several turns: to those that its
    /// exchange leads to when its turn comes.
    pub(crate) fn place_wide(
        &mut self,
        by: Option<ConnectionId>,
        vhost: u32,
        incoming: &Incoming<'_>,
        extent: Extent,
        wants_flush: bool,
        then: Then,
    ) {
        let mut room = std::mem::take(&mut self.scratch.blob);
        room.clear();
        // Its client may be gone before all its queues are found.
        let from = incoming.from.or_else(|| self.clients.client_name(by?));
        let message = Incoming { from, ..*incoming }.encode(&mut room).to_blob();
        self.scratch.keep_blob(room);
        let is_letter = matches!(then, Then::Leave(_) | Then::EndDelay(_));
        let work = ToQueues {
            vhost,
            body_bytes: incoming.content.body.len() as u64,
            outstanding: extent.queues as u64 * incoming.content.body.len() as u64,
            message,
            sent: incoming.sent,
            redelivered: incoming.redelivered,
            search: Search::Ahead,
            targets: Vec::new(),
            different: 0,
            next: 0,
            undecided: extent.undecided,
            wants_flush,
            taken: Taken { position: self.retained.awaited.take(), ..Taken::default() },
            once: self.storage.publish_number.take(),
            then,
        };
        self.agenda.wide.begin(by, is_letter, Work::Queues(Box::new(work)));
        self.work_budget.end();
    }

    /// Hands a direct message to very many subscribers over several turns.
    pub(crate) fn hand_out_wide(&mut self, by: Option<ConnectionId>, work: ToSubscribers) {
        self.agenda.wide.begin(by, false, Work::Subscribers(Box::new(work)));
        self.work_budget.end();
    }

    /// Goes on with messages to very many, each in turn.
    #[cold]
    pub(crate) fn fan_out_some<F: Effects>(&mut self, now: Time, fx: &mut F) {
        let subscribers = self.options.limits.subscribers_at_once.div_ceil(PARTS);
        let steps_before = self.route_steps;
        for _ in 0..PARTS {
            if self.route_steps - steps_before >= self.options.limits.route_steps_at_once {
                return;
            }
            let Some(mut fanout) = self.agenda.wide.active.pop_front() else { return };
            let is_done = match &mut fanout.work {
                Work::Queues(work) => self.place_some(now, fanout.by, work, fx),
                Work::Subscribers(work) => {
                    self.hand_out_some(now, fanout.by, work, subscribers, fx)
                }
            };
            if !is_done {
                self.agenda.wide.active.push_back(fanout);
                continue;
            }
            self.agenda.wide.ended(&fanout);
            if let Work::Queues(work) = fanout.work {
                self.end_placing(now, *work, fx);
            }
        }
    }

    /// Goes on to find the queues that a message goes to; says whether they are all found.
    fn find_some<F: Effects>(
        &mut self,
        now: Time,
        by: Option<ConnectionId>,
        work: &mut ToQueues,
        incoming: &Incoming<'_>,
        fx: &mut F,
    ) -> bool {
        let mut walk = match std::mem::replace(&mut work.search, Search::Over) {
            Search::Over => return true,
            Search::Underway(walk) => walk,
            Search::Ahead => {
                let router = &self.topology.vhosts[work.vhost].router;
                let Some(mut walk) = router.begin_walk(incoming.exchange) else { return true };
                walk.avoids_subjects = work.undecided.is_some_and(|it| !it.to_subjects);
                Box::new(walk)
            }
        };
        let mut found = Vec::new();
        let most = self.options.limits.route_steps_at_once.div_ceil(PARTS as u64);
        let is_whole = self.find_more_queues(work.vhost, by, &mut walk, incoming, most, &mut found);
        if !incoming.annotations.deaths.is_empty() {
            self.leave_cycles(incoming.annotations, &mut found);
        }
        let has_subjects = walk.has_subjects;
        if !is_whole {
            work.search = Search::Underway(walk);
        }
        let number = |key: QueueKey| Some((key, self.queues.get(key.0)?.number));
        work.found(found.into_iter().filter_map(number));
        if is_whole {
            let is_log = |key: QueueKey| self.queues.get(key.0).is_some_and(|it| it.options.is_log);
            work.targets.sort_by_key(|(key, _)| !is_log(*key));
            let all = work.body_bytes * work.targets.len() as u64;
            self.agenda.wide.found_more(work.vhost, all.saturating_sub(work.outstanding));
            work.outstanding = work.outstanding.max(all);
        }
        if let Some(undecided) = work.undecided.as_mut().filter(|it| is_whole && it.to_subjects) {
            // What is published to subjects themselves is handed out before.
            undecided.is_heard = has_subjects
                && (incoming.is_late(now)
                    || self.publish_to_subscribers(work.vhost, incoming, by, fx));
        }
        is_whole
    }

    /// Puts a message into the next queues; says whether all have it.
    fn place_some<F: Effects>(
        &mut self,
        now: Time,
        by: Option<ConnectionId>,
        work: &mut ToQueues,
        fx: &mut F,
    ) -> bool {
        if let Some(once) = work.once.filter(|once| once.is_repetition) {
            return self.is_decided(once, &mut work.taken);
        }
        let message = work.message.clone();
        let stored = message.stored();
        let (annotations, also_to) = (stored.annotations(0), stored.also_to());
        let incoming = stored.incoming(&also_to, work.redelivered, &annotations);
        let incoming = Incoming { sent: work.sent, ..incoming };
        let from = stored.from;
        if !self.find_some(now, by, work, &Incoming { from, ..incoming }, fx) {
            return false;
        }
        let targets = &work.targets[..];
        let is_log = |key: QueueKey| self.queues.get(key.0).is_some_and(|it| it.options.is_log);
        // One message has one place in all logs, which come first.
        let logs = targets[work.next..].iter().take_while(|(key, _)| is_log(*key)).count();
        let most = self.options.limits.queues_at_once.div_ceil(PARTS).max(logs);
        let end = targets.len().min(work.next + most);
        let part = targets.get(work.next..end).unwrap_or_default();
        let is_there = |(key, number): &&(QueueKey, u64)| {
            self.queues.get(key.0).is_some_and(|queue| queue.number == *number)
        };
        let there: Vec<QueueKey> = part.iter().filter(is_there).map(|(key, _)| *key).collect();
        work.next = end;
        let placed = work.body_bytes * part.len() as u64;
        if self.cannot_store(incoming.content.persistent, &there) {
            work.taken.refused = Some(Unwanted::NotStored);
        } else if !there.is_empty() {
            let taken = self.place(now, &incoming, &there, work.wants_flush, fx);
            work.taken.position = work.taken.position.max(taken.position);
            work.taken.refused = work.taken.refused.or(taken.refused);
            work.taken.queues += taken.queues;
        }
        let is_done = end == work.targets.len();
        let placed = if is_done { work.outstanding } else { placed.min(work.outstanding) };
        work.outstanding -= placed;
        self.agenda.wide.placed(work.vhost, placed);
        is_done
    }

    /// A repetition of a publish that is under way has come: it is confirmed or refused as that is.
    #[cold]
    pub(crate) fn await_publish(&mut self, slot: u32, publish: &Publish<'_>, once: PublishNumber) {
        let channel = &self.clients.channels[slot];
        let (id, vhost) = (channel.id, channel.vhost);
        self.storage.publish_number = Some(PublishNumber { is_repetition: true, ..once });
        let (extent, then) = (Extent::of(0, true, false), Then::Confirm(Some(id)));
        let incoming = Incoming::of(publish);
        self.place_wide(Some(id.connection), vhost, &incoming, extent, false, then);
    }

    fn end_placing<F: Effects>(&mut self, now: Time, mut work: ToQueues, fx: &mut F) {
        let is_lost = work.undecided.is_some_and(|it| !it.is_heard) && work.targets.is_empty();
        let is_letter = matches!(work.then, Then::Leave(_));
        self.counters.unroutable += u64::from(is_lost && !is_letter);
        let comes_back = is_lost && work.undecided.is_some_and(|it| it.mandatory);
        if let Some(once) = work.once.filter(|once| !once.is_repetition) {
            self.end_publish_once(once, !comes_back, &mut work.taken, fx);
        }
        match work.then {
            Then::Nothing | Then::Confirm(None) => {}
            Then::Confirm(Some(channel)) => {
                let Some(slot) = self.channel_slot(channel) else { return };
                let mut taken = work.taken;
                if comes_back && self.explains_confirms(slot) {
                    taken.refused = Some(Unwanted::Unroutable);
                } else if comes_back {
                    let stored = work.message.stored();
                    let (annotations, also_to) = (stored.annotations(0), stored.also_to());
                    let incoming = stored.incoming(&also_to, false, &annotations);
                    self.counters.returned += 1;
                    fx.return_unroutable(channel, &incoming.view());
                }
                self.count_confirm(slot, taken, fx);
            }
            Then::Leave(load) => self.end_wide_letter(now, load, is_lost, fx),
            Then::EndDelay(key) => self.end_wide_delayed(now, key, fx),
        }
    }
}
