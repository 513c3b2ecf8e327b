//! Queues and exchanges come and go; what that does to messages and consumers.

use super::{TestHost, check};

#[test]
fn declaring_again_must_agree() {
    check(
        "a queue q length=3
         > a queue q 0 0
         a publish - q 1
         a queue q length=3
         > a queue q 1 0
         a queue q length=4
         > a refused PreconditionFailed: queue 'q' in vhost '/' differs in \
           max-length: received 4, current is 3
         a passive r
         > a refused NotFound: no queue 'r' in vhost '/'",
    );
}

#[test]
fn a_quorum_queue_is_created_and_lacks_copies() {
    check(
        "a queue q quorum durable
         > one copy of q in /
         > a queue q 0 0
         a queue q quorum durable
         > a queue q 0 0
         a queue r durable
         > a queue r 0 0",
    );
}

#[test]
fn a_deleted_queue_cancels_its_consumers() {
    check(
        "a queue q durable
         > a queue q 0 0
         b consume q c credit=1
         > b consuming c
         a publish - q 1 persistent
         > b deliver c #1 1
         a publish - q 2 persistent
         a delete q if-unused
         > a refused PreconditionFailed: queue 'q' has consumers
         a delete q if-empty
         > a refused PreconditionFailed: queue 'q' holds 1 messages
         a delete q
         > a messages 1
         > b cancelled c
         b accept 1
         a delete q
         > a messages 0",
    );
}

#[test]
fn a_new_queue_of_the_same_name_knows_nothing_of_the_old_one() {
    check(
        "a queue q durable
         > a queue q 0 0
         a publish - q 1 persistent
         b get q
         > b deliver  #1 1
         > b got, 0 left
         a delete q
         > a messages 0
         a queue q durable
         > a queue q 0 0
         b requeue 1
         a passive q
         > a queue q 0 0",
    );
}

#[test]
fn exclusive_queues_are_locked_and_go_with_their_connection() {
    check(
        "a queue q exclusive
         > a queue q 0 0
         b passive q
         > b refused ResourceLocked: queue 'q' is exclusive to another connection
         b consume q c
         > b refused ResourceLocked: queue 'q' is exclusive to another connection
         a2 passive q
         > a2 queue q 0 0
         a close
         a2 passive q
         > a2 queue q 0 0
         a2 disconnect
         b passive q
         > b refused NotFound: no queue 'q' in vhost '/'",
    );
}

#[test]
fn auto_delete_queues_go_with_their_last_consumer() {
    check(
        "a queue q auto-delete
         > a queue q 0 0
         b consume q c
         > b consuming c
         c consume q d
         > c consuming d
         b cancel c
         > b ok
         a passive q
         > a queue q 0 1
         c close
         a passive q
         > a refused NotFound: no queue 'q' in vhost '/'",
    );
}

#[test]
fn an_exclusive_consumer_stays_alone() {
    check(
        "a queue q
         > a queue q 0 0
         a consume q c exclusive
         > a consuming c
         b consume q d
         > b refused AccessRefused: queue 'q' has another, or an exclusive, consumer
         a cancel c
         > a ok
         b consume q d
         > b consuming d
         b consume q d
         > b refused NotAllowed: consumer 'd' exists in this channel
         a consume q c exclusive
         > a refused AccessRefused: queue 'q' has another, or an exclusive, consumer",
    );
}

#[test]
fn purging_leaves_what_is_out() {
    check(
        "a queue q durable
         > a queue q 0 0
         a publish - q 1 persistent
         a publish - q 2 persistent
         a publish - q 3
         b get q
         > b deliver  #1 1
         > b got, 2 left
         a purge q
         > a messages 2
         a purge q
         > a messages 0
         b requeue 1
         a passive q
         > a queue q 1 0
         a publish - q 4 persistent
         restart
         a get q
         > a deliver  #1 1 redelivered count=1
         > a got, 1 left
         a get q
         > a deliver  #2 4 redelivered
         > a got, 0 left",
    );
}

#[test]
fn exchanges_route_to_queues_and_other_exchanges() {
    check(
        "a exchange in topic
         > a ok
         a exchange out fanout internal
         > a ok
         a queue q
         > a queue q 0 0
         a queue r
         > a queue r 0 0
         a bind in q orders.*
         > a ok
         a bind in @out #
         > a ok
         a bind out r x
         > a ok
         a publish in orders.new 1
         a publish in other 2
         a publish out x 3
         > a refused AccessRefused: exchange 'out' is internal
         a get q presettled
         > a deliver  #1 1
         > a got, 0 left
         a get r presettled
         > a deliver  #2 1
         > a got, 1 left
         a unbind in @out #
         > a ok
         a publish in other 4 mandatory
         > a returned 4
         a delete-exchange in
         > a ok
         a publish in orders.new 5
         > a refused NotFound: no exchange 'in' in vhost '/'",
    );
}

#[test]
fn copies_for_further_keys_go_once_to_each_queue() {
    check(
        "a queue q
         > a queue q 0 0
         a queue r
         > a queue r 0 0
         a publish - q 1 cc=r
         a publish - q 2 cc=q
         a get r presettled
         > a deliver  #1 1
         > a got, 0 left
         a get q presettled
         > a deliver  #2 1
         > a got, 1 left",
    );
}

#[test]
fn higher_priorities_go_first_and_each_keeps_its_order() {
    check(
        "a queue q priorities=5
         > a queue q 0 0
         a publish - q 1
         a publish - q 2 priority=3
         a publish - q 3 priority=200
         a publish - q 4 priority=5
         a publish - q 5 priority=3
         a get q
         > a deliver  #1 3
         > a got, 4 left
         a requeue 1
         b consume q c presettled
         > b consuming c
         > b deliver c #1 3 redelivered count=1
         > b deliver c #2 4
         > b deliver c #3 2
         > b deliver c #4 5
         > b deliver c #5 1",
    );
}

#[test]
fn a_virtual_host_goes_with_all_in_it() {
    check(
        "a create-vhost v
         > a ok
         a delete-vhost v
         > a ok
         a delete-vhost v
         > a refused NotFound: no virtual host 'v'
         a delete-vhost /
         > a refused PreconditionFailed: virtual host '/' is in use; open connections: 1",
    );
}

#[test]
fn clients_hear_of_what_survives_a_restart_once_it_is_flushed() {
    let mut host = TestHost::new();
    host.client("c");
    for (line, answer) in [
        ("c queue q durable", "c queue q 0 0"),
        ("c exchange x direct durable", "c ok"),
        ("c bind x q k", "c ok"),
        ("c unbind x q k", "c ok"),
        ("c delete q", "c messages 0"),
    ] {
        assert_eq!(host.run(line), [""; 0], "{line}");
        assert_eq!(host.run("flush"), [answer], "{line}");
    }
    for (line, answer) in [
        ("c exchange x direct durable", "c ok"),
        ("c queue t", "c queue t 0 0"),
        ("c bind x t k", "c ok"),
        ("c passive t", "c queue t 0 0"),
        ("a queue own durable", "a queue own 0 0"),
    ] {
        assert_eq!(host.run(line), [answer], "{line}");
    }
}

#[test]
fn confirms_and_a_change_wait_beside_each_other() {
    let mut host = TestHost::new();
    host.client("c");
    host.run("c queue q durable");
    host.run("flush");
    assert_eq!(host.run("c confirms"), ["c ok"]);
    assert_eq!(host.run("c publish - q 1 persistent"), [""; 0]);
    assert_eq!(host.run("c queue r durable"), [""; 0]);
    assert_eq!(host.run("flush"), ["c queue r 0 0", "c confirm 1"]);
    assert_eq!(host.run("c publish - q 2 persistent"), [""; 0]);
    assert_eq!(host.run("flush"), ["c confirm 2"]);
}

#[test]
fn a_failed_journal_takes_no_change_that_is_to_survive() {
    let mut host = TestHost::new();
    host.client("c");
    for line in ["queue q durable", "exchange x fanout durable", "bind x q k"] {
        host.run(&format!("c {line}"));
        host.run("flush");
    }
    assert_eq!(host.run("c queue p durable"), [""; 0]);
    let unknown = "c refused InDoubt: the journal failed: whether that is stored is unknown";
    assert_eq!(host.run("storage failed"), [unknown]);
    let failed = "c refused StorageUnavailable: the journal has failed: what is to survive a restart \
                  cannot be changed";
    // Asked a second time it says the same: nothing was done.
    let declared = ["queue r durable", "exchange e fanout durable", "bind amq.fanout q k"];
    let deleted = ["delete q", "delete-exchange x", "unbind x q k"];
    for line in declared.into_iter().chain(deleted) {
        for _ in 0..2 {
            assert_eq!(host.run(&format!("c {line}")), [failed], "{line}");
        }
    }
    assert_eq!(host.run("c queue q durable"), ["c queue q 0 0"]);
    assert_eq!(host.run("c queue t"), ["c queue t 0 0"]);
    assert_eq!(host.run("c bind amq.fanout t k"), ["c ok"]);
    // Of users and virtual hosts nothing is done that a restart would undo.
    for line in ["create-vhost v", "user bob hash", "delete-user ann", "quota ann connections=1"] {
        assert_eq!(host.run(&format!("a {line}")), [failed.replace("c refused", "a refused")]);
    }
    assert_eq!(host.engine.list_vhosts().count(), 1);
    assert!(host.engine.list_users().map(|user| user.name).eq(["ann"]));
}

/// What is known of users: name, hash, and whether they administer.
fn users(host: &super::TestHost) -> Vec<(String, String, bool)> {
    let engine = &host.engine;
    let hash = |name| engine.password_hash(name).unwrap_or_default().to_owned();
    engine.list_users().map(|it| (it.name.to_owned(), hash(it.name), it.administrator)).collect()
}

#[test]
fn a_change_of_a_user_changes_what_is_given_alone() {
    let mut host = super::TestHost::new();
    host.run("a user ann old administrator");
    for (line, hash, administrator) in [
        ("a user ann new", "old", true),
        ("a change-user ann new", "new", true),
        ("a change-user ann administrator=false", "new", false),
        ("a change-user ann last administrator=true", "last", true),
        ("a change-user bob hash", "last", true),
        ("restart", "last", true),
    ] {
        host.run(line);
        assert_eq!(users(&host), [("ann".to_owned(), hash.to_owned(), administrator)], "{line}");
    }
    let again = host.run("a user ann new");
    let refused = "a refused PreconditionFailed: there is a user 'ann' already: change its password \
                   instead, which leaves its rights as they are";
    assert_eq!(again, [refused]);
    let unknown = host.run("a change-user bob hash");
    assert_eq!(unknown, ["a refused NotFound: no user 'bob'"]);
}

#[test]
fn consumers_end_whose_user_may_not_read_their_queue_any_more() {
    let mut host = super::TestHost::new();
    for line in ["a user ann hash", "a permit ann .* .* .*", "a queue q", "a queue r"] {
        host.run(line);
    }
    host.login("c", "ann");
    super::check_in(
        host,
        "c consume q first credit=9
         > c consuming first
         c consume r second credit=9
         > c consuming second
         b consume q other credit=9
         > b consuming other
         a permit ann .* .* ^r$
         > a ok
         > c cancelled first forbidden
         a publish - r 1
         > c deliver second #1 1
         a publish - q 2
         > b deliver other #1 2
         a permit ann .* .* .*
         > a ok
         a permit ann ^$ ^$ ^$
         > a ok
         > c cancelled second forbidden",
    );
}

#[test]
fn clients_ask_what_is_there() {
    check(
        "a queue q
         > a queue q 0 0
         a queue r
         > a queue r 0 0
         a publish - q 1
         a describe q
         > a queues q 1 0 0 next None
         a describe none
         > a refused NotFound: no queue 'none' in vhost '/'
         a describe-all most=1
         > a queues q 1 0 0 next Some(1)
         a describe-all from=1
         > a queues r 0 0 0 next None
         a describe-all from=7
         > a queues none next None
         a exchange x topic
         > a ok
         a exchange y topic
         > a ok
         a bind x q k
         > a ok
         a bind x q l
         > a ok
         a bind x @y k
         > a ok
         a describe-bindings x q k
         > a bindings k to Queue(\"q\")
         a describe-bindings x @y k
         > a bindings k to Exchange(\"y\")
         a describe-bindings y q k
         > a bindings
         a describe-bindings none q k
         > a refused NotFound: no exchange 'none' in vhost '/'
         a describe-bindings x none k
         > a refused NotFound: no queue 'none' in vhost '/'",
    );
}
