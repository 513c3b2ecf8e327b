//! Requests about temporary queues and topics, and about places of clients: created, taken, held, released.

use super::{Held, HeldNode, Hold};
use crate::channel::places::{Holder, Place};
use crate::consumer::deferred_settle::Fate;
use crate::engine::Engine;
use crate::interface::limits::{PLACE_BYTES_MAX, SUBSCRIPTION_NAME_BYTES_MAX};
use crate::interface::refusal::refuse;
use crate::routing::QueueKey;
use crate::{
    BindingTarget, CancelReason, ChannelId, CreateTemporary, Effects, QueueOptions, Refusal, Reply,
    Request, TemporaryKind, Time,
};
use std::sync::Arc;

impl Engine {
    pub(crate) fn request_lifetime<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        request: Request,
        fx: &mut F,
    ) -> Result<Reply, Refusal> {
        match request {
            Request::CreateTemporary(create) => self.create_temporary(now, slot, *create, fx),
            Request::Hold { node, holder } => {
                self.check_holder(slot, &holder)?;
                self.check_place(slot, &holder)?;
                if let Some(node) = self.hold_node(slot, &node)? {
                    let hold = Hold { holder: Some(holder), node, is_creator: false, opens: false };
                    self.clients.channels[slot].holds.push(hold);
                }
                Ok(Reply::Done)
            }
            Request::Release { holder } => {
                self.release_holder(now, slot, &holder, fx);
                Ok(Reply::Done)
            }
            _ => unreachable!("only requests about lifetimes come here"),
        }
    }

    /// Ends a holder, if there is one.
    pub(crate) fn release_holder<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        holder: &str,
        fx: &mut F,
    ) {
        let channel = &mut self.clients.channels[slot];
        self.clients.places.release(channel.id, holder);
        let found = channel.holds.iter().position(|hold| hold.holder.as_deref() == Some(holder));
        if let Some(hold) = found.map(|at| channel.holds.swap_remove(at)) {
            let vhost = channel.vhost;
            self.release(now, vhost, hold, fx);
        }
    }

    /// A holder takes a place of its client, from those of other connections that have it.
    pub(crate) fn take_place<F: Effects>(
        &mut self,
        now: Time,
        id: ChannelId,
        name: String,
        holder: &str,
        fx: &mut F,
    ) -> Result<Reply, Refusal> {
        let Some(connection) = self.clients.connection(id.connection) else {
            return Ok(Reply::Done);
        };
        let (Some(grant), Some(client)) = (&connection.grant, &connection.client) else {
            return Ok(Reply::Done);
        };
        let (user, client) = (Arc::clone(&grant.user), Arc::clone(client));
        let vhost = connection.vhost;
        for (what, name, most) in
            [("place", &*name, PLACE_BYTES_MAX), ("holder", holder, SUBSCRIPTION_NAME_BYTES_MAX)]
        {
            if name.len() > most {
                let bytes = name.len();
                refuse!(
                    LimitExceeded,
                    "the name of a {what} of {bytes} bytes is longer than {most}"
                );
            }
        }
        self.check_may_hold_more(id.connection)?;
        let place = Arc::new(Place { vhost, user, client, name });
        for other in self.clients.places.others(&place, id.connection) {
            self.lose_place(now, &other, fx);
        }
        let holder = Holder { channel: id, name: holder.into() };
        self.clients.places.take(&place, holder);
        Ok(Reply::Done)
    }

    /// A holder loses its place, and all that goes with that: its consumer ends as if its connection were
    /// lost, what it held of temporary queues and topics is released.
    fn lose_place<F: Effects>(&mut self, now: Time, holder: &Holder, fx: &mut F) {
        let Holder { channel, name } = holder;
        let Some(slot) = self.channel_slot(*channel) else {
            return self.clients.places.release(*channel, name);
        };
        self.end_consumer_named(now, slot, name, Some(Fate::Lost), fx);
        self.release_holder(now, slot, name, fx);
        self.tell_cancelled(slot, String::from(&**name), CancelReason::TakenOver);
        self.clients.places.lose(holder);
    }

    /// Refuses what is asked for by a holder that has lost its place and not heard so.
    pub(crate) fn check_place(&self, slot: u32, holder: &str) -> Result<(), Refusal> {
        if self.clients.places.has_lost(self.clients.channels[slot].id, holder) {
            refuse!(TakenOver, "the place of '{holder}' was taken by another connection");
        }
        Ok(())
    }

    fn check_holder(&self, slot: u32, holder: &str) -> Result<(), Refusal> {
        let channel = &self.clients.channels[slot];
        let most = self.options.limits.consumers_max;
        if channel.holds.len() >= most {
            refuse!(LimitExceeded, "more than {most} holders in one channel");
        }
        if holder.len() > SUBSCRIPTION_NAME_BYTES_MAX {
            let (bytes, most) = (holder.len(), SUBSCRIPTION_NAME_BYTES_MAX);
            refuse!(LimitExceeded, "a holder's name of {bytes} bytes is longer than {most}");
        }
        if channel.holds.iter().any(|hold| hold.holder.as_deref() == Some(holder)) {
            refuse!(NotAllowed, "holder '{holder}' exists in this channel");
        }
        self.check_may_hold_more(channel.id.connection)
    }

    fn create_temporary<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        create: CreateTemporary,
        fx: &mut F,
    ) -> Result<Reply, Refusal> {
        let CreateTemporary { name, kind, exclusive, holder, lifetime } = create;
        self.check_holder(slot, &holder)?;
        let channel = &self.clients.channels[slot];
        let (vhost, connection) = (channel.vhost, channel.id.connection);
        let by = self.declarer(connection);
        let router = &mut self.topology.vhosts[vhost].router;
        router.tally.by = by;
        let held = Held::by_creator(lifetime);
        let node = match kind {
            TemporaryKind::Queue(options) => {
                if router.queue(&name).is_some() {
                    refuse!(PreconditionFailed, "there is a queue '{name}' already");
                }
                let options =
                    QueueOptions { durable: false, exclusive, auto_delete: false, ..options };
                let number = self.queues.next_number();
                self.create_queue(now, slot, name.clone(), options, fx)?;
                if let Some(queue) = self.queues.numbered(number) {
                    queue.lifetime = Some(Box::new(held));
                }
                HeldNode::Queue(number)
            }
            TemporaryKind::Topic => {
                self.check_may_hold_more(connection)?;
                let owner = exclusive.then_some(connection);
                let router = &mut self.topology.vhosts[vhost].router;
                let change = router.declare_temporary_topic(&name, owner, held)?;
                self.end_change(vhost, &change, fx);
                HeldNode::Topic(name.clone())
            }
        };
        let hold = Hold { holder: Some(holder), node, is_creator: true, opens: false };
        self.clients.channels[slot].holds.push(hold);
        Ok(Reply::Created { name })
    }

    /// Counts another holder of what is there; `None`: it is not temporary, so nobody has to hold it.
    fn hold_node(&mut self, slot: u32, node: &BindingTarget) -> Result<Option<HeldNode>, Refusal> {
        let vhost = self.clients.channels[slot].vhost;
        let router = &mut self.topology.vhosts[vhost].router;
        match node {
            BindingTarget::Exchange(name) => {
                let is_temporary = router.hold_topic(name)?;
                Ok(is_temporary.then(|| HeldNode::Topic(name.clone())))
            }
            BindingTarget::Queue(name) => {
                let Some(QueueKey(queue)) = router.queue(name) else {
                    return Err(router.no_queue(name));
                };
                let queue = &mut self.queues[queue];
                let Some(held) = &mut queue.lifetime else { return Ok(None) };
                held.holders += 1;
                Ok(Some(HeldNode::Queue(queue.number)))
            }
        }
    }
}
