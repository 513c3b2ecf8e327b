//! Channels open and close, confirms go out, requests are answered once they are flushed.

use super::{Channel, Inbox};
use crate::engine::Engine;
use crate::foundation::timers::Timer;
use crate::routing::vhost::Vhost;
use crate::{Call, ChannelId, Effects, Position, StorageState, Time};
use crate::{Refusal, RefusalKind, Reply};

impl Engine {
    /// Opens a channel, which must not be open.
    pub fn open(&mut self, id: ChannelId) {
        let Some(Some(connection)) = self.clients.connections.get_mut(id.connection.0 as usize)
        else {
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
        let slot = self.clients.channels.insert(Channel::new(id, connection.vhost));
        connection.channels.insert(index, (id.number, slot));
    }

    /// Closes a channel: its consumers end, unsettled deliveries are requeued, a transaction is
    /// rolled back.
    pub fn close<F: Effects>(&mut self, now: Time, id: ChannelId, fx: &mut F) {
        let Some(slot) = self.channel_slot(id) else { return };
        let channel = self.clients.channels.get_mut(slot).expect("a channel's slot is in use");
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
            self.clients.channels.get_mut(slot).and_then(|channel| channel.confirms.as_mut())
        {
            self.counters.confirmed += confirms.tell(id, fx);
        }
        let channel = self.clients.channels.remove(slot).expect("a channel's slot is in use");
        self.agenda.confirming.retain(|confirming| *confirming != slot);
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
        if let Some(Some(connection)) = self.clients.connections.get_mut(id.connection.0 as usize) {
            connection.channels.retain(|(number, _)| *number != id.number);
        }
        self.run_overdue(now, fx);
    }

    /// Removes the waiting gets of a channel that ends. All queues are searched only if there
    /// are any.
    fn forget_gets(&mut self, slot: u32, id: ChannelId) {
        let channel = self.clients.channels.get_mut(slot).expect("a channel's slot is in use");
        if std::mem::take(&mut channel.gets) == 0 {
            return;
        }
        for (_, queue) in self.queues.iter_mut().filter(|(_, queue)| !queue.gets.is_empty()) {
            queue.gets.retain(|get| get.channel != id);
        }
    }

    /// The virtual host of the channel in a slot.
    pub(crate) fn vhost_of(&self, slot: u32) -> &Vhost {
        let channel = self.clients.channels.get(slot).expect("a channel's slot is in use");
        self.topology.vhosts.get(channel.vhost).expect("channels end first")
    }

    /// Removes an inbox whose channel has ended.
    pub(crate) fn remove_inbox(&mut self, vhost: u32, inbox: &Inbox) {
        if let Some(vhost) = self.topology.vhosts.get_mut(vhost) {
            vhost.inboxes.remove(&inbox.address);
        }
    }

    /// Answers a request once the record at `position` is flushed.
    pub(crate) fn answer_once_flushed(&mut self, slot: u32, position: Position, reply: Reply) {
        let channel = self.clients.channels.get_mut(slot).expect("a channel's slot is in use");
        channel.unanswered = Some((position, reply));
        let is_listed = channel
            .confirms
            .as_mut()
            .is_some_and(|confirms| std::mem::replace(&mut confirms.is_listed, true));
        if !is_listed {
            self.agenda.confirming.push(slot);
        }
    }

    /// Sends the confirms of a channel that are ready: what is sent next may close it.
    pub fn tell_confirms_of<F: Effects>(&mut self, channel: ChannelId, fx: &mut F) {
        let Some(slot) = self.channel_slot(channel) else { return };
        let confirms =
            self.clients.channels.get_mut(slot).and_then(|channel| channel.confirms.as_mut());
        self.counters.confirmed += confirms.map_or(0, |confirms| confirms.tell(channel, fx));
    }

    /// Sends confirms that are ready; keeps those that wait for a flush.
    pub(crate) fn tell_confirms<F: Effects>(&mut self, fx: &mut F) {
        let mut confirming = std::mem::take(&mut self.agenda.confirming);
        confirming.retain(|slot| {
            let Some(channel) = self.clients.channels.get_mut(*slot) else { return false };
            let id = channel.id;
            let mut is_waiting = channel.unanswered.is_some();
            if let Some(confirms) = &mut channel.confirms {
                self.counters.confirmed += confirms.tell(id, fx);
                is_waiting |= confirms.is_waiting();
                confirms.is_listed = is_waiting;
            }
            is_waiting
        });
        self.agenda.confirming = confirming;
    }

    /// Every record before `position` is flushed: confirms and commits that waited for it go out.
    pub fn durable<F: Effects>(&mut self, position: Position, fx: &mut F) {
        for slot in &self.agenda.confirming {
            let Some(channel) = self.clients.channels.get_mut(*slot) else { continue };
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

    /// The journal's state changed. On `Failed`, everything that waits for a flush is refused.
    pub fn storage_changed<F: Effects>(&mut self, state: StorageState, fx: &mut F) {
        self.storage.state = state;
        if state != StorageState::Failed {
            return;
        }
        for (_, vhost) in self.topology.vhosts.iter_mut() {
            vhost.router.keep_durable();
        }
        for slot in std::mem::take(&mut self.agenda.confirming) {
            let Some(channel) = self.clients.channels.get_mut(slot) else { continue };
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
