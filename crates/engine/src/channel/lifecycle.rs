//! Connections and channels begin and end, confirms go out, requests are answered once they are flushed.

use super::transaction::ChannelPlace;
use super::{After, Channel, Connection, Inbox};
use crate::access::Grant;
use crate::consumer::deferred_settle::Fate;
use crate::engine::Engine;
use crate::foundation::timers::Timer;
use crate::interface::limits::SUBSCRIPTION_NAME_BYTES_MAX;
use crate::interface::refusal::refuse;
use crate::routing::vhost::Vhost;
use crate::{
    Call, ChannelId, ConnectionId, Effects, Position, Refusal, RefusalKind, Reply, StorageState,
    SubjectPermissions, Time,
};
use std::collections::{BTreeMap, BTreeSet};

impl Engine {
    /// Begins a connection by `user` to `vhost`. Refused: unknown vhost (`NotFound`), no
    /// permission (`AccessRefused`), too many connections of the user or to the vhost (`LimitExceeded`): home
    /// counts them, a remote shard learns it by [`Engine::admitted`] and [`Engine::entered`].
    pub fn connect(
        &mut self,
        connection: ConnectionId,
        user: &str,
        vhost: &str,
    ) -> Result<(), Refusal> {
        let slot = self.vhost_slot(vhost)?;
        let grant = self.access.grant(user, vhost)?;
        let admitted = if self.is_away() {
            self.home_said(connection, user, vhost)
        } else {
            self.admit(user).and_then(|()| {
                let entered = self.access.enter_vhost(vhost);
                entered.inspect_err(|_| self.access.left(user))
            })
        };
        self.counters.not_admitted += u64::from(admitted.is_err());
        admitted?;
        self.add_connection(connection, slot, Some(grant), !self.is_away());
        Ok(())
    }

    /// What home has answered about a connection of a remote shard.
    fn home_said(
        &mut self,
        connection: ConnectionId,
        user: &str,
        vhost: &str,
    ) -> Result<(), Refusal> {
        if self.clients.not_admitted.contains(&connection) {
            return Err(self.access.too_many(user, self.options.limits.user_connections_max));
        }
        match self.clients.entered.remove(&connection) {
            Some(false) => Err(self.access.full_vhost(vhost)),
            Some(true) | None => Ok(()),
        }
    }

    /// At home: begins a connection of a remote shard, which was admitted there.
    pub fn connect_remote(
        &mut self,
        connection: ConnectionId,
        user: &str,
        vhost: &str,
    ) -> Result<(), Refusal> {
        let slot = self.vhost_slot(vhost)?;
        let grant = self.access.grant_as_it_is(user, vhost);
        self.add_connection(connection, slot, Some(grant), false);
        Ok(())
    }

    /// Begins a connection of the host itself to `vhost`; it may do everything. Refused:
    /// unknown vhost (`NotFound`).
    pub fn connect_internal(
        &mut self,
        connection: ConnectionId,
        vhost: &str,
    ) -> Result<(), Refusal> {
        let slot = self.vhost_slot(vhost)?;
        self.add_connection(connection, slot, None, false);
        Ok(())
    }

    /// At home: counts a connection of the user to a remote shard. Refused: the user has
    /// reached its limit.
    pub fn admit(&mut self, user: &str) -> Result<(), Refusal> {
        self.access.admit(user, self.options.limits.user_connections_max)
    }

    /// At home: a connection of the user to a remote shard, which was counted, has ended.
    pub fn left(&mut self, user: &str) {
        self.access.left(user);
    }

    /// On a remote shard: home has counted a connection, or found that its user has too many.
    pub fn admitted(&mut self, connection: ConnectionId, is_admitted: bool) {
        if is_admitted {
            self.clients.not_admitted.remove(&connection);
        } else {
            self.clients.not_admitted.insert(connection);
        }
    }

    /// Whether home has to be asked whether a connection of the user may enter a virtual host, which nothing
    /// else forbids: home counts those of all shards.
    #[must_use]
    pub fn has_to_ask(&self, connection: ConnectionId, user: &str, vhost: &str) -> bool {
        self.is_away()
            && !self.clients.not_admitted.contains(&connection)
            && self.vhost_slot(vhost).is_ok()
            && self.access.grant(user, vhost).is_ok()
    }

    /// At home: counts a connection of a remote shard to a virtual host. Refused: it has as many as it may.
    pub fn enter_vhost(&mut self, vhost: &str) -> Result<(), Refusal> {
        self.access.enter_vhost(vhost)
    }

    /// At home: such a connection has ended.
    pub fn leave_vhost(&mut self, vhost: &str) {
        self.access.leave_vhost(vhost);
    }

    /// On a remote shard: home has said whether a connection may enter its virtual host.
    pub fn entered(&mut self, connection: ConnectionId, is_admitted: bool) {
        self.clients.entered.insert(connection, is_admitted);
    }

    /// The subject permissions of a connection's user, as of the connection's last request;
    /// `None`: unrestricted.
    #[must_use]
    pub fn subject_permissions(&self, connection: ConnectionId) -> Option<&SubjectPermissions> {
        self.clients.connection(connection)?.grant.as_ref()?.subjects()
    }

    /// Ends a connection: its exclusive queues are deleted; channels that are open are lost, so their
    /// unsettled deliveries go back as their consumers' `on_loss` says.
    pub fn disconnect<F: Effects>(&mut self, now: Time, id: ConnectionId, fx: &mut F) {
        while let Some(connection) = self.clients.connection(id)
            && let Some((number, _)) = connection.channels.last()
        {
            let channel = ChannelId { connection: id, number: *number };
            self.end_channel(now, channel, Fate::Lost, fx);
        }
        self.agenda.wide.publisher_left(id);
        self.clients.names.release(id);
        self.delete_exclusive(id, fx);
        let ended = self.clients.connections.get_mut(id.0 as usize).and_then(Option::take);
        if ended.as_ref().is_some_and(|connection| connection.is_at_home) {
            fx.call_home(Call::Disconnect(id));
        }
        if let Some(Connection { vhost, grant: Some(grant), is_counted: true, .. }) = ended {
            self.access.left(&grant.user);
            if let Some(vhost) = self.topology.vhosts.get(vhost) {
                self.access.leave_vhost(&vhost.name);
            }
        }
        self.run_overdue(now, fx);
    }

    /// Says what the client of a connection calls itself, before its first channel:
    /// [`crate::Binding::not_from`] goes by that. One of more than [`SUBSCRIPTION_NAME_BYTES_MAX`] is not
    /// heeded.
    pub fn name_client(&mut self, id: ConnectionId, name: &str) {
        if let Some(connection) = self.clients.connection_mut(id) {
            let is_name = (1..=SUBSCRIPTION_NAME_BYTES_MAX).contains(&name.len());
            connection.client = is_name.then(|| name.into());
            if let Some(grant) = &mut connection.grant {
                grant.name_client(&self.access, is_name.then_some(name));
            }
        }
    }

    /// The connection of a channel claims a name.
    pub(crate) fn claim_client_name<F: Effects>(
        &mut self,
        slot: u32,
        name: &str,
        fx: &mut F,
    ) -> Result<Reply, Refusal> {
        if name.len() > SUBSCRIPTION_NAME_BYTES_MAX {
            refuse!(LimitExceeded, "a client name of {} bytes is too long", name.len());
        }
        let channel = &self.clients.channels[slot];
        let (connection, key) = (channel.id.connection, (channel.vhost, Box::from(name)));
        let holder = self.clients.names.holder(&key).filter(|holder| *holder != connection);
        if let Some(holder) = holder {
            if self.clients.user(holder) != self.clients.user(connection) {
                refuse!(AccessRefused, "a connection of another user has the client name '{name}'");
            }
            fx.client_doubted(holder);
            refuse!(ResourceLocked, "another connection has the client name '{name}'");
        }
        self.clients.names.give(connection, key);
        Ok(Reply::Done)
    }

    fn add_connection(
        &mut self,
        id: ConnectionId,
        vhost: u32,
        grant: Option<Grant>,
        is_counted: bool,
    ) {
        let index = id.0 as usize;
        if self.clients.connections.len() <= index {
            self.clients.connections.resize_with(index + 1, || None);
        }
        let connection = Connection {
            grant,
            vhost,
            client: None,
            channels: Vec::new(),
            exclusive: BTreeSet::new(),
            transactions: BTreeMap::new(),
            last_transaction: 0,
            is_counted,
            is_short: false,
            is_at_home: false,
        };
        let before = self.clients.connections[index].replace(connection);
        debug_assert!(before.is_none(), "the host reuses slots after disconnect");
    }

    /// Opens a channel, which must not be open.
    pub fn open(&mut self, id: ChannelId) {
        let Some(Some(connection)) = self.clients.connections.get_mut(id.connection.0 as usize)
        else {
            debug_assert!(false, "channels are opened on connections that are there");
            return;
        };
        let found = connection.channels.binary_search_by_key(&id.number, |(number, _)| *number);
        debug_assert!(found.is_err(), "the host has made sure that the channel is not open");
        if let Err(index) = found {
            let incarnation = self.clients.next_incarnation;
            self.clients.next_incarnation = self.clients.next_incarnation.wrapping_add(1);
            let channel = Channel::new(id, connection.vhost, incarnation);
            let slot = self.clients.channels.insert(channel);
            connection.channels.insert(index, (id.number, slot));
        }
    }

    /// Closes a channel in good order: its consumers end, unsettled deliveries go back as their consumers'
    /// `on_close` says, its transactions are rolled back.
    pub fn close<F: Effects>(&mut self, now: Time, id: ChannelId, fx: &mut F) {
        self.end_channel(now, id, Fate::Closed, fx);
    }

    fn end_channel<F: Effects>(&mut self, now: Time, id: ChannelId, fate: Fate, fx: &mut F) {
        let Some(slot) = self.channel_slot(id) else { return };
        let channel = &mut self.clients.channels[slot];
        // Without flow nothing is delivered to it while what it had goes back.
        channel.flow = false;
        let queues = self.queues_of(slot);
        self.end_consumers_of(now, slot, fx);
        self.end_browsers_of(id);
        self.end_replays_of(id);
        self.end_transactions_of(now, slot, fx);
        for session in self.sessions.all_held_by(id) {
            self.take_handed_back(now, session, slot, fate, fx);
        }
        self.return_all(now, slot, fate, &queues, fx);
        self.tell_confirms_of(id, fx);
        self.agenda.wide.channel_left(id);
        self.release_all(now, slot, fx);
        self.clients.places.release_all(id);
        self.agenda.pauses.channel_left(id);
        let mut channel = self.clients.channels.remove(slot).expect("a channel's slot is in use");
        for queue in std::mem::take(&mut channel.gets) {
            if let Some(queue) = self.queues.get_mut(queue) {
                queue.gets.retain(|get| get.channel != id);
            }
        }
        if channel.is_confirming {
            self.agenda.confirming.retain(|confirming| *confirming != slot);
        }
        self.timers.reset(&mut channel.settle_timer, None, Timer::Settle(slot));
        // Home loses all that are open with their connection.
        if channel.opening != 0 && matches!(fate, Fate::Closed) {
            fx.call_home(Call::Close(id));
        }
        self.detach_sessions_of(now, id, fx);
        self.end_subscribers(id.connection, channel.subscribers);
        if let Some(inbox) = channel.inbox {
            self.remove_inbox(channel.vhost, &inbox);
        }
        if let Some(connection) = self.clients.connection_mut(id.connection) {
            connection.channels.retain(|(number, _)| *number != id.number);
        }
        self.run_overdue(now, fx);
    }

    /// The virtual host of the channel in a slot.
    pub(crate) fn vhost_of(&self, slot: u32) -> &Vhost {
        &self.topology.vhosts[self.clients.channels[slot].vhost]
    }

    /// Removes an inbox whose channel has ended.
    pub(crate) fn remove_inbox(&mut self, vhost: u32, inbox: &Inbox) {
        if let Some(vhost) = self.topology.vhosts.get_mut(vhost) {
            vhost.inboxes.remove(&inbox.address);
        }
    }

    /// Answers a request once the record at `position` is flushed, and all before it is answered.
    pub(crate) fn answer_once_flushed(
        &mut self,
        slot: u32,
        position: Position,
        reply: Result<Reply, Refusal>,
    ) {
        self.answer_after(slot, After::Flush(position), reply);
    }

    /// The same of a request whose work takes several turns; returns the number of that work.
    pub(crate) fn answer_once_done(&mut self, slot: u32, reply: Result<Reply, Refusal>) -> u64 {
        self.agenda.next_work += 1;
        let work = self.agenda.next_work;
        self.answer_after(slot, After::Work(work), reply);
        work
    }

    fn answer_after(&mut self, slot: u32, after: After, reply: Result<Reply, Refusal>) {
        self.clients.channels[slot].unanswered.push_back((after, reply));
        self.wait_to_tell(slot);
    }

    /// Work that a channel has asked for is done: recorded at `position`, if it had to be.
    pub(crate) fn work_is_done<F: Effects>(
        &mut self,
        place: ChannelPlace,
        work: u64,
        position: Option<Position>,
        fx: &mut F,
    ) {
        let Some(slot) = self.clients.channel_at(place) else { return };
        let channel = &mut self.clients.channels[slot];
        let is_it = |after: &After| *after == After::Work(work);
        if let Some((after, _)) = channel.unanswered.iter_mut().find(|(after, _)| is_it(after)) {
            *after = position.map_or(After::Nothing, After::Flush);
        }
        // What is behind it may have been flushed meanwhile.
        channel.answer_up_to(self.storage.flushed, fx);
    }

    /// Answers a request, once all before it is answered.
    pub(crate) fn answer_in_order<F: Effects>(
        &mut self,
        id: ChannelId,
        reply: Result<Reply, Refusal>,
        fx: &mut F,
    ) {
        let channel = self.channel_slot(id).and_then(|slot| self.clients.channels.get_mut(slot));
        match channel {
            Some(Channel { unanswered, .. }) if !unanswered.is_empty() => {
                unanswered.push_back((After::Nothing, reply));
            }
            _ => fx.reply(id, reply),
        }
    }

    /// A channel has something to tell, or to wait for.
    pub(crate) fn wait_to_tell(&mut self, slot: u32) {
        if !std::mem::replace(&mut self.clients.channels[slot].is_confirming, true) {
            self.agenda.confirming.push(slot);
        }
    }

    /// Sends the confirms of a channel that are ready: what is sent next may close it.
    pub fn tell_confirms_of<F: Effects>(&mut self, channel: ChannelId, fx: &mut F) {
        let Some(slot) = self.channel_slot(channel) else { return };
        if let Some(confirms) = &mut self.clients.channels[slot].confirms {
            self.counters.confirmed += confirms.tell(channel, fx);
        }
    }

    /// Sends confirms that are ready, and tells of consumers that were cancelled; keeps what waits for a
    /// flush.
    pub(crate) fn tell_confirms<F: Effects>(&mut self, fx: &mut F) {
        if self.storage.state == StorageState::Exhausted {
            self.answer_without_flush(fx);
        }
        let mut confirming = std::mem::take(&mut self.agenda.confirming);
        confirming.retain(|slot| {
            let Some(channel) = self.clients.channels.get_mut(*slot) else { return false };
            channel.is_confirming = !channel.unanswered.is_empty();
            if !channel.is_confirming {
                tell_cancelled(channel, fx);
            }
            if let Some(confirms) = &mut channel.confirms {
                self.counters.confirmed += confirms.tell(channel.id, fx);
                channel.is_confirming |= confirms.is_waiting();
            }
            channel.is_confirming
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
            channel.answer_up_to(position, fx);
        }
        self.storage.flushed = position;
        self.sessions.flushed(position);
        if !self.agenda.unflushed.is_empty() {
            self.own_queues_flushed(position);
        }
        self.tell_confirms(fx);
    }

    /// No record can be written for now: what waits for that is answered so, except confirms, which may
    /// come late.
    #[cold]
    fn answer_without_flush<F: Effects>(&mut self, fx: &mut F) {
        for slot in &self.agenda.confirming {
            let Some(channel) = self.clients.channels.get_mut(*slot) else { continue };
            for (after, reply) in &mut channel.unanswered {
                if matches!(after, After::Flush(_)) {
                    *after = After::Nothing;
                    if reply.is_ok() {
                        *reply = Err(Refusal::awaits_room());
                    }
                }
            }
            channel.answer_up_to(self.storage.flushed, fx);
        }
    }

    /// The journal's state changed. On `Failed`, everything that waits for a flush is refused.
    pub fn storage_changed<F: Effects>(&mut self, state: StorageState, fx: &mut F) {
        self.storage.state = state;
        self.wake_all_replays();
        for (_, vhost) in self.topology.vhosts.iter_mut() {
            vhost.router.storage_changed(state);
        }
        match state {
            StorageState::Exhausted => self.tell_confirms(fx),
            StorageState::Failed => self.refuse_what_waits(fx),
            StorageState::Ready | StorageState::NoMemory | StorageState::Full => {}
        }
    }

    /// Nothing will be flushed any more: refuses everything that waits for it.
    fn refuse_what_waits<F: Effects>(&mut self, fx: &mut F) {
        for slot in std::mem::take(&mut self.agenda.confirming) {
            let Some(channel) = self.clients.channels.get_mut(slot) else { continue };
            channel.is_confirming = false;
            tell_cancelled(channel, fx);
            if let Some(confirms) = &mut channel.confirms {
                self.counters.confirmed += confirms.fail(channel.id, fx);
            }
            for _ in std::mem::take(&mut channel.unanswered) {
                let text = "the journal failed: whether that is stored is unknown";
                fx.reply(channel.id, Err(Refusal::new(RefusalKind::InDoubt, text)));
            }
        }
    }
}

impl Channel {
    /// Sends the answers that wait for nothing more, in order, where everything before `flushed` is flushed.
    fn answer_up_to<F: Effects>(&mut self, flushed: Position, fx: &mut F) {
        while self.unanswered.front().is_some_and(|(after, _)| after.is_over(flushed))
            && let Some((_, reply)) = self.unanswered.pop_front()
        {
            fx.reply(self.id, reply);
        }
    }
}

/// Tells a channel of its consumers that have ended with their queues.
fn tell_cancelled(channel: &mut Channel, fx: &mut impl Effects) {
    for (consumer, why) in std::mem::take(&mut channel.cancelled) {
        fx.consumer_cancelled(channel.id, &consumer, why);
    }
}
