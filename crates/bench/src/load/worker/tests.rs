//! Shares of a plan, and what goes over the wire.

use super::super::stamp::Stamp;
use super::super::tally::{Tally, Verdict};
use super::coordinate::share;
use crate::measure::latency::Latencies;

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
        tally.record(&Stamp { producer: 1, checksum: 0, sequence, sent_ns: 0 }, sequence == 500);
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
    let mut latencies = Latencies::new();
    (1..1_000).for_each(|us| latencies.record(us * 1_000));
    assert_eq!(Latencies::of_counts(&latencies.counts()).summary(), latencies.summary());
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
