//! The table of steps: what each one tests, needs and runs.

use super::clients;
use super::count::Count;
use super::instructions;
use super::toolchains::Tool;
use crate::{compare, layout, process, tidy};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// One step of the tests.
#[derive(Debug)]
pub(super) struct Step {
    /// Its name, for `--only`.
    pub(super) name: &'static str,
    /// What it tests.
    pub(super) what: &'static str,
    /// The toolchains it needs.
    pub(super) needs: &'static [Tool],
    /// The step that must pass before it.
    pub(super) after: Option<&'static str>,
    /// Runs it: the root, whether the long form is asked for, where tests are counted.
    pub(super) run: fn(&Path, bool, &mut Count) -> Result<(), String>,
}

/// Every step, cheap ones first.
pub(super) const STEPS: &[Step] = &[
    Step {
        name: "fmt",
        what: "sources are formatted",
        needs: &[Tool::Rustfmt],
        after: None,
        run: |root, _, _| fmt(root),
    },
    Step {
        name: "tidy",
        what: "rules of the source tree and of dependencies",
        needs: &[Tool::Git],
        after: None,
        run: |root, _, _| tidy::run(root, &[]),
    },
    Step {
        name: "clippy",
        what: "lints, per crate, as errors",
        needs: &[Tool::Clippy],
        after: None,
        run: |root, _, _| clippy(root),
    },
    Step {
        name: "unit",
        what: "tests of every crate, and the simulator's seeds",
        needs: &[],
        after: None,
        run: |root, _, count| cargo_test(root, &["--workspace"], &[], count),
    },
    Step {
        name: "redis",
        what: "the benchmark's client of Redis, against a real one",
        needs: &[Tool::Redis],
        after: None,
        run: |root, _, count| redis(root, count),
    },
    Step {
        name: "jetstream",
        what: "the benchmark's client of JetStream, against a real one",
        needs: &[Tool::Go],
        after: None,
        run: |root, _, count| jetstream(root, count),
    },
    Step {
        name: "build",
        what: "the program as it ships",
        needs: &[],
        after: None,
        run: |root, _, _| build(root),
    },
    Step {
        name: "python",
        what: "pika, against the program: every feature",
        needs: &[Tool::Python, Tool::Openssl],
        after: Some("build"),
        run: |root, _, count| clients::python(root, "python", clients::SHARDS, count),
    },
    Step {
        name: "python-one",
        what: "pika, against one shard",
        needs: &[Tool::Python, Tool::Openssl],
        after: Some("build"),
        run: |root, _, count| clients::python(root, "python", 1, count),
    },
    Step {
        name: "java",
        what: "the RabbitMQ Java client, against the program",
        needs: &[Tool::Java, Tool::Maven],
        after: Some("build"),
        run: |root, _, count| clients::java(root, "java", count),
    },
    Step {
        name: "node",
        what: "amqplib, against the program",
        needs: &[Tool::Node, Tool::Npm],
        after: Some("build"),
        run: |root, _, count| clients::node(root, "node", count),
    },
    Step {
        name: "go",
        what: "amqp091-go, against the program",
        needs: &[Tool::Go],
        after: Some("build"),
        run: |root, _, count| clients::go(root, "go", &[], count),
    },
    Step {
        name: "go-own",
        what: "amqp091-go's own integration tests, against the program",
        needs: &[Tool::Go],
        after: Some("build"),
        run: |root, _, count| clients::go_own(root, count),
    },
    Step {
        name: "rust",
        what: "lapin, against the program",
        needs: &[],
        after: Some("build"),
        run: |root, _, count| clients::rust(root, "rust", "lapin-suite", count),
    },
    Step {
        name: "nats-python",
        what: "nats.py, against the program; beside pika",
        needs: &[Tool::Python, Tool::Openssl],
        after: Some("build"),
        run: |root, _, count| clients::python(root, "nats-python", clients::SHARDS, count),
    },
    Step {
        name: "nats-one",
        what: "nats.py, against one shard",
        needs: &[Tool::Python, Tool::Openssl],
        after: Some("build"),
        run: |root, _, count| clients::python(root, "nats-python", 1, count),
    },
    Step {
        name: "nats-java",
        what: "jnats, against the program",
        needs: &[Tool::Java, Tool::Maven, Tool::Openssl],
        after: Some("build"),
        run: |root, _, count| clients::java(root, "nats-java", count),
    },
    Step {
        name: "nats-node",
        what: "nats.js, against the program",
        needs: &[Tool::Node, Tool::Npm, Tool::Openssl],
        after: Some("build"),
        run: |root, _, count| clients::node(root, "nats-node", count),
    },
    Step {
        name: "nats-go",
        what: "nats.go, against the program",
        needs: &[Tool::Go, Tool::Openssl],
        after: Some("build"),
        run: |root, _, count| clients::go(root, "nats-go", &[clients::NATS_BENCH], count),
    },
    Step {
        name: "nats-rust",
        what: "async-nats, against the program",
        needs: &[Tool::Openssl],
        after: Some("build"),
        run: |root, _, count| clients::rust(root, "nats-rust", "async-nats-suite", count),
    },
    Step {
        name: "instructions",
        what: "instructions per message, compared with bounds",
        needs: &[Tool::Valgrind],
        after: Some("build"),
        run: |root, _, count| instructions::run(root, count),
    },
    Step {
        name: "crash",
        what: "kill -9, full disk and SIGTERM under load; nothing confirmed is lost",
        needs: &[],
        after: Some("build"),
        run: crash,
    },
];

/// The steps as `--list` shows them.
pub(super) fn list() -> String {
    let mut text = String::new();
    for step in STEPS {
        let needs: Vec<&str> = step.needs.iter().map(|tool| tool.row().name).collect();
        let needs =
            if needs.is_empty() { String::new() } else { format!(" ({})", needs.join(", ")) };
        writeln!(text, "  {:11} {}{needs}", step.name, step.what).expect("a String takes any text");
    }
    text
}

fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(arguments).current_dir(root);
    command
}

fn fmt(root: &Path) -> Result<(), String> {
    process::stream(&mut cargo(root, &["fmt", "--all", "--check"]), |_| {})?;
    for manifest in clients::RUST_MANIFESTS {
        let arguments = ["fmt", "--check", "--manifest-path", manifest];
        process::stream(&mut cargo(root, &arguments), |_| {})?;
    }
    Ok(())
}

fn clippy(root: &Path) -> Result<(), String> {
    let arguments = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    process::stream(&mut cargo(root, &arguments), |_| {})
}

fn build(root: &Path) -> Result<(), String> {
    process::stream(&mut cargo(root, &["build", "--release", "-p", "angarium-server"]), |_| {})
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
    process::stream(&mut command, |line| count.cargo_line(line))
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
