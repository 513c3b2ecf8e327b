//! The shard's clients: read from, sent to, closed.

use super::connection::{Connection, Phase};
use super::shard::{CLIENT, Shard};
use super::socket::{Offer, Received, Sent, Socket};
use crate::reactor::busy_poll::Party;
use angarium_engine::{ConnectionId, Time};
use angarium_node::Node;
use angarium_protocol::Peer;
use rustix::event::epoll::{self, EventFlags};
use std::collections::BTreeSet;
use std::time::Duration;

/// How long a client that is done may take to end its side.
const LINGER: Duration = Duration::from_secs(2);
/// How long a client may take to read the last that is sent to it.
const LAST_OUTPUT: Duration = Duration::from_secs(10);
/// What one client is sent in a turn, or somewhat more, where it takes that and there is more.
const SENT_BYTES: usize = 256 << 10;

/// All clients, by slot.
#[derive(Debug, Default)]
pub(super) struct Clients {
    slots: Vec<Option<Box<Connection>>>,
    free: Vec<u32>,
    /// Slot + 1 by the node's id; 0: none.
    by_id: Vec<u32>,
    /// Those that are closed unless they get on.
    deadlines: BTreeSet<(Time, u32)>,
    /// Those that are not read from at the moment.
    paused: Vec<ConnectionId>,
    /// Those that have gone, some of whose last words wait.
    leaving: Vec<ConnectionId>,
}

impl Clients {
    pub(super) fn insert(&mut self, connection: Connection) -> usize {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            u32::try_from(self.slots.len() - 1).expect("descriptors fit 32 bits")
        });
        if let Some(deadline) = connection.deadline {
            self.deadlines.insert((deadline, slot));
        }
        self.slots[slot as usize] = Some(Box::new(connection));
        slot as usize
    }

    pub(super) fn get(&mut self, index: usize) -> Option<&mut Connection> {
        self.slots.get_mut(index)?.as_deref_mut()
    }

    /// The socket of one that takes bytes as they are, and takes some now.
    pub(super) fn plain_socket(&self, index: usize) -> Option<&Socket> {
        let connection = self.slots.get(index)?.as_deref()?;
        let takes_bytes = connection.tls.is_none() && !connection.is_full;
        takes_bytes.then_some(&connection.socket)
    }

    /// What its socket took of what it was offered.
    pub(super) fn took(&mut self, index: usize, offered: usize, sent: &Sent) {
        if let Some(connection) = self.get(index) {
            connection.took(offered, sent);
        }
    }

    /// Where the node's connection is.
    pub(super) fn index_of(&self, id: ConnectionId) -> Option<usize> {
        let slot = self.by_id.get(id.0 as usize).copied()?;
        slot.checked_sub(1).map(|slot| slot as usize)
    }

    /// Has one wait for its turn to be sent some of much; says whether it did not do so already.
    pub(super) fn begins_to_wait(&mut self, id: ConnectionId) -> bool {
        let connection = self.index_of(id).and_then(|index| self.get(index));
        connection.is_some_and(|connection| !std::mem::replace(&mut connection.is_waiting, true))
    }

    /// It is its turn.
    pub(super) fn has_waited(&mut self, id: ConnectionId) {
        if let Some(connection) = self.index_of(id).and_then(|index| self.get(index)) {
            connection.is_waiting = false;
        }
    }

    /// The node's name for the one there.
    pub(super) fn id_of(&self, index: usize) -> Option<ConnectionId> {
        self.slots.get(index)?.as_ref()?.id()
    }

    pub(super) fn name(&mut self, index: usize, id: ConnectionId) {
        let at = id.0 as usize;
        if at >= self.by_id.len() {
            self.by_id.resize(at + 1, 0);
        }
        self.by_id[at] = slot_of(index) + 1;
    }

    fn unname(&mut self, id: ConnectionId) {
        self.by_id[id.0 as usize] = 0;
        self.leaving.retain(|other| *other != id);
    }

    pub(super) fn set_deadline(&mut self, index: usize, deadline: Option<Time>) {
        let Some(connection) = self.slots[index].as_mut() else { return };
        let before = std::mem::replace(&mut connection.deadline, deadline);
        if let Some(before) = before {
            self.deadlines.remove(&(before, slot_of(index)));
        }
        if let Some(deadline) = deadline {
            self.deadlines.insert((deadline, slot_of(index)));
        }
    }

    /// When the next one is overdue.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// One whose time is over.
    pub(super) fn next_overdue(&self, now: Time) -> Option<usize> {
        self.deadlines.first().filter(|(due, _)| *due <= now).map(|(_, slot)| *slot as usize)
    }

    pub(super) fn remove(&mut self, index: usize) -> Option<Box<Connection>> {
        self.set_deadline(index, None);
        let connection = self.slots[index].take()?;
        self.free.push(slot_of(index));
        Some(connection)
    }
}

fn slot_of(index: usize) -> u32 {
    u32::try_from(index).expect("slots are numbered with 32 bits")
}

impl Shard {
    /// epoll says that a client's socket can be read or written.
    pub(super) fn client_ready(&mut self, index: usize, flags: EventFlags) {
        let Some(connection) = self.clients.get(index) else { return };
        if flags.contains(EventFlags::OUT) {
            connection.is_full = false;
            self.send(index);
        }
        if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
            self.receive(index, flags);
        }
    }

    fn receive(&mut self, index: usize, flags: EventFlags) {
        let Some(connection) = self.clients.get(index) else { return };
        if !connection.is_read() {
            // Both halves are gone while we were not reading: nothing can be sent any more.
            if flags.contains(EventFlags::ERR) {
                self.drop_client(index);
            } else if flags.contains(EventFlags::HUP) {
                self.unwatch(index);
            }
            return;
        }
        if connection.id().is_some_and(|id| !self.node.wants_read(id)) {
            self.watch(index);
            return;
        }
        self.look_for_tls(index);
        let Some(connection) = self.clients.get(index) else { return };
        let bytes = self.share.of(index);
        let block = &mut self.block[..bytes];
        match connection.receive(block, &mut self.plain) {
            Ok(Received::Nothing) => {}
            Ok(Received::Ended) => self.input_ended(index),
            Ok(Received::Bytes(count)) => {
                self.share.received(count);
                self.received(index, count);
            }
            Err(error) => self.tls_failed(index, &error),
        }
    }

    /// Nothing more comes from a client. What it said last may have to wait, and is answered before it is
    /// dropped: it may still read.
    fn input_ended(&mut self, index: usize) {
        let id = self.clients.get(index).and_then(|connection| connection.id());
        let Some(id) = id.filter(|id| self.node.is_underway(*id)) else {
            return self.drop_client(index);
        };
        self.unwatch(index);
        self.clients.leaving.push(id);
    }

    /// Has the last words of those that have gone taken in, as far as can be; returns whose are.
    pub(super) fn hear_last_words(&mut self) -> Vec<ConnectionId> {
        let leaving = std::mem::take(&mut self.clients.leaving);
        let (waiting, done) =
            leaving.into_iter().partition(|id| self.node.input_ended(self.now, *id));
        self.clients.leaving = waiting;
        done
    }

    /// Drops those who have been answered.
    pub(super) fn drop_clients(&mut self, ids: Vec<ConnectionId>) {
        for index in ids.into_iter().filter_map(|id| self.clients.index_of(id)).collect::<Vec<_>>()
        {
            self.drop_client(index);
        }
    }

    fn received(&mut self, index: usize, count: usize) {
        let Some(connection) = self.clients.get(index) else { return };
        let handshake_ended = match (&connection.phase, &connection.tls) {
            (Phase::Handshaking(_), Some(tls)) => !tls.is_handshaking(),
            _ => false,
        };
        let is_encrypted = connection.tls.is_some();
        self.moderation.received(&mut connection.stream, count);
        self.polling.heard(Party::Client(index));
        self.watchdog.received = count;
        if handshake_ended {
            self.handshaken(index);
        }
        self.tell_tls(index);
        let Some(connection) = self.clients.get(index) else { return };
        let Some(id) = connection.id() else {
            self.watch(index);
            return;
        };
        if is_encrypted {
            if !self.plain.is_empty() {
                self.node.received(self.now, id, &self.plain);
            }
        } else {
            self.node.received(self.now, id, &self.block[..count]);
        }
        self.watch(index);
    }

    /// Reads again from those clients that the node wants more of.
    pub(super) fn resume_paused(&mut self) {
        let mut paused = std::mem::take(&mut self.clients.paused);
        paused.retain(|id| {
            let Some(index) = self.clients.index_of(*id) else { return false };
            if !self.node.wants_read(*id) {
                return true;
            }
            self.watch(index);
            false
        });
        self.clients.paused.append(&mut paused);
    }

    /// Sends what there is for a client, and closes it where the node is done with it. Returns how many bytes
    /// it was offered.
    pub(super) fn send(&mut self, index: usize) -> usize {
        let mut taken = 0;
        loop {
            let Some(connection) = self.clients.get(index) else { return taken };
            let Some(id) = connection.id() else {
                if connection.tls.is_some() && connection.send(&Offer::Whole(&[])) == Sent::Ended {
                    self.drop_client(index);
                } else {
                    self.watch(index);
                }
                return taken;
            };
            if connection.is_full {
                break;
            }
            let offer = offer(&self.node, id);
            let offered = offer.len();
            let has_ciphertext = connection.tls.as_ref().is_some_and(|tls| !tls.is_flushed());
            if offered == 0 && !has_ciphertext {
                break;
            }
            let sent = connection.send(&offer);
            let has_taken_all = offered > 0 && sent == Sent::Bytes(offered);
            taken += offered;
            let wants_more = self.sent(index, id, offered, &sent);
            // What one was behind with, and takes now, may lie in small pieces.
            let goes_on = wants_more || (has_taken_all && taken < SENT_BYTES);
            if !goes_on {
                break;
            }
        }
        self.watch(index);
        self.close_if_done(index);
        taken
    }

    /// Notes what a client took of what it was offered; says whether it may be offered more.
    pub(super) fn sent(
        &mut self,
        index: usize,
        id: ConnectionId,
        offered: usize,
        sent: &Sent,
    ) -> bool {
        match *sent {
            Sent::Ended => {
                self.drop_client(index);
                false
            }
            Sent::Bytes(count) => {
                self.node.sent(id, count);
                let Some(connection) = self.clients.get(index) else { return false };
                connection.stream.sent();
                self.polling.sent(Party::Client(index));
                connection.is_full || count < offered
            }
            Sent::Full => false,
        }
    }

    fn close_if_done(&mut self, index: usize) {
        let Some(connection) = self.clients.get(index) else { return };
        let Some(id) = connection.id() else { return };
        if self.node.end_reason(id).is_none() {
            return;
        }
        if connection.is_full || !self.node.should_close(id) {
            if connection.deadline.is_none() {
                self.clients.set_deadline(index, Some(self.now.plus(LAST_OUTPUT)));
            }
            return;
        }
        self.linger(index);
    }

    /// Has said all to a client, and reads on for a while: behind what is closed unread, its kernel would
    /// throw away what was said last.
    pub(super) fn linger(&mut self, index: usize) {
        let Some(connection) = self.clients.get(index) else { return };
        let id = connection.id();
        connection.end();
        if let Some(id) = id {
            self.log_client(id, "connection ends");
            self.node.disconnected(self.now, id);
            self.clients.unname(id);
        }
        self.clients.set_deadline(index, Some(self.now.plus(LINGER)));
        self.watch(index);
    }

    /// Tells epoll what to watch for a client, where that has changed.
    fn watch(&mut self, index: usize) {
        let Some(connection) = self.clients.get(index) else { return };
        let mut flags = EventFlags::empty();
        if connection.id().is_none_or(|id| self.node.wants_read(id)) {
            flags |= EventFlags::IN;
        }
        if connection.is_full {
            flags |= EventFlags::OUT;
        }
        let reads = flags.contains(EventFlags::IN);
        let was_watched = connection.watched.is_some();
        if connection.watched == Some(flags) || !(was_watched || reads) {
            return;
        }
        let pauses = connection.is_read() && !reads;
        connection.watched = Some(flags);
        if let (true, Some(id)) = (pauses, connection.id()) {
            self.clients.paused.push(id);
        }
        let Some(connection) = self.clients.get(index) else { return };
        let data = epoll::EventData::new_u64(CLIENT | index as u64);
        let watched = match was_watched {
            true => epoll::modify(&self.epoll, &connection.socket, data, flags),
            false => epoll::add(&self.epoll, &connection.socket, data, flags),
        };
        if let Err(error) = watched {
            tracing::error!(%error, "cannot watch a connection");
            self.drop_client(index);
        }
    }

    /// Lets a client alone that has gone, and of which there is something left to read later: epoll would
    /// tell of its end until then, whatever it is to watch.
    fn unwatch(&mut self, index: usize) {
        let Some(connection) = self.clients.get(index) else { return };
        connection.watched = None;
        if epoll::delete(&self.epoll, &connection.socket).is_err() {
            self.drop_client(index);
        }
    }

    /// A client has stayed too long in its phase.
    pub(super) fn overdue(&mut self, index: usize) {
        if let Some(connection) = self.clients.get(index)
            && let Phase::Handshaking(peer) = &connection.phase
        {
            tracing::info!(peer = ?peer.address, "TLS handshake took too long");
            self.counters.handshakes_failed += 1;
        }
        self.drop_client(index);
    }

    /// The transport is gone or given up.
    fn drop_client(&mut self, index: usize) {
        let Some(connection) = self.clients.remove(index) else { return };
        self.neighbours.left();
        if let Some(id) = connection.id() {
            self.log_client(id, "connection is gone");
            self.node.disconnected(self.now, id);
            self.clients.unname(id);
        }
        // Closing the descriptor takes it out of epoll.
    }

    /// Says what became of a client, and which one it is.
    pub(super) fn log_client(&self, id: ConnectionId, what: &str) {
        if !tracing::enabled!(tracing::Level::DEBUG) {
            return;
        }
        let Some(connection) = self.node.connection(self.now, id) else { return };
        let session = connection.session;
        let Peer { address, encrypted, .. } = session.peer;
        let reason = self.node.end_reason(id);
        tracing::debug!(
            connection = connection.number,
            peer = address,
            user = session.user,
            encrypted,
            ?reason,
            "{what}"
        );
    }

    /// Gives every client up.
    pub(super) fn close_all(&mut self) {
        for index in 0..self.clients.slots.len() {
            self.drop_client(index);
        }
    }
}

/// What a client is to be sent next.
#[inline]
pub(super) fn offer(node: &Node, id: ConnectionId) -> Offer<'_> {
    match node.outgoing_parts(id) {
        None => Offer::Whole(node.outgoing(id)),
        Some(parts) => Offer::of(parts, SENT_BYTES),
    }
}
