//! Bytes between clients and node, from connect to disconnect.

use super::World;
use super::broker::CLOSED_IN_ORDER;
use super::happening::{Happening, Stage};
use super::premature_pong::PONG;
use super::stages::{CALM_DELAY, CALM_FRAGMENT};
use crate::canary::Canary;
use crate::history::Event;
use crate::network::{Link, Pipe, Place};
use angarium_protocol::Peer;
use std::time::Duration;

/// Most bytes that a slow client reads at a time.
const SLOW_FRAGMENT: u64 = 512;
/// Longest time between two reads of a slow client, in microseconds.
const SLOW_DELAY: u64 = 60_000;
/// Most bytes that a host reads at once.
const READ_MAX: u64 = 64 << 10;

impl World {
    // ---- clients ----

    pub(super) fn schedule_client(&mut self, client: usize) {
        if let Some(due) = self.clients[client].deadline() {
            let pause = due.0.saturating_sub(self.now.0);
            self.schedule(pause, Happening::Client(client));
        }
    }

    pub(super) fn client_due(&mut self, client: usize) {
        // Events for outdated deadlines are ignored.
        if self.clients[client].deadline().is_none_or(|due| due > self.now) {
            return;
        }
        if self.clients[client].presence().is_connected() {
            self.with_client(client, |client, at| client.woken(at));
            self.after_client(client);
        } else {
            self.connect(client);
        }
    }

    fn connect(&mut self, client: usize) {
        if self.broker.is_none() || self.stage == Stage::Closing {
            self.clients[client].presence().stay_away(self.now);
            self.schedule_client(client);
            return;
        }
        let faults = &self.plan.faults;
        // Some connections use much smaller pieces.
        let fragment_max = match self.random.below(4) {
            0 => 1 + self.random.below(8),
            1 => 1 + self.random.below(200),
            _ => faults.fragment_max as u64,
        };
        let (fragment_max, delay_max) =
            (fragment_max.max(1), 20 + self.random.below(faults.delay_max));
        let is_working = self.stage == Stage::Working;
        let pipe_bytes = faults.pipe_bytes;
        let number = self.number();
        let Some(broker) = self.broker.as_mut() else { return };
        let peer = Peer {
            address: format!("127.0.0.1:{}", 10_000 + number % 50_000),
            local: true,
            protocol: self.clients[client].presence().protocol,
            ..Peer::default()
        };
        let place = broker.connected(self.now, peer, &mut self.shard_random);
        let link = Link {
            client,
            place: Some(place),
            is_client_open: true,
            up: Pipe::new(pipe_bytes),
            down: Pipe::new(pipe_bytes),
            fragment_max: if is_working { fragment_max as usize } else { CALM_FRAGMENT },
            is_slow: is_working && self.clients[client].presence().is_slow,
            delay_max: if is_working { delay_max } else { CALM_DELAY },
        };
        self.links.insert(number, link);
        self.by_place.insert(place, number);
        self.want_turn(place.shard);
        self.with_client(client, |client, at| client.connected(at));
        self.after_client(client);
    }

    /// Sends the client's output, and closes or schedules it as it wants.
    pub(super) fn after_client(&mut self, client: usize) {
        let number = self.link_of(client);
        if let Some(number) = number {
            self.send_up(number);
            let link = self.links.get_mut(&number).expect("just found");
            if self.clients[client].presence().is_closing {
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
        let output = self.clients[link.client].output();
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
        if link.down.is_scheduled || (link.down.is_empty() && link.place.is_some()) {
            return;
        }
        link.down.is_scheduled = true;
        let stall = link.down.stalled_until.0.saturating_sub(self.now.0);
        let delay_max = if link.is_slow { SLOW_DELAY } else { link.delay_max };
        let pause = stall + self.random.below(delay_max);
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
        let (Some(broker), Some(place)) = (self.broker.as_mut(), link.place) else { return };
        let node = &mut broker.nodes[place.shard];
        if !node.wants_read(place.slot) {
            return;
        }
        let most = self.random.between(1, (link.fragment_max as u64).min(READ_MAX));
        let bytes = link.up.read(usize::try_from(most).expect("at most 64 KiB"));
        node.received(self.now, place.slot, &bytes);
        let client = link.client;
        self.answer_prematurely(number, place, &bytes);
        self.schedule_up(number);
        if self.links[&number].is_client_open && !self.clients[client].output().is_empty() {
            self.send_up(number);
        }
        self.want_turn(place.shard);
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
        let fragment_max = if link.is_slow { SLOW_FRAGMENT } else { link.fragment_max as u64 };
        let most = self.random.between(1, fragment_max);
        let bytes = link.down.read(usize::try_from(most).expect("at most 64 KiB"));
        let (client, place) = (link.client, link.place);
        self.history.digest.bytes(&bytes);
        if bytes.is_empty() && place.is_none() {
            self.client_lost(number);
            return Ok(());
        }
        self.with_client(client, |client, at| client.received(at, &bytes))?;
        self.after_client(client);
        if let Some(place) = place {
            self.send_down(place);
            self.want_turn(place.shard);
        }
        self.schedule_down(number);
        Ok(())
    }

    // ---- the node's output ----

    /// Sends the output of every connection of a shard that has some.
    pub(super) fn send_dirty(&mut self, shard: usize) {
        let dirty = self.broker.as_mut().map(|broker| broker.take_dirty(shard));
        for place in dirty.unwrap_or_default() {
            self.send_down(place);
        }
    }

    fn send_down(&mut self, place: Place) {
        let Some(&number) = self.by_place.get(&place) else { return };
        self.pass_over_early(number, place);
        let (Some(broker), Some(link)) = (self.broker.as_mut(), self.links.get_mut(&number)) else {
            return;
        };
        let node = &mut broker.nodes[place.shard];
        let written = link.down.write(node.outgoing(place.slot));
        if written > 0 {
            node.sent(place.slot, written);
        }
        if node.should_close(place.slot) {
            let why = node.end_reason(place.slot).unwrap_or_default().to_owned();
            node.disconnected(self.now, place.slot);
            link.place = None;
            let client = link.client;
            if !self.clients[client].learns_why_closed() && why != CLOSED_IN_ORDER {
                self.history.note(self.now, Event::Dropped { client, why });
            }
            self.by_place.remove(&place);
            self.want_turn(place.shard);
        }
        self.schedule_down(number);
    }

    /// Resumes reading from connections whose reads were paused.
    pub(super) fn read_on(&mut self) {
        let Some(broker) = self.broker.as_ref() else { return };
        let waits = |link: &Link| {
            let wants_read = |place: Place| broker.nodes[place.shard].wants_read(place.slot);
            let reads = link.place.is_some_and(wants_read);
            reads && !link.up.is_scheduled && !link.up.is_empty()
        };
        let waiting = self.links.iter().filter(|(_, link)| waits(link));
        let waiting: Vec<u64> = waiting.map(|(number, _)| *number).collect();
        for number in waiting {
            self.schedule_up(number);
        }
    }

    // ---- the canary `PrematurePong` ----

    /// Answers a PING that the shard has read and not answered, if its output ends with a whole
    /// operation.
    fn answer_prematurely(&mut self, link: u64, place: Place, bytes: &[u8]) {
        if self.canary != Some(Canary::PrematurePong) {
            return;
        }
        let asked = self.premature_pong.pings(link, bytes);
        let has_answered = self.broker.as_ref().is_none_or(|broker| {
            let output = broker.nodes[place.shard].outgoing(place.slot);
            output.windows(PONG.len()).any(|window| window == PONG)
        });
        if asked != 1 || has_answered {
            return;
        }
        self.send_down(place);
        let is_sent = self
            .broker
            .as_ref()
            .is_some_and(|broker| broker.nodes[place.shard].outgoing(place.slot).is_empty());
        if let Some(link_of) =
            self.links.get_mut(&link).filter(|link| is_sent && link.place.is_some())
            && link_of.down.room() >= PONG.len()
        {
            link_of.down.write(PONG);
            *self.premature_pong.early.entry(link).or_default() += 1;
            self.schedule_down(link);
        }
    }

    /// Sends the output before PONGs that the client has had, and drops those.
    fn pass_over_early(&mut self, number: u64, place: Place) {
        let Some(early) = self.premature_pong.early.get_mut(&number) else { return };
        let (Some(broker), Some(link)) = (self.broker.as_mut(), self.links.get_mut(&number)) else {
            return;
        };
        let node = &mut broker.nodes[place.shard];
        while *early > 0 {
            let output = node.outgoing(place.slot);
            let answer = output.windows(PONG.len()).position(|window| window == PONG);
            let Some(answer) = answer else { return };
            let written = link.down.write(&output[..answer]);
            if written < answer {
                // The pipe is full.
                if written > 0 {
                    node.sent(place.slot, written);
                }
                return;
            }
            node.sent(place.slot, answer + PONG.len());
            *early -= 1;
        }
    }

    // ---- ends ----

    /// The node's end learns that the connection is gone.
    pub(super) fn node_lost(&mut self, number: u64) {
        let Some(link) = self.links.get_mut(&number) else { return };
        if let (Some(broker), Some(place)) = (self.broker.as_mut(), link.place.take()) {
            broker.nodes[place.shard].disconnected(self.now, place.slot);
            self.by_place.remove(&place);
            self.want_turn(place.shard);
        }
        self.forget(number);
    }

    /// The client's end learns that the connection is gone.
    pub(super) fn client_lost(&mut self, number: u64) {
        let Some(link) = self.links.get_mut(&number) else { return };
        let client = link.client;
        if std::mem::replace(&mut link.is_client_open, false) {
            self.with_client(client, |client, at| client.lost(at));
            self.schedule_client(client);
        }
        self.forget(number);
    }

    /// Removes a connection that is gone at both ends.
    fn forget(&mut self, number: u64) {
        let is_gone = |link: &Link| link.place.is_none() && !link.is_client_open;
        if self.links.get(&number).is_some_and(is_gone) {
            self.links.remove(&number);
        }
    }

    /// Cuts a connection: both ends learn of it at different times; bytes under way are lost.
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
