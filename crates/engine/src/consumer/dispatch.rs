//! From queues to consumers: which of them can take a message, and handing it out.

use crate::channel::Channel;
use crate::engine::{Clients, Engine};
use crate::interface::limits::MESSAGE_BYTES;
use crate::queue::Takers;
use crate::queue::entry::Entry;
use crate::queue::lane::Front;
use crate::{
    Annotations, CancelReason, ConnectionId, Effects, GetAnswer, MessageView, Refusal, RefusalKind,
    Reply, StorageState, Time,
};

/// What all queues together hand out in one turn; the last of them may exceed it by its share.
const SERVED_BYTES_MAX: u64 = 2 << 20;
/// What looking at a queue counts for, in bytes, whether or not it hands out anything.
const LOOK_BYTES: u64 = 512;
/// The part of a queue's bytes in memory that a consumer may have there unsettled, where memory is half
/// full.
const UNSETTLED_PART_SCARCE: u64 = 16;

/// What keeps a consumer from taking a message.
pub(crate) enum HeldUp {
    /// Its own credit is used up.
    Itself,
    /// Its channel's credit, flow or connection.
    Channel,
}

/// What came of looking for a message that some consumers do not get.
pub(super) enum Step {
    /// One was handed out, or has expired; what that counts for.
    Done(u64),
    /// One has to be read first.
    Waits,
    /// There is none before what the queue serves otherwise.
    None,
}

impl Engine {
    /// Whether [`Engine::dispatch`] has more to do: the host then calls it again without
    /// sleeping.
    #[must_use]
    pub fn has_work(&self) -> bool {
        !self.agenda.dirty.is_empty()
            || !self.agenda.starting.is_empty()
            || !self.agenda.settling.is_empty()
            || !self.agenda.purges.is_empty()
            || !self.agenda.departures.is_empty()
            || !self.storage.arrivals.is_empty()
            || !self.agenda.unpaged.is_empty()
            || !self.agenda.wide.is_empty()
            || self.agenda.has_leaving()
            || !self.agenda.policy_reviews.is_empty()
            || self.pubsub.has_work()
            || self.has_something_to_show()
            || self.logs.has_work() && self.storage.state == StorageState::Ready
    }

    /// Whether settles that clients asked for are still being carried out, or messages have not reached all
    /// of their very many recipients.
    #[must_use]
    pub fn is_settling(&self) -> bool {
        !self.agenda.settling.is_empty() || !self.agenda.wide.is_empty()
    }

    /// Ends a turn: records settles, sends confirms, and serves consumers that became able to
    /// take messages. The host calls it at the end of each turn, so that replies and deliveries
    /// of one turn keep their order.
    pub fn dispatch<F: Effects>(&mut self, now: Time, fx: &mut F) {
        self.unasked_steps = 0;
        for slot in std::mem::take(&mut self.agenda.starting) {
            self.start_consumer(slot);
        }
        if !self.agenda.settling.is_empty() {
            self.settle_some(now, fx);
        }
        if !self.agenda.purges.is_empty() {
            self.purge_some(fx);
        }
        if !self.agenda.departures.is_empty() {
            self.give_back_some(self.options.limits.given_back_at_once, fx);
        }
        if !self.storage.arrivals.is_empty() {
            self.take_some_in(now, fx);
        }
        if !self.agenda.unpaged.is_empty() {
            self.page_some_out(fx);
        }
        if self.agenda.has_leaving() {
            self.unasked_steps = 0;
            self.let_some_leave(now, fx);
        }
        if !self.agenda.policy_reviews.is_empty() {
            self.unasked_steps = 0;
            self.review_some_policies(now, fx);
        }
        if !self.agenda.wide.is_empty() {
            self.fan_out_some(now, fx);
        }
        self.settle_some_subscribers(fx);
        self.serve_logs(now, fx);
        self.serve_queues(now, fx);
        if !self.agenda.draining.is_empty() {
            self.answer_drains(fx);
        }
        if self.has_something_to_show() {
            self.show_some(now, fx);
        }
        self.record_settled(fx);
        self.tell_confirms(fx);
        self.tell_subscribers(fx);
        self.unasked_steps = 0;
    }

    /// Goes on with what ends over several turns.
    #[cold]
    fn let_some_leave<F: Effects>(&mut self, now: Time, fx: &mut F) {
        self.end_some_consumers(now, fx);
        self.delete_ownerless(fx);
        self.unbind_some(fx);
        self.delete_some_vhosts(fx);
        for _ in 0..self.agenda.overlong.len() {
            if self.has_much_unasked() {
                break;
            }
            let Some(slot) = self.agenda.overlong.pop_front() else { break };
            if let Some(queue) = self.queues.get_mut(slot) {
                queue.is_overlong = false;
                self.agenda.overdue.push(slot);
                self.run_overdue(now, fx);
            }
        }
    }

    /// Serves queues, as many as there is time for. The rest is served in the next turn, before
    /// queues that were marked meanwhile.
    fn serve_queues<F: Effects>(&mut self, now: Time, fx: &mut F) {
        let mut dirty = std::mem::take(&mut self.agenda.dirty);
        let (mut looked_at, mut bytes) = (0, 0);
        while bytes < SERVED_BYTES_MAX
            && let Some(slot) = dirty.get(looked_at)
        {
            looked_at += 1;
            bytes += LOOK_BYTES;
            if let Some(queue) = self.queues.get_mut(*slot) {
                queue.is_dirty = false;
                if queue.is_served() {
                    bytes += self.serve_queue(now, *slot, fx);
                }
            }
        }
        dirty.drain(..looked_at);
        dirty.append(&mut self.agenda.dirty);
        self.agenda.dirty = dirty;
    }

    /// Hands out messages of one queue to consumers that can take them, at most its share;
    /// returns what they count for in bytes.
    pub(crate) fn serve_queue<F: Effects>(&mut self, now: Time, slot: u32, fx: &mut F) -> u64 {
        let Some(queue) = self.queues.get(slot) else { return 0 };
        let per_second = self.options.limits.backlog_bytes_per_second;
        let (before, bytes_max) = (queue.counters.delivered, queue.share.bytes_max(per_second));
        let mut bytes = 0;
        while bytes < bytes_max
            && let Some(handed) = self.hand_out_next(now, slot, fx)
        {
            bytes += handed;
        }
        if self.queues.get(slot).is_some_and(|queue| queue.filtered.is_some()) {
            bytes += self.serve_filtered(now, slot, bytes_max.saturating_sub(bytes), fx);
        }
        self.own_queue_served(slot);
        let Some(queue) = self.queues.get(slot) else { return bytes };
        let messages = queue.counters.delivered - before;
        if queue.groups.is_some() || queue.filtered.is_some() {
            self.count_known(slot);
        }
        self.rest_after(now, slot, messages, bytes);
        self.wake_replays_into(slot);
        if bytes >= bytes_max {
            self.mark_dirty(slot);
            self.refill(slot, fx);
        }
        bytes
    }

    /// Hands out what is next, or lets it expire; returns what that counts for. `None`: there is nothing,
    /// or no consumer can take it.
    fn hand_out_next<F: Effects>(&mut self, now: Time, slot: u32, fx: &mut F) -> Option<u64> {
        let queue = self.queues.get(slot).filter(|queue| queue.holds == 0)?;
        if queue.notes.is_some() {
            match self.hand_out_barred(now, slot, fx) {
                Step::Done(count) => return Some(count),
                Step::Waits => return None,
                Step::None => {}
            }
        }
        let queue = self.queues.get(slot)?;
        let (expires, bytes, is_cold, seq) = match queue.front() {
            Front::Entry(entry) if !entry.is_unreadable() => {
                (entry.expires, entry.bytes, entry.is_cold(), entry.seq)
            }
            Front::Page(page) if !page.is_unreadable() => {
                self.refill(slot, fx);
                return None;
            }
            Front::Entry(_) | Front::Page(_) => {
                self.halt(slot, fx);
                return None;
            }
            Front::Empty => {
                while let Some(get) = self.take_get(slot) {
                    fx.reply(get.channel, Ok(Reply::Empty));
                }
                return None;
            }
        };
        let wants = queue.is_served() && queue.wants_front();
        if expires <= now {
            self.expire_head(now, slot, fx);
            return Some(MESSAGE_BYTES);
        }
        if is_cold || !wants {
            self.refill(slot, fx);
            return None;
        }
        if !queue.gets.is_empty() {
            let entry = self.queues[slot].pop().expect("its front is an entry");
            self.answer_get(now, slot, entry, fx);
            return Some(MESSAGE_BYTES + u64::from(bytes));
        }
        if self.queues[slot].groups.is_some() {
            return self.hand_out_grouped(now, slot, fx);
        }
        if self.queues[slot].shared.is_some() {
            return self.hand_over_next(now, slot, bytes, fx);
        }
        if self.queues[slot].own.is_some() {
            if !self.may_hand_out(slot, seq) {
                return None;
            }
            if self.drops_forbidden(slot, fx) {
                return Some(MESSAGE_BYTES);
            }
        }
        let Some(taker) = self.taker(slot, None, bytes, fx) else {
            self.refill(slot, fx);
            return None;
        };
        let entry = self.queues[slot].pop().expect("its front is an entry");
        self.hand_out_stored(now, taker, entry, fx);
        Some(MESSAGE_BYTES + u64::from(bytes))
    }

    /// The consumer whose turn it is to take a message of `bytes`, if any can: of a group, or (`None`) of
    /// those that take all messages.
    #[inline]
    pub(crate) fn taker<F: Effects>(
        &mut self,
        slot: u32,
        group: Option<u32>,
        bytes: u32,
        fx: &F,
    ) -> Option<u32> {
        loop {
            let Takers { able, turn } = self.queues.get_mut(slot)?.takers(group)?;
            let first = *able.first()?;
            let index = if able.len() == 1 {
                0
            } else {
                let highest = self.clients.consumers[first].priority;
                let equals = able
                    .partition_point(|other| self.clients.consumers[*other].priority == highest);
                if *turn >= equals {
                    *turn = 0;
                }
                *turn
            };
            let candidate = able[index];
            let held_up = self.held_up(candidate, bytes, fx);
            let Takers { able, turn } = self.queues.get_mut(slot)?.takers(group)?;
            match held_up {
                None => {
                    *turn = index + 1;
                    return Some(candidate);
                }
                Some(HeldUp::Itself) => {
                    able.remove(index);
                    self.clients.consumers[candidate].is_able = false;
                }
                Some(HeldUp::Channel) => self.hold_up(slot, group, index, candidate),
            }
            let Takers { able, turn } = self.queues.get_mut(slot)?.takers(group)?;
            if able.is_empty() {
                // The first that is able is next: a channel changes the order of its consumers.
                *turn = 0;
            }
        }
    }

    /// No consumer of the candidate's channel can take a message of the queue.
    pub(super) fn hold_up(&mut self, slot: u32, group: Option<u32>, index: usize, candidate: u32) {
        let Clients { consumers, channels, .. } = &mut self.clients;
        let channel = consumers[candidate].channel;
        channels[channel].is_held_up = true;
        let Some(Takers { able, turn }) = self.queues[slot].takers(group) else { return };
        let mut before = 0;
        let mut at = 0;
        able.retain(|other| {
            let consumer = &mut consumers[*other];
            let stays = consumer.channel != channel;
            consumer.is_able = stays;
            before += usize::from(!stays && at < index);
            at += 1;
            stays
        });
        *turn = index - before;
    }

    /// Why a consumer cannot take a message of `bytes`.
    #[inline]
    pub(crate) fn held_up<F: Effects>(&self, slot: u32, bytes: u32, fx: &F) -> Option<HeldUp> {
        let consumer = self.clients.consumers.get(slot)?;
        if consumer.delivered >= consumer.up_to {
            return Some(HeldUp::Itself);
        }
        let Some(channel) = self.clients.channels.get(consumer.channel) else {
            return Some(HeldUp::Itself);
        };
        if !channel.flow || !fx.has_room(channel.id.connection) {
            return Some(HeldUp::Channel);
        }
        // Presettled messages use no credit; what others have used of the channel's holds them up, too.
        if !channel.account.allows(bytes) {
            return Some(HeldUp::Channel);
        }
        if consumer.presettled {
            return None;
        }
        if !consumer.account.allows(bytes) {
            return Some(HeldUp::Itself);
        }
        self.has_all_it_may(channel).then_some(HeldUp::Channel)
    }

    /// Whether a channel has as many deliveries unsettled as any may have.
    #[inline]
    pub(super) fn has_all_it_may(&self, channel: &Channel) -> bool {
        channel.unsettled.len() >= self.options.limits.unsettled_max as usize
    }

    /// A consumer may be able to take messages (again): lets its queue know.
    pub(crate) fn reconsider(&mut self, slot: u32) {
        let Some(consumer) = self.clients.consumers.get_mut(slot) else { return };
        if consumer.is_able || !consumer.is_started {
            return;
        }
        let (queue_slot, priority, group) = (consumer.queue, consumer.priority, consumer.group);
        let Some(queue) = self.queues.get_mut(queue_slot) else { return };
        let is_second = queue.options.single_active && queue.consumers.first() != Some(&slot);
        if is_second || queue.holds > 0 {
            return;
        }
        self.clients.consumers[slot].is_able = true;
        let queue = &mut self.queues[queue_slot];
        let Some(Takers { able, .. }) = queue.takers(group) else { return };
        let index =
            able.partition_point(|other| self.clients.consumers[*other].priority >= priority);
        able.insert(index, slot);
        if let (Some(group), Some(filtered)) = (group, &mut queue.filtered) {
            filtered.wake(group);
        }
        if queue.ready > 0 {
            self.mark_dirty(queue_slot);
        }
    }

    /// What held a whole channel up may be over.
    #[inline]
    pub(crate) fn reconsider_channel(&mut self, slot: u32) {
        if self.clients.channels.get(slot).is_some_and(|channel| channel.is_held_up) {
            self.reconsider_all(slot);
        }
    }

    fn reconsider_all(&mut self, slot: u32) {
        let Some(channel) = self.clients.channels.get_mut(slot) else { return };
        channel.is_held_up = false;
        let id = channel.id;
        self.wake_those_shown(id);
        let Some(channel) = self.clients.channels.get_mut(slot) else { return };
        // A different one is first each time, so that none starves.
        channel.consumers.rotate();
        let consumers = std::mem::take(&mut channel.consumers);
        for consumer in consumers.iter() {
            self.reconsider(consumer);
            self.wake_member(consumer);
        }
        if let Some(channel) = self.clients.channels.get_mut(slot) {
            channel.consumers = consumers;
        }
    }

    /// Resumes deliveries to a connection whose output has room again.
    pub fn writable(&mut self, connection: ConnectionId) {
        let Some(connection) = self.clients.connection(connection) else { return };
        let slots: Vec<u32> = connection.channels.iter().map(|(_, slot)| *slot).collect();
        for slot in slots {
            self.reconsider_channel(slot);
        }
    }

    /// Hands out an entry that was ready, and whose message is in memory.
    pub(super) fn hand_out_stored<F: Effects>(
        &mut self,
        now: Time,
        taker: u32,
        mut entry: Entry,
        fx: &mut F,
    ) {
        let blob = entry.message.take().expect("only messages in memory are handed out");
        let stored = blob.stored();
        let slot = self.clients.consumers[taker].queue;
        let annotations = self.annotations_of(slot, &stored, &entry);
        let view = MessageView { ttl: entry.ttl_left(now, &stored), ..stored.view(&annotations) };
        let (tag, is_settled) = self.send(taker, entry.seq, entry.redelivered, &view, fx);
        self.storage.resident -= blob.cost();
        if !is_settled
            && !(entry.is_stored() && (self.is_half_full() || self.leaves_to_journal(taker)))
        {
            self.storage.resident += blob.cost();
            entry.message = Some(blob);
        }
        self.after_sending(now, taker, entry, tag, fx);
    }

    /// Whether a consumer has so much unsettled that it does not keep up.
    #[inline]
    pub(crate) fn holds_much(&self, taker: u32) -> bool {
        self.holds_more_than(self.options.limits.queue_resident_bytes_max, taker)
    }

    /// Whether memory keeps nothing of what a consumer is handed now: its unsettled messages may take up
    /// as much memory as a queue, or a small part of that where memory is half full.
    #[inline]
    pub(crate) fn leaves_to_journal(&self, taker: u32) -> bool {
        let most = self.options.limits.queue_resident_bytes_max;
        let most = if self.is_half_full() { most / UNSETTLED_PART_SCARCE } else { most };
        self.storage.state == StorageState::Ready && self.holds_more_than(most, taker)
    }

    fn holds_more_than(&self, bytes: u64, taker: u32) -> bool {
        self.clients.consumers[taker].account.bytes > bytes
    }

    fn is_half_full(&self) -> bool {
        self.storage.resident > self.options.limits.resident_bytes_max / 2
    }

    /// Answers the first waiting get with an entry of the queue, which is in memory.
    pub(crate) fn answer_get<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        entry: Entry,
        fx: &mut F,
    ) {
        let get = self.take_get(slot).expect("the caller saw one");
        let channel_slot = self.channel_slot(get.channel).expect("gets end with their channels");
        let queue = &mut self.queues[slot];
        let messages_left = queue.ready;
        let dropped = std::mem::take(&mut queue.dropped);
        queue.counters.delivered += 1;
        self.counters.delivered += 1;
        let blob = entry.message.clone().expect("only messages in memory are handed out");
        let stored = blob.stored();
        let annotations = Annotations { dropped, ..self.annotations_of(slot, &stored, &entry) };
        let tag = self.clients.channels[channel_slot].take_tag();
        fx.answer_get(&GetAnswer {
            channel: get.channel,
            tag,
            redelivered: entry.redelivered,
            messages_left,
            message: MessageView { ttl: entry.ttl_left(now, &stored), ..stored.view(&annotations) },
        });
        self.note_handed_out(slot, &entry);
        if get.presettled {
            self.counters.accepted += 1;
            self.queues[slot].counters.accepted += 1;
            self.forget(slot, entry, fx);
        } else {
            self.keep_unsettled(now, channel_slot, slot, None, tag, entry);
        }
        fx.reply(get.channel, Ok(Reply::Got { messages: messages_left }));
    }

    /// The next message cannot be read back: refuses waiting gets and cancels all consumers.
    #[cold]
    fn halt<F: Effects>(&mut self, slot: u32, fx: &mut F) {
        let Some(queue) = self.queues.get_mut(slot) else { return };
        let Some(position) = queue.unreadable() else { return };
        let (segment, offset) = (position.segment(), position.0 & u64::from(u32::MAX));
        let text = format!(
            "queue '{}' has stopped at a message that cannot be read back from segment {segment} \
             at {offset}: purge or delete it",
            queue.name
        );
        while let Some(get) = self.take_get(slot) {
            let refusal = Refusal::new(RefusalKind::StorageUnavailable, text.as_str());
            fx.reply(get.channel, Err(refusal));
        }
        let queue = &mut self.queues[slot];
        if queue.stopped_at.replace(position) != Some(position) {
            self.counters.queue_stops += 1;
        }
        // An auto-delete queue stays: its messages may be saved yet.
        queue.able.clear();
        queue.turn = 0;
        let consumers = std::mem::take(&mut queue.consumers);
        self.cancel_consumers(consumers, CancelReason::QueueFailed);
    }
}
