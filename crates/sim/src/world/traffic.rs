//! Bytes between clients and node: connections begin, carry, stall and end.

use super::stages::{CALM_DELAY, CALM_FRAGMENT, Stage};
use super::{Happening, World};
use crate::client::Client;
use crate::network::{Link, Pipe};
use angarium_engine::ConnectionId;
use angarium_protocol::Peer;
use std::time::Duration;

/// Most bytes that a host reads at once.
const READ_MAX: u64 = 64 << 10;

impl World {
    // ---- clients ----

    /// Has the client looked at when its own time comes.
    pub(super) fn schedule_client(&mut self, client: usize) {
        if let Some(due) = self.clients[client].deadline() {
            let pause = due.0.saturating_sub(self.now.0);
            self.schedule(pause, Happening::Client(client));
        }
    }

    pub(super) fn client_due(&mut self, client: usize) -> Result<(), String> {
        // An event for an earlier deadline than the present one finds nothing due and means nothing.
        if self.clients[client].deadline().is_none_or(|due| due > self.now) {
            return Ok(());
        }
        if self.clients[client].wants_connection(self.now) {
            self.connect(client);
        } else {
            self.with_client(client, Client::woken);
            self.after_client(client);
        }
        Ok(())
    }

    fn connect(&mut self, client: usize) {
        if self.node.is_none() || self.is_listening_over() {
            self.clients[client].not_reachable(self.now);
            self.schedule_client(client);
            return;
        }
        let faults = &self.plan.faults;
        // Some connections are in much smaller pieces than others.
        let fragment_max = match self.random.below(4) {
            0 => 1 + self.random.below(8),
            1 => 1 + self.random.below(200),
            _ => faults.fragment_max as u64,
        };
        let fragment_max = usize::try_from(fragment_max).expect("small").max(1);
        let delay_max = 20 + self.random.below(faults.delay_max);
        let pipe = || Pipe::new(faults.pipe_bytes);
        let (fragment_max, delay_max) = match self.stage {
            Stage::Working => (fragment_max, delay_max),
            _ => (CALM_FRAGMENT, CALM_DELAY),
        };
        let link = Link {
            client,
            node: None,
            is_client_open: true,
            up: pipe(),
            down: pipe(),
            fragment_max,
            delay_max,
        };
        let number = self.number();
        self.links.insert(number, link);
        self.accept(number);
        self.clients[client].connected();
        self.after_client(client);
    }

    fn accept(&mut self, number: u64) {
        let (Some(node), Some(link)) = (self.node.as_mut(), self.links.get_mut(&number)) else {
            return;
        };
        let peer = Peer {
            address: format!("127.0.0.1:{}", 10_000 + number % 50_000),
            local: true,
            ..Peer::default()
        };
        let slot = node.connected(self.now, peer);
        link.node = Some(slot);
        self.by_slot.insert(slot, number);
        self.want_turn();
    }

    /// Sends what the client wrote, and looks at what it wants.
    pub(super) fn after_client(&mut self, client: usize) {
        let number = self.link_of(client);
        if let Some(number) = number {
            self.send_up(number);
            let link = self.links.get_mut(&number).expect("just found");
            if self.clients[client].wants_to_close() {
                link.is_client_open = false;
                let pause = self.random.below(3_000_000);
                self.schedule(pause, Happening::NodeLost(number));
            }
        }
        self.schedule_client(client);
    }

    /// The client's open connection.
    pub(super) fn link_of(&self, client: usize) -> Option<u64> {
        let is_its = |link: &Link| link.client == client && link.is_client_open;
        self.links.iter().rev().find(|(_, link)| is_its(link)).map(|(number, _)| *number)
    }

    fn send_up(&mut self, number: u64) {
        let Some(link) = self.links.get_mut(&number) else { return };
        let output = &mut self.clients[link.client].wire.output;
        let written = link.up.write(output);
        self.history.digest.bytes(&output[..written]);
        output.drain(..written);
        self.schedule_up(number);
    }

    fn schedule_up(&mut self, number: u64) {
        let Some(link) = self.links.get_mut(&number) else { return };
        if link.up.is_scheduled || link.up.is_empty() {
            return;
        }
        link.up.is_scheduled = true;
        let stall = link.up.stalled_until.0.saturating_sub(self.now.0);
        let pause = stall + self.random.below(link.delay_max);
        self.schedule(pause, Happening::Up(number));
    }

    fn schedule_down(&mut self, number: u64) {
        let Some(link) = self.links.get_mut(&number) else { return };
        if link.down.is_scheduled || (link.down.is_empty() && link.node.is_some()) {
            return;
        }
        link.down.is_scheduled = true;
        let stall = link.down.stalled_until.0.saturating_sub(self.now.0);
        let pause = stall + self.random.below(link.delay_max);
        self.schedule(pause, Happening::Down(number));
    }

    // ---- arrivals ----

    /// Bytes arrive at the node, if it wants to read.
    pub(super) fn up(&mut self, number: u64) {
        let Some(link) = self.links.get_mut(&number) else { return };
        link.up.is_scheduled = false;
        if link.up.stalled_until > self.now {
            self.schedule_up(number);
            return;
        }
        let (Some(node), Some(slot)) = (self.node.as_mut(), link.node) else { return };
        if !node.wants_read(slot) {
            return;
        }
        let most = self.random.between(1, (link.fragment_max as u64).min(READ_MAX));
        let bytes = link.up.read(usize::try_from(most).expect("at most 64 KiB"));
        node.received(self.now, slot, &bytes);
        let client = link.client;
        self.schedule_up(number);
        if self.links[&number].is_client_open && !self.clients[client].wire.output.is_empty() {
            self.send_up(number);
        }
        self.want_turn();
    }

    /// Bytes arrive at the client, or the end of the connection does.
    pub(super) fn down(&mut self, number: u64) -> Result<(), String> {
        let Some(link) = self.links.get_mut(&number) else { return Ok(()) };
        link.down.is_scheduled = false;
        if link.down.stalled_until > self.now {
            self.schedule_down(number);
            return Ok(());
        }
        if !link.is_client_open {
            return Ok(());
        }
        let most = self.random.between(1, link.fragment_max as u64);
        let bytes = link.down.read(usize::try_from(most).expect("at most 64 KiB"));
        let (client, slot) = (link.client, link.node);
        self.history.digest.bytes(&bytes);
        if bytes.is_empty() && slot.is_none() {
            self.client_lost(number);
            return Ok(());
        }
        self.with_client(client, |client, at| client.received(at, &bytes))?;
        self.after_client(client);
        if let Some(slot) = slot {
            self.send_down(slot);
            self.want_turn();
        }
        self.schedule_down(number);
        Ok(())
    }

    // ---- the node's output ----

    /// Sends the output of every connection that has some.
    pub(super) fn send_dirty(&mut self) {
        let mut dirty = Vec::new();
        if let Some(node) = self.node.as_mut() {
            node.take_dirty(&mut dirty);
        }
        for slot in dirty {
            self.send_down(slot);
        }
    }

    pub(super) fn send_down(&mut self, slot: ConnectionId) {
        let Some(&number) = self.by_slot.get(&slot) else { return };
        let (Some(node), Some(link)) = (self.node.as_mut(), self.links.get_mut(&number)) else {
            return;
        };
        let written = link.down.write(node.outgoing(slot));
        if written > 0 {
            node.sent(self.now, slot, written);
        }
        if node.should_close(slot) {
            node.disconnected(self.now, slot);
            link.node = None;
            self.by_slot.remove(&slot);
            self.want_turn();
        }
        self.schedule_down(number);
    }

    /// Goes on reading from connections from which the node did not want to read.
    pub(super) fn read_on(&mut self) {
        let Some(node) = self.node.as_ref() else { return };
        let waits = |link: &Link| {
            let reads = link.node.is_some_and(|slot| node.wants_read(slot));
            reads && !link.up.is_scheduled && !link.up.is_empty()
        };
        let waiting = self.links.iter().filter(|(_, link)| waits(link));
        let waiting: Vec<u64> = waiting.map(|(number, _)| *number).collect();
        for number in waiting {
            self.schedule_up(number);
        }
    }

    // ---- ends ----

    /// The node's end learns that the connection is gone.
    pub(super) fn node_lost(&mut self, number: u64) {
        let Some(link) = self.links.get_mut(&number) else { return };
        if let (Some(node), Some(slot)) = (self.node.as_mut(), link.node.take()) {
            node.disconnected(self.now, slot);
            self.by_slot.remove(&slot);
            self.want_turn();
        }
        self.forget(number);
    }

    /// The client's end does.
    pub(super) fn client_lost(&mut self, number: u64) {
        let Some(link) = self.links.get_mut(&number) else { return };
        let client = link.client;
        if std::mem::replace(&mut link.is_client_open, false) {
            self.with_client(client, Client::lost);
            self.schedule_client(client);
        }
        self.forget(number);
    }

    /// A connection that is gone at both ends is none.
    fn forget(&mut self, number: u64) {
        let is_gone = |link: &Link| link.node.is_none() && !link.is_client_open;
        if self.links.get(&number).is_some_and(is_gone) {
            self.links.remove(&number);
        }
    }

    /// Cuts a connection: both ends learn it, each at its time; what is under way is lost.
    pub(super) fn cut(&mut self, number: u64) {
        let Some(link) = self.links.get_mut(&number) else { return };
        let lost = usize::try_from(self.random.draw() % 4096).expect("small");
        link.up.read(lost);
        link.up.stalled_until = self.now.plus(Duration::from_secs(3600));
        link.down.stalled_until = link.up.stalled_until;
        let (node, client) = (self.random.below(2_000_000), self.random.below(200_000));
        self.schedule(node, Happening::NodeLost(number));
        self.schedule(client, Happening::ClientLost(number));
    }
}
