//! Promises about named sessions.

use super::{broken_in, history, kept_in};
use crate::history::{Event, SessionEvent, SessionRequest};
use angarium_engine::{SessionExpiry, SessionLoss};
use std::time::Duration;

const NEVER: SessionExpiry = SessionExpiry::Never;

fn event(connection: u32, event: SessionEvent) -> Event {
    Event::Session { connection, event }
}

/// A claim of session 0 by a connection, with the same number, and its answer.
fn claim(number: u32, expiry: SessionExpiry, recorded: bool, before: Option<u64>) -> Vec<Event> {
    let claim = u64::from(number);
    let request = SessionRequest::Claim { claim, session: 0, fresh: false, expiry, recorded };
    let is_resumed = before.is_some();
    let answer = SessionEvent::Claimed { request: request.clone(), is_resumed, before };
    vec![event(number, SessionEvent::Asked(request)), event(number, answer)]
}

fn gone(number: u32) -> Vec<Event> {
    vec![event(number, SessionEvent::Gone)]
}

fn lost(number: u32) -> Vec<Event> {
    vec![event(number, SessionEvent::Lost { session: 0, why: SessionLoss::TakenOver })]
}

fn crash() -> Vec<Event> {
    vec![event(1, SessionEvent::Gone), Event::Crashed, Event::Recovered]
}

fn kept(events: &[Vec<Event>]) {
    kept_in(&history(events.concat()));
}

fn broken(says: &str, events: &[Vec<Event>]) {
    broken_in("sessions kept", says, &history(events.concat()));
}

#[test]
fn a_session_has_one_holder() {
    kept(&[claim(1, NEVER, false, None), gone(1), claim(2, NEVER, false, Some(1))]);
    let taken_over = [claim(1, NEVER, false, None), claim(2, NEVER, false, Some(1))];
    broken("both hold", &taken_over);
    // The notice comes before the answer.
    let [asked, answered] = claim(2, NEVER, false, Some(1)).try_into().unwrap();
    let told = [claim(1, NEVER, false, None), vec![asked], lost(1), vec![answered]];
    kept(&told);
    broken("does not hold", &[told.concat(), lost(1)]);
    let forked = [told.concat(), gone(2), claim(3, NEVER, false, Some(1))];
    broken("as claim 1 left it", &forked);
}

#[test]
fn sessions_are_kept_for_their_time() {
    let second = |seconds| SessionExpiry::After(Duration::from_secs(seconds));
    let first = |expiry, recorded| [claim(1, expiry, recorded, None), gone(1)].concat();
    broken("before its time", &[first(NEVER, false), claim(2, NEVER, false, None)]);
    broken("before its time", &[first(second(100), false), claim(2, NEVER, false, None)]);
    // Each event takes a second.
    kept(&[first(second(1), false), claim(2, NEVER, false, None)]);
    let others = vec![Event::Synced { consumer: 1 }; 10];
    broken(
        "has expired",
        &[first(second(1), false), others.clone(), claim(2, NEVER, false, Some(1))],
    );
    let at_detach = first(SessionExpiry::AtDetach, false);
    broken("has expired", &[at_detach, others, claim(2, NEVER, false, Some(1))]);
}

#[test]
fn recorded_sessions_survive_a_crash_and_others_do_not() {
    for recorded in [true, false] {
        let resumed = [claim(1, NEVER, recorded, None), crash(), claim(2, NEVER, true, Some(1))];
        let new = [claim(1, NEVER, recorded, None), crash(), claim(2, NEVER, true, None)];
        match recorded {
            true => {
                kept(&resumed);
                broken("before its time", &new);
            }
            false => {
                broken("without a record", &resumed);
                kept(&new);
            }
        }
    }
}
