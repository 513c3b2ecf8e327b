//! The benchmark as a program of its own, for machines without a broker; `angarium bench` is the same.

use angarium_bench::BenchArguments;
use angarium_bench::secrets;
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
    if let Err(why) = secrets::refuse_in(std::env::args_os()) {
        eprintln!("bench: {why}");
        return ExitCode::FAILURE;
    }
    angarium_bench::run(Arguments::parse().bench)
}
