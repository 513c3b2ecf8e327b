//! What a connection may ask for in one turn.

use super::broker::Broker;

#[test]
fn a_thousand_subscriptions_at_once_take_many_turns_and_all_are_made() {
    let mut broker = Broker::new(1);
    for name in ["a", "b"] {
        broker.connect(name, 0);
    }
    broker.say("a", "CONNECT {\"verbose\":true,\"user\":\"user\",\"pass\":\"secret\"}\r\n");
    broker.heard("a");
    let mut asked: String =
        (0..1000).map(|number| format!("SUB s.{number} {number}\r\n")).collect();
    asked += "PUB s.999 2\r\nhi\r\n";
    broker.send("a", &asked);
    let mut turns = 0;
    let mut said = String::new();
    while broker.nodes[0].has_work() {
        assert!(!broker.is_read("a"), "what it says next would overtake what waits");
        // Another one is served in between.
        broker.send("b", "PING\r\n");
        broker.turn();
        assert_eq!(broker.heard("b"), "PONG\r\n");
        said += &broker.heard("a");
        turns += 1;
    }
    assert!((10..40).contains(&turns), "{turns}");
    assert!(broker.is_read("a"));
    let (answers, message) = said.split_at(1001 * "+OK\r\n".len());
    assert_eq!(answers, "+OK\r\n".repeat(1001));
    assert_eq!(message, "MSG s.999 999 2\r\nhi\r\n");
}
