//! What users may use: kept through restarts, and held to where the engine counts.

use super::{TestHost, check_in};
use crate::interface::limits::Limits;
use crate::*;

fn quota_of(host: &TestHost, user: &str) -> Quota {
    let found = host.engine.list_users().find(|found| found.name == user);
    found.expect("the user is there").quota
}

#[test]
fn quotas_survive_as_long_as_their_users() {
    let mut host = TestHost::new();
    host.run("a user ann hash");
    host.run("a quota ann slow_consumer_policy=drop-oldest connections=2 bytes-per-second=1000");
    let expected = Quota::default()
        .with_slow_consumer_policy(SlowConsumerPolicy::DropOldest)
        .with(Bound::Connections, 2)
        .with(Bound::Bytes, 1_000);
    assert_eq!(quota_of(&host, "ann"), expected);
    host.run("restart");
    assert_eq!(quota_of(&host, "ann"), expected, "from records");
    host.run("restart clean");
    assert_eq!(quota_of(&host, "ann"), expected, "from a snapshot");
    host.run("a change-user ann other-hash");
    assert_eq!(quota_of(&host, "ann"), expected, "a new password changes nothing");
    host.run("a quota ann");
    assert_eq!(quota_of(&host, "ann"), Quota::default());
    host.run("a quota ann connections=1");
    host.run("a delete-user ann");
    host.run("a user ann hash");
    assert_eq!(quota_of(&host, "ann"), Quota::default());
    assert_eq!(host.run("a quota bob connections=1"), ["a refused NotFound: no user 'bob'"]);
}

/// A host in which those lines were run.
fn world_after(mut host: TestHost, lines: &str) -> TestHost {
    for line in lines.lines() {
        host.run(line);
    }
    host
}

#[test]
fn a_connection_subscribes_to_no_more_subjects_than_its_user_may() {
    let setup = "a user ann hash
        a permit ann .* .* .*
        a quota ann connection-subscriptions=1
        login b ann
        login c ann";
    check_in(
        world_after(TestHost::new(), setup),
        "b subscribe s 1
         b subscribe s 2
         > b refused LimitExceeded: more than 1 subjects subscribed to in one channel
         c subscribe s 1",
    );
}

/// Clients `b` and `c` are ann's, `d` is bob's; `b` subscribes to two subjects and `c` to one, which are all
/// that ann may.
const THREE: &str = "a user ann hash
    a permit ann .* .* .*
    a user bob hash
    a permit bob .* .* .*
    a quota ann subscriptions=3
    login b ann
    login c ann
    login d bob
    b subscribe s1 1
    b subscribe s2 2
    c subscribe s3 3";

/// Lines after [`THREE`], and how many further subjects ann's clients may subscribe to then.
#[track_caller]
fn check_left(lines: &str, left: usize) {
    let mut host = world_after(world_after(TestHost::new(), THREE), lines);
    host.run("login e ann");
    for at in 0..5 {
        let answer = host.run(&format!("e subscribe more m{at}")).concat();
        let is_refused = answer.starts_with("e refused LimitExceeded: ");
        assert_eq!((is_refused, answer.is_empty()), (at >= left, at < left), "{lines}: {answer}");
    }
}

#[test]
fn all_connections_of_a_user_subscribe_to_no_more_subjects_than_it_may() {
    for (lines, left) in [
        ("", 0),
        // One that is refused, or subscribes already, counts for nothing.
        ("c subscribe s5 5\nc subscribe s3 3\nd subscribe s6 6", 0),
        ("b unsubscribe 1", 1),
        ("b unsubscribe 1\nb unsubscribe 1\nb unsubscribe 9", 1),
        ("b unsubscribe 1 after=2\na emit s1 x", 0),
        ("b unsubscribe 1 after=2\na emits s1 x y z", 1),
        ("c disconnect", 1),
        ("b close", 2),
        ("b disconnect\nc disconnect", 3),
        ("b unsubscribe 1\nb disconnect\nc disconnect", 3),
        // In the place of one that has gone.
        ("b disconnect\nlogin b ann\nb subscribe s1 1", 1),
        ("b disconnect\nlogin b bob\nb subscribe s1 1\nb disconnect", 2),
        // Changed quotas hold at once, and end nothing.
        ("a quota ann subscriptions=4", 1),
        ("a quota ann subscriptions=1", 0),
        ("a quota ann subscriptions=1\nb disconnect", 0),
        ("a quota ann subscriptions=0\nb disconnect\nc disconnect", 0),
        ("a quota ann", 5),
        ("a quota ann\nc subscribe s4 4\na quota ann subscriptions=5", 1),
        ("a quota ann connection-subscriptions=2", 2),
        // Rights end some, or all.
        ("a narrow-subscribing ann > s1", 1),
        ("a narrow-subscribing ann > s3\na narrow-subscribing ann - -", 1),
        ("a forbid ann\na permit ann .* .* .*", 3),
        (
            "a delete-user ann\na user ann hash\na permit ann .* .* .*\na quota ann subscriptions=2",
            2,
        ),
    ] {
        check_left(lines, left);
    }
}

#[test]
fn what_everybody_may_subscribe_to_is_what_a_user_may_whose_quota_says_nothing() {
    let limits = Limits { user_subscriptions_max: 1, ..Limits::default() };
    let setup = "a user ann hash
        a permit ann .* .* .*
        login b ann";
    check_in(
        world_after(TestHost::with(limits), setup),
        "b subscribe s 1
         b subscribe s 2
         > b refused LimitExceeded: user 'ann' subscribes to 1 subjects, and may to no more
         a quota ann subscriptions=2
         > a ok
         b subscribe s 2
         // The broker's own are nobody's.
         a subscribe s 1
         a subscribe s 2",
    );
}

fn quota_of_vhost(host: &TestHost, name: &str) -> Quota {
    host.engine.list_vhosts().find(|vhost| vhost.name == name).expect("it is there").quota
}

#[test]
fn the_quota_of_a_virtual_host_survives_as_long_as_that() {
    let mut host = TestHost::new();
    host.run("a create-vhost v");
    host.run("a quota v of=vhost queues=7 stored-bytes=1000");
    let expected = Quota::default().with(Bound::Queues, 7).with(Bound::StoredBytes, 1_000);
    assert_eq!(quota_of_vhost(&host, "v"), expected);
    for (line, why) in [("restart", "from records"), ("restart clean", "from a snapshot")] {
        host.run(line);
        assert_eq!(quota_of_vhost(&host, "v"), expected, "{why}");
        assert_eq!(quota_of_vhost(&host, "/"), Quota::default(), "{why}");
    }
    host.run("a quota v of=vhost");
    assert_eq!(quota_of_vhost(&host, "v"), Quota::default());
    host.run("a quota v of=vhost queues=1");
    host.run("a delete-vhost v");
    host.run("a create-vhost v");
    assert_eq!(quota_of_vhost(&host, "v"), Quota::default());
    let unknown = host.run("a quota nowhere of=vhost queues=1");
    assert_eq!(unknown, ["a refused NotFound: no virtual host 'nowhere'"]);
}

#[test]
fn users_and_virtual_hosts_have_no_more_connections_than_they_may() {
    for (bound, freed, refused) in [
        (
            "a quota ann connections=2",
            "a quota ann connections=3",
            "connection refused for user 'ann': user connection limit (2) is reached",
        ),
        (
            "a quota / of=vhost connections=2",
            "a quota / of=vhost\na quota ann connections=3",
            "connection to vhost '/' refused: connection limit (2) is reached",
        ),
    ] {
        let setup = format!("a user ann hash\na permit ann .* .* .*\n{bound}");
        let mut host = world_after(TestHost::new(), &setup);
        let connection = |number: u32| ConnectionId(100 + number);
        let connect = |host: &mut TestHost, number| {
            host.engine.connect(connection(number), "ann", "/").map_err(|refusal| refusal.text)
        };
        connect(&mut host, 0).unwrap();
        connect(&mut host, 1).unwrap();
        assert_eq!(connect(&mut host, 2), Err(refused.to_owned()));
        host.engine.disconnect(host.now, connection(0), &mut host.fx);
        connect(&mut host, 2).unwrap();
        assert_eq!(connect(&mut host, 3), Err(refused.to_owned()));
        // One that was refused counts neither for its user nor for the virtual host.
        let mut host = world_after(host, freed);
        connect(&mut host, 3).unwrap();
        assert_eq!(host.engine.counters().not_admitted, 2);
    }
}

/// A host with a client `c` of ann.
fn host_of_ann() -> TestHost {
    let mut host = TestHost::new();
    host.client("c");
    host
}

#[test]
fn users_and_virtual_hosts_have_no_more_queues_than_they_may() {
    check_in(
        host_of_ann(),
        "a quota ann queues=2
         > a ok
         c queue one durable
         flush
         > c queue one 0 0
         c queue two
         > c queue two 0 0
         c queue three
         > c refused LimitExceeded: cannot declare queue 'three': queue limit of user 'ann' (2) is reached
         c queue one durable
         > c queue one 0 0
         a queue others
         > a queue others 0 0
         a quota / of=vhost queues=3
         > a ok
         a queue more
         > a refused LimitExceeded: cannot declare queue 'more' in vhost '/': \
         queue limit in vhost '/' (3) is reached
         c delete two
         > c messages 0
         c queue three
         > c queue three 0 0",
    );
    let mut host = host_of_ann();
    for line in ["c queue one durable", "flush", "a quota ann queues=1"] {
        host.run(line);
    }
    for restart in ["restart", "restart clean"] {
        host.run(restart);
        let ann = host.engine.list_users().find(|user| user.name == "ann");
        assert_eq!(ann.map(|user| user.queues), Some(1), "{restart}");
    }
}

#[test]
fn what_waits_is_bounded_by_virtual_host_and_by_who_declared_the_queue() {
    check_in(
        host_of_ann(),
        "c queue hers
         > c queue hers 0 0
         a queue others
         > a queue others 0 0
         a quota ann stored-bytes=8
         > a ok
         a publish - hers 1.......
         a publish - hers 2.......
         > a refused LimitExceeded: the quota of stored bytes (8) of user 'ann' is reached
         a publish - others 3.......
         a quota / of=vhost stored-bytes=16
         > a ok
         a publish - others 4.......
         > a refused LimitExceeded: the quota of stored bytes (16) of virtual host '/' is reached
         b confirms
         > b ok
         b publish - others 5.......
         > b nack 1
         a quota / of=vhost
         > a ok
         a exchange x fanout
         > a ok
         a bind x hers k
         > a ok
         a bind x others k
         > a ok
         b publish x k 5.......
         > b confirm 2
         a purge others
         > a messages 2
         a quota / of=vhost stored-bytes=16
         > a ok
         a purge hers
         > a messages 1
         b publish - others 6.......
         > b confirm 3",
    );
}

/// Bytes stored in the virtual host, and those of ann.
fn stored(host: &TestHost) -> (u64, u64) {
    let vhost = host.engine.list_vhosts().next().map(|vhost| vhost.stored_bytes);
    let ann = host.engine.list_users().find(|user| user.name == "ann");
    (vhost.unwrap_or_default(), ann.map_or(0, |user| user.stored_bytes))
}

#[test]
fn bytes_are_counted_whatever_becomes_of_them() {
    let mut host = host_of_ann();
    for (line, expected) in [
        ("c queue q durable", (0, 0)),
        ("a queue other durable", (0, 0)),
        ("a publish - q ten-bytes! persistent", (10, 10)),
        ("a publish - other twenty-bytes-of-body persistent", (30, 10)),
        // Out, and back again.
        ("b consume other t credit=1", (30, 10)),
        ("b requeue 1", (30, 10)),
        ("b get q", (30, 10)),
        ("flush", (30, 10)),
        ("restart", (30, 10)),
        ("restart clean", (30, 10)),
        ("b get q", (30, 10)),
        ("a purge other", (10, 10)),
        ("b accept 1", (0, 0)),
        // Handed straight to a consumer.
        ("b consume q t", (0, 0)),
        ("a publish - q ten-bytes!", (10, 10)),
        ("a delete q", (0, 0)),
        ("b accept 2", (0, 0)),
    ] {
        host.run(line);
        assert_eq!(stored(&host), expected, "{line}");
    }
}

/// Whether a quota of stored bytes has what the line does refused.
fn is_refused(host: &mut TestHost, line: &str) -> bool {
    let said = host.run(line).concat();
    said.contains(" refused LimitExceeded: the quota of stored bytes (8) of ")
}

#[test]
fn what_is_out_or_delayed_is_bounded_with_what_waits() {
    for bound in ["a quota ann stored-bytes=8", "a quota / of=vhost stored-bytes=8"] {
        for (fills, frees) in [
            ("c publish - hers 1.......", "a purge hers"),
            ("b consume hers t\nc publish - hers 1.......", "b accept 1"),
            ("c publish late k 1....... delay=100", "time 100"),
        ] {
            let what = format!("a exchange late fanout delaying\nc queue hers\n{bound}\n{fills}");
            let mut host = world_after(host_of_ann(), &what);
            for publish in ["c publish - hers 2.......", "c publish late k 2....... delay=100"] {
                assert!(is_refused(&mut host, publish), "{what}: {publish}");
            }
            host.run(frees);
            assert!(!is_refused(&mut host, "c publish - hers 3......."), "{what}: {frees}");
        }
    }
}

#[test]
fn delayed_messages_are_their_publishers_after_a_restart() {
    let lines = "a exchange late fanout delaying durable
        c publish late k body persistent delay=1000
        a publish late k body persistent delay=1000";
    let mut host = world_after(host_of_ann(), lines);
    let before = stored(&host);
    assert!(before.0 > before.1 && before.1 > 4, "{before:?}");
    for line in ["relocate 0", "restart", "restart clean"] {
        host.run(line);
        assert_eq!(stored(&host), before, "{line}");
    }
    host.run("time 1000");
    assert_eq!(stored(&host), (0, 0));
}

#[test]
fn what_the_broker_has_taken_comes_to_the_queues_of_a_full_user() {
    let lines = "a exchange late direct delaying
        c queue hers
        a bind late hers k
        a queue other dlx=- dlk=hers
        a publish late k 1 delay=100
        a publish - other 2
        a get other
        a quota ann stored-bytes=8
        a publish - hers 3.......";
    let mut host = world_after(host_of_ann(), lines);
    assert!(is_refused(&mut host, "a publish - hers 4"));
    host.run("a discard 1");
    host.run("time 100");
    assert_eq!(stored(&host), (10, 10));
}

#[test]
fn a_transaction_is_refused_whole_where_a_quota_is_reached() {
    let mut host = world_after(
        host_of_ann(),
        "c queue hers
        a quota ann stored-bytes=8
        c transactions
        c publish - hers 1.......
        c publish - hers 2.......",
    );
    // It was below the bound when it was committed.
    assert!(!is_refused(&mut host, "c commit"));
    assert_eq!(stored(&host), (16, 16));
    host.run("c publish - hers 3.......");
    assert!(is_refused(&mut host, "c commit"));
    assert_eq!(stored(&host), (16, 16));
}
