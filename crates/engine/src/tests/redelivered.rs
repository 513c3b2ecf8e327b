//! What may have been delivered before a crash stays marked so, whatever orderly ends follow it.

use super::delays::{delay, drain, forgetful};
use super::recovery::{expected, fill, small};
use super::{TestHost, check_in};

#[test]
fn of_a_long_queue() {
    let mut host = small();
    host.run("a queue q durable");
    fill(&mut host, 0, 3_000, "persistent");
    host.run("restart");
    fill(&mut host, 3_000, 3_500, "persistent");
    host.run("restart clean");
    host.run("restart clean");
    fill(&mut host, 3_500, 4_000, "persistent");
    host.fx.delivered.clear();
    host.fx.quiet = true;
    host.run("z consume q z presettled");
    let marked = host.fx.delivered.iter().map(|it| (it.2.clone(), it.3));
    let expected = expected(0, 4_000).into_iter().enumerate();
    assert!(marked.eq(expected.map(|(number, body)| (body, number < 3_000))));
}

#[test]
fn of_what_becomes_a_dead_letter_later() {
    let mut host = TestHost::new();
    host.run("a queue dead durable");
    host.run("a queue q durable dlx=- dlk=dead ttl=100");
    host.run("a publish - q early persistent");
    host.run("restart");
    host.run("restart clean");
    host.run("a publish - q late persistent");
    host.run("time 100");
    check_in(
        host,
        "b consume dead c presettled
         > b consuming c
         > b deliver c #1 early redelivered died=Expired:q:1
         > b deliver c #2 late died=Expired:q:1",
    );
}

#[test]
fn of_delayed_ones() {
    let mut host = forgetful();
    delay(&mut host, 0..20, 8, "persistent");
    host.run("loads hold");
    host.run("time 100");
    // Whether they had been delivered before the crash is known no more, nor is it later.
    host.run("restart");
    for late in 20..25 {
        host.run(&format!("a publish x k {late} persistent delay=1"));
    }
    host.run("restart clean");
    host.run("restart clean");
    host.run("time 1");
    host.run("loads");
    assert_eq!(drain(&mut host), (0..25).collect::<Vec<_>>());
    let redelivered: Vec<_> = host.fx.delivered.iter().map(|it| it.3).collect();
    assert_eq!(redelivered, [[true; 20].as_slice(), &[false; 5]].concat());
    assert!(host.fx.references.is_empty(), "{:?}", host.fx.references);
}

#[test]
fn of_what_a_full_queue_refused() {
    let mut host = forgetful();
    host.run("a queue dead durable");
    host.run("a queue full durable length=1 overflow=reject-dead-letter dlx=- dlk=dead");
    host.run("a publish - full old persistent");
    host.run("a bind x full k");
    delay(&mut host, 0..1, 8, "persistent");
    host.run("loads hold");
    host.run("time 100");
    host.run("restart");
    host.run("restart clean");
    host.run("loads");
    check_in(
        host,
        "b consume dead c presettled
         > b consuming c
         > b deliver c #1 00000000 redelivered died=MaxLength:full:1",
    );
}

#[test]
fn only_of_what_may_have_been_handed_out_before_a_kill() {
    check_in(
        TestHost::new(),
        "a queue q durable
         > a queue q 0 0
         a publish - q 1 persistent
         a publish - q 2 persistent
         a publish - q 3 persistent
         restart killed
         a get q
         > a deliver  #1 1
         > a got, 2 left
         restart killed
         a publish - q 4 persistent
         restart clean
         b consume q c presettled
         > b consuming c
         > b deliver c #1 1 redelivered
         > b deliver c #2 2
         > b deliver c #3 3
         > b deliver c #4 4",
    );
}

#[test]
fn what_was_marked_after_a_loss_of_power_stays_so_after_a_kill() {
    let mut host = small();
    host.run("a queue q durable");
    fill(&mut host, 0, 2_000, "persistent");
    host.run("restart");
    fill(&mut host, 2_000, 3_000, "persistent");
    host.run("restart killed");
    host.run("restart killed");
    host.fx.delivered.clear();
    host.fx.quiet = true;
    host.run("z consume q z presettled");
    let marked: Vec<_> = host.fx.delivered.iter().map(|it| it.3).collect();
    assert_eq!(marked, [vec![true; 2_000], vec![false; 1_000]].concat());
}

#[test]
fn of_what_a_consumer_took_before_a_kill_every_one() {
    for count in [1, 2, 3, 100, 1_000] {
        let mut host = small();
        host.run("a queue q durable");
        fill(&mut host, 0, 3_000, "persistent");
        host.fx.delivered.clear();
        host.fx.quiet = true;
        host.run(&format!("b consume q c credit={count}"));
        assert_eq!(host.fx.delivered.len(), count);
        host.run("restart killed");
        host.fx.delivered.clear();
        host.run("z consume q z presettled");
        let marked = host.fx.delivered.iter().filter(|it| it.3).count();
        let first_unmarked = host.fx.delivered.iter().position(|it| !it.3);
        assert_eq!(first_unmarked, Some(marked), "the marked ones are first");
        assert!((count..=2 * count + 1).contains(&marked), "{marked} of {count}");
    }
}
