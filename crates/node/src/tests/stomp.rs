//! STOMP over several shards: queues, transactions and subscriptions are the same for clients of every shard.

use super::broker::Broker;
use angarium_protocol::Protocol;
use std::time::Duration;

/// A broker with clients of STOMP; each is on another shard.
struct Clients {
    broker: Broker,
}

impl Clients {
    fn connect(shards: usize, names: &[&str]) -> Clients {
        let mut clients = Clients { broker: Broker::new(shards) };
        for (shard, name) in names.iter().enumerate() {
            clients.broker.accept(name, shard, Protocol::Stomp);
            let connect = "CONNECT|accept-version:1.2|login:user|passcode:secret||";
            clients.say(name, connect, "CONNECTED");
        }
        clients
    }

    /// Lets a client send a frame, and checks which commands it gets for it, and how they go on.
    #[track_caller]
    fn say(&mut self, name: &str, frame: &str, expected: &str) {
        self.broker.say(name, &format!("{}\0", frame.replace('|', "\n")));
        self.hears(name, expected);
    }

    /// Checks what a client has got: the beginning of each frame and its body.
    #[track_caller]
    fn hears(&mut self, name: &str, expected: &str) {
        let heard = self.broker.heard(name);
        let shown = |frame: &str| {
            let (head, body) = frame.split_once("\n\n").unwrap_or((frame, ""));
            let word = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
            match head.lines().next().unwrap_or_default() {
                "RECEIPT" => format!("receipt {}", word("receipt-id:").unwrap_or_default()),
                "ERROR" => format!("error {}", word("message:").unwrap_or_default()),
                "MESSAGE" => body.to_owned(),
                other => other.to_owned(),
            }
        };
        let frames: Vec<_> = heard.split_terminator('\0').map(shown).collect();
        assert_eq!(frames.join(", "), expected, "{name}");
    }

    /// The id of the last message of a client's frames.
    fn take_message(&mut self, name: &str) -> String {
        let heard = self.broker.heard(name);
        let id = heard.lines().rev().find_map(|line| line.strip_prefix("ack:"));
        id.expect("a message").to_owned()
    }
}

#[test]
fn queues_are_the_same_on_every_shard() {
    for shards in [1, 2, 3] {
        let mut all = Clients::connect(shards, &["a", "b", "c"]);
        // It is made by who sends, and its receipt comes from home.
        all.say("b", "SEND|destination:/queue/q|persistent:true|receipt:1||one", "receipt 1");
        all.say("c", "SUBSCRIBE|id:0|destination:/queue/q|receipt:2||", "receipt 2, one");
        all.say("a", "SEND|destination:/queue/q||two", "");
        all.hears("c", "two");
        all.say(
            "b",
            "SEND|destination:/queue/q|x-max-length:5||three",
            "error precondition_failed",
        );
        assert!(!all.broker.is_connected("b"), "it is closed behind its ERROR");
        all.say("c", "UNSUBSCRIBE|id:0|receipt:3||", "receipt 3");
        all.say("c", "SEND|destination:/amq/queue/none||x", "error not_found");
    }
}

#[test]
fn topics_reach_subscribers_of_every_shard() {
    for shards in [1, 2, 3] {
        let mut all = Clients::connect(shards, &["a", "b", "c"]);
        all.say("a", "SUBSCRIBE|id:0|destination:/topic/t.*|receipt:1||", "receipt 1");
        let direct =
            "SUBSCRIBE|id:0|destination:/topic/t.>|slow-consumer-policy:drop-new|receipt:1||";
        all.say("b", direct, "receipt 1");
        all.say("c", "SEND|destination:/topic/t.x||news", "");
        all.hears("a", "news");
        all.hears("b", "news");
        all.broker.connect("n", 2);
        all.broker.say("n", "PUB t.y 2\r\nhi\r\n");
        all.hears("a", "hi");
        all.hears("b", "hi");
    }
}

#[test]
fn transactions_and_acknowledgements_go_home() {
    for shards in [1, 2, 3] {
        let mut all = Clients::connect(shards, &["a", "b", "c"]);
        let subscribe = "SUBSCRIBE|id:0|destination:/queue/q|ack:client-individual|receipt:1||";
        all.say("b", subscribe, "receipt 1");
        all.broker.say("c", "SEND\ndestination:/queue/q\n\nx\0");
        let id = all.take_message("b");
        all.say("b", "BEGIN|transaction:t||", "");
        all.say("b", &format!("ACK|id:{id}|transaction:t|receipt:2||"), "");
        all.say("b", "SEND|destination:/queue/done|transaction:t||y", "");
        all.say("a", "SUBSCRIBE|id:0|destination:/queue/done|receipt:1||", "receipt 1");
        all.say("b", "COMMIT|transaction:t|receipt:3||", "receipt 2, receipt 3");
        all.hears("a", "y");
        // It is settled: nothing comes again.
        all.broker.disconnect("b");
        all.say("c", "SUBSCRIBE|id:0|destination:/queue/q|receipt:1||", "receipt 1");
        all.broker.say("a", "SEND\ndestination:/queue/q\n\nz\0");
        all.hears("c", "z");
        all.say("c", "DISCONNECT|receipt:4||", "receipt 4");
        all.broker.pass(Duration::from_secs(6));
        assert!(!all.broker.is_connected("c"));
    }
}
