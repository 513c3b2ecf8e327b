//! What ends with a client, a queue or an exchange goes over several turns where it is much, and nobody
//! sees it meanwhile.

use super::TestHost;

/// Ends turns until there is no more to do; how many.
fn turns(host: &mut TestHost) -> usize {
    let mut turns = 0;
    while host.engine.has_work() {
        host.engine.dispatch(host.now, &mut host.fx);
        host.engine.check_invariants(&host.fx.references);
        turns += 1;
    }
    turns
}

fn queues(host: &TestHost) -> usize {
    host.engine.list_queues().count()
}

#[test]
fn bindings_of_what_is_deleted_go_over_several_turns() {
    for delete in ["z delete q", "z delete-exchange x"] {
        let mut host = TestHost::new();
        host.run("z queue q");
        host.run("z queue other");
        host.run("z exchange x direct alternate=amq.fanout");
        host.run("z exchange before fanout");
        host.run("z bind before @x k");
        host.run("z bind amq.fanout other k");
        for number in 0..5_000 {
            host.act_on(&format!("z bind x q {number}"));
        }
        host.settle_down();
        host.fx.lines.clear();
        host.act_on(delete);
        assert!(host.engine.has_work(), "{delete}");
        // Nobody finds it, and nothing goes there.
        let routed = delete == "z delete q";
        assert_eq!(host.engine.list_bindings().count(), if routed { 2 } else { 1 }, "{delete}");
        host.act_on("a publish before 4999 body");
        let there = host.engine.queues.iter().filter(|(_, queue)| queue.ready > 0).count();
        assert_eq!(there, usize::from(routed), "{delete}: its alternate has it");
        // Another one of its name, or in its place, is another one.
        host.act_on("z queue q");
        host.act_on("z queue r");
        host.act_on("z exchange x direct");
        host.act_on("z bind x r 4999");
        host.act_on("z publish x 4999 body");
        let named = |host: &TestHost, name: &str| {
            host.engine.queues.iter().find(|(_, it)| it.name == name).map(|(_, it)| it.ready)
        };
        assert_eq!((named(&host, "q"), named(&host, "r")), (Some(0), Some(1)), "{delete}");
        assert!(turns(&mut host) >= 4, "{delete}");
        let left = if routed { 3 } else { 2 };
        assert_eq!(host.engine.list_bindings().count(), left, "{delete}");
        host.run("restart");
    }
}

#[test]
fn an_exchange_goes_with_the_last_of_very_many_bindings() {
    let mut host = TestHost::new();
    host.run("z queue q durable");
    host.run("z exchange x direct auto-delete durable");
    for number in 0..3_000 {
        host.act_on(&format!("z bind x q {number}"));
    }
    host.run("z delete q");
    assert_eq!(host.run("z delete-exchange x"), ["z ok"]);
    host.run("restart");
    assert_eq!(host.engine.list_exchanges().filter(|it| it.name == "x").count(), 0);
}

#[test]
fn queues_of_a_connection_go_over_several_turns() {
    for (count, at_once) in [(200, true), (1_000, false)] {
        let mut host = TestHost::new();
        for number in 0..count {
            host.act_on(&format!("a queue q{number} exclusive"));
        }
        host.run("b queue other exclusive");
        host.act_on("a disconnect");
        assert_eq!(queues(&host) == 1, at_once, "{count}");
        if !at_once {
            // Who has its place next has none of its queues.
            let refused = host.engine.queues.iter().next().map(|(_, queue)| queue.name.clone());
            host.act_on(&format!("a purge {}", refused.unwrap()));
            let line = host.fx.lines.pop().unwrap();
            assert!(line.starts_with("a refused ResourceLocked"), "{line}");
            assert!(turns(&mut host) >= 3);
        }
        assert_eq!(queues(&host), 1);
        host.run("b disconnect");
        assert_eq!(queues(&host), 0);
    }
}

#[test]
fn consumers_of_a_channel_end_over_several_turns_and_get_nothing_more() {
    for closes in ["a close", "a disconnect"] {
        let mut host = TestHost::new();
        host.run("z queue q");
        host.run("z queue gone auto-delete");
        for number in 0..600 {
            host.act_on(&format!("a consume q c{number} presettled"));
            host.act_on(&format!("a consume gone d{number}"));
        }
        host.settle_down();
        host.run("b consume q b");
        host.fx.lines.clear();
        host.act_on(closes);
        assert!(host.engine.has_work());
        host.act_on("z publish - q body");
        host.engine.dispatch(host.now, &mut host.fx);
        assert_eq!(std::mem::take(&mut host.fx.lines), ["b deliver b #1 body"], "{closes}");
        // Another channel in its place has nothing to do with them.
        host.act_on("a consume q again");
        assert!(turns(&mut host) >= 4, "{closes}");
        let consumers = |host: &TestHost, name: &str| {
            let queue = host.engine.queues.iter().find(|(_, queue)| queue.name == name);
            queue.map(|(_, queue)| queue.consumers.len())
        };
        assert_eq!(consumers(&host, "q"), Some(2), "{closes}");
        assert_eq!(consumers(&host, "gone"), None, "{closes}");
    }
}

#[test]
fn a_queue_with_very_many_consumers_is_deleted() {
    let mut host = TestHost::new();
    host.run("z queue q");
    host.run("z queue other");
    for number in 0..500 {
        host.act_on(&format!("a consume q c{number}"));
        host.act_on(&format!("b consume q c{number}"));
    }
    host.act_on("a consume other last");
    host.settle_down();
    host.fx.lines.clear();
    let lines = host.run("z delete q");
    assert_eq!(lines.len(), 1_001);
    host.run("z publish - other body");
    host.run("a disconnect");
    host.run("b disconnect");
}

#[test]
fn deliveries_of_many_channels_that_close_at_once_go_back_over_several_turns() {
    let mut host = TestHost::new();
    host.run("z queue q");
    for number in 0..12_000 {
        host.act_on(&format!("z publish - q {number}"));
    }
    host.fx.quiet = true;
    host.run("a consume q c credit=1000");
    for channel in 2..=12 {
        host.run(&format!("a{channel} consume q c credit=1000"));
    }
    let ready = |host: &TestHost| host.engine.queues.iter().next().unwrap().1.ready;
    assert_eq!(ready(&host), 0);
    host.act_on("a disconnect");
    let back = ready(&host);
    assert!((1_000..11_000).contains(&back), "{back} at once");
    host.settle_down();
    assert_eq!(ready(&host), 12_000);
    host.fx.delivered.clear();
    host.run("b consume q c presettled");
    let bodies = host.fx.delivered.iter().map(|it| it.2.parse::<u32>().unwrap());
    assert!(bodies.eq(0..12_000), "in their order");
}

#[test]
fn who_settles_few_does_not_wait_for_who_settles_very_many() {
    let mut host = TestHost::new();
    for (name, count) in [("many", 30_000), ("few", 2_000)] {
        host.run(&format!("z queue {name}"));
        for number in 0..count {
            host.act_on(&format!("z publish - {name} {number}"));
        }
    }
    host.fx.quiet = true;
    host.run("a consume many c");
    host.run("b consume few c");
    host.act_on("a close");
    host.act_on("b close");
    let ready = |host: &TestHost, name: &str| {
        host.engine.queues.iter().find(|(_, it)| it.name == name).unwrap().1.ready
    };
    let mut turns = 0;
    while ready(&host, "few") < 2_000 {
        host.engine.dispatch(host.now, &mut host.fx);
        turns += 1;
    }
    assert!(turns <= 6 && ready(&host, "many") < 10_000, "{turns}");
    host.settle_down();
    assert_eq!(ready(&host, "many"), 30_000);
}

#[test]
fn a_channel_of_many_consumers_that_has_no_credit_is_passed_over_at_once() {
    let mut host = TestHost::new();
    host.run("z queue q");
    for number in 0..50 {
        host.run(&format!("a consume q a{number} presettled"));
        host.run(&format!("b consume q b{number} presettled"));
    }
    host.run("room a off");
    for number in 0..20 {
        let lines = host.run(&format!("z publish - q {number}"));
        assert!(lines[0].starts_with("b deliver"), "{lines:?}");
    }
    host.run("room a on");
    let heard: Vec<_> = (0..200).flat_map(|_| host.run("z publish - q x")).collect();
    for name in ["a", "b"] {
        let own = heard.iter().filter(|line| line.starts_with(name)).count();
        assert!((90..=110).contains(&own), "{name} has {own}");
    }
}

#[test]
fn a_queue_lets_go_of_what_exceeds_its_limits_while_others_settle_very_many() {
    let mut host = TestHost::new();
    for number in 0..100 {
        host.run(&format!("z queue q{number}"));
        host.run(&format!("z bind amq.fanout q{number} k"));
    }
    host.run("z queue dying dlx=amq.fanout");
    host.run("z queue short length=5");
    for number in 0..1_000 {
        host.act_on(&format!("z publish - dying {number}"));
    }
    host.fx.quiet = true;
    host.run("a consume dying c");
    host.act_on("a discard 1000 multiple");
    let short = |host: &TestHost| {
        host.engine.queues.iter().find(|(_, it)| it.name == "short").unwrap().1.ready
    };
    let mut turns = 0;
    while host.engine.has_work() {
        for number in 0..20 {
            host.act_on(&format!("b publish - short {number}"));
        }
        host.engine.dispatch(host.now, &mut host.fx);
        assert!(short(&host) <= 5, "{} in turn {turns}", short(&host));
        turns += 1;
    }
    assert!(turns > 5, "{turns}");
}

#[test]
fn what_exceeds_a_queues_limits_goes_over_several_turns() {
    let mut host = TestHost::new();
    host.run("z queue q bytes=1000000");
    for _ in 0..20_000 {
        host.act_on("a publish - q 12345678901234567890123456789012345678901234567890");
    }
    host.settle_down();
    let large = "x".repeat(999_900);
    host.act_on(&format!("a publish - q {large}"));
    let ready =
        |host: &TestHost| host.engine.queues.iter().map(|(_, queue)| queue.ready).sum::<u64>();
    assert!(ready(&host) > 2 && host.engine.has_work());
    turns(&mut host);
    assert_eq!(ready(&host), 3);
    assert_eq!(host.engine.counters().dropped, 19_998);
}

#[test]
fn timers_that_go_off_at_once_are_done_over_several_turns() {
    let mut host = TestHost::new();
    for number in 0..2_000 {
        host.act_on(&format!("z queue q{number} expires=100"));
    }
    host.now = host.now.plus(std::time::Duration::from_millis(100));
    host.engine.expire(host.now, &mut host.fx);
    let left = queues(&host);
    assert!((500..1_999).contains(&left), "{left}");
    let mut turns = 0;
    while host.engine.deadline().is_some() {
        host.engine.dispatch(host.now, &mut host.fx);
        host.engine.expire(host.now, &mut host.fx);
        turns += 1;
    }
    assert_eq!(queues(&host), 0);
    assert!((3..20).contains(&turns), "{turns}");
}

#[test]
fn dead_letters_to_many_queues_give_way_to_others() {
    let mut host = TestHost::new();
    for number in 0..300 {
        host.act_on(&format!("z queue q{number}"));
        host.act_on(&format!("z bind amq.fanout q{number} k"));
    }
    host.run("z queue dying dlx=amq.fanout");
    for number in 0..200 {
        host.act_on(&format!("z publish - dying {number}"));
    }
    host.fx.quiet = true;
    host.run("a consume dying c");
    let before = host.engine.route_steps;
    host.act_on("a discard 200 multiple");
    let steps = host.engine.route_steps - before;
    assert!(steps < 40_000, "{steps}");
    host.settle_down();
    let ready: u64 = host.engine.queues.iter().map(|(_, queue)| queue.ready).sum();
    assert_eq!(ready, 60_000);
}
