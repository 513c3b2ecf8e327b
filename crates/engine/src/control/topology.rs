//! Exchanges, queues and bindings on request: declared, deleted, purged, bound.

use crate::engine::Engine;
use crate::interface::limits::{check_arguments, check_name};
use crate::queue::{Queue, difference};
use crate::routing::{Change, QueueKey, Router};
use crate::storage::record::{BindingRecord, Record};
use crate::{
    Binding, BindingTarget, ChannelId, Declared, Effects, ExchangeDeclaration, Mismatch,
    QueueDeclaration, QueueOptions, Refusal, RefusalKind, Reply, Request, StorageState, Time,
};

/// On which conditions a queue is deleted.
#[derive(Clone, Copy)]
struct DeleteOnly {
    if_unused: bool,
    if_empty: bool,
}

impl Engine {
    pub(crate) fn change_topology<F: Effects>(
        &mut self,
        now: Time,
        id: ChannelId,
        slot: u32,
        request: Request,
        fx: &mut F,
    ) -> Result<Reply, Refusal> {
        let vhost = self.clients.channels.get(slot).expect("a channel's slot is in use").vhost;
        match request {
            Request::DeclareExchange(declaration) => self.declare_exchange(vhost, &declaration, fx),
            Request::DeleteExchange { name, if_unused } => {
                let change = self.router(vhost).delete_exchange(&name, if_unused)?;
                let vhost_name = self.vhost_name(vhost);
                let record = Record::ExchangeDeleted { vhost: &vhost_name, name: &name };
                self.record_change(vhost, &change, &record, fx);
                Ok(Reply::Done)
            }
            Request::DeclareQueue(QueueDeclaration { name, options }) => {
                if self.router(vhost).queue(&name).is_some() || options.is_none() {
                    return self.redeclare_queue(now, id, slot, name, options.as_ref());
                }
                let options = options.expect("its absence was handled just now");
                self.create_queue(now, id, vhost, name, options, fx)
            }
            Request::DeleteQueue { name, if_unused, if_empty } => {
                self.delete_queue_named(id, slot, &name, DeleteOnly { if_unused, if_empty }, fx)
            }
            Request::PurgeQueue { name } => {
                let queue = self.queue_for(id, slot, &name)?;
                Ok(Reply::Messages(self.purge(queue, fx)))
            }
            Request::Bind(binding) => {
                self.check_target(id, slot, &binding.target)?;
                check_arguments(&binding.arguments)?;
                self.change_binding(vhost, true, binding, fx)
            }
            Request::Unbind(binding) => {
                // A missing target has no bindings.
                match self.check_target(id, slot, &binding.target) {
                    Err(refusal) if refusal.kind != RefusalKind::NotFound => Err(refusal),
                    _ => self.change_binding(vhost, false, binding, fx),
                }
            }
            _ => unreachable!("only requests about topology come here"),
        }
    }

    fn router(&mut self, vhost: u32) -> &mut Router {
        &mut self.topology.vhosts.get_mut(vhost).expect("channels and queues end first").router
    }

    fn vhost_name(&self, vhost: u32) -> String {
        self.topology.vhosts.get(vhost).expect("channels and queues end first").name.clone()
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
        self.record_auto_deleted(vhost, change, fx);
        self.tell_catching(vhost, fx);
    }

    fn record_auto_deleted<F: Effects>(&mut self, vhost: u32, change: &Change, fx: &mut F) {
        for exchange in change.auto_deleted.iter().filter(|exchange| exchange.durable) {
            let vhost_name = self.vhost_name(vhost);
            let record = Record::ExchangeDeleted { vhost: &vhost_name, name: &exchange.name };
            self.append_record(&record, fx);
        }
    }

    // ---- exchanges ----

    fn declare_exchange<F: Effects>(
        &mut self,
        vhost: u32,
        declaration: &ExchangeDeclaration,
        fx: &mut F,
    ) -> Result<Reply, Refusal> {
        let name = &declaration.name;
        let Some(options) = &declaration.options else {
            self.router(vhost).exchange(name)?;
            return Ok(Reply::Done);
        };
        let change = self.router(vhost).declare_exchange(name, options)?;
        let vhost_name = self.vhost_name(vhost);
        let options = options.clone();
        let record = Record::ExchangeDeclared { vhost: &vhost_name, name, options };
        self.record_change(vhost, &change, &record, fx);
        Ok(Reply::Done)
    }

    // ---- bindings ----

    fn change_binding<F: Effects>(
        &mut self,
        vhost: u32,
        binds: bool,
        binding: Binding,
        fx: &mut F,
    ) -> Result<Reply, Refusal> {
        let Binding { source, target, key, arguments } = binding;
        let router = self.router(vhost);
        let change = if binds {
            router.bind(&source, &target, &key, arguments.clone())?
        } else {
            router.unbind(&source, &target, &key, &arguments)?
        };
        let vhost_name = self.vhost_name(vhost);
        let binding =
            BindingRecord { vhost: &vhost_name, source: &source, target, key: &key, arguments };
        let record = if binds { Record::Bound(binding) } else { Record::Unbound(binding) };
        self.record_change(vhost, &change, &record, fx);
        Ok(Reply::Done)
    }

    /// Bindings of a queue that another connection has to itself are that connection's matter.
    fn check_target(
        &self,
        id: ChannelId,
        slot: u32,
        target: &BindingTarget,
    ) -> Result<(), Refusal> {
        match target {
            BindingTarget::Queue(name) => self.queue_for(id, slot, name).map(|_| ()),
            BindingTarget::Exchange(_) => Ok(()),
        }
    }

    // ---- queues ----

    /// The slot of a queue that the channel may use.
    pub(crate) fn queue_for(&self, id: ChannelId, slot: u32, name: &str) -> Result<u32, Refusal> {
        let router = &self.vhost_of(slot).router;
        let Some(QueueKey(queue_slot)) = router.queue(name) else {
            return Err(router.no_queue(name));
        };
        let queue = self.queues.get(queue_slot).expect("routers name living queues");
        if queue.owner.is_some_and(|owner| owner != id.connection) {
            let text = format!("queue '{name}' is exclusive to another connection");
            return Err(Refusal::new(RefusalKind::ResourceLocked, text));
        }
        Ok(queue_slot)
    }

    /// Declares a queue that is there, or asks for one.
    fn redeclare_queue(
        &mut self,
        now: Time,
        id: ChannelId,
        slot: u32,
        name: String,
        options: Option<&QueueOptions>,
    ) -> Result<Reply, Refusal> {
        // A responder may ask whether the requester still waits.
        if options.is_none() && self.vhost_of(slot).inboxes.contains_key(&name) {
            return Ok(Reply::Queue { name, messages: 0, consumers: 1 });
        }
        let queue_slot = self.queue_for(id, slot, &name)?;
        let queue = self.queues.get(queue_slot).expect("it was found just now");
        if let Some(options) = options
            && let Some(option) = difference(&queue.options, options)
        {
            let vhost = self.vhost_name(queue.vhost);
            return Err(Refusal::of_mismatch(Mismatch {
                declared: Declared::Queue,
                name,
                vhost,
                option,
            }));
        }
        let messages = queue.ready;
        let consumers = queue.consumers.len() as u32;
        self.queue_used(now, queue_slot);
        Ok(Reply::Queue { name, messages, consumers })
    }

    fn create_queue<F: Effects>(
        &mut self,
        now: Time,
        id: ChannelId,
        vhost: u32,
        name: String,
        options: QueueOptions,
        fx: &mut F,
    ) -> Result<Reply, Refusal> {
        self.check_queue(vhost, &name, &options)?;
        let number = self.queues.next_number();
        let mut queue = Queue::new(number, vhost, name.clone(), options);
        queue.owner = queue.options.exclusive.then_some(id.connection);
        self.check_kept(queue.durable)?;
        if queue.durable {
            let vhost_name = self.vhost_name(vhost);
            let options = queue.options.clone();
            let record = Record::QueueDeclared { number, vhost: &vhost_name, name: &name, options };
            self.append_record(&record, fx);
        }
        let queue_slot = self.add_queue(queue);
        self.queue_used(now, queue_slot);
        Ok(Reply::Queue { name, messages: 0, consumers: 0 })
    }

    /// With a failed journal nothing is done on request that a restart would undo.
    pub(crate) fn check_kept(&self, durable: bool) -> Result<(), Refusal> {
        if durable && self.storage.state == StorageState::Failed {
            return Err(Refusal::not_kept());
        }
        Ok(())
    }

    fn check_queue(&self, vhost: u32, name: &str, options: &QueueOptions) -> Result<(), Refusal> {
        let limits = &self.options.limits;
        let exceeded = |text: String| Err(Refusal::new(RefusalKind::LimitExceeded, text));
        check_name("a queue", name)?;
        // Dead letters carry both: what does not fit could not be stored with them.
        let QueueOptions { dead_letter_exchange, dead_letter_routing_key, .. } = options;
        for name in [dead_letter_exchange, dead_letter_routing_key].into_iter().flatten() {
            check_name("a dead-letter exchange or routing key", name)?;
        }
        check_arguments(&options.other)?;
        if self.topology.vhosts.get(vhost).is_some_and(|vhost| vhost.queues >= limits.queues_max) {
            return exceeded(format!("more than {} queues in a virtual host", limits.queues_max));
        }
        let ttl = options.message_ttl.max(options.expires);
        if ttl.is_some_and(|ttl| ttl > limits.ttl_max) {
            let most = limits.ttl_max.as_secs();
            return exceeded(format!("a time to live of more than {most} seconds"));
        }
        Ok(())
    }

    /// Takes a queue in, under the number it has.
    pub(crate) fn add_queue(&mut self, queue: Queue) -> u32 {
        let slot = self.queues.next_slot();
        let vhost = self.topology.vhosts.get_mut(queue.vhost).expect("queues have a virtual host");
        vhost.router.queue_added(&queue.name, QueueKey(slot), queue.durable);
        vhost.queues += 1;
        self.queues.insert(queue)
    }

    fn delete_queue_named<F: Effects>(
        &mut self,
        id: ChannelId,
        slot: u32,
        name: &str,
        only: DeleteOnly,
        fx: &mut F,
    ) -> Result<Reply, Refusal> {
        let DeleteOnly { if_unused, if_empty } = only;
        let queue_slot = match self.queue_for(id, slot, name) {
            Ok(queue_slot) => queue_slot,
            Err(refusal) if refusal.kind == RefusalKind::NotFound => return Ok(Reply::Messages(0)),
            Err(refusal) => return Err(refusal),
        };
        let queue = self.queues.get(queue_slot).expect("it was found just now");
        let refused = |text: String| Err(Refusal::new(RefusalKind::PreconditionFailed, text));
        if if_unused && !queue.consumers.is_empty() {
            return refused(format!("queue '{name}' has consumers"));
        }
        if if_empty && queue.ready > 0 {
            return refused(format!("queue '{name}' holds {} messages", queue.ready));
        }
        self.check_kept(queue.durable)?;
        Ok(Reply::Messages(self.delete_queue(queue_slot, fx)))
    }

    /// Deletes a queue and all in it; says how many messages were ready.
    pub(crate) fn delete_queue<F: Effects>(&mut self, slot: u32, fx: &mut F) -> u64 {
        let Some(queue) = self.queues.get_mut(slot) else { return 0 };
        let ready = queue.ready;
        for consumer in std::mem::take(&mut queue.consumers) {
            self.cancel_consumer(consumer, fx);
        }
        let queue = self.queues.get_mut(slot).expect("it was found just now");
        let name = queue.name.clone();
        while let Some(get) = self.take_get(slot) {
            let text = format!("queue '{name}' was deleted");
            fx.reply(get.channel, Err(Refusal::new(RefusalKind::NotFound, text)));
        }
        self.drop_messages(slot);
        let queue = self.queues.remove(slot).expect("it was found just now");
        if let Some(at) = queue.head_timer {
            self.timers.clear(at, crate::foundation::timers::Timer::Head(slot));
        }
        if let Some(at) = queue.expires_at {
            self.timers.clear(at, crate::foundation::timers::Timer::Queue(slot));
        }
        let vhost = self.topology.vhosts.get_mut(queue.vhost).expect("queues end first");
        vhost.queues -= 1;
        let change = vhost.router.queue_removed(QueueKey(slot));
        if queue.durable {
            self.append_record(&Record::QueueDeleted { number: queue.number }, fx);
        }
        self.record_auto_deleted(queue.vhost, &change, fx);
        self.tell_catching(queue.vhost, fx);
        ready
    }

    /// Drops everything ready in a queue; says how many messages that were.
    fn purge<F: Effects>(&mut self, slot: u32, fx: &mut F) -> u64 {
        self.record_settled_of(slot, fx);
        let queue = self.queues.get(slot).expect("it was found just now");
        let (ready, number, durable, before) =
            (queue.ready, queue.number, queue.durable, queue.next_seq);
        if ready == 0 {
            return 0;
        }
        if durable {
            let kept = self.unsettled_of(number);
            let record = Record::Purged { queue: number, before, kept };
            record.write(&mut self.scratch.record);
            fx.append(&[&self.scratch.record], false);
            fx.write_soon();
        }
        self.drop_messages(slot);
        ready
    }

    /// Numbers of a queue's durable messages that are out, or on their way to be dead letters.
    pub(crate) fn unsettled_of(&self, number: u64) -> Vec<u64> {
        let out = self.durable_out().filter(|(of, _)| *of == number);
        let mut kept: Vec<u64> = out.map(|(_, entry)| entry.seq).collect();
        kept.sort_unstable();
        kept
    }

    /// Lets everything go that is ready in a queue, without a record: nobody sees it any more, and what it
    /// holds is given back over the next turns.
    pub(crate) fn drop_messages(&mut self, slot: u32) {
        let queue = self.queues.get_mut(slot).expect("the caller looked it up");
        queue.ready = 0;
        queue.ready_bytes = 0;
        self.storage.resident -= std::mem::take(&mut queue.resident);
        queue.requeued_in_pages.clear();
        for lane in &mut queue.lanes {
            self.agenda.departures.add(queue.number, queue.durable, std::mem::take(lane));
        }
    }
}
