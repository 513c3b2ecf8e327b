//! Limits: at, below and above each; expiry, dead letters, delays.

use super::{TestHost, check, check_in};
use crate::interface::limits::Limits;
use std::time::Duration;

#[test]
fn drop_head_keeps_the_newest() {
    check(
        "a queue q durable length=2
         > a queue q 0 0
         a publish - q 1 persistent
         a publish - q 2
         a passive q
         > a queue q 2 0
         a publish - q 3 persistent
         a passive q
         > a queue q 2 0
         a get q presettled
         > a deliver  #1 2 dropped=1
         > a got, 1 left
         a get q presettled
         > a deliver  #2 3
         > a got, 0 left",
    );
}

#[test]
fn consumers_learn_how_many_a_full_queue_has_dropped() {
    check(
        "a queue q length=2
         > a queue q 0 0
         a publish - q 1
         a publish - q 2
         a publish - q 3
         a publish - q 4
         a publish - q 5
         b consume q c presettled
         > b consuming c
         > b deliver c #1 4 dropped=3
         > b deliver c #2 5
         a publish - q 6
         > b deliver c #3 6
         b cancel c
         > b ok
         a queue none length=0
         > a queue none 0 0
         a publish - none 7
         a publish - none 8
         b consume none c presettled
         > b consuming c
         a publish - none 9
         > b deliver c #4 9 dropped=2
         a publish - none 10
         > b deliver c #5 10",
    );
}

#[test]
fn a_limit_counts_what_is_ready() {
    check(
        "a queue q length=1 overflow=reject
         > a queue q 0 0
         a confirms
         > a ok
         a publish - q 1
         > a confirm 1
         a publish - q 2
         > a nack 2
         b get q
         > b deliver  #1 1
         > b got, 0 left
         a publish - q 3
         > a confirm 3",
    );
}

#[test]
fn what_comes_back_to_a_full_queue_that_refuses_is_kept() {
    check(
        "a queue q length=1 overflow=reject
         > a queue q 0 0
         a confirms
         > a ok
         a publish - q 1
         > a confirm 1
         b get q
         > b deliver  #1 1
         > b got, 0 left
         a publish - q 2
         > a confirm 2
         b requeue 1
         a publish - q 3
         > a nack 3
         a get q presettled
         > a deliver  #1 1 redelivered count=1
         > a got, 1 left
         a get q presettled
         > a deliver  #2 2
         > a got, 0 left",
    );
}

#[test]
fn bytes_are_limited_too() {
    check(
        "a queue q bytes=6
         > a queue q 0 0
         a publish - q 123
         a publish - q 456
         a passive q
         > a queue q 2 0
         a publish - q 7
         a passive q
         > a queue q 2 0
         a publish - q 12345678
         a passive q
         > a queue q 0 0",
    );
}

#[test]
fn a_full_queue_may_refuse_and_dead_letter() {
    check(
        "a queue dead
         > a queue dead 0 0
         a queue q length=1 overflow=reject-dead-letter dlx=- dlk=dead
         > a queue q 0 0
         a confirms
         > a ok
         a publish - q 1
         > a confirm 1
         a publish - q 2
         > a nack 2
         a get dead presettled
         > a deliver  #1 2 died=MaxLength:q:1
         > a got, 0 left",
    );
}

#[test]
fn what_is_pushed_out_is_dead_lettered() {
    check(
        "a queue dead durable
         > a queue dead 0 0
         a queue q durable length=1 dlx=- dlk=dead
         > a queue q 0 0
         a publish - q 1 persistent
         a publish - q 2 persistent
         a get dead presettled
         > a deliver  #1 1 died=MaxLength:q:1
         > a got, 0 left
         a get q presettled
         > a deliver  #2 2 dropped=1
         > a got, 0 left",
    );
}

#[test]
fn messages_expire_at_the_head() {
    check(
        "a queue dead
         > a queue dead 0 0
         a queue q ttl=100 dlx=- dlk=dead
         > a queue q 0 0
         a publish - q 1
         a publish - q 2 ttl=50
         a publish - q 3 ttl=500
         time 99
         a passive q
         > a queue q 3 0
         time 1
         a passive q
         > a queue q 0 0
         b consume dead c presettled
         > b consuming c
         > b deliver c #1 1 died=Expired:q:1
         > b deliver c #2 2 died=Expired:q:1
         > b deliver c #3 3 died=Expired:q:1",
    );
}

#[test]
fn expired_ones_are_not_delivered_and_zero_means_at_once_or_never() {
    check(
        "a queue q
         > a queue q 0 0
         a publish - q 1 ttl=0
         a passive q
         > a queue q 0 0
         a publish - q 2 ttl=10
         a publish - q 3
         time 10
         b consume q c presettled
         > b consuming c
         > b deliver c #1 3
         a publish - q 4 ttl=0
         > b deliver c #2 4",
    );
}

#[test]
fn a_requeued_message_expires_too() {
    check(
        "a queue q ttl=100
         > a queue q 0 0
         a publish - q 1
         a get q
         > a deliver  #1 1
         > a got, 0 left
         time 200
         a requeue 1
         a passive q
         > a queue q 0 0",
    );
}

#[test]
fn unused_queues_expire() {
    check(
        "a queue q expires=100
         > a queue q 0 0
         time 60
         a passive q
         > a queue q 0 0
         time 60
         a consume q c
         > a consuming c
         time 1000
         a cancel c
         > a ok
         time 99
         a get q
         > a empty
         time 99
         a queue q expires=100
         > a queue q 0 0
         time 100
         a passive q
         > a refused NotFound: no queue 'q' in vhost '/'",
    );
}

#[test]
fn the_delivery_limit_ends_in_a_dead_letter() {
    check(
        "a queue dead
         > a queue dead 0 0
         a queue q limit=1 dlx=- dlk=dead
         > a queue q 0 0
         a publish - q 1
         a consume q c
         > a consuming c
         > a deliver c #1 1
         a requeue 1
         > a deliver c #2 1 redelivered count=1
         a requeue 2
         b get dead presettled
         > b deliver  #1 1 died=DeliveryLimit:q:1
         > b got, 0 left",
    );
}

#[test]
fn rejected_messages_may_go_round_and_expired_ones_may_not() {
    check(
        "a queue q dlx=- dlk=q
         > a queue q 0 0
         a consume q c
         > a consuming c
         a publish - q 1
         > a deliver c #1 1
         a discard 1
         > a deliver c #2 1 died=Rejected:q:1
         a discard 2
         > a deliver c #3 1 died=Rejected:q:2
         a accept 3
         a queue r ttl=10 dlx=- dlk=s
         > a queue r 0 0
         a queue s ttl=10 dlx=- dlk=r
         > a queue s 0 0
         a publish - r 2
         time 10
         a passive s
         > a queue s 1 0
         time 10
         a passive r
         > a queue r 0 0
         a passive s
         > a queue s 0 0",
    );
}

#[test]
fn delayed_messages_come_when_due() {
    check(
        "a exchange x direct delaying
         > a ok
         a queue q
         > a queue q 0 0
         a bind x q k
         > a ok
         a publish x k late delay=100
         a publish x k sooner delay=50
         a publish x k now
         b consume q c presettled
         > b consuming c
         > b deliver c #1 now
         time 50
         > b deliver c #2 sooner
         time 49
         time 1
         > b deliver c #3 late",
    );
}

#[test]
fn a_body_of_the_limit_passes_and_one_byte_more_does_not() {
    let limits = Limits { body_bytes_max: 4, ..Limits::default() };
    check_in(
        TestHost::with(limits),
        "a queue q
         > a queue q 0 0
         a publish - q 1234
         a publish - q 12345
         > a refused LimitExceeded: a message of 5 bytes is larger than the limit of 4
         a passive q
         > a queue q 1 0",
    );
}

#[test]
fn topology_is_limited() {
    let limits = Limits { queues_max: 1, vhosts_max: 2, ..Limits::default() };
    check_in(
        TestHost::with(limits),
        "a queue q
         > a queue q 0 0
         a queue r
         > a refused LimitExceeded: more than 1 queues in a virtual host
         a delete q
         > a messages 0
         a queue r
         > a queue r 0 0
         a create-vhost v
         > a ok
         a create-vhost w
         > a refused LimitExceeded: more than 2 virtual hosts",
    );
}

#[test]
fn channels_are_limited() {
    let limits = Limits { consumers_max: 1, unsettled_max: 2, ..Limits::default() };
    check_in(
        TestHost::with(limits),
        "a queue q
         > a queue q 0 0
         a consume q c
         > a consuming c
         a consume q d
         > a refused LimitExceeded: more than 1 consumers in one channel
         a publish - q 1
         > a deliver c #1 1
         a publish - q 2
         > a deliver c #2 2
         a publish - q 3
         a accept 1
         > a deliver c #3 3",
    );
}

#[test]
fn transactions_are_limited() {
    let limits =
        Limits { transaction_operations_max: 2, transaction_bytes_max: 24, ..Limits::default() };
    check_in(
        TestHost::with(limits),
        "a queue q
         > a queue q 0 0
         a transactions
         > a ok
         a publish - q 12
         a publish - q 123
         > a refused LimitExceeded: more than 24 bytes in one transaction
         a publish - q 34
         a publish - q 56
         > a refused LimitExceeded: more than 2 operations in one transaction
         a commit
         > a ok
         a passive q
         > a queue q 2 0",
    );
}

#[test]
fn times_to_live_are_limited() {
    let limits = Limits { ttl_max: Duration::from_secs(1), ..Limits::default() };
    check_in(
        TestHost::with(limits),
        "a queue q ttl=1000
         > a queue q 0 0
         a queue r ttl=1001
         > a refused LimitExceeded: a time to live of more than 1 seconds
         a queue r expires=1001
         > a refused LimitExceeded: a time to live of more than 1 seconds",
    );
}
