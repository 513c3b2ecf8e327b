//! Looks at all connections from time to time: heartbeats, timeouts, what they hold, buffers of idle ones.

use crate::connection::table::SWEEP_INTERVAL;
use crate::node::Node;
use angarium_engine::{ConnectionId, Time};
use angarium_protocol::{Close, ProtocolHandler};

/// Connections that are looked at before others get their turn.
const SWEPT_AT_ONCE: usize = 2_048;

impl Node {
    /// Looks at every connection (heartbeats, timeouts, buffers of idle ones) and, if the disk is full,
    /// whether it still is.
    pub(crate) fn sweep(&mut self, now: Time) {
        let from = std::mem::take(&mut self.connections.swept);
        if from == 0 {
            self.effects.sweep_stalls(now);
            self.effects.spill.sweep();
            self.end_episodes(now);
        }
        for id in self.slots().skip(from).take(SWEPT_AT_ONCE) {
            self.sweep_memory(now, id);
            self.end_if_stalled(now, id);
            let proves_nothing = self.proves_nothing(id);
            let Some(connection) = self.connections.get_mut(id) else { continue };
            if proves_nothing {
                connection.handler.reading_paused(now);
            }
            if !std::mem::take(&mut connection.is_active) {
                free_if_empty(&mut connection.carry);
                free_if_empty(&mut self.effects.outbox[id.0 as usize].writer.output.bytes);
            }
            self.expire_connection(now, id);
        }
        if from + SWEPT_AT_ONCE < self.connections.slots.len() {
            // The others have their turns next.
            self.connections.swept = from + SWEPT_AT_ONCE;
            self.connections.next_sweep = Some(now);
            return;
        }
        let is_full = self.retry_if_full();
        self.resume_spill_when_due(now);
        let has_cause =
            is_full || self.storage.spill_resumes.is_some() || self.stats.connections > 0;
        let has_cause = has_cause || self.holds_memory() || self.storage.has_no_memory;
        self.connections.next_sweep = has_cause.then(|| now.plus(SWEEP_INTERVAL));
    }

    /// Whether a connection's silence says nothing of whether it is still there: it is not read from, or it
    /// takes what was sent to it before it was asked.
    fn proves_nothing(&self, id: ConnectionId) -> bool {
        let connection = self.connections.get(id);
        let is_taking = connection.is_some_and(|it| it.is_active) && self.unsent(id) > 0;
        is_taking || !self.wants_read(id)
    }

    /// Has a connection do what has become due there.
    pub(crate) fn expire_connection(&mut self, now: Time, id: ConnectionId) {
        let connection = self.connections.get(id);
        let deadline = connection.and_then(|connection| connection.handler.deadline());
        if deadline.is_some_and(|due| due <= now)
            && !self.greet_silent(now, id)
            && let Some(Err(close)) =
                self.with_handler(now, id, |handler, context| handler.expire(context))
        {
            self.end_late(now, id, close);
        }
    }

    /// Ends a connection that did not do in time what was expected of it.
    pub(crate) fn end_late(&mut self, now: Time, id: ConnectionId, close: Close) {
        self.end(now, id, close);
        // A broker that stops gives all of them little time.
        let was_late = self.connections.stopping.is_none();
        if let Some(connection) = self.connections.get_mut(id) {
            connection.was_late = was_late;
        }
    }
}

/// Frees the room of a buffer that is empty.
fn free_if_empty(buffer: &mut Vec<u8>) {
    if buffer.is_empty() {
        *buffer = Vec::new();
    }
}
