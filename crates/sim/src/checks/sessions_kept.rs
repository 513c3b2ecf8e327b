//! A session has one holder at a time, which learns once that it lost the session, before the next one has
//! it. What was claimed, recorded and answered survives a crash; what has expired is not resumed.
//!
//! The number of its last claim is kept with each session: a claim that resumes it tells whose it was.

use crate::history::{Event, History, SessionEvent, SessionRequest};
use angarium_engine::{RefusalKind, SessionExpiry, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Time that a request or the end of a connection takes to its effect, between shards not counted.
const NOTICE: Duration = Duration::from_secs(1);

/// The last claim of a session that was answered, and what became of its holder.
#[derive(Debug)]
struct Last {
    claim: u64,
    connection: u32,
    expiry: SessionExpiry,
    recorded: bool,
    /// From when on the session was perhaps detached, and from when on for certain.
    detached: Option<(Time, Time)>,
    /// There was a crash, or an end in order, since.
    was_down: bool,
    /// Something else may have been done to it: what follows is not known.
    is_murky: bool,
}

#[derive(Debug, Default)]
struct Session {
    last: Option<Last>,
    /// Connections that wait for an answer about it, and whether nothing else was under way meanwhile.
    asked: BTreeMap<u32, bool>,
    /// Requests of connections that are gone may still take effect.
    murky_until: Time,
    holders: BTreeSet<u32>,
    /// Holders that have asked to be none.
    leaving: BTreeSet<u32>,
}

struct Judge {
    slack: Duration,
    sessions: BTreeMap<usize, Session>,
    /// Claims that were answered.
    answered: BTreeSet<u64>,
}

pub(super) fn check(history: &History) -> Result<(), String> {
    let shards = &history.plan.shards;
    let between = Duration::from_micros(4 * (shards.delay_max + shards.late_max));
    let slack = NOTICE + between;
    let mut judge = Judge { slack, sessions: BTreeMap::new(), answered: BTreeSet::new() };
    for (now, event) in &history.events {
        match event {
            Event::Session { connection, event } => judge.take(*now, *connection, event)?,
            Event::Crashed | Event::Closed => judge.down(*now),
            Event::Recovered => judge.recovered(*now),
            _ => {}
        }
    }
    Ok(())
}

impl Judge {
    fn session(&mut self, session: usize) -> &mut Session {
        self.sessions.entry(session).or_default()
    }

    fn take(&mut self, now: Time, connection: u32, event: &SessionEvent) -> Result<(), String> {
        match event {
            SessionEvent::Asked(request) => self.asked(now, connection, request),
            SessionEvent::Claimed { request, is_resumed, before } => {
                return self.claimed(now, connection, request, *is_resumed, *before);
            }
            SessionEvent::Refused { request, refusal } => {
                let session = self.session(request.session());
                session.asked.remove(&connection);
                session.leaving.remove(&connection);
                if matches!(request, SessionRequest::Claim { .. }) {
                    session.holders.remove(&connection);
                }
                let has_effect = [
                    RefusalKind::ResourceLocked,
                    RefusalKind::StorageUnavailable,
                    RefusalKind::InDoubt,
                ];
                if has_effect.contains(&refusal.kind) {
                    session.darken();
                }
            }
            SessionEvent::Done { request } => {
                let session = self.session(request.session());
                session.asked.remove(&connection);
                session.leaving.remove(&connection);
                session.holders.remove(&connection);
                match (request, &mut session.last) {
                    (SessionRequest::Detach { expiry, .. }, Some(last)) => {
                        last.expiry = expiry.unwrap_or(last.expiry);
                        last.detached = last.detached.map(|(from, _)| (from, now));
                    }
                    _ => session.last = None,
                }
            }
            SessionEvent::Lost { session, .. } => {
                let name = *session;
                let session = self.session(name);
                if !session.holders.remove(&connection) {
                    return Err(format!(
                        "connection {connection} lost session {name}, which it does not hold"
                    ));
                }
                session.darken();
            }
            SessionEvent::Gone => self.gone(now, connection),
        }
        Ok(())
    }

    fn asked(&mut self, now: Time, connection: u32, request: &SessionRequest) {
        let session = self.session(request.session());
        if matches!(request, SessionRequest::Detach { .. }) {
            session.leaving.insert(connection);
        }
        if let (SessionRequest::Detach { expiry, .. }, Some(last)) = (request, &mut session.last)
            && last.connection == connection
        {
            last.detached.get_or_insert((now, Time(u64::MAX)));
            // Until the answer comes either expiry may be the one.
            if expiry.is_none() {
                return;
            }
        }
        let is_murky = session.last.as_ref().is_none_or(|last| last.is_murky);
        let is_alone = session.asked.is_empty() && !is_murky && now >= session.murky_until;
        session.asked.values_mut().for_each(|is_alone| *is_alone = false);
        session.asked.insert(connection, is_alone);
    }

    fn gone(&mut self, now: Time, connection: u32) {
        let until = now.plus(self.slack);
        for session in self.sessions.values_mut() {
            session.holders.remove(&connection);
            session.leaving.remove(&connection);
            if session.asked.remove(&connection).is_some() {
                session.murky_until = until;
                session.darken();
            }
            if let Some(last) = session.last.as_mut().filter(|last| last.connection == connection) {
                let from = last.detached.map_or(now, |(from, _)| from);
                last.detached = Some((from, until));
            }
        }
    }

    fn down(&mut self, now: Time) {
        for session in self.sessions.values_mut() {
            session.holders.clear();
            session.leaving.clear();
            session.murky_until = Time(0);
            if !std::mem::take(&mut session.asked).is_empty() {
                session.darken();
            }
            if let Some(last) = &mut session.last {
                last.was_down = true;
                let from = last.detached.map_or(now, |(from, _)| from);
                last.detached = Some((from, Time(u64::MAX)));
            }
        }
    }

    /// The record of a detach may be lost: the expiry then counts from here.
    fn recovered(&mut self, now: Time) {
        let lasts = self.sessions.values_mut().filter_map(|session| session.last.as_mut());
        for last in lasts.filter(|last| last.was_down) {
            last.detached = last.detached.map(|(from, _)| (from, now));
        }
    }

    /// A claim found the session there or not, and `before` is whose claim was its last.
    fn claimed(
        &mut self,
        now: Time,
        connection: u32,
        request: &SessionRequest,
        is_resumed: bool,
        before: Option<u64>,
    ) -> Result<(), String> {
        let SessionRequest::Claim { claim, session: name, fresh, expiry, recorded } = *request
        else {
            return Err("a reply to a claim that was none".to_owned());
        };
        let (slack, answered) = (self.slack, self.answered.clone());
        self.answered.insert(claim);
        let session = self.session(name);
        let is_alone = session.asked.remove(&connection).unwrap_or(false);
        let is_still = |holder: &&u32| {
            **holder != connection
                && !session.asked.contains_key(*holder)
                && !session.leaving.contains(*holder)
        };
        let others = session.holders.iter().find(is_still);
        if let Some(other) = others {
            return Err(format!("connections {other} and {connection} both hold session {name}"));
        }
        if let Some(last) = &session.last {
            if let Some(before) = before
                && before != last.claim
                && answered.contains(&before)
            {
                return Err(format!(
                    "claim {claim} resumes session {name} as claim {before} left it, not as claim {} did",
                    last.claim
                ));
            }
            if is_alone && !fresh {
                last.judge(now, slack, is_resumed).map_err(|what| {
                    format!("claim {claim} of session {name} after claim {}: {what}", last.claim)
                })?;
            }
        }
        let is_murky = !session.asked.is_empty() || now < session.murky_until;
        session.holders.insert(connection);
        session.last = Some(Last {
            claim,
            connection,
            expiry,
            recorded,
            detached: None,
            was_down: false,
            is_murky,
        });
        Ok(())
    }
}

impl Session {
    /// From now on it is not known what is so.
    fn darken(&mut self) {
        if let Some(last) = &mut self.last {
            last.is_murky = true;
        }
        self.asked.values_mut().for_each(|is_alone| *is_alone = false);
    }
}

impl Last {
    /// Whether a claim that is answered now may find the session, or may not.
    fn judge(&self, now: Time, slack: Duration, is_resumed: bool) -> Result<(), String> {
        let outlives_holder = self.expiry != SessionExpiry::AtDetach;
        let is_stored = self.recorded && outlives_holder;
        let (from, until) = match (self.detached, self.expiry) {
            (None, _) | (_, SessionExpiry::Never) => (None, None),
            (Some((from, until)), SessionExpiry::After(expiry)) => {
                (Some(from.plus(expiry)), Some(until.plus(expiry)))
            }
            (Some((from, until)), SessionExpiry::AtDetach) => (Some(from), Some(until)),
        };
        let is_kept = !self.was_down || is_stored;
        if is_kept && from.is_none_or(|from| now < from) && !is_resumed {
            return Err("the session is gone before its time".to_owned());
        }
        if !is_kept && is_resumed {
            return Err("the session has survived a restart without a record".to_owned());
        }
        if until.is_some_and(|until| now > until.plus(slack)) && is_resumed {
            return Err("the session has expired and is resumed".to_owned());
        }
        Ok(())
    }
}
