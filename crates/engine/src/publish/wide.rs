//! Messages to very many queues or subscribers: they reach some in each turn, and all in order.
//!
//! What a client sends next waits until its message has reached all, so that a publisher's messages keep
//! their order and it is the publisher whom a wide fan-out costs time. Recipients that come meanwhile get
//! nothing of it.

use crate::engine::Engine;
use crate::publish::fanouts::{Then, ToQueues, Work};
use crate::publish::taken::Taken;
use crate::pubsub::ToSubscribers;
use crate::queue::stored::Incoming;
use crate::routing::vhost::Way;
use crate::routing::{Keys, QueueKey};
use crate::{ConnectionId, Effects, Time};

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

    /// The number of the last message that began to reach very many, for [`Engine::is_wide_done`].
    #[inline]
    #[must_use]
    pub fn last_wide(&self) -> u64 {
        self.agenda.wide.begun
    }

    /// Whether the message with that number, and every one before it, has reached all.
    #[must_use]
    pub fn is_wide_done(&self, number: u64) -> bool {
        self.agenda.wide.all().all(|fanout| fanout.number > number)
    }

    /// Puts a message into very many queues, about `width` of them, over several turns: those that its
    /// exchange leads to when its turn comes.
    pub(crate) fn place_wide(
        &mut self,
        by: Option<ConnectionId>,
        vhost: u32,
        incoming: &Incoming<'_>,
        width: usize,
        wants_flush: bool,
        then: Then,
    ) {
        let mut room = std::mem::take(&mut self.scratch.blob);
        room.clear();
        let message = incoming.encode(&mut room).to_blob();
        self.scratch.keep_blob(room);
        let is_letter = matches!(then, Then::Leave(_) | Then::EndDelay(_));
        let work = ToQueues {
            vhost,
            body_bytes: incoming.content.body.len() as u64,
            outstanding: width as u64 * incoming.content.body.len() as u64,
            message,
            redelivered: incoming.redelivered,
            targets: None,
            next: 0,
            wants_flush,
            taken: Taken::default(),
            then,
        };
        self.agenda.wide.begin(by, is_letter, Work::Queues(Box::new(work)));
        self.work_budget.spend();
    }

    /// Hands a direct message to very many subscribers over several turns.
    pub(crate) fn hand_out_wide(&mut self, by: Option<ConnectionId>, work: ToSubscribers) {
        self.agenda.wide.begin(by, false, Work::Subscribers(Box::new(work)));
        self.work_budget.spend();
    }

    /// Goes on with messages to very many, each in turn.
    #[cold]
    pub(crate) fn fan_out_some<F: Effects>(&mut self, now: Time, fx: &mut F) {
        let subscribers = self.options.limits.subscribers_at_once.div_ceil(PARTS);
        for _ in 0..PARTS {
            let Some(mut fanout) = self.agenda.wide.active.pop_front() else { return };
            let is_done = match &mut fanout.work {
                Work::Queues(work) => self.place_some(now, work, fx),
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

    /// The queues that a message goes to.
    fn wide_targets(&mut self, vhost: u32, incoming: &Incoming<'_>) -> Vec<(QueueKey, u64)> {
        let keys = Keys { routing_key: incoming.routing_key, also_to: incoming.also_to };
        let way = Way { exchange: incoming.exchange, keys };
        let mut targets = Vec::new();
        self.find_queues(vhost, way, &incoming.content, &mut targets);
        if !incoming.annotations.deaths.is_empty() {
            self.leave_cycles(incoming.annotations, &mut targets);
        }
        let number = |key: QueueKey| Some((key, self.queues.get(key.0)?.number));
        targets.into_iter().filter_map(number).collect()
    }

    /// Puts a message into the next queues; says whether all have it.
    fn place_some<F: Effects>(&mut self, now: Time, work: &mut ToQueues, fx: &mut F) -> bool {
        let stored = work.message.stored();
        let (annotations, also_to) = (stored.annotations(0), stored.also_to());
        let incoming = stored.incoming(&also_to, work.redelivered, &annotations);
        if work.targets.is_none() {
            work.targets = Some(self.wide_targets(work.vhost, &incoming));
        }
        let targets = work.targets.as_deref().unwrap_or_default();
        let end = targets.len().min(work.next + self.options.limits.queues_at_once.div_ceil(PARTS));
        let part = targets.get(work.next..end).unwrap_or_default();
        let is_there = |(key, number): &&(QueueKey, u64)| {
            self.queues.get(key.0).is_some_and(|queue| queue.number == *number)
        };
        let there: Vec<QueueKey> = part.iter().filter(is_there).map(|(key, _)| *key).collect();
        work.next = end;
        let placed = work.body_bytes * part.len() as u64;
        if !there.is_empty() {
            let taken = self.place(now, &incoming, &there, work.wants_flush, fx);
            work.taken.position = work.taken.position.max(taken.position);
            work.taken.refused |= taken.refused;
            work.taken.queues += taken.queues;
        }
        let is_done = end == targets.len();
        let placed = if is_done { work.outstanding } else { placed.min(work.outstanding) };
        work.outstanding -= placed;
        self.agenda.wide.placed(work.vhost, placed);
        is_done
    }

    fn end_placing<F: Effects>(&mut self, now: Time, work: ToQueues, fx: &mut F) {
        match work.then {
            Then::Nothing | Then::Confirm(None) => {}
            Then::Confirm(Some(channel)) => {
                if let Some(slot) = self.channel_slot(channel) {
                    self.count_confirm(slot, work.taken, fx);
                }
            }
            Then::Leave(load) => self.end_wide_letter(now, load, fx),
            Then::EndDelay(key) => self.end_wide_delayed(now, key, fx),
        }
    }
}
