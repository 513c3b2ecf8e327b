//! Queues of sessions, what is kept with sessions, publishes that are taken once, wills.

use super::sessions::{check, check_restart, host_with};
use super::{TestHost, check_in};
use crate::interface::limits::Limits;

/// As [`check`], where deliveries show their places.
fn check_places(scenario: &str) -> TestHost {
    let mut host = host_with(Limits::default());
    host.fx.shows_places = true;
    for line in ["login c ann", "login d ann", "login b bob"] {
        host.run(line);
    }
    check_in(host, scenario)
}

/// What a session with a queue begins with.
const BEGIN: &str = "c claim s expiry=5000 recorded queue
    flush
    > c session s new expiry=5s queue=amq.session-s
    c bind amq.topic amq.session-s a.*
    flush
    > c ok
    c consume amq.session-s t granted on-close=release on-loss=release
    > c consuming t
    c grant t 100";

#[test]
fn a_session_keeps_attributes() {
    check_restart(
        "c claim s expiry=- recorded
         flush
         > c session s new expiry=never
         c change s put=a:1,b:2,c:3
         flush
         > c ok
         c change s put=b:4 remove=a,x expiry=1000
         flush
         > c ok
         d change s put=a:1
         > d refused PreconditionFailed: session 's' is not held by this channel",
        "time 999
         d claim s expiry=- recorded
         flush
         > d session s resumed expiry=never b:4 c:3
         d claim s expiry=- recorded fresh
         flush
         > d session s new expiry=never",
    );
}

#[test]
fn a_queue_that_comes_when_a_session_is_resumed_survives_a_restart() {
    check_restart(
        "c claim s expiry=- recorded state=1
         flush
         > c session s new expiry=never
         c change s put=a:1
         flush
         > c ok
         c claim s expiry=- recorded queue
         flush
         > c session s resumed expiry=never state=1 a:1 queue=amq.session-s",
        "c claim s expiry=- recorded queue
         flush
         > c session s resumed expiry=never state=1 a:1 queue=amq.session-s",
    );
}

#[test]
fn a_session_has_as_many_attributes_as_allowed() {
    let mut host = check("c claim s\n> c session s new");
    let long = "k".repeat(4097);
    let refused =
        "c refused LimitExceeded: a session attribute's key of 4097 bytes is longer than 4096";
    assert_eq!(host.run(&format!("c change s put={long}:1")), [refused]);
    let large = "v".repeat(600_000);
    assert_eq!(host.run(&format!("c change s put=a:{large}")), ["c ok"]);
    let refused =
        "c refused LimitExceeded: session attributes of 1200002 bytes; the limit is 1048576";
    assert_eq!(host.run(&format!("c change s put=b:{large}")), [refused]);
    assert_eq!(host.run("c change s remove=a"), ["c ok"]);
    assert_eq!(host.run(&format!("c change s put=b:{large}")), ["c ok"]);
}

#[test]
fn what_is_not_settled_comes_again_at_its_place_and_in_order() {
    for loss in ["c disconnect", "restart lose=0", "restart killed"] {
        let mut host = check_places(BEGIN);
        host.fx.shows_places = true;
        let again = format!(
            "a publish amq.topic a.1 one persistent
             > c deliver t #1 one @1
             a publish amq.topic a.1 two persistent
             > c deliver t #2 two @2
             a publish amq.topic a.1 three persistent
             > c deliver t #3 three @3
             c accept 2
             {loss}
             login {}
             e claim s expiry=5000 recorded queue
             flush
             > e session s resumed expiry=5s queue=amq.session-s
             a publish amq.topic a.2 four persistent
             e consume amq.session-s t granted on-loss=release
             > e consuming t
             e grant t 100
             > e deliver t #1 one @1 redelivered
             > e deliver t #2 three @3 redelivered
             > e deliver t #3 four @4",
            "e ann"
        );
        check_in(host, &again);
    }
}

#[test]
fn one_that_takes_over_gets_what_the_other_has_not_settled() {
    check_places(&format!(
        "{BEGIN}
         a publish amq.topic a.1 one persistent
         > c deliver t #1 one @1
         d claim s expiry=5000 recorded queue
         > c lost s TakenOver
         flush
         > d session s resumed expiry=5s queue=amq.session-s
         // Nothing that the one before does has any effect.
         c accept 1
         > c refused PreconditionFailed: unknown delivery tag 1
         c consume amq.session-s u
         > c refused ResourceLocked: queue 'amq.session-s' belongs to session 's', which this channel \
         does not hold
         d consume amq.session-s u granted on-loss=release
         > d consuming u
         d grant u 9
         > d deliver u #1 one @1 redelivered
         c disconnect
         a publish amq.topic a.1 two persistent
         > d deliver u #2 two @2"
    ));
}

#[test]
fn a_sessions_queue_is_the_sessions() {
    check_places(&format!(
        "{BEGIN}
         d get amq.session-s
         > d refused ResourceLocked: queue 'amq.session-s' belongs to session 's', which this channel \
         does not hold
         a delete amq.session-s
         > a refused PreconditionFailed: queue 'amq.session-s' belongs to session 's': end the session instead
         c consume amq.session-s u
         > c refused PreconditionFailed: queue 'amq.session-s' of a session has one consumer, which takes \
         all messages
         a queue amq.session-t
         > a queue amq.session-t 0 0
         d claim t queue
         > d refused PreconditionFailed: session 't' needs the queue name 'amq.session-t', which another \
         queue has
         c end s
         flush
         > c ok
         > c cancelled t
         a passive amq.session-s
         > a refused NotFound: no queue 'amq.session-s' in vhost '/'"
    ));
}

#[test]
fn a_sessions_queue_needs_no_right_to_its_name() {
    let mut host = host_with(Limits::default());
    for line in ["a permit bob - - ^amq[.]topic$", "login b bob", "flush"] {
        host.run(line);
    }
    check_in(
        host,
        "b claim s queue
         > b session s new queue=amq.session-s
         b bind amq.topic amq.session-s a.*
         > b ok
         b bind amq.direct amq.session-s k
         > b refused AccessRefused: read access to exchange 'amq.direct' in vhost '/' refused for user 'bob'
         b consume amq.session-s t
         > b consuming t
         a publish amq.topic a.1 one
         > b deliver t #1 one",
    );
}

#[test]
fn a_listing_shows_what_a_session_has() {
    let mut host = check_places(BEGIN);
    for line in [
        "c change s put=a:1",
        "c will gone bye",
        "a publish amq.topic a.1 one persistent",
        "c let-out 1",
        "c publish amq.topic b two persistent once=5",
        "flush",
    ] {
        host.run(line);
    }
    let listed = host.engine.list_sessions().next().unwrap();
    assert_eq!(listed.queue, Some("amq.session-s"));
    let counts = (listed.attributes, listed.received, listed.released, listed.has_will);
    assert_eq!(counts, (1, 1, 1, true));
    assert_eq!(host.engine.list_sessions_in(0..host.engine.session_places()).count(), 1);
}

#[test]
fn a_queue_goes_with_its_session() {
    // It was held with expiry, without, or is not recorded.
    for (how, goes) in [
        ("expiry=1000 recorded", "c disconnect\nflush\ntime 1000\nflush"),
        ("recorded", "c disconnect"),
        ("expiry=-", "c end s\n> c ok"),
        ("expiry=1000 recorded", "c detach s expiry=0\nflush\n> c ok"),
    ] {
        let mut host = host_with(Limits::default());
        host.run("login c ann");
        host.run(&format!("c claim s {how} queue"));
        host.run("flush");
        assert_eq!(host.engine.list_queues().count(), 1, "{how}");
        let mut host = check_in(host, goes);
        assert_eq!(host.engine.list_queues().count(), 0, "{how}");
        host.run("restart");
        assert_eq!(host.engine.list_queues().count(), 0, "{how}");
        assert_eq!(host.engine.list_sessions().count(), 0, "{how}");
    }
}

#[test]
fn a_session_whose_expiry_was_taken_away_goes_after_a_restart() {
    check_restart(
        "c claim s expiry=5000 recorded queue
         flush
         > c session s new expiry=5s queue=amq.session-s
         c claim s recorded queue
         flush
         > c session s resumed queue=amq.session-s",
        "flush
         a passive amq.session-s
         > a refused NotFound: no queue 'amq.session-s' in vhost '/'
         c claim s queue
         > c session s new queue=amq.session-s",
    );
}

#[test]
fn sessions_and_their_queues_survive_a_restart_or_both_do_not() {
    check_restart(
        "c claim s expiry=5000 recorded queue length=3
         flush
         > c session s new expiry=5s queue=amq.session-s
         c bind amq.topic amq.session-s #
         flush
         > c ok
         d claim v expiry=5000 queue
         > d session v new expiry=5s queue=amq.session-v
         a publish amq.topic a one persistent
         c claim t recorded expiry=- queue
         flush
         > c session t new expiry=never queue=amq.session-t
         c end t
         flush
         > c ok",
        "c claim s expiry=5000 recorded queue
         flush
         > c session s resumed expiry=5s queue=amq.session-s
         c consume amq.session-s t
         > c consuming t
         > c deliver t #1 one redelivered
         a passive amq.session-v
         > a refused NotFound: no queue 'amq.session-v' in vhost '/'
         a passive amq.session-t
         > a refused NotFound: no queue 'amq.session-t' in vhost '/'",
    );
}

#[test]
fn a_claim_that_does_not_outlive_its_holder_is_not_taken_over() {
    check(
        "c claim s queue
         > c session s new queue=amq.session-s
         c change s put=a:1
         > c ok
         c consume amq.session-s t
         > c consuming t
         d claim s queue
         > c lost s TakenOver
         > d session s new queue=amq.session-s
         c disconnect
         d consume amq.session-s t
         > d consuming t",
    );
}

#[test]
fn places_in_use_lie_no_farther_apart_than_numbers_tell_apart() {
    let mut host = check_places(BEGIN);
    host.run("a publish amq.topic a.1 m persistent");
    // As if many had come and gone.
    for (_, queue) in host.engine.queues.iter_mut() {
        queue.next_seq = 65_535;
    }
    check_in(
        host,
        "a publish amq.topic a.1 last
         > c deliver t #2 last @65535
         // Its number would be that of the first.
         a publish amq.topic a.1 next
         a publish amq.topic a.1 further
         c accept 2
         // One that was released is still in use.
         c let-out 1
         flush
         > c ok
         c let-in 1
         > c ok
         > c deliver t #3 next @65536
         > c deliver t #4 further @65537",
    );
}

#[test]
fn only_what_is_flushed_is_handed_out_where_that_is_asked_for() {
    check_places(&format!(
        "{BEGIN}
         c change s flushed=on
         flush
         > c ok
         a publish amq.topic a.1 one persistent
         a publish amq.topic a.1 two
         flush
         > c deliver t #1 one @1
         > c deliver t #2 two @2
         // It is flushed although its publisher does not wait.
         a publish amq.topic a.1 three persistent
         c change s flushed=off
         > c ok
         > c deliver t #3 three @3
         a publish amq.topic a.1 four persistent
         > c deliver t #4 four @4"
    ));
    // What came before is flushed with the request.
    check_places(&format!(
        "{BEGIN}
         c grant t 1
         a publish amq.topic a.1 one persistent
         > c deliver t #1 one @1
         a publish amq.topic a.1 two persistent
         c change s flushed=on
         c grant t 2
         flush
         > c ok
         > c deliver t #2 two @2
         // A claim begins without.
         c claim s expiry=5000 recorded queue
         flush
         > c session s resumed expiry=5s queue=amq.session-s
         c grant t 3
         a publish amq.topic a.1 three persistent
         > c deliver t #3 three @3"
    ));
}

#[test]
fn what_waits_for_a_flush_is_flushed() {
    let mut host = check_places(BEGIN);
    host.run("a publish amq.topic a.1 one persistent");
    assert_eq!(host.fx.durable.last(), Some(&false));
    host.run("c change s flushed=on");
    host.run("a publish amq.topic a.1 one persistent");
    assert_eq!(host.fx.durable.last(), Some(&true));
}

#[test]
fn time_to_live_is_shown_as_far_as_it_is_left() {
    check_places(&format!(
        "{BEGIN}
         c grant t 0
         a publish amq.topic a.1 one persistent ttl=100
         time 40
         c grant t 9
         > c deliver t #1 one @1 ttl=60ms
         a publish amq.topic a.1 two persistent ttl=100
         > c deliver t #2 two @2 ttl=100ms"
    ));
}

#[test]
fn what_waits_is_let_go_of_once_its_user_has_lost_the_right_to_it() {
    let mut host = check_places(BEGIN);
    for line in ["c disconnect", "flush"] {
        host.run(line);
    }
    let mut host = check_in(
        host,
        "a publish amq.topic a.1 one persistent
         a publish amq.topic a.2 two persistent
         a publish amq.topic a.3 three
         a narrow-subscribing ann a.* a.2
         > a ok
         a publish amq.topic a.9 gone",
    );
    host.run("login f ann");
    let mut host = check_in(
        host,
        "f claim s expiry=5000 recorded queue
         flush
         > f session s resumed expiry=5s queue=amq.session-s
         f consume amq.session-s t granted on-loss=release
         > f consuming t
         f grant t 100
         > f deliver t #1 one @1
         > f deliver t #2 three @3",
    );
    assert_eq!(host.engine.counters().discarded.of(crate::DiscardReason::Forbidden), 1);
    // What the client may have is completed.
    for line in ["a narrow-subscribing ann a.2", "flush", "f disconnect"] {
        host.run(line);
    }
    host.run("login g ann");
    check_in(
        host,
        "g claim s expiry=5000 recorded queue
         flush
         > g session s resumed expiry=5s queue=amq.session-s
         g consume amq.session-s t granted on-loss=release
         > g consuming t
         g grant t 100
         > g deliver t #1 one @1 redelivered
         > g deliver t #2 three @3 redelivered",
    );
}

#[test]
fn rules_are_different_for_each_client() {
    let mut host = host_with(Limits::default());
    for line in [
        "login c ann",
        "login d bob",
        "name d x.y",
        "a narrow-subscribing ann %u.%c.> %u.%c.no",
        "flush",
    ] {
        host.run(line);
    }
    check_in(
        host,
        "c claim s queue
         > c session s new queue=amq.session-s
         c bind amq.topic amq.session-s ann.one.*
         > c refused AccessRefused: read access to subject 'ann.one.*' in vhost '/' refused for user 'ann'
         name c one
         c bind amq.topic amq.session-s ann.one.a
         > c ok
         c bind amq.topic amq.session-s ann.two.a
         > c refused AccessRefused: read access to subject 'ann.two.a' in vhost '/' refused for user 'ann'
         c bind amq.topic amq.session-s ann.one.no
         > c refused AccessRefused: read access to subject 'ann.one.no' in vhost '/' refused for user 'ann'
         name c o.ne
         c bind amq.topic amq.session-s ann.o.ne.a
         > c refused AccessRefused: read access to subject 'ann.o.ne.a' in vhost '/' refused for user 'ann'
         a narrow ann out.%c
         > a ok
         name c one
         c publish amq.topic out.one x
         c publish amq.topic out.two x
         > c refused AccessRefused: write access to subject 'out.two' in vhost '/' refused for user 'ann'",
    );
}
