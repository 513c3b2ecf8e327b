//! What users may use: kept through restarts, and held to where the engine counts.

use super::{World, check_in};
use crate::interface::limits::Limits;
use crate::*;

fn quota_of(world: &World, user: &str) -> Quota {
    let found = world.engine.list_users().find(|found| found.name == user);
    found.expect("the user is there").quota
}

#[test]
fn quotas_survive_as_long_as_their_users() {
    let mut world = World::new();
    world.run("a user ann hash");
    world.run("a quota ann laggard=drop-oldest connections=2 bytes-per-second=1000");
    let expected = Quota::default()
        .with_laggard(Laggard::DropOldest)
        .with(Bound::Connections, 2)
        .with(Bound::Bytes, 1_000);
    assert_eq!(quota_of(&world, "ann"), expected);
    world.run("restart");
    assert_eq!(quota_of(&world, "ann"), expected, "from records");
    world.run("restart clean");
    assert_eq!(quota_of(&world, "ann"), expected, "from a snapshot");
    world.run("a user ann other-hash");
    assert_eq!(quota_of(&world, "ann"), expected, "a new password changes nothing");
    world.run("a quota ann");
    assert_eq!(quota_of(&world, "ann"), Quota::default());
    world.run("a quota ann connections=1");
    world.run("a delete-user ann");
    world.run("a user ann hash");
    assert_eq!(quota_of(&world, "ann"), Quota::default());
    assert_eq!(world.run("a quota bob connections=1"), ["a refused NotFound: no user 'bob'"]);
}

#[test]
fn a_user_has_no_more_connections_than_it_may() {
    let mut world = World::new();
    world.run("a user ann hash");
    world.run("a permit ann .* .* .*");
    world.run("a quota ann connections=2");
    let connection = |number: u32| ConnectionId(100 + number);
    let connect = |world: &mut World, number| {
        world.engine.connect(connection(number), "ann", "/").map_err(|refusal| refusal.text)
    };
    let refused = "connection refused for user 'ann': user connection limit (2) is reached";
    connect(&mut world, 0).unwrap();
    connect(&mut world, 1).unwrap();
    assert_eq!(connect(&mut world, 2), Err(refused.to_owned()));
    world.engine.disconnect(world.now, connection(0), &mut world.fx);
    connect(&mut world, 2).unwrap();
    assert_eq!(connect(&mut world, 3), Err(refused.to_owned()));
    // One that was refused has not been counted.
    world.run("a quota ann connections=3");
    connect(&mut world, 3).unwrap();
    assert_eq!(world.engine.counters().not_admitted, 2);
}

/// A world in which those lines were run.
fn world_after(mut world: World, lines: &str) -> World {
    for line in lines.lines() {
        world.run(line);
    }
    world
}

#[test]
fn a_connection_listens_to_no_more_subjects_than_its_user_may() {
    let setup = "a user ann hash
        a permit ann .* .* .*
        a quota ann connection-listeners=1
        login b ann
        login c ann";
    check_in(
        world_after(World::new(), setup),
        "b listen s 1
         b listen s 2
         > b refused LimitExceeded: more than 1 subjects listened to in one session
         c listen s 1",
    );
}

/// Clients `b` and `c` are ann's, `d` is bob's; `b` listens to two subjects and `c` to one, which are all
/// that ann may.
const THREE: &str = "a user ann hash
    a permit ann .* .* .*
    a user bob hash
    a permit bob .* .* .*
    a quota ann listeners=3
    login b ann
    login c ann
    login d bob
    b listen s1 1
    b listen s2 2
    c listen s3 3";

/// Lines after [`THREE`], and how many further subjects ann's clients may listen to then.
#[track_caller]
fn check_left(lines: &str, left: usize) {
    let mut world = world_after(world_after(World::new(), THREE), lines);
    world.run("login e ann");
    for at in 0..5 {
        let answer = world.run(&format!("e listen more m{at}")).concat();
        let is_refused = answer.starts_with("e refused LimitExceeded: ");
        assert_eq!((is_refused, answer.is_empty()), (at >= left, at < left), "{lines}: {answer}");
    }
}

#[test]
fn all_connections_of_a_user_listen_to_no_more_subjects_than_it_may() {
    for (lines, left) in [
        ("", 0),
        // One that is refused, or listens already, counts for nothing.
        ("c listen s5 5\nc listen s3 3\nd listen s6 6", 0),
        ("b unlisten 1", 1),
        ("b unlisten 1\nb unlisten 1\nb unlisten 9", 1),
        ("b unlisten 1 after=2\na emit s1 x", 0),
        ("b unlisten 1 after=2\na emits s1 x y z", 1),
        ("c disconnect", 1),
        ("b close", 2),
        ("b disconnect\nc disconnect", 3),
        ("b unlisten 1\nb disconnect\nc disconnect", 3),
        // In the place of one that has gone.
        ("b disconnect\nlogin b ann\nb listen s1 1", 1),
        ("b disconnect\nlogin b bob\nb listen s1 1\nb disconnect", 2),
        // Changed quotas hold at once, and end nothing.
        ("a quota ann listeners=4", 1),
        ("a quota ann listeners=1", 0),
        ("a quota ann listeners=1\nb disconnect", 0),
        ("a quota ann listeners=0\nb disconnect\nc disconnect", 0),
        ("a quota ann", 5),
        ("a quota ann\nc listen s4 4\na quota ann listeners=5", 1),
        ("a quota ann connection-listeners=2", 2),
        // Rights end some, or all.
        ("a narrow-listening ann > s1", 1),
        ("a narrow-listening ann > s3\na narrow-listening ann - -", 1),
        ("a forbid ann\na permit ann .* .* .*", 3),
        ("a delete-user ann\na user ann hash\na permit ann .* .* .*\na quota ann listeners=2", 2),
    ] {
        check_left(lines, left);
    }
}

#[test]
fn what_everybody_may_listen_to_is_what_a_user_may_whose_quota_says_nothing() {
    let limits = Limits { user_listeners_max: 1, ..Limits::default() };
    let setup = "a user ann hash
        a permit ann .* .* .*
        login b ann";
    check_in(
        world_after(World::with(limits), setup),
        "b listen s 1
         b listen s 2
         > b refused LimitExceeded: user 'ann' listens to 1 subjects, and may to no more
         a quota ann listeners=2
         > a ok
         b listen s 2
         // The broker's own are nobody's.
         a listen s 1
         a listen s 2",
    );
}
