//! Requests about named subscriptions: opened, found, deleted.

use super::{NamedSubscription, queue_name, text};
use crate::engine::Engine;
use crate::interface::limits::{SUBSCRIPTION_KEYS_MAX, SUBSCRIPTION_NAME_BYTES_MAX};
use crate::interface::refusal::refuse;
use crate::queue::Queue;
use crate::routing::Change;
use crate::routing::bindings::Terms;
use crate::storage::record::{BindingRecord, Record};
use crate::{
    Binding, ConnectionId, Effects, Lifetime, LifetimeEnd, OpenSubscription, QueueOptions, Refusal,
    RefusalKind, Reply, Request, SubscriptionInfo, Time,
};

/// When a subscription that is not durable goes.
const VOLATILE: Lifetime = Lifetime { until: LifetimeEnd::Unused, drains: false };

impl Engine {
    pub(crate) fn request_subscription<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        request: Request,
        fx: &mut F,
    ) -> Result<Reply, Refusal> {
        match request {
            Request::OpenSubscription(open) => self.open_subscription(now, slot, *open, fx),
            Request::DeleteSubscription { owner, name } => {
                let queue = self.subscription_named(slot, owner.as_deref(), &name)?;
                if self.is_node_used(queue) {
                    let what = text(owner.as_deref(), &name);
                    refuse!(ResourceLocked, "{what} is in use: end its consumers first");
                }
                self.check_kept(true)?;
                self.delete_queue(queue, fx);
                Ok(Reply::Done)
            }
            Request::FindSubscription { owner, name } => {
                let queue = self.subscription_named(slot, owner.as_deref(), &name)?;
                let queue = &self.queues[queue];
                let Some(subscription) = &queue.subscription else {
                    return Err(Refusal::new(RefusalKind::Internal, "not a named subscription"));
                };
                Ok(Reply::Subscription(Box::new(SubscriptionInfo {
                    queue: queue.name.clone(),
                    source: subscription.source.clone(),
                    keys: subscription.keys.clone(),
                    filter: subscription.filter.clone(),
                    not_from: subscription.not_from.clone(),
                    shared: subscription.shared,
                    messages: queue.ready,
                    consumers: queue.consumers.len() as u32,
                })))
            }
            _ => unreachable!("only requests about named subscriptions come here"),
        }
    }

    /// The slot of the queue of a durable named subscription.
    fn subscription_named(
        &self,
        slot: u32,
        owner: Option<&str>,
        name: &str,
    ) -> Result<u32, Refusal> {
        let vhost = self.clients.channels[slot].vhost;
        let found = self.subscriptions.find(vhost, true, owner, name);
        let Some(queue) = found.and_then(|number| self.queues.slot_of(number)) else {
            let vhost = &self.topology.vhosts[vhost].name;
            refuse!(NotFound, "no durable {} in vhost '{vhost}'", text(owner, name));
        };
        Ok(queue)
    }

    fn open_subscription<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        mut open: OpenSubscription,
        fx: &mut F,
    ) -> Result<Reply, Refusal> {
        check_names(&open)?;
        let consumer = open.consumer.take();
        if let Some(consumer) = &consumer {
            self.check_place(slot, consumer)?;
        }
        open.keys.sort_unstable();
        open.keys.dedup();
        let channel = &self.clients.channels[slot];
        let (vhost, connection) = (channel.vhost, channel.id.connection);
        self.check_topic_owner(connection, vhost, &open.source)?;
        let found = self.subscriptions.find(vhost, open.durable, open.owner.as_deref(), &open.name);
        let found = found.and_then(|number| self.queues.slot_of(number));
        let queue = match found {
            Some(queue) if !self.is_replaced(queue, &open)? => queue,
            found => self.create_subscription(slot, open, found, fx)?,
        };
        self.queue_used(now, queue);
        self.hold_opening(slot, queue, consumer);
        let Queue { ref name, ready: messages, ref consumers, .. } = self.queues[queue];
        Ok(Reply::Queue { name: name.clone(), messages, consumers: consumers.len() as u32 })
    }

    /// Whether a subscription gives way to one that is to be opened instead of being joined. Refused: it may
    /// neither.
    fn is_replaced(&self, queue: u32, open: &OpenSubscription) -> Result<bool, Refusal> {
        let Some(found) = &self.queues[queue].subscription else { return Ok(false) };
        let what = found.text();
        if found.shared != open.shared {
            let (is, asked) = match found.shared {
                true => ("shared", "one that is not"),
                false => ("not shared", "a shared one"),
            };
            refuse!(
                PreconditionFailed,
                "{what} is {is}: it cannot be opened as {asked} before it is deleted"
            );
        }
        let is_same = found.source == open.source
            && found.keys == open.keys
            && found.filter == open.filter
            && found.not_from == open.not_from;
        let is_used = self.is_node_used(queue);
        if is_used && !is_same {
            refuse!(
                ResourceLocked,
                "{what} is in use with another source, keys or selector: end its consumers first"
            );
        }
        if is_used && !found.shared {
            refuse!(ResourceLocked, "{what} is in use by another consumer");
        }
        Ok(!is_same)
    }

    /// Makes a named subscription, in place of the one in the slot `replaced`, as one group of records.
    /// Refused: nothing has changed.
    fn create_subscription<F: Effects>(
        &mut self,
        slot: u32,
        open: OpenSubscription,
        replaced: Option<u32>,
        fx: &mut F,
    ) -> Result<u32, Refusal> {
        let channel = &self.clients.channels[slot];
        let (vhost, connection) = (channel.vhost, channel.id.connection);
        let queue_name = queue_name(self.names(), open.durable, open.owner.as_deref(), &open.name);
        let (subscription, options) = NamedSubscription::of(open);
        let durable = subscription.durable;
        self.check_kept(durable)?;
        self.check_may_hold_more(connection)?;
        self.check_subscription(connection, vhost, &queue_name, &options, &subscription, replaced)?;
        let by = self.declarer(connection);
        let router = &mut self.topology.vhosts[vhost].router;
        router.tally.by = by;
        if replaced.is_some() {
            router.give_up_name(&queue_name);
        }
        let queue = Queue {
            by,
            lifetime: (!durable).then(|| Box::new(VOLATILE.into())),
            subscription: Some(Box::new(subscription)),
            ..Queue::new(self.queues.next_number(), vhost, queue_name, options)
        };
        let queue = self.add_queue(queue);
        let change = match self.bind_subscription(vhost, queue) {
            Ok(change) => change,
            Err(refusal) => {
                self.take_queue_away(queue, fx);
                if let Some(replaced) = replaced {
                    let Queue { vhost, name, .. } = &self.queues[replaced];
                    self.topology.vhosts[*vhost].router.take_name_back(name, replaced);
                }
                return Err(refusal);
            }
        };
        self.record_subscription(queue, replaced, fx);
        self.end_change(vhost, &change, fx);
        if let Some(replaced) = replaced {
            self.take_queue_away(replaced, fx);
        }
        let Queue { number, vhost, ref subscription, .. } = self.queues[queue];
        if let Some(subscription) = subscription {
            self.subscriptions.insert(vhost, subscription, number);
        }
        Ok(queue)
    }

    /// Refuses what cannot be a named subscription.
    fn check_subscription(
        &self,
        connection: ConnectionId,
        vhost: u32,
        queue_name: &str,
        options: &QueueOptions,
        subscription: &NamedSubscription,
        replaced: Option<u32>,
    ) -> Result<(), Refusal> {
        self.check_queue_options(queue_name, options)?;
        let router = &self.topology.vhosts[vhost].router;
        let source = &subscription.source;
        if !router.exchange(source)?.durable && subscription.durable {
            refuse!(
                PreconditionFailed,
                "{} is durable and exchange '{source}' is not: it would get nothing after a restart",
                subscription.text()
            );
        }
        if replaced.is_some() {
            return Ok(());
        }
        if router.queue(queue_name).is_some() {
            refuse!(
                PreconditionFailed,
                "{} needs the queue name '{queue_name}', which another queue has",
                subscription.text()
            );
        }
        self.check_queue_room(vhost, queue_name)?;
        self.access.check_room_of(&self.user_of(connection), queue_name)
    }

    /// Binds the queue in a slot as its subscription says.
    fn bind_subscription(&mut self, vhost: u32, queue: u32) -> Result<Change, Refusal> {
        let Queue { name, subscription, .. } = &self.queues[queue];
        let router = &mut self.topology.vhosts[vhost].router;
        let mut change = Change::default();
        for binding in subscription.iter().flat_map(|it| it.bindings(name)) {
            let Binding { source, target, key, .. } = &binding;
            change = router.bind(source, target, key, Terms::of(&binding))?;
        }
        Ok(change)
    }

    /// Records a new subscription, and that the one in the slot `replaced` is gone, all or nothing.
    fn record_subscription<F: Effects>(&mut self, slot: u32, replaced: Option<u32>, fx: &mut F) {
        let queue = &self.queues[slot];
        let Some(subscription) = queue.subscription.as_ref().filter(|_| queue.durable) else {
            return;
        };
        let mut records: Vec<Vec<u8>> = Vec::new();
        let mut add = |record: Record<'_>| {
            let mut bytes = Vec::new();
            record.write(&mut bytes);
            records.push(bytes);
        };
        let (vhost, by) =
            (&*self.topology.vhosts[queue.vhost].name, self.definitions.name(queue.by));
        let (number, name) = (queue.number, queue.name.as_str());
        if let Some(replaced) = replaced {
            add(Record::QueueDeleted { number: self.queues[replaced].number });
        }
        let options = queue.declared().clone();
        add(Record::QueueDeclared { number, vhost, name, options, by });
        for binding in subscription.bindings(name) {
            add(Record::Bound { binding: BindingRecord::of(vhost, &binding), by });
        }
        add(Record::Subscribed { queue: number, subscription: subscription.record() });
        fx.reserve(records.iter().map(Vec::len).sum(), records.len());
        for record in records {
            self.storage.changed_at = Some(fx.append(&[&record], true));
        }
    }
}

impl NamedSubscription {
    /// What was asked for, and what its queue is made with.
    fn of(open: OpenSubscription) -> (NamedSubscription, QueueOptions) {
        let OpenSubscription { owner, name, source, keys, durable, shared, .. } = open;
        let OpenSubscription { filter, not_from, options, .. } = open;
        let (owner, name) = (owner.map(Into::into), name.into());
        let options = QueueOptions { durable, exclusive: false, auto_delete: false, ..options };
        let openings = 0;
        let subscription = NamedSubscription {
            owner,
            name,
            durable,
            shared,
            source,
            keys,
            filter,
            not_from,
            openings,
        };
        (subscription, options)
    }
}

fn check_names(open: &OpenSubscription) -> Result<(), Refusal> {
    let most = SUBSCRIPTION_NAME_BYTES_MAX;
    let others = open.owner.iter().chain(&open.not_from).chain(&open.consumer);
    for name in others.chain([&open.name]) {
        if name.len() > most {
            let bytes = name.len();
            refuse!(
                LimitExceeded,
                "a subscription's name, or its client's or consumer's, of {bytes} bytes is longer than {most}"
            );
        }
    }
    if open.keys.len() > SUBSCRIPTION_KEYS_MAX {
        refuse!(LimitExceeded, "more than {SUBSCRIPTION_KEYS_MAX} keys in one subscription");
    }
    Ok(())
}
