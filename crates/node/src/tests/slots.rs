//! What a session or a connection leaves behind is not its successor's.

use super::broker::Broker;
use super::host::{Host, Said};
use super::takers::World;
use angarium_engine::{Laggard, Time};
use angarium_protocol::amqp091::codec::Method;
use angarium_protocol::{Peer, Protocol};

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
    let mut world = World::new(|options| options.quota.laggard = Some(Laggard::Disconnect));
    let (slow, publisher) = (world.connect(""), world.connect(""));
    world.send(slow, "SUB s 1\r\n");
    world.takes(slow, 0);
    let message = format!("PUB s 1000\r\n{:1000}\r\n", "");
    for _ in 0..40 {
        world.send(publisher, &message.repeat(5));
    }
    let slot = world.clients[slow].slot.take().unwrap();
    assert_eq!(world.node.world.laggards, [slot]);
    // In the same turn it goes, and somebody else comes.
    world.node.disconnected(world.now, slot);
    let peer = Peer { protocol: Protocol::Nats, local: true, ..Peer::default() };
    let next = world.node.connected(world.now, peer);
    assert_eq!(next, slot);
    world.node.end_turn(world.now);
    assert_eq!(world.node.end_reason(next), None);
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
