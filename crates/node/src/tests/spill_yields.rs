//! Direct messages that wait on the disk are there once, and make room there for persistent ones.

use super::broker::Broker;
use angarium_engine::{Arguments, Binding, BindingTarget, QueueOptions, Request};
use angarium_journal::{State, Storage};
use std::time::Duration;

/// A broker with a durable queue that catches `kept`, on each shard a client that takes nothing and for
/// which `s` waits on the disk, and a publisher `p` on the last one.
fn broker(shards: usize) -> (Broker, Vec<String>) {
    let mut broker = Broker::new(shards);
    let options = Some(QueueOptions { durable: true, ..QueueOptions::default() });
    broker.administer("/", Request::DeclareQueue { name: "q".to_owned(), options });
    let binding = Binding {
        source: "amq.topic".to_owned(),
        target: BindingTarget::Queue("q".to_owned()),
        key: "kept".to_owned(),
        arguments: Arguments::new(),
        filter: None,
        not_from: None,
    };
    broker.administer("/", Request::Bind(binding));
    let slow: Vec<String> = (0..shards).map(|shard| format!("slow{shard}")).collect();
    for (shard, name) in slow.iter().enumerate() {
        broker.connect(name, shard);
        broker.say(name, "SUB $SLOW_CONSUMER.spool.s 1\r\n");
        broker.set_deaf(name, true);
    }
    broker.connect("p", shards - 1);
    (broker, slow)
}

fn publish(broker: &mut Broker, subject: &str, messages: usize) {
    const AT_ONCE: usize = 10;
    for first in (0..messages).step_by(AT_ONCE) {
        let message = |number| format!("PUB {subject} 1000\r\n{number:1000}\r\n");
        broker.say("p", &(first..first + AT_ONCE).map(message).collect::<String>());
    }
}

/// Bytes that wait for clients on the disk.
fn spilled(broker: &Broker) -> u64 {
    broker.spill.used()
}

/// How many messages a client got, and how many it was told that it missed.
fn got(broker: &mut Broker, name: &str) -> (usize, usize) {
    let heard = broker.heard(name);
    let told = heard.lines().filter_map(|line| line.strip_prefix("Angarium-Missed: "));
    let missed = told.map(|count| count.parse::<usize>().unwrap()).sum();
    (heard.matches("MSG s 1 ").count(), missed)
}

#[test]
fn a_full_journal_gets_the_room_of_what_waits_for_slow_clients() {
    const EACH: usize = 8_000;
    for shards in [1, 3] {
        let (mut broker, slow) = broker(shards);
        publish(&mut broker, "s", EACH);
        let room = spilled(&broker);
        assert!(room > 4 << 20, "{room}");
        broker.disk.set_capacity(Some(broker.disk.used()));
        let mut kept = 0;
        while broker.nodes[0].storage.state == State::Ready && kept < 2_000 {
            publish(&mut broker, "kept", 10);
            kept += 10;
        }
        assert_eq!(broker.nodes[0].storage.state, State::Full);
        assert!(broker.nodes.iter().all(|node| node.storage.blocked.is_some()));
        assert_eq!(broker.spill.list().unwrap(), [""; 0], "{shards} shards");
        // What it has so, it has within a second.
        broker.disk.set_capacity(Some(broker.disk.used() + room));
        broker.pass(Duration::from_secs(1));
        broker.pass(Duration::from_secs(1));
        assert_eq!(broker.nodes[0].storage.state, State::Ready);
        assert!(broker.nodes.iter().all(|node| node.storage.blocked.is_none()));
        // For a while messages for slow clients wait in memory, if they fit it.
        publish(&mut broker, "s", EACH);
        for _ in 0..50 {
            broker.pass(Duration::from_secs(1));
        }
        assert_eq!(spilled(&broker), 0, "{shards} shards");
        for _ in 0..20 {
            broker.pass(Duration::from_secs(1));
        }
        assert!(spilled(&broker) > room / 2, "{shards} shards");
        for name in &slow {
            broker.set_deaf(name, false);
        }
        publish(&mut broker, "s", 10);
        for name in &slow {
            let (heard, missed) = got(&mut broker, name);
            assert_eq!(heard + missed, 2 * EACH + 10, "{name}");
            assert!(heard > EACH && missed > EACH / 2, "{name}: {heard} {missed}");
        }
        assert_eq!(spilled(&broker), 0, "{shards} shards");
    }
}
