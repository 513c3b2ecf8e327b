//! What connections and users hold in memory: counted up and down, and refused where it is too much.

use super::TestHost;
use crate::interface::limits::Limits;
use crate::*;
use std::collections::BTreeMap;

/// What the definitions of each user take, with what was known before.
fn definitions(host: &mut TestHost, known: &mut BTreeMap<String, u64>) -> u64 {
    while let Some((user, bytes)) = host.engine.next_change_of_definitions() {
        known.insert(user.to_string(), bytes);
    }
    known.get("ann").copied().unwrap_or(0)
}

#[test]
fn definitions_count_as_their_users_until_they_are_gone() {
    let (mut host, mut known) = (TestHost::new(), BTreeMap::new());
    host.client("b");
    let mut before = 0;
    for line in [
        "b queue q durable",
        "b queue gone auto-delete",
        "b exchange x topic",
        "b exchange y topic",
        "b bind x q a.*.b",
        "b bind x gone #",
        "b bind x @y k",
    ] {
        host.run(line);
        host.run("flush");
        let bytes = definitions(&mut host, &mut known);
        assert!(bytes > before, "{line}");
        before = bytes;
    }
    host.run("b queue q durable");
    host.run("b bind x q a.*.b");
    assert_eq!(definitions(&mut host, &mut known), before);
    for line in ["b unbind x q a.*.b", "b delete gone", "b delete q"] {
        host.run(line);
        host.run("flush");
        let bytes = definitions(&mut host, &mut known);
        assert!(bytes < before, "{line}");
        before = bytes;
    }
    host.run("b delete-exchange x");
    host.run("b delete-exchange y");
    assert_eq!(definitions(&mut host, &mut known), 0);
    assert!(known.values().all(|bytes| *bytes == 0), "{known:?}");
}

#[test]
fn definitions_are_their_users_after_a_restart() {
    let mut host = TestHost::new();
    host.client("b");
    for line in [
        "b queue q durable",
        "b exchange x topic durable",
        "b bind x q a.*.b",
        "a queue nobodys durable",
    ] {
        host.run(line);
        host.run("flush");
    }
    let before = definitions(&mut host, &mut BTreeMap::new());
    for restart in ["restart", "restart clean"] {
        host.run(restart);
        let mut known = BTreeMap::new();
        assert_eq!(definitions(&mut host, &mut known), before, "{restart}");
        assert!(known[""] > 0, "{restart}");
    }
    for line in ["a delete q", "a delete-exchange x"] {
        host.run(line);
    }
    assert_eq!(definitions(&mut host, &mut BTreeMap::from([("ann".to_owned(), 1)])), 0);
}

#[test]
fn what_a_connection_holds_is_counted_by_kind_and_refused_where_it_is_too_much() {
    let mut host = TestHost::new();
    let channel = host.client("b");
    let held = |host: &TestHost, kind| {
        let mut held = HeldMemory::default();
        host.engine.add_held(channel.connection, &mut held);
        held.get(kind)
    };
    let nothing = MemoryKind::NAMES.map(|(kind, _)| held(&host, kind));
    host.run("b subscribe a.b 1");
    assert!(held(&host, MemoryKind::Subscriptions) > 100);
    host.engine.set_memory_short(channel.connection, true);
    let refused = host.run("b subscribe a.c 2").join(" ");
    assert!(refused.contains("refused MemoryShort: memory is short"), "{refused}");
    let refused = host.run("b queue q").join(" ");
    assert!(refused.contains("refused MemoryShort"), "{refused}");
    host.engine.set_memory_short(channel.connection, false);
    host.run("b unsubscribe 1");
    assert_eq!(MemoryKind::NAMES.map(|(kind, _)| held(&host, kind)), nothing);
}

#[test]
fn named_subscriptions_and_holders_are_counted_until_they_are_gone() {
    let (mut host, mut known) = (TestHost::new(), BTreeMap::new());
    let channel = host.client("b");
    host.run("b open s amq.topic x.*,y owner=c durable");
    host.run("flush");
    let one = definitions(&mut host, &mut known);
    assert!(one > 0);
    // The same with a selector instead of a key: neither adds up with what was there before.
    host.run("b open s amq.topic y owner=c durable filter=size_>_1");
    host.run("flush");
    let other = definitions(&mut host, &mut known);
    assert!(other > 0 && other != one);
    let held = |host: &TestHost| {
        let mut held = HeldMemory::default();
        host.engine.add_held(channel.connection, &mut held);
        held.get(MemoryKind::Channels)
    };
    let before = held(&host);
    host.run("b temporary queue holder t");
    assert!(held(&host) > before);
    host.run("b let-go holder");
    assert_eq!(held(&host), before);
    host.run("b delete-subscription s owner=c");
    host.run("flush");
    assert_eq!(definitions(&mut host, &mut known), 0);
}

#[test]
fn what_a_queue_knows_of_message_groups_is_its_declarers() {
    let mut host = TestHost::new();
    host.client("b");
    host.run("b queue q groups");
    host.run("flush");
    let without = definitions(&mut host, &mut BTreeMap::new());
    host.run("c consume q c granted");
    host.run("d consume q d granted");
    host.run("c grant c 1");
    host.fx.quiet = true;
    // Very many of one group, whose consumer takes no more, and very many groups.
    (0..1_000).for_each(|number| host.act_on(&format!("a publish - q g:{number}")));
    host.settle_down();
    let mut known = BTreeMap::from([("ann".to_owned(), without)]);
    let waiting = definitions(&mut host, &mut known);
    assert!(waiting > without + 20_000, "{waiting} after {without}");
    host.run("d grant d 5000");
    (0..3_000).for_each(|number| host.act_on(&format!("a publish - q {number}:{number}")));
    host.settle_down();
    assert!(definitions(&mut host, &mut known) > waiting + 20_000);
    host.run("a purge q");
    host.run("c close");
    host.run("d close");
    let left = definitions(&mut host, &mut known);
    assert!(left.abs_diff(without) < 5_000, "{left} after {without}");
    host.run("b delete q");
    host.run("flush");
    assert_eq!(definitions(&mut host, &mut known), 0);
}

#[test]
fn what_is_read_for_consumers_with_filters_counts_and_is_forgotten_once_all_is_seen() {
    // Nothing stays in memory, so that all is read beside the queue.
    let limits = Limits { resident_bytes_max: 0, ..Limits::default() };
    let mut host = TestHost::with(limits);
    host.client("b");
    host.run("b queue q durable");
    host.run("flush");
    let without = definitions(&mut host, &mut BTreeMap::new());
    let mut known = BTreeMap::from([("ann".to_owned(), without)]);
    host.fx.quiet = true;
    let body = "x".repeat(20_000);
    for colour in ["blue", "red", "red"] {
        host.run(&format!("a publish - q {body} persistent props=colour:{colour}"));
    }
    // It takes one, and waits with the other.
    host.run("c consume q c granted filter=colour_=_'red'");
    host.run("c grant c 1");
    let waiting = definitions(&mut host, &mut known);
    host.run("c grant c 2");
    host.run("time 1");
    let seen = definitions(&mut host, &mut known);
    assert!(waiting > without + 15_000 && seen < without + 10_000, "{without} {waiting} {seen}");
    let (_, queue) = host.engine.queues.iter().next().unwrap();
    assert!(queue.filtered.as_ref().unwrap().bytes() < 2_000);
    host.run("c cancel c");
    assert_eq!(definitions(&mut host, &mut known), without);
}
