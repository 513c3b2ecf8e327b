//! The shard's clients: reads from them, sends to them, closes them.

use super::client::{Client, Phase};
use super::shard::{CLIENT, Shard};
use super::socket::{Offer, Received, Sent, Socket};
use crate::reactor::busy_poll::Party;
use angarium_engine::{ConnectionId, Time};
use angarium_node::Node;
use angarium_protocol::Peer;
use rustix::event::epoll::{self, EventFlags};
use rustix::net::sockopt;
use slab::Slab;
use std::collections::BTreeSet;
use std::io::IoSlice;
use std::time::Duration;

/// How long a client may take to end its side after the broker has ended its own.
const LINGER: Duration = Duration::from_secs(2);
/// What a client may still send then: what fits the buffers of both sockets. One that sends more does not
/// read what it was sent, and is closed.
const LINGER_BYTES: usize = 16 << 20;
/// How long a client may take to read its last output.
const LAST_OUTPUT: Duration = Duration::from_secs(10);
/// Bytes that one client is sent in a turn, or somewhat more.
const SENT_BYTES: usize = 256 << 10;

/// A client whose socket is watched closely.
#[derive(Debug)]
pub(super) struct Questioned {
    pub(super) id: ConnectionId,
    pub(super) until: Time,
    /// The milliseconds that its system may take to acknowledge otherwise; 0: the usual.
    pub(super) otherwise: u32,
}

/// All clients, by slot.
#[derive(Debug, Default)]
pub(super) struct Clients {
    slots: Slab<Box<Client>>,
    /// Slot + 1 by the node's id; 0: none.
    by_id: Vec<u32>,
    /// When clients are closed unless they leave their phase.
    deadlines: BTreeSet<(Time, u32)>,
    /// Clients that are not read from now.
    paused: Vec<ConnectionId>,
    /// Clients that may be lost.
    pub(super) questioned: Vec<Questioned>,
    /// Clients that have gone and whose last input is not processed completely.
    leaving: Vec<ConnectionId>,
}

impl Clients {
    pub(super) fn insert(&mut self, client: Client) -> usize {
        let deadline = client.deadline;
        let index = self.slots.insert(Box::new(client));
        self.deadlines.extend(deadline.map(|deadline| (deadline, slot_of(index))));
        index
    }

    pub(super) fn get(&mut self, index: usize) -> Option<&mut Client> {
        self.slots.get_mut(index).map(|client| &mut **client)
    }

    /// The socket of a client without TLS that takes output now.
    pub(super) fn plain_socket(&self, index: usize) -> Option<&Socket> {
        let client = self.slots.get(index)?;
        let takes_bytes = client.tls.is_none() && !client.is_full;
        takes_bytes.then_some(&client.socket)
    }

    /// Records what a client's socket took of `offered` bytes.
    pub(super) fn took(&mut self, index: usize, offered: usize, sent: &Sent) {
        if let Some(client) = self.get(index) {
            client.took(offered, sent);
        }
    }

    /// The slot of the node's connection.
    pub(super) fn index_of(&self, id: ConnectionId) -> Option<usize> {
        let slot = self.by_id.get(id.0 as usize).copied()?;
        slot.checked_sub(1).map(|slot| slot as usize)
    }

    /// Marks a client as waiting with much unsent output; `false` if it was marked already.
    pub(super) fn begins_to_wait(&mut self, id: ConnectionId) -> bool {
        let client = self.index_of(id).and_then(|index| self.get(index));
        client.is_some_and(|client| !std::mem::replace(&mut client.is_waiting, true))
    }

    /// Takes that mark away.
    pub(super) fn has_waited(&mut self, id: ConnectionId) {
        if let Some(client) = self.index_of(id).and_then(|index| self.get(index)) {
            client.is_waiting = false;
        }
    }

    /// The node's name for the client in that slot.
    pub(super) fn id_of(&self, index: usize) -> Option<ConnectionId> {
        self.slots.get(index)?.id()
    }

    pub(super) fn name(&mut self, index: usize, id: ConnectionId) {
        let at = id.0 as usize;
        if at >= self.by_id.len() {
            self.by_id.resize(at + 1, 0);
        }
        self.by_id[at] = slot_of(index) + 1;
    }

    /// Places of clients, those without one between them counted.
    pub(super) fn places(&self) -> usize {
        self.slots.iter().next_back().map_or(0, |(index, _)| index + 1)
    }

    fn unname(&mut self, id: ConnectionId) {
        self.by_id[id.0 as usize] = 0;
        self.leaving.retain(|other| *other != id);
    }

    pub(super) fn set_deadline(&mut self, index: usize, deadline: Option<Time>) {
        let Some(client) = self.slots.get_mut(index) else { return };
        if let Some(before) = std::mem::replace(&mut client.deadline, deadline) {
            self.deadlines.remove(&(before, slot_of(index)));
        }
        self.deadlines.extend(deadline.map(|deadline| (deadline, slot_of(index))));
    }

    /// The next deadline of a client.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// A client whose deadline has passed.
    pub(super) fn next_overdue(&self, now: Time) -> Option<usize> {
        self.deadlines.first().filter(|(due, _)| *due <= now).map(|(_, slot)| *slot as usize)
    }

    pub(super) fn remove(&mut self, index: usize) -> Option<Box<Client>> {
        self.set_deadline(index, None);
        self.slots.try_remove(index)
    }
}

fn slot_of(index: usize) -> u32 {
    u32::try_from(index).expect("slots are numbered with 32 bits")
}

impl Shard {
    /// epoll says that a client's socket can be read or written.
    pub(super) fn client_ready(&mut self, index: usize, flags: EventFlags) {
        let Some(client) = self.clients.get(index) else { return };
        if flags.contains(EventFlags::OUT) {
            client.is_full = false;
            self.send(index);
        }
        if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
            self.receive(index, flags);
        }
    }

    fn receive(&mut self, index: usize, flags: EventFlags) {
        let Some(client) = self.clients.get(index) else { return };
        if !client.is_read() {
            // Both halves have ended while it was not read from: nothing can be sent any more.
            if flags.contains(EventFlags::ERR) {
                self.drop_client(index);
            } else if flags.contains(EventFlags::HUP) {
                self.unwatch(index);
            }
            return;
        }
        if client.id().is_some_and(|id| !self.node.wants_read(id)) {
            self.watch(index);
            return;
        }
        if matches!(client.phase, Phase::Proxied(..)) {
            return self.take_proxy_header(index);
        }
        self.look_for_tls(index);
        let Some(client) = self.clients.get(index) else { return };
        let bytes = self.read_budget.of(index);
        let block = &mut self.block[..bytes];
        match client.receive(block, &mut self.plain) {
            Ok(Received::Nothing) => {}
            Ok(Received::Ended) => self.input_ended(index),
            Ok(Received::Bytes(count)) => {
                self.read_budget.received(count);
                self.received(index, count);
            }
            Err(error) => self.tls_failed(index, &error),
        }
    }

    /// A client has ended its output. It is dropped when its last input is processed and answered: it may
    /// still read.
    fn input_ended(&mut self, index: usize) {
        let id = self.clients.get(index).and_then(|client| client.id());
        let Some(id) = id.filter(|id| self.node.is_underway(*id)) else {
            return self.drop_client(index);
        };
        self.unwatch(index);
        self.clients.leaving.push(id);
    }

    /// Processes the last input of clients that have gone, as far as possible; returns those that are done.
    pub(super) fn take_last_input(&mut self) -> Vec<ConnectionId> {
        let leaving = std::mem::take(&mut self.clients.leaving);
        let (waiting, done) =
            leaving.into_iter().partition(|id| self.node.input_ended(self.now, *id));
        self.clients.leaving = waiting;
        done
    }

    /// Drops clients.
    pub(super) fn drop_clients(&mut self, ids: Vec<ConnectionId>) {
        for id in ids {
            if let Some(index) = self.clients.index_of(id) {
                self.drop_client(index);
            }
        }
    }

    fn received(&mut self, index: usize, count: usize) {
        let Some(client) = self.clients.get(index) else { return };
        let handshake_ended = match (&client.phase, &client.tls) {
            (Phase::Handshaking(_), Some(tls)) => !tls.is_handshaking(),
            _ => false,
        };
        let is_encrypted = client.tls.is_some();
        self.coalescing.received(&mut client.stream, count);
        self.busy_poll.received(Party::Client(index));
        self.watchdog.received = count;
        if handshake_ended {
            self.handshaken(index);
        }
        self.tell_tls(index);
        let Some(client) = self.clients.get(index) else { return };
        if let Phase::Lingering { dropped } = &mut client.phase {
            *dropped += count;
            if *dropped > LINGER_BYTES {
                return self.drop_client(index);
            }
        }
        let Some(id) = client.id() else {
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

    /// Reads again from paused clients that the node wants input of.
    pub(super) fn resume_paused(&mut self) {
        if !self.clients.questioned.is_empty() {
            self.end_questions();
        }
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

    /// Sends a client its output, and closes it if the node is done with it. Returns how many bytes it was
    /// offered.
    pub(super) fn send(&mut self, index: usize) -> usize {
        self.keep_handed_out();
        let mut taken = 0;
        loop {
            let Some(client) = self.clients.get(index) else { return taken };
            let Some(id) = client.id() else {
                if client.tls.is_some()
                    && client.send(&Offer::Whole(IoSlice::new(&[]))) == Sent::Ended
                {
                    self.drop_client(index);
                } else {
                    self.watch(index);
                }
                return taken;
            };
            if client.is_full {
                break;
            }
            let offer = offer(&self.node, id);
            let offered = offer.len();
            let has_ciphertext = client.tls.as_ref().is_some_and(|tls| !tls.is_flushed());
            if offered == 0 && !has_ciphertext {
                break;
            }
            let sent = client.send(&offer);
            let has_taken_all = offered > 0 && sent == Sent::Bytes(offered);
            taken += offered;
            let wants_more = self.sent(index, id, offered, &sent);
            // A backlog may lie in small pieces.
            let goes_on = wants_more || (has_taken_all && taken < SENT_BYTES);
            if !goes_on {
                break;
            }
        }
        self.watch(index);
        self.close_if_done(index);
        taken
    }

    /// Records what a client took of `offered` bytes; says whether it may be offered more.
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
                let Some(client) = self.clients.get(index) else { return false };
                client.stream.sent();
                self.busy_poll.sent(Party::Client(index));
                client.is_full || count < offered
            }
            Sent::Full => false,
        }
    }

    fn close_if_done(&mut self, index: usize) {
        let Some(client) = self.clients.get(index) else { return };
        let Some(id) = client.id() else { return };
        if self.node.end_reason(id).is_none() {
            return;
        }
        if client.is_full || !self.node.should_close(id) {
            if client.deadline.is_none() {
                self.clients.set_deadline(index, Some(self.now.plus(LAST_OUTPUT)));
            }
            return;
        }
        self.linger(index);
    }

    /// Ends the output to a client, and drops its input for a while: if the socket were closed with unread
    /// input, the reset would cost the client its last output.
    pub(super) fn linger(&mut self, index: usize) {
        self.reset_if_late(index);
        let Some(client) = self.clients.get(index) else { return };
        let id = client.id();
        client.end();
        if let Some(id) = id {
            self.log_client(id, "connection ends");
            self.node.disconnected(self.now, id);
            self.clients.unname(id);
        }
        self.clients.set_deadline(index, Some(self.now.plus(LINGER)));
        self.watch(index);
    }

    /// Has a client that did not do in time what was expected of it learn by a reset that its socket is
    /// closed, and drops what the machine holds for it: it might take nothing of that for ever.
    fn reset_if_late(&mut self, index: usize) {
        let Some(client) = self.clients.get(index) else { return };
        if client.id().is_some_and(|id| self.node.was_late(id)) {
            // Without it the end comes behind what it has not taken.
            let _ = sockopt::set_socket_linger(&client.socket, Some(Duration::ZERO));
        }
    }

    /// Changes what epoll watches for a client.
    fn watch(&mut self, index: usize) {
        let Some(client) = self.clients.get(index) else { return };
        let mut flags = EventFlags::empty();
        if client.id().is_none_or(|id| self.node.wants_read(id)) {
            flags |= EventFlags::IN;
        }
        if client.is_full {
            flags |= EventFlags::OUT;
        }
        let reads = flags.contains(EventFlags::IN);
        let was_watched = client.watched.is_some();
        if client.watched == Some(flags) || !(was_watched || reads) {
            return;
        }
        let pauses = client.is_read() && !reads;
        client.watched = Some(flags);
        if let (true, Some(id)) = (pauses, client.id()) {
            self.clients.paused.push(id);
        }
        let Some(client) = self.clients.get(index) else { return };
        let data = epoll::EventData::new_u64(CLIENT | index as u64);
        let watched = match was_watched {
            true => epoll::modify(&self.epoll, &client.socket, data, flags),
            false => epoll::add(&self.epoll, &client.socket, data, flags),
        };
        if let Err(error) = watched {
            tracing::error!(%error, "cannot watch a connection");
            self.drop_client(index);
        }
    }

    /// Takes a client out of epoll that has gone and has input to be read later: epoll would report its end
    /// until then.
    fn unwatch(&mut self, index: usize) {
        let Some(client) = self.clients.get(index) else { return };
        client.watched = None;
        if epoll::delete(&self.epoll, &client.socket).is_err() {
            self.drop_client(index);
        }
    }

    /// Closes a client that has stayed too long in its phase.
    pub(super) fn overdue(&mut self, index: usize) {
        if let Some(client) = self.clients.get(index)
            && let Phase::Handshaking(peer) | Phase::Proxied(peer, _) = &client.phase
        {
            let peer = peer.address.clone();
            self.log_failed_handshake(Some(peer), "the handshake took too long");
            self.counters.handshakes_failed += 1;
        }
        self.drop_client(index);
    }

    /// Closes a client's transport and disconnects it from the node.
    pub(super) fn drop_client(&mut self, index: usize) {
        self.reset_if_late(index);
        let Some(client) = self.clients.remove(index) else { return };
        self.directory.left();
        if let Some(id) = client.id() {
            self.log_client(id, "connection is gone");
            self.node.disconnected(self.now, id);
            self.clients.unname(id);
        }
        // Closing the descriptor takes it out of epoll.
    }

    /// Logs an event of a client.
    pub(super) fn log_client(&self, id: ConnectionId, what: &str) {
        if !tracing::enabled!(tracing::Level::DEBUG) {
            return;
        }
        let Some(connection) = self.node.connection(self.now, id) else { return };
        let info = connection.info;
        let Peer { address, encrypted, .. } = info.peer;
        let reason = self.node.end_reason(id);
        tracing::debug!(
            connection = connection.figures.number,
            peer = address,
            user = info.user,
            encrypted,
            reason,
            "{what}"
        );
    }

    /// Drops all clients.
    pub(super) fn close_all(&mut self) {
        let all: Vec<usize> = self.clients.slots.iter().map(|(index, _)| index).collect();
        all.into_iter().for_each(|index| self.drop_client(index));
    }
}

/// The next output of a client.
#[inline]
pub(super) fn offer(node: &Node, id: ConnectionId) -> Offer<'_> {
    match node.outgoing_parts(id) {
        None => Offer::Whole(IoSlice::new(node.outgoing(id))),
        Some(parts) => Offer::of(parts, SENT_BYTES),
    }
}
