//! Subscriptions begin and end.

use super::Subscription;
use super::credit::Account;
use crate::control::requests::MADE_UP_LETTERS;
use crate::engine::Engine;
use crate::interface::limits::check_name;
use crate::{Effects, Refusal, RefusalKind, Reply, SessionId, Subscribe, Time};

impl Engine {
    pub(crate) fn subscribe(
        &mut self,
        now: Time,
        id: SessionId,
        slot: u32,
        subscribe: Subscribe,
    ) -> Result<Reply, Refusal> {
        let queue_slot = self.queue_for(id, slot, &subscribe.queue)?;
        let name = if subscribe.name.is_empty() {
            format!("amq.ctag-{}", self.random.name(MADE_UP_LETTERS))
        } else {
            subscribe.name
        };
        self.check_subscription(slot, queue_slot, &name, subscribe.exclusive)?;
        let incarnation = self.next_incarnation;
        self.next_incarnation = self.next_incarnation.wrapping_add(1);
        let subscription = self.subscriptions.insert(Subscription {
            incarnation,
            session: slot,
            queue: queue_slot,
            name: name.clone(),
            presettled: subscribe.presettled,
            exclusive: subscribe.exclusive,
            priority: subscribe.priority,
            account: Account { credit: subscribe.credit, ..Account::default() },
            is_able: false,
            is_started: false,
        });
        self.sessions
            .get_mut(slot)
            .expect("a session's slot is in use")
            .subscriptions
            .push(subscription);
        let queue = self.queues.get_mut(queue_slot).expect("it was found just now");
        queue.subscriptions.push(subscription);
        queue.was_used = true;
        self.starting.push(subscription);
        self.queue_used(now, queue_slot);
        Ok(Reply::Subscribed { name })
    }

    fn check_subscription(
        &self,
        slot: u32,
        queue_slot: u32,
        name: &str,
        exclusive: bool,
    ) -> Result<(), Refusal> {
        let most = self.options.limits.subscriptions_max;
        let session = self.sessions.get(slot).expect("a session's slot is in use");
        if session.subscriptions.len() >= most {
            let text = format!("more than {most} subscriptions in one session");
            return Err(Refusal::new(RefusalKind::LimitExceeded, text));
        }
        check_name("a subscription", name)?;
        let mut names =
            session.subscriptions.iter().filter_map(|slot| self.subscriptions.get(*slot));
        let is_inbox = session.inbox.as_ref().is_some_and(|inbox| inbox.name == name);
        if is_inbox || names.any(|other| other.name == name) {
            let text = format!("subscription '{name}' exists in this session");
            return Err(Refusal::new(RefusalKind::NotAllowed, text));
        }
        let queue = self.queues.get(queue_slot).expect("the caller looked it up");
        let mut others =
            queue.subscriptions.iter().filter_map(|slot| self.subscriptions.get(*slot));
        let is_taken = others.any(|other| other.exclusive);
        if is_taken || (exclusive && !queue.subscriptions.is_empty()) {
            let text = format!("queue '{}' has another, or an exclusive, subscription", queue.name);
            return Err(Refusal::new(RefusalKind::AccessRefused, text));
        }
        Ok(())
    }

    /// Its request is answered: deliveries may begin.
    pub(crate) fn start_subscription(&mut self, slot: u32) {
        if let Some(subscription) = self.subscriptions.get_mut(slot) {
            subscription.is_started = true;
            self.reconsider(slot);
        }
    }

    pub(crate) fn unsubscribe<F: Effects>(&mut self, now: Time, slot: u32, name: &str, fx: &mut F) {
        let session = self.sessions.get_mut(slot).expect("a session's slot is in use");
        if let Some(inbox) = session.inbox.take_if(|inbox| inbox.name == name) {
            let vhost = session.vhost;
            return self.remove_inbox(vhost, &inbox);
        }
        let found = session.subscriptions.iter().copied().find(|subscription| {
            self.subscriptions.get(*subscription).is_some_and(|other| other.name == name)
        });
        if let Some(subscription) = found {
            self.end_subscription(now, subscription, fx);
        }
    }

    /// A subscription ends by its session's wish; the queue may go with it.
    pub(crate) fn end_subscription<F: Effects>(&mut self, now: Time, slot: u32, fx: &mut F) {
        let Some(subscription) = self.subscriptions.remove(slot) else { return };
        if let Some(session) = self.sessions.get_mut(subscription.session) {
            session.subscriptions.retain(|other| *other != slot);
        }
        let queue_slot = subscription.queue;
        let Some(queue) = self.queues.get_mut(queue_slot) else { return };
        queue.subscriptions.retain(|other| *other != slot);
        queue.able.retain(|other| *other != slot);
        queue.turn = 0;
        if queue.subscriptions.is_empty() {
            if queue.options.auto_delete {
                self.delete_queue(queue_slot, fx);
            } else {
                self.queue_used(now, queue_slot);
            }
        } else if queue.options.single_active {
            let next = queue.subscriptions[0];
            self.reconsider(next);
        }
    }

    /// A subscription ends because its queue goes, or can go on no more.
    pub(crate) fn cancel_subscription<F: Effects>(&mut self, slot: u32, fx: &mut F) {
        let Some(subscription) = self.subscriptions.remove(slot) else { return };
        if let Some(session) = self.sessions.get_mut(subscription.session) {
            session.subscriptions.retain(|other| *other != slot);
            fx.cancelled(session.id, &subscription.name);
        }
    }
}
