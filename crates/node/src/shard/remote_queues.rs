//! Use of queues from another shard than home: requests that are carried home, what home does for them, and
//! its answers on the connection's shard.

use crate::connection::Connection;
use crate::connection::table::SWEEP_INTERVAL;
use crate::effects::NodeEffects;
use crate::node::Node;
use crate::shard::message::{CarriedBody, ChannelName, FromHome, ToHome, UNDERSTOOD, Value};
use crate::shard::remote_connection::RemoteConnection;
use angarium_engine::{
    Annotations, Call, ChannelId, ConnectionId, Delivery, DirectMessage, Effects, GetAnswer,
    Publish, Refusal, RefusalKind, Revocation, SendOutcome, Settle, ShardId, Time,
};
use angarium_protocol::ProtocolHandler;
use std::collections::VecDeque;

/// The part of a client's high-water mark after which home learns that deliveries have left.
const DRAINED_PART: u64 = 8;

// ---- on the connection's shard ----

impl NodeEffects {
    /// Carries a call of the engine home.
    pub(crate) fn carry_home(&mut self, call: Call<'_>) {
        self.has_called = true;
        match call {
            Call::Publish(channel, publish) => {
                self.outbox[channel.connection.0 as usize].is_owed = true;
                self.links.publish(channel, publish);
            }
            Call::PublishOnce(channel, number, publish) => {
                self.outbox[channel.connection.0 as usize].is_owed = true;
                self.links.publish_once(channel, number, publish);
            }
            Call::Settle(channel, settle, annotations) => {
                self.outbox[channel.connection.0 as usize].is_owed = true;
                self.links.ask_home(ToHome::Settle { channel, settle, annotations });
            }
            Call::Grant(channel, consumer, grant) => {
                self.outbox[channel.connection.0 as usize].is_owed = true;
                self.links.ask_home(ToHome::Grant { channel, grant, consumer });
            }
            Call::Request(channel, request) => {
                let value = Value::Request(request);
                self.links.say_with(ShardId::HOME, ToHome::Request { channel }, value);
            }
            Call::Connect { connection, user, vhost, client } => {
                self.links.ask_home(ToHome::Connect { connection, user, vhost, client });
            }
            Call::Open { channel, opening } => {
                self.links.ask_home(ToHome::Open { name: ChannelName { id: channel, opening } });
            }
            Call::Close(channel) => {
                self.links.ask_home(ToHome::Close { channel });
                self.links.sync(Some(channel.connection));
            }
            Call::Disconnect(connection) => {
                self.links.ask_home(ToHome::Disconnect { connection });
                self.links.sync(Some(connection));
            }
        }
    }

    /// Tells home how much of its deliveries has left, where that is worth a message.
    pub(crate) fn tell_drained(&mut self, connection: ConnectionId) {
        let most = self.outbox_bytes_max as u64;
        let outbox = &mut self.outbox[connection.0 as usize];
        if outbox.delivered < most / DRAINED_PART || outbox.unsent() as u64 > most / 2 {
            return;
        }
        let bytes = std::mem::take(&mut outbox.delivered);
        self.links.ask_home(ToHome::Drained { connection, bytes });
    }
}

impl Node {
    /// Does what home says to a channel here, unless it has ended in the meantime.
    pub(crate) fn take_from_home(
        &mut self,
        now: Time,
        answer: &FromHome<'_>,
        bytes: usize,
        values: &mut VecDeque<Value>,
    ) {
        let annotations = &mut Annotations::default();
        match *answer {
            FromHome::Deliver { name, tag, place, redelivered, consumer, group, message } => {
                let carried = CarriedBody::of(message, bytes, values);
                if self.is_here(name) {
                    let (channel, message) = (name.id, carried.parse(message, annotations));
                    let message = &message;
                    let delivery =
                        Delivery { channel, consumer, tag, place, redelivered, group, message };
                    self.effects.write_delivery(&delivery);
                }
                self.note_delivered(name, carried.bytes);
            }
            FromHome::GetAnswer { name, tag, redelivered, messages_left, message } => {
                let carried = CarriedBody::of(message, bytes, values);
                if self.is_here(name) {
                    let (channel, message) = (name.id, carried.parse(message, annotations));
                    let answer = GetAnswer { channel, tag, redelivered, messages_left, message };
                    self.effects.write_get_answer(&answer);
                }
                self.note_delivered(name, carried.bytes);
            }
            FromHome::Returned { name, message } => {
                let carried = CarriedBody::of(message, bytes, values);
                if self.is_here(name) {
                    let message = carried.parse(message, annotations);
                    self.effects.return_here(name.id, &message);
                }
            }
            FromHome::Confirm { name, .. }
            | FromHome::QueueCongested { name, .. }
            | FromHome::QueueEased { name, .. }
            | FromHome::Cancelled { name, .. }
            | FromHome::Drained { name, .. } => self.tell_here(name, answer),
            FromHome::SessionLost { name, session, why } => {
                if self.is_here(name) {
                    self.tell_session_lost(now, name.id, session, why);
                }
            }
            FromHome::Reply { name } => self.take_reply(now, name, values),
            FromHome::Failed { name } => self.take_failure(now, name, values),
            FromHome::Refused { name, settle } => self.take_refusal(now, name, settle, values),
            FromHome::Admitted { key, is_admitted } => self.admitted(now, key, is_admitted),
            FromHome::Stores { name } => {
                if let Some(connection) = self.connection_named(name) {
                    connection.stores = true;
                }
            }
            FromHome::Outrun { name } if self.was_here(name) => {
                self.note_outrun_at_home(now, name.id.connection);
            }
            FromHome::Flood { name, disturbs } if self.was_here(name) => {
                self.note_flood_at_home(now, name.id.connection, disturbs);
            }
            FromHome::Blocked { why } => self.set_blocked(now, why.map(str::to_owned)),
            FromHome::Congested { is_congested } => self.storage.is_congested = is_congested,
            FromHome::Yield { yields } => self.effects.spill.set_yields(yields),
            // Its channel has ended meanwhile.
            FromHome::Outrun { .. } | FromHome::Flood { .. } => {}
        }
    }

    /// Writes what home tells a channel here.
    fn tell_here(&mut self, name: ChannelName, answer: &FromHome<'_>) {
        if !self.is_here(name) {
            return;
        }
        let channel = name.id;
        let writer = self.effects.touch(channel.connection);
        match *answer {
            FromHome::Confirm { confirm, .. } => {
                writer.confirm(channel, confirm);
                self.effects.note_call(channel.connection);
            }
            FromHome::Cancelled { why, consumer, .. } => {
                writer.consumer_cancelled(channel, consumer, why);
                self.effects.note_call(channel.connection);
            }
            FromHome::QueueCongested { publish, queue, .. } => {
                writer.congested(channel, publish, queue);
            }
            FromHome::QueueEased { queue, .. } => writer.eased(channel, queue),
            FromHome::Drained { delivered, consumer, .. } => {
                writer.drained(channel, consumer, delivered);
            }
            _ => {}
        }
    }

    /// Whether a channel that home names is still there.
    fn is_here(&self, name: ChannelName) -> bool {
        self.engine.is_opening(name.id, name.opening)
    }

    /// A message of `bytes` came from home for a channel of a connection here; it has arrived even where the
    /// channel has been closed.
    fn note_delivered(&mut self, name: ChannelName, bytes: usize) {
        if !self.was_here(name) {
            return;
        }
        let connection = name.id.connection;
        self.effects.outbox[connection.0 as usize].delivered += bytes as u64;
        self.effects.tell_drained(connection);
    }

    /// Whether a channel was one of the connection that is there now.
    fn was_here(&mut self, name: ChannelName) -> bool {
        self.connection_named(name).is_some()
    }

    /// The connection that a channel is one of, or was.
    fn connection_named(&mut self, name: ChannelName) -> Option<&mut Connection> {
        let connection = self.connections.get_mut(name.id.connection);
        connection.filter(|connection| name.opening > connection.openings_before)
    }

    fn take_reply(&mut self, now: Time, name: ChannelName, values: &mut VecDeque<Value>) {
        let Some(Value::Reply(reply)) = values.pop_front() else { return };
        if self.is_here(name) {
            self.hand_reply(now, name.id, reply);
        }
    }

    fn take_failure(&mut self, now: Time, name: ChannelName, values: &mut VecDeque<Value>) {
        let Some(Value::Reply(Err(why))) = values.pop_front() else { return };
        if self.is_here(name) {
            self.tell_failed(now, name.id, why);
        }
    }

    /// Tells a handler that the engine has closed one of its channels.
    pub(crate) fn tell_failed(&mut self, now: Time, id: ChannelId, why: Refusal) {
        self.resume_with(now, id.connection, |handler, context| {
            handler.channel_failed(context, id, why);
            Ok(())
        });
    }

    fn take_refusal(
        &mut self,
        now: Time,
        name: ChannelName,
        settle: Option<Settle>,
        values: &mut VecDeque<Value>,
    ) {
        let Some(Value::Reply(Err(refusal))) = values.pop_front() else { return };
        if self.is_here(name) {
            self.resume_with(now, name.id.connection, |handler, context| {
                handler.refused(context, name.id, settle, refusal);
                Ok(())
            });
        }
    }
}

// ---- at home ----

impl NodeEffects {
    /// A channel of a remote connection has failed: its shard learns why, and what it still asks for is
    /// ignored.
    pub(crate) fn fail_remote_channel(&mut self, channel: ChannelId, why: Refusal) {
        let Some((shard, name)) = self.name_of(channel) else { return };
        self.links.say_with(shard, FromHome::Failed { name }, Value::Reply(Err(why)));
        if let Some(remote) = self.remote_mut(channel.connection) {
            remote.failed(channel.number);
        }
    }

    /// The shard and name of a channel that is a remote connection's.
    #[inline]
    pub(crate) fn name_of(&self, channel: ChannelId) -> Option<(ShardId, ChannelName)> {
        let remote = self.outbox[channel.connection.0 as usize].remote.as_ref()?;
        Some((remote.shard, remote.name(channel.number)))
    }

    /// Hands a remote connection the answer to a request of its own, if it keeps up.
    #[cold]
    pub(crate) fn send_to_guest(&mut self, message: &DirectMessage<'_>) -> SendOutcome {
        let DirectMessage { channel, subscription: consumer, tag, message, .. } = *message;
        if !self.has_room(channel.connection) {
            return SendOutcome::Dropped;
        }
        let message = &message;
        let (place, redelivered) = (0, false);
        let group = None;
        self.deliver(&Delivery { channel, consumer, tag, place, redelivered, group, message });
        SendOutcome::Sent
    }

    fn remote_mut(&mut self, slot: ConnectionId) -> Option<&mut RemoteConnection> {
        self.outbox[slot.0 as usize].remote.as_deref_mut()
    }
}

impl Node {
    /// Does what a channel of another shard asks for.
    pub(crate) fn serve_remote(
        &mut self,
        now: Time,
        from: ShardId,
        request: &ToHome<'_>,
        bytes: usize,
        values: &mut VecDeque<Value>,
    ) {
        match *request {
            ToHome::Connect { connection, user, vhost, client } => {
                self.connections.next_sweep.get_or_insert(now.plus(SWEEP_INTERVAL));
                self.connect_remote(from, connection, user, vhost);
                if let Some(slot) = self.effects.links.remote(from, connection) {
                    self.engine.name_client(slot, client);
                }
            }
            ToHome::Open { name: ChannelName { id, opening } } => {
                let Some(channel) = self.remote_channel(from, id) else { return };
                let remote = self.effects.remote_mut(channel.connection).expect("it was found");
                remote.opened(id.number, opening);
                if remote.refusal.is_none() {
                    self.engine.open(channel);
                }
            }
            ToHome::Settle { channel, settle, annotations } => {
                let Some(channel) = self.served_channel(from, channel) else { return };
                self.note_remote_input(now, channel.connection, bytes);
                self.effects.begin_call(now);
                let fx = &mut self.effects;
                let settled = self.engine.settle_annotated(now, channel, settle, annotations, fx);
                if let Err(refusal) = settled {
                    self.refuse(now, channel, Some(settle), refusal);
                }
            }
            ToHome::Grant { channel, grant, consumer } => {
                let Some(channel) = self.served_channel(from, channel) else { return };
                self.note_remote_input(now, channel.connection, bytes);
                self.engine.grant(channel, consumer, grant, &mut self.effects);
            }
            ToHome::Request { channel } => {
                let Some(Value::Request(request)) = values.pop_front() else { return };
                let Some(channel) = self.served_channel(from, channel) else { return };
                self.note_remote_input(now, channel.connection, bytes);
                self.effects.begin_call(now);
                self.engine.request(now, channel, request, &mut self.effects);
                self.tell_what_it_did(channel);
                // Before what others do next: the cancelling of what was just begun, say.
                self.answer(now);
            }
            ToHome::Close { channel } => {
                let Some(channel) = self.remote_channel(from, channel) else { return };
                self.engine.close(now, channel, &mut self.effects);
                if let Some(remote) = self.effects.remote_mut(channel.connection) {
                    remote.closed(channel.number);
                }
            }
            ToHome::Admit { key, user } => self.admit(from, key, user),
            ToHome::Enter { key, vhost } => self.enter(from, key, vhost),
            ToHome::Ended => self.ended_at(now, from),
            ToHome::Left { connection } => self.forget_admission(from, connection),
            ToHome::Disconnect { connection } => self.disconnect_remote(now, from, connection),
            ToHome::Drained { connection, bytes } => self.drained(from, connection, bytes),
            ToHome::Publish { .. } | ToHome::PublishOnce { .. } => {
                self.publish_for_remote(now, from, request, bytes, values);
            }
        }
    }

    /// Publishes a message of a remote connection.
    fn publish_for_remote(
        &mut self,
        now: Time,
        from: ShardId,
        request: &ToHome<'_>,
        bytes: usize,
        values: &mut VecDeque<Value>,
    ) {
        let (channel, number, message) = match *request {
            ToHome::Publish { channel, message } => (channel, None, message),
            ToHome::PublishOnce { channel, number, message } => (channel, Some(number), message),
            _ => return,
        };
        let carried = CarriedBody::of(message, bytes, values);
        self.effects.links.took(from, carried.bytes);
        let Some(channel) = self.served_channel(from, channel) else { return };
        self.note_remote_input(now, channel.connection, carried.bytes);
        let mut further = Vec::new();
        let publish =
            Publish::parse(message, &mut further, carried.body.as_ref()).expect(UNDERSTOOD);
        self.effects.begin_call(now);
        let (engine, fx) = (&mut self.engine, &mut self.effects);
        let published = match number {
            None => engine.publish(now, channel, &publish, fx),
            Some(number) => engine.publish_once(now, channel, number, &publish, fx),
        };
        self.tell_what_it_did(channel);
        if let Err(refusal) = published {
            self.refuse(now, channel, None, refusal);
        }
    }

    /// Tells a remote connection's shard if it has just stored messages or outrun consumers, for which it may
    /// have to wait.
    fn tell_what_it_did(&mut self, channel: ChannelId) {
        let NodeEffects { has_stored, has_outrun, .. } = self.effects;
        let Some(remote) = self.effects.remote_mut(channel.connection) else { return };
        let is_first = has_stored && !std::mem::replace(&mut remote.has_stored, has_stored);
        let is_ahead = has_outrun && !std::mem::replace(&mut remote.has_outrun, has_outrun);
        if !is_first && !is_ahead {
            return;
        }
        let (shard, name) = (remote.shard, remote.name(channel.number));
        if is_first {
            self.effects.links.say(shard, FromHome::Stores { name });
        }
        if is_ahead {
            self.effects.links.say(shard, FromHome::Outrun { name });
            self.flow.outran.push(channel.connection);
        }
    }

    /// A connection of another shard begins to use queues.
    fn connect_remote(
        &mut self,
        shard: ShardId,
        connection: ConnectionId,
        user: &str,
        vhost: &str,
    ) {
        let slot = self.take_slot();
        // Its virtual host may have been deleted since its own shard let it in.
        let refusal = self.engine.connect_remote(slot, user, vhost).err();
        let (user, vhost) = (user.to_owned(), vhost.to_owned());
        let none = RemoteConnection::default();
        let remote = RemoteConnection { shard, connection, user, vhost, refusal, ..none };
        self.effects.outbox[slot.0 as usize].remote = Some(Box::new(remote));
        self.effects.links.set_remote(shard, connection, Some(slot));
    }

    /// It has gone.
    fn disconnect_remote(&mut self, now: Time, shard: ShardId, connection: ConnectionId) {
        let Some(slot) = self.effects.links.remote(shard, connection) else { return };
        self.effects.links.set_remote(shard, connection, None);
        self.end_remote_input(now);
        self.engine.disconnect(now, slot, &mut self.effects);
        self.free_slot(slot);
    }

    /// A remote connection's channel as home's engine knows it.
    fn remote_channel(&self, from: ShardId, id: ChannelId) -> Option<ChannelId> {
        let connection = self.effects.links.remote(from, id.connection)?;
        Some(ChannelId { connection, number: id.number })
    }

    /// A remote connection's channel, unless it has failed or home refuses the connection.
    #[inline]
    fn served_channel(&mut self, from: ShardId, id: ChannelId) -> Option<ChannelId> {
        let channel = self.remote_channel(from, id)?;
        let remote = self.effects.remote_mut(channel.connection)?;
        if !remote.is_served(id.number) {
            return None;
        }
        match remote.refusal.clone() {
            None => Some(channel),
            Some(refusal) => {
                self.say_refused(channel, None, refusal);
                None
            }
        }
    }

    /// Closes a channel that asked for what cannot be, and says why.
    fn refuse(&mut self, now: Time, channel: ChannelId, settle: Option<Settle>, refusal: Refusal) {
        self.engine.close(now, channel, &mut self.effects);
        self.say_refused(channel, settle, refusal);
    }

    fn say_refused(&mut self, channel: ChannelId, settle: Option<Settle>, refusal: Refusal) {
        let Some((shard, name)) = self.effects.name_of(channel) else { return };
        let value = Value::Reply(Err(refusal));
        self.effects.links.say_with(shard, FromHome::Refused { name, settle }, value);
        if let Some(remote) = self.effects.remote_mut(channel.connection) {
            remote.failed(channel.number);
        }
    }

    /// Deliveries to a remote connection have left its shard.
    fn drained(&mut self, from: ShardId, connection: ConnectionId, bytes: u64) {
        let most = RemoteConnection::underway_max(self.effects.outbox_bytes_max);
        let Some(slot) = self.effects.links.remote(from, connection) else { return };
        let Some(remote) = self.effects.remote_mut(slot) else { return };
        remote.underway = remote.underway.saturating_sub(bytes);
        if remote.underway <= most / 2 && remote.wants_room.replace(false) {
            self.engine.writable(slot);
        }
    }

    /// Ends home's part of a connection of another shard, if there is one in that slot that rests on
    /// what is taken away; says whether it did. Its own shard ends the rest of it.
    pub(crate) fn end_remote_if_included(
        &mut self,
        now: Time,
        slot: ConnectionId,
        revocation: Revocation<&str>,
    ) -> bool {
        let Some(remote) = self.effects.remote_mut(slot) else { return false };
        if remote.refusal.is_some() || !revocation.includes(&remote.user, &remote.vhost, false) {
            return false;
        }
        let text = revocation.reason();
        remote.refusal = Some(Refusal::new(RefusalKind::AccessRefused, text));
        self.engine.disconnect(now, slot, &mut self.effects);
        true
    }

    /// Ends a turn: connections that outran consumers may be reported again.
    pub(crate) fn forget_outran(&mut self) {
        for slot in std::mem::take(&mut self.flow.outran) {
            if let Some(remote) = self.effects.remote_mut(slot) {
                remote.has_outrun = false;
            }
        }
    }
}
