//! Message groups: one consumer each, in order, past those whose consumer is busy.

use super::{TestHost, check};
use crate::*;

#[test]
fn a_group_stays_with_its_consumer_and_others_pass_it() {
    check(
        "a queue q groups
         > a queue q 0 0
         a consume q c credit=1
         > a consuming c
         b consume q c credit=1
         > b consuming c
         // Both are of one group, whose consumer is busy with the first.
         a publish - q x:1
         > a deliver c #1 x:1
         a publish - q x:2
         a publish - q y:1
         > b deliver c #1 y:1
         a publish - q y:2
         a publish - q x:3
         a publish - q plain
         b accept 1
         > b deliver c #2 y:2
         b accept 2
         > b deliver c #3 plain
         b accept 3
         a accept 1
         > a deliver c #2 x:2
         a accept 2
         > a deliver c #3 x:3",
    );
}

#[test]
fn what_comes_back_comes_before_what_waits() {
    check(
        "a queue q groups
         > a queue q 0 0
         a consume q c credit=1
         > a consuming c
         b consume q c credit=1
         > b consuming c
         a publish - q x:1
         > a deliver c #1 x:1
         a publish - q x:2
         a publish - q x:3
         a requeue 1
         > a deliver c #2 x:1 redelivered count=1
         a accept 2
         > a deliver c #3 x:2",
    );
}

#[test]
fn a_group_goes_on_to_another_consumer_once_its_own_has_ended_and_settled_all() {
    check(
        "a queue q groups
         > a queue q 0 0
         a consume q c credit=1
         > a consuming c
         a publish - q x:1
         > a deliver c #1 x:1
         a publish - q x:2
         a publish - q x:3
         b consume q c credit=5
         > b consuming c
         a cancel c
         > a ok
         // Its first message is not settled.
         a publish - q y:1
         > b deliver c #1 y:1
         a requeue 1
         > b deliver c #2 x:1 redelivered count=1
         > b deliver c #3 x:2
         > b deliver c #4 x:3
         a consume q d
         > a consuming d
         a publish - q x:4
         > b deliver c #5 x:4
         b close
         > a deliver d #2 x:1 redelivered count=2
         > a deliver d #3 x:2 redelivered count=1
         > a deliver d #4 x:3 redelivered count=1
         > a deliver d #5 y:1 redelivered count=1
         > a deliver d #6 x:4 redelivered count=1",
    );
}

#[test]
fn the_last_message_of_a_group_frees_it() {
    check(
        "a queue q groups
         > a queue q 0 0
         a consume q c
         > a consuming c
         b consume q c
         > b consuming c
         a publish - q x:1
         > a deliver c #1 x:1
         a publish - q y:1
         > b deliver c #1 y:1
         a publish - q x:2
         > a deliver c #2 x:2
         a publish - q x:end
         > a deliver c #3 x:end
         a publish - q z:1
         > a deliver c #4 z:1
         a publish - q x:3
         > b deliver c #2 x:3
         a publish - q x:4
         > b deliver c #3 x:4",
    );
}

#[test]
fn purged_expired_and_lost_ones_are_forgotten() {
    check(
        "a queue q groups
         > a queue q 0 0
         a consume q c credit=1
         > a consuming c
         a publish - q x:1
         > a deliver c #1 x:1
         a publish - q x:2
         a publish - q x:3 ttl=10
         a publish - q x:4
         time 100
         a accept 1
         > a deliver c #2 x:2
         a accept 2
         > a deliver c #3 x:4
         a publish - q x:5
         a purge q
         > a messages 1
         a accept 3
         a publish - q x:6
         > a deliver c #4 x:6
         // A queue without the option heeds no groups.
         b queue r
         > b queue r 0 0
         b consume r d
         > b consuming d
         b2 consume r d
         > b2 consuming d
         b publish - r x:1
         > b deliver d #1 x:1
         b publish - r x:2
         > b2 deliver d #1 x:2",
    );
}

#[test]
fn priorities_go_first() {
    check(
        "a queue q groups priorities=2
         > a queue q 0 0
         a consume q c credit=1
         > a consuming c
         a publish - q x:1
         > a deliver c #1 x:1
         a publish - q x:2
         a publish - q y:1
         a publish - q x:3 priority=1
         a accept 1
         > a deliver c #2 x:3
         a accept 2
         > a deliver c #3 x:2
         a accept 3
         > a deliver c #4 y:1",
    );
}

/// Whatever consumers do, each group's messages arrive in order, and all of them.
#[test]
fn every_group_arrives_in_order_whoever_comes_and_goes() {
    let mut host = TestHost::new();
    host.run("p queue q durable groups");
    for seed in 1..=20_u64 {
        let mut state = seed;
        let mut random = |most: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % most
        };
        let mut open: Vec<String> = Vec::new();
        let mut unsettled: Vec<(String, u64)> = Vec::new();
        let (mut last, mut next) = ([0_u64; 5], [0_u64; 5]);
        let mut lines: Vec<String> = Vec::new();
        for step in 0..300 {
            let line = match random(10) {
                0 if open.len() < 4 => {
                    open.push(format!("c{}", seed * 1000 + step));
                    format!("{} consume q c credit={}", open[open.len() - 1], 1 + random(3))
                }
                1 if open.len() > 1 && unsettled.is_empty() => {
                    format!("{} cancel c", open.remove(0))
                }
                2..=5 if !unsettled.is_empty() => {
                    let at = usize::try_from(random(unsettled.len() as u64)).unwrap();
                    let (channel, tag) = unsettled.remove(at);
                    format!("{channel} accept {tag}")
                }
                _ => {
                    let group = usize::try_from(random(5)).unwrap();
                    next[group] += 1;
                    format!("p publish - q g{group}:{} persistent", next[group])
                }
            };
            lines.push(line);
            for effect in host.run(&lines[lines.len() - 1]) {
                let words: Vec<&str> = effect.split(' ').collect();
                let ["deliver", _, tag, body] = words[1..] else { continue };
                unsettled.push((words[0].to_owned(), tag[1..].parse().unwrap()));
                let (group, number) = body[1..].split_once(':').unwrap();
                let group: usize = group.parse().unwrap();
                assert_eq!(number.parse(), Ok(last[group] + 1), "{effect} after {lines:#?}");
                last[group] += 1;
            }
        }
        host.run("d consume q c");
        for _ in 0..1000 {
            let Some((channel, tag)) = unsettled.pop() else { break };
            for effect in host.run(&format!("{channel} accept {tag}")) {
                let words: Vec<&str> = effect.split(' ').collect();
                let ["deliver", _, tag, body] = words[1..] else { continue };
                unsettled.push((words[0].to_owned(), tag[1..].parse().unwrap()));
                let (group, number) = body[1..].split_once(':').unwrap();
                let group: usize = group.parse().unwrap();
                assert_eq!(number.parse(), Ok(last[group] + 1), "{effect} at the end");
                last[group] += 1;
            }
        }
        assert_eq!(last, next, "all arrive");
        for channel in open.iter().map(String::as_str).chain(["d"]) {
            host.run(&format!("{channel} close"));
        }
        assert_eq!(host.engine.list_queues().map(|it| it.ready + it.unsettled).sum::<u64>(), 0);
    }
    let groups: Vec<QueueCounters> = host.engine.list_queues().map(|it| it.counters).collect();
    assert!(groups[0].delivered > 1000);
}
