//! Messages that arrive in one read reach whom they would reach if each came alone, on whichever shards
//! publishers and listeners are.

use super::broker::Broker;
use angarium_protocol::nats::codec::ServerOp;
use std::collections::BTreeMap;

const CLIENTS: [&str; 4] = ["a", "b", "c", "d"];
const SUBJECTS: [&str; 3] = ["s", "s.t", "x"];

/// Numbers that look random.
struct Odds(u64);

impl Odds {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }

    /// Operations that a client sends at once: mostly messages, many to the same subject. Members of groups
    /// do not end by a count: other shards would hear of that at other times, and share out turns anew.
    fn operations(&mut self) -> Vec<String> {
        let mut subject = self.one_of(&SUBJECTS);
        let mut operations = Vec::new();
        for number in 0..1 + self.below(8) {
            let sid = self.below(3);
            let member = 3 + self.below(3);
            operations.push(match self.below(24) {
                0 => format!("SUB {} {sid}\r\n", self.one_of(&["s", "s.*", ">", "x"])),
                1 => format!("SUB {subject} work {member}\r\n"),
                2 => format!("UNSUB {}\r\n", self.one_of(&["0", "1", "2", "3", "4", "5"])),
                3 => format!("UNSUB {sid} {}\r\n", 1 + self.below(6)),
                4 => "PING\r\n".to_owned(),
                5 => format!("HPUB {subject} 21 22\r\nNATS/1.0\r\nName: 5\r\n\r\n{number}\r\n"),
                6 => format!("PUB {subject} r.1 1\r\n{number}\r\n"),
                7 => format!("PUB {subject} 0\r\n\r\n"),
                _ => format!("PUB {subject} 1\r\n{number}\r\n"),
            });
            if self.below(6) == 0 {
                subject = self.one_of(&SUBJECTS);
            }
        }
        operations
    }
}

/// What was heard, by subscription: of each, messages keep their order. Those of one publisher to several
/// may come by way of several shards.
fn by_subscription(heard: &str) -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut rest = heard.as_bytes();
    while !rest.is_empty() {
        let (op, bytes) = ServerOp::decode(rest, 1 << 20).unwrap().expect("it came whole");
        let sid = match &op {
            ServerOp::Message(message) => String::from_utf8_lossy(message.sid).into_owned(),
            _ => String::new(),
        };
        all.entry(sid).or_default().push(String::from_utf8_lossy(&rest[..bytes]).into_owned());
        rest = &rest[bytes..];
    }
    all
}

#[test]
fn messages_in_a_row_are_heard_as_if_each_came_alone() {
    for shards in [1, 2, 3] {
        let mut odds = Odds(shards as u64);
        for round in 0..12 {
            let [mut at_once, mut alone] = [Broker::new(shards), Broker::new(shards)];
            for (at, name) in CLIENTS.iter().enumerate() {
                at_once.connect(name, at);
                alone.connect(name, at);
            }
            for _ in 0..60 {
                let (name, operations) = (odds.one_of(&CLIENTS), odds.operations());
                at_once.say(name, &operations.concat());
                for operation in &operations {
                    alone.say(name, operation);
                }
                for listener in CLIENTS {
                    let heard = by_subscription(&at_once.heard(listener));
                    let expected = by_subscription(&alone.heard(listener));
                    let what = format!("{listener} of {shards} shards, {round}: {operations:?}");
                    assert_eq!(heard, expected, "{what}");
                }
            }
        }
    }
}
