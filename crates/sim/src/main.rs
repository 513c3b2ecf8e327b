//! `angarium-sim`: runs simulations by seed.

// Only the program uses clock and terminal; runs do not.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)]

use angarium_sim::random::Random;
use angarium_sim::{run, workload};
use std::io::Write;
use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

const USAGE: &str = "\
Runs a whole node in a simulated world and checks what its clients saw.

usage: angarium-sim [SEED]             one run
       angarium-sim --forever [SEED]   runs until the first failure, from SEED on
       angarium-sim --history SEED     one run; prints its whole history and checks nothing
       angarium-sim --count N [SEED]   N runs from SEED on; continues after failures
       angarium-sim --only WORKLOAD N [SEED]   N runs of one workload

Without SEED, the first seed is drawn from the clock.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let ["--history", seed] = words.as_slice() {
        let history = run::history(seed.parse().unwrap_or_default());
        // The reader may close the pipe early.
        let _ = std::io::stdout().write_all(history.as_bytes());
        return ExitCode::SUCCESS;
    }
    let number = |word: &str| word.parse::<u64>().ok();
    let seed_of = |words: &[&str]| match words {
        [] => Some(fresh_seed()),
        [seed] => number(seed),
        _ => None,
    };
    if let ["--only", workload, count, seed @ ..] = words.as_slice() {
        let seed = seed_of(seed).unwrap_or_else(fresh_seed);
        let is_of_it = |seed: &u64| workload::plan(&mut Random::new(*seed)).workload == *workload;
        let seeds = (seed..).filter(is_of_it).take(number(count).unwrap_or(1) as usize);
        return run_seeds(seeds, false);
    }
    let (count, seed, stops) = match words.as_slice() {
        ["--forever", seed @ ..] => (Some(u64::MAX), seed_of(seed), true),
        ["--count", count, seed @ ..] => (number(count), seed_of(seed), false),
        seed => (Some(1), seed_of(seed), true),
    };
    let Some((count, seed)) = count.zip(seed) else {
        println!("{USAGE}");
        return ExitCode::FAILURE;
    };
    run_seeds((0..count).map(|done| seed.wrapping_add(done)), stops)
}

/// A seed from the clock, small enough to be typed.
fn fresh_seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Random::new(since.as_nanos() as u64).below(1_000_000_000)
}

fn run_seeds(seeds: impl Iterator<Item = u64>, stops: bool) -> ExitCode {
    let start = Instant::now();
    let mut failed = 0u64;
    for seed in seeds {
        match run::run(seed) {
            Ok(report) => {
                let elapsed = start.elapsed().as_secs_f64();
                let virtually = report.micros as f64 / 1e6;
                let end = if report.is_refused { ", refused a damaged disk" } else { "" };
                println!(
                    "{elapsed:8.1} s  seed {seed:<12} {:<14} {:>6} events in {virtually:5.1} s{end}",
                    report.workload, report.events
                );
            }
            Err(failure) => {
                println!("{failure}");
                failed += 1;
                if stops {
                    return ExitCode::FAILURE;
                }
            }
        }
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
