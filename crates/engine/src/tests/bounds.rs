//! Limits on sizes, times and names: at, below and above each.

use super::{TestHost, check_in};
use crate::interface::limits::{
    DEAD_LETTER_DEPTH_MAX, KEY_BYTES_MAX, Limits, NAME_BYTES_MAX, VALUE_DEPTH_MAX,
};
use crate::*;
use std::time::Duration;

/// What a message with a body of two bytes to the queue `q` costs in memory: the blob's fixed part,
/// key, properties and body, and the entry.
const COST: u64 = 24 + 1 + 10 + 2 + 64;

#[test]
fn a_delay_is_cut_to_the_longest() {
    let limits = Limits { delay_max: Duration::from_millis(100), ..Limits::default() };
    check_in(
        TestHost::with(limits),
        "a exchange x direct delaying
         > a ok
         a queue q
         > a queue q 0 0
         a bind x q k
         > a ok
         b consume q c presettled
         > b consuming c
         a publish x k above delay=101
         a publish x k at delay=100
         a publish x k below delay=99
         time 98
         time 1
         > b deliver c #1 below
         time 1
         > b deliver c #2 above
         > b deliver c #3 at",
    );
}

#[test]
fn what_memory_has_no_room_for_is_spooled() {
    let all = |bytes| Limits { resident_bytes_max: bytes, ..Limits::default() };
    let one = |bytes| Limits { queue_resident_bytes_max: bytes, ..Limits::default() };
    for (limits, spooled) in [
        (all(2 * COST + 1), 0),
        (all(2 * COST), 0),
        (all(2 * COST - 1), 1),
        (one(2 * COST), 0),
        (one(2 * COST - 1), 1),
        (all(COST - 1), 2),
    ] {
        let host = check_in(
            TestHost::with(limits.clone()),
            "a queue q
             > a queue q 0 0
             a publish - q m1
             a publish - q m2",
        );
        assert_eq!(host.engine.counters().spooled, spooled, "{limits:?}");
    }
}

#[test]
fn what_a_consumer_does_not_settle_leaves_memory_to_others() {
    let check = |what: &str, (all, one): (u64, u64), script: &str, spooled: u64| {
        let limits =
            Limits { resident_bytes_max: all, queue_resident_bytes_max: one, ..Limits::default() };
        let mut host = TestHost::with(limits);
        host.run("a queue q");
        host.run("b consume q c");
        for line in script.lines() {
            host.run(line.trim());
        }
        assert_eq!(host.engine.counters().spooled, spooled, "{what}");
        assert_eq!(host.engine.counters().not_stored, 0, "{what}");
        host
    };
    let body = "x".repeat(100);
    let publish = |count| format!("a publish - q {body}\n").repeat(count);
    let little = (Limits::default().resident_bytes_max, 500);
    check("as much as a queue may hold", little, &publish(6), 0);
    check("more", little, &publish(8), 2);
    let settled = format!("{}b accept 6 multiple\n{}", publish(6), publish(6));
    check("settled in time", little, &settled, 0);
    let cost = COST + 98;
    check("memory is half full", (10 * cost, 16 * 250), &publish(10), 4);
    let full = format!("{}storage full\n{}", publish(6), publish(4));
    check("nothing can be stored", little, &full, 0);
    let mut host = check("more, and it comes back", little, &publish(8), 2);
    host.run("b requeue 8 multiple");
    let delivered: Vec<_> = host.fx.delivered.iter().map(|it| it.2.clone()).collect();
    assert_eq!(delivered, vec![body; 16]);
}

#[test]
fn publishers_hear_that_consumers_do_not_keep_up() {
    let check = |what: &str, script: &str, outrun: usize| {
        let limits = Limits { queue_resident_bytes_max: 4 * COST, ..Limits::default() };
        let mut host = TestHost::with(limits);
        for line in script.lines() {
            host.run(line.trim());
        }
        assert_eq!(host.fx.outrun, outrun, "{what}");
    };
    let publish = "a publish - q m1
                   a publish - q m2
                   a publish - q m3
                   a publish - q m4";
    check(
        "half full",
        "a queue q\n b consume q c credit=1\n a publish - q m0\n a publish - q m1\n a publish - q m2",
        0,
    );
    check("more", &format!("a queue q\n b consume q c credit=1\n a publish - q m0\n {publish}"), 2);
    check("nobody consumes", &format!("a queue q\n {publish}"), 0);
    let short = "a queue q length=1";
    check(
        "full, and lets go of others",
        &format!("{short}\n b consume q c credit=1\n a publish - q m0\n {publish}"),
        3,
    );
    check("full, and nobody consumes", &format!("{short}\n {publish}"), 0);
    check(
        "full, and takes nothing more",
        &format!("{short} overflow=reject\n b consume q c credit=1\n a publish - q m0\n {publish}"),
        0,
    );
    check("it is handed on", &format!("a queue q\n b consume q c presettled\n {publish}"), 0);
    let body = "x".repeat(100);
    let bodies = format!("a publish - q {body}\n").repeat(6);
    let taken = format!("a queue q\n b consume q c\n {bodies}");
    check("it is taken, and nothing said of it", &taken, 1);
    let settled = format!("{taken} b accept 6 multiple\n a publish - q m1");
    check("it is settled late", &settled, 1);
    check(
        "on the disk, and nobody could take more",
        &format!(
            "a queue q\n {publish}\n a publish - q m5\n b consume q c credit=1\n a publish - q m6"
        ),
        0,
    );
    check(
        "on the disk, and somebody could take more",
        &format!(
            "a queue q\n {publish}\n a publish - q m5\n loads hold\n b consume q c presettled\n \
             a publish - q m6"
        ),
        1,
    );
}

#[test]
fn a_delayed_message_that_memory_has_no_room_for_is_spooled() {
    // Its exchange is named in the blob.
    let cost = COST + 1;
    for (bytes, spooled) in [(cost + 1, 0), (cost, 0), (cost - 1, 1)] {
        let limits = Limits { resident_bytes_max: bytes, ..Limits::default() };
        let host = check_in(
            TestHost::with(limits),
            "a exchange x direct delaying
             > a ok
             a publish x k m1 delay=10",
        );
        assert_eq!(host.engine.counters().spooled, spooled, "{bytes}");
    }
}

#[test]
fn names_fit_a_byte() {
    let at = "n".repeat(NAME_BYTES_MAX);
    let above = "n".repeat(NAME_BYTES_MAX + 1);
    for make in [
        |name: &str| format!("a queue {name}"),
        |name: &str| format!("a queue d{} dlx={name}", name.len()),
        |name: &str| format!("a queue d{} dlx=x dlk={name}", name.len()),
        |name: &str| format!("a exchange {name} direct"),
        |name: &str| format!("a consume q {name}"),
        |name: &str| format!("a inbox {name}"),
        |name: &str| format!("a create-vhost {name}"),
        |name: &str| format!("a user {name} hash"),
    ] {
        let mut host = TestHost::new();
        host.run("a queue q");
        let line = make("N");
        let refused =
            |lines: Vec<String>| lines.iter().any(|it| it.starts_with("a refused LimitExceeded"));
        assert!(!refused(host.run(&make(&at))), "{line} at the limit");
        assert!(refused(host.run(&make(&above))), "{line} above the limit");
    }
}

#[test]
fn routing_keys_are_longer_than_names() {
    let mut host = TestHost::new();
    for line in ["a queue q durable", "a bind amq.fanout q x"] {
        host.run(line);
    }
    let (at, above) = ("k".repeat(KEY_BYTES_MAX), "k".repeat(KEY_BYTES_MAX + 1));
    assert_eq!(host.run(&format!("a publish amq.fanout {at} body persistent cc={at}")), [""; 0]);
    let refused = "a refused LimitExceeded: a routing key of more than 4096 bytes";
    assert_eq!(host.run(&format!("a publish amq.fanout {above} body")), [refused]);
    let refused = "a refused LimitExceeded: a further routing key of more than 4096 bytes";
    assert_eq!(host.run(&format!("a publish amq.fanout k body cc={above}")), [refused]);
    host.run("a bind amq.topic q #");
    let long = "a.".repeat(200);
    assert_eq!(host.run(&format!("a emit {long}b direct")), [""; 0]);
    host.run("restart");
    check_in(
        host,
        "a consume q t
         > a consuming t
         > a deliver t #1 body redelivered
         > a deliver t #2 direct redelivered",
    );
}

#[test]
fn further_keys_are_counted() {
    let content = Content {
        format: Format(1),
        properties: b"",
        body: b"body",
        shared: None,
        persistent: false,
        priority: 0,
        ttl: None,
    };
    for (count, is_taken) in [(1, true), (254, true), (255, true), (256, false)] {
        let mut host = TestHost::new();
        host.run("a queue q");
        let channel = host.channel("a");
        let also_to = vec!["q"; count];
        let publish = Publish {
            exchange: "",
            routing_key: "q",
            also_to: &also_to,
            mandatory: false,
            retain: Retain::No,
            not_before: None,
            transaction: None,
            content,
        };
        let result = host.engine.publish(host.now, channel, &publish, &mut host.fx);
        let refused = result.map_err(|refusal| refusal.kind);
        let expected = if is_taken { Ok(()) } else { Err(RefusalKind::LimitExceeded) };
        assert_eq!(refused, expected, "{count} further keys");
        let left = usize::from(is_taken);
        assert_eq!(host.run("a passive q"), [format!("a queue q {left} 0")]);
    }
}

#[test]
fn arguments_are_only_as_deep_as_records_bring_back() {
    for (depth, is_taken) in
        [(VALUE_DEPTH_MAX - 1, true), (VALUE_DEPTH_MAX, true), (VALUE_DEPTH_MAX + 1, false)]
    {
        let mut host = TestHost::new();
        host.run("a queue q durable");
        let channel = host.channel("a");
        let nested = (0..depth).fold(Value::Null, |inner, level| match level % 2 {
            0 => Value::List(vec![inner]),
            _ => Value::Map(Arguments::from([("inner".to_owned(), inner)])),
        });
        let arguments = Arguments::from([("outer".to_owned(), nested)]);
        let bind = Request::Bind(Binding {
            source: "amq.direct".to_owned(),
            target: BindingTarget::Queue("q".to_owned()),
            key: "k".to_owned(),
            arguments: arguments.clone(),
            filter: None,
            not_from: None,
        });
        host.engine.request(host.now, channel, bind, &mut host.fx);
        let options = QueueOptions { durable: true, other: arguments, ..QueueOptions::default() };
        let declare = Request::DeclareQueue { name: "r".to_owned(), options: Some(options) };
        host.engine.request(host.now, channel, declare, &mut host.fx);
        let answers = host.run("restart");
        let refused = answers.iter().filter(|it| it.starts_with("a refused LimitExceeded"));
        assert_eq!(refused.count(), if is_taken { 0 } else { 2 }, "{depth}: {answers:?}");
        assert_eq!(host.engine.list_bindings().count(), usize::from(is_taken), "{depth}");
        assert_eq!(host.engine.list_queues().count(), 1 + usize::from(is_taken), "{depth}");
    }
}

#[test]
fn full_queues_pass_dead_letters_on_so_often_and_no_more() {
    for (queues, arrives) in [
        (DEAD_LETTER_DEPTH_MAX - 1, true),
        (DEAD_LETTER_DEPTH_MAX, true),
        (DEAD_LETTER_DEPTH_MAX + 1, false),
    ] {
        let mut host = TestHost::new();
        for queue in 0..queues {
            host.run(&format!("a queue q{queue} length=0 dlx=- dlk=q{}", queue + 1));
        }
        host.run(&format!("a queue q{queues}"));
        host.run("a publish - q0 body");
        let left = u32::from(arrives);
        let answer = host.run(&format!("a passive q{queues}"));
        assert_eq!(answer, [format!("a queue q{queues} {left} 0")], "{queues} full queues");
        assert_eq!(host.engine.counters().dead_letter_cycles, u64::from(!arrives));
    }
}

/// Publishes one message after the other to `queues` queues each within one turn; returns how many
/// those are at most without and with consumers.
#[track_caller]
fn check_placed(queues: usize, stored: usize, passed: usize) {
    for (is_consumed, publishes) in [(false, stored), (true, passed)] {
        let mut host = TestHost::new();
        for number in 0..queues {
            host.run(&format!("a queue q{number}"));
            host.run(&format!("a bind amq.fanout q{number} k"));
            if is_consumed {
                host.run(&format!("b consume q{number} c{number} presettled"));
            }
        }
        host.engine.begin_work_budget();
        let mut count = 0;
        while count < 5_000 && !host.engine.is_step_over() {
            host.act_on("a publish amq.fanout k x");
            count += 1;
        }
        assert_eq!(count, publishes, "{queues}, consumed: {is_consumed}");
    }
}

#[test]
fn who_publishes_to_many_queues_lets_others_have_their_turn() {
    check_placed(1, 5_000, 5_000);
    check_placed(2, 1_024, 4_095);
    // To find the queues of the first message counts, too.
    check_placed(100, 11, 41);
    check_placed(400, 3, 10);
}

#[test]
fn a_range_of_settles_counts_as_many_operations_as_it_has_deliveries() {
    let limits = Limits { transaction_operations_max: 3, ..Limits::default() };
    check_in(
        TestHost::with(limits),
        "a queue q
         > a queue q 0 0
         a publish - q 1
         a publish - q 2
         a publish - q 3
         a publish - q 4
         a publish - q 5
         a publish - q 6
         a publish - q 7
         a consume q c
         > a consuming c
         > a deliver c #1 1
         > a deliver c #2 2
         > a deliver c #3 3
         > a deliver c #4 4
         > a deliver c #5 5
         > a deliver c #6 6
         > a deliver c #7 7
         a accept 2 to=3
         a begin
         > a transaction 1
         // Two of the four are settled.
         a accept 1 to=4 in=1
         a accept 5 in=1
         a end-transaction 1 commit
         > a ok
         a passive q
         > a queue q 0 1
         a close",
    );
}
