//! What was purged or deleted is gone at once, and what it held is given back a part at a time.

use super::World;
use super::recovery::fill;
use crate::interface::limits::Limits;

const KINDS: [&str; 2] = ["persistent", ""];
const WAYS: [&str; 2] = ["a purge q", "a delete q"];

/// A queue `q` with 900 messages, in memory and on the disk, three of them out.
fn filled(kind: &str, given_back_at_once: usize) -> World {
    let mut world = World::with(Limits {
        queue_resident_bytes_max: 20_000,
        page_entries: 100,
        given_back_at_once,
        snapshot_at_once: 30,
        ..Limits::default()
    });
    world.fx.quiet = true;
    world.run("a queue q durable");
    world.run("a queue other durable");
    world.run("a publish - other 1 persistent");
    fill(&mut world, 0, 900, kind);
    world.run("b subscribe q c credit=3");
    world
}

/// Gives the next part back, and nothing else happens.
fn turn(world: &mut World) {
    world.engine.dispatch(world.now, &mut world.fx);
    world.engine.check_invariants(&world.fx.references);
}

/// Nothing of it is left, whatever is restarted.
fn check_gone(mut world: World, what: &str) {
    world.fx.quiet = false;
    world.settle_down();
    assert_eq!(world.engine.resident_bytes(), resident(&world), "{what}");
    for again in ["a passive other", "restart"] {
        world.run(again);
        let is_there = world.run("a passive q").iter().any(|line| line.contains("queue q "));
        let deleted = what.contains("delete");
        assert_eq!(is_there, !deleted, "{what}");
    }
    assert_eq!(world.run("a purge other"), ["a messages 1"], "{what}");
    world.run("a purge q");
    assert!(world.fx.references.is_empty(), "{what}: {:?}", world.fx.references);
}

/// What queues and deliveries hold in memory.
fn resident(world: &World) -> u64 {
    let queues = world.engine.list_queues().map(|queue| queue.resident_bytes);
    let out = world.engine.unsettled().flat_map(|it| it.iter()).map(|(_, it)| &it.entry);
    queues.sum::<u64>() + out.map(|entry| entry.resident_cost()).sum::<u64>()
}

#[test]
fn no_turn_gives_more_back_than_the_limit_says() {
    for (kind, way) in KINDS.iter().flat_map(|kind| WAYS.map(|way| (*kind, way))) {
        let mut world = filled(kind, 50);
        world.fx.quiet = false;
        world.act_on(way);
        assert_eq!(world.fx.lines.last().unwrap(), "a messages 897", "{way}");
        let ready = |world: &World| world.engine.list_queues().map(|it| it.ready).sum::<u64>();
        assert_eq!(ready(&world), 1, "it is gone at once");
        let mut turns = 0;
        while world.engine.has_work() {
            let before = world.engine.departures.entries().count();
            turn(&mut world);
            assert!(before - world.engine.departures.entries().count() <= 50, "{way}");
            turns += 1;
        }
        assert!(turns >= 4, "{way}: {turns} turns");
        check_gone(world, way);
    }
}

/// Whoever fills and purges, again and again, has no more in memory than what one purge leaves.
#[test]
fn what_is_purged_again_and_again_does_not_pile_up() {
    for (kind, queues) in [("", 1), ("persistent", 1), ("", 3)] {
        let mut world = World::with(Limits { given_back_at_once: 1, ..Limits::default() });
        world.fx.quiet = true;
        for queue in 0..queues {
            world.run(&format!("a queue q{queue} durable"));
            world.run(&format!("a bind amq.fanout q{queue} k"));
        }
        for round in 0..50 {
            for _ in 0..100 {
                world.act_on(&format!("a publish amq.fanout k 1 {kind}"));
            }
            (0..queues).for_each(|queue| world.act_on(&format!("a purge q{queue}")));
            turn(&mut world);
            let waiting = world.engine.departures.entries().count();
            assert!(waiting <= 100 * queues, "{kind} {queues}: {waiting} after round {round}");
        }
        world.settle_down();
        assert_eq!(world.engine.departures.entries().count(), 0);
    }
}

#[test]
fn a_restart_finds_none_of_it_however_much_was_given_back() {
    for (kind, way) in KINDS.iter().flat_map(|kind| WAYS.map(|way| (*kind, way))) {
        for turns in 0..8 {
            for last in ["restart", "snapshot", "restart clean"] {
                let mut world = filled(kind, 60);
                world.act_on(way);
                (0..turns).for_each(|_| turn(&mut world));
                if last == "snapshot" {
                    world.take_snapshot();
                }
                world.run(last);
                check_gone(world, &format!("{way} {kind} {turns} {last}"));
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
                let mut world = filled(kind, 70);
                if parts_before > 0 {
                    world.begin_snapshot();
                }
                (0..parts_before).for_each(|_| world.take_part());
                world.act_on(way);
                (0..turns_before).for_each(|_| turn(&mut world));
                if parts_before == 0 {
                    world.begin_snapshot();
                }
                while world.engine.is_taking_snapshot() {
                    (0..turns_between).for_each(|_| turn(&mut world));
                    world.take_part();
                }
                check_gone(world, &format!("{way} {kind} {parts_before} {turns_before}"));
            }
        }
    }
}

/// Numbers of messages begin anew in each queue: those of several are not mixed up.
#[test]
fn what_several_queues_had_may_leave_together() {
    for way in ["purge", "delete"] {
        let mut world = filled("persistent", 10);
        for queue in ["r", "s"] {
            world.run(&format!("a queue {queue} durable priorities=2"));
            for priority in [0, 1, 2, 1] {
                world.act_on(&format!("a publish - {queue} 1 persistent priority={priority}"));
            }
        }
        for queue in ["q", "r", "s", "r"] {
            world.act_on(&format!("a {way} {queue}"));
        }
        world.begin_snapshot();
        while world.engine.is_taking_snapshot() {
            world.take_part();
        }
        for again in ["restart", "a purge r", "a purge s"] {
            world.run(again);
        }
        check_gone(world, way);
    }
}

#[test]
fn segments_are_given_back_meanwhile() {
    for way in WAYS {
        let mut world = filled("persistent", 60);
        world.act_on(way);
        for segment in 0..70 {
            world.engine.relocate(segment, &mut world.fx);
            turn(&mut world);
            while !world.fx.loads.is_empty() {
                world.act_on("b accept 1");
                let load = world.fx.loads.remove(0);
                let answer = world.fx.answer(&load);
                world.engine.loaded(world.now, load.id, answer, &mut world.fx);
                turn(&mut world);
            }
        }
        check_gone(world, way);
    }
}

#[test]
fn a_transaction_of_several_pieces_ends_as_any_does() {
    for (line, ready) in
        [("a rollback", 0), ("a commit", 5_000), ("a close", 0), ("a disconnect", 0)]
    {
        let mut world = World::new();
        for line in ["b queue q durable", "a transactions"] {
            world.run(line);
        }
        for number in 0..5_000 {
            let priority = number % 3;
            world.act_on(&format!("a publish - q {number} persistent priority={priority}"));
        }
        world.act_on(line);
        world.run("flush");
        assert_eq!(world.run("b passive q"), [format!("b queue q {ready} 0")], "{line}");
        world.run("b subscribe q c presettled");
        assert_eq!(world.fx.delivered.len(), ready, "{line}");
        for (number, (_, _, body, _)) in world.fx.delivered.iter().enumerate() {
            assert_eq!(body, &number.to_string(), "{line}");
        }
    }
}
