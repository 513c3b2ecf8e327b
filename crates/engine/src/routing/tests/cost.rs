//! Measures what routing costs in time of this thread on a processor; asserts nothing about it.
//!
//! The figures of the decision on the topic index come from here:
//! `cargo test --release -p angarium-engine --lib cost_of -- --ignored --nocapture --test-threads=1`

#![expect(
    clippy::disallowed_macros,
    reason = "a measurement prints; nothing here runs unless asked for"
)]

use super::super::patterns::{MatchScratch, TOPIC, Word};
use super::patterns::naive;
use super::*;
use std::hint::black_box;

const KEY: &str = "stock.eu.widgets.42";
const QUEUES: usize = 1_000;

/// Patterns of four words, none of which takes [`KEY`], though many share words with it.
fn other(number: usize) -> String {
    match number % 4 {
        0 => format!("stock.eu.widgets.x{number}"),
        1 => format!("stock.eu.x{number}.#"),
        2 => format!("x{number}.*.widgets.#"),
        _ => format!("stock.*.x{number}.*"),
    }
}

/// Resident bytes of this process, where the system tells.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.unwrap_or(0) * 4096
}

/// Nanoseconds that this thread has run, where the system tells: other than a clock, it stands
/// still while others run.
fn ran() -> u64 {
    std::thread::yield_now();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ran| ran.parse().ok()).unwrap_or(0)
}

/// Nanoseconds per call, the best of five rounds.
fn nanoseconds(calls: u64, mut call: impl FnMut()) -> u64 {
    let rounds = (0..5).map(|_| {
        let start = ran();
        (0..calls).for_each(|_| call());
        (ran() - start) / calls
    });
    rounds.min().unwrap_or(0)
}

fn world_of(others: usize) -> TestHost {
    let names: Vec<String> = (0..QUEUES).map(|number| format!("q{number}")).collect();
    let mut host = TestHost::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
    host.bind(&[
        ("amq.topic", "q1", "stock.#"),
        ("amq.topic", "q2", "stock.*.widgets.*"),
        ("amq.topic", "q3", KEY),
    ]);
    for number in 0..others {
        host.bind(&[("amq.topic", &format!("q{}", number % QUEUES), &other(number))]);
    }
    host
}

#[test]
#[ignore = "a measurement, to be run alone"]
fn cost_of_matching() {
    for others in [1, 1_000, 1_000_000] {
        let before = resident();
        let mut host = world_of(others);
        let bytes = (resident() - before) / others;
        let router = &mut host.router;
        let mut scratch = MatchScratch::default();
        let exchange = router.exchanges.get(router.exchanges.find("amq.topic").unwrap());
        let patterns = exchange.patterns.as_ref().unwrap();
        let mut found = 0_usize;
        let matched = nanoseconds(200_000, || {
            patterns.matches(TOPIC.words(black_box(KEY)), &mut scratch, |_| found += 1);
        });
        assert_eq!(found, 3 * 1_000_000);

        let mut out = Vec::new();
        let mut route = |router: &mut Router, also_to: &[&str]| {
            let keys = Keys { routing_key: black_box(KEY), also_to };
            router.route_by("amq.topic", keys, &mut |_| (), &mut out);
            black_box(out.len());
        };
        let remembered = nanoseconds(200_000, || route(router, &[]));
        let two_keys = nanoseconds(200_000, || route(router, &[KEY]));

        let all: Vec<Vec<Word<'_>>> =
            router.bindings().map(|binding| TOPIC.pattern(binding.key).collect()).collect();
        let scan = nanoseconds(if others > 1_000 { 1 } else { 1_000 }, || {
            let words: Vec<_> = TOPIC.words(black_box(KEY)).collect();
            black_box(all.iter().filter(|pattern| naive(pattern, &words)).count());
        });
        println!(
            "{others} others: match {matched} ns, route remembered {remembered} ns, \
             two keys anew {two_keys} ns, scan of all patterns {scan} ns, {bytes} bytes each"
        );
    }
}

#[test]
#[ignore = "a measurement, to be run alone"]
fn cost_of_unbinding() {
    for others in [1_000, 1_000_000] {
        let mut host = world_of(others);
        let start = ran();
        for number in 0..others {
            let change = host.unbind("amq.topic", &format!("q{}", number % QUEUES), &other(number));
            assert!(change.changed);
        }
        let each = (ran() - start) / others as u64;
        println!("{others} others: unbind {each} ns each");
        assert_eq!(host.binding_count(), 3);
    }
    // All at one leaf and one target: what a list without back links would have to search.
    let mut host = TestHost::new(&["q"]);
    let pairs = |number: i64| arguments(&[("n", Value::Int(number))]);
    for number in 0..200_000 {
        host.router.bind("amq.topic", &target("q"), "a.*", pairs(number)).unwrap();
    }
    let start = ran();
    for number in 0..200_000 {
        let change = host.router.unbind("amq.topic", &target("q"), "a.*", pairs(number));
        assert!(change.unwrap().changed);
    }
    let each = (ran() - start) / 200_000;
    println!("200000 at one leaf: unbind {each} ns each");
}

#[test]
#[ignore = "a measurement, to be run alone"]
fn cost_of_chained_wildcards() {
    let key = vec!["a"; 128].join(".");
    for chained in [2, 5, 60] {
        let mut host = TestHost::new(&["q"]);
        host.bind(&[("amq.topic", "q", &vec!["#.a"; chained].join("."))]);
        let mut out = Vec::new();
        let keys = Keys { routing_key: &key, also_to: &[&key] };
        let each = nanoseconds(1_000, || {
            host.router.route_by("amq.topic", keys, &mut |_| (), &mut out);
        });
        println!("#.a {chained} times on 128 words: {} ns", each / 2);
    }
}
