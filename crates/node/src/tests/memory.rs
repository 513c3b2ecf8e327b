//! What clients hold in memory: those that hold too much wait or are refused, and others go on.

use super::broker::Broker;
use super::host::{Host, Said, message};
use crate::memory::account::{Account, MemoryLimits};
use crate::storage::disk::NO_MEMORY;
use crate::{Node, WaitsFor};
use angarium_engine::{HeldMemory, MemoryKind, SlowConsumerPolicy};
use angarium_protocol::amqp091::codec::table::put_table;
use angarium_protocol::amqp091::codec::wire::Reader;
use angarium_protocol::amqp091::codec::{Method, Table};
use std::time::Duration;

const MIB: u64 = 1 << 20;

fn limit(nodes: &mut [Node], limits: MemoryLimits) {
    for node in nodes {
        node.options.memory = limits;
        node.memory = Account::new(limits);
    }
}

#[test]
fn subscriptions_that_hold_too_much_are_refused_wherever_the_user_is() {
    const REFUSED: &str = "-ERR 'maximum memory exceeded'";
    for shards in [1, 2] {
        let mut broker = Broker::new(shards);
        let (all, connection) = (64 * MIB, u64::MAX);
        limit(&mut broker.nodes, MemoryLimits { all, user: MIB, connection });
        broker.connect("a", 0);
        broker.connect("b", shards - 1);
        broker.say("b", "SUB before 1\r\nPING\r\n");
        assert!(!broker.heard("b").contains("-ERR"));
        for at in 0..200 {
            broker.say("a", &format!("SUB {at}.{} {at}\r\n", "a".repeat(3_900)));
        }
        broker.pass(Duration::from_secs(1));
        let refused = broker.heard("a").matches(REFUSED).count();
        assert!((40..120).contains(&refused), "{refused} of 200");
        broker.say("b", "SUB after 2\r\nPING\r\n");
        let heard = broker.heard("b");
        assert!(heard.contains(REFUSED) && heard.contains("PONG"), "{heard}");
        // What was there is there: it gets messages, however much the user holds.
        broker.say("a", "PUB before 1\r\nx\r\n");
        assert!(broker.heard("b").contains("MSG before 1 1"));
        broker.disconnect("a");
        broker.pass(Duration::from_secs(1));
        broker.say("b", "SUB after 2\r\nPING\r\n");
        assert!(!broker.heard("b").contains("-ERR"));
        broker.disconnect("b");
        broker.pass(Duration::from_secs(2));
        for node in &broker.nodes {
            assert_eq!(node.held_memory(), HeldMemory::default(), "{shards} shards");
        }
    }
}

#[test]
fn a_shortage_is_told_with_who_holds_most_and_so_is_its_end() {
    let mut broker = Broker::new(2);
    limit(&mut broker.nodes, MemoryLimits { all: MIB, ..MemoryLimits::NONE });
    // One connection alone may hold half of it.
    for name in ["a", "b"] {
        assert_eq!(broker.nodes[0].next_memory_news(), None);
        broker.connect(name, 1);
        for at in 0..150 {
            broker.say(name, &format!("SUB {at}.{} {at}\r\n", "a".repeat(3_900)));
        }
        broker.pass(Duration::from_secs(1));
    }
    let news = broker.nodes[0].next_memory_news().expect("most of it is held");
    assert!(news.is_short && news.held > MIB / 8 * 5, "{news:?}");
    let largest = news.largest.expect("somebody holds most");
    assert_eq!(&*largest.user, "user");
    assert!(largest.held > MIB / 2, "{largest:?}");
    broker.disconnect("a");
    broker.pass(Duration::from_secs(1));
    let news = broker.nodes[0].next_memory_news();
    assert_eq!(news.map(|news| news.is_short), Some(false));
    assert_eq!(broker.nodes[1].next_memory_news(), None);
}

/// What is declared is in memory once more while a checkpoint is made: that has room, too.
#[test]
fn definitions_leave_room_for_the_copy_that_a_checkpoint_makes() {
    const QUEUES: u64 = 20;
    const ARGUMENT: u64 = 50_000;
    let mut host = Host::new(1);
    let client = host.client();
    let mut arguments = Vec::new();
    put_table(&mut arguments, |table| table.text("x", &"y".repeat(ARGUMENT as usize)));
    let arguments = Table::read(&mut Reader::new(&arguments)).expect("it was written just now");
    for number in 0..QUEUES {
        let declare = Method::QueueDeclare {
            ticket: 0,
            queue: &number.to_string(),
            passive: false,
            durable: true,
            exclusive: false,
            auto_delete: false,
            no_wait: false,
            arguments,
        };
        host.send(client, 1, &declare);
        host.settle_down();
    }
    let held = host.node().held_memory().get(MemoryKind::Definitions);
    assert!((2 * QUEUES * ARGUMENT..5 * QUEUES * ARGUMENT / 2).contains(&held), "{held}");
}

#[test]
fn an_unfinished_message_waits_for_memory_and_is_then_refused() {
    for shards in [1, 2] {
        let mut host = Host::new(shards);
        limit(&mut host.nodes, MemoryLimits { connection: MIB, ..MemoryLimits::NONE });
        let (client, other) = (host.client(), host.client());
        host.declare(other, "q");
        host.transcript(client);
        let whole = message("q", &vec![7; 8 << 20], false);
        host.send_bytes(client, &whole[..3 << 20]);
        assert_eq!(host.waits_for(client), Some(WaitsFor::Memory));
        host.publish(other, "q", b"goes on", false);
        assert_eq!(host.count(other, "q"), 1);
        host.wait(Duration::from_secs(6));
        let heard = host.transcript(client).join("\n");
        assert!(heard.contains("311"), "{heard}");
        assert_eq!(host.waits_for(client), None);
        assert!(!host.is_closed(client));
    }
}

#[test]
fn who_holds_too_much_and_has_sent_part_of_a_line_is_read_again() {
    let mut broker = Broker::new(1);
    limit(&mut broker.nodes, MemoryLimits { connection: MIB / 4, ..MemoryLimits::NONE });
    broker.connect("a", 0);
    let sent: String =
        (0..130).map(|at| format!("SUB {at}.{} {at}\r\n", "a".repeat(3_900))).collect();
    for part in [&sent[..], &sent[..sent.len() - 100]] {
        broker.say("a", part);
    }
    assert_eq!(broker.waits_for("a"), Some(WaitsFor::Memory));
    broker.pass(Duration::from_secs(6));
    assert_eq!(broker.waits_for("a"), None);
    broker.heard("a");
    broker.say("a", " 1\r\nPING\r\n");
    let heard = broker.heard("a");
    assert!(heard.contains("PONG"), "{heard}");
}

#[test]
fn who_takes_nothing_for_long_is_disconnected_though_it_sends_heartbeats() {
    let mut host = Host::new(1);
    let (stalled, reader) = (host.client(), host.client());
    host.declare(stalled, "q");
    for client in [stalled, reader] {
        host.consume(client, "q", 0);
    }
    host.set_deaf(stalled, true);
    for _ in 0..10 {
        host.publish(reader, "q", b"never read", false);
    }
    for _ in 0..28 {
        host.heartbeat(stalled);
        host.wait(Duration::from_secs(1));
    }
    assert!(!host.is_closed(stalled));
    for _ in 0..4 {
        host.heartbeat(stalled);
        host.wait(Duration::from_secs(1));
    }
    assert!(host.is_closed(stalled));
    assert!(!host.is_closed(reader));
    assert_eq!(host.node().stats().stalled_disconnected, 1);
}

#[test]
fn a_client_whose_policy_keeps_it_may_take_nothing() {
    for (policy, stays) in
        [(SlowConsumerPolicy::DropOldest, true), (SlowConsumerPolicy::Disconnect, false)]
    {
        let mut broker = Broker::new(1);
        for name in ["slow", "p"] {
            broker.connect(name, 0);
        }
        let name = policy.name();
        broker.say("slow", &format!("SUB $SLOW_CONSUMER.{name}.s 1\r\nPING\r\n"));
        broker.set_deaf("slow", true);
        for _ in 0..100 {
            broker.say("p", &format!("PUB s 1000\r\n{}\r\n", "x".repeat(1_000)));
        }
        for _ in 0..80 {
            broker.pass(Duration::from_millis(500));
        }
        assert_eq!(broker.is_connected("slow"), stays, "{name}");
    }
}

#[test]
fn who_misses_two_heartbeats_is_ended_as_one_who_was_late() {
    let mut host = Host::new(1);
    let [silent, polite] = [0; 2].map(|_| host.client_with_heartbeat(1));
    let slots = [silent, polite].map(|client| host.slot(client));
    let ended = |host: &Host| slots.map(|slot| host.nodes[0].end_reason(slot).is_some());
    let late = |host: &Host| slots.map(|slot| host.nodes[0].was_late(slot));
    for _ in 0..4 {
        host.heartbeat(polite);
        let now = host.now.plus(Duration::from_millis(400));
        host.now = now;
        host.nodes[0].expire(now);
    }
    assert_eq!((ended(&host), late(&host)), ([false; 2], [false; 2]));
    host.now = host.now.plus(Duration::from_millis(1_500));
    host.heartbeat(polite);
    let now = host.now;
    host.nodes[0].expire(now);
    assert_eq!((ended(&host), late(&host)), ([true, false], [true, false]));
}

#[test]
fn messages_are_refused_while_the_system_refuses_memory() {
    let mut host = Host::new(2);
    let clients = [host.client_on(0), host.client_on(1)];
    host.declare(clients[0], "q");
    for (client, number) in clients.into_iter().zip(1..) {
        host.confirm_select(client);
        host.heard(client);
        let check = |host: &mut Host, tag, is_taken: bool, count: u32| {
            host.publish(client, "q", b"x", false);
            host.settle_down();
            assert!(
                host.heard(client).contains(&Said::Confirm(tag, is_taken)),
                "{tag} of {number}"
            );
            assert_eq!(host.count(client, "q"), count, "{tag} of {number}");
        };
        check(&mut host, 1, true, 2 * number - 1);
        for has_no_memory in [true, false] {
            let now = host.now;
            host.nodes.iter_mut().for_each(|node| node.set_no_memory(now, has_no_memory));
            host.settle_down();
            let blocked = if has_no_memory { Some(NO_MEMORY) } else { None };
            for node in &host.nodes {
                assert_eq!(node.storage.blocked.as_deref(), blocked, "{number}");
            }
            let (tag, count) = if has_no_memory { (2, 2 * number - 1) } else { (3, 2 * number) };
            check(&mut host, tag, !has_no_memory, count);
        }
    }
}
