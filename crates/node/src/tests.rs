//! Scenarios against a whole node: bytes in, bytes out, over a disk in memory.

mod amqp10;
mod amqp10_places;
mod amqp10_transactions;
mod batches;
mod broker;
mod client;
mod conflation;
mod connection_query;
mod damage;
mod direct_batches;
mod direct_host;
mod frames;
mod host;
mod identical_shards;
mod large;
mod memory;
mod named_subscriptions;
mod no_room;
mod publisher_stall;
mod quotas;
mod rates;
mod read_pause;
mod retained;
mod rights;
mod sessions;
mod settle_timeouts;
mod shards;
mod slot_reuse;
mod slow_consumers;
mod slow_delivery;
mod spill_yields;
mod stomp;
mod throttle;
mod turns;
mod websocket;
mod wide_links;

use crate::{Node, Options};
use angarium_engine::{QueueOptions, RefusalKind, Request, Time};
use angarium_journal::FaultyStorage;
use angarium_protocol::Peer;
use host::{Host, RESIDENT_BYTES_MAX, Said};
use std::time::Duration;

/// Sizes with which a few messages fill segments.
fn small_journal() -> angarium_journal::Options {
    angarium_journal::Options {
        segment_bytes: 64 << 10,
        first_segment_bytes: 64 << 10,
        checkpoint_bytes: 64 << 10,
        backlog_bytes_max: 128 << 10,
    }
}

/// The shards of a broker with what the disk has; there is a user `user`.
fn start(
    disk: &FaultyStorage,
    now: Time,
    shards: usize,
    options: fn(usize, usize) -> Options,
) -> Vec<Node> {
    let of_home = options(0, shards);
    let spill = of_home.spill.clone();
    let mut home = Node::recover(of_home, disk, now).expect("it starts");
    let user = crate::NewUser { name: "user", password_hash: "secret", administrator: false };
    if home.engine().list_users().next().is_none() {
        home.make_user(now, "/", &user).expect("operators may");
    }
    let introduction = home.introduction();
    let others = (1..shards).map(|shard| {
        let options = Options { spill: spill.clone(), ..options(shard, shards) };
        Node::join(options, &introduction).expect("home knows how")
    });
    std::iter::once(home).chain(others).collect()
}

/// Numbers below what is asked for, the same ones for the same seed.
pub(crate) fn draw_from(mut seed: u64) -> impl FnMut(u64) -> u64 {
    move |below| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    }
}

/// Plays each scenario with one shard, and with the clients on another shard than the queues.
macro_rules! scenarios {
    ($($name:ident)+) => {
        mod at_home {
            $(#[test] fn $name() { super::$name(super::Host::new(1)); })+
        }
        mod away {
            $(#[test] fn $name() { super::$name(super::Host::new(3)); })+
        }
    };
}

scenarios! {
    a_client_connects_declares_and_says_goodbye
    who_is_deleted_is_disconnected
    a_virtual_host_is_deleted_with_its_connections
    a_wrong_password_is_refused
    a_user_of_this_host_is_refused_from_afar_and_the_operator_can_see_why
    a_persistent_message_is_confirmed_only_after_its_flush
    a_transient_message_is_confirmed_without_the_disk
    a_confirmed_message_is_there_after_a_crash_and_marked_if_it_was_delivered
    what_was_acknowledged_and_flushed_stays_away
    what_nobody_waits_for_is_written_milliseconds_later
    a_full_disk_refuses_what_it_cannot_keep_and_takes_more_when_there_is_space
    a_failed_flush_refuses_what_waited_and_everything_after
    operators_hear_of_what_survives_a_restart_once_it_is_flushed
    operators_are_answered_each_on_his_own
    operators_are_refused_what_a_failed_journal_cannot_keep
    storing_connections_are_not_read_while_the_journal_is_congested
    who_asks_and_does_not_read_is_made_to_wait
    a_closed_node_starts_again_with_everything
    what_was_acknowledged_before_the_end_stays_away_however_much_it_is
    messages_beyond_memory_are_read_back_in_order
    what_was_put_off_is_written_where_it_is_to_be_read
    a_checkpoint_takes_many_turns_and_others_are_served_meanwhile
    a_crash_within_a_checkpoint_loses_nothing
    an_orderly_end_within_a_checkpoint_loses_nothing
    a_publisher_that_outruns_a_consumer_is_read_from_a_moment_later
}

fn confirming(host: &mut Host) -> usize {
    let client = host.client();
    host.declare(client, "q");
    host.confirm_select(client);
    client
}

fn a_client_connects_declares_and_says_goodbye(mut host: Host) {
    let client = host.client();
    host.declare(client, "q");
    host.goodbye(client);
    assert!(host.heard(client).contains(&Said::Goodbye));
    assert!(!host.is_closed(client), "the client closes the socket");
    host.pass(5_000);
    assert!(host.is_closed(client), "it had its time");
    assert!(host.node().is_drained());
}

fn who_is_deleted_is_disconnected(mut host: Host) {
    let client = host.client();
    host.declare(client, "q");
    let delete = Request::DeleteUser { name: "nobody".to_owned() };
    host.operate("/", delete).unwrap_err();
    assert!(!host.is_closed(client));
    let delete = Request::DeleteUser { name: "user".to_owned() };
    host.operate("/", delete).unwrap();
    host.pass(60_000);
    assert!(host.is_closed(client));
}

fn a_virtual_host_is_deleted_with_its_connections(mut host: Host) {
    let client = host.client();
    host.declare(client, "q");
    let create = Request::CreateVhost { name: "other".to_owned() };
    host.operate("/", create).unwrap();
    let delete = || Request::DeleteVhost { name: "/".to_owned() };
    // Not from inside.
    host.operate("/", delete()).unwrap_err();
    assert!(!host.is_closed(client));
    host.operate("other", delete()).unwrap();
    host.pass(60_000);
    assert!(host.is_closed(client));
    assert_eq!(host.node().engine().list_vhosts().count(), 1);
}

fn a_wrong_password_is_refused(mut host: Host) {
    let client = host.connect("wrong");
    host.settle_down();
    // It did not say that it understands a reason, so it gets none (spec 4.2.2).
    assert_eq!(host.heard(client), []);
    assert!(host.is_closed(client));
    assert_eq!(host.front().stats().authentications_failed, 1);
}

fn a_user_of_this_host_is_refused_from_afar_and_the_operator_can_see_why(mut host: Host) {
    for (local, is_refused) in [(true, false), (false, true)] {
        let peer = Peer { address: "192.0.2.1:7".to_owned(), local, ..Peer::default() };
        let client = host.connect_as(peer, "secret", 0);
        host.settle_down();
        assert_eq!(host.is_closed(client), is_refused);
        assert_eq!(host.front().stats().authentications_failed, u64::from(is_refused));
        let why = "user 'user' can only connect from the broker's own host, and came from \
                   192.0.2.1:7";
        assert_eq!(host.front().next_refused_login(), is_refused.then(|| why.to_owned()));
        assert_eq!(host.front().next_refused_login(), None);
    }
}

fn a_persistent_message_is_confirmed_only_after_its_flush(mut host: Host) {
    let client = confirming(&mut host);
    host.settle_down();
    host.heard(client);
    host.holds_jobs = true;
    host.publish(client, "q", b"kept", true);
    host.turns();
    assert_eq!(host.heard(client), []);
    host.holds_jobs = false;
    host.settle_down();
    assert_eq!(host.heard(client), [Said::Confirm(1, true)]);
}

fn a_transient_message_is_confirmed_without_the_disk(mut host: Host) {
    let client = confirming(&mut host);
    host.settle_down();
    host.heard(client);
    host.holds_jobs = true;
    host.publish(client, "q", b"light", false);
    host.turns();
    assert_eq!(host.heard(client), [Said::Confirm(1, true)]);
}

fn a_confirmed_message_is_there_after_a_crash_and_marked_if_it_was_delivered(mut host: Host) {
    let client = confirming(&mut host);
    host.publish(client, "q", b"first", true);
    host.publish(client, "q", b"second", true);
    host.settle_down();
    host.consume(client, "q", 1);
    let heard = host.heard(client);
    assert!(heard.contains(&Said::Delivered(b"first".to_vec(), false)), "{heard:?}");
    host.crash();
    let client = host.client();
    host.consume(client, "q", 0);
    let heard = host.heard(client);
    assert!(heard.contains(&Said::Delivered(b"first".to_vec(), true)), "{heard:?}");
    assert!(heard.iter().any(|said| matches!(said, Said::Delivered(body, _) if body == b"second")));
}

fn what_was_acknowledged_and_flushed_stays_away(mut host: Host) {
    let client = confirming(&mut host);
    host.publish(client, "q", b"done", true);
    host.settle_down();
    host.consume(client, "q", 0);
    host.ack(client, 1);
    host.publish(client, "q", b"later", true);
    host.settle_down();
    host.crash();
    let client = host.client();
    assert_eq!(host.count(client, "q"), 1);
}

fn what_nobody_waits_for_is_written_milliseconds_later(mut host: Host) {
    let unwritten = |host: &mut Host| host.node().journal().stats().backlog_bytes > 0;
    let client = host.client();
    host.declare(client, "q");
    // Kept without anybody being told; but not to be lost for a few milliseconds.
    host.publish_many(client, "q", b"kept", true, 3);
    host.settle_down();
    assert!(!unwritten(&mut host));
    host.consume(client, "q", 0);
    host.ack(client, 1);
    assert!(unwritten(&mut host));
    host.wait(Duration::from_millis(3));
    host.ack(client, 2);
    assert!(unwritten(&mut host));
    host.wait(Duration::from_millis(2));
    assert!(!unwritten(&mut host));
    host.ack(client, 3);
    assert!(unwritten(&mut host));
    host.publish(client, "q", b"kept", true);
    host.settle_down();
    assert!(!unwritten(&mut host));
}

fn a_full_disk_refuses_what_it_cannot_keep_and_takes_more_when_there_is_space(mut host: Host) {
    let client = confirming(&mut host);
    host.settle_down();
    host.heard(client);
    let used = host.disk.used();
    host.disk.set_capacity(Some(used));
    let mut refused = false;
    for _ in 0..200 {
        host.publish(client, "q", &[7; 2_000], true);
        host.settle_down();
        let heard = host.heard(client);
        if heard.iter().any(|said| matches!(said, Said::Confirm(_, false))) {
            refused = true;
            break;
        }
    }
    assert!(refused, "nothing was refused");
    host.disk.set_capacity(None);
    host.pass(3_000);
    host.heard(client);
    host.publish(client, "q", b"again", true);
    host.settle_down();
    let heard = host.heard(client);
    assert!(matches!(heard.as_slice(), [.., Said::Confirm(_, true)]), "{heard:?}");
}

fn a_failed_flush_refuses_what_waited_and_everything_after(mut host: Host) {
    let client = confirming(&mut host);
    host.settle_down();
    host.heard(client);
    host.disk.fail_sync(true);
    host.publish(client, "q", b"lost", true);
    host.settle_down();
    let heard = host.heard(client);
    assert!(heard.contains(&Said::Confirm(1, false)), "{heard:?}");
    host.disk.fail_sync(false);
    host.publish(client, "q", b"too late", true);
    host.settle_down();
    assert!(host.heard(client).contains(&Said::Confirm(2, false)));
}

/// Declares a queue as an operator does.
fn queue(name: &str, durable: bool) -> Request {
    let options = Some(QueueOptions { durable, ..QueueOptions::default() });
    Request::DeclareQueue { name: name.to_owned(), options }
}

fn operators_hear_of_what_survives_a_restart_once_it_is_flushed(mut host: Host) {
    let put = || Request::CreateUser {
        name: "ann".to_owned(),
        password_hash: String::new(),
        administrator: false,
    };
    let requests = [queue("q", true), put(), Request::DeleteUser { name: "ann".to_owned() }];
    for request in requests {
        host.holds_jobs = true;
        let ticket = host.ask("/", request);
        host.turns();
        assert_eq!(host.answered(), []);
        host.holds_jobs = false;
        host.settle_down();
        assert_eq!(host.answered(), [(ticket, Ok(()))]);
    }
    host.holds_jobs = true;
    for (request, answer) in [
        (queue("transient", false), Ok(())),
        (queue("q", true), Ok(())),
        (queue("q", false), Err(RefusalKind::PreconditionFailed)),
        (Request::DeleteUser { name: "nobody".to_owned() }, Err(RefusalKind::NotFound)),
    ] {
        let ticket = host.ask("/", request);
        host.turns();
        assert_eq!(host.answered(), [(ticket, answer)]);
    }
}

fn operators_are_answered_each_on_his_own(mut host: Host) {
    host.operate("/", Request::CreateVhost { name: "other".to_owned() }).unwrap();
    host.holds_jobs = true;
    let waiting = [("/", "a"), ("other", "a"), ("/", "b")]
        .map(|(vhost, name)| host.ask(vhost, queue(name, true)));
    let nowhere = host.ask("nowhere", queue("q", true));
    let at_once = host.ask("/", queue("transient", false));
    host.turns();
    assert_eq!(host.answered(), [(nowhere, Err(RefusalKind::NotFound)), (at_once, Ok(()))]);
    host.holds_jobs = false;
    host.settle_down();
    assert_eq!(host.answered(), waiting.map(|ticket| (ticket, Ok(()))));
    let client = host.client();
    assert_eq!((host.count(client, "a"), host.count(client, "b")), (0, 0));
}

fn operators_are_refused_what_a_failed_journal_cannot_keep(mut host: Host) {
    let client = host.client();
    host.operate("/", Request::CreateVhost { name: "other".to_owned() }).unwrap();
    host.disk.fail_sync(true);
    assert_eq!(host.operate("/", queue("q", true)), Err(RefusalKind::InDoubt));
    let unavailable = Err(RefusalKind::StorageUnavailable);
    host.disk.fail_sync(false);
    assert_eq!(host.operate("/", queue("r", true)), unavailable);
    host.operate("/", queue("transient", false)).unwrap();
    // Who stays is not disconnected either.
    let delete = Request::DeleteUser { name: "user".to_owned() };
    assert_eq!(host.operate("/", delete), unavailable);
    let delete = Request::DeleteVhost { name: "/".to_owned() };
    assert_eq!(host.operate("other", delete), unavailable);
    host.pass(60_000);
    assert!(!host.is_closed(client));
}

/// Has a node do what an operator may; it is flushed later.
fn administer(node: &mut Node, now: Time, vhost: &str, request: Request) {
    node.administer(now, vhost, request);
    while let Some((_, answer)) = node.next_admin_answer() {
        answer.expect("operators may");
    }
}

fn storing_connections_are_not_read_while_the_journal_is_congested(mut host: Host) {
    let client = confirming(&mut host);
    let idle = host.client();
    host.settle_down();
    host.holds_jobs = true;
    for _ in 0..40 {
        host.publish(client, "q", &[1; 10_000], true);
    }
    host.turns();
    assert!(!host.wants_read(client));
    assert!(host.wants_read(idle));
    host.holds_jobs = false;
    host.settle_down();
    assert!(host.wants_read(client));
}

fn who_asks_and_does_not_read_is_made_to_wait(mut host: Host) {
    let producer = confirming(&mut host);
    for number in 0..100u8 {
        host.publish(producer, "q", &[number; 10_000], true);
    }
    host.settle_down();
    let client = host.client_with_heartbeat(1);
    host.set_deaf(client, true);
    host.get(client, "q", 100);
    assert!(!host.wants_read(client));
    assert!(host.unsent(client) < host::EGRESS_BYTES_MAX * 4 + 11_000);
    // Nobody listens to it, so that its silence means nothing.
    host.pass(10_000);
    assert!(!host.is_closed(client));
    host.set_deaf(client, false);
    host.settle_down();
    assert!(host.wants_read(client));
    let bodies: Vec<u8> = host
        .heard(client)
        .into_iter()
        .filter_map(|said| match said {
            Said::Delivered(body, _) => Some(body[0]),
            _ => None,
        })
        .collect();
    assert_eq!(bodies, (0..100).collect::<Vec<u8>>());
    host.pass(10_000);
    assert!(host.is_closed(client), "it is silent on its own account now");
}

fn a_closed_node_starts_again_with_everything(mut host: Host) {
    let client = confirming(&mut host);
    for number in 0..100u8 {
        host.publish(client, "q", &[number; 1_000], true);
        host.settle_down();
    }
    assert!(host.node().journal().stats().checkpoints > 0, "nothing to recover from");
    host.close();
    let client = host.client();
    assert_eq!(host.count(client, "q"), 100);
    host.consume(client, "q", 0);
    let bodies: Vec<u8> = host
        .heard(client)
        .into_iter()
        .filter_map(|said| match said {
            Said::Delivered(body, false) => Some(body[0]),
            _ => None,
        })
        .collect();
    assert_eq!(bodies, (0..100).collect::<Vec<u8>>());
}

fn what_was_acknowledged_before_the_end_stays_away_however_much_it_is(mut host: Host) {
    let client = confirming(&mut host);
    for _ in 0..5_000 {
        host.publish(client, "q", b"message", true);
    }
    host.settle_down();
    host.consume(client, "q", 0);
    host.send_ack_up_to(client, 4_000);
    host.hand_over();
    host.close_at_once();
    let client = host.client();
    assert_eq!(host.count(client, "q"), 1_000);
}

fn messages_beyond_memory_are_read_back_in_order(mut host: Host) {
    let client = confirming(&mut host);
    for number in 0..200u8 {
        host.publish(client, "q", &[number; 2_000], true);
    }
    host.settle_down();
    // One at most is above the limit.
    assert!(host.node().engine().resident_bytes() <= RESIDENT_BYTES_MAX + 3_000);
    host.consume(client, "q", 0);
    host.settle_down();
    let heard = host.heard(client);
    let bodies: Vec<u8> = heard
        .iter()
        .filter_map(|said| match said {
            Said::Delivered(body, _) => Some(body[0]),
            _ => None,
        })
        .collect();
    assert_eq!(bodies, (0..200).collect::<Vec<u8>>());
}

fn what_was_put_off_is_written_where_it_is_to_be_read(mut host: Host) {
    let client = host.client();
    host.declare(client, "q");
    // Somewhat more than memory has room for: nobody waits for that to be written, nor does a checkpoint.
    let count = RESIDENT_BYTES_MAX as usize / 2_000 + 10;
    host.publish_many(client, "q", &[7; 2_000], false, count);
    host.settle_down();
    assert!(host.node().journal().stats().backlog_bytes > 0);
    let before = host.now;
    host.get(client, "q", count);
    let heard = host.heard(client);
    let got = heard.iter().filter(|said| matches!(said, Said::Delivered(..))).count();
    assert_eq!((got, host.now), (count, before), "{:?}", heard.last());
}

/// Takes `out` small messages from the queue `q`, and begins a checkpoint.
fn begin_checkpoint(host: &mut Host, out: usize) -> usize {
    let (publisher, consumer) = (confirming(host), host.client());
    host.declare(publisher, "other");
    host.consume(consumer, "q", 0);
    for _ in 0..out {
        host.publish(publisher, "q", b"small", true);
    }
    host.settle_down();
    while host.node().engine().is_taking_snapshot() {
        host.turn();
    }
    while !host.node().engine().is_taking_snapshot() {
        host.publish(publisher, "other", &[7; 10_000], true);
        host.turn();
    }
    publisher
}

fn a_checkpoint_takes_many_turns_and_others_are_served_meanwhile(mut host: Host) {
    let publisher = begin_checkpoint(&mut host, 600);
    let before = host.node().journal().stats().checkpoints;
    let (mut turns, mut confirmed) = (0, 0);
    host.heard(publisher);
    while host.node().engine().is_taking_snapshot() {
        host.publish(publisher, "other", b"meanwhile", true);
        host.turn();
        let heard = host.heard(publisher);
        confirmed += heard.iter().filter(|said| matches!(said, Said::Confirm(..))).count();
        turns += 1;
        assert!(turns < 200);
        let is_done = !host.node().engine().is_taking_snapshot();
        assert!(is_done || host.node().journal().stats().checkpoints == before);
    }
    assert!(turns >= 600 / host::SNAPSHOT_AT_ONCE - 1, "{turns} turns");
    assert!(confirmed >= turns / 5, "{confirmed} confirms in {turns} turns");
    host.settle_down();
    assert!(host.node().journal().stats().checkpoints > before);
    host.crash();
    let client = host.client();
    assert_eq!(host.count(client, "q"), 600);
}

fn a_crash_within_a_checkpoint_loses_nothing(mut host: Host) {
    for (published, turns) in [(100, 0), (200, 1), (300, 6), (400, 25)] {
        begin_checkpoint(&mut host, 100);
        for _ in 0..turns {
            host.turn();
        }
        host.crash();
        let client = host.client();
        assert_eq!(host.count(client, "q"), published, "{turns}");
    }
}

fn an_orderly_end_within_a_checkpoint_loses_nothing(mut host: Host) {
    for (published, turns) in [(100, 0), (200, 1), (300, 6), (400, 25)] {
        begin_checkpoint(&mut host, 100);
        for _ in 0..turns {
            host.turn();
        }
        host.close();
        let client = host.client();
        assert_eq!(host.count(client, "q"), published, "{turns}");
    }
}

fn a_publisher_that_outruns_a_consumer_is_read_from_a_moment_later(mut host: Host) {
    let (publisher, other, consumer) = (host.client(), host.client(), host.client());
    host.declare(publisher, "q");
    host.declare(publisher, "unused");
    host.consume(consumer, "q", 1);
    let body = vec![7; RESIDENT_BYTES_MAX as usize / 4];
    for _ in 0..3 {
        host.publish(other, "unused", b"nobody waits for it", false);
        host.publish(publisher, "q", &body, false);
    }
    host.settle_down();
    assert!(!host.wants_read(publisher));
    assert_eq!(host.waits_for(publisher), Some(crate::WaitsFor::Consumers));
    assert!(host.wants_read(other) && host.wants_read(consumer));
    let due = host.front().deadline().expect("it goes on");
    host.front().expire(due);
    assert!(host.wants_read(publisher));
}
