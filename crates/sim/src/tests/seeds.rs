//! Tests of runs: fixed seeds, seeds that once failed, and replay.

use crate::run;

/// Seeds that once failed, one per line: the seed, then what it found.
const REGRESSIONS: &str = include_str!("../regressions.txt");
/// Number of seeds that are run, from 1.
const SEEDS: u64 = 50;

fn pass(seeds: impl Iterator<Item = u64>) {
    let failures: Vec<String> =
        seeds.filter_map(|seed| run::run(seed).err()).map(|failure| failure.to_string()).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

// In two halves, so that test threads share them.
#[test]
fn the_first_seeds_pass() {
    pass(1..=SEEDS / 2);
}

#[test]
fn further_seeds_pass() {
    pass(SEEDS / 2 + 1..=SEEDS);
}

#[test]
fn seeds_that_once_failed_pass() {
    let seeds = REGRESSIONS.lines().filter(|line| !line.starts_with('#'));
    pass(seeds.filter_map(|line| line.split_whitespace().next()?.parse().ok()));
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in [3, 14, 15] {
        let digest = || run::run(seed).map(|report| report.digest).map_err(|failure| failure.what);
        assert_eq!(digest(), digest(), "seed {seed}");
    }
}

#[test]
fn different_seeds_give_different_runs() {
    let digest = |seed| run::run(seed).map(|report| report.digest).map_err(|failure| failure.what);
    assert_ne!(digest(21), digest(22));
}
