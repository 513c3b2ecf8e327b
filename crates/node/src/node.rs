//! The node's entry points: what happened, what to do, when to come back.

use crate::administration::Administration;
use crate::connection::Connection;
use crate::connection::framing::Framing;
use crate::connection::handler::AnyHandler;
use crate::connection::key::ConnectionKey;
use crate::connection::proof::Proof;
use crate::connection::table::{Connections, SWEEP_INTERVAL};
use crate::effects::NodeEffects;
use crate::flow::FlowControl;
use crate::flow::throttle::HomeSaid;
use crate::memory::account::{Account, OUTPUT_BYTES};
use crate::memory::shortage::Shortage;
use crate::options::Options;
use crate::shard::inbox::Inbox;
use crate::storage::StorageStatus;
use crate::storage::recovery;
use angarium_engine::{ConnectionId, Engine, ShardId, Time};
use angarium_journal::Storage;
use angarium_protocol::websocket::Code;
use angarium_protocol::{Close, Context, Peer, Protocol, ProtocolHandler, Traffic, Writer};

/// How many connections go on with their input in a turn of which each uses up its work budget.
const RESTING_BUDGETS: usize = 2;

/// A connection with this many times [`Options::outbox_bytes_max`] unsent, beyond what direct messages may
/// take, is not read from: answers to its requests are written whether or not it reads them.
const CHOKED: usize = 4;

/// Counters of the node itself; engine and journal have their own.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Connections accepted since the start.
    pub connections_total: u64,
    /// Connections now.
    pub connections: u64,
    /// Bytes received from connections that have ended and those that live.
    pub received_bytes: u64,
    /// Bytes sent to them.
    pub sent_bytes: u64,
    /// Connections ended because they were too far behind for direct messages.
    pub slow_consumers_disconnected: u64,
    /// Times a connection was not read from because it, or its user, had sent more than it may.
    pub throttled: u64,
    /// Times a connection was not read from for a moment because it flooded others.
    pub floods_paused: u64,
    /// Connections ended because they took nothing of their output for long.
    pub stalled_disconnected: u64,
    /// Times a connection was not read from because of what it held in memory.
    pub memory_pauses: u64,
    /// Times its unfinished messages were refused after that.
    pub memory_refusals: u64,
    /// Clients whose credentials were wrong.
    pub authentications_failed: u64,
}

/// One shard of a broker.
#[derive(Debug)]
pub struct Node {
    pub(crate) options: Options,
    pub(crate) engine: Engine,
    pub(crate) effects: NodeEffects,
    pub(crate) connections: Connections,
    pub(crate) flow: FlowControl,
    pub(crate) memory: Account,
    pub(crate) shortage: Shortage,
    pub(crate) storage: StorageStatus,
    pub(crate) administration: Administration,
    /// What other shards have sent and what is not processed yet.
    pub(crate) inbox: Inbox,
    pub(crate) stats: Stats,
}

impl Node {
    /// A broker's home shard, with everything that `storage` holds.
    pub fn recover(options: Options, storage: &dyn Storage, now: Time) -> Result<Node, String> {
        let (engine, effects) = recovery::recover(&options, storage, now)?;
        let mut node = Node::new(options, engine, effects);
        node.watch_storage(now);
        Ok(node)
    }

    /// Another shard of a broker, from home's [`Node::introduction`].
    pub fn join(options: Options, introduction: &[Vec<u8>]) -> Result<Node, String> {
        let mut engine = recovery::engine(&options);
        let mut effects = NodeEffects::new(None, &options);
        for news in introduction {
            engine.apply_sync(ShardId::HOME, news, &mut effects)?;
        }
        Ok(Node::new(options, engine, effects))
    }

    fn new(options: Options, engine: Engine, mut effects: NodeEffects) -> Node {
        // Slot 0 is never a client's: the broker's own advisories come from there.
        effects.reset(ConnectionId(0));
        Node {
            flow: FlowControl::new(&options),
            memory: Account::new(options.memory),
            shortage: Shortage::default(),
            options,
            engine,
            effects,
            connections: Connections::new(),
            storage: StorageStatus::default(),
            administration: Administration::default(),
            inbox: Inbox::default(),
            stats: Stats::default(),
        }
    }

    /// The engine, for views of what is in it.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Virtual host and name of a queue that was created with fewer copies than it is to have, for the log.
    pub fn next_lacking_copies(&mut self) -> Option<(String, String)> {
        self.effects.lacking_copies.pop()
    }

    /// Whether this is the shard with the queues and the journal.
    pub fn is_home(&self) -> bool {
        self.options.shard == ShardId::HOME
    }

    /// Counters.
    pub fn stats(&self) -> Stats {
        let mut stats = self.stats.clone();
        for connection in self.connections.slots.iter().flatten() {
            stats.received_bytes += connection.traffic.bytes_received;
            stats.sent_bytes += connection.traffic.bytes_sent;
        }
        stats
    }

    // ---- connections ----

    /// A client connected.
    pub fn connected(&mut self, now: Time, peer: Peer) -> ConnectionId {
        let id = self.take_slot();
        self.connections.serial += 1;
        self.stats.connections_total += 1;
        self.stats.connections += 1;
        self.effects.outbox[id.0 as usize].writer = Writer::new(peer.protocol);
        let key = ConnectionKey { id, serial: self.connections.serial };
        let handler = AnyHandler::new(&self.options, key, &peer, now);
        let framing = Framing::new(peer.protocol);
        let awaits_first_bytes = peer.protocol == Protocol::Any;
        self.connections.slots[id.0 as usize] = Some(Box::new(Connection {
            handler,
            peer,
            framing,
            proof: Proof::default(),
            connected_at: now,
            serial: self.connections.serial,
            openings_before: self.engine.openings(),
            carry: Vec::new(),
            ended: None,
            was_late: false,
            stores: false,
            uses_home: false,
            home_said: HomeSaid::default(),
            is_slowed: false,
            last_slowed: None,
            is_resting: false,
            waits_for_room: false,
            metered: None,
            traffic: Traffic::default(),
            is_active: true,
            has_taken: false,
            taken_at: now,
        }));
        self.begin(now, id);
        if awaits_first_bytes {
            self.await_first_bytes(now, id);
        }
        self.apply_quota(id);
        if let Some(why) = self.connections.stopping.clone() {
            self.close_connection(now, id, &why);
        }
        if self.connections.next_sweep.is_none() {
            self.connections.next_sweep = Some(now.plus(SWEEP_INTERVAL));
        }
        id
    }

    /// Takes a free slot.
    pub(crate) fn take_slot(&mut self) -> ConnectionId {
        let id = self.connections.free.pop().unwrap_or_else(|| {
            self.connections.slots.push(None);
            ConnectionId(
                u32::try_from(self.connections.slots.len() - 1).expect("fewer than 2^32 slots"),
            )
        });
        self.effects.reset(id);
        id
    }

    /// Makes a slot free, whose connection has gone.
    pub(crate) fn free_slot(&mut self, id: ConnectionId) {
        self.effects.replies.retain(|answer| answer.channel.connection != id);
        self.memory.remove(id);
        self.effects.reset(id);
        self.connections.free.push(id);
    }

    /// All slots, taken or not, but the first one.
    pub(crate) fn slots(&self) -> impl Iterator<Item = ConnectionId> + use<> {
        let count = u32::try_from(self.connections.slots.len()).expect("fewer than 2^32 slots");
        (1..count).map(ConnectionId)
    }

    /// The client of a connection that has been taken over begins to encrypt its transport.
    pub fn encrypts(&mut self, now: Time, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(id) {
            connection.has_begun(now);
        }
    }

    /// That is done.
    pub fn encrypted(&mut self, now: Time, id: ConnectionId, certificate_name: Option<String>) {
        if let Some(connection) = self.connections.get_mut(id) {
            connection.peer.encrypted = true;
            connection.peer.certificate_name.clone_from(&certificate_name);
            connection.handler.encrypted(certificate_name);
            self.await_first_bytes(now, id);
        }
    }

    /// Whether too much is unsent for the connection to be read from. A slow consumer of direct messages is
    /// still read from: it may unsubscribe or publish.
    pub(crate) fn is_choked(&self, id: ConnectionId) -> bool {
        let outbox = &self.effects.outbox[id.0 as usize];
        let most = self.options.outbox_bytes_max.saturating_mul(CHOKED);
        let direct = if outbox.writer.has_subscribers() { outbox.unsent_max } else { 0 };
        outbox.unsent() > most.saturating_add(direct)
    }

    /// How many bytes are to be sent to the connection.
    pub fn unsent(&self, id: ConnectionId) -> usize {
        self.effects.outbox[id.0 as usize].unsent()
    }

    /// Those that are to be sent next; where there are more, the connection has output again once these are
    /// sent.
    pub fn outgoing(&self, id: ConnectionId) -> &[u8] {
        self.effects.outbox[id.0 as usize].pending()
    }

    /// What is to be sent to the connection part by part, these ones first, where it lies in several
    /// places.
    pub fn outgoing_parts(&self, id: ConnectionId) -> Option<impl Iterator<Item = &[u8]>> {
        self.effects.outbox[id.0 as usize].pending_parts()
    }

    /// Records that `bytes` bytes were sent.
    pub fn sent(&mut self, id: ConnectionId, bytes: usize) {
        let was_choked = self.is_choked(id);
        if let Some(connection) = self.connections.get_mut(id) {
            connection.traffic.bytes_sent += bytes as u64;
            connection.is_active = true;
            connection.has_taken |= bytes > 0;
        }
        if self.effects.sent(id, bytes) {
            self.engine.writable(id);
        }
        self.effects.tell_drained(id);
        if self.is_choked(id) {
            return;
        }
        // It may have room because its oldest messages were dropped.
        let connection = self.connections.get_mut(id);
        let had_to_wait =
            connection.is_some_and(|connection| std::mem::take(&mut connection.waits_for_room));
        if was_choked || had_to_wait {
            self.connections.resumable.push(id);
        }
    }

    /// Whether the connection has ended and all its output is sent: the transport is to be closed, and
    /// [`Node::disconnected`] called.
    pub fn should_close(&self, id: ConnectionId) -> bool {
        self.connections.get(id).is_some_and(|it| it.ended.is_some())
            && !self.effects.outbox[id.0 as usize].has_output()
    }

    /// Why the connection ended, if it has; for the log.
    pub fn end_reason(&self, id: ConnectionId) -> Option<&str> {
        self.connections.get(id)?.ended.as_deref()
    }

    /// Whether it ended because it did not do in time what was expected of it: what was sent to it and not
    /// taken yet need not reach it.
    pub fn was_late(&self, id: ConnectionId) -> bool {
        self.connections.get(id).is_some_and(|it| it.was_late)
    }

    /// The transport is gone, closed by either side.
    pub fn disconnected(&mut self, now: Time, id: ConnectionId) {
        self.end_episode(now, id, true);
        let Some(mut connection) = self.connections.slots[id.0 as usize].take() else { return };
        if let Some(metered) = &mut connection.metered {
            self.flow.rates.release(id, metered);
        }
        if connection.ended.is_none() {
            let mut context = Context { now, engine: &mut self.engine, host: &mut self.effects };
            connection.handler.disconnected(&mut context);
        }
        self.release_admission(id);
        self.stats.connections -= 1;
        self.stats.received_bytes += connection.traffic.bytes_received;
        self.stats.sent_bytes += connection.traffic.bytes_sent;
        self.free_slot(id);
    }

    /// Whether any connection has had output, or is to be closed, since [`Node::take_dirty`].
    pub fn has_dirty(&self) -> bool {
        !self.effects.dirty.is_empty()
    }

    /// Takes the connections that have output, or that are to be closed, since the last call; each once.
    pub fn take_dirty(&mut self, into: &mut Vec<ConnectionId>) {
        for id in self.effects.dirty.drain(..) {
            let outbox = &mut self.effects.outbox[id.0 as usize];
            outbox.is_dirty = false;
            outbox.part();
            outbox.begin_frame();
            if outbox.unsent_and_held() >= OUTPUT_BYTES
                && !std::mem::replace(&mut outbox.is_large, true)
            {
                self.effects.large_outputs.push(id);
            }
            into.push(id);
        }
    }

    // ---- turns ----

    /// Ends a turn: consumers with room get messages, answered connections go on,
    /// a due checkpoint is made.
    pub fn end_turn(&mut self, now: Time) {
        self.effects.begin_call(now);
        self.take_inbox(now);
        self.answer(now);
        if !self.connections.connection_queries.looks.is_empty() {
            self.continue_look(now);
        }
        if !self.administration.revocations.endings.is_empty() {
            self.end_some_connections(now);
            self.answer(now);
        }
        self.let_resting_go_on(now);
        // Connections that end here get no messages from the dispatch below.
        self.call_handlers(now);
        while let Some(id) = self.connections.resumable.pop() {
            self.drive_carry(now, id);
            self.answer(now);
        }
        if !self.connections.closed.is_empty() {
            self.end_closed(now);
        }
        self.engine.dispatch(now, &mut self.effects);
        self.answer(now);
        self.call_handlers(now);
        self.apply_changed_quotas();
        self.effects.refill_stirred();
        self.tell_caught_up(now);
        self.effects.tell_lost(&mut self.engine);
        self.begin_episodes(now);
        self.end_slow_consumers(now);
        self.forget_outran();
        self.tell_congestion();
        self.tell_spent();
        self.reckon_turn(now);
        self.effects.links.acknowledge();
        self.end_turn_of_disk(now);
    }

    /// Connections with much work go on with it in turn, as many as there is time for.
    fn let_resting_go_on(&mut self, now: Time) {
        let mut budgets = RESTING_BUDGETS;
        for _ in 0..self.connections.resting.len() {
            if budgets == 0 {
                break;
            }
            let Some(id) = self.connections.resting.pop_front() else { break };
            self.drive_carry(now, id);
            self.answer(now);
            budgets -= usize::from(self.engine.is_step_over());
        }
    }

    /// Whether the node would go on at once: the host does not sleep before the next turn.
    pub fn has_work(&self) -> bool {
        self.engine.has_work()
            || self.engine.is_taking_snapshot()
            || !self.connections.resumable.is_empty()
            || !self.connections.resting.is_empty()
            || !self.inbox.is_empty()
            || !self.connections.connection_queries.looks.is_empty()
            || !self.administration.revocations.endings.is_empty()
            || !self.effects.spill.stirred.is_empty()
            || !self.effects.calling.is_empty()
    }

    /// When [`Node::expire`], or the end of a turn, next has something to do.
    pub fn deadline(&self) -> Option<Time> {
        let closing = self.connections.closing.first().map(|(due, _)| *due);
        let pauses = [self.flow.slowed.deadline(), self.effects.stalls.deadline()];
        let StorageStatus { writes, proof, .. } = &self.storage;
        let others = [self.flow.rates.deadline(), writes.due, proof.due];
        let all = [self.engine.deadline(), self.connections.next_sweep, closing].into_iter();
        all.chain(pauses).chain(others).flatten().min()
    }

    /// Does what has become due.
    pub fn expire(&mut self, now: Time) {
        if self.engine.deadline().is_some_and(|due| due <= now) {
            self.engine.expire(now, &mut self.effects);
            for (channel, why) in std::mem::take(&mut self.effects.failed_channels) {
                self.tell_failed(now, channel, why);
            }
        }
        if self.connections.next_sweep.is_some_and(|due| due <= now) {
            self.sweep(now);
        }
        while self.connections.closing.first().is_some_and(|(due, _)| *due <= now) {
            let (_, id) = self.connections.closing.pop_first().expect("there is a first");
            self.expire_connection(now, id);
        }
        self.let_slowed_go_on(now);
        self.effects.stalls.end_due(now);
        self.let_paid_go_on(now);
    }

    // ---- the end ----

    /// Begins to shut down: closes every connection with the reason.
    pub fn shutdown(&mut self, now: Time, why: &str) {
        self.connections.stopping = Some(why.into());
        self.end_in_process(now, why);
        for id in self.slots() {
            self.close_connection(now, id, why);
        }
    }

    /// Closes one connection; says whether there was one.
    pub fn close_connection(&mut self, now: Time, id: ConnectionId, why: &str) -> bool {
        self.with_handler(now, id, |handler, context| handler.close(context, why));
        let Some(connection) = self.connections.get(id) else {
            return false;
        };
        if let Some(due) = connection.handler.deadline() {
            self.connections.closing.insert((due, id));
        }
        true
    }

    /// Connections that may be lost without this broker's knowing it, with their shards: the host finds out,
    /// and has [`Node::doubt`] called there.
    pub fn take_doubted(&mut self) -> Vec<(ShardId, ConnectionId)> {
        std::mem::take(&mut self.effects.doubted)
    }

    /// Has a connection that may be lost say something to its client.
    pub fn doubt(&mut self, now: Time, id: ConnectionId) {
        self.with_handler(now, id, |handler, context| handler.doubted(context));
    }

    /// Whether all clients are gone.
    pub fn is_drained(&self) -> bool {
        self.stats.connections == 0
    }

    /// Makes the last checkpoint, marked clean. The host runs jobs until there are none, then ends.
    ///
    /// What clients have acknowledged comes before, however much of it waits for further turns: after
    /// an end in order it does not come back.
    pub fn close(&mut self, now: Time) {
        self.storage.is_closing = true;
        while self.engine.is_settling() || !self.inbox.is_empty() {
            self.end_turn(now);
        }
        self.engine.give_up_snapshot();
        let mut snapshot = Vec::new();
        self.engine.snapshot(&mut snapshot);
        if let Some(journal) = &mut self.effects.journal {
            journal.close(snapshot);
        }
    }

    // ---- inside ----

    /// Whether there is a connection in that slot that has not ended.
    pub(crate) fn is_open(&self, id: ConnectionId) -> bool {
        self.connections.get(id).is_some_and(|it| it.ended.is_none())
    }

    /// Whether the connection in that slot is still this one.
    pub(crate) fn is_there(&self, key: ConnectionKey) -> bool {
        self.connections.get(key.id).is_some_and(|it| it.serial == key.serial)
    }

    /// Calls a connection's protocol handler, if the connection has not ended.
    pub(crate) fn with_handler<T>(
        &mut self,
        now: Time,
        id: ConnectionId,
        act: impl FnOnce(&mut AnyHandler, &mut Context<'_, NodeEffects>) -> T,
    ) -> Option<T> {
        let connection = self.connections.get_mut(id)?;
        if connection.ended.is_some() {
            return None;
        }
        let mut context = Context { now, engine: &mut self.engine, host: &mut self.effects };
        Some(act(&mut connection.handler, &mut context))
    }

    /// Calls a connection's protocol handler, after which the connection goes on with kept input, or ends.
    /// Says whether it goes on.
    pub(crate) fn resume_with(
        &mut self,
        now: Time,
        id: ConnectionId,
        act: impl FnOnce(&mut AnyHandler, &mut Context<'_, NodeEffects>) -> Result<(), Close>,
    ) -> bool {
        match self.with_handler(now, id, act) {
            Some(Ok(())) => self.connections.resumable.push(id),
            Some(Err(close)) => {
                self.end(now, id, close);
                return false;
            }
            None => return false,
        }
        true
    }

    /// Ends a connection from the broker's side; its output is still sent.
    pub(crate) fn end(&mut self, now: Time, id: ConnectionId, close: Close) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let mut context = Context { now, engine: &mut self.engine, host: &mut self.effects };
        connection.handler.disconnected(&mut context);
        connection.ended = Some(close.reason);
        connection.carry = Vec::new();
        if let Some(framing) = &mut self.effects.outbox[id.0 as usize].framing {
            let is_stopping = self.connections.stopping.is_some();
            framing.close(if is_stopping { Code::GOING_AWAY } else { Code::NORMAL });
        }
        self.effects.end_spooling(id);
        self.effects.touch(id);
    }

    /// Ends connections that are too far behind for direct messages; nothing more is sent to them.
    fn end_slow_consumers(&mut self, now: Time) {
        while let Some(id) = self.effects.given_up.pop() {
            // Another one may be in its place by now.
            if self.is_open(id) && self.effects.outbox[id.0 as usize].is_given_up {
                let most = self.effects.outbox[id.0 as usize].unsent_max;
                let reason = format!("slow consumer: more than {most} bytes unsent");
                self.stats.slow_consumers_disconnected += 1;
                self.end_episode(now, id, true);
                self.end(now, id, Close { reason });
                self.effects.outbox[id.0 as usize].discard();
            }
        }
    }
}
