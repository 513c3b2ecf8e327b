//! Our broker beside RabbitMQ: the same loads, in turn, on the same machine, against the targets.
//!
//! The first section uses RabbitMQ's own load tool, PerfTest, for both; it is the limit on the
//! faster side. The second uses the generator of this crate, which is not.

mod native;
mod perftest;
mod scenario;
mod side;
mod table;

use clap::Args;
use native::Native;
use perftest::PerfTest;
use side::Side;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What to compare and with what.
#[derive(Debug, Args)]
pub(crate) struct CompareArguments {
    /// Our broker's program; without it RabbitMQ is measured alone
    #[arg(long)]
    broker: Option<PathBuf>,
    /// The folder with PerfTest's jar files; without it that section is left out
    #[arg(long)]
    perf_test: Option<PathBuf>,
    /// Leave RabbitMQ out
    #[arg(long)]
    alone: bool,
    /// One short round of everything
    #[arg(long)]
    quick: bool,
    /// Rounds of each load on each side, in turn [default: 3]
    #[arg(long)]
    rounds: Option<usize>,
    /// Only the loads whose name contains this; may be given several times
    #[arg(long)]
    only: Vec<String>,
    /// Where the brokers keep their data; its disk is what is measured
    #[arg(long, default_value = "target/compare")]
    folder: PathBuf,
    /// Also write the report to this file
    #[arg(long)]
    output: Option<PathBuf>,
}

/// How long and how often each load runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    rounds: usize,
    perftest: Duration,
    native: Duration,
    warm_up: Duration,
}

impl CompareArguments {
    fn effort(&self) -> Effort {
        let seconds = Duration::from_secs;
        let (rounds, perftest, native, warm_up) = if self.quick {
            (1, seconds(9), seconds(3), seconds(4))
        } else {
            (3, seconds(18), seconds(6), seconds(5))
        };
        Effort { rounds: self.rounds.unwrap_or(rounds).max(1), perftest, native, warm_up }
    }

    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part.as_str()))
    }
}

/// Starts both brokers, runs all, prints the report. `true` if every target is met.
pub(crate) fn run(arguments: &CompareArguments) -> Result<bool, String> {
    let folder = Folder::create(&arguments.folder)?;
    let effort = arguments.effort();
    let mut report = table::Report::default();
    {
        let sides = Side::start(arguments.broker.as_deref(), !arguments.alone, folder.path())?;
        let native = Native { sides: &sides, effort, folder: folder.path() };
        if arguments.wants("idle") {
            report.add(native.idle()?);
        }
        if let Some(jars) = &arguments.perf_test {
            let perf_test = PerfTest { jars, folder: folder.path(), effort };
            for scenario in scenario::all().iter().filter(|it| arguments.wants(it.name)) {
                let row = perf_test.compare(scenario, &sides)?;
                report.add(table::perftest_row(&row));
            }
        }
        native.loads(&mut report, &|name| arguments.wants(name))?;
    }
    if arguments.wants("start") {
        let starts =
            native::starts(arguments.broker.as_deref(), !arguments.alone, folder.path(), effort)?;
        report.add(starts);
    }
    let text = report.render();
    print!("{text}");
    if let Some(output) = &arguments.output {
        fs::write(output, &text).map_err(|error| format!("{}: {error}", output.display()))?;
    }
    Ok(report.all_met())
}

/// A new folder for one comparison, removed with everything in it when it ends.
struct Folder(PathBuf);

impl Folder {
    fn create(parent: &Path) -> Result<Folder, String> {
        let path = parent.join(format!("run-{}", std::process::id()));
        fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let path = path.canonicalize().map_err(|error| error.to_string())?;
        Ok(Folder(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("{} could not be removed: {error}", self.0.display());
        }
    }
}

#[cfg(test)]
mod tests;
