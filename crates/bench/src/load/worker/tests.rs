//! Parts of a plan, and the wire format.

use super::coordinate::share;
use super::serve::serve;
use super::wire::{Answer, Part, Request, SILENCE_MAX, Wire};
use crate::load::plan::Plan;
use crate::load::stamp::Stamp;
use crate::load::topology::Topology;
use crate::load::verdict::{Tally, Verdict};
use crate::measure::latency::Latencies;
use std::net::{TcpListener, TcpStream};
use std::thread;

#[test]
fn shares_cover_everything_once() {
    for (count, parts) in [(0, 3), (1, 3), (7, 3), (9, 3), (1_000, 7)] {
        let shares: Vec<usize> = (0..parts).flat_map(|part| share(count, part, parts)).collect();
        assert_eq!(shares, (0..count).collect::<Vec<_>>(), "{count} over {parts}");
    }
}

#[test]
fn tallies_and_histograms_survive_the_wire() {
    let mut tally = Tally::new(2);
    for sequence in (0..1_000).filter(|it| it % 97 != 3) {
        tally.record(&Stamp::of(1, sequence), sequence == 500);
    }
    let text = serde_json::to_string(&tally).expect("plain data");
    assert!(text.len() < 1_000, "runs are short: {}", text.len());
    let back: Tally = serde_json::from_str(&text).expect("our own");
    let verdict = |tally: &Tally| {
        let mut verdict = Verdict::default();
        verdict.add_queue(tally, &[0, 1_000]);
        verdict
    };
    assert_eq!(verdict(&back), verdict(&tally));
    assert_eq!((verdict(&back).lost, verdict(&back).redelivered), (11, 1));
    let mut latencies = Latencies::default();
    (1..1_000).for_each(|us| latencies.record(us * 1_000));
    let text = serde_json::to_string(&latencies).expect("plain data");
    let back: Latencies = serde_json::from_str(&text).expect("our own");
    assert_eq!(back.summary(), latencies.summary());
}

#[test]
fn a_line_that_claims_too_much_is_refused() {
    for text in [
        "{\"producers\":[{\"runs\":[[0,99999999999999]]}]}",
        "{\"producers\":[{\"runs\":[[5,1]]}]}",
    ] {
        assert!(serde_json::from_str::<Tally>(text).is_err(), "{text}");
    }
}

#[test]
fn a_part_that_does_not_fit_its_plan_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
    let address = listener.local_addr().expect("it is bound");
    let serving = thread::spawn(move || serve(&listener, Some(1)));
    let stream = TcpStream::connect(address).expect("it listens");
    let mut wire = Wire::new(stream, SILENCE_MAX).expect("a socket");
    let plan = |address: &str, queues, spread| {
        let plan = Plan::new(address.parse().expect("it is an address")).in_pairs(queues);
        Plan { spread, ..plan }
    };
    let mut check = |plan: &Plan, named: &Plan, producers, wanted: &str| {
        let (plan, topology) = (plan.clone(), Topology::of(named));
        let consumers = 0..plan.consumers;
        let part = Part { plan, topology, producers, consumers, offset_ns: 0 };
        wire.send(&Request::Prepare(Box::new(part))).expect("it reads");
        let said = loop {
            match wire.receive().expect("it is there") {
                Some(Answer::Working) => {}
                said => break said,
            }
        };
        let Some(Answer::Failed(why)) = said else { panic!("{said:?}") };
        assert!(why.contains(wanted), "{why}");
    };
    let three = plan("nats://127.0.0.1:1", 3, 0);
    check(&three, &three, 0..4, "a part beyond its plan");
    let names = "names that are not those of its plan";
    check(&three, &plan("nats://127.0.0.1:1", 2, 0), 0..3, names);
    check(&three, &plan("amqp://127.0.0.1:1", 3, 0), 0..3, names);
    let spread = plan("nats://127.0.0.1:1", 3, 10);
    check(&spread, &three, 0..3, names);
    check(&three, &spread, 0..3, names);
    // What fits fails only at the broker, of which there is none.
    check(&three, &three, 0..3, "refused");
    check(&spread, &spread, 0..3, "refused");
    drop(wire);
    serving.join().expect("it does not panic").expect("it serves");
}
