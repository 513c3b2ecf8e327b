//! The verdict, the confirm window, the pace and the stamp, on values alone.

use super::pace::Pace;
use super::plan::{End, Plan};
use super::stamp::{self, IDENTITY_BYTES, Stamp, TIMED_BYTES};
use super::topology::Topology;
use super::verdict::{Tally, Verdict};
use super::window::Window;
use crate::client::Confirm;
use std::collections::BTreeSet;

/// One delivery: producer, sequence number, redelivered flag.
type Delivery = (u32, u64, bool);

/// Feeds the deliveries of each consumer of one queue and returns
/// `[delivered, lost, duplicated, redelivered, reordered, invented]`.
fn verdict(published: &[u64], consumers: &[&[Delivery]]) -> [u64; 6] {
    let mut queue = Tally::new(published.len());
    for deliveries in consumers {
        let mut tally = Tally::new(published.len());
        for &(producer, sequence, redelivered) in *deliveries {
            let stamp = Stamp::of(producer, sequence);
            tally.record(&stamp, redelivered);
        }
        queue.merge(&tally);
    }
    let mut verdict = Verdict::default();
    verdict.add_queue(&queue, published);
    assert_eq!(verdict.expected, published.iter().sum::<u64>());
    let Verdict { delivered, lost, duplicated, redelivered, reordered, invented, .. } = verdict;
    [delivered, lost, duplicated, redelivered, reordered, invented]
}

fn plain(producer: u32, sequences: impl IntoIterator<Item = u64>) -> Vec<Delivery> {
    sequences.into_iter().map(|sequence| (producer, sequence, false)).collect()
}

#[test]
fn selective_consumers_of_a_queue_divide_its_labels_up() {
    let target = "amqp10://h".parse().expect("it is an address");
    let plan = Plan { consumers: 6, queues: 2, spread: 100, ..Plan::new(target) };
    assert_eq!(plan.check(), Ok(()));
    let topology = Topology::of(&plan);
    assert!(topology.route(&plan, 1).key.ends_with("-1.0000000"));
    let sources: Vec<_> = (0..6).map(|consumer| topology.source(&plan, consumer)).collect();
    assert!(sources.iter().all(|source| source.name.starts_with("queue://")));
    let labels: Vec<u64> = sources
        .iter()
        .filter(|source| source.name.ends_with("-0"))
        .filter_map(|source| source.labels)
        .flat_map(|labels| labels.first..labels.first + labels.count)
        .collect();
    assert_eq!(labels, (0..100).collect::<Vec<_>>());
    assert!(Plan { ack_every: 1, ..plan }.check().is_err());
}

#[test]
fn all_in_order_is_clean() {
    assert_eq!(verdict(&[200], &[&plain(0, 0..200)]), [200, 0, 0, 0, 0, 0]);
    assert_eq!(verdict(&[64], &[&plain(0, 0..64)]), [64, 0, 0, 0, 0, 0]);
    assert_eq!(verdict(&[0], &[&[]]), [0, 0, 0, 0, 0, 0]);
}

#[test]
fn what_never_came_is_lost() {
    assert_eq!(verdict(&[200], &[&plain(0, 0..199)]), [199, 1, 0, 0, 0, 0]);
    assert_eq!(
        verdict(&[200], &[&plain(0, (0..200).filter(|it| *it != 77))]),
        [199, 1, 0, 0, 0, 0]
    );
    assert_eq!(verdict(&[10, 10], &[&plain(1, 0..10)]), [10, 10, 0, 0, 0, 0]);
}

#[test]
fn a_second_unmarked_delivery_is_a_duplicate() {
    assert_eq!(verdict(&[3], &[&plain(0, [0, 1, 1, 2])]), [3, 0, 1, 0, 0, 0]);
    assert_eq!(verdict(&[3], &[&plain(0, [0, 1, 2, 0])]), [3, 0, 1, 0, 0, 0]);
}

#[test]
fn a_marked_second_delivery_is_allowed() {
    let deliveries = [(0, 0, false), (0, 1, false), (0, 0, true), (0, 2, false)];
    assert_eq!(verdict(&[3], &[&deliveries]), [3, 0, 0, 1, 0, 0]);
}

#[test]
fn a_message_after_a_later_one_is_reordered() {
    assert_eq!(verdict(&[4], &[&plain(0, [0, 2, 1, 3])]), [4, 0, 0, 0, 1, 0]);
}

#[test]
fn producers_are_ordered_each_by_itself() {
    let deliveries = [(0, 0, false), (1, 0, false), (1, 1, false), (0, 1, false)];
    assert_eq!(verdict(&[2, 2], &[&deliveries]), [4, 0, 0, 0, 0, 0]);
}

#[test]
fn competing_consumers_share_a_queue() {
    let even = plain(0, (0..100).step_by(2));
    let odd = plain(0, (1..100).step_by(2));
    assert_eq!(verdict(&[100], &[&even, &odd]), [100, 0, 0, 0, 0, 0]);
}

#[test]
fn two_consumers_with_the_same_message_are_a_duplicate_unless_marked() {
    assert_eq!(verdict(&[2], &[&plain(0, [0, 1]), &plain(0, [1])]), [2, 0, 1, 0, 0, 0]);
    assert_eq!(verdict(&[2], &[&plain(0, [0, 1]), &[(0, 1, true)]]), [2, 0, 0, 1, 0, 0]);
    assert_eq!(verdict(&[2], &[&[(0, 1, true)], &plain(0, [0, 1])]), [2, 0, 0, 1, 0, 0]);
}

#[test]
fn what_nobody_published_is_invented() {
    assert_eq!(verdict(&[2], &[&plain(0, [0, 1, 2])]), [2, 0, 0, 0, 0, 1]);
    assert_eq!(verdict(&[2], &[&plain(7, [0])]), [0, 2, 0, 0, 0, 1]);
    // An absurd sequence number allocates nothing.
    assert_eq!(verdict(&[2], &[&plain(0, [0, u64::MAX, 1])]), [2, 0, 0, 0, 0, 1]);
}

#[test]
fn a_corrupt_delivery_makes_a_verdict_unclean() {
    let mut tally = Tally::new(1);
    tally.record(&Stamp::of(0, 0), false);
    let mut clean = Verdict::default();
    clean.add_queue(&tally, &[1]);
    assert!(clean.is_clean());
    tally.record_corrupt();
    let mut corrupt = Verdict::default();
    corrupt.add_queue(&tally, &[1]);
    assert!(!corrupt.is_clean());
}

fn confirm(tag: u64, multiple: bool) -> Confirm {
    Confirm { tag, multiple, refused: false }
}

#[test]
fn a_window_counts_single_confirms_in_any_order() {
    let mut window = Window::new(4);
    assert_eq!(window.room(), 4);
    window.sent(4, 10);
    assert_eq!(window.room(), 0);
    assert_eq!(window.confirm(confirm(2, false), |_| {}).ok(), Some(1));
    assert_eq!(window.room(), 0, "the first one still holds the window");
    assert_eq!(window.confirm(confirm(1, false), |_| {}).ok(), Some(1));
    assert_eq!(window.room(), 2);
    assert_eq!(
        window.confirm(confirm(1, false), |_| {}).ok(),
        Some(0),
        "a second confirm counts nothing"
    );
    assert_eq!(window.confirm(confirm(4, true), |_| {}).ok(), Some(2));
    assert!(window.is_empty());
}

#[test]
fn a_window_takes_multiple_confirms_after_single_ones() {
    let mut window = Window::new(8);
    window.sent(5, 10);
    assert_eq!(window.confirm(confirm(3, false), |_| {}).ok(), Some(1));
    assert_eq!(window.confirm(confirm(4, true), |_| {}).ok(), Some(3));
    assert_eq!(window.room(), 7);
    assert_eq!(window.confirm(confirm(0, true), |_| {}).ok(), Some(1), "tag 0 means all of them");
    assert!(window.is_empty());
}

#[test]
fn a_window_refuses_confirms_of_what_was_not_sent() {
    let mut window = Window::new(4);
    window.sent(2, 0);
    assert_eq!(window.confirm(confirm(3, false), |_| {}).ok(), None);
    assert_eq!(window.confirm(confirm(u64::MAX, true), |_| {}).ok(), None);
    assert_eq!(window.confirm(confirm(0, false), |_| {}).ok(), None);
}

#[test]
fn a_window_gives_back_send_times() {
    let mut window = Window::new(3);
    let mut times = Vec::new();
    for now_ns in 1..=50 {
        window.sent(1, now_ns);
        if window.room() == 0 {
            let confirmed = window.confirm(confirm(now_ns, true), |sent_ns| times.push(sent_ns));
            assert_eq!(confirmed.ok(), Some(3));
        }
    }
    assert_eq!(times, (1..=48).collect::<Vec<_>>());
}

#[test]
fn a_pace_spreads_messages_evenly() {
    let pace = Pace::of(1_000, 0, 2, 5_000).expect("there is a rate");
    assert_eq!(pace.due_ns(0), 5_000);
    assert_eq!(pace.due_ns(3), 5_000 + 6_000_000);
    assert_eq!(pace.due_by(4_999), 0);
    assert_eq!(pace.due_by(5_000), 1);
    assert_eq!(pace.due_by(5_000 + 6_000_000), 4);
    assert_eq!([0, 1].map(|index| Pace::of(0, index, 2, 5_000)), [None; 2]);
}

#[test]
fn producers_take_turns_with_what_is_due() {
    let paces = [0, 1, 2].map(|index| Pace::of(1_000, index, 3, 5_000).expect("there is a rate"));
    for sequence in 0..9 {
        let due_ns = paces[sequence % 3].due_ns(sequence as u64 / 3);
        assert_eq!(due_ns, 5_000 + sequence as u64 * 1_000_000, "the one of number {sequence}");
    }
}

#[test]
fn a_stamp_survives_its_body() {
    let stamp = Stamp { producer: 7, checksum: 0xDEAD_BEEF, sequence: u64::MAX - 1, sent_ns: 42 };
    let mut body = [0; 100];
    stamp.write(&mut body);
    assert_eq!(Stamp::read(&body), Some(stamp));
    assert_eq!(Stamp::read(&body[..TIMED_BYTES]), Some(stamp));
    assert_eq!(Stamp::read(&body[..IDENTITY_BYTES]), Some(Stamp { sent_ns: 0, ..stamp }));
    assert_eq!(Stamp::read(&body[..IDENTITY_BYTES - 1]), None);
    let mut short = [0; IDENTITY_BYTES - 1];
    stamp.write(&mut short);
    assert_eq!(short, [0; IDENTITY_BYTES - 1]);
}

#[test]
fn a_checksum_sees_every_field() {
    let stamp = Stamp { producer: 7, checksum: 0, sequence: 9, sent_ns: 42 };
    let rest = crc32fast::hash(b"the rest of the body");
    let mut seen = BTreeSet::from([stamp::checksum(&stamp, rest)]);
    for bit in 0..64 {
        let flipped = 1 << bit;
        let others = [
            Stamp { producer: stamp.producer ^ flipped as u32, ..stamp },
            Stamp { sequence: stamp.sequence ^ flipped, ..stamp },
            Stamp { sent_ns: stamp.sent_ns ^ flipped, ..stamp },
        ];
        for other in others.into_iter().filter(|other| *other != stamp) {
            assert!(seen.insert(stamp::checksum(&other, rest)), "{other:?}");
        }
    }
    assert_eq!(seen.len(), 1 + 32 + 64 + 64);
    assert_ne!(stamp::checksum(&stamp, rest), stamp::checksum(&stamp, rest ^ 1));
}

fn plan() -> Plan {
    let target = "amqp://127.0.0.1".parse().expect("it is one");
    Plan { producers: 3, consumers: 2, queues: 2, end: End::Count(10), ..Plan::new(target) }
}

#[test]
fn a_plan_shares_its_messages_out() {
    let plan = plan();
    assert_eq!([0, 1, 2].map(|producer| plan.share_of(producer)), [4, 3, 3]);
    assert!(plan.routes(2, 0) && !plan.routes(2, 1));
    assert_eq!(plan.copies(), 1);
    let fan_out = Plan { fan_out: true, ..plan };
    assert!(fan_out.routes(2, 0) && fan_out.routes(2, 1));
    assert_eq!(fan_out.copies(), 2);
}

#[test]
fn a_plan_that_cannot_work_is_refused() {
    assert_eq!(plan().check(), Ok(()));
    let refused = [
        Plan { producers: 0, ..plan() },
        Plan { producers: 1_001, ..plan() },
        Plan { consumers: 1, ..plan() },
        Plan { queues: 0, ..plan() },
        Plan { size_bytes: (128 << 20) + 1, ..plan() },
        Plan { window: (1 << 20) + 1, ..plan() },
        Plan { checksum: true, size_bytes: 15, ..plan() },
        Plan { latency: true, size_bytes: 23, ..plan() },
        Plan { ack_every: 11, prefetch: 10, ..plan() },
        Plan { ahead: 1, consumers: 0, ..plan() },
    ];
    for plan in refused {
        assert!(plan.check().is_err(), "{plan:?}");
    }
}

#[test]
fn what_nats_has_not_is_refused() {
    let nats = || Plan { target: "nats://h".parse().expect("it is one"), ..plan() };
    assert_eq!(nats().check(), Ok(()));
    let refused = [
        Plan { persistent: true, ..nats() },
        Plan { window: 1, ..nats() },
        Plan { ack_every: 1, ..nats() },
        Plan { prefetch: 1, ..nats() },
    ];
    for plan in refused {
        assert!(plan.check().is_err_and(|why| why.starts_with("NATS has no ")), "{plan:?}");
    }
}

/// What one consumer received.
fn tally(producers: usize, deliveries: &[Delivery]) -> Tally {
    let mut tally = Tally::new(producers);
    for &(producer, sequence, redelivered) in deliveries {
        tally.record(&Stamp::of(producer, sequence), redelivered);
    }
    tally
}

#[test]
fn what_was_confirmed_must_be_there_and_what_was_not_may() {
    let confirmed = [true, true, false, true, false];
    let check = |deliveries: &[Delivery], wanted: [u64; 5]| {
        let mut verdict = Verdict::default();
        let others = verdict.add_confirmed(&tally(2, deliveries), 1, &confirmed);
        assert_eq!((verdict.expected, verdict.delivered), (3, 3 - verdict.lost));
        let Verdict { lost, duplicated, reordered, invented, .. } = verdict;
        assert_eq!([others, lost, duplicated, reordered, invented], wanted, "{deliveries:?}");
    };
    check(&plain(1, 0..5), [2, 0, 0, 0, 0]);
    check(&plain(1, [0, 1, 3]), [0, 0, 0, 0, 0]);
    check(&plain(1, [0, 2, 3]), [1, 1, 0, 0, 0]);
    check(&plain(1, [0, 1, 1, 3]), [0, 0, 1, 0, 0]);
    check(&plain(1, [1, 0, 3]), [0, 0, 0, 1, 0]);
    check(&plain(1, [0, 1, 3, 5]), [0, 0, 0, 0, 1]);
    check(&plain(0, [0, 1, 3]), [0, 3, 0, 0, 3]);
    check(&[], [0, 3, 0, 0, 0]);
    // Unidentified messages are counted.
    let mut verdict = Verdict::default();
    let mut bare = Tally::new(2);
    (0..4).for_each(|_| bare.record_bare());
    assert_eq!(verdict.add_confirmed(&bare, 1, &confirmed), 1);
    assert!(verdict.is_clean() && verdict.delivered == 3);
}

#[test]
fn a_stretch_is_whole_from_its_first_message_to_its_last() {
    let check = |deliveries: &[Delivery], wanted: [u64; 6]| {
        let mut verdict = Verdict::default();
        verdict.add_stretch(&tally(1, deliveries), 100);
        let Verdict { expected, delivered, lost, duplicated, reordered, invented, .. } = verdict;
        let found = [expected, delivered, lost, duplicated, reordered, invented];
        assert_eq!(found, wanted, "{deliveries:?}");
    };
    check(&plain(0, 70..80), [10, 10, 0, 0, 0, 0]);
    check(&plain(0, [70]), [1, 1, 0, 0, 0, 0]);
    check(&[], [0, 0, 0, 0, 0, 0]);
    check(&plain(0, [70, 71, 74]), [5, 3, 2, 0, 0, 0]);
    check(&plain(0, [70, 70, 71]), [2, 2, 0, 1, 0, 0]);
    check(&plain(0, [71, 70, 72]), [3, 3, 0, 0, 1, 0]);
    check(&plain(0, [98, 99, 100]), [2, 2, 0, 0, 0, 1]);
    check(&plain(3, [70]), [0, 0, 0, 0, 0, 1]);
}
