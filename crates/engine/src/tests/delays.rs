//! Delayed messages: in order, within memory, and all there whatever happens to the broker.

use super::{TestHost, check, check_in};
use crate::interface::limits::Limits;
use crate::publish::delay::LOAD_BYTES_MAX;

/// A host whose delayed messages all have to be read back, with a durable queue that gets them.
pub(super) fn forgetful() -> TestHost {
    prepared(Limits { resident_bytes_max: 0, ..Limits::default() })
}

fn prepared(limits: Limits) -> TestHost {
    let mut host = TestHost::with(limits);
    host.run("a exchange x direct durable delaying");
    host.run("a queue q durable");
    host.run("a bind x q k");
    host
}

/// Messages with numbers for bodies, padded to `bytes`, all due in 100 ms.
pub(super) fn delay(
    host: &mut TestHost,
    numbers: std::ops::Range<u32>,
    bytes: usize,
    options: &str,
) {
    for number in numbers {
        let body = format!("{}{number:04}", "0".repeat(bytes.saturating_sub(4)));
        host.run(&format!("a publish x k {body} delay=100 {options}"));
    }
}

/// Takes everything out of the queue; the numbers in the order in which they came.
pub(super) fn drain(host: &mut TestHost) -> Vec<u32> {
    host.fx.quiet = true;
    host.fx.delivered.clear();
    host.run("z consume q c presettled");
    host.run("z cancel c");
    host.fx.delivered.iter().map(|(_, _, body, _)| body.parse().unwrap()).collect()
}

fn asked(host: &TestHost) -> usize {
    host.fx.loads.iter().map(|load| load.positions.len()).sum()
}

#[test]
fn those_due_together_are_read_a_window_at_a_time() {
    const COUNT: u32 = 12;
    let window = LOAD_BYTES_MAX as usize;
    for (options, limits, bytes, at_once) in [
        ("persistent", Limits::default(), window, 1),
        ("persistent", Limits::default(), window / 2, 1),
        ("persistent", Limits::default(), window / 10, 9),
        ("", Limits::default(), window / 10, 9),
        ("", Limits { resident_bytes_max: 0, ..Limits::default() }, window / 10, 1),
    ] {
        // Once they are published they may stay in memory, unless it has no room: no consumer is there.
        let mut host = prepared(Limits { resident_bytes_max: 0, ..limits.clone() });
        delay(&mut host, 0..COUNT, bytes, options);
        host.engine.options.limits = limits.clone();
        host.run("loads hold");
        host.run("time 100");
        let mut loads = 0;
        while !host.fx.loads.is_empty() {
            assert_eq!(host.fx.loads.len(), 1, "one load at a time");
            let first = loads * at_once;
            assert_eq!(asked(&host), at_once.min(COUNT as usize - first), "{options} {bytes}");
            host.run("load");
            loads += 1;
        }
        assert_eq!(loads, (COUNT as usize).div_ceil(at_once));
        host.run("loads");
        assert_eq!(drain(&mut host), (0..COUNT).collect::<Vec<_>>(), "{options} {bytes}");
        assert!(host.fx.references.is_empty(), "{:?}", host.fx.references);
    }
}

#[test]
fn a_window_is_no_more_than_memory_has_room_for() {
    let mut host = forgetful();
    delay(&mut host, 0..600, 10_000, "persistent");
    host.engine.options.limits.resident_bytes_max = 100_000;
    host.run("loads hold");
    host.run("time 100");
    while !host.fx.loads.is_empty() {
        let held = host.engine.resident() + host.engine.storage.loading_bytes;
        // One is asked for however little room there is.
        assert!(held <= 100_000 + 11_000, "{held} bytes");
        host.run("load");
    }
    host.run("loads");
    assert_eq!(drain(&mut host), (0..600).collect::<Vec<_>>());
}

#[test]
fn they_take_up_no_more_memory_than_a_queue_may() {
    let limits = Limits { queue_resident_bytes_max: 50_000, ..Limits::default() };
    for options in ["", "persistent"] {
        let mut host = prepared(limits.clone());
        delay(&mut host, 0..100, 1_000, options);
        assert!((40_000..=50_000).contains(&host.engine.resident()));
        host.run("time 100");
        assert_eq!(drain(&mut host), (0..100).collect::<Vec<_>>());
        assert!(host.fx.references.is_empty(), "{:?}", host.fx.references);
    }
}

#[test]
fn due_time_then_arrival_whether_in_memory_or_not() {
    let mut host = forgetful();
    let limits = host.engine.options.limits.clone();
    for line in ["x k 5 delay=60", "x k 3 delay=50", "x k 4 delay=50 persistent"] {
        host.run(&format!("a publish {line}"));
    }
    host.engine.options.limits = Limits::default();
    for line in ["x k 6 delay=60", "x k 1 delay=40", "x k 7 delay=60 persistent"] {
        host.run(&format!("a publish {line}"));
    }
    host.engine.options.limits = limits;
    host.run("a publish x k 2 delay=40");
    host.run("a publish x k 8 delay=60");
    host.run("loads hold");
    host.run("time 60");
    // What is in memory waits for what is read.
    while !host.fx.loads.is_empty() {
        host.run("load");
    }
    host.run("loads");
    assert_eq!(drain(&mut host), (1..=8).collect::<Vec<_>>());
}

#[test]
fn more_than_the_limit_are_refused() {
    for options in ["", "persistent"] {
        for (most, refused) in [(3, false), (2, false), (1, true)] {
            let mut host = prepared(Limits { delayed_max: most, ..Limits::default() });
            host.run("a confirms");
            delay(&mut host, 1..3, 1, options);
            host.run("time 100");
            let mut answers = host.run("flush");
            answers.extend(host.run("a passive q"));
            let taken = if refused { 1 } else { 2 };
            assert!(answers.contains(&format!("a queue q {taken} 0")), "{most}: {answers:?}");
            assert_eq!(host.engine.counters().not_stored, u64::from(refused), "{most}");
            // Room again.
            delay(&mut host, 3..4, 1, options);
            assert_eq!(host.engine.counters().not_stored, u64::from(refused), "{most}");
        }
    }
}

#[test]
fn one_user_leaves_a_quarter_of_the_limit_to_others() {
    let mut host = prepared(Limits { delayed_max: 8, ..Limits::default() });
    for line in ["a user bob hash", "a permit bob .* .* .*", "login b bob"] {
        host.run(line);
    }
    delay(&mut host, 0..7, 1, "");
    assert_eq!(host.engine.counters().not_stored, 1, "ann has six");
    for number in 7..10 {
        host.run(&format!("b publish x k {number} delay=100"));
    }
    assert_eq!(host.engine.counters().not_stored, 2, "bob has the other two");
    host.run("time 100");
    delay(&mut host, 10..11, 1, "");
    assert_eq!(host.engine.counters().not_stored, 2, "there is room again");
}

#[test]
fn a_crash_among_them_loses_none() {
    for with_snapshot in [false, true] {
        for answered in 0..6 {
            let mut host = forgetful();
            host.engine.options.limits.queue_resident_bytes_max = 10_000;
            delay(&mut host, 0..50, 1_500, "persistent");
            if with_snapshot {
                host.run("snapshot");
            }
            host.run("loads hold");
            host.engine.options.limits.resident_bytes_max = 10 << 20;
            host.run("time 100");
            for _ in 0..answered {
                host.run("load");
            }
            host.run("restart");
            host.run("loads");
            let late = (50..60).map(|number| format!("a publish x k {number} persistent delay=1"));
            late.for_each(|line| drop(host.run(&line)));
            host.run("time 1");
            assert_eq!(drain(&mut host), (0..60).collect::<Vec<_>>(), "{answered} loads");
            let redelivered = host.fx.delivered.iter().filter(|it| it.3).count();
            assert_eq!(redelivered, 50, "{answered} loads");
            assert!(host.fx.references.is_empty(), "{:?}", host.fx.references);
        }
    }
}

#[test]
fn one_that_cannot_be_read_keeps_only_itself_back() {
    for damaged in [0, 1, 7, 299] {
        let mut host = forgetful();
        delay(&mut host, 0..300, 8, "persistent");
        host.run(&format!("damage {damaged:04}"));
        host.engine.options.limits = Limits::default();
        host.run("time 100");
        let others = (0..300).filter(|number| *number != damaged);
        assert_eq!(drain(&mut host), others.collect::<Vec<_>>());
        assert_eq!(host.engine.counters().unreadable, 1);
        host.run("repair");
        host.run("restart");
        assert_eq!(drain(&mut host), [damaged]);
        assert!(host.fx.references.is_empty(), "{:?}", host.fx.references);
    }
}

#[test]
fn a_queue_or_an_exchange_that_is_gone_when_they_are_read() {
    for gone in ["a delete q", "a delete-exchange x"] {
        let mut host = forgetful();
        delay(&mut host, 0..300, 8, "persistent");
        host.run("loads hold");
        host.run("time 100");
        host.run(gone);
        host.run("loads");
        assert!(host.fx.references.is_empty(), "{:?}", host.fx.references);
    }
}

#[test]
fn segments_move_under_those_being_read() {
    let mut host = forgetful();
    delay(&mut host, 0..40, 8, "persistent");
    host.run("loads hold");
    host.run("time 100");
    for segment in 0..4 {
        host.run(&format!("relocate {segment}"));
    }
    host.run("loads");
    assert_eq!(drain(&mut host), (0..40).collect::<Vec<_>>());
    assert!(host.fx.references.is_empty(), "{:?}", host.fx.references);
}

#[test]
fn a_large_fan_out_of_a_small_one_is_one_group() {
    let mut host = forgetful();
    for number in 0..600 {
        host.run(&format!("a queue q{number} durable"));
        host.run(&format!("a bind x q{number} k"));
    }
    host.run("a publish x k 1 persistent delay=100");
    // The host in memory looks at the size of the group.
    check_in(
        host,
        "time 100
         a passive q599
         > a queue q599 1 0",
    );
}

#[test]
fn loads_say_whether_what_they_read_is_appended() {
    let appends =
        |host: &TestHost| host.fx.loads.iter().map(|load| load.appends).collect::<Vec<_>>();
    let mut host = forgetful();
    host.run("loads hold");
    host.run("a publish x k late delay=100 persistent");
    host.run("time 100");
    assert_eq!(appends(&host), [true], "a message whose delay is over");
    host.run("load");
    host.run("z consume q c");
    assert_eq!(appends(&host), [false], "a message for a consumer");
    let mut host = forgetful();
    host.run("a queue dying durable ttl=100 dlx=- dlk=q");
    host.run("loads hold");
    host.run("a publish - dying short persistent");
    host.run("time 100");
    assert_eq!(appends(&host).last(), Some(&true), "a dead letter");
}

#[test]
fn what_was_confirmed_waits_for_space_where_it_could_only_be_dropped() {
    let bytes = 1000;
    // Memory has room for the messages while they wait, not for what is in the queue beside them.
    let mut host = prepared(Limits { resident_bytes_max: 4 * bytes, ..Limits::default() });
    delay(&mut host, 0..3, bytes as usize, "");
    host.run("storage full");
    host.run("time 100");
    host.run("time 100");
    assert_eq!(host.engine.counters().not_stored, 0, "nothing is dropped");
    host.run("storage ready");
    host.run("time 100");
    assert_eq!(drain(&mut host), [0, 1, 2]);
}

/// What a client publishes with a delay does not come to subscriptions that take nothing of that client,
/// also where it has gone or the broker has started anew meanwhile.
#[test]
fn a_binding_that_does_not_take_a_clients_messages_does_not_take_its_delayed_ones() {
    for meanwhile in ["b disconnect", "restart", "snapshot\nrestart", "b disconnect\nrestart clean"]
    {
        check(&format!(
            "a queue mine durable
             > a queue mine 0 0
             a queue all durable
             > a queue all 0 0
             a bind amq.topic mine x not-from=me
             > a ok
             a bind amq.topic all x
             > a ok
             name b me
             name c other
             b publish amq.topic x 1 persistent delay=100
             c publish amq.topic x 2 persistent delay=100
             {meanwhile}
             time 100
             a passive mine
             > a queue mine 1 0
             a passive all
             > a queue all 2 0
             a get mine
             > a deliver  #1 2
             > a got, 0 left"
        ));
    }
}

/// A dead letter is the broker's, which moves it: a binding that does not take the messages of a client takes
/// those of its messages that have died.
#[test]
fn a_dead_letter_is_no_clients() {
    check(
        "a queue q dlx=amq.topic dlk=x
         > a queue q 0 0
         a queue mine
         > a queue mine 0 0
         a bind amq.topic mine x not-from=me
         > a ok
         name b me
         b publish amq.topic x 1
         b publish - q 2
         c get q
         > c deliver  #1 2
         > c got, 0 left
         c discard 1
         a get mine
         > a deliver  #1 2 died=Rejected:q:1
         > a got, 0 left",
    );
}

/// Messages of a format whose delays count as a part of their lives, and others.
#[test]
fn a_time_to_live_counts_from_sending_or_from_the_end_of_the_delay() {
    for (publish, meanwhile) in [
        ("PUBLISH", ""),
        ("PUBLISH", "restart"),
        ("PUBLISH", "snapshot\nrestart clean"),
        (
            "a begin\n> a transaction 1\nPUBLISH in=1\ntime 10\na end-transaction 1 commit\nflush\n> a ok",
            "",
        ),
    ] {
        let publish = |line: &str| publish.replace("PUBLISH", line);
        // Of lives that end with the delay nothing is left.
        for (format, ttl, alive, then) in
            [(3, 150, 49, 1), (3, 100, 0, 0), (3, 20, 0, 0), (1, 150, 149, 1), (1, 20, 19, 1)]
        {
            let sent =
                publish(&format!("a publish - q 1 persistent delay=100 ttl={ttl} format={format}"));
            let is_late = sent.contains("time 10");
            let (rest, during) = if is_late { (90, alive) } else { (100, alive) };
            let is_there = u8::from(alive > 0);
            check(&format!(
                "a queue q durable
                 > a queue q 0 0
                 {sent}
                 {meanwhile}
                 time {rest}
                 a passive q
                 > a queue q {is_there} 0
                 time {during}
                 a passive q
                 > a queue q {is_there} 0
                 time {then}
                 a passive q
                 > a queue q 0 0"
            ));
        }
    }
}
