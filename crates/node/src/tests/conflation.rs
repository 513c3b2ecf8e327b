//! NATS clients that do not keep up and want the last message of each subject alone.

use super::direct_host::TestHost;
use super::host::EGRESS_BYTES_MAX;
use super::slow_consumers::{UNSENT_MAX, behind, in_order};
use angarium_engine::{Bound, Quota, SlowConsumerPolicy};

/// The numbers of the messages to a subject in a client's input, and of how many missed ones they tell.
fn last_values(host: &TestHost, client: usize, subject: &str) -> (Vec<u64>, u64) {
    let (mut numbers, mut missed) = (Vec::new(), 0);
    let text = String::from_utf8_lossy(&host.clients[client].input).into_owned();
    let mut lines = text.split("\r\n").peekable();
    while let Some(line) = lines.next() {
        let words: Vec<&str> = line.split(' ').collect();
        if !matches!(words[..], ["MSG" | "HMSG", of, ..] if of == subject) {
            continue;
        }
        for line in lines.by_ref() {
            if let Some(count) = line.strip_prefix("Angarium-Missed: ") {
                missed += count.parse::<u64>().unwrap();
            } else if let Ok(number) = line.trim().parse() {
                numbers.push(number);
                break;
            }
        }
    }
    (numbers, missed)
}

#[test]
fn conflate_keeps_the_last_message_of_each_subject() {
    let (mut host, slow, publisher) = behind(SlowConsumerPolicy::Conflate, "price.*");
    let subjects = ["price.a", "price.b", "price.c"];
    // One subject's messages fill what may be unsent; then others come, too.
    host.publish(publisher, "price.a", 0..100);
    for round in 0..100 {
        for subject in subjects {
            host.publish(publisher, subject, round..round + 1);
        }
    }
    let slot = host.clients[slow].slot.unwrap();
    assert!(host.node.unsent(slot) <= EGRESS_BYTES_MAX + 2_000, "{}", host.node.unsent(slot));
    let info = host.node.slow_consumer_info(slot).expect("it is slow");
    assert_eq!(info.policy, SlowConsumerPolicy::Conflate);
    assert!(host.is_connected(slow));
    host.takes(slow, usize::MAX);
    host.turns();
    let mut missed_in_all = 0;
    for (subject, sent) in subjects.into_iter().zip([200, 100, 100]) {
        let (numbers, missed) = last_values(&host, slow, subject);
        assert_eq!(numbers.last(), Some(&99), "{subject}");
        assert_eq!(numbers.len() as u64 + missed, sent, "{subject}: {numbers:?}");
        missed_in_all += missed;
    }
    assert_eq!(host.node.engine().counters().missed, missed_in_all, "each is counted once");
    // One that keeps up gets everything again.
    host.publish(publisher, "price.b", 500..520);
    let (numbers, missed) = last_values(&host, slow, "price.b");
    assert_eq!(numbers[numbers.len() - 20..], (500..520).collect::<Vec<u64>>());
    assert_eq!(missed, 99);
    host.turns();
    assert!(host.node.effects.outbox[slot.0 as usize].conflated.is_none());
}

/// Also where no more may be unsent than is written before messages are conflated.
#[test]
fn conflate_keeps_the_last_messages_within_a_small_bound() {
    let mut host = TestHost::new(|options| {
        options.quota = Quota::default()
            .with_slow_consumer_policy(SlowConsumerPolicy::Conflate)
            .with(Bound::UnsentBytes, EGRESS_BYTES_MAX as u64);
    });
    let (slow, publisher) = (host.connect(""), host.connect(""));
    host.send(slow, "SUB price.* 1\r\n");
    host.takes(slow, 0);
    let subjects = ["price.a", "price.b", "price.c"];
    for round in 0..200 {
        for subject in subjects {
            host.publish(publisher, subject, round..round + 1);
        }
    }
    host.takes(slow, usize::MAX);
    host.turns();
    for subject in subjects {
        let (numbers, missed) = last_values(&host, slow, subject);
        assert_eq!(numbers.last(), Some(&199), "{subject}");
        assert_eq!(numbers.len() as u64 + missed, 200, "{subject}: {numbers:?}");
    }
}

#[test]
fn of_more_subjects_than_there_is_room_for_the_oldest_are_missed() {
    let (mut host, slow, publisher) = behind(SlowConsumerPolicy::Conflate, "price.*");
    for number in 0..1_000 {
        host.publish(publisher, &format!("price.{number}"), number..number + 1);
    }
    let slot = host.clients[slow].slot.unwrap();
    let kept = host.node.effects.outbox[slot.0 as usize].conflated.as_ref().unwrap().bytes();
    assert!(kept <= UNSENT_MAX as usize, "{kept}");
    host.takes(slow, usize::MAX);
    host.turns();
    host.publish(publisher, "price.end", 1_000..1_001);
    let got = host.got(slow, "1");
    in_order(&got.numbers);
    assert_eq!(got.numbers.len() as u64 + got.missed, 1_001);
    assert_eq!(got.numbers[got.numbers.len() - 2..], [999, 1_000]);
}
