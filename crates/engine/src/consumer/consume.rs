//! Consumers begin and end.

use super::credit::Account;
use super::deferred_settle::{Fate, TakerKey};
use super::{Consumer, NO_CHANNEL};
use crate::engine::{Clients, Engine};
use crate::interface::limits::check_name;
use crate::interface::refusal::refuse;
use crate::{CancelReason, Consume, Effects, Refusal, Reply, Time};
use std::collections::BTreeMap;

/// Consumers of a channel that closes which end before others get their turn.
const CONSUMERS_AT_ONCE: usize = 256;
/// Consumers that are looked at for one, in as much time as finding a queue takes.
const LOOKED_AT_ONCE: u64 = 4;

impl Engine {
    pub(crate) fn consume(
        &mut self,
        now: Time,
        slot: u32,
        consume: Consume,
    ) -> Result<Reply, Refusal> {
        let queue_slot = self.queue_for(slot, &consume.queue)?;
        if !consume.browses {
            self.check_taking(self.clients.channels[slot].id, queue_slot)?;
            self.check_not_shared(queue_slot)?;
        }
        let name = if consume.name.is_empty() {
            self.make_up(self.names().consumer_prefix)
        } else {
            consume.name.clone()
        };
        self.check_consumer(slot, queue_slot, &name, &consume)?;
        let others = self.queues[queue_slot].consumers.len();
        self.count_consumers(slot, others);
        self.check_may_hold_more(self.clients.channels[slot].id.connection)?;
        let filter = consume.filter.filter(|filter| !filter.selector().selects_all());
        let filter_bytes = filter.as_ref().map_or(0, |filter| filter.memory_bytes() as u64);
        if consume.browses {
            let is_granted = consume.is_granted;
            self.browse(now, slot, queue_slot, name.clone(), is_granted, filter)?;
            return Ok(Reply::Consuming { name });
        }
        let group = filter.as_ref().map(|filter| self.join_group(queue_slot, filter));
        let group = group.transpose()?;
        let incarnation = self.clients.next_incarnation;
        self.clients.next_incarnation = self.clients.next_incarnation.wrapping_add(1);
        let consumer = self.clients.consumers.insert(Consumer {
            incarnation,
            channel: slot,
            queue: queue_slot,
            name: name.clone(),
            presettled: consume.presettled,
            exclusive: consume.exclusive,
            priority: consume.priority,
            group,
            filter_bytes,
            settle_timeout: consume.settle_timeout,
            account: Account { credit: consume.credit, ..Account::default() },
            is_granted: consume.is_granted,
            up_to: if consume.is_granted { 0 } else { u64::MAX },
            delivered: 0,
            drains: false,
            on_close: consume.on_close,
            on_loss: consume.on_loss,
            is_able: false,
            is_started: false,
        });
        let Clients { channels, consumers, .. } = &mut self.clients;
        let channel = &mut channels[slot];
        let name_of = |slot| &*consumers[slot].name;
        channel.consumers.add(consumer, name_of, || self.random.next());
        channel.filter_bytes += filter_bytes;
        let queue = &mut self.queues[queue_slot];
        queue.consumers.push(consumer);
        queue.was_used = true;
        self.agenda.starting.push(consumer);
        self.queue_used(now, queue_slot);
        self.release_opening(slot, queue_slot, &name);
        Ok(Reply::Consuming { name })
    }

    /// Counts the work of looking at the consumers of a channel, and at `others`.
    fn count_consumers(&mut self, channel: u32, others: usize) {
        let count = (self.clients.channels[channel].consumers.len() + others) as u64;
        self.work_budget.count_routing(count / LOOKED_AT_ONCE);
    }

    fn check_consumer(
        &self,
        slot: u32,
        queue_slot: u32,
        name: &str,
        consume: &Consume,
    ) -> Result<(), Refusal> {
        let most = self.options.limits.consumers_max;
        let channel = &self.clients.channels[slot];
        if channel.consumers.len() >= most {
            refuse!(LimitExceeded, "more than {most} consumers in one channel");
        }
        check_name("a consumer", name)?;
        self.check_place(slot, name)?;
        let is_inbox = channel.inbox.as_ref().is_some_and(|inbox| inbox.name == name);
        if is_inbox
            || self.consumer_named(slot, name).is_some()
            || self.has_browser(channel.id, name)
        {
            refuse!(NotAllowed, "consumer '{name}' exists in this channel");
        }
        // Browsers take nothing from anybody.
        if consume.browses {
            return Ok(());
        }
        let (queue, exclusive) = (&self.queues[queue_slot], consume.exclusive);
        if queue.own.is_some() && (consume.filter.is_some() || !queue.consumers.is_empty()) {
            refuse!(
                PreconditionFailed,
                "queue '{}' of a session has one consumer, which takes all messages",
                queue.name
            );
        }
        if let Some(subscription) = queue.subscription.as_ref().filter(|it| !it.shared)
            && !queue.consumers.is_empty()
        {
            refuse!(ResourceLocked, "{} is in use by another consumer", subscription.text());
        }
        let is_taken = queue.consumers.iter().any(|slot| self.clients.consumers[*slot].exclusive);
        if is_taken || (exclusive && !queue.consumers.is_empty()) {
            let name = &queue.name;
            refuse!(AccessRefused, "queue '{name}' has another, or an exclusive, consumer");
        }
        if exclusive && queue.options.single_active {
            let name = &queue.name;
            refuse!(
                AccessRefused,
                "queue '{name}' has a single active consumer: none is exclusive"
            );
        }
        Ok(())
    }

    /// Its request is answered: deliveries may begin.
    pub(crate) fn start_consumer(&mut self, slot: u32) {
        let consumer = self.clients.consumers.get_mut(slot);
        if let Some(consumer) = consumer.filter(|consumer| consumer.channel != NO_CHANNEL) {
            consumer.is_started = true;
            self.reconsider(slot);
            self.wake_member(slot);
        }
    }

    /// Ends a consumer, a browser or the inbox of that name; `returns`: with its unsettled deliveries.
    pub(crate) fn cancel<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        name: &str,
        returns: bool,
        fx: &mut F,
    ) {
        let channel = &mut self.clients.channels[slot];
        if let Some(inbox) = channel.inbox.take_if(|inbox| inbox.name == name) {
            let vhost = channel.vhost;
            return self.remove_inbox(vhost, &inbox);
        }
        self.end_consumer_named(now, slot, name, returns.then_some(Fate::Closed), fx);
    }

    /// Ends a consumer or a browser; with a fate also its unsettled deliveries.
    pub(crate) fn end_consumer_named<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        name: &str,
        fate: Option<Fate>,
        fx: &mut F,
    ) {
        let id = self.clients.channels[slot].id;
        if self.end_browser(id, name) {
            return;
        }
        if let Some(consumer) = self.consumer_named(slot, name) {
            let others = self.queues.get(self.clients.consumers[consumer].queue);
            self.count_consumers(slot, others.map_or(0, |queue| queue.consumers.len()));
            let ended = self.end_consumer(now, consumer, fx);
            if let (Some(Consumer { incarnation, queue, .. }), Some(fate)) = (ended, fate) {
                let taker = TakerKey { consumer, incarnation, queue };
                self.return_those_of(now, slot, taker, fate, fx);
            }
        }
    }

    /// The consumer of that name in a channel.
    pub(super) fn consumer_named(&self, channel: u32, name: &str) -> Option<u32> {
        let Clients { channels, consumers, .. } = &self.clients;
        channels[channel].consumers.find(name, |slot| &consumers[slot].name)
    }

    /// A consumer ends by its channel's wish; the queue may go with it.
    pub(crate) fn end_consumer<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        fx: &mut F,
    ) -> Option<Consumer> {
        let consumer = self.remove_consumer(slot)?;
        if let Some(channel) = self.clients.channels.get_mut(consumer.channel) {
            channel.consumers.remove(std::iter::once((slot, &*consumer.name)));
        }
        self.consumers_left(now, consumer.queue, fx);
        Some(consumer)
    }

    /// The consumers of a channel end that closes; in later turns, where they are too many. They get nothing
    /// more.
    pub(crate) fn end_consumers_of<F: Effects>(&mut self, now: Time, channel: u32, fx: &mut F) {
        let consumers = std::mem::take(&mut self.clients.channels[channel].consumers);
        let is_many = consumers.len() > CONSUMERS_AT_ONCE;
        for slot in consumers.iter() {
            if !is_many {
                self.end_consumer(now, slot, fx);
            } else if let Some(consumer) = self.clients.consumers.get_mut(slot) {
                (consumer.channel, consumer.is_started) = (NO_CHANNEL, false);
                self.agenda.ending.push_back((slot, consumer.incarnation));
            }
        }
    }

    /// Goes on to end the consumers of channels that have closed.
    #[cold]
    pub(crate) fn end_some_consumers<F: Effects>(&mut self, now: Time, fx: &mut F) {
        let count = self.agenda.ending.len().min(CONSUMERS_AT_ONCE);
        let mut queues = Vec::with_capacity(count);
        let ending: Vec<(u32, u32)> = self.agenda.ending.drain(..count).collect();
        for (slot, incarnation) in ending {
            let consumer = self.clients.consumers.get(slot);
            if consumer.is_some_and(|consumer| consumer.incarnation == incarnation) {
                queues.extend(self.remove_consumer(slot).map(|consumer| consumer.queue));
            }
        }
        queues.sort_unstable();
        queues.dedup();
        for queue in queues {
            self.consumers_left(now, queue, fx);
        }
    }

    fn remove_consumer(&mut self, slot: u32) -> Option<Consumer> {
        let consumer = self.clients.consumers.remove(slot)?;
        self.leave_group(consumer.queue, consumer.group, slot);
        let Consumer { queue, incarnation, account, .. } = &consumer;
        self.group_consumer_ended(*queue, slot, *incarnation, account.messages);
        if let Some(channel) = self.clients.channels.get_mut(consumer.channel) {
            channel.filter_bytes -= consumer.filter_bytes;
        }
        Some(consumer)
    }

    /// Some consumers of a queue have ended; the queue may go with them.
    fn consumers_left<F: Effects>(&mut self, now: Time, queue_slot: u32, fx: &mut F) {
        let Some(queue) = self.queues.get_mut(queue_slot) else { return };
        let is_there = |slot: &u32| self.clients.consumers.get(*slot).is_some();
        queue.consumers.retain(is_there);
        queue.able.retain(is_there);
        if let Some(notes) = &mut queue.notes {
            notes.consumers_left(|key| self.clients.has_consumer(key));
        }
        queue.turn = 0;
        if queue.consumers.is_empty() {
            if queue.options.auto_delete {
                self.delete_queue(queue_slot, fx);
            } else {
                self.queue_used(now, queue_slot);
                self.review_lifetime(now, queue_slot, fx);
            }
        } else if queue.options.single_active {
            let next = queue.consumers[0];
            self.reconsider(next);
        }
    }

    /// Consumers end because their queue goes, or can go on no more. Their channels hear of it at the end of
    /// the turn: after the answer, where one of them deletes the queue itself.
    pub(crate) fn cancel_consumers(&mut self, consumers: Vec<u32>, why: CancelReason) {
        let mut ended: BTreeMap<u32, Vec<(u32, String)>> = BTreeMap::new();
        for slot in consumers {
            let Some(Consumer { channel, name, .. }) = self.remove_consumer(slot) else { continue };
            ended.entry(channel).or_default().push((slot, name));
        }
        for (channel_slot, consumers) in ended {
            let Some(channel) = self.clients.channels.get_mut(channel_slot) else { continue };
            let places = &mut self.clients.places;
            consumers.iter().for_each(|(_, name)| places.release(channel.id, name));
            let gone = consumers.iter().map(|(slot, name)| (*slot, &**name));
            channel.consumers.remove(gone);
            channel.cancelled.extend(consumers.into_iter().map(|(_, name)| (name, why)));
            self.wait_to_tell(channel_slot);
        }
    }

    /// A channel hears at the end of the turn that a consumer was cancelled.
    pub(crate) fn tell_cancelled(&mut self, channel: u32, consumer: String, why: CancelReason) {
        if let Some(channel_there) = self.clients.channels.get_mut(channel) {
            self.clients.places.release(channel_there.id, &consumer);
            channel_there.cancelled.push((consumer, why));
            self.wait_to_tell(channel);
        }
    }
}
