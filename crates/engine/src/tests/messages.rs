//! Publish, deliver, settle, confirm.

use super::{TestHost, check, check_in};
use crate::interface::limits::Limits;
use crate::{ChannelId, ConnectionId};

#[test]
fn a_waiting_consumer_gets_messages_at_once() {
    check(
        "a queue q
         > a queue q 0 0
         b consume q c presettled
         > b consuming c
         a publish - q one
         > b deliver c #1 one
         a publish - q two persistent
         > b deliver c #2 two
         a passive q
         > a queue q 0 1",
    );
}

#[test]
fn messages_wait_in_order_for_a_consumer() {
    check(
        "a queue q
         > a queue q 0 0
         a publish - q one
         a publish - q two
         a consume q c
         > a consuming c
         > a deliver c #1 one
         > a deliver c #2 two
         a accept 2 multiple
         a accept 2
         > a refused PreconditionFailed: unknown delivery tag 2
         a accept 3
         > a refused PreconditionFailed: unknown delivery tag 3
         a accept 0 multiple",
    );
}

#[test]
fn credit_bounds_what_is_out() {
    check(
        "a queue q
         > a queue q 0 0
         a consume q c credit=2
         > a consuming c
         a publish - q one
         > a deliver c #1 one
         a publish - q two
         > a deliver c #2 two
         a publish - q three
         a publish - q four
         a accept 2
         > a deliver c #3 three
         a accept 3 multiple
         > a deliver c #4 four",
    );
}

#[test]
fn credit_in_bytes_lets_one_message_pass() {
    check(
        "a queue q
         > a queue q 0 0
         a consume q c bytes=4
         > a consuming c
         a publish - q 123456
         > a deliver c #1 123456
         a publish - q 12
         a accept 1
         > a deliver c #2 12
         a publish - q 34
         > a deliver c #3 34
         a publish - q 5
         a accept 2
         > a deliver c #4 5",
    );
}

#[test]
fn a_closed_flow_stops_deliveries() {
    check(
        "a queue q
         > a queue q 0 0
         a consume q c presettled
         > a consuming c
         a flow off
         > a ok
         a publish - q one
         a flow on
         > a ok
         > a deliver c #1 one",
    );
}

#[test]
fn a_full_connection_holds_its_own_deliveries_up() {
    check(
        "a queue q
         > a queue q 0 0
         b consume q b
         > b consuming b
         c consume q c
         > c consuming c
         room b off
         a publish - q one
         > c deliver c #1 one
         a publish - q two
         > c deliver c #2 two
         room c off
         a publish - q three
         room b on
         > b deliver b #1 three",
    );
}

#[test]
fn equals_take_turns_and_the_higher_priority_comes_first() {
    check(
        "a queue q
         > a queue q 0 0
         a consume q low
         > a consuming low
         b consume q x priority=5 credit=1
         > b consuming x
         b consume q y priority=5 credit=1
         > b consuming y
         a publish - q 1
         > b deliver x #1 1
         a publish - q 2
         > b deliver y #2 2
         a publish - q 3
         > a deliver low #1 3
         b accept 1
         a publish - q 4
         > b deliver x #3 4",
    );
}

#[test]
fn a_single_active_consumer_gets_everything_until_it_goes() {
    check(
        "a queue q single-active
         > a queue q 0 0
         a consume q first credit=1
         > a consuming first
         b consume q second priority=9
         > b consuming second
         a publish - q 1
         > a deliver first #1 1
         a publish - q 2
         a cancel first
         > a ok
         > b deliver second #1 2
         a requeue 1
         > b deliver second #2 1 redelivered count=1",
    );
}

#[test]
fn requeued_messages_return_to_their_place() {
    check(
        "a queue q
         > a queue q 0 0
         a publish - q 1
         a publish - q 2
         a publish - q 3
         a publish - q 4
         a consume q c credit=3
         > a consuming c
         > a deliver c #1 1
         > a deliver c #2 2
         > a deliver c #3 3
         a cancel c
         > a ok
         a requeue 3 multiple
         b consume q d presettled
         > b consuming d
         > b deliver d #1 1 redelivered count=1
         > b deliver d #2 2 redelivered count=1
         > b deliver d #3 3 redelivered count=1
         > b deliver d #4 4",
    );
}

#[test]
fn what_comes_back_over_many_turns_is_handed_out_in_order() {
    let scenario = "a queue q single-active
         > a queue q 0 0
         a consume q c credit=4
         > a consuming c
         b consume q d
         > b consuming d
         a publish - q 1
         > a deliver c #1 1
         a publish - q 2
         > a deliver c #2 2
         a publish - q 3
         > a deliver c #3 3
         a publish - q 4
         > a deliver c #4 4
         a publish - q 5
         a publish - q 6
         a close
         > b deliver d #1 1 redelivered count=1
         > b deliver d #2 2 redelivered count=1
         > b deliver d #3 3 redelivered count=1
         > b deliver d #4 4 redelivered count=1
         > b deliver d #5 5
         > b deliver d #6 6
         b accept 4 multiple
         b recover
         > b ok
         > b deliver d #7 5 redelivered count=1
         > b deliver d #8 6 redelivered count=1
         b discard 8 multiple
         b queue q single-active
         > b queue q 0 1";
    for settles_at_once in 1..6 {
        check_in(TestHost::with(Limits { settles_at_once, ..Limits::default() }), scenario);
    }
}

#[test]
fn recover_and_close_requeue_what_is_out() {
    check(
        "a queue q
         > a queue q 0 0
         a publish - q 1
         a get q
         > a deliver  #1 1
         > a got, 0 left
         a recover
         > a ok
         a get q
         > a deliver  #2 1 redelivered count=1
         > a got, 0 left
         a close
         b get q presettled
         > b deliver  #1 1 redelivered count=2
         > b got, 0 left
         b get q
         > b empty
         b get nowhere
         > b refused NotFound: no queue 'nowhere' in vhost '/'",
    );
}

#[test]
fn what_is_confirmed_is_counted_without_refusals() {
    let host = check_in(
        TestHost::new(),
        "a queue q durable
         > a queue q 0 0
         a confirms
         > a ok
         a publish - q 1
         > a confirm 1
         a publish - q 2 persistent
         a publish nowhere q 3
         > a refused NotFound: no exchange 'nowhere' in vhost '/'
         a publish - q 3 persistent
         a publish - q 4
         flush
         > a confirm 4 multiple",
    );
    assert_eq!(host.engine.counters().confirmed, 4);
}

#[test]
fn confirms_tell_several_at_once() {
    check(
        "a queue q durable
         > a queue q 0 0
         a confirms
         > a ok
         a publish - q 1
         > a confirm 1
         a publish - q 2 persistent
         a publish - q 3 persistent
         a publish - q 4
         flush
         > a confirm 4 multiple
         a publish - nowhere 5 mandatory
         > a returned 5
         > a confirm 5
         a publish nowhere q 6
         > a refused NotFound: no exchange 'nowhere' in vhost '/'
         a publish - q 6 persistent
         flush
         > a confirm 6",
    );
}

#[test]
fn a_persistent_message_that_a_presettled_consumer_has_is_confirmed_at_once() {
    check(
        "a queue q durable
         > a queue q 0 0
         b consume q c presettled
         > b consuming c
         a confirms
         > a ok
         a publish - q 1 persistent
         > b deliver c #1 1
         > a confirm 1",
    );
}

#[test]
fn an_unsettled_persistent_message_is_confirmed_when_flushed() {
    check(
        "a queue q durable
         > a queue q 0 0
         b consume q c
         > b consuming c
         a confirms
         > a ok
         a publish - q 1 persistent
         > b deliver c #1 1
         b accept 1
         flush
         > a confirm 1",
    );
}

#[test]
fn refused_publishes_are_told_singly() {
    check(
        "a queue q durable length=2 overflow=reject
         > a queue q 0 0
         a confirms
         > a ok
         a publish - q 1 persistent
         a publish - q 2 persistent
         a publish - q 3 persistent
         > a nack 3
         flush
         > a confirm 2 multiple
         b get q presettled
         > b deliver  #1 1
         > b got, 1 left
         a publish - q 4 persistent
         a publish - q 5
         > a nack 5
         flush
         > a confirm 4 multiple",
    );
}

#[test]
fn what_cannot_be_stored_is_refused_and_the_rest_goes_on() {
    check(
        "a queue q durable
         > a queue q 0 0
         a confirms
         > a ok
         a publish - q 1 persistent
         storage full
         a publish - q 2 persistent
         > a nack 2
         a publish - q 3
         flush
         > a confirm 3 multiple
         b get q presettled
         > b deliver  #1 1
         > b got, 1 left
         storage ready
         a publish - q 4 persistent
         storage failed
         > a nack 4 multiple
         a publish - q 5 persistent
         > a nack 5",
    );
}

#[test]
fn what_neither_memory_nor_the_journal_can_take_is_refused() {
    let limits = Limits { queue_resident_bytes_max: 150, ..Limits::default() };
    check_in(
        TestHost::with(limits),
        "a queue q durable
         > a queue q 0 0
         a queue r
         > a queue r 0 0
         a exchange x fanout
         > a ok
         a bind x q k
         > a ok
         a bind x r k
         > a ok
         a confirms
         > a ok
         storage full
         a publish - r 1
         > a confirm 1
         a publish - r 2
         > a nack 2
         a publish - q 3
         > a confirm 3
         a publish x k 4
         > a nack 4
         b transactions
         > b ok
         b publish - q 5
         b commit
         > b refused StorageUnavailable: the transaction's messages cannot be stored
         storage ready
         a publish x k 6
         > a confirm 5
         a passive r
         > a queue r 2 0",
    );
}

#[test]
fn inboxes_get_replies_and_are_gone_with_their_channel() {
    let mut host = super::TestHost::new();
    let lines = host.run("a inbox replies");
    let address = lines[0].strip_prefix("a inbox ").unwrap().to_owned();
    assert_eq!(
        host.run(&format!("b publish - {address} answer")),
        [format!("a hears replies {address} answer")]
    );
    host.run("room a off");
    let lines = host.run(&format!("b publish - {address} unheard mandatory"));
    assert_eq!(lines, ["b returned unheard"]);
    host.run("room a");
    host.run("a close");
    let lines = host.run(&format!("b publish - {address} late mandatory"));
    assert_eq!(lines, ["b returned late"]);
}

#[test]
fn inboxes_are_known_in_their_virtual_host_alone() {
    let mut host = super::TestHost::new();
    host.run("a create-vhost other");
    let guest = ChannelId { connection: ConnectionId(9), number: 0 };
    host.enter_vhost("o", guest, "other");
    let lines = host.run("a inbox replies");
    let address = lines[0].strip_prefix("a inbox ").unwrap().to_owned();
    let lines = host.run(&format!("o publish - {address} answer mandatory"));
    assert_eq!(lines, ["o returned answer"]);
    let lines = host.run(&format!("o passive {address}"));
    assert!(lines[0].starts_with("o refused NotFound"), "{lines:?}");
    assert_eq!(host.run(&format!("b passive {address}")), [format!("b queue {address} 0 1")]);
}

#[test]
fn transactions_wait_for_the_commit() {
    check(
        "a queue q durable
         > a queue q 0 0
         b publish - q zero
         a transactions
         > a ok
         a get q
         > a deliver  #1 zero
         > a got, 0 left
         a accept 1
         a publish - q one
         a publish - q two persistent
         b get q
         > b empty
         a commit
         flush
         > a ok
         b get q presettled
         > b deliver  #1 one
         > b got, 1 left
         a publish - q three
         a rollback
         > a ok
         a commit
         > a ok
         b passive q
         > b queue q 1 0
         a publish nowhere q x
         > a refused NotFound: no exchange 'nowhere' in vhost '/'",
    );
}

#[test]
fn a_rolled_back_settle_leaves_the_delivery_unsettled() {
    check(
        "a queue q
         > a queue q 0 0
         a transactions
         > a ok
         b publish - q one
         a get q
         > a deliver  #1 one
         > a got, 0 left
         a accept 1
         a rollback
         > a ok
         a close
         b get q
         > b deliver  #1 one redelivered count=1
         > b got, 0 left",
    );
}

#[test]
fn who_has_gone_waits_for_no_message_any_more() {
    for gone in ["b close", "b disconnect"] {
        let limits = Limits { queue_resident_bytes_max: 0, ..Limits::default() };
        check_in(
            TestHost::with(limits),
            &format!(
                "a queue q
                 > a queue q 0 0
                 a publish - q 1
                 loads hold
                 b get q
                 b2 get q
                 c get q
                 b2 close
                 {gone}
                 loads
                 > c deliver  #1 1
                 > c got, 0 left
                 loads hold
                 a publish - q 2
                 b get q
                 c get q
                 a delete q
                 > b refused NotFound: queue 'q' was deleted
                 > c refused NotFound: queue 'q' was deleted
                 > a messages 1"
            ),
        );
    }
}

#[test]
fn priorities_cost_a_queue_nothing_before_they_are_used() {
    let mut host = TestHost::new();
    let made = |host: &TestHost| {
        let lanes = host.engine.queues.iter().flat_map(|(_, queue)| queue.lanes.iter());
        lanes.count()
    };
    host.run("a queue q priorities=9");
    assert_eq!(made(&host), 0);
    for line in ["a publish - q 1 priority=4", "a publish - q 2 priority=4"] {
        host.run(line);
        assert_eq!(made(&host), 1);
    }
    host.run("a publish - q 3 priority=9");
    assert_eq!(made(&host), 2);
    host.run("a purge q");
    assert_eq!(made(&host), 0);
}
