//! Shared queues: who gets their messages, and what becomes of those of a session that ends.

use super::sessions::host_with;
use super::{TestHost, check_in};
use crate::interface::limits::Limits;

/// Two members of a shared queue, `c` with the session `s` and `d` with `t`, of which each takes up to 9
/// messages. `how`: what they claim.
fn members(how: &str) -> TestHost {
    members_of("ann", how)
}

/// The same, where `d` is another user.
fn members_of(other: &str, how: &str) -> TestHost {
    let mut host = host_with(Limits::default());
    host.fx.shows_places = true;
    for line in ["login c ann", &format!("login d {other}"), "login e ann"] {
        host.run(line);
    }
    for (channel, session) in [("c", "s"), ("d", "t")] {
        for line in [
            format!("{channel} claim {session} {how} queue"),
            "flush".to_owned(),
            format!(
                "{channel} consume amq.session-{session} {session} granted on-close=release on-loss=release"
            ),
            format!("{channel} join g a.*"),
            "flush".to_owned(),
        ] {
            host.run(&line);
        }
    }
    host
}

fn shared(scenario: &str) -> TestHost {
    check_in(members("expiry=5000 recorded"), scenario)
}

#[test]
fn each_message_goes_to_one_member_in_turn() {
    shared(
        "c grant s 9
         d grant t 9
         a publish amq.topic a.1 one persistent
         > c deliver s #1 one @1 of=g
         a publish amq.topic a.2 two persistent
         > d deliver t #1 two @1 of=g
         a publish amq.topic a.3 three
         > c deliver s #2 three @2 of=g
         a publish amq.topic b four persistent",
    );
}

#[test]
fn no_more_is_handed_over_than_the_client_takes() {
    let mut host = shared(
        "c grant s 2
         a publish amq.topic a.1 one persistent
         > c deliver s #1 one @1 of=g
         a publish amq.topic a.1 two persistent
         > c deliver s #2 two @2 of=g
         a publish amq.topic a.1 three persistent
         a publish amq.topic a.1 four persistent
         d grant t 1
         > d deliver t #1 three @1 of=g
         c accept 1
         c grant s 3
         > c deliver s #3 four @3 of=g",
    );
    let shared = host.engine.list_queues().find(|queue| queue.name == "amq.shared-g").unwrap();
    assert_eq!(shared.ready, 0);
    // Messages that come to the session itself count, too.
    host.run("c bind amq.topic amq.session-s b");
    host.run("flush");
    check_in(
        host,
        "a publish amq.topic b own persistent
         c accept 2
         c grant s 4
         > c deliver s #4 own @4
         a publish amq.topic a.1 five persistent
         d accept 1
         d grant t 2
         > d deliver t #2 five @2 of=g",
    );
}

#[test]
fn members_that_nobody_holds_take_nothing_and_their_queue_collects() {
    let mut host = members("expiry=5000 recorded");
    for loss in ["c disconnect", "d disconnect"] {
        host.run(loss);
    }
    host.run("flush");
    check_in(
        host,
        "a publish amq.topic a.1 one persistent
         a publish amq.topic a.1 two persistent
         restart killed
         login e ann
         e claim t expiry=5000 recorded queue
         flush
         > e session t resumed expiry=5s queue=amq.session-t
         e consume amq.session-t t granted on-loss=release
         > e consuming t
         e grant t 9
         > e deliver t #1 one @1 of=g
         > e deliver t #2 two @2 of=g",
    );
}

#[test]
fn what_was_handed_over_stays_at_its_place_while_the_session_lives() {
    for loss in
        ["c disconnect\nd disconnect", "restart lose=0", "restart killed", "checkpoint\nrestart"]
    {
        let host = members("expiry=5000 recorded");
        check_in(
            host,
            &format!(
                "c grant s 9
                 a publish amq.topic a.1 one persistent
                 > c deliver s #1 one @1 of=g
                 a publish amq.topic a.2 two persistent format=2
                 > c deliver s #2 two @2 of=g
                 {loss}
                 login f ann
                 f claim t expiry=5000 recorded queue
                 flush
                 > f session t resumed expiry=5s queue=amq.session-t
                 f consume amq.session-t t granted on-loss=release
                 > f consuming t
                 f grant t 9
                 f claim s expiry=5000 recorded queue
                 flush
                 > f session s resumed expiry=5s queue=amq.session-s
                 f consume amq.session-s s granted on-loss=release
                 > f consuming s
                 f grant s 9
                 > f deliver s #1 one @1 of=g redelivered
                 > f deliver s #2 two @2 of=g redelivered
                 f accept 2 multiple
                 restart
                 a passive amq.shared-g
                 > a queue amq.shared-g 0 0"
            ),
        );
    }
}

/// A session ends with messages that its client has and has not settled: the other member gets what it may.
#[test]
fn messages_of_a_session_that_ends_go_to_another_member() {
    for (how, ends) in [
        ("expiry=5000 recorded", "c end s\nflush\n> c ok\n> c cancelled s"),
        ("expiry=5000 recorded", "c disconnect\nflush\ntime 5000"),
        ("expiry=5000 recorded", "c detach s expiry=0\n> c cancelled s\nflush\n> c ok"),
        ("expiry=5000", "c disconnect\ntime 5000"),
        ("", "c disconnect"),
        ("", "c claim s fresh queue\n> c session s new queue=amq.session-s\n> c cancelled s"),
        ("expiry=5000 recorded", "a delete-user ann"),
        ("", "a delete-user ann"),
    ] {
        let host = members_of("bob", how);
        let mut host = check_in(
            host,
            "c grant s 9
             a publish amq.topic a.1 one persistent
             > c deliver s #1 one @1 of=g
             a publish amq.topic a.2 two persistent format=2
             > c deliver s #2 two @2 of=g
             a publish amq.topic a.3 three
             > c deliver s #3 three @3 of=g
             a publish amq.topic a.4 four persistent
             > c deliver s #4 four @4 of=g
             c accept 4",
        );
        for line in ends.lines().filter(|line| !line.starts_with('>')) {
            host.run(line);
        }
        let mut got = host.run("d grant t 9");
        got.sort_unstable();
        let bodies: Vec<&str> =
            got.iter().map(|line| line.split_whitespace().nth(4).unwrap()).collect();
        assert_eq!(bodies, ["one", "three"], "{how} {ends}: {got:?}");
        for line in ["d accept 2 multiple", "flush", "restart"] {
            host.run(line);
        }
        assert_eq!(host.engine.list_queues().map(|queue| queue.ready).sum::<u64>(), 0);
    }
}

/// Those of a session that does not outlive the process are the shared queue's for the journal.
#[test]
fn a_crash_gives_what_was_lent_to_another_member() {
    for how in [
        "restart",
        "restart killed",
        "checkpoint\nrestart",
        "snapshot\nrestart",
        "relocate 0\nrestart",
    ] {
        let mut host = members("expiry=5000 recorded");
        for line in
            ["e claim u queue", "e consume amq.session-u u granted", "e join g a.*", "flush"]
        {
            host.run(line);
        }
        check_in(
            host,
            &format!(
                "e grant u 9
                 a publish amq.topic a.1 one persistent
                 > e deliver u #1 one @1 of=g
                 a publish amq.topic a.2 two persistent format=2
                 > e deliver u #2 two @2 of=g
                 a publish amq.topic a.3 three persistent
                 > e deliver u #3 three @3 of=g
                 e accept 3
                 {how}
                 login c ann
                 c claim s expiry=5000 recorded queue
                 flush
                 > c session s resumed expiry=5s queue=amq.session-s
                 c consume amq.session-s s granted
                 > c consuming s
                 c grant s 9
                 > c deliver s #1 one @1 of=g redelivered"
            ),
        );
    }
}

#[test]
fn a_shared_queue_goes_with_its_last_member() {
    for last in ["d leave g\nflush\n> d ok", "d end t\nflush\n> d ok\n> d cancelled t"] {
        shared(&format!(
            "a passive amq.shared-g
             > a queue amq.shared-g 0 0
             c leave g
             flush
             > c ok
             c leave g
             > c ok
             a publish amq.topic a.1 one persistent
             a passive amq.shared-g
             > a queue amq.shared-g 1 0
             {last}
             a passive amq.shared-g
             > a refused NotFound: no queue 'amq.shared-g' in vhost '/'
             restart
             a passive amq.shared-g
             > a refused NotFound: no queue 'amq.shared-g' in vhost '/'"
        ));
    }
    // So it does after a crash that has ended the sessions of all its members.
    let mut host = members("");
    host.run("a publish amq.topic a.1 one persistent");
    check_in(
        host,
        "restart
         a passive amq.shared-g
         > a refused NotFound: no queue 'amq.shared-g' in vhost '/'",
    );
}

#[test]
fn who_leaves_gives_back_what_its_client_was_not_sent() {
    shared(
        "room c off
         c grant s 9
         c change s flushed=on
         flush
         > c ok
         room c on
         a publish amq.topic a.1 one persistent
         d grant t 9
         c leave g
         > d deliver t #1 one @1 of=g
         flush
         > c ok",
    );
}

#[test]
fn a_shared_queue_is_nobodys_to_consume_or_delete() {
    shared(
        "a get amq.shared-g
         > a refused ResourceLocked: queue 'amq.shared-g' is shared by sessions: they get its messages, and \
         it goes with the last of them
         a delete amq.shared-g
         > a refused ResourceLocked: queue 'amq.shared-g' is shared by sessions: they get its messages, and \
         it goes with the last of them
         a queue amq.shared-h
         > a queue amq.shared-h 0 0
         c join h b
         > c refused PreconditionFailed: a shared queue needs the name 'amq.shared-h', which another queue has
         e claim u
         > e session u new
         e join g a.*
         > e refused PreconditionFailed: a session without a queue cannot share another",
    );
}

#[test]
fn what_is_emitted_goes_to_the_subscribers_of_the_group_alone() {
    shared(
        "c grant s 9
         d grant t 9
         c subscribe a.* x group=g
         d subscribe a.* y group=g
         a emit a.1 one
         > d hears y a.1 one
         a emit a.1 two
         > c hears x a.1 two
         a publish amq.topic a.1 three persistent
         > c deliver s #1 three @1 of=g
         c leave g
         flush
         > c ok
         d leave g
         flush
         > d ok
         a publish amq.topic a.1 four persistent
         > d hears y a.1 four",
    );
}

#[test]
fn who_loses_the_right_to_its_messages_is_a_member_no_longer() {
    shared(
        "e claim u queue
         > e session u new queue=amq.session-u
         a narrow-subscribing ann b.*
         > a ok
         a passive amq.shared-g
         > a refused NotFound: no queue 'amq.shared-g' in vhost '/'
         e join h a.*
         > e refused AccessRefused: read access to subject 'a.*' in vhost '/' refused for user 'ann'
         e join h b.x
         flush
         > e ok
         a permit ann - - ^b
         > a ok
         a passive amq.shared-h
         > a refused NotFound: no queue 'amq.shared-h' in vhost '/'",
    );
}
