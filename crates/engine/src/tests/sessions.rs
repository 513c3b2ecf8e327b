//! Named sessions: who holds one, what a restart brings back, what is refused.

use super::{TestHost, check_in};
use crate::interface::limits::Limits;
use crate::*;
use std::time::Duration;

/// A host with users `ann` and `bob`.
pub(super) fn host_with(limits: Limits) -> TestHost {
    let mut host = TestHost::with(limits);
    for line in
        ["a user ann hash", "a permit ann .* .* .*", "a user bob hash", "a permit bob .* .* .*"]
    {
        host.run(line);
    }
    host.run("flush");
    host
}

/// Runs a scenario; `c` and `d` are connections of ann, `b` one of bob.
pub(super) fn check(scenario: &str) -> TestHost {
    check_with(Limits::default(), scenario)
}

fn check_with(limits: Limits, scenario: &str) -> TestHost {
    let logins = "login c ann\nlogin d ann\nlogin b bob\n";
    check_in(host_with(limits), &format!("{logins}{scenario}"))
}

/// Runs `before`, a restart that keeps all records, and `after`: from records alone, and with a snapshot, of
/// one turn or of several, after each line of `before`.
pub(super) fn check_restart(before: &str, after: &str) {
    let lines: Vec<&str> = before.lines().collect();
    let after = format!("restart\nlogin c ann\nlogin d ann\n{after}");
    check(&format!("{before}\n{after}"));
    for middle in 0..=lines.len() {
        if lines.get(middle).is_some_and(|line| line.trim_start().starts_with('>')) {
            continue;
        }
        let (first, second) = (lines[..middle].join("\n"), lines[middle..].join("\n"));
        check(&format!("{first}\nsnapshot\n{second}\n{after}"));
        for snapshot_at_once in [1, 3, 1000] {
            let limits = || Limits { snapshot_at_once, ..Limits::default() };
            check_with(limits(), &format!("{first}\ncheckpoint\n{second}\n{after}"));
        }
    }
}

#[test]
fn a_session_is_new_or_resumed() {
    check(
        "c claim s expiry=1000 state=1
         > c session s new expiry=1s
         c detach s
         > c ok
         c claim s expiry=1000
         > c session s resumed expiry=1s state=1
         // A holder may claim again, to change what it has asked for.
         c claim s state=2
         > c session s resumed state=1
         c claim s
         > c session s resumed state=2
         c claim t
         > c session t new
         // A fresh one has nothing of an earlier one.
         c claim s fresh expiry=-
         > c session s new expiry=never
         c claim s
         > c session s resumed",
    );
}

#[test]
fn a_session_without_expiry_ends_with_its_holder() {
    for end in ["c detach s\n> c ok", "c close", "c disconnect", "c detach s expiry=0\n> c ok"] {
        let host = check(&format!(
            "c claim s
             > c session s new
             {end}
             d claim s
             > d session s new"
        ));
        assert_eq!(host.engine.list_sessions().count(), 1);
    }
}

#[test]
fn a_claim_takes_over_and_the_holder_is_told_before() {
    for fresh in ["", "fresh"] {
        let how = if fresh.is_empty() { "resumed" } else { "new" };
        check(&format!(
            "c claim s expiry=-
             > c session s new expiry=never
             d claim s expiry=- {fresh}
             > c lost s TakenOver
             > d session s {how} expiry=never
             c detach s
             > c refused PreconditionFailed: session 's' is not held by this channel
             // The end of the one before changes nothing for the one that holds it.
             c disconnect
             d claim s expiry=-
             > d session s resumed expiry=never
             // Another channel of the same connection is another holder.
             d2 claim s expiry=-
             > d lost s TakenOver
             > d2 session s resumed expiry=never
             d close
             d2 detach s
             > d2 ok"
        ));
    }
}

#[test]
fn a_detached_session_expires() {
    check(
        "c claim s expiry=1000 state=1
         > c session s new expiry=1s
         time 5000
         c disconnect
         time 999
         d claim s expiry=1000
         > d session s resumed expiry=1s state=1
         time 5000
         d detach s expiry=10
         > d ok
         time 10
         d claim s
         > d session s new",
    );
}

#[test]
fn a_longer_expiry_than_allowed_is_cut() {
    let limits =
        || Limits { session_expiry_max: Some(Duration::from_secs(1)), ..Limits::default() };
    check_with(
        limits(),
        "c claim s expiry=-
         > c session s new expiry=1s
         c claim t expiry=2000
         > c session t new expiry=1s
         c claim u expiry=500
         > c session u new expiry=500ms
         c detach u expiry=-
         > c ok
         c disconnect
         time 1000
         d claim s
         > d session s new
         d claim u
         > d session u new",
    );
}

#[test]
fn a_session_is_ended_by_its_user_or_the_broker() {
    check(
        "c claim s expiry=-
         > c session s new expiry=never
         c end s
         > c ok
         c end s
         > c refused NotFound: no session 's' in vhost '/'
         c claim s expiry=-
         > c session s new expiry=never
         d end s
         > c lost s Ended
         > d ok
         c claim s expiry=-
         > c session s new expiry=never
         b end s
         > b refused AccessRefused: session 's' belongs to another user
         a end s
         > c lost s Ended
         > a ok",
    );
}

#[test]
fn what_cannot_be_is_refused() {
    let mut host = check(
        "c claim s expiry=-
         > c session s new expiry=never
         b claim s
         > b refused AccessRefused: session 's' belongs to another user
         b detach s
         > b refused AccessRefused: session 's' belongs to another user
         a claim t
         > a refused NotAllowed: a session belongs to a user; the broker itself has none
         c claim ''
         > c refused PreconditionFailed: a session needs a name",
    );
    let long = "n".repeat(1024);
    assert_eq!(host.run(&format!("c claim {long}")), [format!("c session {long} new")]);
    let refused = "c refused LimitExceeded: a session name of 1025 bytes is longer than 1024";
    assert_eq!(host.run(&format!("c claim {long}n")), [refused]);
    let refused = "c refused LimitExceeded: session state of 1025 bytes is longer than 1024";
    assert_eq!(host.run(&format!("c claim s state={long}n")), [refused]);
    host.run("a forbid ann");
    let refused = "c refused AccessRefused: access to vhost '/' refused for user 'ann'";
    assert_eq!(host.run("c claim u"), [refused]);
}

#[test]
fn there_are_no_more_sessions_than_allowed() {
    for (limits, refusal) in [
        (Limits { sessions_max: 2, ..Limits::default() }, "more than 2 sessions"),
        (
            Limits { vhost_sessions_max: 2, ..Limits::default() },
            "more than 2 sessions in vhost '/'",
        ),
        (
            Limits { user_sessions_max: 2, ..Limits::default() },
            "more than 2 sessions of user 'ann'",
        ),
    ] {
        check_with(
            limits,
            &format!(
                "c claim s
                 > c session s new
                 c claim t expiry=-
                 > c session t new expiry=never
                 c claim u
                 > c refused LimitExceeded: {refusal}
                 c claim t fresh
                 > c session t new
                 c detach s
                 > c ok
                 c claim u
                 > c session u new"
            ),
        );
    }
}

#[test]
fn a_recorded_claim_is_answered_once_it_is_flushed() {
    check(
        "c claim s recorded expiry=-
         d claim t expiry=-
         > d session t new expiry=never
         flush
         > c session s new expiry=never
         c detach s
         flush
         > c ok
         d claim s recorded expiry=-
         flush
         > d session s resumed expiry=never
         // What ends with its holder needs no record.
         c claim u recorded
         > c session u new
         d end s
         flush
         > d ok",
    );
}

#[test]
fn an_answer_waits_for_the_record_of_what_it_follows_from() {
    // The session has expired; its end is not flushed.
    check(
        "c claim s recorded expiry=10
         flush
         > c session s new expiry=10ms
         c disconnect
         time 10
         d claim s
         flush
         > d session s new",
    );
}

#[test]
fn a_claim_that_is_taken_over_before_it_is_flushed_is_refused() {
    check(
        "c claim s recorded expiry=-
         d claim s recorded expiry=-
         > c refused ResourceLocked: session 's' was taken over before its claim was stored
         flush
         > d session s resumed expiry=never
         c claim s recorded expiry=-
         > d lost s TakenOver
         d end s
         > c refused ResourceLocked: session 's' was ended before its claim was stored
         flush
         > d ok",
    );
}

#[test]
fn recorded_sessions_survive_a_restart() {
    check_restart(
        "c claim held recorded expiry=1000 state=1
         flush
         > c session held new expiry=1s
         c claim held recorded expiry=2000 state=2
         flush
         > c session held resumed expiry=2s state=1
         c claim volatile expiry=-
         > c session volatile new expiry=never
         c claim bound recorded
         > c session bound new
         c claim ended recorded expiry=-
         flush
         > c session ended new expiry=never
         c end ended
         flush
         > c ok
         c claim forgotten recorded expiry=-
         flush
         > c session forgotten new expiry=never
         c claim forgotten expiry=-
         flush
         > c session forgotten resumed expiry=never
         d claim left recorded expiry=- state=3
         flush
         > d session left new expiry=never
         d detach left expiry=5000
         flush
         > d ok
         d claim left recorded fresh expiry=- state=4
         flush
         > d session left new expiry=never
         d disconnect
         flush",
        "c claim held
         flush
         > c session held resumed state=2
         c claim volatile
         > c session volatile new
         c claim bound
         > c session bound new
         c claim ended
         > c session ended new
         c claim forgotten
         > c session forgotten new
         c claim left
         flush
         > c session left resumed state=4",
    );
}

#[test]
fn expiry_counts_from_the_detach_over_a_restart() {
    check_restart(
        "c claim detached recorded expiry=1000
         flush
         > c session detached new expiry=1s
         d claim held recorded expiry=1000
         flush
         > d session held new expiry=1s
         c disconnect
         flush
         time 600",
        "time 399
         c claim detached recorded expiry=1000
         flush
         > c session detached resumed expiry=1s
         c detach detached expiry=0
         flush
         > c ok
         time 600
         c claim held recorded expiry=1000
         flush
         > c session held resumed expiry=1s
         c disconnect
         time 1000
         flush
         d claim held
         > d session held new",
    );
    // One whose time has passed is not there, although the record of its end is lost.
    check(
        "c claim s recorded expiry=1000
         flush
         > c session s new expiry=1s
         c disconnect
         flush
         time 1000
         restart lose=1
         login c ann
         c claim s
         flush
         > c session s new",
    );
}

#[test]
fn a_clock_that_was_set_back_keeps_no_session_for_longer() {
    let mut host = host_with(Limits::default());
    for line in ["login c ann", "c claim s recorded expiry=1000", "time 900000", "c disconnect"] {
        host.run(line);
    }
    host.now = Time(1_000_000_000);
    check_in(
        host,
        "restart
         login c ann
         login d ann
         time 999
         c claim s recorded expiry=1000
         flush
         > c session s resumed expiry=1s
         c disconnect
         restart
         login c ann
         time 1000
         flush
         c claim s
         > c session s new",
    );
}

#[test]
fn what_a_crash_undid_was_not_answered() {
    // The claim is lost.
    check(
        "c claim s recorded expiry=-
         restart lose=1
         login c ann
         c claim s
         > c session s new",
    );
    // The end is lost: the session is there still, and nobody was told otherwise.
    check(
        "c claim s recorded expiry=- state=1
         flush
         > c session s new expiry=never
         d end s
         > c lost s Ended
         restart lose=1
         login c ann
         c claim s recorded
         flush
         > c session s resumed state=1",
    );
    // The detach is lost: the expiry counts from the restart.
    check(
        "c claim s recorded expiry=1000
         flush
         > c session s new expiry=1s
         c disconnect
         time 900
         restart lose=1
         login c ann
         time 900
         c claim s
         flush
         > c session s resumed",
    );
}

#[test]
fn a_failed_journal_takes_no_recorded_claims() {
    let not_kept = format!("StorageUnavailable: {}", Refusal::not_kept().text);
    check(&format!(
        "c claim s recorded expiry=-
         storage failed
         > c refused InDoubt: the journal failed: whether that is stored is unknown
         c claim u recorded expiry=-
         > c refused {not_kept}
         c claim u expiry=-
         > c session u new expiry=never
         // A restart would bring it back as it was.
         d claim s
         > d refused {not_kept}
         c disconnect
         d end s
         > d refused {not_kept}
         d claim s
         > d refused {not_kept}"
    ));
}

#[test]
fn sessions_end_with_their_user() {
    check_restart(
        "c claim s recorded expiry=-
         flush
         > c session s new expiry=never
         b claim t recorded expiry=-
         flush
         > b session t new expiry=never
         a delete-user ann
         > c lost s Ended
         > a ok
         a user ann hash
         > a ok
         a permit ann .* .* .*
         > a ok
         flush
         b detach t
         flush
         > b ok",
        "login b bob
         c claim s
         > c session s new
         b claim t
         flush
         > b session t resumed",
    );
}

#[test]
fn sessions_end_with_their_virtual_host() {
    let mut host = host_with(Limits::default());
    let enter = |host: &mut TestHost| {
        host.run("a create-vhost v");
        host.run("a permit ann .* .* .* vhost=v");
        host.engine.connect(ConnectionId(25), "ann", "v").unwrap();
    };
    let claim = |host: &mut TestHost| {
        let channel = ChannelId { connection: ConnectionId(25), number: 1 };
        host.engine.open(channel);
        let claim = ClaimSession {
            name: "s".to_owned(),
            expiry: SessionExpiry::Never,
            recorded: true,
            ..ClaimSession::default()
        };
        host.engine.request(host.now, channel, Request::ClaimSession(claim), &mut host.fx);
        host.run("flush").concat()
    };
    enter(&mut host);
    assert_eq!(claim(&mut host), "? session s new expiry=never");
    host.engine.disconnect(host.now, ConnectionId(25), &mut host.fx);
    // The same name in another virtual host is another session.
    host.run("login c ann");
    assert_eq!(host.run("c claim s").concat(), "c session s new");
    host.begin_snapshot();
    host.run("a delete-vhost v");
    assert_eq!(host.engine.list_sessions().count(), 1);
    enter(&mut host);
    host.run("restart");
    assert_eq!(host.engine.list_sessions().count(), 0);
    host.engine.connect(ConnectionId(25), "ann", "v").unwrap();
    assert_eq!(claim(&mut host), "? session s new expiry=never");
}

#[test]
fn listings_and_counters_tell_of_sessions() {
    let mut host = check(
        "c claim s expiry=1000 recorded
         flush
         > c session s new expiry=1s
         d claim s expiry=1000 recorded
         > c lost s TakenOver
         flush
         > d session s resumed expiry=1s
         c claim t
         > c session t new
         d disconnect",
    );
    let mut listed: Vec<String> = host
        .engine
        .list_sessions()
        .map(|it| {
            let SessionListing { vhost, name, user, recorded, detached_at, expires_at, .. } = it;
            format!("{vhost} {name} {user} {recorded} {detached_at:?} {expires_at:?}")
        })
        .collect();
    listed.sort();
    let (since, until) = (host.now, host.now.plus(Duration::from_secs(1)));
    assert_eq!(
        listed,
        [
            format!("/ s ann true {:?} {:?}", Some(since), Some(until)),
            "/ t ann false None None".to_owned()
        ]
    );
    host.run("time 1000");
    let Counters { session_claims, session_resumes, session_takeovers, session_expiries, .. } =
        host.engine.counters();
    let counts = [session_claims, session_resumes, session_takeovers, session_expiries];
    assert_eq!(counts, [3, 1, 1, 1]);
}
