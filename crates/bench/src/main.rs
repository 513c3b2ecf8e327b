//! The benchmark as a program of its own, for machines without a broker; `angarium bench` is the same.

use angarium_bench::BenchArguments;
use clap::Parser;
use std::process::ExitCode;

/// Measures message brokers: load, verdicts, and the limits of the machine below them.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(flatten)]
    bench: BenchArguments,
}

fn main() -> ExitCode {
    angarium_bench::run(Arguments::parse().bench)
}
