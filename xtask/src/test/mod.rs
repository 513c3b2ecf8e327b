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
use std::path::Path;
use std::time::Instant;
use steps::{STEPS, Step};
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
    let chosen: Vec<&Step> = STEPS.iter().filter(|step| options.chooses(step.name)).collect();
    toolchains::check(root, chosen.iter().flat_map(|step| step.needs).copied().collect())?;
    let mut outcomes: Vec<Outcome> = Vec::new();
    for (index, step) in chosen.iter().enumerate() {
        println!("\n=== {}/{} {}: {}", index + 1, chosen.len(), step.name, step.what);
        let outcome = run_step(root, step, &options, &outcomes);
        println!("=== {}", outcome.line());
        outcomes.push(outcome);
    }
    summary::report(&outcomes)
}

fn run_step(root: &Path, step: &Step, options: &Options, before: &[Outcome]) -> Outcome {
    let failed = before.iter().find(|done| step.after == Some(done.name) && done.error.is_some());
    if let Some(failed) = failed {
        let error = Some(format!("not run, because {} failed", failed.name));
        return Outcome { name: step.name, count: Count::default(), seconds: 0.0, error };
    }
    let begun = Instant::now();
    let mut count = Count::default();
    let error = (step.run)(root, options.long, &mut count).err();
    let error = error.or_else(|| count.complaint());
    Outcome { name: step.name, count, seconds: begun.elapsed().as_secs_f64(), error }
}

impl Options {
    /// Whether a step is run: every step if none is named, else the named ones and the steps that they come
    /// after, so that a single step never tests a program that is older than its source.
    fn chooses(&self, name: &str) -> bool {
        let needs = |only: &String| {
            let step = STEPS.iter().find(|step| step.name == only);
            only == name || step.is_some_and(|step| step.after == Some(name))
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
                if !STEPS.iter().any(|step| step.name == name) {
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
