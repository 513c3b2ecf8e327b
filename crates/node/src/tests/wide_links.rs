//! A message that reaches very many on another shard holds up what its own connection sends next, and nothing
//! else that comes from there.

use super::broker::Broker;
use super::frames::message_to;
use super::host::{Host, Said, options};
use crate::Options;
use crate::WaitsFor;
use angarium_engine::limits::Limits;
use angarium_engine::{Binding, BindingTarget, Request};
use angarium_journal::FaultyStorage;

/// Subscribers, of which eight get a message in a turn.
const SUBSCRIBERS: usize = 200;

/// A client `s` on the second shard that subscribes often to `wide`, and once to `narrow`, `i` to `other`;
/// `p` and `q` on the first.
fn broker() -> Broker {
    let mut broker = Broker::narrow(2);
    for (name, shard) in [("s", 1), ("i", 1), ("p", 0), ("q", 0)] {
        broker.connect(name, shard);
    }
    let subs: String = (0..SUBSCRIBERS).map(|number| format!("SUB wide {number}\r\n")).collect();
    broker.say("s", &subs);
    broker.say("s", "SUB narrow n\r\n");
    broker.say("i", "SUB other o\r\n");
    broker
}

#[test]
fn what_other_connections_send_passes_a_message_to_very_many() {
    let mut broker = broker();
    broker.send("p", &"PUB wide 1\r\nx\r\n".repeat(5));
    broker.send("p", "PUB narrow 1\r\ny\r\n");
    broker.turn();
    for number in 0..10 {
        broker.send("q", &format!("PUB other 1\r\n{number}\r\n"));
        broker.turn();
        broker.turn();
        assert_eq!(broker.heard("i"), format!("MSG other o 1\r\n{number}\r\n"));
        assert!(broker.is_read("q"), "{:?}", broker.waits_for("q"));
        assert!(!broker.is_read("p"));
        assert_eq!(broker.waits_for("p"), Some(WaitsFor::NextTurn));
    }
    let before = broker.heard("s");
    assert!(before.matches("MSG wide").count() < SUBSCRIBERS, "it is far from done");
    broker.send("p", "PING\r\n");
    broker.settle_down();
    let heard = before + &broker.heard("s");
    assert_eq!(heard.matches("MSG wide").count(), 5 * SUBSCRIBERS);
    assert!(heard.ends_with("MSG narrow n 1\r\ny\r\n"), "what comes behind it stays behind it");
    assert!(broker.is_read("p"));
    assert_eq!(broker.heard("p"), "PONG\r\n");
}

#[test]
fn messages_of_one_connection_keep_their_order_behind_it() {
    let mut broker = broker();
    let mut sent = String::new();
    for number in 0..300 {
        let subject = if number % 100 == 0 { "wide" } else { "narrow" };
        sent += &format!("PUB {subject} 3\r\n{number:03}\r\n");
    }
    broker.send("p", &sent);
    broker.settle_down();
    let heard = broker.heard("s");
    let numbers = heard.lines().skip(1).step_by(2).map(|it| it.parse::<u32>().unwrap());
    let numbers: Vec<u32> = numbers.collect();
    assert_eq!(numbers.len(), 3 * SUBSCRIBERS + 297);
    assert!(numbers.is_sorted());
}

#[test]
fn who_has_the_place_of_a_publisher_that_left_goes_on() {
    let mut broker = broker();
    broker.send("p", &"PUB wide 1\r\nx\r\n".repeat(3));
    broker.turn();
    broker.turn();
    assert!(!broker.is_read("p"));
    broker.replace("p", "new");
    broker.say("new", "PUB other 3\r\nnew\r\n");
    assert_eq!(broker.heard("i"), "MSG other o 3\r\nnew\r\n");
    assert_eq!(broker.heard("s").matches("MSG wide").count(), 3 * SUBSCRIBERS);
    assert!(broker.is_read("new"));
}

#[test]
fn what_others_publish_to_queues_passes_a_message_to_very_many() {
    let mut host = Host::on(FaultyStorage::new(1), 2, |shard, shards| {
        let Options { limits, .. } = options(shard, shards);
        let limits = Limits { queues_at_once: 8, ..limits };
        Options { limits, ..options(shard, shards) }
    });
    let (wide, other) = (host.client(), host.client());
    for number in 0..100 {
        host.declare(wide, &format!("w{number}"));
        let bind = Request::Bind(Binding {
            source: "amq.fanout".to_owned(),
            target: BindingTarget::Queue(format!("w{number}")),
            key: "k".to_owned(),
            arguments: angarium_engine::Arguments::new(),
            filter: None,
            not_from: None,
        });
        host.operate("/", bind).unwrap();
    }
    host.declare(other, "narrow");
    host.confirm_select(wide);
    host.confirm_select(other);
    host.heard(wide);
    host.heard(other);
    for _ in 0..3 {
        host.send_bytes(wide, &message_to("amq.fanout", "k", b"x", false));
    }
    host.publish(wide, "narrow", b"behind", false);
    host.turn();
    host.publish(other, "narrow", b"first", false);
    for _ in 0..4 {
        host.turn();
    }
    assert_eq!(host.heard(other), [Said::Confirm(1, true)]);
    assert_eq!(host.waits_for(wide), Some(WaitsFor::NextTurn));
    assert_eq!(host.heard(wide), []);
    host.settle_down();
    assert_eq!(host.count(other, "w99"), 3);
    assert_eq!(host.count(other, "narrow"), 2);
    host.get(other, "narrow", 2);
    let bodies: Vec<Vec<u8>> = host
        .heard(other)
        .into_iter()
        .filter_map(|said| match said {
            Said::Delivered(body, _) => Some(body),
            _ => None,
        })
        .collect();
    assert_eq!(bodies, [b"first".to_vec(), b"behind".to_vec()]);
    assert!(host.wants_read(wide));
}
