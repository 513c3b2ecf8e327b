//! The queue of a session: it belongs to the session, and only the channel that holds that consumes from it.
//! [`super::places`] says what it hands out.

use super::places::OwnQueue;
use crate::consumer::deferred_settle::Fate;
use crate::engine::Engine;
use crate::interface::limits::{SESSION_PLACES_MAX, check_name};
use crate::interface::name::fitting_name;
use crate::interface::refusal::refuse;
use crate::queue::Queue;
use crate::routing::QueueKey;
use crate::storage::record::Record;
use crate::{
    BindingTarget, ChannelId, ClaimSession, Durability, Effects, Position, QueueOptions, Refusal,
    Request, Time,
};

/// Bytes of the records of a new session and its queue, texts not counted.
const BEGINNING_BYTES: usize = 1024;
/// Bytes that a number of a session's sets takes in a record, at most.
const NUMBER_BYTES_MAX: usize = 20;

/// What a queue has that a session owns or that sessions share, of what was asked for.
pub(super) fn of_sessions(options: QueueOptions, durable: bool) -> QueueOptions {
    QueueOptions {
        durable,
        exclusive: false,
        auto_delete: false,
        expires: None,
        priority_max: None,
        single_active: false,
        message_groups: false,
        durability: Durability::Flushed,
        delivery_limit: Some(u32::MAX),
        ..options
    }
}

impl Engine {
    /// Refuses a queue that a session cannot have. `found`: the session that is there.
    pub(super) fn check_own_queue(
        &self,
        id: ChannelId,
        found: Option<u32>,
        claim: &ClaimSession,
    ) -> Result<(), Refusal> {
        let Some(options) = &claim.queue else { return Ok(()) };
        let name = self.own_queue_name(&claim.name);
        self.check_queue_options(&name, options)?;
        check_name("a session's queue", &name)?;
        let has_queue = |slot: u32| self.queues.slot_of(self.sessions[slot].queue).is_some();
        if found.is_some_and(has_queue) {
            return Ok(());
        }
        let connection = self.clients.connection(id.connection);
        let vhost = connection.expect("channels end before their connection").vhost;
        if self.topology.vhosts[vhost].router.queue(&name).is_some() {
            refuse!(
                PreconditionFailed,
                "session '{}' needs the queue name '{name}', which another queue has",
                claim.name
            );
        }
        self.check_queue_room(vhost, &name)?;
        self.access.check_room_of(&self.user_of(id.connection), &name)?;
        self.check_may_hold_more(id.connection)
    }

    fn own_queue_name(&self, session: &str) -> String {
        fitting_name(&format!("{}{session}", self.names().session_queue_prefix)).into_owned()
    }

    /// Creates the queue of a session, which has none. It is stored if the session is.
    pub(super) fn create_own_queue<F: Effects>(
        &mut self,
        slot: u32,
        options: QueueOptions,
        fx: &mut F,
    ) {
        let session = &self.sessions[slot];
        let (vhost, of) = (session.vhost, session.number);
        let durable = session.outlives_restart();
        let name = self.own_queue_name(&session.name);
        let user = session.user.clone();
        let options = of_sessions(options, durable);
        let number = self.queues.next_number();
        self.sessions[slot].queue = number;
        if durable {
            let session = &self.sessions[slot];
            let texts = name.len() + 2 * session.name.len() + session.state.len() + 2 * user.len();
            let vhost = &self.topology.vhosts[vhost].name;
            let attributes = session.attributes.bytes() + session.will_bytes();
            let numbers = (session.received.len() + session.released.len()) * NUMBER_BYTES_MAX;
            fx.reserve(BEGINNING_BYTES + texts + 2 * vhost.len() + attributes + numbers, 2);
            let vhost = vhost.clone();
            let (name, options, by) = (name.as_str(), options.clone(), &*user);
            self.append_record(
                &Record::QueueDeclared { number, vhost: &vhost, name, options, by },
                fx,
            );
        }
        let mut queue = Queue::new(number, vhost, name, options);
        queue.by = self.definitions.declarer(&user);
        queue.own = Some(Box::new(OwnQueue::of(of)));
        self.add_queue(queue);
    }

    /// All records are replayed: the queue of a session learns whose it is.
    pub(super) fn own_queue_recovered(&mut self, slot: u32) {
        let (of, number) = (self.sessions[slot].number, self.sessions[slot].queue);
        match self.queues.numbered(number) {
            Some(queue) => {
                queue.own = Some(Box::new(OwnQueue::of(of)));
            }
            None => self.sessions[slot].queue = 0,
        }
    }

    /// The session that a queue belongs to.
    pub(crate) fn owner_of_queue(&self, queue: u32) -> Option<u32> {
        self.sessions.numbered(self.queues.get(queue)?.own.as_ref()?.session)
    }

    /// Refuses to take messages from a session's queue on a channel that does not hold the session, and what
    /// would upset the order of its places.
    pub(crate) fn check_taking(&self, id: ChannelId, queue: u32) -> Result<(), Refusal> {
        let Some(session) = self.owner_of_queue(queue) else { return Ok(()) };
        let session = &self.sessions[session];
        if session.holder == Some(id) {
            return Ok(());
        }
        refuse!(
            ResourceLocked,
            "queue '{}' belongs to session '{}', which this channel does not hold",
            self.queues[queue].name,
            session.name
        );
    }

    /// Refuses to delete a session's queue apart from the session.
    pub(crate) fn check_not_owned(&self, queue: u32) -> Result<(), Refusal> {
        let Some(session) = self.owner_of_queue(queue) else { return Ok(()) };
        refuse!(
            PreconditionFailed,
            "queue '{}' belongs to session '{}': end the session instead",
            self.queues[queue].name,
            self.sessions[session].name
        );
    }

    /// Whether a request is about the queue of a session that the channel holds: no right on that queue's
    /// name is needed.
    pub(crate) fn is_about_own_queue(&self, slot: u32, request: &Request) -> bool {
        let name = match request {
            Request::Bind(binding) | Request::Unbind(binding) => match &binding.target {
                BindingTarget::Queue(name) => name,
                BindingTarget::Exchange(_) => return false,
            },
            Request::Consume(consume) => &consume.queue,
            _ => return false,
        };
        let channel = &self.clients.channels[slot];
        let found = self.topology.vhosts[channel.vhost].router.queue(name);
        let session = found.and_then(|QueueKey(queue)| self.owner_of_queue(queue));
        session.is_some_and(|session| self.sessions[session].holder == Some(channel.id))
    }

    /// The channel that held a session does not hold it any more: it gets nothing more from the queue, and
    /// what it has unsettled of that goes back.
    pub(super) fn leave_own_queue<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        holder: ChannelId,
        fx: &mut F,
    ) {
        let Some(queue) = self.queues.slot_of(self.sessions[slot].queue) else { return };
        // One that has ended has given all back.
        let channel = self.channel_slot(holder);
        let is_there = |slot: &u32| self.clients.channels.get(*slot).is_some();
        let Some(channel) = channel.filter(is_there) else { return };
        for consumer in self.queues[queue].consumers.clone() {
            if self.clients.consumers[consumer].channel == channel {
                self.end_consumer(now, consumer, fx);
            }
        }
        self.take_handed_back(now, slot, channel, Fate::Closed, fx);
        self.return_those_of_queue(now, channel, queue, fx);
    }

    /// Whether a session's queue may hand out the message at a place, as far as the session is concerned.
    pub(crate) fn may_hand_out(&mut self, slot: u32, place: u64) -> bool {
        let Some(own) = &mut self.queues[slot].own else { return true };
        if !own.is_flushed(place) {
            return false;
        }
        if place < own.floor {
            // It came back.
            own.floor = place;
            return true;
        }
        if place - own.floor < SESSION_PLACES_MAX {
            return true;
        }
        if own.waits_for.is_some() {
            return false;
        }
        let first = self.first_place_in_use(slot).unwrap_or(place);
        let Some(own) = &mut self.queues[slot].own else { return true };
        own.floor = first;
        let may = place - first < SESSION_PLACES_MAX;
        own.waits_for = (!may).then_some(first);
        may
    }

    /// The first place of a session's queue that is in use.
    fn first_place_in_use(&self, queue: u32) -> Option<u64> {
        let session = &self.sessions[self.owner_of_queue(queue)?];
        let channel = session.holder.and_then(|holder| self.clients.channel(holder));
        let out = channel.into_iter().flat_map(|channel| channel.unsettled.iter());
        let out = out.filter(|(_, it)| it.queue == queue).map(|(_, it)| it.entry.seq);
        out.chain(session.released.first().copied()).min()
    }

    /// A place of a session's queue is in use no longer.
    #[cold]
    pub(crate) fn place_is_free(&mut self, slot: u32, place: u64) {
        let Some(own) = &mut self.queues[slot].own else { return };
        if own.waits_for == Some(place) {
            own.waits_for = None;
            self.mark_dirty(slot);
        }
    }

    /// The consumer that takes a message of `bytes` which comes into a session's queue while nothing waits.
    #[cold]
    pub(crate) fn taker_of_own<F: Effects>(
        &mut self,
        slot: u32,
        bytes: u32,
        fx: &F,
    ) -> Option<u32> {
        let queue = &self.queues[slot];
        let place = queue.next_seq;
        if queue.own.as_ref().is_some_and(|own| own.waits_for_flush)
            || !self.may_hand_out(slot, place)
        {
            return None;
        }
        self.taker(slot, None, bytes, fx)
    }

    /// From now on a session's queue hands out only what is flushed, or all. What it has is flushed with the
    /// request's own record.
    pub(super) fn set_flush_gate(&mut self, session: u32, waits: bool) {
        let Some(slot) = self.queues.slot_of(self.sessions[session].queue) else { return };
        let changed_at = self.storage.changed_at;
        let queue = &mut self.queues[slot];
        let is_durable = queue.durable;
        let Some(own) = &mut queue.own else { return };
        if own.waits_for_flush == waits || !is_durable {
            return;
        }
        own.waits_for_flush = waits;
        own.unflushed.clear();
        match changed_at.filter(|_| waits) {
            Some(position) => {
                own.unflushed.push_back((position, 0));
                self.agenda.unflushed.push(slot);
            }
            None => self.mark_dirty(slot),
        }
    }

    /// A message at a place of such a queue is in the record at `position`.
    #[cold]
    pub(crate) fn note_unflushed(&mut self, slot: u32, position: Position, place: u64) {
        let Some(own) = &mut self.queues[slot].own else { return };
        if own.unflushed.is_empty() {
            self.agenda.unflushed.push(slot);
        }
        own.unflushed.push_back((position, place));
    }

    /// Every record before `position` is flushed: queues that waited for it hand out more.
    #[cold]
    pub(crate) fn own_queues_flushed(&mut self, position: Position) {
        let mut waiting = std::mem::take(&mut self.agenda.unflushed);
        waiting.retain(|slot| {
            let Some(own) = self.queues.get_mut(*slot).and_then(|queue| queue.own.as_mut()) else {
                return false;
            };
            let before = own.unflushed.len();
            while own.unflushed.front().is_some_and(|(at, _)| *at < position) {
                own.unflushed.pop_front();
            }
            let (is_waiting, has_more) = (!own.unflushed.is_empty(), own.unflushed.len() < before);
            if has_more {
                self.mark_dirty(*slot);
            }
            is_waiting
        });
        waiting.append(&mut self.agenda.unflushed);
        self.agenda.unflushed = waiting;
    }
}
