//! What was purged or deleted is gone at once, and what it held is given back a part at a time.

use super::TestHost;
use super::recovery::fill;
use crate::interface::limits::Limits;

const KINDS: [&str; 2] = ["persistent", ""];
const WAYS: [&str; 2] = ["a purge q", "a delete q"];

/// A queue `q` with 900 messages, in memory and on the disk, three of them out.
fn filled(kind: &str, given_back_at_once: usize) -> TestHost {
    let mut host = TestHost::with(Limits {
        queue_resident_bytes_max: 20_000,
        page_entries: 100,
        given_back_at_once,
        snapshot_at_once: 30,
        ..Limits::default()
    });
    host.fx.quiet = true;
    host.run("a queue q durable");
    host.run("a queue other durable");
    host.run("a publish - other 1 persistent");
    fill(&mut host, 0, 900, kind);
    host.run("b consume q c credit=3");
    host
}

/// Gives the next part back, and nothing else happens.
fn turn(host: &mut TestHost) {
    host.engine.dispatch(host.now, &mut host.fx);
    host.engine.check_invariants(&host.fx.references);
}

/// Nothing of it is left, whatever is restarted.
fn check_gone(mut host: TestHost, what: &str) {
    host.fx.quiet = false;
    host.settle_down();
    assert_eq!(host.engine.resident_bytes(), resident(&host), "{what}");
    for again in ["a passive other", "restart"] {
        host.run(again);
        let is_there = host.run("a passive q").iter().any(|line| line.contains("queue q "));
        let deleted = what.contains("delete");
        assert_eq!(is_there, !deleted, "{what}");
    }
    assert_eq!(host.run("a purge other"), ["a messages 1"], "{what}");
    host.run("a purge q");
    assert!(host.fx.references.is_empty(), "{what}: {:?}", host.fx.references);
}

/// What queues and deliveries hold in memory.
fn resident(host: &TestHost) -> u64 {
    let queues = host.engine.list_queues().map(|queue| queue.resident_bytes);
    let out = host.engine.unsettled().flat_map(|it| it.iter()).map(|(_, it)| &it.entry);
    queues.sum::<u64>() + out.map(|entry| entry.resident_cost()).sum::<u64>()
}

#[test]
fn no_turn_gives_more_back_than_the_limit_says() {
    for (kind, way) in KINDS.iter().flat_map(|kind| WAYS.map(|way| (*kind, way))) {
        let mut host = filled(kind, 50);
        host.fx.quiet = false;
        host.act_on(way);
        assert_eq!(host.fx.lines.last().unwrap(), "a messages 897", "{way}");
        let ready = |host: &TestHost| host.engine.list_queues().map(|it| it.ready).sum::<u64>();
        assert_eq!(ready(&host), 1, "it is gone at once");
        let mut turns = 0;
        while host.engine.has_work() {
            let before = host.engine.agenda.departures.entries().count();
            turn(&mut host);
            assert!(before - host.engine.agenda.departures.entries().count() <= 50, "{way}");
            turns += 1;
        }
        assert!(turns >= 4, "{way}: {turns} turns");
        check_gone(host, way);
    }
}

/// Filling and purging again and again leaves no more in memory than one purge does.
#[test]
fn what_is_purged_again_and_again_does_not_pile_up() {
    for (kind, queues) in [("", 1), ("persistent", 1), ("", 3)] {
        let mut host = TestHost::with(Limits { given_back_at_once: 1, ..Limits::default() });
        host.fx.quiet = true;
        for queue in 0..queues {
            host.run(&format!("a queue q{queue} durable"));
            host.run(&format!("a bind amq.fanout q{queue} k"));
        }
        for round in 0..50 {
            for _ in 0..100 {
                host.act_on(&format!("a publish amq.fanout k 1 {kind}"));
            }
            (0..queues).for_each(|queue| host.act_on(&format!("a purge q{queue}")));
            turn(&mut host);
            let waiting = host.engine.agenda.departures.entries().count();
            assert!(waiting <= 100 * queues, "{kind} {queues}: {waiting} after round {round}");
        }
        host.settle_down();
        assert_eq!(host.engine.agenda.departures.entries().count(), 0);
    }
}

#[test]
fn a_restart_finds_none_of_it_however_much_was_given_back() {
    for (kind, way) in KINDS.iter().flat_map(|kind| WAYS.map(|way| (*kind, way))) {
        for turns in 0..8 {
            for last in ["restart", "snapshot", "restart clean"] {
                let mut host = filled(kind, 60);
                host.act_on(way);
                (0..turns).for_each(|_| turn(&mut host));
                if last == "snapshot" {
                    host.take_snapshot();
                }
                host.run(last);
                check_gone(host, &format!("{way} {kind} {turns} {last}"));
            }
        }
    }
}

/// A snapshot that began before has it, one that began later has not.
#[test]
fn a_snapshot_may_be_taken_meanwhile() {
    for (kind, way) in KINDS.iter().flat_map(|kind| WAYS.map(|way| (*kind, way))) {
        for (parts_before, turns_before) in [(1, 0), (4, 0), (15, 0), (0, 0), (0, 1), (0, 7)] {
            for turns_between in 0..3 {
                let mut host = filled(kind, 70);
                if parts_before > 0 {
                    host.begin_snapshot();
                }
                (0..parts_before).for_each(|_| host.take_part());
                host.act_on(way);
                (0..turns_before).for_each(|_| turn(&mut host));
                if parts_before == 0 {
                    host.begin_snapshot();
                }
                while host.engine.is_taking_snapshot() {
                    (0..turns_between).for_each(|_| turn(&mut host));
                    host.take_part();
                }
                check_gone(host, &format!("{way} {kind} {parts_before} {turns_before}"));
            }
        }
    }
}

/// Numbers of messages begin anew in each queue: those of several are not mixed up.
#[test]
fn what_several_queues_had_may_leave_together() {
    for way in ["purge", "delete"] {
        let mut host = filled("persistent", 10);
        for queue in ["r", "s"] {
            host.run(&format!("a queue {queue} durable priorities=2"));
            for priority in [0, 1, 2, 1] {
                host.act_on(&format!("a publish - {queue} 1 persistent priority={priority}"));
            }
        }
        for queue in ["q", "r", "s", "r"] {
            host.act_on(&format!("a {way} {queue}"));
        }
        host.begin_snapshot();
        while host.engine.is_taking_snapshot() {
            host.take_part();
        }
        for again in ["restart", "a purge r", "a purge s"] {
            host.run(again);
        }
        check_gone(host, way);
    }
}

#[test]
fn segments_are_given_back_meanwhile() {
    for way in WAYS {
        let mut host = filled("persistent", 60);
        host.act_on(way);
        for segment in 0..70 {
            host.engine.compact_segment(segment, &mut host.fx);
            turn(&mut host);
            while !host.fx.loads.is_empty() {
                host.act_on("b accept 1");
                let load = host.fx.loads.remove(0);
                let answer = host.fx.answer(&load);
                host.engine.finish_load(host.now, load.id, answer, &mut host.fx);
                turn(&mut host);
            }
        }
        check_gone(host, way);
    }
}

#[test]
fn a_transaction_of_several_pieces_ends_as_any_does() {
    for (line, ready) in
        [("a rollback", 0), ("a commit", 5_000), ("a close", 0), ("a disconnect", 0)]
    {
        let mut host = TestHost::new();
        for line in ["b queue q durable", "a transactions"] {
            host.run(line);
        }
        for number in 0..5_000 {
            let priority = number % 3;
            host.act_on(&format!("a publish - q {number} persistent priority={priority}"));
        }
        host.act_on(line);
        host.run("flush");
        assert_eq!(host.run("b passive q"), [format!("b queue q {ready} 0")], "{line}");
        host.run("b consume q c presettled");
        assert_eq!(host.fx.delivered.len(), ready, "{line}");
        for (number, (_, _, body, _)) in host.fx.delivered.iter().enumerate() {
            assert_eq!(body, &number.to_string(), "{line}");
        }
    }
}
