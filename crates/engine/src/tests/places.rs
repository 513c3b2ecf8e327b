//! Places that a client has once over all of its connections: taken, taken over, left.

use super::TestHost;

/// Runs a scenario of three connections: `a` and `b` are user ann's, `c` is bob's.
fn check(scenario: &str) {
    let mut host = TestHost::new();
    for user in ["ann", "bob"] {
        host.run(&format!("d user {user} hash"));
        host.run(&format!("d permit {user} .* .* .*"));
    }
    for (connection, user) in [("a", "ann"), ("b", "ann"), ("c", "bob")] {
        host.login(connection, user);
    }
    super::check_in(host, scenario);
}

#[test]
fn a_consumer_gives_way_to_one_of_its_client_elsewhere() {
    check(
        "a queue q
         > a queue q 0 0
         name a me
         name b me
         a take p 7
         > a ok
         a consume q 7 granted on-loss=failed
         > a consuming 7
         a publish - q 1
         a grant 7 5
         > a deliver 7 #1 1
         b take p 3
         > b ok
         > a cancelled 7 taken over
         b consume q 3 granted
         > b consuming 3
         b grant 3 5
         > b deliver 3 #1 1 redelivered count=1
         b cancel 3
         > b ok",
    );
}

#[test]
fn other_users_clients_and_places_are_left_alone() {
    check(
        "name a me
         name b me
         name c me
         a take p 7
         > a ok
         c take p 7
         > c ok
         b take other 7
         > b ok
         // One connection may have a place twice.
         a2 take p 7
         > a2 ok
         name b someone-else
         b take p 8
         > b ok
         name b me
         b take p 9
         > b ok
         > a cancelled 7 taken over
         > a2 cancelled 7 taken over",
    );
}

#[test]
fn a_place_is_left_with_its_holder() {
    check(
        "name a me
         name b me
         a take p 7
         > a ok
         a let-go 7
         > a ok
         b take p 1
         > b ok
         b close
         a take p 7
         > a ok
         a disconnect
         b take p 1
         > b ok",
    );
}

#[test]
fn a_subscription_is_free_for_the_client_that_took_its_place() {
    check(
        "name a me
         name b me
         a take p 7
         > a ok
         a open s amq.topic x owner=me durable
         flush
         > a queue amq.durable-me/s 0 0
         a consume amq.durable-me/s 7
         > a consuming 7
         b take p 1
         > b ok
         > a cancelled 7 taken over
         b open s amq.topic x owner=me durable
         > b queue amq.durable-me/s 0 0
         b consume amq.durable-me/s 1
         > b consuming 1",
    );
}

#[test]
fn who_has_lost_a_place_gets_nothing_more_by_it() {
    const LOST: &str = "refused TakenOver: the place of '7' was taken by another connection";
    // What two connections ask for at one moment, in every order in which home may take it: `b` is the last
    // to take the place.
    for (before, after) in [
        ("", "a consume q 7\n> a {LOST}"),
        ("", "a hold queue q 7\n> a {LOST}"),
        ("a hold queue q 7\n> a ok", ""),
        ("a consume q 7\n> a consuming 7", ""),
        ("", "a open s amq.topic x owner=me durable for=7\n> a {LOST}"),
        (
            "a open s amq.topic x owner=me durable for=7\nflush\n> a queue amq.durable-me/s 0 0",
            "a consume amq.durable-me/s 7\n> a {LOST}",
        ),
        ("", "a let-go 7\n> a ok\na consume q 7\n> a consuming 7"),
    ] {
        let (before, after) = (before.replace("{LOST}", LOST), after.replace("{LOST}", LOST));
        check(&format!(
            "a queue q
             > a queue q 0 0
             name a me
             name b me
             a take p 7
             > a ok
             {before}
             b take p 3
             > b ok
             > a cancelled 7 taken over
             {after}
             b open s amq.topic y owner=me durable for=3
             flush
             > b queue amq.durable-me/s 0 0
             a2 consume q 7
             > a2 consuming 7"
        ));
    }
}

#[test]
fn a_connection_is_doubted_whose_name_another_of_its_user_claims() {
    check(
        "a be me
         > a ok
         b be me
         > a doubted
         > b refused ResourceLocked: another connection has the client name 'me'
         c be me
         > c refused AccessRefused: a connection of another user has the client name 'me'
         a disconnect
         b be me
         > b ok",
    );
}
