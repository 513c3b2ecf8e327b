//! Runs a seed: plan, world, checks.

use crate::canary::Canary;
use crate::checks;
use crate::history::Digest;
use crate::random::Random;
use crate::workload;
use crate::world::World;
use angarium_engine::Time;

/// Number of events in the report of a failed run.
const TAIL: usize = 25;

/// How a run went.
#[derive(Clone, Debug)]
pub struct Report {
    /// Which workload the seed chose.
    pub workload: &'static str,
    /// The digest of the history and of every byte sent.
    pub digest: Digest,
    /// Events in the history.
    pub events: usize,
    /// Virtual time from its first event to its last, in microseconds.
    pub micros: u64,
    /// The node rightly refused to start on a damaged disk.
    pub is_refused: bool,
}

/// A run that broke a promise.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Its seed.
    pub seed: u64,
    /// Which workload the seed chose.
    pub workload: &'static str,
    /// What was broken.
    pub what: String,
    /// The last events.
    pub tail: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Failure { seed, workload, what, tail } = self;
        writeln!(f, "{tail}")?;
        writeln!(f, "seed {seed} ({workload}): {what}")?;
        write!(f, "again: cargo run -p angarium-sim -- {seed}")
    }
}

/// Runs the seed.
pub fn run(seed: u64) -> Result<Report, Box<Failure>> {
    run_with(seed, None)
}

/// Runs the seed, with a rule broken on purpose.
pub fn run_with(seed: u64, canary: Option<Canary>) -> Result<Report, Box<Failure>> {
    let mut plan = workload::plan(&mut Random::new(seed));
    if canary.is_some_and(Canary::is_between_shards) {
        plan.shards = workload::draw::several_shards(&mut Random::new(seed));
    }
    let workload = plan.workload;
    let mut world = World::new(plan, seed, canary);
    let outcome = world.run();
    let history = &world.history;
    let what = match (checks::all(history), outcome) {
        (Ok(()), Ok(is_refused)) => {
            let time = |event: Option<&(Time, _)>| event.map_or(0, |(time, _)| time.0);
            let micros = time(history.events.last()) - time(history.events.first());
            let (digest, events) = (history.digest, history.events.len());
            return Ok(Report { workload, digest, events, micros, is_refused });
        }
        (Ok(()), Err(what)) | (Err(what), Ok(_)) => what,
        // A broken promise says more than its consequence.
        (Err(broken), Err(what)) => format!("{broken}; and {what}"),
    };
    Err(Box::new(Failure { seed, workload, what, tail: history.tail(TAIL) }))
}

/// The plan and the whole history of a run, a line for each event; the judgement is not part of it.
pub fn history(seed: u64) -> String {
    let mut world = World::new(workload::plan(&mut Random::new(seed)), seed, None);
    // A run that fails has a history, too.
    let _ = world.run();
    format!("{:#?}\n{}", world.history.plan, world.history.tail(usize::MAX))
}
