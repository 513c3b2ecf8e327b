//! Messages that were read back are taken in a part at a time, whatever becomes of their queue meanwhile.

use super::TestHost;
use super::recovery::{drain_of, fill};
use crate::interface::limits::Limits;
use crate::queue::page_in::PARTS_MAX;

/// What is taken in at once.
const AT_ONCE: usize = 8;

/// A queue `q` on the disk, a consumer that waits for its messages, and others.
fn waiting(loaded_at_once: usize) -> TestHost {
    let mut host = TestHost::with(Limits {
        queue_resident_bytes_max: 20_000,
        loaded_at_once,
        backlog_bytes_per_second: 1 << 20,
        ..Limits::default()
    });
    host.fx.quiet = true;
    host.run("o queue others");
    host.run("o consume others c presettled");
    host.run("a queue q durable");
    fill(&mut host, 0, 900, "persistent");
    host.run("loads hold");
    host
}

/// Puts as many into a queue `r`, and hands nothing on.
fn fill_other(host: &mut TestHost) {
    for number in 0..900 {
        host.act_on(&format!("a publish - r other-{number} persistent"));
    }
}

/// Answers a load, and hands nothing on.
fn answer(host: &mut TestHost) -> usize {
    let load = host.fx.loads.remove(0);
    let records = host.fx.answer(&load);
    host.engine.finish_load(host.now, load.id, records, &mut host.fx);
    load.positions.len()
}

/// How many messages of `q` are in memory.
fn resident(host: &TestHost) -> u64 {
    host.engine.list_queues().find(|queue| queue.name == "q").map_or(0, |it| it.resident_bytes)
}

fn turn(host: &mut TestHost) {
    host.engine.dispatch(host.now, &mut host.fx);
    host.engine.check_invariants(&host.fx.references);
}

/// What came in each turn, until there is nothing more to do.
fn turns(host: &mut TestHost) -> Vec<usize> {
    let mut turns = Vec::new();
    while host.engine.has_work() {
        let before = host.fx.delivered.len();
        turn(host);
        turns.push(host.fx.delivered.len() - before);
    }
    turns
}

/// The bodies that came for `q`, in order from the first on.
fn check_order(host: &TestHost) -> usize {
    let bodies = host.fx.delivered.iter().filter_map(|it| it.2.strip_prefix("message-"));
    let numbers: Vec<usize> = bodies.map(|number| number.parse().unwrap()).collect();
    assert_eq!(numbers, (0..numbers.len()).collect::<Vec<_>>());
    numbers.len()
}

#[test]
fn no_turn_takes_in_more_than_the_limit_says() {
    let mut host = waiting(AT_ONCE);
    host.run("b consume q c presettled");
    let had = check_order(&host);
    let count = answer(&mut host);
    let turns = turns(&mut host);
    assert!(count > 5 * AT_ONCE && turns.len() >= count / AT_ONCE, "{count} in {turns:?}");
    assert!(turns.iter().all(|taken| *taken <= AT_ONCE), "{turns:?}");
    assert_eq!(check_order(&host), had + count);
    host.run("loads");
    assert_eq!(check_order(&host), 900);
}

#[test]
fn what_came_for_many_queues_is_taken_in_over_several_turns() {
    let (queues, each) = (20, 100);
    let mut host = TestHost::with(Limits {
        queue_resident_bytes_max: 4_000,
        loaded_at_once: AT_ONCE,
        ..Limits::default()
    });
    host.fx.quiet = true;
    for queue in 0..queues {
        host.run(&format!("a queue q{queue} durable"));
        for number in 0..each {
            host.act_on(&format!("a publish - q{queue} {queue}-{number} persistent"));
        }
    }
    host.run("loads hold");
    for queue in 0..queues {
        host.act_on(&format!("b consume q{queue} c{queue} presettled"));
    }
    turns(&mut host);
    while !host.fx.loads.is_empty() {
        answer(&mut host);
    }
    let left = |host: &TestHost| {
        let arrivals = host.engine.storage.arrivals.iter();
        arrivals.map(|arrival| arrival.messages.len()).sum::<usize>()
    };
    let (mut before, mut turns) = (left(&host), Vec::new());
    while before > 0 {
        turn(&mut host);
        turns.push(before - left(&host));
        before = left(&host);
    }
    assert!(turns.len() > 5, "{turns:?}");
    assert!(turns.iter().all(|taken| *taken < (PARTS_MAX + 1) * AT_ONCE), "{turns:?}");
    host.run("loads");
    for queue in 0..queues {
        let prefix = format!("{queue}-");
        let bodies = host.fx.delivered.iter().filter_map(|it| it.2.strip_prefix(&prefix));
        assert!(bodies.eq((0..each).map(|number| number.to_string())), "q{queue}");
    }
}

#[test]
fn a_queue_that_is_held_to_a_rate_takes_in_what_it_may_hand_out() {
    let mut host = waiting(100);
    host.run("a publish - others hello");
    host.run("b consume q c presettled");
    let count = answer(&mut host);
    let (had, mut grown) = (check_order(&host), vec![resident(&host)]);
    let on_its_way = |host: &TestHost| {
        host.engine.storage.arrivals.front().map_or(0, |arrival| arrival.loading.bytes)
    };
    let in_all = on_its_way(&host);
    while host.engine.has_work() {
        turn(&mut host);
        grown.push(resident(&host));
        let left = on_its_way(&host);
        assert!(left == 0 || left + resident(&host) == in_all, "what has come counts once");
    }
    assert_eq!((grown[0], check_order(&host)), (0, had), "it rests");
    let each = grown.last().unwrap() / count as u64;
    let most = grown.windows(2).map(|pair| (pair[1] - pair[0]) / each).max().unwrap();
    // Two milliseconds of 1 MiB a second, where a message counts for 256 bytes and those of its record.
    assert!((4..=8).contains(&most), "{grown:?}");
}

#[test]
fn each_queue_has_its_part() {
    let mut host = waiting(AT_ONCE);
    host.run("a queue r durable");
    fill_other(&mut host);
    host.settle_down();
    host.run("b consume q c presettled");
    host.run("b consume r d presettled");
    host.fx.delivered.clear();
    let counts = [answer(&mut host), answer(&mut host)];
    turn(&mut host);
    let of = |name: &str| host.fx.delivered.iter().filter(|it| it.2.starts_with(name)).count();
    assert_eq!([of("message-"), of("other-")], [AT_ONCE, AT_ONCE], "{counts:?}");
}

/// A queue of which some messages are in memory and others were read back, of which `parts` parts
/// were taken in.
fn taken(parts: usize) -> (TestHost, usize) {
    let mut host = waiting(AT_ONCE);
    host.run("b consume q c presettled");
    answer(&mut host);
    (0..parts).for_each(|_| turn(&mut host));
    let came = check_order(&host);
    (host, came)
}

#[test]
fn whoever_leaves_meanwhile_the_rest_is_there() {
    for line in ["b cancel c", "b disconnect", "restart"] {
        for parts in 0..4 {
            let (mut host, came) = taken(parts);
            if line == "restart" {
                host.run(line);
            } else {
                // Within a turn: nothing more is taken in before.
                host.act_on(line);
            }
            host.run("loads");
            let expected: Vec<_> = (came..900).map(|number| format!("message-{number}")).collect();
            assert_eq!(drain_of(&mut host, "q"), expected, "{line} {parts}");
        }
    }
}

#[test]
fn what_comes_after_a_purge_is_all_there_is() {
    for parts in 0..4 {
        let (mut host, _) = taken(parts);
        for line in ["b cancel c", "a purge q", "a publish - q new persistent"] {
            host.act_on(line);
        }
        host.run("loads");
        assert_eq!(drain_of(&mut host, "q"), ["new"], "{parts}");
    }
}

/// It has the same numbers of messages, and its own messages on the disk.
#[test]
fn the_next_queue_in_its_place_has_none_of_it() {
    for parts in 0..4 {
        let (mut host, _) = taken(parts);
        for line in ["b cancel c", "a delete q", "a queue r durable"] {
            host.act_on(line);
        }
        fill_other(&mut host);
        host.run("loads");
        let expected: Vec<_> = (0..900).map(|number| format!("other-{number}")).collect();
        assert_eq!(drain_of(&mut host, "r"), expected, "{parts}");
    }
}
