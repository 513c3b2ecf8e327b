//! Transactions that a connection names: several at once, over its channels, beside other work; how they end,
//! and what publishers learn.

use super::{TestHost, check, check_in};
use crate::interface::limits::Limits;
use std::time::Duration;

#[test]
fn several_are_open_at_once_over_channels_and_beside_other_work() {
    check(
        "a queue q durable
         > a queue q 0 0
         a begin
         > a transaction 1
         a begin
         > a transaction 2
         a confirms
         > a ok
         a publish - q one persistent in=1
         > a confirm 1
         a2 publish - q two persistent in=2
         a publish - q plain persistent
         flush
         > a confirm 2
         b get q
         > b deliver  #1 plain
         > b got, 0 left
         b accept 1
         a2 end-transaction 2 commit
         flush
         > a2 ok
         a publish - q other
         > a confirm 3
         a end-transaction 1 commit
         flush
         > a ok
         b get q
         > b deliver  #2 two
         > b got, 2 left
         b get q
         > b deliver  #3 other
         > b got, 1 left
         b get q
         > b deliver  #4 one
         > b got, 0 left
         a end-transaction 1 commit
         > a refused NotFound: no transaction 1 is open
         a begin
         > a transaction 3",
    );
}

#[test]
fn what_was_settled_goes_back_to_its_place_and_counts() {
    check(
        "a queue q durable
         > a queue q 0 0
         b publish - q 1 persistent
         b publish - q 2 persistent
         b publish - q 3 persistent
         b publish - q 4 persistent
         a begin
         > a transaction 1
         a consume q c credit=3
         > a consuming c
         > a deliver c #1 1
         > a deliver c #2 2
         > a deliver c #3 3
         a accept 1 in=1
         a accept 3 in=1
         a accept 1
         > a refused PreconditionFailed: unknown delivery tag 1
         a discard 3 in=1
         > a refused PreconditionFailed: unknown delivery tag 3
         a end-transaction 1
         > a ok
         > a deliver c #4 1 redelivered count=1
         > a deliver c #5 3 redelivered count=1
         a accept 5
         > a deliver c #6 4",
    );
}

#[test]
fn settles_of_a_range_are_committed_with_publishes_and_survive() {
    check(
        "a queue q durable
         > a queue q 0 0
         a queue r durable
         > a queue r 0 0
         b publish - q 1 persistent
         b publish - q 2 persistent
         b publish - q 3 persistent
         a consume q c
         > a consuming c
         > a deliver c #1 1
         > a deliver c #2 2
         > a deliver c #3 3
         a begin
         > a transaction 1
         a accept 2 multiple in=1
         a publish - r answer persistent in=1
         a end-transaction 1 commit
         flush
         > a ok
         restart
         b passive q
         > b queue q 1 0
         b get r
         > b deliver  #1 answer redelivered
         > b got, 0 left",
    );
}

#[test]
fn a_transaction_that_was_not_committed_leaves_nothing() {
    check(
        "a queue q durable
         > a queue q 0 0
         b publish - q 1 persistent
         a begin
         > a transaction 1
         a get q
         > a deliver  #1 1
         > a got, 0 left
         a accept 1 in=1
         a publish - q 2 persistent in=1
         flush
         restart
         b get q
         > b deliver  #1 1 redelivered
         > b got, 0 left",
    );
}

#[test]
fn it_ends_with_the_channel_that_began_it_and_outlives_others() {
    check(
        "a queue q durable
         > a queue q 0 0
         b publish - q 1 persistent
         b publish - q 2 persistent
         a begin
         > a transaction 1
         a2 get q
         > a2 deliver  #1 1
         > a2 got, 1 left
         a2 accept 1 in=1
         a2 close
         b passive q
         > b queue q 1 0
         a2 publish - q 3 persistent in=1
         a3 begin
         > a3 transaction 2
         a3 end-transaction 1 commit
         flush
         > a3 ok
         b passive q
         > b queue q 2 0
         a get q
         > a deliver  #1 2
         > a got, 1 left
         a accept 1 in=2
         a3 close
         b passive q
         > b queue q 2 0
         a publish - q 4 in=2
         > a refused NotFound: no transaction 2 is open",
    );
}

#[test]
fn a_failed_publish_lets_it_only_be_rolled_back() {
    check(
        "a queue q durable
         > a queue q 0 0
         b publish - q 1
         a confirms explained
         > a ok
         a begin
         > a transaction 1
         a get q
         > a deliver  #1 1
         > a got, 0 left
         a accept 1 in=1
         a publish - q one in=1
         > a confirm 1
         a publish nowhere q two in=1
         > a nack 2: NotFound no exchange 'nowhere' in vhost '/'
         a publish - q three in=1
         > a nack 3: NotFound the transaction can only be rolled back: no exchange 'nowhere' in vhost '/'
         a end-transaction 1 commit
         > a refused NotFound: the transaction can only be rolled back: no exchange 'nowhere' in vhost '/'
         b get q
         > b deliver  #1 1 redelivered count=1
         > b got, 0 left",
    );
}

#[test]
fn a_queue_without_room_refuses_the_whole_transaction() {
    check(
        "a queue q durable length=2 overflow=reject
         > a queue q 0 0
         a queue r durable
         > a queue r 0 0
         a begin
         > a transaction 1
         a publish - r 0 in=1
         a publish - q 1 in=1
         a publish - q 2 in=1
         b publish - q other
         a end-transaction 1 commit
         > a refused LimitExceeded: queue 'q' is full
         b passive q
         > b queue q 1 0
         b passive r
         > b queue r 0 0
         a begin
         > a transaction 2
         a publish - q 1 in=2
         a end-transaction 2 commit
         > a ok
         b passive q
         > b queue q 2 0",
    );
}

#[test]
fn refused_publishes_say_why() {
    let limits = Limits { body_bytes_max: 8, ..Limits::default() };
    check_in(
        TestHost::with(limits),
        "a queue q durable length=1 overflow=reject
         > a queue q 0 0
         a exchange x fanout
         > a ok
         a confirms explained
         > a ok
         a publish - q one
         > a confirm 1
         a publish - q two
         > a nack 2: LimitExceeded queue 'q' is full
         a publish - q 123456789
         > a nack 3: LimitExceeded a message of 9 bytes is larger than the limit of 8
         a publish nowhere q three
         > a nack 4: NotFound no exchange 'nowhere' in vhost '/'
         a publish x k four mandatory
         > a nack 5: Unroutable exchange 'x' leads a message with key 'k' to no queue
         a publish - r five mandatory
         > a nack 6: Unroutable no queue 'r' takes the message
         a publish x k six
         > a confirm 7
         a queue r durable
         > a queue r 0 0
         storage full
         a publish - r seven persistent
         > a nack 8: StorageUnavailable the message cannot be stored: the disk is full or has failed
         storage ready
         a publish - r eight persistent
         storage failed
         > a nack 9 multiple: StorageUnavailable the journal failed",
    );
}

#[test]
fn answers_come_in_order_and_a_waiting_commit_holds_up_no_other_channel() {
    check(
        "a queue q durable
         > a queue q 0 0
         a begin
         > a transaction 1
         a publish - q 1 persistent in=1
         a end-transaction 1 commit
         b begin
         > b transaction 1
         a2 begin
         > a2 transaction 2
         flush
         > a ok",
    );
    let mut host = TestHost::new();
    host.client("c");
    for line in ["c queue q durable", "flush", "c begin", "c publish - q 1 persistent in=1"] {
        host.run(line);
    }
    // A client that has logged in waits for flushes, as hosts' clients do.
    assert!(host.run("c end-transaction 1 commit").is_empty());
    assert!(host.run("c begin").is_empty());
    assert!(host.run("c queue r durable").is_empty());
    assert!(host.run("c passive nowhere").is_empty());
    let answers = ["c ok", "c transaction 2", "c queue r 0 0"];
    let mut heard = host.run("flush");
    assert!(heard.pop().unwrap().starts_with("c refused NotFound"));
    assert_eq!(heard, answers);
}

#[test]
fn they_are_limited_in_number_and_time() {
    let timeout = Some(Duration::from_secs(1));
    let limits = Limits { transactions_max: 2, transaction_timeout: timeout, ..Limits::default() };
    let late = "the transaction was rolled back: it was open for 1000 ms (transaction-timeout)";
    let host = check_in(
        TestHost::with(limits),
        &format!(
            "a queue q
             > a queue q 0 0
             b publish - q 1
             a begin
             > a transaction 1
             a begin
             > a transaction 2
             a begin
             > a refused LimitExceeded: more than 2 transactions of one connection are open
             time 5000
             a get q
             > a deliver  #1 1
             > a got, 0 left
             a accept 1 in=1
             a publish - q 2 in=1
             time 500
             a publish - q 3 in=2
             time 499
             b passive q
             > b queue q 0 0
             time 1
             b passive q
             > b queue q 1 0
             a publish - q 4 in=1
             > a refused PreconditionFailed: {late}
             a end-transaction 1 commit
             > a refused PreconditionFailed: {late}
             a end-transaction 2 commit
             > a ok
             b passive q
             > b queue q 2 0
             c transactions
             > c ok
             c publish - q 5
             time 1000
             c commit
             > c refused PreconditionFailed: {late}
             c publish - q 6
             c commit
             > c ok"
        ),
    );
    assert_eq!(host.engine.counters().transaction_timeouts, 2);
}

#[test]
fn a_delay_counts_from_the_send_and_survives() {
    check(
        "a queue q durable
         > a queue q 0 0
         a begin
         > a transaction 1
         a publish - q late persistent delay=100 in=1
         a publish - q past persistent delay=10 in=1
         a publish - q now persistent in=1
         time 20
         a end-transaction 1 commit
         flush
         > a ok
         b consume q c presettled
         > b consuming c
         > b deliver c #1 past
         > b deliver c #2 now
         restart
         b consume q c presettled
         > b consuming c
         time 79
         time 1
         > b deliver c #1 late",
    );
}

#[test]
fn messages_for_the_same_time_keep_their_order() {
    check(
        "a queue q durable
         > a queue q 0 0
         b consume q c presettled
         > b consuming c
         a publish - q 1 delay=100
         a publish - q 2 delay=100
         time 50
         a publish - q 3 delay=50
         a publish - q 4 delay=0
         > b deliver c #1 4
         time 50
         > b deliver c #2 1
         > b deliver c #3 2
         > b deliver c #4 3
         a publish - nowhere lost mandatory delay=100
         > a returned lost",
    );
}

#[test]
fn only_what_sends_to_a_congested_queue_pauses() {
    let limits = Limits { queue_resident_bytes_max: 16_500, ..Limits::default() };
    check_in(
        TestHost::with(limits),
        &"a queue q
         > a queue q 0 0
         a queue r
         > a queue r 0 0
         a confirms explained
         > a ok
         b consume q c credit=1
         > b consuming c
         a publish - q BODY
         > b deliver c #1 BODY
         > a confirm 1
         a publish - q BODY
         > a confirm 2
         a publish - q BODY
         > a confirm 3
         a publish - q BODY
         > a pauses after 4 for 1
         > a confirm 4
         a publish - r 5
         > a confirm 5
         a publish - q BODY
         > a pauses after 6 for 1
         > a confirm 6
         time 4
         > a goes on for 1
         a publish - q BODY
         > a pauses after 7 for 1
         > a confirm 7
         a close
         time 4"
            .replace("BODY", &"b".repeat(2700)),
    );
}

/// Three transactions over two channels, open at once: each takes a message of `work` and puts one into `x`
/// and one into `y`. They are committed one after the other.
const THREE: [&str; 27] = [
    "a queue work durable",
    "a queue x durable",
    "a queue y durable",
    "b publish - work 1 persistent",
    "b publish - work 2 persistent",
    "b publish - work 3 persistent",
    "a begin",
    "a2 begin",
    "a begin",
    "a get work",
    "a get work",
    "a2 get work",
    "a publish - x 1 persistent in=1",
    "a2 publish - x 2 persistent in=2",
    "a2 publish - y 3 persistent in=3",
    "a accept 2 in=2",
    "a accept 1 in=1",
    "a2 accept 1 in=3",
    "a publish - y 2 persistent in=2",
    "a2 publish - y 1 persistent in=1",
    "a publish - x 3 persistent in=3",
    "b publish - x plain persistent",
    "flush",
    "a2 end-transaction 2 commit",
    "a end-transaction 3 commit",
    "a end-transaction 1 commit",
    "b publish - y plain persistent",
];
/// How many of those lines come before the first commit.
const BEFORE: usize = 23;

/// The messages of a queue.
fn contents(host: &mut TestHost, queue: &str) -> Vec<String> {
    host.fx.quiet = true;
    host.fx.delivered.clear();
    host.run(&format!("z consume {queue} c presettled"));
    host.run("z cancel c");
    host.fx.quiet = false;
    host.fx.delivered.iter().map(|(_, _, body, _)| body.clone()).collect()
}

/// Says which of the three are done; none is done in part.
fn done(host: &mut TestHost, what: &str) -> [bool; 3] {
    let [work, x, y] = ["work", "x", "y"].map(|queue| contents(host, queue));
    ["1", "2", "3"].map(|number| {
        let is_in = |queue: &[String]| queue.iter().filter(|body| *body == number).count();
        let found = (is_in(&work), is_in(&x), is_in(&y));
        assert!([(1, 0, 0), (0, 1, 1)].contains(&found), "{what}: {number} is {found:?}");
        found.0 == 0
    })
}

#[test]
fn a_crash_at_any_record_leaves_each_whole_or_not_at_all() {
    let mut seen = Vec::new();
    for lost in 0.. {
        let mut host = TestHost::new();
        THREE[..BEFORE].iter().for_each(|line| drop(host.run(line)));
        let before = host.fx.records.len();
        THREE[BEFORE..].iter().for_each(|line| drop(host.run(line)));
        let kept = host.fx.records.len().saturating_sub(lost);
        if kept < before {
            break;
        }
        // A group is there as a whole or not at all.
        let groups = &host.fx.groups;
        let nexts = groups.iter().skip(1).map(|group| group.0).chain([host.fx.records.len()]);
        let mut inner = groups.iter().zip(nexts).map(|(at, next)| at.0 + 1..next.min(at.0 + at.1));
        if inner.any(|records| records.contains(&kept)) {
            continue;
        }
        host.run(&format!("restart lose={lost}"));
        seen.push(done(&mut host, &format!("{lost} records lost")));
    }
    seen.dedup();
    let order = [[true; 3], [false, true, true], [false, true, false], [false; 3]];
    assert_eq!(seen, order, "they are committed in the order 2, 3, 1");
}

#[test]
fn a_checkpoint_at_any_time_has_what_transactions_hold() {
    for begin in ["snapshot", "checkpoint"] {
        for at in 0..=THREE.len() {
            for rolls_back in [false, true] {
                let mut host = TestHost::new();
                host.set_snapshot_at_once(2);
                for (index, line) in THREE.iter().enumerate() {
                    if index == at {
                        host.run(begin);
                    }
                    host.run(if rolls_back { line.trim_end_matches(" commit") } else { line });
                }
                host.run("restart");
                let expected = [!rolls_back; 3];
                assert_eq!(
                    done(&mut host, &format!("{begin} at {at}")),
                    expected,
                    "{begin} at {at}"
                );
            }
        }
    }
}

#[test]
fn what_goes_back_to_its_place_comes_before_anything_later_however_much_it_is() {
    for settles_at_once in [3, 1000] {
        let limits = Limits { settles_at_once, ..Limits::default() };
        for rolls_back in ["a end-transaction 1", "a close"] {
            let mut host = TestHost::with(limits.clone());
            host.run("b queue q durable");
            (0..15).for_each(|body| drop(host.run(&format!("b publish - q {body} persistent"))));
            for line in [
                "a begin",
                "a2 consume q c",
                "a2 accept 15 multiple in=1",
                "a2 cancel c",
                "e consume q e presettled",
            ] {
                host.run(line);
            }
            (host.fx.quiet, host.fx.delivered) = (true, Vec::new());
            host.act_on(rolls_back);
            host.act_on("b publish - q 15 persistent");
            host.run("flush");
            let came = host.fx.delivered.iter().map(|(_, _, body, _)| body.clone());
            let expected: Vec<String> = (0..16).map(|body: u32| body.to_string()).collect();
            assert_eq!(came.collect::<Vec<_>>(), expected, "{rolls_back}, {settles_at_once}");
        }
    }
}
