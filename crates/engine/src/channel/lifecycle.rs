//! Connections and channels come and go.

use super::{Channel, Connection, Inbox};
use crate::access::Grant;
use crate::engine::Engine;
use crate::foundation::timers::Timer;
use crate::routing::vhost::Vhost;
use crate::{Call, ChannelId, ConnectionId, Effects, Position, StorageState, Time};
use crate::{Refusal, RefusalKind, Reply};

impl Engine {
    pub(crate) fn add_connection(
        &mut self,
        id: ConnectionId,
        vhost: u32,
        grant: Option<Grant>,
        is_counted: bool,
    ) {
        let index = id.0 as usize;
        if self.connections.len() <= index {
            self.connections.resize_with(index + 1, || None);
        }
        debug_assert!(self.connections[index].is_none(), "the host reuses slots after disconnect");
        self.connections[index] =
            Some(Connection { grant, vhost, channels: Vec::new(), is_counted, is_at_home: false });
    }

    pub(crate) fn end_connection<F: Effects>(&mut self, now: Time, id: ConnectionId, fx: &mut F) {
        while let Some(Some(connection)) = self.connections.get(id.0 as usize) {
            let Some((number, _)) = connection.channels.last() else { break };
            let number = *number;
            self.close_channel(now, ChannelId { connection: id, number }, fx);
        }
        let owned: Vec<u32> = self
            .queues
            .iter()
            .filter(|(_, queue)| queue.owner == Some(id))
            .map(|(slot, _)| slot)
            .collect();
        for slot in owned {
            self.delete_queue(slot, fx);
        }
        let ended = self.connections.get_mut(id.0 as usize).and_then(Option::take);
        if ended.as_ref().is_some_and(|connection| connection.is_at_home) {
            fx.call_home(Call::Disconnect(id));
        }
        let counted = ended.filter(|connection| connection.is_counted);
        if let Some(grant) = counted.and_then(|connection| connection.grant) {
            self.access.left(grant.user());
        }
        self.run_overdue(now, fx);
    }

    pub(crate) fn open_channel(&mut self, id: ChannelId) {
        let Some(Some(connection)) = self.connections.get_mut(id.connection.0 as usize) else {
            debug_assert!(false, "channels are opened on connections that are there");
            return;
        };
        let index =
            match connection.channels.binary_search_by_key(&id.number, |(number, _)| *number) {
                Err(index) => index,
                Ok(_) => {
                    debug_assert!(false, "the host has made sure that the channel is not open");
                    return;
                }
            };
        let slot = self.channels.insert(Channel::new(id, connection.vhost));
        connection.channels.insert(index, (id.number, slot));
    }

    pub(crate) fn close_channel<F: Effects>(&mut self, now: Time, id: ChannelId, fx: &mut F) {
        let Some(slot) = self.channel_slot(id) else { return };
        let channel = self.channels.get_mut(slot).expect("a channel's slot is in use");
        channel.transaction = None;
        // Without flow nothing is delivered to it while what it had goes back.
        channel.flow = false;
        let consumers = channel.consumers.clone();
        let queues = self.queues_of(slot);
        for consumer in consumers {
            self.end_consumer(now, consumer, fx);
        }
        self.requeue_all(now, slot, &queues, fx);
        self.forget_gets(slot, id);
        if let Some(confirms) =
            self.channels.get_mut(slot).and_then(|channel| channel.confirms.as_mut())
        {
            self.counters.confirmed += confirms.tell(id, fx);
        }
        let channel = self.channels.remove(slot).expect("a channel's slot is in use");
        self.confirming.retain(|confirming| *confirming != slot);
        if let Some(timer) = channel.settle_timer {
            self.timers.clear(timer, Timer::Settle(slot));
        }
        if channel.opening != 0 {
            fx.call_home(Call::Close(id));
        }
        self.detach_sessions_of(now, id, fx);
        self.end_subscribers(id.connection, channel.subscribers);
        if let Some(inbox) = channel.inbox {
            self.remove_inbox(channel.vhost, &inbox);
        }
        if let Some(Some(connection)) = self.connections.get_mut(id.connection.0 as usize) {
            connection.channels.retain(|(number, _)| *number != id.number);
        }
        self.run_overdue(now, fx);
    }

    /// A channel that ends waits for no message any more. Only where it does are all queues looked at.
    fn forget_gets(&mut self, slot: u32, id: ChannelId) {
        let channel = self.channels.get_mut(slot).expect("a channel's slot is in use");
        if std::mem::take(&mut channel.gets) == 0 {
            return;
        }
        for (_, queue) in self.queues.iter_mut().filter(|(_, queue)| !queue.gets.is_empty()) {
            queue.gets.retain(|get| get.channel != id);
        }
    }

    /// The virtual host of the channel in a slot.
    pub(crate) fn vhost_of(&self, slot: u32) -> &Vhost {
        let channel = self.channels.get(slot).expect("a channel's slot is in use");
        self.vhosts.get(channel.vhost).expect("channels end first")
    }

    /// Nobody reaches an inbox any more; its channel has given it up.
    pub(crate) fn remove_inbox(&mut self, vhost: u32, inbox: &Inbox) {
        if let Some(vhost) = self.vhosts.get_mut(vhost) {
            vhost.inboxes.remove(&inbox.address);
        }
    }

    /// Answers a request once the record at `position` is flushed.
    pub(crate) fn answer_once_flushed(&mut self, slot: u32, position: Position, reply: Reply) {
        let channel = self.channels.get_mut(slot).expect("a channel's slot is in use");
        channel.unanswered = Some((position, reply));
        let is_listed = channel
            .confirms
            .as_mut()
            .is_some_and(|confirms| std::mem::replace(&mut confirms.is_listed, true));
        if !is_listed {
            self.confirming.push(slot);
        }
    }

    /// Tells a channel's confirms that are ready at once: what it is told next may be its end.
    pub fn tell_confirms_of<F: Effects>(&mut self, channel: ChannelId, fx: &mut F) {
        let Some(slot) = self.channel_slot(channel) else { return };
        let confirms = self.channels.get_mut(slot).and_then(|channel| channel.confirms.as_mut());
        self.counters.confirmed += confirms.map_or(0, |confirms| confirms.tell(channel, fx));
    }

    /// Tells confirms that are ready; keeps those in mind that wait for a flush.
    pub(crate) fn tell_confirms<F: Effects>(&mut self, fx: &mut F) {
        let mut confirming = std::mem::take(&mut self.confirming);
        confirming.retain(|slot| {
            let Some(channel) = self.channels.get_mut(*slot) else { return false };
            let id = channel.id;
            let mut is_waiting = channel.unanswered.is_some();
            if let Some(confirms) = &mut channel.confirms {
                self.counters.confirmed += confirms.tell(id, fx);
                is_waiting |= confirms.is_waiting();
                confirms.is_listed = is_waiting;
            }
            is_waiting
        });
        self.confirming = confirming;
    }

    /// Everything before `position` is flushed.
    pub(crate) fn flushed<F: Effects>(&mut self, position: Position, fx: &mut F) {
        for slot in &self.confirming {
            let Some(channel) = self.channels.get_mut(*slot) else { continue };
            if let Some(confirms) = &mut channel.confirms {
                confirms.flushed(position);
            }
            if let Some((_, reply)) = channel.unanswered.take_if(|(last, _)| *last < position) {
                fx.reply(channel.id, Ok(reply));
            }
        }
        self.sessions.flushed(position);
        self.tell_confirms(fx);
    }

    /// The journal's state has changed.
    pub(crate) fn storage_changed<F: Effects>(&mut self, state: StorageState, fx: &mut F) {
        self.storage = state;
        if state != StorageState::Failed {
            return;
        }
        for (_, vhost) in self.vhosts.iter_mut() {
            vhost.router.keep_durable();
        }
        for slot in std::mem::take(&mut self.confirming) {
            let Some(channel) = self.channels.get_mut(slot) else { continue };
            if let Some(confirms) = &mut channel.confirms {
                self.counters.confirmed += confirms.fail(channel.id, fx);
                confirms.is_listed = false;
            }
            if channel.unanswered.take().is_some() {
                let text = "the journal failed: whether that is stored is unknown";
                fx.reply(channel.id, Err(Refusal::new(RefusalKind::StorageUnavailable, text)));
            }
        }
    }
}
