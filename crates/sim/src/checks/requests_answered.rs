//! A request is answered where a responder is there, and its requester is told so where nobody is; never
//! both, and nobody is told that there is no responder while there is one.

use super::one_of_a_group::must_hear;
use crate::checks::subscriptions::{Ear, Hearing, Said};
use crate::history::{Event, History};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(history: &History) -> Result<(), String> {
    let hearing = Hearing::of(history);
    let requests: BTreeMap<&str, &Said<'_>> = hearing
        .said
        .values()
        .filter_map(|said| Some((said.emit.reply.as_deref()?, said)))
        .collect();
    // By inbox: what came there from others.
    let heard = hearing.ears.values().flat_map(|ear| &ear.heard);
    let answered: BTreeSet<&str> = heard.map(|(_, hear)| hear.subject.as_str()).collect();
    let mut refused = BTreeSet::new();
    for (_, event) in &history.events {
        let Event::NoResponders { inbox, subject } = event else { continue };
        let Some(said) = requests.get(inbox.as_str()).filter(|said| said.emit.subject == *subject)
        else {
            return Err(format!("nobody asked '{subject}' from '{inbox}', and 503 came"));
        };
        if !refused.insert(inbox.as_str()) {
            return Err(format!("503 came twice to '{inbox}'"));
        }
        let message = said.emit.message;
        if answered.contains(inbox.as_str()) {
            return Err(format!("request {message:?} got an answer, and 503"));
        }
        if let Some(ear) = hearing.ears.values().find(|ear| hearing.surely_hears(ear, said)) {
            let who = ear.listen.listener;
            return Err(format!("request {message:?} got 503 though {who} was there"));
        }
    }
    for (inbox, said) in requests {
        let has_answer = answered.contains(inbox);
        let has_refusal = refused.contains(inbox);
        if !has_answer && !has_refusal && waits(&hearing, inbox, said) {
            judge(history, &hearing, said)?;
        }
    }
    Ok(())
}

/// Whether the broker got the request, and its requester waited until the end.
fn waits(hearing: &Hearing<'_>, inbox: &str, said: &Said<'_>) -> bool {
    let is_own = |ear: &&Ear<'_>| {
        let is_here = ear.listen.connection == said.emit.connection;
        is_here
            && ear.group().is_none()
            && crate::checks::subscriptions::takes(&ear.listen.pattern, inbox)
    };
    let at_once = |ear: &Ear<'_>| ear.ends.iter().any(|end| end.after.is_none());
    let mut own = hearing.ears.values().filter(is_own);
    let is_there = own.any(|ear| hearing.stays(ear) && !at_once(ear) && ear.listen.takes_headers);
    said.processed.is_some() && is_there
}

/// A request that got nothing at all.
fn judge(history: &History, hearing: &Hearing<'_>, said: &Said<'_>) -> Result<(), String> {
    let message = said.emit.message;
    let is_caught = !history.plan.caught(&said.emit.subject).is_empty();
    if !is_caught && !hearing.ears.values().any(|ear| hearing.may_hear(ear, said)) {
        return Err(format!("request {message:?} had no responder, and no 503 came"));
    }
    if history.plan.can_lag() {
        return Ok(());
    }
    let mut services: BTreeMap<Option<&str>, Vec<&Ear<'_>>> = BTreeMap::new();
    for ear in hearing.ears.values().filter(|ear| ear.listen.answers) {
        services.entry(ear.group()).or_default().push(ear);
    }
    for (group, members) in services {
        let must = match group {
            None => members.iter().any(|ear| hearing.surely_hears(ear, said)),
            Some(_) => must_hear(hearing, &members, said),
        };
        if must {
            return Err(format!("request {message:?} had a responder, and no answer came"));
        }
    }
    Ok(())
}
