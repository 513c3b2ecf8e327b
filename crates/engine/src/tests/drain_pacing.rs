//! What a queue with much in it hands out at once, and beside others: shares, rests, and that nothing is
//! lost.

use super::World;
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

/// Queues with so many messages, of bodies that begin with their names and numbers; and others, who talk.
fn world(limits: Limits, queues: &[(&str, usize)]) -> World {
    let mut world = World::with(limits);
    world.run("o queue others");
    world.run("o subscribe others c presettled");
    for (queue, messages) in queues {
        world.run(&format!("a queue {queue} durable"));
        for number in 0..*messages {
            let body = format!("{queue}-{number:x<BODY_BYTES$}");
            world.run(&format!("a publish - {queue} {body} persistent"));
        }
    }
    world.fx.quiet = true;
    world
}

/// Time passes.
fn pass(world: &mut World, time: Duration) {
    world.now = world.now.plus(time);
    world.settle_down();
}

/// Others get a message.
fn talk(world: &mut World) {
    let before = world.fx.delivered.len();
    world.run("a publish - others hello");
    assert!(world.fx.delivered[before..].iter().any(|it| it.2 == "hello"));
}

/// How many of a queue's messages have come, which must be in order.
fn come(world: &World, queue: &str) -> usize {
    let of_queue = format!("{queue}-");
    let bodies = world.fx.delivered.iter().filter_map(|it| it.2.strip_prefix(&of_queue));
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
        let mut world = world(limits, &[("q", 300)]);
        world.run("b subscribe q c presettled");
        assert_eq!(come(&world, "q"), 300);
    }
}

#[test]
fn those_who_drain_are_no_hindrance_to_each_other() {
    let mut world = world(Limits::default(), &[("p", 300), ("q", 300)]);
    // Others were there, long ago.
    talk(&mut world);
    world.run("b subscribe p c presettled credit=1");
    pass(&mut world, Duration::from_secs(1));
    world.run("b subscribe q d presettled");
    world.run("b subscribe p e presettled");
    // At first it cannot be known how long ago that was.
    pass(&mut world, 5 * INTERVAL);
    assert_eq!((come(&world, "p"), come(&world, "q")), (300, 300));
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
    let mut world = world(limits, &[("q", all)]);
    talk(&mut world);
    world.run("b subscribe q c presettled");
    // Nobody knew yet that it would be a drain.
    let (began, mut had) = (world.now, come(&world, "q"));
    assert!((FIRST..FIRST + share).contains(&had), "{had} at {rate}");
    let time = |messages: usize| {
        let bytes = u64::try_from(messages * (BODY_BYTES + 256)).unwrap();
        Duration::from_nanos(bytes * 1_000_000_000 / rate)
    };
    while had < all {
        talk(&mut world);
        pass(&mut world, time(share) / 10);
        let more = come(&world, "q") - std::mem::replace(&mut had, come(&world, "q"));
        assert!([0, share].contains(&more) || had == all, "{more} at {rate}");
        assert!(
            time(had - more) <= world.now.since(began) + interval || more == 0,
            "{had} at {rate}"
        );
    }
    // The looks are a tenth of a share's time apart.
    assert!(world.now.since(began) <= time(all) * 11 / 10 + interval, "{rate}");
}

/// How many messages may have come since then.
fn most(world: &World, began: Time) -> usize {
    let intervals = world.now.since(began).as_micros() / INTERVAL.as_micros();
    FIRST + SHARE * usize::try_from(intervals).unwrap()
}

#[test]
fn however_little_is_taken_at_once_it_is_read_back_in_long_pieces() {
    let limits = Limits { queue_resident_bytes_max: 1 << 20, ..Limits::default() };
    let mut world = world(limits, &[("q", 600)]);
    talk(&mut world);
    world.run("b subscribe q c presettled");
    world.run("loads hold");
    let mut pieces = Vec::new();
    while come(&world, "q") < 600 {
        talk(&mut world);
        pass(&mut world, INTERVAL);
        pieces.extend(world.fx.loads.iter().map(|load| load.positions.len()));
        world.run("loads");
        world.run("loads hold");
    }
    pieces.pop();
    let is_long = |count: &usize| count * BODY_BYTES >= 200 << 10;
    assert!(!pieces.is_empty() && pieces.iter().all(is_long), "{pieces:?}");
}

#[test]
fn small_portions_come_no_faster() {
    let mut world = world(Limits::default(), &[("q", 20 * SHARE)]);
    talk(&mut world);
    world.run("b subscribe q c credit=10");
    let began = world.now;
    for _ in 0..100 {
        talk(&mut world);
        let last = come(&world, "q");
        world.run(&format!("b accept {last} multiple"));
        pass(&mut world, INTERVAL / 50);
    }
    let come = come(&world, "q");
    assert!((SHARE..=most(&world, began)).contains(&come), "{come}");
}

#[test]
fn gets_are_answered_at_once_and_hasten_no_drain() {
    for limits in places() {
        let mut world = world(limits, &[("q", 20 * SHARE)]);
        talk(&mut world);
        world.run("b subscribe q c presettled");
        let began = world.now;
        for gets in 1..=100 {
            talk(&mut world);
            world.run("a get q presettled");
            let getter = world.session("a");
            let of_queue = world.fx.delivered.iter().filter(|it| it.2.starts_with("q-"));
            let (got, drained): (Vec<_>, Vec<_>) = of_queue.partition(|it| it.0 == getter);
            assert_eq!(got.len(), gets);
            assert!(drained.len() <= most(&world, began), "{}", drained.len());
            pass(&mut world, INTERVAL / 50);
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
        let mut world = world(limits, &[("q", 10 * SHARE)]);
        world.run("b subscribe q c credit=6");
        pass(&mut world, Duration::from_secs(1));
        let mut number = 10 * SHARE;
        for round in 0..100 {
            talk(&mut world);
            for _ in 0..6 {
                world.run(&format!("a publish - q q-{number:x<BODY_BYTES$}"));
                number += 1;
            }
            let had = come(&world, "q");
            world.run(&format!("b accept {had} multiple"));
            for _ in 0..gap.as_micros().div_ceil(500) {
                talk(&mut world);
                pass(&mut world, gap.min(INTERVAL));
            }
            // What came while nobody took anything for a second is drained, and has its time.
            let is_known = round * gap > Duration::from_millis(100) || round > 30;
            assert!(
                !is_known || come(&world, "q") - had == 6,
                "round {round}, {mib_per_second} MiB/s"
            );
        }
    }
}

#[test]
fn however_long_it_would_have_to_rest_it_goes_on_when_others_are_gone() {
    let limits = Limits { backlog_bytes_per_second: 1 << 20, ..Limits::default() };
    let mut world = world(limits, &[("q", 300)]);
    talk(&mut world);
    world.run("b subscribe q c presettled");
    assert_eq!(come(&world, "q"), FIRST);
    // 256 KiB have a quarter of a second.
    for _ in 0..200 {
        talk(&mut world);
        pass(&mut world, Duration::from_millis(1));
        assert_eq!(come(&world, "q"), FIRST);
    }
    pass(&mut world, Duration::from_millis(1));
    pass(&mut world, Duration::from_millis(1));
    assert_eq!(come(&world, "q"), 300);
}

#[test]
fn any_rate_is_one() {
    for rate in [0, 1, 1 << 30, u64::MAX] {
        let limits = Limits { backlog_bytes_per_second: rate, ..Limits::default() };
        let mut world = world(limits, &[("q", 300)]);
        talk(&mut world);
        world.run("b subscribe q c presettled");
        for _ in 0..10 {
            talk(&mut world);
            pass(&mut world, INTERVAL);
        }
        assert_eq!(come(&world, "q") == 300, rate > 1, "{rate}");
        pass(&mut world, Duration::from_millis(3));
        pass(&mut world, Duration::from_millis(3));
        assert_eq!(come(&world, "q"), 300, "{rate}");
    }
}

#[test]
fn without_others_it_goes_on_as_fast_as_it_can() {
    for limits in places() {
        let mut world = world(limits, &[("q", 300)]);
        talk(&mut world);
        world.run("b subscribe q c presettled");
        assert!(come(&world, "q") <= FIRST);
        for _ in 0..4 {
            pass(&mut world, INTERVAL * 11 / 10);
        }
        assert_eq!(come(&world, "q"), 300);
    }
}

#[test]
fn a_queue_with_nothing_left_is_nobody_who_drains() {
    let mut world = world(Limits::default(), &[("q", 0)]);
    world.run("b subscribe q c presettled");
    for number in 0..10 * SHARE {
        talk(&mut world);
        world.run(&format!("a publish - q q-{number:x<BODY_BYTES$}"));
        assert_eq!(come(&world, "q"), number + 1);
    }
}

#[test]
fn a_queue_that_rests_can_be_deleted_and_its_place_taken() {
    let mut world = world(Limits::default(), &[("q", 2 * FIRST)]);
    talk(&mut world);
    world.run("b subscribe q c presettled");
    world.run("a delete q");
    world.run("a queue p");
    world.run("b subscribe p d presettled");
    world.run("a publish - p p-0");
    assert_eq!((come(&world, "q"), come(&world, "p")), (FIRST, 1));
    pass(&mut world, INTERVAL * 2);
    world.run("a publish - p p-1");
    assert_eq!((come(&world, "q"), come(&world, "p")), (FIRST, 2));
}

#[test]
fn many_queues_that_are_full_are_served_over_several_turns() {
    let (queues, messages) = (60, 200);
    let mut world = World::with(Limits::default());
    world.fx.quiet = true;
    for queue in 0..queues {
        world.run(&format!("a queue q{queue}"));
        for number in 0..messages {
            world.act_on(&format!("a publish - q{queue} {queue}-{number}"));
        }
    }
    for queue in 0..queues {
        world.act_on(&format!("b subscribe q{queue} c{queue} presettled"));
    }
    let (mut turns, mut had) = (Vec::new(), 0);
    while world.engine.has_work() {
        world.engine.dispatch(world.now, &mut world.fx);
        turns.push(world.fx.delivered.len() - had);
        had = world.fx.delivered.len();
    }
    // 2 MiB and a queue's last share, where a message counts for 256 bytes.
    assert!(turns.iter().all(|handed| *handed <= 8192 + messages), "{turns:?}");
    assert_eq!(had, queues * messages);
    for queue in 0..queues {
        let prefix = format!("{queue}-");
        let bodies = world.fx.delivered.iter().filter_map(|it| it.2.strip_prefix(&prefix));
        assert!(bodies.eq((0..messages).map(|number| number.to_string())), "q{queue}");
    }
}
