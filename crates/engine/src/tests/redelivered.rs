//! What may have been delivered before a crash stays marked so, whatever orderly ends follow it.

use super::delays::{delay, drain, forgetful};
use super::recovery::{expected, fill, small};
use super::{World, check_in};

#[test]
fn of_a_long_queue() {
    let mut world = small();
    world.run("a queue q durable");
    fill(&mut world, 0, 3_000, "persistent");
    world.run("restart");
    fill(&mut world, 3_000, 3_500, "persistent");
    world.run("restart clean");
    world.run("restart clean");
    fill(&mut world, 3_500, 4_000, "persistent");
    world.fx.delivered.clear();
    world.fx.quiet = true;
    world.run("z subscribe q z presettled");
    let marked = world.fx.delivered.iter().map(|it| (it.2.clone(), it.3));
    let expected = expected(0, 4_000).into_iter().enumerate();
    assert!(marked.eq(expected.map(|(number, body)| (body, number < 3_000))));
}

#[test]
fn of_what_becomes_a_dead_letter_later() {
    let mut world = World::new();
    world.run("a queue dead durable");
    world.run("a queue q durable dlx=- dlk=dead ttl=100");
    world.run("a publish - q early persistent");
    world.run("restart");
    world.run("restart clean");
    world.run("a publish - q late persistent");
    world.run("time 100");
    check_in(
        world,
        "b subscribe dead c presettled
         > b subscribed c
         > b deliver c #1 early redelivered died=Expired:q:1
         > b deliver c #2 late died=Expired:q:1",
    );
}

#[test]
fn of_delayed_ones() {
    let mut world = forgetful();
    delay(&mut world, 0..20, 8, "persistent");
    world.run("loads hold");
    world.run("time 100");
    // Whether they had been delivered before the crash is known no more, nor is it later.
    world.run("restart");
    for late in 20..25 {
        world.run(&format!("a publish x k {late} persistent delay=1"));
    }
    world.run("restart clean");
    world.run("restart clean");
    world.run("time 1");
    world.run("loads");
    assert_eq!(drain(&mut world), (0..25).collect::<Vec<_>>());
    let redelivered: Vec<_> = world.fx.delivered.iter().map(|it| it.3).collect();
    assert_eq!(redelivered, [[true; 20].as_slice(), &[false; 5]].concat());
    assert!(world.fx.references.is_empty(), "{:?}", world.fx.references);
}

#[test]
fn of_what_a_full_queue_refused() {
    let mut world = forgetful();
    world.run("a queue dead durable");
    world.run("a queue full durable length=1 overflow=reject-dead-letter dlx=- dlk=dead");
    world.run("a publish - full old persistent");
    world.run("a bind x full k");
    delay(&mut world, 0..1, 8, "persistent");
    world.run("loads hold");
    world.run("time 100");
    world.run("restart");
    world.run("restart clean");
    world.run("loads");
    check_in(
        world,
        "b subscribe dead c presettled
         > b subscribed c
         > b deliver c #1 00000000 redelivered died=MaxLength:full:1",
    );
}
