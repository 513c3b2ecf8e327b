//! In-process clients of named sessions: what each asks for, and what it knows.

use crate::history::SessionRequest;
use crate::network::Place;
use crate::plan::SessionClient;
use crate::random::Random;
use angarium_engine::{ClaimSession, Request, SessionExpiry};
use std::collections::BTreeSet;
use std::time::Duration;

/// One client.
#[derive(Debug)]
pub(super) struct Claimant {
    pub(super) plan: SessionClient,
    pub(super) random: Random,
    /// Its connection, and the number of that in the history.
    pub(super) connected: Option<(Place, u32)>,
    /// What it has asked for, while there is no answer.
    pub(super) asked: Option<SessionRequest>,
    /// Sessions that it holds as far as it knows.
    pub(super) held: BTreeSet<usize>,
}

/// All such clients of a run.
#[derive(Debug, Default)]
pub(super) struct Claimants {
    pub(super) clients: Vec<Claimant>,
    pub(super) last_connection: u32,
    pub(super) last_claim: u64,
}

fn name(session: usize) -> String {
    format!("session.{session}")
}

pub(super) fn session_named(name: &str) -> usize {
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
    pub(super) fn next_request(&mut self, claim: u64) -> Option<SessionRequest> {
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
pub(super) fn engine_request(request: &SessionRequest, ignores_records: bool) -> Request {
    match *request {
        SessionRequest::Claim { claim, session, fresh, expiry, recorded } => {
            Request::ClaimSession(ClaimSession {
                name: name(session),
                fresh,
                expiry,
                recorded: recorded && !ignores_records,
                state: Some(claim.to_le_bytes().to_vec().into()),
                queue: None,
            })
        }
        SessionRequest::Detach { session, expiry } => {
            Request::DetachSession { name: name(session), expiry }
        }
        SessionRequest::End { session } => Request::EndSession { name: name(session) },
    }
}
