//! Client suites: fetches unmodified client libraries into target/clients/ and runs our tests with them.

use super::broker::Broker;
use super::count::Count;
use super::small_disk::SmallDisk;
use crate::{layout, process};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the suites.
const SUITES: &str = "crates/server/tests/clients";
/// The folder in it with what suites in one language share.
const SHARED: &str = "shared";
/// The folder in the target folder for what is fetched or built for them.
const WORK: &str = "clients";

/// Lists amqp091-go's own tests that need RabbitMQ's management interface.
const GO_OWN_SKIPPED: &str = "skipped_tests.txt";

/// The manifests of the suites in Rust, each a workspace of its own.
pub(super) const RUST_MANIFESTS: &[&str] = &[
    "crates/server/tests/clients/rust/Cargo.toml",
    "crates/server/tests/clients/nats-rust/Cargo.toml",
];

/// Suites whose broker also has TLS listeners.
const WITH_TLS: &[&str] =
    &["python", "nats-python", "nats-java", "nats-node", "nats-go", "nats-rust"];

/// Shards of the broker that suites run against: enough for AMQP clients to be on other shards than
/// their queues.
pub(super) const SHARDS: usize = 3;

/// nats-bench, which comes with nats.go.
pub(super) const NATS_BENCH: (&str, &str) =
    ("NATS_BENCH", "github.com/nats-io/nats.go/examples/nats-bench");

/// The broker that a suite runs against.
#[derive(Clone, Copy, Debug)]
struct TestBroker<'a> {
    /// The suite.
    name: &'a str,
    shards: usize,
}

/// A suite in Python: pika, nats.py.
pub(super) fn python(
    root: &Path,
    name: &str,
    shards: usize,
    count: &mut Count,
) -> Result<(), String> {
    let (suite, work) = folders(root, name)?;
    let python = work.join("venv/bin/python");
    let requirements = suite.join("requirements.txt");
    fetch_once(&requirements, &work.join("installed.txt"), || {
        let venv = work.join("venv");
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(venv))?;
        let mut install = Command::new(&python);
        install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"]);
        install.arg(&requirements).env("PIP_CACHE_DIR", work.join("cache"));
        run(&mut install)
    })?;
    let mut tests = Command::new(&python);
    tests.arg("-u").arg(suite.join("main.py")).env("PYTHONDONTWRITEBYTECODE", "1");
    tests.env("PYTHONPATH", suite.with_file_name(SHARED));
    count_cases(root, TestBroker { name, shards }, &mut tests, count)
}

/// A suite in Java: the RabbitMQ Java client, jnats.
pub(super) fn java(root: &Path, name: &str, count: &mut Count) -> Result<(), String> {
    let (suite, work) = folders(root, name)?;
    let pom = suite.join("pom.xml");
    fetch_once(&pom, &work.join("installed.xml"), || {
        let mut fetch = Command::new("mvn");
        fetch.args(["-q", "-B", "dependency:copy-dependencies", "-f"]).arg(&pom);
        fetch.arg(format!("-DoutputDirectory={}", work.join("lib").display()));
        fetch.arg(format!("-Dmaven.repo.local={}", work.join("repository").display()));
        run(&mut fetch)
    })?;
    let classes = work.join("classes");
    let libraries = format!("{}/*", work.join("lib").display());
    let mut compile = Command::new("javac");
    compile
        .args(["--release", "11", "-Xlint:all,-try", "-Werror", "-cp", &libraries, "-d"])
        .arg(&classes);
    compile.args(sources(&suite.with_file_name(SHARED), "java")?);
    compile.args(sources(&suite, "java")?);
    run(&mut compile)?;
    let mut tests = Command::new("java");
    tests.arg("-cp").arg(format!("{}:{libraries}", classes.display())).arg("Main");
    count_cases(root, TestBroker { name, shards: SHARDS }, &mut tests, count)
}

/// A suite in JavaScript: amqplib, nats.js.
pub(super) fn node(root: &Path, name: &str, count: &mut Count) -> Result<(), String> {
    let (suite, work) = folders(root, name)?;
    fetch_once(&suite.join("package-lock.json"), &work.join("installed.json"), || {
        for name in ["package.json", "package-lock.json"] {
            write(&work.join(name), &read(&suite.join(name))?)?;
        }
        let mut fetch = Command::new("npm");
        fetch.args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(&work);
        run(fetch.env("npm_config_cache", work.join("cache")))
    })?;
    let mut tests = Command::new("node");
    tests.arg(suite.join("main.js")).env("NODE_PATH", work.join("node_modules"));
    count_cases(root, TestBroker { name, shards: SHARDS }, &mut tests, count)
}

/// A suite in Go: amqp091-go, nats.go. Each tool is an environment variable of the suite, and the package of
/// the program whose path it gets.
pub(super) fn go(
    root: &Path,
    name: &str,
    tools: &[(&str, &str)],
    count: &mut Count,
) -> Result<(), String> {
    let (suite, work) = folders(root, name)?;
    let build = |program: &Path, package: &str| {
        let mut build = go_command(&suite, &work);
        run(build.args(["build", "-trimpath", "-o"]).arg(program).arg(package))
    };
    let program = work.join("suite");
    build(&program, ".")?;
    let mut tests = Command::new(program);
    for (variable, package) in tools {
        let tool = work.join(variable);
        build(&tool, package)?;
        tests.env(variable, tool);
    }
    count_cases(root, TestBroker { name, shards: SHARDS }, &mut tests, count)
}

/// The tests that come with amqp091-go.
pub(super) fn go_own(root: &Path, count: &mut Count) -> Result<(), String> {
    let (suite, work) = folders(root, "go")?;
    let skipped = read(&suite.join(GO_OWN_SKIPPED))?;
    let names: Vec<&str> = skipped.lines().filter(|line| !line.starts_with('#')).collect();
    let mut tests = go_command(&suite, &work);
    tests.args(["test", "-tags", "integration", "-count=1", "-v", "-timeout", "900s"]);
    tests.args(["-skip", &format!("^({})$", names.join("|")), "github.com/rabbitmq/amqp091-go"]);
    with_broker(root, TestBroker { name: "go-own", shards: SHARDS }, &mut tests, |line| {
        count.go_line(line);
        !["=== ", "--- PASS"].iter().any(|noise| line.trim_start().starts_with(noise))
    })
}

fn go_command(suite: &Path, work: &Path) -> Command {
    let mut command = Command::new("go");
    command.current_dir(suite).env("GOMODCACHE", work.join("modules"));
    command.env("GOCACHE", work.join("cache")).env("GOFLAGS", "-modcacherw -mod=readonly");
    command
}

/// A suite in Rust: lapin, async-nats.
pub(super) fn rust(
    root: &Path,
    name: &str,
    program: &str,
    count: &mut Count,
) -> Result<(), String> {
    let (suite, work) = folders(root, name)?;
    let manifest = suite.join("Cargo.toml");
    let mut build = Command::new("cargo");
    build.args(["build", "--quiet", "--locked", "--manifest-path"]).arg(manifest);
    run(build.arg("--target-dir").arg(&work))?;
    let mut tests = Command::new(work.join("debug").join(program));
    count_cases(root, TestBroker { name, shards: SHARDS }, &mut tests, count)
}

/// Runs one of our suites.
fn count_cases(
    root: &Path,
    broker: TestBroker<'_>,
    suite: &mut Command,
    count: &mut Count,
) -> Result<(), String> {
    with_broker(root, broker, suite, |line| {
        count.suite_line(line);
        true
    })
}

/// Runs the tests of a client against a broker started for them; the broker must survive them.
fn with_broker(
    root: &Path,
    TestBroker { name, shards }: TestBroker<'_>,
    tests: &mut Command,
    watch: impl FnMut(&str) -> bool,
) -> Result<(), String> {
    let broker = Broker::start(root, name, shards, WITH_TLS.contains(&name))?;
    tests.envs(broker.environment.iter().map(|(name, value)| (name, value)));
    let small = match name {
        "python" | "java" => SmallDisk::start(root, name, shards)?,
        _ => None,
    };
    tests.envs(small.iter().flat_map(SmallDisk::environment).map(|(name, value)| (name, value)));
    let tested = process::stream_some(tests, watch);
    let stopped = broker.stop().and(small.map_or(Ok(()), SmallDisk::stop));
    tested.and(stopped)
}

/// Fetches what a file lists, unless `marker` has the same content; then copies the list there.
fn fetch_once(
    list: &Path,
    marker: &Path,
    fetch: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    let wanted = read(list)?;
    if std::fs::read_to_string(marker).is_ok_and(|fetched| fetched == wanted) {
        return Ok(());
    }
    fetch()?;
    write(marker, &wanted)
}

/// A suite's folder, and its work folder, which is created.
fn folders(root: &Path, name: &str) -> Result<(PathBuf, PathBuf), String> {
    let suite = root.join(SUITES).join(name);
    let work = layout::target_folder(root)?.join(WORK).join(name);
    std::fs::create_dir_all(&work).map_err(|error| format!("{}: {error}", work.display()))?;
    Ok((suite, work))
}

/// The files of a folder with that ending, sorted.
fn sources(folder: &Path, ending: &str) -> Result<Vec<PathBuf>, String> {
    let listing =
        std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let paths = listing.filter_map(|entry| Some(entry.ok()?.path()));
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|found| found == ending)).collect();
    paths.sort();
    Ok(paths)
}

fn run(command: &mut Command) -> Result<(), String> {
    process::stream(command, |_| {})
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
