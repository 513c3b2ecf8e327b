//! The durable state made anew from whole records, without a snapshot.

use super::recorder::Recorder;
use super::{CONVENTIONS, TestHost};
use crate::{Engine, Options, Rebuild};

const SCENARIO: &[&str] = &[
    "a user ann hash administrator",
    "a exchange x direct durable delaying",
    "a queue q durable priorities=2",
    "a queue r durable",
    "a queue gone durable",
    "a bind x q k",
    "a publish - q 1 persistent priority=2",
    "a publish - q 2 persistent",
    "a publish - q 3 persistent priority=1",
    "a publish - r 4 persistent",
    "a publish - r 5 persistent",
    "a purge r",
    "a publish - r 6 persistent",
    "a publish - gone 7 persistent",
    "a delete gone",
    "a publish x k 8 persistent delay=100000",
    "a publish x k 9 persistent delay=5",
    "time 10",
    "b get q",
    "b accept 1",
    "b get q",
    "b requeue 2 changed=x",
    "b close",
];

fn host() -> TestHost {
    let mut host = TestHost::new();
    for line in SCENARIO {
        host.run(line);
    }
    host
}

/// What is made of the records, after a restart from its snapshot, and what is said of it.
fn rebuilt(host: &TestHost) -> (Engine, String) {
    let mut rebuild = Rebuild::default();
    for (index, record) in host.fx.records.iter().enumerate().filter(|it| !it.1.is_empty()) {
        rebuild.look(Recorder::position_of(index), record);
    }
    let new = || Engine::new(Options::alone([7; 32], &CONVENTIONS));
    let (mut engine, mut fx) = (new(), Recorder::default());
    let notes = rebuild.restore(&mut engine, &mut fx);
    engine.check_invariants(&fx.references);
    let mut snapshot = Vec::new();
    engine.snapshot(&mut snapshot);
    let mut again = new();
    again.restore(&snapshot).unwrap();
    (again, notes.join("\n"))
}

/// Queues with their messages.
fn queues(engine: &Engine) -> Vec<(String, u64)> {
    let mut queues: Vec<_> =
        engine.list_queues().map(|queue| (queue.name.to_owned(), queue.ready)).collect();
    queues.sort();
    queues
}

#[test]
fn every_record_together_makes_the_same_state() {
    let mut host = host();
    for line in ["k1 old retain", "k1 new retain", "k2 x retain", "k2 '' retain"] {
        host.run(&format!("a publish amq.topic {line}"));
    }
    let (engine, said) = rebuilt(&host);
    assert_eq!(engine.retained(), host.engine.retained());
    assert_eq!(queues(&engine), queues(&host.engine));
    assert_eq!(queues(&engine), [("q".to_owned(), 3), ("r".to_owned(), 1)]);
    assert!(
        said.contains("2 queues with 4 messages, 1 delayed messages, 1 retained messages, 1 users"),
        "{said}"
    );
    assert!(!said.contains("is lost: its"), "{said}");
}

#[test]
fn without_definitions_messages_are_in_queues_of_their_names() {
    let mut host = host();
    for record in host.fx.records.iter_mut().filter(|record| record[1] >= 16) {
        record.clear();
    }
    let (engine, said) = rebuilt(&host);
    // Nothing says any more that one was deleted.
    let expected = [("gone", 1), ("q", 3), ("r", 1)].map(|(name, ready)| (name.to_owned(), ready));
    assert_eq!(queues(&engine), expected);
    assert!(said.contains("its 3 messages are in the durable queue 'q'"), "{said}");
}

#[test]
fn what_a_lost_settle_ended_comes_again_and_a_lost_message_does_not() {
    let mut host = host();
    let settled = |record: &Vec<u8>| record[1] == 3 || record[1] == 4;
    for record in host.fx.records.iter_mut().filter(|record| settled(record)) {
        record.clear();
    }
    host.fx.damage("2");
    host.fx.give_up_damaged();
    let (engine, _) = rebuilt(&host);
    assert_eq!(queues(&engine), [("q".to_owned(), 3), ("r".to_owned(), 3)]);
}

#[test]
fn records_that_mean_nothing_are_counted() {
    let mut host = host();
    host.fx.records.push(vec![3, 250, 1]);
    host.fx.records.push(vec![200]);
    let (_, said) = rebuilt(&host);
    assert!(said.contains("2 records cannot be understood"), "{said}");
}
