//! What a restart brings back, from records alone and from a snapshot with the records after it.

use super::checkpoints::let_a_letter_die;
use super::{TestHost, check, check_in};
use crate::interface::limits::Limits;

/// Runs the scenario with `restart` as it is, and with a snapshot in the middle of the records.
fn check_both(before: &str, after: &str) {
    check(&format!("{before}\nrestart\n{after}"));
    check(&format!("{before}\nsnapshot\nrestart\n{after}"));
    let lines: Vec<&str> = before.lines().collect();
    for middle in 1..lines.len() {
        if lines[middle].trim_start().starts_with('>') {
            continue;
        }
        let (first, second) = (lines[..middle].join("\n"), lines[middle..].join("\n"));
        check(&format!("{first}\nsnapshot\n{second}\nrestart\n{after}"));
        for snapshot_at_once in [1, 4, 1000] {
            let parted = || TestHost::with(Limits { snapshot_at_once, ..Limits::default() });
            check_in(parted(), &format!("{first}\ncheckpoint\n{second}\nrestart\n{after}"));
            check_in(parted(), &format!("{first}\ncheckpoint\n{second}\nrestart early\n{after}"));
            let twice =
                format!("snapshot\n{first}\ncheckpoint\n{second}\ncheckpoint\nrestart\n{after}");
            check_in(parted(), &twice);
        }
    }
}

#[test]
fn durable_things_come_back_and_others_do_not() {
    check_both(
        "a queue q durable
         > a queue q 0 0
         a queue gone
         > a queue gone 0 0
         a queue mine durable exclusive
         > a queue mine 0 0
         a exchange x fanout durable
         > a ok
         a exchange y fanout
         > a ok
         a bind x q k
         > a ok
         a publish x k 1 persistent
         a publish x k 2
         a publish - q 3 persistent
         a user me hash
         > a ok",
        "a passive q
         > a queue q 2 0
         a passive gone
         > a refused NotFound: no queue 'gone' in vhost '/'
         a passive mine
         > a refused NotFound: no queue 'mine' in vhost '/'
         a publish y k 4
         > a refused NotFound: no exchange 'y' in vhost '/'
         a publish x k 5
         a consume q c presettled
         > a consuming c
         > a deliver c #1 1 redelivered
         > a deliver c #2 3 redelivered
         > a deliver c #3 5",
    );
}

#[test]
fn what_was_settled_stays_settled_and_what_was_out_returns() {
    check_both(
        "a queue q durable
         > a queue q 0 0
         a publish - q 1 persistent
         a publish - q 2 persistent
         a publish - q 3 persistent
         a publish - q 4 persistent
         b consume q c credit=3
         > b consuming c
         > b deliver c #1 1
         > b deliver c #2 2
         > b deliver c #3 3
         b accept 2
         > b deliver c #4 4
         b discard 4",
        "a consume q c presettled
         > a consuming c
         > a deliver c #1 1 redelivered
         > a deliver c #2 3 redelivered",
    );
}

#[test]
fn requeues_are_counted_over_a_restart() {
    check_both(
        "a queue dead durable
         > a queue dead 0 0
         a queue q durable limit=2 dlx=- dlk=dead
         > a queue q 0 0
         a publish - q 1 persistent
         a publish - q 2 persistent
         a publish - q 3
         b consume q c credit=2
         > b consuming c
         > b deliver c #1 1
         > b deliver c #2 2
         b requeue 1
         > b deliver c #3 1 redelivered count=1
         b requeue 3
         > b deliver c #4 1 redelivered count=2",
        "b consume q c credit=2
         > b consuming c
         > b deliver c #1 1 redelivered count=2
         > b deliver c #2 2 redelivered
         b requeue 1
         b accept 2
         a get dead presettled
         > a deliver  #1 1 redelivered died=DeliveryLimit:q:1
         > a got, 0 left",
    );
}

#[test]
fn requeues_of_what_was_in_a_page_are_counted() {
    for snapshots in 0..3 {
        let mut host = small();
        host.run("a queue q durable");
        fill(&mut host, 0, 5_000, "persistent");
        if snapshots > 0 {
            host.run("snapshot");
        }
        host.fx.quiet = true;
        host.run("b consume q c credit=2500");
        host.run("b requeue 2400");
        host.run("restart");
        if snapshots > 1 {
            host.run("snapshot");
            host.run("restart");
        }
        let in_pages = |(_, queue): (u32, &crate::queue::Queue)| queue.requeued_in_pages.len();
        assert_eq!(host.engine.queues.iter().map(in_pages).sum::<usize>(), 1);
        host.run("b consume q c credit=2400");
        host.fx.quiet = false;
        let lines = host.run("b requeue 2400");
        assert_eq!(lines, ["b deliver c #2401 message-2399 redelivered count=2"]);
    }
}

#[test]
fn a_clean_restart_remembers_what_was_not_delivered() {
    check(
        "a queue q durable
         > a queue q 0 0
         a publish - q 1 persistent
         a publish - q 2 persistent
         a get q
         > a deliver  #1 1
         > a got, 1 left
         restart clean
         a consume q c presettled
         > a consuming c
         > a deliver c #1 1 redelivered
         > a deliver c #2 2",
    );
}

#[test]
fn a_message_in_several_queues_is_stored_once() {
    let mut host = check_in(
        TestHost::new(),
        "a exchange x fanout
         > a ok
         a queue q durable
         > a queue q 0 0
         a queue r durable
         > a queue r 0 0
         a queue s
         > a queue s 0 0
         a bind x q k
         > a ok
         a bind x r k
         > a ok
         a bind x s k
         > a ok",
    );
    let before = host.fx.records.len();
    host.run("a publish x k message persistent");
    assert_eq!(host.fx.records.len(), before + 1);
    assert_eq!(host.fx.references.values().sum::<i64>(), 2);
}

#[test]
fn deleted_things_stay_deleted() {
    check_both(
        "a queue q durable
         > a queue q 0 0
         a exchange x fanout durable
         > a ok
         a exchange z direct durable auto-delete
         > a ok
         a bind x q k
         > a ok
         a bind z q k
         > a ok
         a publish x k 1 persistent
         a delete q
         > a messages 1
         a queue q durable
         > a queue q 0 0
         a publish - q 2 persistent
         a create-vhost v
         > a ok
         a delete-vhost v
         > a ok",
        "a publish x k 3 mandatory
         > a returned 3
         a publish z k 4
         > a refused NotFound: no exchange 'z' in vhost '/'
         a get q presettled
         > a deliver  #1 2 redelivered
         > a got, 0 left
         a delete-vhost v
         > a refused NotFound: no virtual host 'v'",
    );
}

#[test]
fn dead_letters_are_in_one_queue_at_any_time() {
    check_both(
        "a queue dead durable
         > a queue dead 0 0
         a queue q durable dlx=- dlk=dead
         > a queue q 0 0
         a publish - q 1 persistent
         a get q
         > a deliver  #1 1
         > a got, 0 left
         a discard 1",
        "a passive q
         > a queue q 0 0
         a get dead presettled
         > a deliver  #1 1 redelivered died=Rejected:q:1
         > a got, 0 left",
    );
    let mut host = TestHost::new();
    for line in [
        "a queue dead durable",
        "a queue q durable dlx=- dlk=dead",
        "a publish - q 1 persistent",
        "a get q",
        "a discard 1",
    ] {
        host.run(line);
    }
    let (first, records, _) = *host.fx.groups.last().unwrap();
    assert!(first + records >= host.fx.records.len(), "both records are in the group");
    assert_eq!(first + 2, host.fx.records.len());
}

#[test]
fn a_message_and_a_dead_letter_may_be_for_the_same_queue() {
    let dead = "a queue dead durable
                > a queue dead 0 0";
    for overflow in ["overflow=reject-dead-letter", ""] {
        let full = format!(
            "a queue q durable length=1 {overflow} dlx=- dlk=dead
             > a queue q 0 0"
        );
        for (first, second) in [(dead, full.as_str()), (full.as_str(), dead)] {
            check_both(
                &format!(
                    "a exchange x fanout durable
                     > a ok
                     {first}
                     {second}
                     a bind x q k
                     > a ok
                     a bind x dead k
                     > a ok
                     a publish x k 1 persistent
                     a publish x k 2 persistent"
                ),
                "a passive q
                 > a queue q 1 0
                 a passive dead
                 > a queue dead 3 0",
            );
        }
    }
}

#[test]
fn delays_survive() {
    check_both(
        "a exchange x direct durable delaying
         > a ok
         a queue q durable
         > a queue q 0 0
         a bind x q k
         > a ok
         a publish x k 1 persistent delay=100
         a publish x k 2 delay=100
         a publish x k 3 persistent delay=10
         time 10",
        "time 90
         a consume q c presettled
         > a consuming c
         > a deliver c #1 3 redelivered
         > a deliver c #2 1",
    );
}

#[test]
fn times_to_live_go_on_over_a_restart() {
    check_both(
        "a queue q durable ttl=100
         > a queue q 0 0
         a publish - q 1 persistent
         time 60
         a publish - q 2 persistent",
        "time 40
         a passive q
         > a queue q 1 0
         time 60
         a passive q
         > a queue q 0 0",
    );
}

#[test]
fn a_committed_transaction_is_one_group() {
    let mut host = TestHost::new();
    for line in [
        "a queue q durable",
        "a queue r durable",
        "a publish - q old persistent",
        "a transactions",
        "a get q",
        "a accept 1",
        "a publish - q 1 persistent",
        "a publish - r 2 persistent",
    ] {
        host.run(line);
    }
    let before = host.fx.records.len();
    assert!(host.run("a commit").is_empty(), "the answer waits for the flush");
    assert_eq!(host.run("flush"), ["a ok"]);
    let (first, records, _) = *host.fx.groups.last().unwrap();
    assert_eq!(first, before);
    assert_eq!(host.fx.records.len(), before + 3);
    assert!(records >= 3);
    assert_eq!(host.fx.durable[before..], [true; 3]);
}

/// A fan-out to `queues` queues, and one whose dead letters go there.
fn fan(queues: usize) -> TestHost {
    let mut host = TestHost::new();
    host.run("a exchange x fanout durable");
    for number in 0..queues {
        host.run(&format!("a queue q{number} durable"));
        host.run(&format!("a bind x q{number} k"));
    }
    host.run("a queue dying durable dlx=x");
    host.run("a publish - dying 1 persistent");
    host
}

/// The last group holds all records from `before` on. (The recorder looks at its bytes.)
fn is_one_group(host: &TestHost, before: usize) {
    let (first, records, _) = *host.fx.groups.last().unwrap();
    assert_eq!(first, before);
    assert!(host.fx.records.len() > before);
    assert!(first + records >= host.fx.records.len());
}

#[test]
fn a_group_has_room_for_a_message_in_very_many_queues() {
    const QUEUES: usize = 700;
    for commands in [
        &["a get dying", "a discard 1"][..],
        &["a transactions", "a publish x k 2 persistent", "a commit"],
        &["a get dying", "a transactions", "a discard 1", "a commit"],
    ] {
        let mut host = fan(QUEUES);
        let (last, first) = commands.split_last().unwrap();
        for line in first {
            host.run(line);
        }
        let before = host.fx.records.len();
        host.run(last);
        is_one_group(&host, before);
    }
}

/// Messages by the hundred, with memory for a handful.
pub(super) fn small() -> TestHost {
    TestHost::with(Limits {
        queue_resident_bytes_max: 2_000,
        resident_bytes_max: 5_000,
        ..Limits::default()
    })
}

pub(super) fn fill(host: &mut TestHost, from: usize, to: usize, options: &str) {
    for number in from..to {
        host.act_on(&format!("a publish - q message-{number} {options}"));
    }
    host.settle_down();
}

/// What a queue still has, from the first to the last.
pub(super) fn drain_of(host: &mut TestHost, queue: &str) -> Vec<String> {
    host.fx.delivered.clear();
    host.fx.quiet = true;
    host.run(&format!("z consume {queue} z presettled"));
    let delivered = std::mem::take(&mut host.fx.delivered);
    delivered.into_iter().map(|(_, _, body, _)| body).collect()
}

fn drain(host: &mut TestHost) -> Vec<String> {
    drain_of(host, "q")
}

pub(super) fn expected(from: usize, to: usize) -> Vec<String> {
    (from..to).map(|number| format!("message-{number}")).collect()
}

#[test]
fn long_queues_leave_memory_and_come_back_in_order() {
    for options in ["", "persistent"] {
        let mut host = small();
        host.run("a queue q durable");
        fill(&mut host, 0, 5_000, options);
        assert!(host.engine.resident() <= 5_000, "{}", host.engine.resident());
        assert!(host.engine.entries_in_memory() < 1_100, "most of the index is in pages");
        assert_eq!(drain(&mut host), expected(0, 5_000));
        assert!(host.fx.references.is_empty(), "{:?}", host.fx.references);
        assert_eq!(host.engine.resident(), 0);
    }
}

#[test]
fn long_queues_survive_a_restart() {
    for with_snapshot in [false, true] {
        let mut host = small();
        host.run("a queue q durable");
        fill(&mut host, 0, 3_000, "persistent");
        fill(&mut host, 3_000, 3_100, "");
        host.run("b consume q c credit=100");
        host.run("b accept 50 multiple");
        if with_snapshot {
            host.run("snapshot");
        }
        host.run("b accept 100 multiple");
        fill(&mut host, 3_100, 5_000, "persistent");
        host.run("restart");
        let all = expected(100, 3_000).into_iter().chain(expected(3_100, 5_000));
        assert_eq!(drain(&mut host), all.collect::<Vec<_>>());
        assert!(host.fx.references.is_empty(), "{:?}", host.fx.references);
    }
}

#[test]
fn reading_ahead_keeps_to_the_limits() {
    let mut host = small();
    for queue in ["q", "r", "s", "t"] {
        host.run(&format!("a queue {queue} durable"));
        for number in 0..200 {
            host.act_on(&format!("a publish - {queue} message-{number} persistent"));
        }
    }
    host.run("restart");
    // What messages have beyond their bodies is not known before they are read.
    assert!((1..=8_000).contains(&host.engine.resident()), "{}", host.engine.resident());
    for (consumer, queue) in [("b", "t"), ("c", "s"), ("d", "r")] {
        host.fx.delivered.clear();
        host.fx.quiet = true;
        host.run(&format!("{consumer} consume {queue} c presettled"));
        assert_eq!(host.fx.delivered.len(), 200, "{queue}");
        assert!(host.engine.resident() <= 8_000, "{}", host.engine.resident());
    }
    assert_eq!(drain(&mut host), expected(0, 200));
}

#[test]
fn a_message_that_was_about_to_die_does_not_come_back_beyond_its_limit() {
    let mut host = small();
    let_a_letter_die(&mut host);
    host.run("snapshot");
    host.run("restart");
    host.run("loads");
    let lines = host.run("b get q");
    assert_eq!(lines, ["b deliver  #1 letter redelivered", "b got, 0 left"]);
    host.run("b requeue 1");
    assert_eq!(host.run("a passive dead"), ["a queue dead 1 0"]);
}

#[test]
fn pages_of_transient_messages_leave_nothing_behind() {
    let mut host = small();
    host.run("a queue q durable");
    fill(&mut host, 0, 3_000, "");
    host.run("snapshot");
    host.run("restart");
    assert!(host.fx.references.is_empty(), "{:?}", host.fx.references);
}

#[test]
fn long_queues_are_purged_and_deleted_without_being_read() {
    for command in ["a purge q", "a delete q"] {
        let mut host = small();
        host.run("a queue q durable");
        host.run("loads hold");
        fill(&mut host, 0, 2_500, "persistent");
        fill(&mut host, 2_500, 5_000, "");
        assert_eq!(host.run(command), ["a messages 5000"]);
        assert!(host.fx.references.is_empty(), "{:?}", host.fx.references);
    }
}

#[test]
fn the_head_of_a_long_queue_is_dropped_dead_lettered_and_expired() {
    let mut host = small();
    host.run("a queue dead durable");
    host.run("a queue q durable length=2500 ttl=1000 dlx=- dlk=dead");
    fill(&mut host, 0, 3_000, "persistent");
    assert_eq!(host.run("a passive dead"), ["a queue dead 500 0"]);
    host.run("time 1000");
    assert_eq!(host.run("a passive q"), ["a queue q 0 0"]);
    assert_eq!(host.run("a passive dead"), ["a queue dead 3000 0"]);
    host.run("restart");
    assert_eq!(host.run("a passive dead"), ["a queue dead 3000 0"]);
}

#[test]
fn a_spooled_message_returns_to_its_place() {
    let mut host = small();
    host.run("a queue q");
    fill(&mut host, 0, 2_000, "");
    host.run("b consume q c credit=500");
    host.run("b close");
    assert_eq!(drain(&mut host), expected(0, 2_000));
}

#[test]
fn segments_are_given_back() {
    for with_snapshot in [false, true] {
        let mut host = small();
        host.run("a exchange x direct durable delaying");
        host.run("a queue q durable");
        host.run("a bind x q later");
        host.run("a publish x later message-4000 persistent delay=1000");
        host.run("b consume q c credit=10");
        fill(&mut host, 0, 4_000, "persistent");
        if with_snapshot {
            host.run("snapshot");
        }
        for segment in 0..300 {
            host.run(&format!("relocate {segment}"));
            // What was in a page that was being read is in memory now.
            host.run(&format!("relocate {segment}"));
            let left = host.fx.references.get(&segment);
            assert_eq!(left, None, "in segment {segment}: {:?}", host.engine.uses_of(segment));
        }
        host.run("restart");
        host.run("time 1000");
        assert_eq!(drain(&mut host), expected(0, 4_001));
        assert!(host.fx.references.is_empty(), "{:?}", host.fx.references);
    }
}

#[test]
fn a_queue_that_had_dropped_messages_keeps_its_limit() {
    // Where the record of the first drop is lost, the message is dropped again.
    for (lost, dropped) in [(0, ""), (1, " dropped=1")] {
        check(&format!(
            "a queue q durable length=1
             > a queue q 0 0
             a publish - q one persistent
             a publish - q two persistent
             a passive q
             > a queue q 1 0
             loads hold
             restart lose={lost}
             a passive q
             > a queue q 1 0
             loads
             load
             a get q presettled
             > a deliver  #1 two redelivered{dropped}
             > a got, 0 left"
        ));
    }
}
