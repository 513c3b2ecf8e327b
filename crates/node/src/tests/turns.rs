//! What a connection may ask for in one turn.

use super::broker::Broker;
use crate::Node;
use angarium_engine::{ConnectionId, Time};
use angarium_protocol::{Peer, Protocol};

const NOW: Time = Time(1_000_000_000);

fn connect(node: &mut Node) -> ConnectionId {
    let peer = Peer { protocol: Protocol::Nats, address: "here:1".to_owned(), ..Peer::default() };
    let id = node.connected(NOW, peer);
    node.received(NOW, id, b"CONNECT {\"verbose\":true,\"user\":\"user\",\"pass\":\"secret\"}\r\n");
    node.end_turn(NOW);
    let asked = node.next_verification().expect("it wants to log in");
    let identity = angarium_protocol::Identity { user: asked.credentials.user().to_owned() };
    node.verified(NOW, asked.connection, asked.serial, Ok(identity));
    node.end_turn(NOW);
    heard(node, id);
    id
}

/// What it was sent.
fn heard(node: &mut Node, id: ConnectionId) -> String {
    let bytes = node.outgoing(id).to_vec();
    node.sent(id, bytes.len());
    String::from_utf8(bytes).expect("only text is said here")
}

#[test]
fn a_thousand_subscriptions_at_once_take_many_turns_and_all_are_made() {
    let mut broker = Broker::new(1);
    let node = &mut broker.nodes[0];
    let (id, other) = (connect(node), connect(node));
    let mut asked: String =
        (0..1000).map(|number| format!("SUB s.{number} {number}\r\n")).collect();
    asked += "PUB s.999 2\r\nhi\r\n";
    node.received(NOW, id, asked.as_bytes());
    let mut turns = 0;
    let mut said = String::new();
    while node.has_work() {
        assert!(!node.wants_read(id), "what it says next would overtake what waits");
        // Another one is served in between.
        node.received(NOW, other, b"PING\r\n");
        node.end_turn(NOW);
        assert_eq!(heard(node, other), "PONG\r\n");
        said += &heard(node, id);
        turns += 1;
    }
    assert!((10..40).contains(&turns), "{turns}");
    assert!(node.wants_read(id));
    let (answers, message) = said.split_at(1001 * "+OK\r\n".len());
    assert_eq!(answers, "+OK\r\n".repeat(1001));
    assert_eq!(message, "MSG s.999 999 2\r\nhi\r\n");
}
