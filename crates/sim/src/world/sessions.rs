//! The world of in-process clients of named sessions: each makes a request at a time, leaves and
//! comes back.

use super::World;
use super::claimants::{Claimant, engine_request, session_named};
use super::happening::{Happening, Stage};
use crate::canary::{Canary, PERCENT};
use crate::client::USER;
use crate::history::{Event, SessionEvent, SessionRequest};
use angarium_engine::{Refusal, RefusalKind, Reply};
use angarium_node::InProcessEvent;
use std::collections::BTreeSet;

/// Longest pause before a client comes back, in microseconds.
const RETURN_MAX: u64 = 1_000_000;

impl World {
    pub(super) fn begin_sessions(&mut self) {
        for (client, plan) in self.plan.sessions.clone().into_iter().enumerate() {
            let (random, held) = (self.random.fork(), BTreeSet::new());
            let claimant = Claimant { plan, random, connected: None, asked: None, held };
            self.claimants.clients.push(claimant);
            let pause = self.random.below(500_000);
            self.schedule(pause, Happening::Claimant(client));
        }
    }

    /// A client's time has come: it connects, asks for something or leaves.
    pub(super) fn claimant_due(&mut self, client: usize) {
        if self.stage != Stage::Working || self.claimants.clients[client].asked.is_some() {
            return;
        }
        let Some((place, number)) = self.claimants.clients[client].connected else {
            self.connect_claimant(client);
            return self.pause_claimant(client);
        };
        self.claimants.last_claim += 1;
        let claim = self.claimants.last_claim;
        let Some(request) = self.claimants.clients[client].next_request(claim) else {
            self.leave_claimant(client, true);
            return self.pause_claimant(client);
        };
        self.note_session(number, SessionEvent::Asked(request.clone()));
        let ignores_records = self.canary == Some(Canary::SessionRecordsIgnored);
        let asked = engine_request(&request, ignores_records);
        self.claimants.clients[client].asked = Some(request);
        let Some(broker) = self.broker.as_mut() else { return };
        broker.nodes[place.shard].request_in_process(self.now, place.slot, asked);
        self.want_turn(place.shard);
    }

    fn connect_claimant(&mut self, client: usize) {
        if self.is_shutting_down {
            return;
        }
        let Some(broker) = self.broker.as_mut() else { return };
        let Ok(place) = broker.connect_in_process(USER, &mut self.shard_random) else { return };
        self.claimants.last_connection += 1;
        let number = self.claimants.last_connection;
        self.claimants.clients[client].connected = Some((place, number));
    }

    fn pause_claimant(&mut self, client: usize) {
        let it = &mut self.claimants.clients[client];
        let most = if it.connected.is_some() { it.plan.pause_max } else { RETURN_MAX };
        let pause = it.random.below(most);
        self.schedule(pause, Happening::Claimant(client));
    }

    /// A client's connection ends; `tells`: the broker has to be told.
    fn leave_claimant(&mut self, client: usize, tells: bool) {
        let it = &mut self.claimants.clients[client];
        (it.asked, it.held) = (None, BTreeSet::new());
        let Some((place, number)) = it.connected.take() else { return };
        if let Some(broker) = self.broker.as_mut().filter(|_| tells) {
            broker.nodes[place.shard].disconnect_in_process(self.now, place.slot);
            self.want_turn(place.shard);
        }
        self.note_session(number, SessionEvent::Gone);
    }

    /// The broker has gone, or all clients are to go.
    pub(super) fn leave_claimants(&mut self, tells: bool) {
        for client in 0..self.claimants.clients.len() {
            if self.claimants.clients[client].connected.is_some() {
                self.leave_claimant(client, tells);
                self.pause_claimant(client);
            }
        }
    }

    fn note_session(&mut self, connection: u32, event: SessionEvent) {
        self.note(Event::Session { connection, event });
    }

    /// Hands clients what the broker has for them.
    pub(super) fn take_session_events(&mut self) {
        while let Some((place, event)) =
            self.broker.as_mut().and_then(|broker| broker.next_in_process_event())
        {
            let mut clients = self.claimants.clients.iter();
            let its = |it: &Claimant| it.connected.is_some_and(|(at, _)| at == place);
            if let Some(client) = clients.position(its) {
                self.take_session_event(client, event);
            }
        }
    }

    fn take_session_event(&mut self, client: usize, event: InProcessEvent) {
        let Some((_, number)) = self.claimants.clients[client].connected else { return };
        match event {
            InProcessEvent::Reply(reply) => self.take_session_reply(client, number, reply),
            InProcessEvent::SessionLost { session, why } => {
                let is_lost = self.canary == Some(Canary::SessionNoticesLost)
                    && self.shard_random.percent(PERCENT);
                if !is_lost {
                    let session = session_named(&session);
                    self.claimants.clients[client].held.remove(&session);
                    self.note_session(number, SessionEvent::Lost { session, why });
                }
            }
            InProcessEvent::Closed(_) => {
                self.leave_claimant(client, false);
                self.pause_claimant(client);
            }
        }
    }

    fn take_session_reply(&mut self, client: usize, number: u32, reply: Result<Reply, Refusal>) {
        let it = &mut self.claimants.clients[client];
        let Some(request) = it.asked.take() else { return };
        let session = request.session();
        let is_claim = matches!(request, SessionRequest::Claim { .. });
        let mut is_unknown = false;
        let event = match reply {
            Ok(Reply::Session(claimed)) if is_claim => {
                it.held.insert(session);
                let is_resumed = claimed.is_resumed;
                let before = claimed.state[..].try_into().ok().map(u64::from_le_bytes);
                SessionEvent::Claimed { request, is_resumed, before }
            }
            Ok(_) if is_claim => return,
            Ok(_) => {
                it.held.remove(&session);
                SessionEvent::Done { request }
            }
            Err(refusal) => {
                if is_claim {
                    it.held.remove(&session);
                    is_unknown = [RefusalKind::StorageUnavailable, RefusalKind::InDoubt]
                        .contains(&refusal.kind);
                }
                SessionEvent::Refused { request, refusal }
            }
        };
        self.note_session(number, event);
        // The claimant may hold a session that is perhaps not stored.
        if is_unknown {
            self.leave_claimant(client, true);
        }
        self.pause_claimant(client);
    }
}
