//! What users may use: kept through restarts, and held to where the engine counts.

use super::World;
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

#[test]
fn a_connection_listens_to_no_more_subjects_than_its_user_may() {
    let mut world = World::new();
    world.run("a user ann hash");
    world.run("a permit ann .* .* .*");
    world.run("a quota ann listeners=1");
    let connection = ConnectionId(100);
    world.engine.connect(connection, "ann", "/").unwrap();
    let session = SessionId { connection, number: 0 };
    world.engine.open(session);
    let mut listen = |name| {
        let listen = Listen { subject: "a", group: None, name, laggard: None };
        world.engine.listen(session, listen, &mut world.fx).map_err(|refusal| refusal.kind)
    };
    assert_eq!(listen("1"), Ok(()));
    assert_eq!(listen("2"), Err(RefusalKind::LimitExceeded));
}
