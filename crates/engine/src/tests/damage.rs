//! Records that cannot be read back: reported, never skipped, and nothing else is lost with them.

use super::{TestHost, check_in};
use crate::Position;
use crate::interface::limits::Limits;

/// A host in which every message that waits has to be read back.
fn forgetful() -> TestHost {
    TestHost::with(Limits { resident_bytes_max: 0, ..Limits::default() })
}

/// Where the first queue has stopped.
fn unreadable(host: &TestHost) -> Option<Position> {
    host.engine.list_queues().next().and_then(|queue| queue.unreadable)
}

const STOPPED: &str = "refused StorageUnavailable: queue 'q' has stopped at a message that cannot be \
    read back from segment 1 at 24: purge or delete it";

#[test]
fn a_queue_stops_at_what_cannot_be_read_and_loses_nothing() {
    for options in ["", "persistent"] {
        let scenario = format!(
            "a queue q durable
             > a queue q 0 0
             a publish - q 1 {options}
             a publish - q 2 {options}
             a publish - q 3 {options}
             a publish - q 4 {options}
             damage 3
             b consume q c
             > b consuming c
             > b deliver c #1 1
             > b deliver c #2 2
             > b cancelled c failed
             a publish - q 5 {options}
             b requeue 2
             b consume q c
             > b consuming c
             > b deliver c #3 2 redelivered count=1
             > b cancelled c failed
             a passive q
             > a queue q 3 0
             a get q
             > a {STOPPED}
             a purge q
             > a messages 3
             b consume q c
             > b consuming c
             a publish - q 6 {options}
             > b deliver c #4 6
             b accept 4 multiple"
        );
        let host = check_in(forgetful(), &scenario);
        assert_eq!(host.engine.counters().unreadable, 1);
        assert_eq!(host.engine.counters().queue_stops, 1);
        assert_eq!(unreadable(&host), None);
        assert!(host.fx.references.is_empty(), "{:?}", host.fx.references);
    }
}

#[test]
fn a_queue_that_goes_with_its_consumers_stays_when_it_stops() {
    check_in(
        forgetful(),
        "a queue q durable auto-delete expires=100
         > a queue q 0 0
         a publish - q 1 persistent
         a publish - q 2 persistent
         damage 1
         b consume q c
         > b consuming c
         > b cancelled c failed
         time 1000
         a passive q
         > a queue q 2 0",
    );
}

#[test]
fn another_start_tries_again() {
    let host = check_in(
        forgetful(),
        "a queue q durable
         > a queue q 0 0
         a publish - q 1 persistent
         a publish - q 2 persistent
         damage 1
         b consume q c
         > b consuming c
         > b cancelled c failed
         restart
         b consume q c
         > b consuming c
         > b cancelled c failed
         snapshot
         repair
         restart
         b consume q c presettled
         > b consuming c
         > b deliver c #1 1 redelivered
         > b deliver c #2 2 redelivered",
    );
    assert!(host.fx.references.is_empty());
}

#[test]
fn what_a_repair_gave_up_is_skipped_and_named() {
    for start in ["snapshot", "time 0"] {
        let scenario = format!(
            "a queue q durable
             > a queue q 0 0
             a publish - q 1 persistent
             a publish - q 2 persistent
             a publish - q 3 persistent
             damage 2
             b consume q c
             > b consuming c
             > b deliver c #1 1
             > b cancelled c failed
             {start}
             repair drop
             restart
             b consume q c presettled
             > b consuming c
             > b deliver c #1 1 redelivered
             > b deliver c #2 3 redelivered"
        );
        let mut host = check_in(forgetful(), &scenario);
        let is_known = start == "snapshot";
        assert_eq!(host.engine.counters().given_up, u64::from(is_known));
        let given_up = host.engine.take_given_up();
        assert_eq!(given_up.len(), usize::from(is_known));
        assert!(given_up.iter().all(|it| it.queue == "q" && it.messages == 1), "{given_up:?}");
        assert!(host.fx.references.is_empty(), "{:?}", host.fx.references);
    }
}

/// A queue that is for the most part in pages, with some messages settled before, in and behind them.
fn paged(priorities: u64) -> TestHost {
    let mut host = forgetful();
    host.run(&format!("a queue q durable priorities={}", priorities - 1));
    for number in 0..3_000_u64 {
        let priority = number % priorities;
        host.act_on(&format!("a publish - q <{number}> persistent priority={priority}"));
    }
    host.settle_down();
    host
}

/// The numbers that a new consumer gets, in ascending order.
fn numbers(host: &mut TestHost) -> Vec<u64> {
    host.fx.quiet = true;
    host.fx.delivered.clear();
    host.run("b consume q c presettled");
    let bodies = host.fx.delivered.iter();
    let mut numbers: Vec<u64> =
        bodies.map(|it| it.2.trim_matches(['<', '>']).parse().unwrap()).collect();
    numbers.sort_unstable();
    numbers
}

#[test]
fn a_page_that_is_lost_is_made_anew_from_its_messages() {
    for priorities in [1, 3] {
        for start in ["snapshot", "time 0"] {
            for repair in ["time 0", "repair drop"] {
                let mut host = paged(priorities);
                host.run(start);
                host.run("damage pages");
                host.run(repair);
                host.run("restart");
                let case = format!("{priorities} priorities, {start}, {repair}");
                assert!(numbers(&mut host) == (0..3_000).collect::<Vec<_>>(), "{case}");
                assert_eq!(host.engine.counters().given_up, 0, "{case}");
                assert_eq!(host.engine.counters().unreadable, 0, "{case}");
                assert!(host.fx.references.is_empty(), "{case}: {:?}", host.fx.references);
            }
        }
    }
}

#[test]
fn a_lost_page_is_made_anew_from_publishes_with_numbers_too() {
    let mut host = forgetful();
    host.run("a queue q durable");
    host.client("c");
    host.run("c claim s expiry=5000 recorded");
    for number in 0..1_500 {
        host.act_on(&format!("c publish - q <{number}> persistent once={number}"));
    }
    host.settle_down();
    host.run("damage pages");
    host.run("repair drop");
    host.run("restart");
    assert!(numbers(&mut host) == (0..1_500).collect::<Vec<_>>());
    assert_eq!(host.engine.counters().given_up, 0);
}

#[test]
fn browsers_see_the_messages_of_a_lost_page() {
    let mut host = paged(1);
    host.run("damage pages");
    host.run("repair drop");
    host.fx.quiet = true;
    host.run("b consume q c browse");
    let bodies = host.fx.delivered.iter().map(|it| it.2.trim_matches(['<', '>']));
    let seen: Vec<u64> = bodies.map(|body| body.parse().unwrap()).collect();
    assert!(seen == (0..3_000).collect::<Vec<_>>(), "{} seen", seen.len());
    assert_eq!(host.run("a passive q"), ["a queue q 3000 0"]);
}

#[test]
fn what_was_settled_does_not_come_back_with_a_lost_page() {
    for restart in ["time 0", "restart", "restart clean"] {
        let mut host = forgetful();
        host.run("a queue q durable");
        for number in 0..1_500 {
            host.act_on(&format!("a publish - q <{number}> persistent"));
        }
        host.settle_down();
        // Every second one of the first is settled; the others come back in their places.
        host.fx.quiet = true;
        host.run("b consume q c credit=200");
        for tag in (1..=200).step_by(2) {
            host.run(&format!("b accept {tag}"));
        }
        host.run("restart");
        let settled = host.fx.delivered.iter().filter(|it| it.1 % 2 == 1 && it.1 < 200);
        let settled: Vec<u64> =
            settled.map(|it| it.2.trim_matches(['<', '>']).parse().unwrap()).collect();
        assert_eq!(settled.len(), 100);
        // Enough for more pages, the remaining ones of the first among them.
        for number in 1_500..4_000 {
            host.act_on(&format!("a publish - q <{number}> persistent"));
        }
        host.settle_down();
        host.run("snapshot");
        host.run("damage pages");
        host.run("repair drop");
        host.run(restart);
        let expected = (0..4_000).filter(|number| !settled.contains(number)).collect::<Vec<_>>();
        assert!(numbers(&mut host) == expected, "{restart}");
        assert_eq!(host.engine.counters().given_up, 0, "{restart}");
        assert!(host.fx.references.is_empty(), "{:?}", host.fx.references);
    }
}

#[test]
fn of_a_page_that_a_repair_gave_up_only_lost_messages_are_gone_and_named() {
    let mut host = paged(1);
    host.run("snapshot");
    host.run("damage pages");
    for number in [700, 701, 1_500] {
        host.run(&format!("damage <{number}>"));
    }
    host.run("repair drop");
    host.run("restart");
    let expected = (0..3_000).filter(|number| ![700, 701, 1_500].contains(number));
    assert_eq!(numbers(&mut host), expected.collect::<Vec<_>>());
    let given_up = host.engine.take_given_up();
    assert_eq!(given_up.iter().map(|it| it.messages).sum::<u64>(), 3, "{given_up:?}");
    assert!(host.fx.references.is_empty(), "{:?}", host.fx.references);
}

#[test]
fn messages_to_a_queue_whose_declaration_is_lost_are_in_one_of_its_name() {
    let mut host = TestHost::new();
    host.run("a queue q durable");
    host.run("a exchange x fanout durable");
    host.run("a queue r durable");
    host.run("a bind x r k");
    host.run("a publish - q 1 persistent");
    host.run("a publish x k 2 persistent");
    host.run("a publish - q 3 persistent");
    // The declarations of both queues.
    for index in 0..host.fx.records.len() {
        if host.fx.records[index][1] == 16 {
            host.fx.records[index].clear();
        }
    }
    host.run("restart");
    assert_eq!(host.run("a passive q"), ["a queue q 2 0"]);
    assert_eq!(host.run("a passive recovered-2"), ["a queue recovered-2 1 0"]);
}

#[test]
fn dead_letters_and_delayed_messages_that_a_repair_gave_up_are_gone() {
    for start in ["time 99", "snapshot"] {
        let mut host = check_in(
            forgetful(),
            "a queue dead durable
             > a queue dead 0 0
             a queue q durable ttl=100 dlx=- dlk=dead
             > a queue q 0 0
             a exchange x direct durable delaying
             > a ok
             a bind x dead k
             > a ok
             a publish - q 1 persistent
             a publish x k 2 persistent delay=100
             damage 1
             damage 2",
        );
        host.run(start);
        host.run("repair drop");
        if start == "snapshot" {
            host.run("restart");
        }
        host.run("time 200");
        assert_eq!(host.run("a passive dead"), ["a queue dead 0 0"], "{start}");
        assert_eq!(host.run("a passive q"), ["a queue q 0 0"], "{start}");
        assert_eq!(host.engine.counters().given_up, 2, "{start}");
        assert!(host.fx.references.is_empty(), "{:?}", host.fx.references);
    }
}

#[test]
fn one_of_many_in_a_load_is_told_from_the_others() {
    for damaged in [0, 1, 100, 128, 255, 256, 299] {
        let mut host = forgetful();
        host.run("a queue q durable");
        for number in 0..300 {
            host.act_on(&format!("a publish - q <{number}> persistent"));
        }
        host.settle_down();
        host.run(&format!("damage <{damaged}>"));
        host.fx.quiet = true;
        host.run("b consume q c");
        assert_eq!(host.fx.delivered.len(), damaged);
        assert!(unreadable(&host).is_some());
        assert_eq!(host.engine.counters().unreadable, 1);
        let left = 300 - damaged;
        assert_eq!(host.run("a delete q"), [format!("a messages {left}")]);
        host.run("b accept 0 multiple");
        assert!(host.fx.references.is_empty(), "{:?}", host.fx.references);
    }
}

#[test]
fn a_queue_stops_at_a_page_that_can_neither_be_read_nor_made_anew() {
    for command in ["a purge q", "a delete q"] {
        let mut host = paged(1);
        host.run("damage pages");
        for number in [500, 1_500, 2_500] {
            host.run(&format!("damage <{number}>"));
        }
        host.fx.quiet = true;
        host.run("b consume q c presettled");
        let delivered = host.fx.delivered.len();
        assert!(delivered < 1_100, "{delivered}");
        assert!(unreadable(&host).is_some());
        assert_eq!(host.run("a passive q"), [format!("a queue q {} 0", 3_000 - delivered)]);
        let answer = host.run(command);
        assert_eq!(answer.last(), Some(&format!("a messages {}", 3_000 - delivered)));
        assert!(host.fx.references.is_empty(), "{:?}", host.fx.references);
    }
}

#[test]
fn a_page_is_there_again_once_it_can_be_read() {
    let mut host = paged(1);
    host.run("damage pages");
    host.run("damage <500>");
    let before = numbers(&mut host);
    assert!(before.len() <= 500);
    host.run("repair");
    host.run("restart");
    let after = numbers(&mut host);
    assert_eq!([before, after].concat(), (0..3_000).collect::<Vec<_>>());
    assert!(host.fx.references.is_empty(), "{:?}", host.fx.references);
}

#[test]
fn a_dead_letter_that_cannot_be_read_stays() {
    let host = check_in(
        forgetful(),
        "a queue dead durable
         > a queue dead 0 0
         a queue q durable ttl=100 dlx=- dlk=dead
         > a queue q 0 0
         a publish - q 1 persistent
         a publish - q 2 persistent
         damage 1
         time 100
         a passive dead
         > a queue dead 1 0
         a passive q
         > a queue q 1 0
         repair
         restart
         a passive dead
         > a queue dead 2 0",
    );
    assert!(unreadable(&host).is_none());
}

#[test]
fn a_full_queue_pushes_out_what_cannot_be_read() {
    check_in(
        forgetful(),
        "a queue dead
         > a queue dead 0 0
         a queue q durable length=2 dlx=- dlk=dead
         > a queue q 0 0
         a publish - q 1 persistent
         a publish - q 2 persistent
         damage 1
         a publish - q 3 persistent
         a passive q
         > a queue q 2 0
         a passive dead
         > a queue dead 0 0
         b consume q c presettled
         > b consuming c
         > b deliver c #1 2 dropped=1
         > b deliver c #2 3",
    );
}

#[test]
fn a_full_queue_pushes_out_a_page_that_cannot_be_read_as_a_whole() {
    let mut host = forgetful();
    host.run("a queue q durable length=2100");
    let fill = |host: &mut TestHost, from: u32, to: u32| {
        for number in from..to {
            host.act_on(&format!("a publish - q {number} persistent"));
        }
        host.settle_down();
    };
    fill(&mut host, 0, 2_100);
    host.run("damage pages");
    host.run("damage 500");
    fill(&mut host, 2_100, 3_123);
    assert_eq!(host.run("a passive q"), ["a queue q 3123 0"]);
    fill(&mut host, 3_123, 3_124);
    assert_eq!(host.run("a passive q"), ["a queue q 2100 0"]);
    host.run("a purge q");
    assert!(host.fx.references.is_empty(), "{:?}", host.fx.references);
}

#[test]
fn a_delayed_message_that_cannot_be_read_stays() {
    let host = check_in(
        forgetful(),
        "a exchange x direct durable delaying
         > a ok
         a queue q durable
         > a queue q 0 0
         a bind x q k
         > a ok
         a publish x k 1 persistent delay=100
         damage 1
         time 100
         a passive q
         > a queue q 0 0
         repair
         restart
         a passive q
         > a queue q 1 0
         a purge q
         > a messages 1",
    );
    assert!(host.fx.references.is_empty(), "{:?}", host.fx.references);
}
