//! Client suites: fetches unmodified client libraries into target/clients/ and runs our tests with them.

use super::broker::{AMQP_URL, Broker};
use super::count::Count;
use super::small_disk::SmallDisk;
use crate::{layout, process};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the suites.
const SUITES: &str = "crates/server/tests/clients";
/// The folder in it with what suites in one language share.
const SHARED: &str = "shared";
/// The folder in the target folder for what is fetched or built for them.
const WORK: &str = "clients";

/// Lists a library's own tests in Go that are left out, with the reasons.
const GO_OWN_SKIPPED: &str = "skipped_tests.txt";
/// Lists the ones that are run, if not all of them need a broker.
const GO_OWN_CHOSEN: &str = "own_tests.txt";

/// How often a suite that kills its broker does so in its long form.
const CRASH_ROUNDS_LONG: &str = "200";

/// The manifests of the suites in Rust, each a workspace of its own.
pub(super) const RUST_MANIFESTS: &[&str] = &[
    "crates/server/tests/clients/amqp10-rust/Cargo.toml",
    "crates/server/tests/clients/rust/Cargo.toml",
    "crates/server/tests/clients/nats-rust/Cargo.toml",
];

/// A suite of tests, of a client library or of ours with it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Suite {
    language: Language,
    /// Its folder among the suites.
    folder: String,
    /// Shards of its broker. By default enough for AMQP clients to be on other shards than their queues.
    #[serde(default = "shards")]
    shards: usize,
    /// Whether its broker also has TLS listeners.
    #[serde(default)]
    tls: bool,
    /// Whether there is also a broker on a disk that can be filled.
    #[serde(default)]
    small_disk: bool,
    /// The program that it is (Rust).
    #[serde(default)]
    program: String,
    /// Further programs that it needs: the variable for its path, and the package (Go).
    #[serde(default)]
    build: BTreeMap<String, String>,
    /// The package whose own tests are run (Go).
    #[serde(default)]
    package: String,
    /// The variable in which it expects the broker's AMQP URL.
    #[serde(default = "amqp_url")]
    url: String,
    /// The fewest tests that it has.
    #[serde(default)]
    tests: usize,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Language {
    Python,
    Java,
    Node,
    Go,
    /// The tests that come with a library.
    GoOwn,
    Rust,
}

fn shards() -> usize {
    3
}

fn amqp_url() -> String {
    AMQP_URL.to_owned()
}

/// A suite's folder, and its work folder.
struct Folders {
    suite: PathBuf,
    work: PathBuf,
}

impl Suite {
    /// Fetches and builds what it needs, and runs it; its long form if `long`.
    pub(super) fn run(
        &self,
        root: &Path,
        name: &str,
        long: bool,
        count: &mut Count,
    ) -> Result<(), String> {
        let suite = root.join(SUITES).join(&self.folder);
        let work = layout::target_folder(root)?.join(WORK).join(&self.folder);
        std::fs::create_dir_all(&work).map_err(|error| format!("{}: {error}", work.display()))?;
        let folders = Folders { suite, work };
        let mut tests = match self.language {
            Language::Python => python(&folders)?,
            Language::Java => java(&folders)?,
            Language::Node => node(&folders)?,
            Language::Go => self.go(&folders)?,
            Language::GoOwn => self.go_own(&folders)?,
            Language::Rust => self.rust(&folders)?,
        };
        if long {
            tests.env("CRASH_ROUNDS", CRASH_ROUNDS_LONG);
        }
        let is_go_own = matches!(self.language, Language::GoOwn);
        self.with_broker(root, name, &mut tests, |line| {
            if is_go_own {
                count.go_line(line);
                return !["=== ", "--- PASS"].iter().any(|it| line.trim_start().starts_with(it));
            }
            count.suite_line(line);
            true
        })?;
        let run = count.passed + count.failed;
        if run < self.tests {
            return Err(format!("only {run} of {} tests were run", self.tests));
        }
        Ok(())
    }

    fn go(&self, folders: &Folders) -> Result<Command, String> {
        let build = |program: &Path, package: &str| {
            let mut build = go_command(folders);
            process::run(build.args(["build", "-trimpath", "-o"]).arg(program).arg(package))
        };
        let program = folders.work.join("suite");
        build(&program, ".")?;
        let mut tests = Command::new(program);
        for (variable, package) in &self.build {
            let tool = folders.work.join(variable);
            build(&tool, package)?;
            tests.env(variable, tool);
        }
        Ok(tests)
    }

    fn go_own(&self, folders: &Folders) -> Result<Command, String> {
        let mut tests = go_command(folders);
        tests.args(["test", "-tags", "integration", "-count=1", "-v", "-timeout", "900s"]);
        for (option, list) in [("-skip", GO_OWN_SKIPPED), ("-run", GO_OWN_CHOSEN)] {
            let list = folders.suite.join(list);
            if list.exists() {
                let text = read(&list)?;
                let names: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
                tests.args([option, &format!("^({})$", names.join("|"))]);
            }
        }
        tests.arg(&self.package);
        Ok(tests)
    }

    fn rust(&self, Folders { suite, work }: &Folders) -> Result<Command, String> {
        let mut build = Command::new("cargo");
        build.args(["build", "--quiet", "--locked", "--manifest-path"]);
        build.arg(suite.join("Cargo.toml")).arg("--target-dir").arg(work);
        process::run(&mut build)?;
        Ok(Command::new(work.join("debug").join(&self.program)))
    }

    /// Runs the tests against a broker started for them; the broker must survive them.
    fn with_broker(
        &self,
        root: &Path,
        name: &str,
        tests: &mut Command,
        watch: impl FnMut(&str) -> bool,
    ) -> Result<(), String> {
        let broker = Broker::start(root, name, self.shards, self.tls)?;
        let small = if self.small_disk { SmallDisk::start(root, name, self.shards)? } else { None };
        let environment = small.iter().flat_map(SmallDisk::environment);
        for (name, value) in broker.environment.iter().chain(environment) {
            tests.env(if *name == AMQP_URL { &self.url } else { *name }, value);
        }
        let tested = process::stream(tests, watch);
        let stopped = broker.stop().and(small.map_or(Ok(()), SmallDisk::stop));
        tested.and(stopped)
    }
}

fn python(Folders { suite, work }: &Folders) -> Result<Command, String> {
    let python = work.join("venv/bin/python");
    let requirements = suite.join("requirements.txt");
    fetch_once(&requirements, &work.join("installed.txt"), || {
        let venv = work.join("venv");
        process::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(venv))?;
        let mut install = Command::new(&python);
        install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"]);
        install.arg(&requirements).env("PIP_CACHE_DIR", work.join("cache"));
        process::run(&mut install)
    })?;
    let mut tests = Command::new(&python);
    tests.arg("-u").arg(suite.join("main.py")).env("PYTHONDONTWRITEBYTECODE", "1");
    tests.env("PYTHONPATH", suite.with_file_name(SHARED));
    Ok(tests)
}

fn java(Folders { suite, work }: &Folders) -> Result<Command, String> {
    let pom = suite.join("pom.xml");
    fetch_once(&pom, &work.join("installed.xml"), || {
        let mut fetch = Command::new("mvn");
        fetch.args(["-q", "-B", "dependency:copy-dependencies", "-f"]).arg(&pom);
        fetch.arg(format!("-DoutputDirectory={}", work.join("lib").display()));
        fetch.arg(format!("-Dmaven.repo.local={}", work.join("repository").display()));
        process::run(&mut fetch)
    })?;
    let classes = work.join("classes");
    let libraries = format!("{}/*", work.join("lib").display());
    let mut compile = Command::new("javac");
    compile.args(["--release", "11", "-Xlint:all,-try", "-Werror", "-cp", &libraries, "-d"]);
    compile.arg(&classes).args(sources(&suite.with_file_name(SHARED), "java")?);
    process::run(compile.args(sources(suite, "java")?))?;
    let mut tests = Command::new("java");
    // The suite's folder too: libraries look for their settings among the classes.
    let path = format!("{}:{}:{libraries}", classes.display(), suite.display());
    tests.arg("-cp").arg(path).arg("Main");
    Ok(tests)
}

fn node(Folders { suite, work }: &Folders) -> Result<Command, String> {
    fetch_once(&suite.join("package-lock.json"), &work.join("installed.json"), || {
        for name in ["package.json", "package-lock.json"] {
            write(&work.join(name), &read(&suite.join(name))?)?;
        }
        let mut fetch = Command::new("npm");
        fetch.args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(work);
        process::run(fetch.env("npm_config_cache", work.join("cache")))
    })?;
    let mut tests = Command::new("node");
    tests.arg(suite.join("main.js")).env("NODE_PATH", work.join("node_modules"));
    Ok(tests)
}

/// All suites in Go share what is fetched and built, most of all Go's own library.
fn go_command(Folders { suite, work }: &Folders) -> Command {
    let mut command = Command::new("go");
    command.current_dir(suite).env("GOMODCACHE", work.with_file_name("go-modules"));
    command.env("GOCACHE", work.with_file_name("go-cache"));
    command.env("GOFLAGS", "-modcacherw -mod=readonly");
    command
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

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
