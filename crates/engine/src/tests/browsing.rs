//! A browser sees what waits in a queue, in order, and nothing changes by it.

use super::{TestHost, check, check_in};
use crate::interface::limits::Limits;

#[test]
fn a_browser_sees_what_waits_and_what_comes_and_takes_nothing() {
    let host = check_in(
        TestHost::new(),
        "a queue q limit=1
         > a queue q 0 0
         a publish - q 1
         a publish - q 2
         b consume q look browse
         > b consuming look
         > b deliver look #1 1
         > b deliver look #2 2
         a publish - q 3
         > b deliver look #3 3
         a passive q
         > a queue q 3 0
         b accept 1
         > b refused PreconditionFailed: unknown delivery tag 1
         b cancel look
         > b ok
         b consume q look browse
         > b consuming look
         > b deliver look #4 1
         > b deliver look #5 2
         > b deliver look #6 3
         b close
         c consume q c
         > c consuming c
         > c deliver c #1 1
         > c deliver c #2 2
         > c deliver c #3 3",
    );
    let queue = host.engine.list_queues().next().unwrap();
    assert_eq!((queue.counters.delivered, queue.counters.requeued), (3, 0));
}

#[test]
fn what_a_consumer_holds_is_not_seen_and_what_came_back_is_as_it_is() {
    check(
        "a queue q
         > a queue q 0 0
         a publish - q 1
         a publish - q 2
         a publish - q 3
         a get q
         > a deliver  #1 1
         > a got, 2 left
         b consume q look browse
         > b consuming look
         > b deliver look #1 2
         > b deliver look #2 3
         a requeue 1
         c consume q look browse
         > c consuming look
         > c deliver look #1 1 redelivered count=1
         > c deliver look #2 2
         > c deliver look #3 3",
    );
}

#[test]
fn higher_priorities_are_seen_first_and_the_expired_not_at_all() {
    check(
        "a queue q priorities=3
         > a queue q 0 0
         a publish - q low
         a publish - q gone priority=2 ttl=10
         a publish - q high priority=3
         a publish - q middle priority=2
         b consume q look browse
         > b consuming look
         > b deliver look #1 high
         > b deliver look #2 gone
         > b deliver look #3 middle
         > b deliver look #4 low
         a publish - q higher priority=3
         > b deliver look #5 higher
         time 10
         c consume q look browse
         > c consuming look
         > c deliver look #1 high
         > c deliver look #2 higher
         > c deliver look #3 middle
         > c deliver look #4 low",
    );
}

#[test]
fn a_browser_waits_for_room_and_flow_and_ends_with_its_queue() {
    check(
        "a queue q
         > a queue q 0 0
         a publish - q 1
         b flow off
         > b ok
         b consume q look browse
         > b consuming look
         b flow on
         > b ok
         > b deliver look #1 1
         room b off
         a publish - q 2
         room b on
         > b deliver look #2 2
         b consume q look
         > b refused NotAllowed: consumer 'look' exists in this channel
         a delete q
         > a messages 2
         > b cancelled look",
    );
}

/// Puts 3,000 messages into a queue with so much memory, of which some are in pages or none; what a browser
/// sees of them.
fn seen(limits: Limits, options: &str, has_pages: bool) -> Vec<String> {
    let mut host = TestHost::with(limits);
    host.run("a queue q durable");
    host.fx.quiet = true;
    for number in 0..1_500 {
        host.run(&format!("a publish - q {number} {options}"));
    }
    for _ in 0..3 {
        host.run("c get q presettled");
    }
    host.fx.delivered.clear();
    host.run("b consume q look browse");
    let mut lanes = host.engine.queues.iter().flat_map(|(_, queue)| queue.lanes.iter());
    assert_eq!(lanes.any(|lane| lane.pages.len() > 10), has_pages, "they stay where they are");
    let seen = host.fx.delivered.iter().map(|(_, _, body, _)| body.clone()).collect();
    let queue = host.engine.list_queues().next().unwrap();
    assert_eq!((queue.ready, queue.counters.delivered), (1_497, 3));
    seen
}

#[test]
fn a_long_queue_is_seen_whole_wherever_its_messages_are() {
    let expected: Vec<String> = (3..1_500).map(|number| number.to_string()).collect();
    let small =
        || Limits { queue_resident_bytes_max: 4_000, page_entries: 100, ..Limits::default() };
    assert_eq!(seen(Limits::default(), "", false), expected);
    assert_eq!(seen(small(), "", true), expected);
    assert_eq!(seen(small(), "persistent", true), expected);
    let none = Limits { resident_bytes_max: 0, ..small() };
    assert_eq!(seen(none, "persistent", true), expected);
}

#[test]
fn very_many_browsers_are_served_in_turn() {
    let mut host = TestHost::new();
    host.run("a queue q");
    for number in 0..200 {
        host.act_on(&format!("a publish - q {number}"));
    }
    host.settle_down();
    for number in 0..100 {
        host.act_on(&format!("b consume q b{number} browse"));
    }
    host.fx.lines.clear();
    host.fx.quiet = true;
    let mut before = 0;
    let mut turns = 0;
    while host.engine.has_work() {
        host.engine.dispatch(host.now, &mut host.fx);
        let shown = host.fx.delivered.len();
        assert!(shown - before <= 16 * 64, "{} in a turn", shown - before);
        before = shown;
        turns += 1;
    }
    assert_eq!(before, 100 * 200);
    assert!(turns >= 20, "{turns}");
}

#[test]
fn what_cannot_be_read_is_passed_over() {
    let mut host = TestHost::with(Limits { resident_bytes_max: 0, ..Limits::default() });
    host.run("a queue q durable");
    for number in 0..10 {
        host.run(&format!("a publish - q m{number} persistent"));
    }
    host.fx.damage("m4");
    let seen = host.run("b consume q look browse");
    assert_eq!(seen.len(), 10, "{seen:?}");
    assert!(!seen.iter().any(|line| line.ends_with("m4")), "{seen:?}");
}
