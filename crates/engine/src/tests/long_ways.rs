//! Messages that pass many exchanges, keys or headers: their queues are found over several turns, by counted
//! steps, and their publishers wait meanwhile.

use super::TestHost;
use crate::interface::limits::Limits;
use crate::*;

/// Steps in a turn.
const STEPS: u64 = 16;

fn host() -> TestHost {
    TestHost::with(Limits { route_steps_at_once: STEPS, ..Limits::default() })
}

/// A host with a chain of exchanges of some kind, each of which leads to a queue of its own as well.
fn chain(length: usize, kind: &str) -> TestHost {
    let mut host = host();
    for at in 0..length {
        host.run(&format!("z exchange x{at} {kind}"));
        host.run(&format!("z queue q{at}"));
        host.run(&format!("z bind x{at} q{at} k"));
    }
    for at in 1..length {
        host.run(&format!("z bind x{} @x{at} k", at - 1));
    }
    host
}

fn is_held(host: &mut TestHost, name: &str) -> bool {
    let connection = host.channel(name).connection;
    host.engine.is_fanning_out(connection)
}

/// Ends turns until a publisher goes on; how many, and the most steps in one of them.
fn turns(host: &mut TestHost, name: &str) -> (usize, u64) {
    let (mut turns, mut most) = (0, 0);
    while is_held(host, name) {
        let before = host.engine.route_steps;
        host.engine.dispatch(host.now, &mut host.fx);
        host.engine.check_invariants(&host.fx.references);
        most = most.max(host.engine.route_steps - before);
        turns += 1;
    }
    (turns, most)
}

fn ready(host: &TestHost) -> u64 {
    host.engine.queues.iter().map(|(_, queue)| queue.ready).sum()
}

#[test]
fn a_chain_of_exchanges_is_walked_over_several_turns() {
    for kind in ["fanout", "direct", "topic"] {
        for (length, is_long) in [(3, false), (60, true)] {
            let mut host = chain(length, kind);
            host.run("a confirms");
            host.act_on("a publish x0 k body");
            assert_eq!(is_held(&mut host, "a"), is_long, "{kind} {length}");
            assert!(!is_held(&mut host, "b"), "nobody else waits");
            let (turns, most) = turns(&mut host, "a");
            // What one exchange has for one key is done in one go, and each queue is placed, too.
            assert!(most <= 2 * STEPS + 8, "{kind}: {most} steps in a turn");
            assert_eq!(turns > 5, is_long, "{kind}: {turns}");
            assert_eq!(ready(&host), length as u64);
            assert_eq!(host.run("flush"), ["a confirm 1"]);
        }
    }
}

#[test]
fn alternates_lead_on_over_several_turns() {
    let mut host = host();
    for at in 0..100 {
        host.run(&format!("z exchange x{at} topic alternate=x{}", at + 1));
    }
    host.run("z exchange x100 fanout");
    host.run("z queue q");
    host.run("z bind x100 q k");
    host.act_on("a publish x0 k body");
    let (turns, most) = turns(&mut host, "a");
    assert!(turns > 5 && most <= 2 * STEPS, "{turns} turns, {most} steps");
    assert_eq!(ready(&host), 1);
}

#[test]
fn headers_are_compared_over_several_turns() {
    let mut host = host();
    host.run("z exchange h headers");
    for number in 0..50 {
        host.run(&format!("z queue q{number}"));
    }
    // The headers of a test are numbers of its properties: none here, so that all take it.
    for number in 0..50 {
        host.run(&format!("z bind h q{number} k"));
    }
    host.act_on("a publish h k body");
    host.settle_down();
    assert_eq!(ready(&host), 50);
}

#[test]
fn each_further_key_is_looked_up_in_its_turn() {
    let mut host = host();
    host.run("z queue q");
    for number in 0..20 {
        host.run(&format!("z bind amq.topic q k.{number}.*"));
    }
    let channel = host.channel("a");
    let keys: Vec<String> = (0..200).map(|number| format!("k.{}.a", number % 20)).collect();
    let also_to: Vec<&str> = keys.iter().map(String::as_str).collect();
    let content = Content {
        format: Format(1),
        properties: b"properties",
        body: b"body",
        shared: None,
        persistent: false,
        priority: 0,
        ttl: None,
    };
    let publish = Publish {
        exchange: "amq.topic",
        routing_key: "none",
        also_to: &also_to,
        mandatory: false,
        retain: Retain::No,
        not_before: None,
        transaction: None,
        content,
    };
    host.engine.publish(host.now, channel, &publish, &mut host.fx).unwrap();
    let (turns, most) = turns(&mut host, "a");
    assert!(turns > 10 && most <= 3 * STEPS, "{turns} turns, {most} steps");
    assert_eq!(ready(&host), 1);
}

#[test]
fn a_mandatory_message_with_a_long_way_to_nobody_comes_back_before_its_confirm() {
    let mut host = chain(60, "direct");
    host.run("a confirms");
    for at in 0..60 {
        host.run(&format!("z unbind x{at} q{at} k"));
    }
    let lines = host.run("a publish x0 k body mandatory");
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].starts_with("a returned"), "{lines:?}");
    assert_eq!(lines[1], "a confirm 1");
    assert_eq!(host.engine.counters().unroutable, 1);
}

#[test]
fn subscribers_at_the_end_of_a_long_way_get_a_message_once() {
    let mut host = chain(60, "topic");
    host.run("z bind x59 @amq.topic k");
    host.run("b subscribe k s");
    assert_eq!(host.run("a publish x0 k body"), ["b hears s k body"]);
    assert_eq!(ready(&host), 60);
}

#[test]
fn a_narrowed_user_comes_to_subjects_it_may_publish_to_alone() {
    for (subject, is_heard) in [("k", true), ("other", false)] {
        let mut host = chain(60, "topic");
        host.run("z bind x59 @amq.topic k");
        host.run("z queue caught");
        host.run("z bind amq.topic caught k");
        host.run("z user ann hash");
        host.run("z permit ann .* .* .*");
        host.run(&format!("z narrow ann {subject} none"));
        host.login("n", "ann");
        host.run("b subscribe k s");
        let lines = host.run("n publish x0 k body");
        assert_eq!(lines, if is_heard { vec!["b hears s k body"] } else { vec![] }, "{subject}");
        assert_eq!(ready(&host), 60 + u64::from(is_heard), "{subject}");
    }
}

#[test]
fn exchanges_and_queues_that_go_or_come_meanwhile() {
    let mut host = chain(60, "direct");
    host.act_on("a publish x0 k body");
    host.engine.dispatch(host.now, &mut host.fx);
    host.act_on("z delete-exchange x30");
    host.act_on("z exchange x30 direct");
    host.act_on("z queue new");
    host.act_on("z bind x30 new k");
    for at in 0..60 {
        host.act_on(&format!("z delete q{at}"));
        host.act_on(&format!("z queue q{at}"));
    }
    host.settle_down();
    assert_eq!(ready(&host), 0, "all that it was bound to are gone");
}

#[test]
fn an_exchange_in_the_place_of_one_that_went_gets_nothing_however_often_the_way_is_interrupted() {
    let mut host = chain(60, "direct");
    host.run("z exchange wide direct");
    for at in 0..60 {
        host.run(&format!("z bind wide @x{at} k"));
        if at > 0 {
            host.run(&format!("z unbind x{} @x{at} k", at - 1));
        }
    }
    host.act_on("a publish wide k body");
    host.engine.dispatch(host.now, &mut host.fx);
    // All places are another exchange's, which has a queue.
    for at in 20..60 {
        host.act_on(&format!("z delete-exchange x{at}"));
    }
    host.act_on("z queue new");
    for at in 20..60 {
        host.act_on(&format!("z exchange y{at} direct"));
        host.act_on(&format!("z bind y{at} new k"));
    }
    host.settle_down();
    let got = |name: &str| {
        host.engine.queues.iter().find(|(_, it)| it.name == name).map(|(_, it)| it.ready)
    };
    assert_eq!((got("new"), got("q0"), got("q59")), (Some(0), Some(1), Some(0)));
}

#[test]
fn dead_letters_and_delayed_messages_go_a_long_way() {
    let mut host = chain(60, "direct");
    host.run("z queue dying durable dlx=x0 dlk=k ttl=100");
    for number in 0..3 {
        host.run(&format!("a publish - dying {number} persistent"));
    }
    host.run("time 100");
    assert_eq!(ready(&host), 180);
    host.run("z exchange later direct delaying");
    host.run("z bind later @x0 k");
    host.run("a publish later k body delay=100");
    host.run("a publish later k body delay=100 persistent");
    host.run("time 100");
    host.run("time 1");
    host.run("time 1");
    assert_eq!(ready(&host), 300);
}

#[test]
fn a_dead_letter_with_a_long_way_to_nobody_is_counted() {
    let mut host = chain(60, "direct");
    for at in 0..60 {
        host.run(&format!("z unbind x{at} q{at} k"));
    }
    host.run("z queue dying dlx=x0 dlk=k ttl=100");
    host.run("a publish - dying body");
    host.run("time 100");
    let counters = host.engine.counters();
    assert_eq!(counters.discarded.of(DiscardReason::DeadLetterNotTaken), 1);
    assert_eq!((counters.unroutable, ready(&host)), (0, 0));
}

#[test]
fn a_transaction_is_refused_that_would_go_a_long_way() {
    let mut host = chain(60, "direct");
    host.run("a transactions");
    host.run("a publish x0 k body");
    let answer = host.run("a commit");
    assert!(
        answer[0].starts_with("a refused LimitExceeded: a transaction whose messages"),
        "{answer:?}"
    );
    assert_eq!(ready(&host), 0);
    host.run("a publish x57 k body");
    assert_eq!(host.run("a commit"), ["a ok"]);
    assert_eq!(ready(&host), 3);
}

#[test]
fn a_long_way_ends_with_its_virtual_host() {
    let mut host = host();
    host.run("z create-vhost v");
    let channel = ChannelId { connection: ConnectionId(9), number: 1 };
    host.enter_vhost("j", channel, "v");
    for at in 0..60 {
        host.run(&format!("j exchange x{at} topic alternate=x{}", at + 1));
    }
    host.act_on("j publish x0 k body");
    host.act_on("j disconnect");
    host.act_on("z delete-vhost v");
    host.settle_down();
    assert!(!host.engine.has_work());
}

#[test]
fn who_may_not_publish_all_keys_may_not_publish_a_way_that_is_too_long_to_judge() {
    for (length, is_judged) in [(3, true), (60, false)] {
        let mut host = chain(length, "fanout");
        host.client("c");
        host.run(&format!("z narrow-keys ann x{} m.> m.>", length - 1));
        let refused =
            "c refused AccessRefused: exchange 'x0' leads through more exchanges and bindings than";
        let said = host.run("c publish x0 m.x body");
        let is_refused = said.iter().any(|line| line.starts_with(refused));
        assert_eq!(is_refused, !is_judged, "{length}: {said:?}");
        assert_eq!(ready(&host), if is_judged { length as u64 } else { 0 }, "{length}");
    }
}

/// Its publisher has gone before all its queues are found: a queue that takes nothing of that client does
/// not get it.
#[test]
fn a_message_with_a_long_way_is_its_clients_to_the_end() {
    let mut host = chain(60, "fanout");
    host.run("z queue mine");
    host.run("z bind x59 mine k not-from=me");
    host.run("z bind x0 mine k not-from=me");
    host.run("name a me");
    host.run("name b other");
    for (line, expect) in [("a publish x0 k 1", 0), ("b publish x0 k 2", 1)] {
        host.act_on(line);
        assert!(is_held(&mut host, &line[..1]));
        host.act_on(&format!("{} disconnect", &line[..1]));
        host.settle_down();
        assert_eq!(host.run("z passive mine"), [format!("z queue mine {expect} 0")]);
    }
    assert_eq!(ready(&host), 2 * 60 + 1);
}
