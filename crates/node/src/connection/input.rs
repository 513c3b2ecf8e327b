//! Input on its way to protocol handlers: when it is read, and how much of it is taken in a turn.

use crate::connection::read_pause::WaitsFor;
use crate::node::Node;
use angarium_engine::{ConnectionId, Time};
use angarium_protocol::{Context, ProtocolHandler};

/// How often a handler is presented input in a turn: it stops after each request and each subscription, which
/// cost far more for their bytes than messages, so that a flood of them takes as much of a turn as a read of
/// messages. It also stops when the work budget is spent.
const PRESENTATIONS_MAX: usize = 16;

/// The least that is put behind kept input to complete it: most messages end within that.
const JOINED_BYTES_MIN: usize = 2 << 10;

impl Node {
    /// Bytes arrived.
    pub fn received(&mut self, now: Time, id: ConnectionId, bytes: &[u8]) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        if connection.ended.is_some() {
            return;
        }
        connection.traffic.bytes_received += bytes.len() as u64;
        connection.is_active = true;
        if connection.framing.is_some() {
            return self.received_framed(now, id, bytes);
        }
        self.take_input(now, id, bytes);
    }

    /// Takes what a connection's protocol handler is to have.
    #[inline]
    pub(crate) fn take_input(&mut self, now: Time, id: ConnectionId, bytes: &[u8]) {
        let before = self.publish_counts();
        let Some(connection) = self.connections.get_mut(id) else { return };
        if connection.ended.is_some() {
            return;
        }
        self.engine.begin_work_budget();
        if connection.carry.is_empty() {
            let used = self.drive(now, id, bytes);
            if let Some(connection) = self.connections.get_mut(id) {
                connection.carry.extend_from_slice(&bytes[used..]);
            }
        } else {
            self.complete_carry(now, id, bytes);
        }
        self.slow_flood(now, id, bytes.len(), before);
        self.count_input(now, id, bytes.len());
        self.slow_dropped(now, id, bytes.len());
    }

    /// Presents kept input with as much of `bytes` behind it as it takes to complete it, and the rest
    /// where it lies: nearly every read ends amid a message, and not all of the next is to be copied for
    /// that.
    fn complete_carry(&mut self, now: Time, id: ConnectionId, bytes: &[u8]) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.is_resting = false;
        let mut carry = std::mem::take(&mut connection.carry);
        let mut rest = bytes;
        while !rest.is_empty() && !self.is_resting(id) {
            let kept = carry.len();
            let (joined, behind) = rest.split_at(rest.len().min(kept.max(JOINED_BYTES_MIN)));
            carry.extend_from_slice(joined);
            let used = self.drive(now, id, &carry);
            if let Some(at) = used.checked_sub(kept) {
                carry.clear();
                rest = &rest[at..];
                if !self.is_resting(id) {
                    rest = &rest[self.drive(now, id, rest)..];
                }
                break;
            }
            carry.drain(..used);
            rest = behind;
        }
        carry.extend_from_slice(rest);
        if let Some(connection) = self.connections.get_mut(id) {
            connection.carry = carry;
        }
    }

    fn is_resting(&self, id: ConnectionId) -> bool {
        self.connections.get(id).is_some_and(|it| it.is_resting)
    }

    /// Presents input to a protocol handler until it uses no more or the turn is over; returns how much it
    /// used.
    fn drive(&mut self, now: Time, id: ConnectionId, input: &[u8]) -> usize {
        let mut used = 0;
        let mut portion = self.portion(now, id);
        let mut presentations = 0;
        loop {
            let is_choked = self.is_choked(id);
            let Some(connection) = self.connections.get_mut(id) else { return used };
            if connection.ended.is_some() {
                return input.len();
            }
            let is_throttled = connection.metered.as_ref().is_some_and(|it| it.is_waiting());
            if connection.handler.is_waiting() || is_throttled {
                return used;
            }
            if self.effects.links.is_fanning_out(id) {
                return used;
            }
            if self.engine.is_fanning_out(id) {
                self.rest(id);
                return used;
            }
            if is_choked {
                connection.waits_for_room = true;
                return used;
            }
            if connection.handler.is_undecided()
                && !connection.handler.decide(&self.options, id, &connection.peer, input)
            {
                return used;
            }
            let end = input.len().min(used.saturating_add(portion));
            let before = self.engine.taken();
            self.effects.begin_call(now);
            let mut context = Context { now, engine: &mut self.engine, host: &mut self.effects };
            let result = connection.handler.receive(&mut context, &input[used..end]);
            let published = self.engine.taken() - before;
            connection.traffic.messages_received += published;
            connection.stores |= self.effects.has_stored;
            connection.uses_home |= self.effects.has_called;
            if self.effects.has_outrun {
                self.slow_down(now, id, WaitsFor::Consumers);
            }
            let progress = match result {
                Ok(progress) => progress,
                Err(close) => {
                    self.answer(now);
                    self.end(now, id, close);
                    return input.len();
                }
            };
            used += progress;
            let has_answered = self.answer(now);
            if progress > 0 {
                self.meter(now, id, published, progress);
            }
            if progress == 0 && end < input.len() {
                portion = portion.saturating_mul(2);
                continue;
            }
            portion = self.portion(now, id);
            if used == input.len() || (progress == 0 && !has_answered) {
                return used;
            }
            presentations += 1;
            if presentations == PRESENTATIONS_MAX || self.engine.is_step_over() {
                self.rest(id);
                return used;
            }
        }
    }

    /// The connection's input has to wait for the next turn.
    fn rest(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        if !std::mem::replace(&mut connection.is_resting, true) {
            self.connections.resting.push_back(id);
        }
    }

    /// Nothing more comes from a connection: what is kept of its input is presented once more. Says whether
    /// some of that has to wait, for the login say, or its answer for other shards: until then it is not
    /// disconnected.
    pub fn input_ended(&mut self, now: Time, id: ConnectionId) -> bool {
        if self.has_kept_input(id) {
            self.drive_carry(now, id);
            self.answer(now);
        }
        self.has_kept_input(id) && !self.wants_read(id) || self.is_ahead_of_shards(id)
    }

    /// Whether a connection has sent something that is not used yet, or that not all shards know.
    pub fn is_underway(&self, id: ConnectionId) -> bool {
        self.has_kept_input(id) || self.is_ahead_of_shards(id)
    }

    fn is_ahead_of_shards(&self, id: ConnectionId) -> bool {
        self.is_open(id) && !self.effects.links.is_settled(id)
    }

    fn has_kept_input(&self, id: ConnectionId) -> bool {
        self.connections.get(id).is_some_and(|it| it.ended.is_none() && !it.carry.is_empty())
    }

    /// Presents a connection's kept input again.
    pub(crate) fn drive_carry(&mut self, now: Time, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        self.engine.begin_work_budget();
        connection.is_resting = false;
        let mut carry = std::mem::take(&mut connection.carry);
        let used = self.drive(now, id, &carry);
        if let Some(connection) = self.connections.get_mut(id) {
            carry.drain(..used);
            connection.carry = carry;
        }
    }
}
