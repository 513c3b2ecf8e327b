//! Consumers begin and end.

use super::Consumer;
use super::credit::Account;
use crate::engine::Engine;
use crate::interface::limits::check_name;
use crate::interface::refusal::refuse;
use crate::{Consume, Effects, Refusal, Reply, Time};

impl Engine {
    pub(crate) fn consume(
        &mut self,
        now: Time,
        slot: u32,
        consume: Consume,
    ) -> Result<Reply, Refusal> {
        let queue_slot = self.queue_for(slot, &consume.queue)?;
        let name = if consume.name.is_empty() {
            self.make_up(self.names().consumer_prefix)
        } else {
            consume.name.clone()
        };
        self.check_consumer(slot, queue_slot, &name, &consume)?;
        self.check_may_hold_more(self.clients.channels[slot].id.connection)?;
        if consume.browses {
            self.browse(now, slot, queue_slot, name.clone())?;
            return Ok(Reply::Consuming { name });
        }
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
            settle_timeout: consume.settle_timeout,
            account: Account { credit: consume.credit, ..Account::default() },
            is_able: false,
            is_started: false,
        });
        self.clients.channels[slot].consumers.push(consumer);
        let queue = &mut self.queues[queue_slot];
        queue.consumers.push(consumer);
        queue.was_used = true;
        self.agenda.starting.push(consumer);
        self.queue_used(now, queue_slot);
        Ok(Reply::Consuming { name })
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
        if let Some(consumer) = self.clients.consumers.get_mut(slot) {
            consumer.is_started = true;
            self.reconsider(slot);
        }
    }

    pub(crate) fn cancel<F: Effects>(&mut self, now: Time, slot: u32, name: &str, fx: &mut F) {
        let channel = &mut self.clients.channels[slot];
        if let Some(inbox) = channel.inbox.take_if(|inbox| inbox.name == name) {
            let vhost = channel.vhost;
            return self.remove_inbox(vhost, &inbox);
        }
        let id = channel.id;
        if self.end_browser(id, name) {
            return;
        }
        if let Some(consumer) = self.consumer_named(slot, name) {
            self.end_consumer(now, consumer, fx);
        }
    }

    /// The consumer of that name in a channel.
    fn consumer_named(&self, channel: u32, name: &str) -> Option<u32> {
        let mut consumers = self.clients.channels[channel].consumers.iter().copied();
        consumers.find(|consumer| self.clients.consumers[*consumer].name == name)
    }

    /// A consumer ends by its channel's wish; the queue may go with it.
    pub(crate) fn end_consumer<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        fx: &mut F,
    ) -> Option<Consumer> {
        let consumer = self.clients.consumers.remove(slot)?;
        if let Some(channel) = self.clients.channels.get_mut(consumer.channel) {
            channel.consumers.retain(|other| *other != slot);
        }
        let queue_slot = consumer.queue;
        let Some(queue) = self.queues.get_mut(queue_slot) else { return Some(consumer) };
        queue.consumers.retain(|other| *other != slot);
        queue.able.retain(|other| *other != slot);
        queue.turn = 0;
        if queue.consumers.is_empty() {
            if queue.options.auto_delete {
                self.delete_queue(queue_slot, fx);
            } else {
                self.queue_used(now, queue_slot);
            }
        } else if queue.options.single_active {
            let next = queue.consumers[0];
            self.reconsider(next);
        }
        Some(consumer)
    }

    /// A consumer ends because its queue goes, or can go on no more. Its channel hears of it at the end of
    /// the turn: after the answer, where it deletes the queue itself.
    pub(crate) fn cancel_consumer(&mut self, slot: u32) {
        let Some(consumer) = self.clients.consumers.remove(slot) else { return };
        if let Some(channel) = self.clients.channels.get_mut(consumer.channel) {
            channel.consumers.retain(|other| *other != slot);
        }
        self.tell_cancelled(consumer.channel, consumer.name);
    }

    /// A channel hears at the end of the turn that a consumer was cancelled.
    pub(crate) fn tell_cancelled(&mut self, channel: u32, consumer: String) {
        if let Some(channel_there) = self.clients.channels.get_mut(channel) {
            channel_there.cancelled.push(consumer);
            self.wait_to_tell(channel);
        }
    }
}
