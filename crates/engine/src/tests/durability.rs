//! What is confirmed when, and what is kept, by the durability of queues.

use super::{TestHost, check};
use crate::interface::limits::Limits;

/// `flushed`: whether somebody waited for each record to be flushed.
fn waited(host: &TestHost) -> Vec<bool> {
    let records = host.fx.records.iter().zip(&host.fx.durable);
    records.filter(|(record, _)| record[1] == 1).map(|(_, durable)| *durable).collect()
}

#[test]
fn a_confirm_waits_for_what_was_chosen() {
    for (options, is_confirmed, records, left) in [
        ("durable", false, &[true][..], 1),
        ("durable durability=flushed", false, &[true], 1),
        ("durable durability=buffered", true, &[false], 1),
        ("durable durability=memory", true, &[], 0),
        ("durability=buffered", true, &[], 0),
    ] {
        let mut host = TestHost::new();
        host.run(&format!("a queue q {options}"));
        host.run("a confirms");
        let told = host.run("a publish - q 1 persistent");
        assert_eq!(told == ["a confirm 1"], is_confirmed, "{options}: {told:?}");
        assert_eq!(waited(&host), records, "{options}");
        assert_eq!(host.run("flush").is_empty(), is_confirmed, "{options}");
        host.run("restart");
        let there = host.run("a passive q");
        if options.starts_with("durable") {
            assert_eq!(there, [format!("a queue q {left} 0")], "{options}");
        }
    }
}

#[test]
fn the_strongest_of_several_queues_decides() {
    for (levels, is_confirmed, waits) in [
        (["memory", "flushed", "buffered"], false, &[true][..]),
        (["memory", "buffered", "memory"], true, &[false]),
        (["memory", "memory", "memory"], true, &[]),
    ] {
        let mut host = TestHost::new();
        for (number, level) in levels.iter().enumerate() {
            host.run(&format!("a queue q{number} durable durability={level}"));
            host.run(&format!("a bind amq.fanout q{number} k"));
        }
        host.run("a confirms");
        let told = host.run("a publish amq.fanout k 1 persistent");
        assert_eq!(told == ["a confirm 1"], is_confirmed, "{levels:?}");
        assert_eq!(waited(&host), waits, "{levels:?}");
        host.run("restart");
        for (number, level) in levels.iter().enumerate() {
            let left = u32::from(*level != "memory");
            let there = host.run(&format!("a passive q{number}"));
            assert_eq!(there, [format!("a queue q{number} {left} 0")], "{levels:?}");
        }
    }
}

#[test]
fn what_need_not_be_stored_is_taken_while_nothing_can_be() {
    check(
        "a queue f durable
         > a queue f 0 0
         a queue b durable durability=buffered
         > a queue b 0 0
         a queue m durable durability=memory
         > a queue m 0 0
         a confirms
         > a ok
         storage full
         a publish - f 1 persistent
         > a nack 1
         a publish - b 2 persistent
         > a nack 2
         a publish - m 3 persistent
         > a confirm 3",
    );
}

#[test]
fn what_is_to_survive_is_not_changed_while_nothing_can_be_written() {
    let mut host = TestHost::new();
    host.client("c");
    for line in ["queue q durable", "exchange x fanout durable", "bind x q k"] {
        host.run(&format!("c {line}"));
        host.run("flush");
    }
    assert_eq!(host.run("c queue p durable"), [""; 0]);
    let in_doubt = "c refused InDoubt: the disk is full: that is kept once there is room, and lost if \
                    the broker ends before";
    assert_eq!(host.run("storage exhausted"), [in_doubt]);
    let refused = "c refused StorageUnavailable: the disk is full: what is to survive a restart cannot \
                   be changed until there is room";
    let declared = ["queue r durable", "exchange e fanout durable", "bind amq.fanout q k"];
    let deleted = ["delete q", "delete-exchange x", "unbind x q k"];
    for line in declared.into_iter().chain(deleted) {
        for _ in 0..2 {
            assert_eq!(host.run(&format!("c {line}")), [refused], "{line}");
        }
    }
    // What is there, and what need not survive, is served.
    assert_eq!(host.run("c queue q durable"), ["c queue q 0 0"]);
    assert_eq!(host.run("c queue t"), ["c queue t 0 0"]);
    host.run("storage ready");
    assert_eq!(host.run("flush"), [""; 0], "what was in doubt is not answered again");
    for line in declared.into_iter().chain(deleted) {
        host.run(&format!("c {line}"));
        let answer = host.run("flush");
        assert!(!answer.concat().contains("refused"), "{line}: {answer:?}");
    }
}

#[test]
fn memory_spools_where_it_has_no_room_and_nothing_of_it_is_left() {
    let limits = Limits { resident_bytes_max: 0, ..Limits::default() };
    let mut host = TestHost::with(limits);
    host.run("a queue q durable durability=memory");
    for number in 0..3_000 {
        host.run(&format!("a publish - q {number} persistent"));
    }
    assert_eq!(host.engine.counters().spooled, 3_000);
    host.run("b consume q c credit=10");
    host.run("b accept 10 multiple");
    host.run("b disconnect");
    assert_eq!(host.run("a passive q"), ["a queue q 2990 0"]);
    for with_snapshot in [false, true] {
        if with_snapshot {
            host.run("snapshot");
        }
        host.run("restart");
        assert_eq!(host.run("a passive q"), ["a queue q 0 0"]);
        assert!(host.fx.references.is_empty(), "{:?}", host.fx.references);
        for number in 0..100 {
            host.run(&format!("a publish - q {number} persistent"));
        }
    }
}

#[test]
fn another_level_is_another_queue() {
    check(
        "a queue q durable durability=memory
         > a queue q 0 0
         a queue q durable durability=memory
         > a queue q 0 0
         a queue q durable
         > a refused PreconditionFailed: queue 'q' in vhost '/' differs in \
           durability: received none, current is 'memory'",
    );
}
