//! What a queue with much in it hands out at once, and beside others: shares, rests, and that nothing is
//! lost.

use super::TestHost;
use crate::Time;
use crate::interface::limits::Limits;
use std::time::Duration;

/// Bodies of what waits, and how many of them are a share of 128 MiB a second: each counts for 256 bytes
/// more.
const BODY_BYTES: usize = 8_000;
const SHARE: usize = share(128 << 20);
const INTERVAL: Duration = Duration::from_micros(interval_micros(128 << 20));
/// How many messages a queue hands out at once beside nobody.
const FIRST: usize = (512usize << 10).div_ceil(BODY_BYTES + 256);

/// In which 64 KiB are handed out, or less at a low rate and more at a high one.
const fn interval_micros(bytes_per_second: usize) -> u64 {
    match (64_000_000 << 10) / bytes_per_second as u64 {
        0..500 => 500,
        micros @ 500..=2_000 => micros,
        _ => 2_000,
    }
}

const fn share(bytes_per_second: usize) -> usize {
    let bytes = bytes_per_second as u64 * interval_micros(bytes_per_second) / 1_000_000;
    (bytes as usize).div_ceil(BODY_BYTES + 256)
}

/// Queues with messages whose bodies begin with their names and numbers; and other clients with
/// traffic.
fn host(limits: Limits, queues: &[(&str, usize)]) -> TestHost {
    let mut host = TestHost::with(limits);
    host.run("o queue others");
    host.run("o consume others c presettled");
    for (queue, messages) in queues {
        host.run(&format!("a queue {queue} durable"));
        for number in 0..*messages {
            let body = format!("{queue}-{number:x<BODY_BYTES$}");
            host.run(&format!("a publish - {queue} {body} persistent"));
        }
    }
    host.fx.quiet = true;
    host
}

/// Time passes.
fn pass(host: &mut TestHost, time: Duration) {
    host.now = host.now.plus(time);
    host.settle_down();
}

/// Others get a message.
fn talk(host: &mut TestHost) {
    let before = host.fx.delivered.len();
    host.run("a publish - others hello");
    assert!(host.fx.delivered[before..].iter().any(|it| it.2 == "hello"));
}

/// How many of a queue's messages have come, which must be in order.
fn come(host: &TestHost, queue: &str) -> usize {
    let of_queue = format!("{queue}-");
    let bodies = host.fx.delivered.iter().filter_map(|it| it.2.strip_prefix(&of_queue));
    let numbers = bodies.map(|body| body.split('x').next().unwrap().parse().unwrap());
    let numbers: Vec<usize> = numbers.collect();
    assert_eq!(numbers, (0..numbers.len()).collect::<Vec<_>>());
    numbers.len()
}

/// Messages that stay in memory, and such as have to be read back.
fn places() -> [Limits; 2] {
    let cold = Limits { queue_resident_bytes_max: 0, ..Limits::default() };
    [Limits::default(), cold]
}

#[test]
fn who_drains_alone_gets_all_at_once() {
    for limits in places() {
        let mut host = host(limits, &[("q", 300)]);
        host.run("b consume q c presettled");
        assert_eq!(come(&host, "q"), 300);
    }
}

#[test]
fn those_who_drain_are_no_hindrance_to_each_other() {
    let mut host = host(Limits::default(), &[("p", 300), ("q", 300)]);
    // Others were there, long ago.
    talk(&mut host);
    host.run("b consume p c presettled credit=1");
    pass(&mut host, Duration::from_secs(1));
    host.run("b consume q d presettled");
    host.run("b consume p e presettled");
    // At first it cannot be known how long ago that was.
    pass(&mut host, 5 * INTERVAL);
    assert_eq!((come(&host, "p"), come(&host, "q")), (300, 300));
}

#[test]
fn beside_others_a_drain_has_one_share_in_each_interval() {
    for mib_per_second in [128, 64, 32, 16, 1] {
        check_rate(mib_per_second << 20);
    }
}

#[track_caller]
fn check_rate(bytes_per_second: usize) {
    let rate = u64::try_from(bytes_per_second).unwrap();
    let limits = Limits { backlog_bytes_per_second: rate, ..Limits::default() };
    let (share, all) = (share(bytes_per_second), FIRST + 10 * share(bytes_per_second));
    let interval = Duration::from_micros(interval_micros(bytes_per_second));
    let mut host = host(limits, &[("q", all)]);
    talk(&mut host);
    host.run("b consume q c presettled");
    // Nobody knew yet that it would be a drain.
    let (began, mut had) = (host.now, come(&host, "q"));
    assert!((FIRST..FIRST + share).contains(&had), "{had} at {rate}");
    let time = |messages: usize| {
        let bytes = u64::try_from(messages * (BODY_BYTES + 256)).unwrap();
        Duration::from_nanos(bytes * 1_000_000_000 / rate)
    };
    while had < all {
        talk(&mut host);
        pass(&mut host, time(share) / 10);
        let more = come(&host, "q") - std::mem::replace(&mut had, come(&host, "q"));
        assert!([0, share].contains(&more) || had == all, "{more} at {rate}");
        assert!(
            time(had - more) <= host.now.since(began) + interval || more == 0,
            "{had} at {rate}"
        );
    }
    // The looks are a tenth of a share's time apart.
    assert!(host.now.since(began) <= time(all) * 11 / 10 + interval, "{rate}");
}

/// How many messages may have come since then.
fn most(host: &TestHost, began: Time) -> usize {
    let intervals = host.now.since(began).as_micros() / INTERVAL.as_micros();
    FIRST + SHARE * usize::try_from(intervals).unwrap()
}

#[test]
fn however_little_is_taken_at_once_it_is_read_back_in_long_pieces() {
    let limits = Limits { queue_resident_bytes_max: 1 << 20, ..Limits::default() };
    let mut host = host(limits, &[("q", 600)]);
    talk(&mut host);
    host.run("b consume q c presettled");
    host.run("loads hold");
    let mut pieces = Vec::new();
    while come(&host, "q") < 600 {
        talk(&mut host);
        pass(&mut host, INTERVAL);
        pieces.extend(host.fx.loads.iter().map(|load| load.positions.len()));
        host.run("loads");
        host.run("loads hold");
    }
    pieces.pop();
    let is_long = |count: &usize| count * BODY_BYTES >= 200 << 10;
    assert!(!pieces.is_empty() && pieces.iter().all(is_long), "{pieces:?}");
}

#[test]
fn small_portions_come_no_faster() {
    let mut host = host(Limits::default(), &[("q", 20 * SHARE)]);
    talk(&mut host);
    host.run("b consume q c credit=10");
    let began = host.now;
    for _ in 0..100 {
        talk(&mut host);
        let last = come(&host, "q");
        host.run(&format!("b accept {last} multiple"));
        pass(&mut host, INTERVAL / 50);
    }
    let come = come(&host, "q");
    assert!((SHARE..=most(&host, began)).contains(&come), "{come}");
}

#[test]
fn gets_are_answered_at_once_and_hasten_no_drain() {
    for limits in places() {
        let mut host = host(limits, &[("q", 20 * SHARE)]);
        talk(&mut host);
        host.run("b consume q c presettled");
        let began = host.now;
        for gets in 1..=100 {
            talk(&mut host);
            host.run("a get q presettled");
            let getter = host.channel("a");
            let of_queue = host.fx.delivered.iter().filter(|it| it.2.starts_with("q-"));
            let (got, drained): (Vec<_>, Vec<_>) = of_queue.partition(|it| it.0 == getter);
            assert_eq!(got.len(), gets);
            assert!(drained.len() <= most(&host, began), "{}", drained.len());
            pass(&mut host, INTERVAL / 50);
        }
    }
}

#[test]
fn a_queue_that_gets_as_much_as_it_hands_out_is_not_held_up() {
    let micros = Duration::from_micros;
    for (mib_per_second, gap) in
        [(128, micros(50)), (32, micros(50)), (32, micros(2_000)), (1, micros(5_000))]
    {
        let limits = Limits { backlog_bytes_per_second: mib_per_second << 20, ..Limits::default() };
        let mut host = host(limits, &[("q", 10 * SHARE)]);
        host.run("b consume q c credit=6");
        pass(&mut host, Duration::from_secs(1));
        let mut number = 10 * SHARE;
        for round in 0..100 {
            talk(&mut host);
            for _ in 0..6 {
                host.run(&format!("a publish - q q-{number:x<BODY_BYTES$}"));
                number += 1;
            }
            let had = come(&host, "q");
            host.run(&format!("b accept {had} multiple"));
            for _ in 0..gap.as_micros().div_ceil(500) {
                talk(&mut host);
                pass(&mut host, gap.min(INTERVAL));
            }
            // What came while nobody took anything for a second is drained, and has its time.
            let is_known = round * gap > Duration::from_millis(100) || round > 30;
            assert!(
                !is_known || come(&host, "q") - had == 6,
                "round {round}, {mib_per_second} MiB/s"
            );
        }
    }
}

#[test]
fn however_long_it_would_have_to_rest_it_goes_on_when_others_are_gone() {
    let limits = Limits { backlog_bytes_per_second: 1 << 20, ..Limits::default() };
    let mut host = host(limits, &[("q", 300)]);
    talk(&mut host);
    host.run("b consume q c presettled");
    assert_eq!(come(&host, "q"), FIRST);
    // 256 KiB have a quarter of a second.
    for _ in 0..200 {
        talk(&mut host);
        pass(&mut host, Duration::from_millis(1));
        assert_eq!(come(&host, "q"), FIRST);
    }
    pass(&mut host, Duration::from_millis(1));
    pass(&mut host, Duration::from_millis(1));
    assert_eq!(come(&host, "q"), 300);
}

#[test]
fn any_rate_is_one() {
    for rate in [0, 1, 1 << 30, u64::MAX] {
        let limits = Limits { backlog_bytes_per_second: rate, ..Limits::default() };
        let mut host = host(limits, &[("q", 300)]);
        talk(&mut host);
        host.run("b consume q c presettled");
        for _ in 0..10 {
            talk(&mut host);
            pass(&mut host, INTERVAL);
        }
        assert_eq!(come(&host, "q") == 300, rate > 1, "{rate}");
        pass(&mut host, Duration::from_millis(3));
        pass(&mut host, Duration::from_millis(3));
        assert_eq!(come(&host, "q"), 300, "{rate}");
    }
}

#[test]
fn without_others_it_goes_on_as_fast_as_it_can() {
    for limits in places() {
        let mut host = host(limits, &[("q", 300)]);
        talk(&mut host);
        host.run("b consume q c presettled");
        assert!(come(&host, "q") <= FIRST);
        for _ in 0..4 {
            pass(&mut host, INTERVAL * 11 / 10);
        }
        assert_eq!(come(&host, "q"), 300);
    }
}

#[test]
fn a_queue_with_nothing_left_is_nobody_who_drains() {
    let mut host = host(Limits::default(), &[("q", 0)]);
    host.run("b consume q c presettled");
    for number in 0..10 * SHARE {
        talk(&mut host);
        host.run(&format!("a publish - q q-{number:x<BODY_BYTES$}"));
        assert_eq!(come(&host, "q"), number + 1);
    }
}

#[test]
fn a_queue_that_rests_can_be_deleted_and_its_place_taken() {
    let mut host = host(Limits::default(), &[("q", 2 * FIRST)]);
    talk(&mut host);
    host.run("b consume q c presettled");
    host.run("a delete q");
    host.run("a queue p");
    host.run("b consume p d presettled");
    host.run("a publish - p p-0");
    assert_eq!((come(&host, "q"), come(&host, "p")), (FIRST, 1));
    pass(&mut host, INTERVAL * 2);
    host.run("a publish - p p-1");
    assert_eq!((come(&host, "q"), come(&host, "p")), (FIRST, 2));
}

#[test]
fn many_queues_that_are_full_are_served_over_several_turns() {
    let (queues, messages) = (60, 200);
    let mut host = TestHost::with(Limits::default());
    host.fx.quiet = true;
    for queue in 0..queues {
        host.run(&format!("a queue q{queue}"));
        for number in 0..messages {
            host.act_on(&format!("a publish - q{queue} {queue}-{number}"));
        }
    }
    for queue in 0..queues {
        host.act_on(&format!("b consume q{queue} c{queue} presettled"));
    }
    let (mut turns, mut had) = (Vec::new(), 0);
    while host.engine.has_work() {
        host.engine.dispatch(host.now, &mut host.fx);
        turns.push(host.fx.delivered.len() - had);
        had = host.fx.delivered.len();
    }
    // 2 MiB and a queue's last share, where a message counts for 256 bytes.
    assert!(turns.iter().all(|handed| *handed <= 8192 + messages), "{turns:?}");
    assert_eq!(had, queues * messages);
    for queue in 0..queues {
        let prefix = format!("{queue}-");
        let bodies = host.fx.delivered.iter().filter_map(|it| it.2.strip_prefix(&prefix));
        assert!(bodies.eq((0..messages).map(|number| number.to_string())), "q{queue}");
    }
}
