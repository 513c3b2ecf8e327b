//! Exchanges, queues and bindings on request: declared, deleted, bound.

use crate::channel::Channel;
use crate::engine::Engine;
use crate::foundation::deferred_drop::drop_elsewhere;
use crate::interface::limits::{check_arguments, check_name};
use crate::interface::refusal::refuse;
use crate::queue::Queue;
use crate::routing::bindings::Terms;
use crate::routing::vhost::Vhost;
use crate::routing::{Change, QueueKey, Router};
use crate::storage::record::{BindingRecord, Record};
use crate::{
    Binding, BindingTarget, Bound, ConnectionId, Declared, Effects, Mismatch, QueueOptions,
    QueueType, Refusal, RefusalKind, Reply, Request, Time,
};
use std::ops::Range;
use std::sync::Arc;

/// Ranges and counts of a queue from which on another thread drops them.
const DROPPED_ELSEWHERE: usize = 1_024;

impl Engine {
    pub(crate) fn change_topology<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        request: Request,
        fx: &mut F,
    ) -> Result<Reply, Refusal> {
        let vhost = self.clients.channels[slot].vhost;
        let connection = self.clients.channels[slot].id.connection;
        self.begin_change(connection, vhost, &request)?;
        match request {
            Request::DeclareExchange { name, options: None } => {
                self.router(vhost).exchange(&name)?;
                Ok(Reply::Done)
            }
            Request::DeclareExchange { name, options: Some(options) } => {
                let change = self.router(vhost).declare_exchange(&name, &options)?;
                self.lead_declared_exchange(vhost, &name);
                let vhost_name = self.vhost_name(vhost);
                let (vhost_name, by) = (vhost_name.as_str(), &*self.user_of(connection));
                let record =
                    Record::ExchangeDeclared { vhost: vhost_name, name: &name, options, by };
                self.record_change(vhost, &change, &record, fx);
                Ok(Reply::Done)
            }
            Request::DeleteExchange { name, if_unused } => {
                let change = self.router(vhost).delete_exchange(&name, if_unused)?;
                let vhost_name = self.vhost_name(vhost);
                let record = Record::ExchangeDeleted { vhost: &vhost_name, name: &name };
                self.record_change(vhost, &change, &record, fx);
                Ok(Reply::Done)
            }
            Request::DeclareQueue { name, options: Some(options) }
                if self.router(vhost).queue(&name).is_none() =>
            {
                self.create_queue(now, slot, name, options, fx)
            }
            Request::DeclareQueue { name, options } => {
                self.redeclare_queue(now, slot, name, options.as_ref())
            }
            Request::DeleteQueue { name, if_unused, if_empty } => {
                let queue_slot = match self.queue_for(slot, &name) {
                    Err(refusal) if refusal.kind == RefusalKind::NotFound => {
                        return Ok(Reply::Messages(0));
                    }
                    found => found?,
                };
                self.check_not_owned(queue_slot)?;
                self.check_not_shared(queue_slot)?;
                self.check_delete(queue_slot, if_unused, if_empty)?;
                Ok(Reply::Messages(self.delete_queue(queue_slot, fx)))
            }
            Request::Bind(binding) => {
                self.check_target(slot, &binding.target)?;
                check_arguments(&binding.arguments)?;
                self.check_topic_owner(connection, vhost, &binding.source)?;
                self.bind(connection, vhost, binding, fx)
            }
            Request::Unbind(binding) => {
                // A missing target has no bindings.
                match self.check_target(slot, &binding.target) {
                    Err(refusal) if refusal.kind != RefusalKind::NotFound => Err(refusal),
                    _ => self.unbind(vhost, binding, fx),
                }
            }
            _ => unreachable!("only requests about topology come here"),
        }
    }

    /// Whether a queue is there that a channel might send to; `None`: this is not the shard with the queues.
    #[must_use]
    pub fn has_queue(&self, id: crate::ChannelId, name: &str) -> Option<bool> {
        if self.is_away() {
            return None;
        }
        let slot = self.channel_slot(id)?;
        Some(self.vhost_of(slot).router.queue(name).is_some())
    }

    fn router(&mut self, vhost: u32) -> &mut Router {
        &mut self.topology.vhosts[vhost].router
    }

    /// The connection's user is who declares what comes next in a virtual host. Refused: what would make it
    /// hold more memory, where it holds too much.
    fn begin_change(
        &mut self,
        connection: ConnectionId,
        vhost: u32,
        request: &Request,
    ) -> Result<(), Refusal> {
        let by = self.declarer(connection);
        let router = self.router(vhost);
        router.tally.by = by;
        let is_there = match request {
            Request::DeclareExchange { name, options: Some(_) } => router.exchange(name).is_ok(),
            Request::Bind(binding) => router.is_bound(binding),
            _ => true,
        };
        if is_there { Ok(()) } else { self.check_may_hold_more(connection) }
    }

    /// A connection's user; the empty name is the host's own.
    pub(crate) fn user_of(&self, connection: ConnectionId) -> Arc<str> {
        self.clients.user(connection).cloned().unwrap_or_default()
    }

    fn vhost_name(&self, vhost: u32) -> String {
        self.topology.vhosts[vhost].name.clone()
    }

    /// Records a change, where it is one that survives a restart, and the exchanges that went with
    /// it.
    fn record_change<F: Effects>(
        &mut self,
        vhost: u32,
        change: &Change,
        record: &Record<'_>,
        fx: &mut F,
    ) {
        if change.changed && change.durable {
            self.append_record(record, fx);
        }
        self.end_change(vhost, change, fx);
    }

    // ---- bindings ----

    pub(crate) fn bind<F: Effects>(
        &mut self,
        connection: ConnectionId,
        vhost: u32,
        binding: Binding,
        fx: &mut F,
    ) -> Result<Reply, Refusal> {
        let Binding { source, target, key, .. } = &binding;
        let change = self.router(vhost).bind(source, target, key, Terms::of(&binding))?;
        let (vhost_name, by) = (self.vhost_name(vhost), self.user_of(connection));
        let record = BindingRecord::of(&vhost_name, &binding);
        self.record_change(vhost, &change, &Record::Bound { binding: record, by: &by }, fx);
        if change.changed {
            self.own_queue_bound(&binding, vhost, fx);
        }
        Ok(Reply::Done)
    }

    pub(super) fn unbind<F: Effects>(
        &mut self,
        vhost: u32,
        binding: Binding,
        fx: &mut F,
    ) -> Result<Reply, Refusal> {
        let Binding { source, target, key, .. } = &binding;
        let change = self.router(vhost).unbind(source, target, key, Terms::of(&binding))?;
        let vhost_name = self.vhost_name(vhost);
        let record = BindingRecord::of(&vhost_name, &binding);
        self.record_change(vhost, &change, &Record::Unbound(record), fx);
        if change.changed {
            self.own_queue_unbound(&binding, vhost, false, fx);
        }
        Ok(Reply::Done)
    }

    /// Bindings of a queue that another connection has to itself are that connection's matter.
    fn check_target(&self, slot: u32, target: &BindingTarget) -> Result<(), Refusal> {
        match target {
            BindingTarget::Queue(name) => self.queue_for(slot, name).map(|_| ()),
            BindingTarget::Exchange(_) => Ok(()),
        }
    }

    // ---- queues ----

    /// The slot of a queue that the channel may use.
    pub(crate) fn queue_for(&self, channel: u32, name: &str) -> Result<u32, Refusal> {
        let router = &self.vhost_of(channel).router;
        let Some(QueueKey(queue_slot)) = router.queue(name) else {
            return Err(router.no_queue(name));
        };
        let connection = self.clients.channels[channel].id.connection;
        if self.queues[queue_slot].owner.is_some_and(|owner| owner != connection) {
            refuse!(ResourceLocked, "queue '{name}' is exclusive to another connection");
        }
        Ok(queue_slot)
    }

    /// Declares a queue that is there, or asks for one.
    fn redeclare_queue(
        &mut self,
        now: Time,
        slot: u32,
        name: String,
        options: Option<&QueueOptions>,
    ) -> Result<Reply, Refusal> {
        // A responder may ask whether the requester still waits.
        if options.is_none() && self.vhost_of(slot).inboxes.contains_key(&name) {
            return Ok(Reply::Queue { name, messages: 0, consumers: 1 });
        }
        let queue_slot = self.queue_for(slot, &name)?;
        let queue = &self.queues[queue_slot];
        if options.is_some_and(|options| options.exclusive != queue.options.exclusive) {
            refuse!(ResourceLocked, "queue '{name}' was declared with another value of exclusive");
        }
        if let Some(option) = options.and_then(|options| queue.declared().difference(options)) {
            let (declared, vhost) = (Declared::Queue, self.vhost_name(queue.vhost));
            return Err(Refusal::of_mismatch(Mismatch { declared, name, vhost, option }));
        }
        let (messages, consumers) = (queue.ready, queue.consumers.len() as u32);
        self.queue_used(now, queue_slot);
        Ok(Reply::Queue { name, messages, consumers })
    }

    pub(crate) fn create_queue<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        name: String,
        options: QueueOptions,
        fx: &mut F,
    ) -> Result<Reply, Refusal> {
        let Channel { id, vhost, .. } = self.clients.channels[slot];
        self.check_queue_options(&name, &options)?;
        self.check_queue_room(vhost, &name)?;
        let by = &*self.user_of(id.connection);
        self.access.check_room_of(by, &name)?;
        self.check_may_hold_more(id.connection)?;
        let number = self.queues.next_number();
        let mut queue = Queue::new(number, vhost, name.clone(), options);
        queue.owner = queue.options.exclusive.then_some(id.connection);
        queue.by = self.declarer(id.connection);
        self.check_kept(queue.durable)?;
        if queue.durable {
            let vhost_name = self.vhost_name(vhost);
            let options = queue.options.clone();
            let vhost = vhost_name.as_str();
            let record = Record::QueueDeclared { number, vhost, name: &name, options, by };
            self.append_record(&record, fx);
        }
        if queue.options.queue_type == QueueType::Quorum {
            fx.lacks_copies(&self.topology.vhosts[vhost].name, &name);
        }
        let owner = queue.owner.and_then(|owner| self.clients.connection_mut(owner));
        if let Some(owner) = owner {
            owner.exclusive.insert(number);
        }
        let queue_slot = self.add_queue(queue);
        self.queue_used(now, queue_slot);
        Ok(Reply::Queue { name, messages: 0, consumers: 0 })
    }

    /// With a failed journal nothing is done on request that a restart would undo.
    pub(crate) fn check_kept(&self, durable: bool) -> Result<(), Refusal> {
        self.storage.state.check_kept(durable)
    }

    /// Refuses what no queue can be declared with.
    pub(crate) fn check_queue_options(
        &self,
        name: &str,
        options: &QueueOptions,
    ) -> Result<(), Refusal> {
        let limits = &self.options.limits;
        check_name("a queue", name)?;
        // Dead letters carry both: what does not fit could not be stored with them.
        let QueueOptions { dead_letter_exchange, dead_letter_routing_key, .. } = options;
        for name in [dead_letter_exchange, dead_letter_routing_key].into_iter().flatten() {
            check_name("a dead-letter exchange or routing key", name)?;
        }
        check_arguments(&options.other)?;
        if options.message_ttl.max(options.expires).is_some_and(|ttl| ttl > limits.ttl_max) {
            let most = limits.ttl_max.as_secs();
            refuse!(LimitExceeded, "a time to live of more than {most} seconds");
        }
        Ok(())
    }

    /// Refuses another queue in a virtual host that is full.
    pub(crate) fn check_queue_room(&self, vhost: u32, name: &str) -> Result<(), Refusal> {
        let limits = &self.options.limits;
        let Vhost { name: vhost, queues, .. } = &self.topology.vhosts[vhost];
        if *queues >= limits.queues_max {
            refuse!(LimitExceeded, "more than {} queues in a virtual host", limits.queues_max);
        }
        let most = self.access.vhost_quota(vhost).get(Bound::Queues);
        if let Some(most) = most.filter(|most| *queues as u64 >= *most) {
            let what = format!("cannot declare queue '{name}' in vhost '{vhost}'");
            refuse!(LimitExceeded, "{what}: queue limit in vhost '{vhost}' ({most}) is reached");
        }
        Ok(())
    }

    /// A queue is gone: its user may declare another one, and nobody finds its subscription. Logs are not
    /// declared by anybody.
    pub(crate) fn forget_declarer(&mut self, queue: &Queue) {
        let is_log = queue.options.is_log;
        self.access.queue_gone(self.definitions.name(queue.by), is_log);
        self.topology.vhosts[queue.vhost].queues -= usize::from(!is_log);
        if let Some(subscription) = &queue.subscription {
            self.subscriptions.forget(queue.vhost, subscription, queue.number);
        }
        if let Some(shared) = &queue.shared {
            self.topology.vhosts[queue.vhost].interest.unshare(&shared.group);
        }
    }

    /// Takes a queue in, under the number it has, as one of who declared it.
    pub(crate) fn add_queue(&mut self, mut queue: Queue) -> u32 {
        let slot = self.queues.next_slot();
        let vhost = &mut self.topology.vhosts[queue.vhost];
        let is_log = queue.options.is_log;
        let stored = self.access.queue_declared(self.definitions.name(queue.by), is_log);
        vhost.policies.lead(&mut queue);
        queue.bytes.count_in(&vhost.stored, &stored);
        vhost.router.queue_added(&queue.name, QueueKey(slot), queue.durable);
        vhost.queues += usize::from(!is_log);
        vhost.router.tally.came(queue.by, queue.definition_bytes());
        self.definitions.take(&mut vhost.router.tally);
        self.queues.insert(queue)
    }

    fn check_delete(&self, slot: u32, if_unused: bool, if_empty: bool) -> Result<(), Refusal> {
        let Queue { name, ready, consumers, durable, .. } = &self.queues[slot];
        if if_unused && !consumers.is_empty() {
            refuse!(PreconditionFailed, "queue '{name}' has consumers");
        }
        if if_empty && *ready > 0 {
            refuse!(PreconditionFailed, "queue '{name}' holds {ready} messages");
        }
        self.check_kept(*durable)
    }

    /// Drops everything that is ready in a queue, without a record; its memory and references are given
    /// back over the next turns, as [`crate::queue::reclaim::Departures`] numbers them: where it `waits`, not
    /// before [`crate::queue::reclaim::Departures::let_go`].
    pub(crate) fn drop_messages(&mut self, slot: u32, waits: bool) -> Range<u64> {
        let queue = &mut self.queues[slot];
        queue.ready = 0;
        queue.bytes.clear_ready();
        self.storage.resident -= std::mem::take(&mut queue.resident);
        let settled = std::mem::take(&mut queue.settled_in_pages);
        let requeued = std::mem::take(&mut queue.requeued_in_pages);
        if settled.len() + requeued.len() > DROPPED_ELSEWHERE {
            drop_elsewhere((settled, requeued));
        }
        if let Some(filtered) = &mut queue.filtered {
            filtered.forget_all();
        }
        if let Some(groups) = &mut queue.groups {
            groups.forget_all();
        }
        if let Some(notes) = &mut queue.notes {
            notes.all_left();
        }
        let departures = &mut self.agenda.departures;
        let first = departures.next();
        for lane in queue.lanes.take() {
            departures.add(queue.number, queue.durable, lane, waits);
        }
        first..departures.next()
    }
}
