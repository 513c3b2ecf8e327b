//! The steps: what each one tests, needs and runs.

use super::clients::{self, Suite};
use super::count::Count;
use super::instructions;
use super::toolchains::Tool;
use crate::{compare, layout, process, tidy};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

/// `steps.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    /// By the name that steps use.
    pub(super) tool: BTreeMap<String, Tool>,
    /// Every step, cheap ones first.
    pub(super) step: Vec<Step>,
}

/// One step of the tests.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    /// Its name, for `--only`.
    pub(super) name: String,
    /// What it tests.
    pub(super) what: String,
    /// The tools it needs.
    #[serde(default)]
    needs: Vec<String>,
    /// The step that must pass before it.
    pub(super) after: Option<String>,
    suite: Option<Suite>,
}

/// The steps and their tools.
pub(super) fn plan() -> &'static Plan {
    static PLAN: LazyLock<Plan> = LazyLock::new(|| {
        toml::from_str(include_str!("steps.toml")).expect("the file is part of the program")
    });
    &PLAN
}

/// The step of that name.
pub(super) fn step(name: &str) -> Option<&'static Step> {
    plan().step.iter().find(|step| step.name == name)
}

impl Step {
    /// The tools it needs.
    pub(super) fn tools(&self) -> impl Iterator<Item = &'static Tool> {
        self.needs.iter().map(|name| &plan().tool[name])
    }

    /// Runs it; the long form of crash tests if `long`.
    pub(super) fn run(&self, root: &Path, long: bool, count: &mut Count) -> Result<(), String> {
        if let Some(suite) = &self.suite {
            return suite.run(root, &self.name, long, count);
        }
        match self.name.as_str() {
            "fmt" => fmt(root),
            "tidy" => tidy::run(root, &[]),
            "clippy" => clippy(root),
            "unit" => cargo_test(root, &["--workspace"], &[], count),
            "redis" => redis(root, count),
            "jetstream" => jetstream(root, count),
            "build" => build(root),
            "red-team" => red_team(root, count),
            "instructions" => build(root).and_then(|()| instructions::run(root, count)),
            "crash" => crash(root, long, count),
            name => Err(format!("step '{name}' has nothing to run")),
        }
    }
}

/// The steps as `--list` shows them.
pub(super) fn list() -> String {
    let mut text = String::new();
    for step in &plan().step {
        let needs: Vec<&str> = step.tools().map(|tool| tool.name.as_str()).collect();
        let needs =
            if needs.is_empty() { String::new() } else { format!(" ({})", needs.join(", ")) };
        text += &format!("  {:11} {}{needs}\n", step.name, step.what);
    }
    text
}

fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(arguments).current_dir(root);
    command
}

fn fmt(root: &Path) -> Result<(), String> {
    process::run(&mut cargo(root, &["fmt", "--all", "--check"]))?;
    for manifest in clients::RUST_MANIFESTS {
        let arguments = ["fmt", "--check", "--manifest-path", manifest];
        process::run(&mut cargo(root, &arguments))?;
    }
    Ok(())
}

fn clippy(root: &Path) -> Result<(), String> {
    let arguments = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    process::run(&mut cargo(root, &arguments))
}

/// The program, and beside it the one that instructions are counted of: at once, both share what they are
/// made of.
fn build(root: &Path) -> Result<(), String> {
    let arguments = ["build", "--release", "-p", "angarium-server", "-p", "angarium-instructions"];
    process::run(&mut cargo(root, &arguments))
}

/// The whole workspace, so that dependencies have the features that the unit tests were built with.
fn redis(root: &Path, count: &mut Count) -> Result<(), String> {
    let arguments = ["--workspace", "--test", "smoke", "--", "--ignored", "redis::"];
    cargo_test(root, &arguments, &[], count)
}

fn jetstream(root: &Path, count: &mut Count) -> Result<(), String> {
    let program = compare::install_nats_server(&layout::target_folder(root)?)?;
    let arguments = ["--workspace", "--test", "smoke", "--", "--ignored", "jetstream::"];
    cargo_test(root, &arguments, &[("NATS_SERVER", &program.display().to_string())], count)
}

fn cargo_test(
    root: &Path,
    arguments: &[&str],
    environment: &[(&str, &str)],
    count: &mut Count,
) -> Result<(), String> {
    let mut command = cargo(root, &["test", "--no-fail-fast"]);
    command.args(arguments).envs(environment.iter().copied());
    process::stream(&mut command, |line| {
        count.cargo_line(line);
        true
    })
}

/// Attacks on the release build of the program; each starts a broker of its own.
fn red_team(root: &Path, count: &mut Count) -> Result<(), String> {
    let mut attacks = Command::new("python3");
    attacks.arg("-u").arg(root.join("crates/server/tests/red-team/main.py"));
    attacks.env("PYTHONDONTWRITEBYTECODE", "1");
    attacks.env("BROKER_TEST_PROGRAM", layout::program(root)?);
    process::stream(&mut attacks, |line| {
        count.suite_line(line);
        true
    })
}

/// The harness of the unit tests against the release build of the program.
fn crash(root: &Path, long: bool, count: &mut Count) -> Result<(), String> {
    let rounds = if long { "200" } else { "10" };
    let program = layout::program(root)?.display().to_string();
    // The whole workspace, so that dependencies have the features that the unit tests were built with.
    let arguments = ["--workspace", "--test", "crash", "--"];
    let of_tests = ["--ignored", "--nocapture", "--test-threads=1"];
    cargo_test(
        root,
        &[&arguments[..], &of_tests].concat(),
        &[("CRASH_ROUNDS", rounds), ("CRASH_PROGRAM", &program)],
        count,
    )
}
