//! What a session or a connection leaves behind is not its successor's.

use super::broker::Broker;
use super::direct_host::TestHost;
use super::host::{Host, Said};
use angarium_engine::{
    Arguments, Binding, BindingTarget, Durability, QueueOptions, Request, ShardId,
    SlowConsumerPolicy, Time,
};
use angarium_protocol::amqp091::codec::{Method, Table};
use angarium_protocol::amqp091::frame;
use angarium_protocol::{Peer, Protocol};
use std::time::Duration;

#[test]
fn deliveries_that_come_too_late_for_their_session_take_no_room_from_the_next() {
    for shards in [1, 3] {
        let mut host = Host::new(shards);
        let consumer = host.client();
        host.declare(consumer, "q");
        let publisher = host.client_on(0);
        host.consume(consumer, "q", 0);
        for round in 0..20 {
            host.publish(publisher, "q", &[7; 2_000], false);
            // Home has handed it out, and it is on its way; the client closes its channel meanwhile.
            host.node().end_turn(Time(1_000_000_000));
            let close =
                Method::ChannelClose { reply_code: 200, reply_text: "", class_id: 0, method_id: 0 };
            host.send(consumer, 1, &close);
            host.settle_down();
            host.heard(consumer);
            host.send(consumer, 1, &Method::ChannelOpen { out_of_band: "" });
            host.settle_down();
            host.consume(consumer, "q", 0);
            let heard = host.heard(consumer);
            let got = heard.iter().filter(|said| matches!(said, Said::Delivered(..))).count();
            assert_eq!(got, round + 1, "{shards} shards, round {round}");
        }
    }
}

#[test]
fn a_newcomer_is_not_disconnected_for_the_one_before_it() {
    let mut host = TestHost::new(|options| {
        options.quota.slow_consumer_policy = Some(SlowConsumerPolicy::Disconnect)
    });
    let (slow, publisher) = (host.connect(""), host.connect(""));
    host.send(slow, "SUB s 1\r\n");
    host.takes(slow, 0);
    let message = format!("PUB s 1000\r\n{:1000}\r\n", "");
    for _ in 0..40 {
        host.send(publisher, &message.repeat(5));
    }
    let slot = host.clients[slow].slot.take().unwrap();
    assert_eq!(host.node.effects.given_up, [slot]);
    // In the same turn it goes, and somebody else comes.
    host.node.disconnected(host.now, slot);
    let peer = Peer { protocol: Protocol::Nats, local: true, ..Peer::default() };
    let next = host.node.connected(host.now, peer);
    assert_eq!(next, slot);
    host.node.end_turn(host.now);
    assert_eq!(host.node.end_reason(next), None);
}

#[test]
fn a_newcomer_does_not_wait_for_the_end_of_subscriptions_of_the_one_before_it() {
    for count in [10, 10_000] {
        let mut broker = Broker::new(2);
        broker.connect("a", 1);
        for part in 0..count / 10 {
            let all: String =
                (0..10).map(|at| format!("SUB x.{part}.{at} {part}-{at}\r\n")).collect();
            broker.send("a", &all);
        }
        broker.settle_down();
        let turns = broker.replace("a", "b");
        assert!(turns < 10, "PONG after {turns} turns, behind {count} subscriptions");
    }
}

#[test]
fn one_who_reads_slowly_does_not_gather_those_that_waited_for_it() {
    let mut host = TestHost::new(|options| {
        options.quota.slow_consumer_policy = Some(SlowConsumerPolicy::DropOldest)
    });
    let (slow, quick, publisher) = (host.connect(""), host.connect(""), host.connect(""));
    host.send(slow, "SUB s 1\r\n");
    host.send(quick, "SUB q 1\r\n");
    host.takes(slow, 0);
    let slot = host.clients[slow].slot.unwrap();
    let from = host.clients[publisher].slot.unwrap();
    let message = format!("PUB s 1000\r\n{:1000}\r\n", "");
    let mut most = 0;
    for _ in 0..500 {
        if host.node.wants_read(from) {
            host.send(publisher, &format!("{}PUB q 1\r\nx\r\n", message.repeat(4)));
        }
        host.turns();
        // It takes a little each time, and stays behind.
        let count = host.node.outgoing(slot).len().min(10);
        host.node.sent(slot, count);
        host.now = host.now.plus(Duration::from_millis(1));
        host.node.expire(host.now);
        most = most.max(host.node.effects.outbox[slot.0 as usize].waiting.count());
    }
    assert_eq!(most, 1);
}

/// A virtual host with a queue that catches many subjects.
fn vhost_with_bindings(host: &mut Host, count: usize) {
    host.operate("/", Request::CreateVhost { name: "other".to_owned() }).unwrap();
    let all = || ".*".to_owned();
    let (user, vhost) = ("user".to_owned(), "other".to_owned());
    let permit =
        Request::SetPermissions { user, vhost, configure: all(), write: all(), read: all() };
    host.operate("/", permit).unwrap();
    let options = QueueOptions { durability: Durability::Memory, ..QueueOptions::default() };
    let queue = Request::DeclareQueue { name: "q".to_owned(), options: Some(options) };
    host.operate("other", queue).unwrap();
    for number in 0..count {
        let binding = Binding {
            source: "amq.topic".to_owned(),
            target: BindingTarget::Queue("q".to_owned()),
            key: format!("key.{number}"),
            arguments: Arguments::new(),
            filter: None,
            not_from: None,
        };
        host.operate("other", Request::Bind(binding)).unwrap();
    }
}

#[test]
fn one_that_comes_to_a_virtual_host_while_its_revocation_is_told_ends_with_it() {
    let mut host = Host::new(2);
    vhost_with_bindings(&mut host, 1_500);
    // A client of the other shard that has logged in and not said where it wants to.
    let now = host.now;
    let slot = host.nodes[1].connected(now, Peer { local: true, ..Peer::default() });
    let say = |host: &mut Host, method: &Method<'_>| {
        let mut bytes = Vec::new();
        method.write_frame(0, &mut bytes);
        host.nodes[1].received(now, slot, &bytes);
    };
    host.nodes[1].received(now, slot, &frame::PROTOCOL_HEADER);
    let client_properties = Table::default();
    let (mechanism, response, locale) = ("PLAIN", &b"\0user\0secret"[..], "en_US");
    let login = Method::ConnectionStartOk { client_properties, mechanism, response, locale };
    say(&mut host, &login);
    host.settle_down();
    say(&mut host, &Method::ConnectionTuneOk { channel_max: 10, frame_max: 131_072, heartbeat: 0 });
    host.settle_down();
    // Its virtual host is deleted, which takes more than one batch to say.
    host.ask("/", Request::DeleteVhost { name: "other".to_owned() });
    let parcels_of = |host: &mut Host, shard: usize| -> Vec<_> {
        host.nodes[shard].end_turn(now);
        std::iter::from_fn(|| host.nodes[shard].next_batch()).collect()
    };
    // The other shard has nobody there yet who has to go first.
    for (from, to) in [(0, 1), (1, 0)] {
        for (_, batch) in parcels_of(&mut host, from) {
            host.nodes[to].arrived(now, ShardId(from as u8), batch);
        }
    }
    let batches = parcels_of(&mut host, 0);
    assert!(batches.len() > 1);
    let open = Method::ConnectionOpen { virtual_host: "other", capabilities: "", insist: false };
    for (at, (_, batch)) in batches.into_iter().enumerate() {
        host.nodes[1].arrived(now, ShardId(0), batch);
        if at == 0 {
            say(&mut host, &open);
        }
        host.nodes[1].end_turn(now);
    }
    host.settle_down();
    assert_eq!(host.nodes[1].end_reason(slot), Some("virtual host 'other' was deleted"));
}

#[test]
fn who_comes_while_the_broker_stops_is_told_to_go() {
    let mut host = TestHost::new(|_| {});
    let peer = || Peer { protocol: Protocol::Nats, local: true, ..Peer::default() };
    let early = host.node.connected(host.now, peer());
    let connect = format!("{}}}\r\n", super::direct_host::CONNECT);
    host.node.received(host.now, early, connect.as_bytes());
    host.node.end_turn(host.now);
    // Its password is being checked when the broker begins to stop.
    host.node.shutdown(host.now, "the broker stops");
    let asked = host.node.next_verification().unwrap();
    let user = asked.credentials.user().to_owned();
    let right = Ok(angarium_protocol::Identity { user });
    host.node.verified(host.now, asked.connection, asked.serial, right);
    let late = host.node.connected(host.now, peer());
    host.pass(Duration::from_secs(2));
    for slot in [early, late] {
        assert_eq!(host.node.end_reason(slot), Some("the broker stops"));
    }
}

#[test]
fn who_is_told_to_go_has_the_time_that_it_was_given_and_no_more() {
    let mut host = TestHost::new(|_| {});
    let client = host.connect("");
    let slot = host.clients[client].slot.unwrap();
    // The sweeps of half a second began a while ago.
    host.pass(Duration::from_millis(300));
    host.node.close_connection(host.now, slot, "to go");
    let due = host.now.plus(Duration::from_millis(500));
    for (now, reason) in [(Time(due.0 - 1), None), (due, Some("to go"))] {
        assert!(host.node.deadline().is_some_and(|deadline| deadline <= due));
        host.node.expire(now);
        assert_eq!(host.node.end_reason(slot), reason);
    }
}

#[test]
fn a_revocation_that_is_refused_leaves_nobody_halfway() {
    for shards in [1, 3] {
        let mut host = Host::new(shards);
        host.operate("/", Request::CreateVhost { name: "other".to_owned() }).unwrap();
        let client = host.client();
        // An administrator's request in the virtual host is not answered yet: it is in use.
        host.holds_jobs = true;
        host.ask("/", super::queue("x", true));
        host.ask("other", Request::DeleteVhost { name: "/".to_owned() });
        host.settle_down();
        host.holds_jobs = false;
        host.settle_down();
        let refused: Vec<_> =
            host.answered().into_iter().map(|(_, answer)| answer.is_err()).collect();
        assert!(refused.contains(&true), "{refused:?}");
        assert!(host.is_closed(client), "{shards} shards");
    }
}

#[test]
fn one_that_comes_for_who_stored_messages_is_not_one_who_does() {
    let mut host = Host::new(2);
    let client = host.client_on(1);
    host.declare(client, "q");
    host.publish(client, "q", b"kept", true);
    // Home has taken it, and what it says of that is on its way; the client goes meanwhile.
    host.hand_over();
    let slot = host.slot(client);
    let now = host.now;
    host.nodes[1].disconnected(now, slot);
    let next = host.nodes[1].connected(now, Peer { local: true, ..Peer::default() });
    assert_eq!(next, slot);
    host.turns();
    let stores = host.nodes[1].connections.slots[slot.0 as usize].as_ref().unwrap().stores;
    assert!(!stores);
}
