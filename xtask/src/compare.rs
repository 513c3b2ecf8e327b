//! `cargo xtask compare PROTOCOL` and `cargo xtask differ PROTOCOL`: builds both brokers, fetches the peer's
//! load tool, and runs the benchmark, which has the loads, targets and scenarios.

use crate::layout::target_folder;
use crate::network;
use crate::process;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version of RabbitMQ's load tool.
const PERF_TEST_VERSION: &str = "2.22.1";

/// nats-server and its public load tool, each in the version that is newest when it is first built.
const NATS_PROGRAMS: &[(&str, &str)] = &[
    ("nats-server", "github.com/nats-io/nats-server/v2@latest"),
    ("nats-bench", "github.com/nats-io/nats.go/examples/nats-bench@latest"),
];

/// Runs the benchmark's command `verb`, `compare` or `differ`; arguments after the protocol are its own.
pub(crate) fn run(root: &Path, verb: &str, arguments: &[String]) -> Result<(), String> {
    let Some((protocol, rest)) = arguments.split_first() else {
        return Err(format!("{verb} what? `cargo xtask {verb} amqp091` or `nats`"));
    };
    if !["amqp091", "nats"].contains(&protocol.as_str()) {
        return Err(format!("nothing to compare by '{protocol}'; there is: amqp091, nats"));
    }
    let target = target_folder(root)?;
    build(root)?;
    let tools = match (protocol.as_str(), verb) {
        ("nats", "compare") => install_nats(&target)?,
        ("nats", _) => vec!["--nats-server".into(), install_nats_server(&target)?.into()],
        (_, "compare") => perf_test(&target)?,
        _ => Vec::new(),
    };
    let program = target.join("release/angarium-bench");
    let status = network::unpaced(&program)
        .arg(verb)
        .arg(protocol)
        .arg("--broker")
        .arg(target.join("release/angarium"))
        .args(tools)
        .arg("--folder")
        .arg(target.join(verb))
        .args(rest)
        .current_dir(root)
        .status()
        .map_err(|error| format!("the benchmark could not be started: {error}"))?;
    match status.code() {
        Some(0) => Ok(()),
        Some(2) if verb == "differ" => Err("the brokers answer differently".to_string()),
        Some(2) => Err("a target was missed".to_string()),
        _ => Err(format!("the benchmark failed ({status})")),
    }
}

/// Builds nats-server and its load tool into the target folder, unless they exist. Returns the benchmark's
/// flags that name them.
fn install_nats(target: &Path) -> Result<Vec<OsString>, String> {
    let folder = target.join("nats");
    let mut flags = Vec::new();
    for (name, module) in NATS_PROGRAMS {
        flags.push(format!("--{name}").into());
        flags.push(go_program(&folder, name, module)?.into_os_string());
    }
    Ok(flags)
}

/// Builds nats-server into the target folder, unless it exists. Returns its path.
pub(crate) fn install_nats_server(target: &Path) -> Result<PathBuf, String> {
    let (name, module) = NATS_PROGRAMS[0];
    go_program(&target.join("nats"), name, module)
}

fn go_program(folder: &Path, name: &str, module: &str) -> Result<PathBuf, String> {
    let program = folder.join(name);
    if !program.exists() {
        let mut go = Command::new("go");
        process::run(go.args(["install", module]).env("GOBIN", folder))?;
    }
    Ok(program)
}

fn perf_test(target: &Path) -> Result<Vec<OsString>, String> {
    Ok(vec!["--perf-test".into(), fetch_perf_test(target)?.into_os_string()])
}

fn build(root: &Path) -> Result<(), String> {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "-p", "angarium-server", "-p", "angarium-bench"]);
    process::run(cargo.current_dir(root))
}

/// Copies PerfTest and its dependencies into the target folder, unless they exist.
fn fetch_perf_test(target: &Path) -> Result<PathBuf, String> {
    let folder = target.join(format!("perf-test-{PERF_TEST_VERSION}"));
    let jars = folder.join("lib");
    if jars.join(format!("perf-test-{PERF_TEST_VERSION}.jar")).exists() {
        return Ok(jars);
    }
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(&folder).map_err(failed)?;
    std::fs::write(folder.join("pom.xml"), project(PERF_TEST_VERSION)).map_err(failed)?;
    let mut maven = Command::new("mvn");
    maven
        .args(["--batch-mode", "--quiet", "dependency:copy-dependencies"])
        .arg(format!("-DoutputDirectory={}", jars.display()))
        .current_dir(&folder);
    process::run(&mut maven)?;
    Ok(jars)
}

/// A Maven project whose only dependency is PerfTest.
fn project(version: &str) -> String {
    format!(
        "<project xmlns=\"http://maven.apache.org/POM/4.0.0\">\n\
         <modelVersion>4.0.0</modelVersion>\n\
         <groupId>angarium</groupId><artifactId>compare</artifactId><version>1</version>\n\
         <packaging>pom</packaging>\n\
         <dependencies><dependency><groupId>com.rabbitmq</groupId>\
         <artifactId>perf-test</artifactId><version>{version}</version></dependency></dependencies>\n\
         </project>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_protocol_must_be_one_that_can_be_compared() {
        let run = |arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(|it| (*it).to_string()).collect();
            run(Path::new("."), "compare", &arguments)
        };
        assert!(run(&[]).is_err_and(|why| why.contains("amqp091") && why.contains("nats")));
        assert!(run(&["smtp"]).is_err_and(|why| why.contains("'smtp'")));
    }

    #[test]
    fn the_project_names_the_version() {
        let text = project("1.2.3");
        assert!(text.contains("<artifactId>perf-test</artifactId><version>1.2.3</version>"));
    }
}
