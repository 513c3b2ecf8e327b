//! In-process clients of named sessions: each makes a request at a time, leaves and comes back.

use super::World;
use super::happening::{Happening, Stage};
use crate::canary::{Canary, PERCENT};
use crate::client::USER;
use crate::history::{Event, SessionEvent, SessionRequest};
use crate::network::Place;
use crate::plan::SessionClient;
use crate::random::Random;
use angarium_engine::{ClaimSession, Refusal, RefusalKind, Reply, Request, SessionExpiry};
use angarium_node::InProcessEvent;
use std::collections::BTreeSet;
use std::time::Duration;

/// Longest pause before a client comes back, in microseconds.
const RETURN_MAX: u64 = 1_000_000;

/// One client.
#[derive(Debug)]
pub(super) struct Claimant {
    plan: SessionClient,
    random: Random,
    /// Its connection, and the number of that in the history.
    connected: Option<(Place, u32)>,
    /// What it has asked for, while there is no answer.
    asked: Option<SessionRequest>,
    /// Sessions that it holds as far as it knows.
    held: BTreeSet<usize>,
}

/// All such clients of a run.
#[derive(Debug, Default)]
pub(super) struct Claimants {
    clients: Vec<Claimant>,
    last_connection: u32,
    last_claim: u64,
}

impl Claimants {
    /// Whether nobody waits for an answer.
    pub(super) fn are_done(&self) -> bool {
        self.clients.iter().all(|client| client.asked.is_none())
    }
}

fn name(session: usize) -> String {
    format!("session.{session}")
}

/// The session of that name.
fn session_named(name: &str) -> usize {
    name.rsplit('.').next().and_then(|number| number.parse().ok()).expect("names are made here")
}

impl Claimant {
    fn expiry(&mut self) -> SessionExpiry {
        match self.random.below(6) {
            0 => SessionExpiry::AtDetach,
            1 => SessionExpiry::Never,
            _ => {
                let millis = self.random.between(1, self.plan.expiry_max);
                SessionExpiry::After(Duration::from_millis(millis))
            }
        }
    }

    fn one_held(&mut self) -> Option<usize> {
        let held: Vec<usize> = self.held.iter().copied().collect();
        (!held.is_empty()).then(|| *self.random.pick(&held))
    }

    /// What it asks for next; `None`: it leaves.
    fn next_request(&mut self, claim: u64) -> Option<SessionRequest> {
        let draw = self.random.below(100);
        let held = self.one_held();
        match (draw, held) {
            (0..15, Some(session)) => {
                let expiry = self.random.percent(30).then(|| self.expiry());
                Some(SessionRequest::Detach { session, expiry })
            }
            (15..20, Some(session)) => Some(SessionRequest::End { session }),
            (20..35, _) => None,
            _ => Some(SessionRequest::Claim {
                claim,
                session: self.random.index(self.plan.sessions),
                fresh: self.random.percent(self.plan.fresh_percent),
                expiry: self.expiry(),
                recorded: self.random.percent(self.plan.recorded_percent),
            }),
        }
    }
}

/// The request in the engine's words. What is kept with a session is the number of its last claim.
fn engine_request(request: &SessionRequest, ignores_records: bool) -> Request {
    match *request {
        SessionRequest::Claim { claim, session, fresh, expiry, recorded } => {
            Request::ClaimSession(ClaimSession {
                name: name(session),
                fresh,
                expiry,
                recorded: recorded && !ignores_records,
                state: Some(claim.to_le_bytes().to_vec().into()),
            })
        }
        SessionRequest::Detach { session, expiry } => {
            Request::DetachSession { name: name(session), expiry }
        }
        SessionRequest::End { session } => Request::EndSession { name: name(session) },
    }
}

impl World {
    pub(super) fn begin_sessions(&mut self) {
        for plan in self.plan.sessions.clone() {
            let random = self.random.fork();
            self.claimants.clients.push(Claimant {
                plan,
                random,
                connected: None,
                asked: None,
                held: BTreeSet::new(),
            });
            let client = self.claimants.clients.len() - 1;
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
        broker.request_in_process(self.now, place, asked);
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
            broker.disconnect_in_process(self.now, place);
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
        let event = match (&request, reply) {
            (
                SessionRequest::Claim { session, .. },
                Ok(Reply::Session { is_resumed, state, .. }),
            ) => {
                it.held.insert(*session);
                let before = state[..].try_into().ok().map(u64::from_le_bytes);
                SessionEvent::Claimed { request, is_resumed, before }
            }
            (SessionRequest::Claim { session, .. }, Err(refusal)) => {
                it.held.remove(session);
                let is_unknown = refusal.kind == RefusalKind::StorageUnavailable;
                self.note_session(number, SessionEvent::Refused { request, refusal });
                // It may hold a session of which nobody knows whether it is stored.
                if is_unknown {
                    self.leave_claimant(client, true);
                }
                return self.pause_claimant(client);
            }
            (SessionRequest::Detach { session, .. } | SessionRequest::End { session }, Ok(_)) => {
                it.held.remove(session);
                SessionEvent::Done { request }
            }
            (_, Err(refusal)) => SessionEvent::Refused { request, refusal },
            (_, Ok(_)) => return,
        };
        self.note_session(number, event);
        self.pause_claimant(client);
    }
}
