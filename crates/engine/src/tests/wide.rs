//! Messages to very many queues or subscribers: in parts, in order, and all of them arrive.

use super::TestHost;
use crate::interface::limits::Limits;
use crate::*;

/// A host where a message reaches eight queues or subscribers in a turn.
fn narrow() -> TestHost {
    let limits = Limits { queues_at_once: 8, subscribers_at_once: 8, ..Limits::default() };
    TestHost::with(limits)
}

fn with_queues(queues: usize, options: &str) -> TestHost {
    with_queues_in(narrow(), queues, options)
}

fn with_queues_in(mut host: TestHost, queues: usize, options: &str) -> TestHost {
    for number in 0..queues {
        host.run(&format!("z queue q{number} {options}"));
        host.run(&format!("z bind amq.fanout q{number} k"));
    }
    host
}

/// Three messages of a queue have begun to become dead letters in thirty others.
fn with_dead_letters(options: &str) -> TestHost {
    let mut host = with_queues(30, options);
    host.run("z queue dying durable dlx=amq.fanout ttl=100");
    for number in 0..3 {
        host.run(&format!("a publish - dying {number} persistent"));
    }
    host.now = host.now.plus(std::time::Duration::from_millis(100));
    host.engine.expire(host.now, &mut host.fx);
    turn(&mut host);
    host
}

/// Ends a turn; what it did.
fn turn(host: &mut TestHost) -> Vec<String> {
    host.engine.dispatch(host.now, &mut host.fx);
    host.engine.check_invariants(&host.fx.references);
    std::mem::take(&mut host.fx.lines)
}

fn is_held(host: &mut TestHost, name: &str) -> bool {
    let connection = host.channel(name).connection;
    host.engine.is_fanning_out(connection)
}

fn ready(host: &TestHost, queue: &str) -> u64 {
    host.engine.queues.iter().find(|(_, it)| *it.name == *queue).map_or(0, |(_, it)| it.ready)
}

fn ready_in_all(host: &TestHost) -> u64 {
    host.engine
        .queues
        .iter()
        .filter(|(_, it)| it.name.starts_with('q'))
        .map(|(_, it)| it.ready)
        .sum()
}

#[test]
fn a_publish_reaches_all_queues_over_several_turns_and_is_confirmed_then() {
    for (queues, turns) in [(8, 0), (9, 2), (20, 3), (80, 10)] {
        let mut host = with_queues(queues, "durable");
        host.run("a confirms");
        host.act_on("a publish amq.fanout k body persistent");
        assert_eq!(is_held(&mut host, "a"), turns > 0, "{queues}");
        assert!(!is_held(&mut host, "b"), "nobody else waits");
        let mut count = 0;
        while is_held(&mut host, "a") {
            assert!(ready_in_all(&host) <= 8 * count);
            assert_eq!(turn(&mut host), [""; 0]);
            count += 1;
        }
        assert_eq!(count, turns, "{queues}");
        assert_eq!(ready_in_all(&host), queues as u64);
        assert_eq!(host.run("flush"), ["a confirm 1"]);
        assert!(!host.engine.has_work());
    }
}

#[test]
fn queues_that_come_meanwhile_get_nothing() {
    let mut host = with_queues(30, "");
    host.act_on("a publish amq.fanout k body");
    turn(&mut host);
    for number in 0..30 {
        host.act_on(&format!("z delete q{number}"));
        host.act_on(&format!("z queue q{number}"));
        host.act_on(&format!("z bind amq.fanout q{number} k"));
    }
    host.settle_down();
    assert_eq!(ready_in_all(&host), 0);
}

#[test]
fn what_a_publisher_has_published_arrives_though_it_leaves() {
    for leaves in ["a close", "a disconnect"] {
        let mut host = with_queues(30, "");
        host.run("a confirms");
        host.act_on("a publish amq.fanout k body");
        host.act_on(leaves);
        // Who has its place next is neither told nor held.
        let channel = ChannelId { connection: ConnectionId(0), number: 1 };
        if leaves == "a disconnect" {
            host.engine.connect_internal(channel.connection, "/").unwrap();
            assert!(!host.engine.is_fanning_out(channel.connection));
        }
        host.engine.open(channel);
        host.settle_down();
        assert_eq!(ready_in_all(&host), 30, "{leaves}");
        let lines = std::mem::take(&mut host.fx.lines);
        assert!(lines.iter().all(|line| !line.contains("confirm ")), "{lines:?}");
    }
}

#[test]
fn a_full_queue_among_them_refuses_for_all() {
    let mut host = with_queues(20, "length=1 overflow=reject");
    host.run("a confirms");
    assert_eq!(host.run("a publish amq.fanout k body"), ["a confirm 1"]);
    assert_eq!(host.run("a publish amq.fanout k body"), ["a nack 2"]);
    assert_eq!(ready_in_all(&host), 20);
}

#[test]
fn dead_letters_leave_their_queue_when_all_queues_have_them() {
    let mut host = with_dead_letters("durable");
    assert!(ready_in_all(&host) < 30);
    // Some have a message, and it is in its queue still.
    host.run("restart");
    host.settle_down();
    assert!(ready_in_all(&host) >= 90, "{}", ready_in_all(&host));
    assert_eq!(ready(&host, "dying"), 0);
    host.run("restart");
    assert_eq!(ready(&host, "dying"), 0);
    assert!(ready_in_all(&host) >= 90);
}

#[test]
fn dead_letters_of_a_queue_that_goes_arrive() {
    let mut host = with_dead_letters("");
    host.act_on("z delete dying");
    host.settle_down();
    assert_eq!(ready_in_all(&host), 90);
}

#[test]
fn delayed_messages_to_very_many_keep_their_order() {
    let mut host = with_queues(20, "durable");
    host.run("z exchange x fanout durable delaying");
    for number in 0..20 {
        host.run(&format!("z bind x q{number} k"));
    }
    for number in 0..3 {
        host.run(&format!("a publish x k {number} delay=100 persistent"));
    }
    host.run("time 100");
    assert_eq!(ready_in_all(&host), 20);
    host.run("time 1");
    host.run("time 1");
    assert_eq!(ready_in_all(&host), 60);
    for number in 0..20 {
        host.fx.delivered.clear();
        host.run(&format!("b consume q{number} c{number} presettled"));
        let bodies: Vec<_> = host.fx.delivered.iter().map(|it| it.2.clone()).collect();
        assert_eq!(bodies, ["0", "1", "2"]);
    }
    host.run("restart");
    host.run("time 100");
    assert_eq!(ready_in_all(&host), 0);
}

#[test]
fn a_transaction_is_refused_that_would_reach_too_many_queues() {
    let limits = Limits { queues_at_once: 8, transaction_operations_max: 50, ..Limits::default() };
    let mut host = with_queues_in(TestHost::with(limits), 20, "");
    host.run("a transactions");
    host.run("a publish amq.fanout k 1");
    host.run("a publish amq.fanout k 2");
    assert_eq!(host.run("a commit"), ["a ok"]);
    assert_eq!(ready_in_all(&host), 40);
    for number in 0..3 {
        host.run(&format!("a publish amq.fanout k {number}"));
    }
    let text = "a transaction that puts messages into 60 queues or more; the limit is 50";
    assert_eq!(host.run("a commit"), [format!("a refused LimitExceeded: {text}")]);
    assert_eq!(ready_in_all(&host), 40);
}

// ---- direct messages ----

fn with_subscribers(count: usize, group: &str) -> TestHost {
    let mut host = narrow();
    for number in 0..count {
        let pattern = ["s.a", "s.*", "s.>"][number % 3];
        host.run(&format!("b subscribe {pattern} {number} {group}"));
    }
    host
}

#[test]
fn a_direct_message_reaches_all_subscribers_over_several_turns() {
    for (count, turns) in [(8, 0), (9, 2), (20, 3), (80, 10)] {
        let mut host = with_subscribers(count, "");
        host.act_on("a emit s.a body");
        assert_eq!(is_held(&mut host, "a"), turns > 0);
        let mut lines = std::mem::take(&mut host.fx.lines);
        let mut count_turns = 0;
        while is_held(&mut host, "a") {
            let more = turn(&mut host);
            assert!(more.len() <= 8, "{more:?}");
            lines.extend(more);
            count_turns += 1;
        }
        assert!((turns..=turns + 1).contains(&count_turns), "{count_turns} for {count}");
        lines.sort();
        let mut expected: Vec<_> = (0..count).map(|it| format!("b hears {it} s.a body")).collect();
        expected.sort();
        assert_eq!(lines, expected);
    }
}

#[test]
fn who_comes_or_goes_while_a_message_is_handed_out() {
    let mut host = with_subscribers(60, "");
    host.act_on("a emit s.a body");
    let mut lines = turn(&mut host);
    // Those in the middle go, others have their slots, and still others come.
    for number in 20..40 {
        host.act_on(&format!("b unsubscribe {number}"));
    }
    for number in 100..130 {
        host.act_on(&format!("b subscribe s.a {number}"));
        host.act_on(&format!("b subscribe s.* x{number}"));
    }
    while host.engine.has_work() {
        lines.extend(turn(&mut host));
    }
    let heard = |name: usize| {
        let line = format!("b hears {name} s.a body");
        lines.iter().filter(|it| **it == line).count()
    };
    for stays in (0..20).chain(40..60) {
        assert_eq!(heard(stays), 1, "{stays}");
    }
    assert!((20..40).all(|goes| heard(goes) <= 1));
    assert!(lines.iter().all(|line| !line.contains("hears 1") || !line.contains("hears x")));
    assert!((100..130).all(|comes| heard(comes) == 0));
    host.act_on("b disconnect");
    host.settle_down();
    assert!(host.engine.pubsub.has_none());
}

#[test]
fn each_of_very_many_groups_gets_a_message_once() {
    let mut host = narrow();
    for number in 0..60 {
        host.run(&format!("b subscribe s.a one{number} group=g{number}"));
        host.run(&format!("b subscribe s.* two{number} group=g{number}"));
    }
    host.act_on("a emit s.a body");
    assert!(is_held(&mut host, "a"));
    let mut lines = Vec::new();
    while host.engine.has_work() {
        let more = turn(&mut host);
        assert!(more.len() <= 8);
        lines.extend(more);
    }
    assert_eq!(lines.len(), 60, "{lines:?}");
    for number in 0..60 {
        let of_group = |line: &&String| {
            line.contains(&format!(" one{number} ")) || line.contains(&format!(" two{number} "))
        };
        assert_eq!(lines.iter().filter(of_group).count(), 1, "{number}");
    }
}

#[test]
fn fan_outs_of_several_publishers_go_on_in_turn() {
    let mut host = with_subscribers(400, "");
    let names = ["a", "c", "d", "e"];
    for name in names {
        host.act_on(&format!("{name} emit s.a {name}"));
    }
    let lines = turn(&mut host);
    for name in names {
        assert_eq!(lines.iter().filter(|line| line.ends_with(name)).count(), 2);
    }
    host.settle_down();
    let lines = std::mem::take(&mut host.fx.lines);
    assert_eq!(lines.len(), 4 * 400 - 8);
}

#[test]
fn a_publish_reaches_very_many_subscribers_through_an_exchange() {
    let mut host = with_subscribers(50, "");
    host.act_on("a publish amq.topic s.a body");
    assert!(is_held(&mut host, "a"));
    host.settle_down();
    assert_eq!(std::mem::take(&mut host.fx.lines).len(), 50);
    assert!(!is_held(&mut host, "a"));
}

#[test]
fn what_very_many_queues_are_still_to_get_counts_as_stored() {
    let mut host = with_queues(20, "");
    host.run("a quota / of=vhost stored-bytes=100");
    let stored =
        |host: &TestHost| host.engine.list_vhosts().next().map_or(0, |vhost| vhost.stored_bytes);
    host.act_on("a publish amq.fanout k ten-bytes!");
    while is_held(&mut host, "a") {
        assert_eq!(stored(&host), 200);
        host.act_on("b publish - q0 x");
        let said = std::mem::take(&mut host.fx.lines).concat();
        assert!(said.contains("the quota of stored bytes (100) of virtual host '/'"), "{said}");
        turn(&mut host);
    }
    assert_eq!((stored(&host), ready_in_all(&host)), (200, 20));
}

#[test]
fn a_message_to_very_many_is_the_memory_of_who_waits_for_it_and_then_of_nobody() {
    for line in ["a publish amq.fanout k body", "a emit s body"] {
        for leaves in [false, true] {
            let mut host = with_queues(20, "");
            for number in 0..20 {
                host.run(&format!("z subscribe s t{number}"));
            }
            let connection = host.channel("a").connection;
            let held = |host: &TestHost| {
                let mut held = HeldMemory::default();
                host.engine.add_held(connection, &mut held);
                held.get(MemoryKind::Fanouts)
            };
            let before = host.engine.message_memory();
            host.act_on(line);
            let bytes = held(&host);
            assert!(bytes > 100, "{line}");
            if leaves {
                host.act_on("a disconnect");
                assert_eq!(held(&host), 0, "{line}");
                assert!(host.engine.message_memory() >= before + bytes, "{line}");
            }
            host.settle_down();
            assert_eq!(held(&host), 0, "{line}");
            let queued = if line.contains("publish") { 20 } else { 0 };
            assert_eq!(ready_in_all(&host), queued, "{line}");
            host.run("z purge q0");
            assert!(!host.engine.has_work());
        }
    }
}

#[test]
fn a_life_counts_from_sending_in_all_queues_alike() {
    for delay in ["", "delay=100", "delay=100 format=3"] {
        let mut host = with_queues(30, "");
        host.act_on(&format!("a publish amq.fanout k body ttl=300 {delay}"));
        let mut life = std::time::Duration::from_millis(300);
        if !delay.is_empty() {
            let ends = std::time::Duration::from_millis(100);
            host.now = host.now.plus(ends);
            host.engine.expire(host.now, &mut host.fx);
            life -= if delay.contains("format") { ends } else { ends.saturating_sub(ends) };
        }
        let sent = host.now;
        turn(&mut host);
        assert!((1..30).contains(&ready_in_all(&host)), "{delay}");
        // The last queues get it when the first ones have had it for long.
        host.now = sent.plus(life / 2);
        host.settle_down();
        assert_eq!(ready_in_all(&host), 30, "{delay}");
        host.now = sent.plus(life);
        host.engine.expire(host.now, &mut host.fx);
        host.settle_down();
        assert_eq!(ready_in_all(&host), 0, "{delay}");
    }
}
