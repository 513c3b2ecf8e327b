//! `cargo xtask test`: runs every check and every test in order, with their times and one summary.

mod broker;
mod certificates;
mod clients;
mod count;
mod instructions;
mod small_disk;
mod steps;
mod summary;
mod toolchains;

use count::Count;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;
use steps::{Step, plan, step};
use summary::Outcome;

/// What the command line asks for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    only: Vec<String>,
    list: bool,
    long: bool,
}

/// Runs the steps that `arguments` choose.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<(), String> {
    let options = parse(arguments)?;
    if options.list {
        print!("{}", steps::list());
        return Ok(());
    }
    let chosen: Vec<&'static Step> =
        plan().step.iter().filter(|step| options.chooses(&step.name)).collect();
    let tools: BTreeMap<&str, _> = chosen
        .iter()
        .flat_map(|step| step.tools())
        .map(|tool| (tool.name.as_str(), tool))
        .collect();
    toolchains::check(root, tools.into_values().collect())?;
    let mut outcomes: Vec<Outcome> = Vec::new();
    for (index, step) in chosen.iter().enumerate() {
        println!("\n=== {}/{} {}: {}", index + 1, chosen.len(), step.name, step.what);
        let outcome = run_step(root, step, &options, &outcomes);
        println!("=== {}", outcome.line());
        outcomes.push(outcome);
    }
    summary::report(&outcomes)
}

fn run_step(root: &Path, step: &'static Step, options: &Options, before: &[Outcome]) -> Outcome {
    let is_needed = |done: &&Outcome| step.after.as_deref() == Some(done.name);
    let failed = before.iter().filter(is_needed).find(|done| done.error.is_some());
    let (name, mut count) = (step.name.as_str(), Count::default());
    if let Some(failed) = failed {
        let error = Some(format!("not run, because {} failed", failed.name));
        return Outcome { name, count, seconds: 0.0, error };
    }
    let begun = Instant::now();
    let error = step.run(root, options.long, &mut count).err();
    let error = error.or_else(|| count.complaint());
    Outcome { name, count, seconds: begun.elapsed().as_secs_f64(), error }
}

impl Options {
    /// Whether a step is run: every step if none is named, else the named ones and the steps that they come
    /// after, so that a single step never tests a program that is older than its source.
    fn chooses(&self, name: &str) -> bool {
        let needs = |only: &String| {
            only == name || step(only).is_some_and(|step| step.after.as_deref() == Some(name))
        };
        self.only.is_empty() || self.only.iter().any(needs)
    }
}

fn parse(arguments: &[String]) -> Result<Options, String> {
    let mut options = Options::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--list" => options.list = true,
            "--long" => options.long = true,
            "--only" => {
                let name = rest.next().ok_or("--only needs the name of a step (see --list)")?;
                if step(name).is_none() {
                    return Err(format!("no step '{name}'; the steps are\n{}", steps::list()));
                }
                options.only.push(name.clone());
            }
            other => return Err(format!("unknown option '{other}' of `cargo xtask test`")),
        }
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_string()).collect()
    }

    #[test]
    fn options_are_read() {
        let options = parse(&strings(&["--long", "--only", "tidy", "--only", "fmt"])).unwrap();
        assert_eq!(options, Options { only: strings(&["tidy", "fmt"]), list: false, long: true });
        assert!(options.chooses("tidy") && !options.chooses("crash"));
        assert!(parse(&[]).unwrap().chooses("crash"));
        let clients = parse(&strings(&["--only", "nats-go"])).unwrap();
        assert!(clients.chooses("build") && clients.chooses("nats-go") && !clients.chooses("go"));
    }

    #[test]
    fn wrong_options_are_refused() {
        assert!(parse(&strings(&["--only"])).is_err());
        assert!(parse(&strings(&["--only", "nothing"])).unwrap_err().contains("no step 'nothing'"));
        assert!(parse(&strings(&["--quick"])).is_err());
    }
}
