//! Messages that were read back are taken in a part at a time, whatever becomes of their queue meanwhile.

use super::World;
use super::recovery::{drain_of, fill};
use crate::interface::limits::Limits;
use crate::queue::page_in::PARTS_MAX;

/// What is taken in at once.
const AT_ONCE: usize = 8;

/// A queue `q` on the disk, somebody who waits for what is in it, and others.
fn waiting(loaded_at_once: usize) -> World {
    let mut world = World::with(Limits {
        queue_resident_bytes_max: 20_000,
        loaded_at_once,
        backlog_bytes_per_second: 1 << 20,
        ..Limits::default()
    });
    world.fx.quiet = true;
    world.run("o queue others");
    world.run("o subscribe others c presettled");
    world.run("a queue q durable");
    fill(&mut world, 0, 900, "persistent");
    world.run("loads hold");
    world
}

/// Puts as many into a queue `r`, and hands nothing on.
fn fill_other(world: &mut World) {
    for number in 0..900 {
        world.act_on(&format!("a publish - r other-{number} persistent"));
    }
}

/// Answers a load, and hands nothing on.
fn answer(world: &mut World) -> usize {
    let load = world.fx.loads.remove(0);
    let records = world.fx.answer(&load);
    world.engine.loaded(world.now, load.id, records, &mut world.fx);
    load.positions.len()
}

/// How many messages of `q` are in memory.
fn resident(world: &World) -> u64 {
    world.engine.list_queues().find(|queue| queue.name == "q").map_or(0, |it| it.resident_bytes)
}

fn turn(world: &mut World) {
    world.engine.dispatch(world.now, &mut world.fx);
    world.engine.check_invariants(&world.fx.references);
}

/// What came in each turn, until there is nothing more to do.
fn turns(world: &mut World) -> Vec<usize> {
    let mut turns = Vec::new();
    while world.engine.has_work() {
        let before = world.fx.delivered.len();
        turn(world);
        turns.push(world.fx.delivered.len() - before);
    }
    turns
}

/// The bodies that came for `q`, in order from the first on.
fn check_order(world: &World) -> usize {
    let bodies = world.fx.delivered.iter().filter_map(|it| it.2.strip_prefix("message-"));
    let numbers: Vec<usize> = bodies.map(|number| number.parse().unwrap()).collect();
    assert_eq!(numbers, (0..numbers.len()).collect::<Vec<_>>());
    numbers.len()
}

#[test]
fn no_turn_takes_in_more_than_the_limit_says() {
    let mut world = waiting(AT_ONCE);
    world.run("b subscribe q c presettled");
    let had = check_order(&world);
    let count = answer(&mut world);
    let turns = turns(&mut world);
    assert!(count > 5 * AT_ONCE && turns.len() >= count / AT_ONCE, "{count} in {turns:?}");
    assert!(turns.iter().all(|taken| *taken <= AT_ONCE), "{turns:?}");
    assert_eq!(check_order(&world), had + count);
    world.run("loads");
    assert_eq!(check_order(&world), 900);
}

#[test]
fn what_came_for_many_queues_is_taken_in_over_several_turns() {
    let (queues, each) = (20, 100);
    let mut world = World::with(Limits {
        queue_resident_bytes_max: 4_000,
        loaded_at_once: AT_ONCE,
        ..Limits::default()
    });
    world.fx.quiet = true;
    for queue in 0..queues {
        world.run(&format!("a queue q{queue} durable"));
        for number in 0..each {
            world.act_on(&format!("a publish - q{queue} {queue}-{number} persistent"));
        }
    }
    world.run("loads hold");
    for queue in 0..queues {
        world.act_on(&format!("b subscribe q{queue} c{queue} presettled"));
    }
    turns(&mut world);
    while !world.fx.loads.is_empty() {
        answer(&mut world);
    }
    let left = |world: &World| world.engine.arrivals.left().map(|(_, left)| left).sum::<usize>();
    let (mut before, mut turns) = (left(&world), Vec::new());
    while before > 0 {
        turn(&mut world);
        turns.push(before - left(&world));
        before = left(&world);
    }
    assert!(turns.len() > 5, "{turns:?}");
    assert!(turns.iter().all(|taken| *taken < (PARTS_MAX + 1) * AT_ONCE), "{turns:?}");
    world.run("loads");
    for queue in 0..queues {
        let prefix = format!("{queue}-");
        let bodies = world.fx.delivered.iter().filter_map(|it| it.2.strip_prefix(&prefix));
        assert!(bodies.eq((0..each).map(|number| number.to_string())), "q{queue}");
    }
}

#[test]
fn a_queue_that_is_held_to_a_rate_takes_in_what_it_may_hand_out() {
    let mut world = waiting(100);
    world.run("a publish - others hello");
    world.run("b subscribe q c presettled");
    let count = answer(&mut world);
    let (had, mut grown) = (check_order(&world), vec![resident(&world)]);
    let on_its_way = |world: &World| {
        let loading = world.engine.loads.first_key_value();
        loading.map_or(0, |(_, loading)| loading.bytes)
    };
    let in_all = on_its_way(&world);
    while world.engine.has_work() {
        turn(&mut world);
        grown.push(resident(&world));
        let left = on_its_way(&world);
        assert!(left == 0 || left + resident(&world) == in_all, "what has come counts once");
    }
    assert_eq!((grown[0], check_order(&world)), (0, had), "it rests");
    let each = grown.last().unwrap() / count as u64;
    let most = grown.windows(2).map(|pair| (pair[1] - pair[0]) / each).max().unwrap();
    // Two milliseconds of 1 MiB a second, where a message counts for 256 bytes and those of its record.
    assert!((4..=8).contains(&most), "{grown:?}");
}

#[test]
fn each_queue_has_its_part() {
    let mut world = waiting(AT_ONCE);
    world.run("a queue r durable");
    fill_other(&mut world);
    world.settle_down();
    world.run("b subscribe q c presettled");
    world.run("b subscribe r d presettled");
    world.fx.delivered.clear();
    let counts = [answer(&mut world), answer(&mut world)];
    turn(&mut world);
    let of = |name: &str| world.fx.delivered.iter().filter(|it| it.2.starts_with(name)).count();
    assert_eq!([of("message-"), of("other-")], [AT_ONCE, AT_ONCE], "{counts:?}");
}

/// A queue of which some messages came, others have arrived, of which so many parts were taken in.
fn taken(parts: usize) -> (World, usize) {
    let mut world = waiting(AT_ONCE);
    world.run("b subscribe q c presettled");
    answer(&mut world);
    (0..parts).for_each(|_| turn(&mut world));
    let came = check_order(&world);
    (world, came)
}

#[test]
fn whoever_leaves_meanwhile_the_rest_is_there() {
    for line in ["b unsubscribe c", "b disconnect", "restart"] {
        for parts in 0..4 {
            let (mut world, came) = taken(parts);
            if line == "restart" {
                world.run(line);
            } else {
                // Within a turn: nothing more is taken in before.
                world.act_on(line);
            }
            world.run("loads");
            let expected: Vec<_> = (came..900).map(|number| format!("message-{number}")).collect();
            assert_eq!(drain_of(&mut world, "q"), expected, "{line} {parts}");
        }
    }
}

#[test]
fn what_comes_after_a_purge_is_all_there_is() {
    for parts in 0..4 {
        let (mut world, _) = taken(parts);
        for line in ["b unsubscribe c", "a purge q", "a publish - q new persistent"] {
            world.act_on(line);
        }
        world.run("loads");
        assert_eq!(drain_of(&mut world, "q"), ["new"], "{parts}");
    }
}

/// It has the same numbers of messages, and its own messages on the disk.
#[test]
fn the_next_queue_in_its_place_has_none_of_it() {
    for parts in 0..4 {
        let (mut world, _) = taken(parts);
        for line in ["b unsubscribe c", "a delete q", "a queue r durable"] {
            world.act_on(line);
        }
        fill_other(&mut world);
        world.run("loads");
        let expected: Vec<_> = (0..900).map(|number| format!("other-{number}")).collect();
        assert_eq!(drain_of(&mut world, "r"), expected, "{parts}");
    }
}
