//! What each connection holds, reckoned while it grows and twice a second; and what follows where that is
//! more than it may hold.
//!
//! - Unsent direct messages: the bound beyond which its slow-consumer policy applies is lowered.
//! - Deliveries of queues: none before it has settled some.
//! - Unfinished messages: it is not read from for a while; if it holds as much then, they are refused and it
//!   goes on.
//! - What else would make it hold more is refused: declarations, bindings, subscriptions, transactions.

use super::account::{CONNECTION_LEAST, MemoryLimits, Standing};
use super::shortage::MemoryNews;
use crate::node::Node;
use crate::shard::message::ShardMessage;
use angarium_engine::{ConnectionId, HeldMemory, MemoryKind, Time};
use angarium_protocol::ProtocolHandler;
use std::time::Duration;

/// Input after which a connection is reckoned anew.
const INPUT_BYTES: usize = 64 << 10;
/// What a connection takes by itself.
const CONNECTION_BYTES: u64 = 3 << 10;
/// How often a definition is in memory: once more while a checkpoint is made.
const DEFINITION_COPIES: u64 = 2;
/// Why a connection is not read from, as its protocol says it.
const LOW: &str = "low on memory";
/// How long unfinished messages may wait for memory, as long as the system does not refuse it.
const PATIENCE: Duration = Duration::from_secs(5);

impl Node {
    /// Input came from a connection, here or at another shard.
    #[inline]
    pub(crate) fn count_input(&mut self, now: Time, id: ConnectionId, bytes: usize) {
        let Some(outbox) = self.effects.outbox.get_mut(id.0 as usize) else { return };
        outbox.memory.uncounted += bytes;
        if outbox.memory.uncounted >= INPUT_BYTES {
            self.reckon(now, id);
        }
    }

    /// What a connection holds.
    fn held_by(&self, id: ConnectionId) -> HeldMemory {
        let mut held = HeldMemory::default();
        self.engine.add_held(id, &mut held);
        if let Some(connection) = self.connections.get(id) {
            let input = connection.carry.capacity() + connection.handler.held_bytes();
            let sessions = self.effects.outbox[id.0 as usize].writer.held_bytes();
            held.add(MemoryKind::Channels, CONNECTION_BYTES + sessions as u64);
            held.add(MemoryKind::Input, input as u64);
            let outbox = &self.effects.outbox[id.0 as usize];
            held.add(MemoryKind::Output, outbox.unsent_and_kept() as u64);
        }
        held
    }

    /// Counts what a connection holds, and makes it wait or go on.
    pub(crate) fn reckon(&mut self, now: Time, id: ConnectionId) {
        let held = self.held_by(id);
        let outbox = &mut self.effects.outbox[id.0 as usize];
        outbox.memory.uncounted = 0;
        let standing = match (self.connections.get(id), &outbox.remote) {
            (Some(connection), _) => self.memory.set(id, connection.handler.info().user, held),
            (None, Some(remote)) => self.memory.set(id, &remote.user, held),
            (None, None) => return,
        };
        self.engine.set_memory_short(id, standing.is_refused);
        let outbox = &mut self.effects.outbox[id.0 as usize];
        let was_short = std::mem::replace(&mut outbox.is_short, standing.is_short);
        outbox.set_ceiling(standing.ceiling, self.effects.outbox_bytes_max);
        if was_short && !standing.is_short {
            self.effects.outbox[id.0 as usize].wants_room.set(false);
            self.engine.writable(id);
        }
        self.pause_for_memory(now, id, standing, held.get(MemoryKind::Input));
    }

    /// Pauses a connection whose unfinished messages take too much, or ends its pause.
    fn pause_for_memory(&mut self, now: Time, id: ConnectionId, standing: Standing, input: u64) {
        let pauses = standing.is_short && input > CONNECTION_LEAST;
        let waits = &mut self.effects.outbox[id.0 as usize].memory;
        match (pauses, waits.paused_since) {
            (true, None) => {
                waits.paused_since = Some(now);
                self.stats.memory_pauses += 1;
                self.with_handler(now, id, |handler, context| handler.blocked(context, Some(LOW)));
            }
            (false, Some(_)) => self.end_pause(now, id),
            _ => {}
        }
    }

    fn end_pause(&mut self, now: Time, id: ConnectionId) {
        self.effects.outbox[id.0 as usize].memory.paused_since = None;
        let why = self.storage.blocked.clone();
        self.with_handler(now, id, |handler, context| handler.blocked(context, why.as_deref()));
        self.connections.resumable.push(id);
    }

    /// Refuses the unfinished messages of a connection that has waited for memory long enough. What it still
    /// holds of its input then is room without content, or a part of a frame or line, whose size is bounded:
    /// it is read again, so that its end is noticed.
    fn refuse_unfinished(&mut self, now: Time, id: ConnectionId) {
        let paused_since = self.effects.outbox[id.0 as usize].memory.paused_since;
        let patience = if self.storage.has_no_memory { Duration::ZERO } else { PATIENCE };
        if paused_since.is_none_or(|since| now.since(since) < patience) {
            return;
        }
        self.stats.memory_refusals += 1;
        if !self.resume_with(now, id, |handler, context| handler.refuse_unfinished(context)) {
            return;
        }
        if let Some(connection) = self.connections.get_mut(id) {
            connection.carry.shrink_to_fit();
        }
        self.reckon(now, id);
        if self.effects.outbox[id.0 as usize].memory.paused_since.is_some() {
            self.end_pause(now, id);
        }
    }

    /// Reckons connections with much unsent output, and what is held for all.
    pub(crate) fn reckon_turn(&mut self, now: Time) {
        while let Some(id) = self.effects.large_outputs.pop() {
            self.effects.outbox[id.0 as usize].is_large = false;
            self.reckon(now, id);
        }
        while let Some((user, bytes)) = self.engine.next_change_of_definitions() {
            self.memory.set_definitions(&user, bytes.saturating_mul(DEFINITION_COPIES));
        }
        let unwritten = self.effects.journal.as_ref().map_or(0, |it| it.backlog_bytes());
        self.memory.set_common(MemoryKind::Messages, self.engine.message_memory() + unwritten);
        self.memory.set_common(MemoryKind::Spooled, self.effects.spill.unwritten_bytes());
        // Home knows what all shards hold.
        let max = self.options.memory.all;
        if self.is_home()
            && let Some(is_short) = self.shortage.look(now, self.memory.all(), max)
        {
            self.shortage.untold = Some(MemoryNews::of(&self.memory, is_short, max));
        }
        while let Some((user, bytes)) = self.memory.next_untold() {
            self.effects.links.say_to_all(ShardMessage::Held { user: &user, bytes });
        }
    }

    /// What the host's log is to say of memory.
    pub fn next_memory_news(&mut self) -> Option<MemoryNews> {
        self.shortage.untold.take()
    }

    /// Called twice a second for each connection.
    pub(crate) fn sweep_memory(&mut self, now: Time, id: ConnectionId) {
        self.reckon(now, id);
        self.refuse_unfinished(now, id);
    }

    /// Whether anything is held here on behalf of peers.
    pub(crate) fn holds_memory(&self) -> bool {
        self.memory.here().all() > 0
    }

    /// What peers hold on this shard, by kind.
    #[must_use]
    pub fn held_memory(&self) -> HeldMemory {
        self.memory.here()
    }

    /// How many connections hold more than they may.
    #[must_use]
    pub fn memory_short_connections(&self) -> u64 {
        self.memory.short()
    }

    /// The limits of what peers hold.
    #[must_use]
    pub fn memory_limits(&self) -> MemoryLimits {
        self.options.memory
    }
}
