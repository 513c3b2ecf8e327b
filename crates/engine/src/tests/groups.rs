//! What a message that full queues refuse leads to, as far as it belongs to a group of records.

use super::TestHost;

/// A fan-out to `full` queues that are full and hand on what they refuse to `dead` others, to one
/// that takes all, and a queue whose own dead letters go to it.
fn crowd(full: usize, dead: usize) -> TestHost {
    let mut host = TestHost::new();
    host.run("a exchange x fanout durable delaying");
    host.run("a exchange y fanout durable");
    for number in 0..full {
        host.run(&format!("a queue q{number} durable length=1 overflow=reject-dead-letter dlx=y"));
        host.run(&format!("a publish - q{number} old persistent"));
        host.run(&format!("a bind x q{number} k"));
    }
    host.run("a queue taker durable");
    host.run("a bind x taker k");
    for number in 0..dead {
        host.run(&format!("a queue dead{number} durable"));
        host.run(&format!("a bind y dead{number} k"));
    }
    host.run("a queue dying durable dlx=x dlk=k");
    host
}

/// What leads to a message for the exchange, in a group with something else.
const WAYS: [&[&str]; 4] = [
    &["a publish x k BODY persistent delay=50", "time 50"],
    &["a transactions", "a publish x k BODY persistent", "a commit"],
    &["a publish - dying BODY persistent", "a get dying", "a discard 1"],
    &[
        "a publish - dying BODY persistent",
        "a get dying",
        "a transactions",
        "a discard 1",
        "a commit",
    ],
];

fn go(host: &mut TestHost, way: &[&str]) {
    for line in way {
        host.run(&line.replace("BODY", &"b".repeat(20_000)));
    }
}

/// How many of its messages are new.
fn count(host: &mut TestHost, queue: &str) -> usize {
    host.fx.quiet = true;
    host.fx.delivered.clear();
    host.run(&format!("z consume {queue} c presettled"));
    // Where others are served too, not all comes at once.
    host.run("time 10");
    host.run("z cancel c");
    host.fx.quiet = false;
    host.fx.delivered.iter().filter(|(_, _, body, _)| body.starts_with('b')).count()
}

#[test]
fn a_group_has_room_for_what_many_full_queues_refuse() {
    const FULL: usize = 100;
    for way in WAYS {
        let mut host = crowd(FULL, 3);
        go(&mut host, way);
        assert_eq!(count(&mut host, "taker"), 1, "{way:?}");
        for dead in ["dead0", "dead1", "dead2"] {
            assert_eq!(count(&mut host, dead), FULL, "{way:?}");
        }
        for full in ["q0", "q99"] {
            assert_eq!(count(&mut host, full), 0, "{way:?}");
        }
    }
}

#[test]
fn a_crash_at_any_record_loses_no_copy() {
    const FULL: usize = 4;
    for way in WAYS {
        for memory in [false, true] {
            crash(way, memory);
        }
    }

    fn crash(way: &[&str], memory: bool) {
        for lost in 0.. {
            let mut host = crowd(FULL, 1);
            if !memory {
                host.engine.options.limits.resident_bytes_max = 0;
            }
            let (last, first) = way.split_last().unwrap();
            go(&mut host, first);
            let before = host.fx.records.len();
            go(&mut host, &[last]);
            let records = host.fx.records.len();
            if before + lost > records {
                return;
            }
            // A group is there as a whole or not at all.
            let kept = records - lost;
            let groups = &host.fx.groups;
            let nexts = groups.iter().skip(1).map(|group| group.0).chain([records]);
            let mut ranges =
                groups.iter().zip(nexts).map(|(at, next)| at.0 + 1..next.min(at.0 + at.1));
            if ranges.any(|range| range.contains(&kept)) {
                continue;
            }
            host.run(&format!("restart lose={lost}"));
            if kept == before {
                // Nothing came of it: it is where it was, or it was never there.
                continue;
            }
            host.run("time 50");
            let taken = count(&mut host, "taker");
            let dead = count(&mut host, "dead0");
            let still: usize = (0..FULL).map(|at| count(&mut host, &format!("q{at}"))).sum();
            assert_eq!((taken, dead + still), (1, FULL), "{way:?}: {lost} of {records} lost");
        }
    }
}
