//! Messages that were read back are taken in a part at a time, whatever becomes of their queue meanwhile.

use super::World;
use super::recovery::fill;
use crate::limits::Limits;

/// What is taken in at once.
const AT_ONCE: usize = 8;

/// A queue `q` on the disk, somebody who waits for what is in it, and others.
fn waiting() -> World {
    let mut world = World::with(Limits {
        queue_resident_bytes_max: 20_000,
        loaded_at_once: AT_ONCE,
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

/// What came in each turn, until there is nothing more to do.
fn turns(world: &mut World) -> Vec<usize> {
    let mut turns = Vec::new();
    while world.engine.has_work() {
        let before = world.fx.delivered.len();
        world.engine.dispatch(world.now, &mut world.fx);
        world.engine.check_invariants(&world.fx.references);
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
    let mut world = waiting();
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
fn a_queue_that_is_held_to_a_rate_takes_in_a_quarter() {
    let mut world = waiting();
    world.run("a publish - others hello");
    world.run("b subscribe q c presettled");
    let count = answer(&mut world);
    let (had, mut grown) = (check_order(&world), vec![resident(&world)]);
    while world.engine.has_work() {
        world.engine.dispatch(world.now, &mut world.fx);
        grown.push(resident(&world));
    }
    assert_eq!((grown[0], check_order(&world)), (0, had), "it rests");
    let each = grown.last().unwrap() / count as u64;
    let most = grown.windows(2).map(|pair| (pair[1] - pair[0]) / each).max();
    assert_eq!(most, Some(AT_ONCE as u64 / 4), "{grown:?}");
}

#[test]
fn whatever_becomes_of_their_queue_nothing_is_lost_or_mixed_up() {
    let kept = |world: &World| 900 - check_order(world) as u64;
    let gone = |_: &World| 0;
    let another = |_: &World| 1;
    let cases: [(&[&str], &dyn Fn(&World) -> u64); 6] = [
        (&["a purge q"], &gone),
        (&["a delete q"], &gone),
        // The next queue has its place.
        (&["a delete q", "a queue r durable", "a publish - r m persistent"], &another),
        (&["b unsubscribe c"], &kept),
        (&["b disconnect"], &kept),
        (&["restart"], &kept),
    ];
    for (lines, left) in cases {
        for taken in 0..4 {
            let mut world = waiting();
            world.run("b subscribe q c presettled");
            answer(&mut world);
            for _ in 0..taken {
                world.engine.dispatch(world.now, &mut world.fx);
                world.engine.check_invariants(&world.fx.references);
            }
            lines.iter().for_each(|line| drop(world.run(line)));
            world.run("loads");
            let ready = world.engine.list_queues().map(|queue| queue.ready).sum::<u64>();
            assert_eq!(ready, left(&world), "{lines:?} {taken}");
        }
    }
}
