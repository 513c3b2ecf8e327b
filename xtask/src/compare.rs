//! `cargo xtask compare PROTOCOL` and `cargo xtask differ PROTOCOL`: builds both brokers, fetches the peer's
//! load tool, and runs the benchmark, which has the loads, targets and scenarios.

use crate::layout::target_folder;
use crate::network;
use crate::process;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// RabbitMQ's load tool.
const PERF_TEST: Artifact =
    Artifact { name: "perf-test", coordinates: "com.rabbitmq:perf-test:2.22.1" };
/// The JMS client of Qpid, over AMQP 1.0.
const QPID_JMS: Artifact =
    Artifact { name: "qpid-jms", coordinates: "org.apache.qpid:qpid-jms-client:2.10.0" };
/// Artemis as it is released.
const ARTEMIS_VERSION: &str = "2.44.0";

/// An MQTT broker, built by cargo.
const RUMQTTD: &str = "rumqttd@0.20.0";

/// What Maven fetches, with its dependencies.
struct Artifact {
    name: &'static str,
    /// Group, artifact and version.
    coordinates: &'static str,
}

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
    let protocols: &[&str] = match verb {
        "compare" => &["amqp091", "amqp10", "nats", "mqtt"],
        _ => &["amqp091", "amqp10", "nats"],
    };
    if !protocols.contains(&protocol.as_str()) {
        let there = protocols.join(", ");
        return Err(format!("nothing to {verb} by '{protocol}'; there is: {there}"));
    }
    let target = target_folder(root)?;
    build(root)?;
    let tools = match (protocol.as_str(), verb) {
        ("nats", "compare") => install_nats(&target)?,
        ("nats", _) => vec!["--nats-server".into(), install_nats_server(&target)?.into()],
        ("amqp10", "compare") => artemis_and_qpid_jms(&target)?,
        ("amqp10", _) => vec!["--artemis".into(), fetch_artemis(&target)?.into()],
        ("mqtt", _) => vec!["--rumqttd".into(), install_rumqttd(&target)?.into()],
        (_, "compare") => vec!["--perf-test".into(), PERF_TEST.fetch(&target)?.into()],
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

/// Builds rumqttd into the target folder, unless it exists. Returns its path.
fn install_rumqttd(target: &Path) -> Result<PathBuf, String> {
    let folder = target.join("rumqttd");
    let program = folder.join("bin/rumqttd");
    if !program.exists() {
        let mut cargo = Command::new("cargo");
        cargo.args(["install", RUMQTTD, "--no-default-features", "--root"]).arg(&folder);
        process::run(&mut cargo)?;
    }
    Ok(program)
}

fn artemis_and_qpid_jms(target: &Path) -> Result<Vec<OsString>, String> {
    let (artemis, qpid_jms) = (fetch_artemis(target)?, QPID_JMS.fetch(target)?);
    Ok(vec!["--artemis".into(), artemis.into(), "--qpid-jms".into(), qpid_jms.into()])
}

fn build(root: &Path) -> Result<(), String> {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "-p", "angarium-server", "-p", "angarium-bench"]);
    process::run(cargo.current_dir(root))
}

impl Artifact {
    fn version(&self) -> &str {
        self.coordinates.rsplit(':').next().unwrap_or_default()
    }

    /// Copies it and its dependencies into the target folder, unless they exist. Returns their folder.
    fn fetch(&self, target: &Path) -> Result<PathBuf, String> {
        let folder = target.join(format!("{}-{}", self.name, self.version()));
        let (jars, done) = (folder.join("lib"), folder.join("done"));
        if !done.exists() {
            let output = format!("-DoutputDirectory={}", jars.display());
            let dependency = dependency(self.coordinates, "");
            maven(&folder, &dependency, &["dependency:copy-dependencies", &output])?;
            std::fs::write(&done, "").map_err(|error| format!("{}: {error}", done.display()))?;
        }
        Ok(jars)
    }
}

/// Unpacks Artemis into the target folder, unless it exists. Returns its program.
fn fetch_artemis(target: &Path) -> Result<PathBuf, String> {
    let folder = target.join(format!("artemis-{ARTEMIS_VERSION}"));
    let program = folder.join(format!("apache-artemis-{ARTEMIS_VERSION}/bin/artemis"));
    if !program.exists() {
        let coordinates = format!("org.apache.activemq:apache-artemis:{ARTEMIS_VERSION}");
        let release = "<type>tar.gz</type><classifier>bin</classifier>";
        let dependency = dependency(&coordinates, release);
        let output = format!("-DoutputDirectory={}", folder.display());
        let alone = "-DexcludeTransitive=true";
        maven(&folder, &dependency, &["dependency:unpack-dependencies", &output, alone])?;
    }
    Ok(program)
}

/// Runs Maven in `folder`, in a project whose only dependency is this.
fn maven(folder: &Path, dependency: &str, arguments: &[&str]) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(folder).map_err(failed)?;
    std::fs::write(folder.join("pom.xml"), project(dependency)).map_err(failed)?;
    let mut maven = Command::new("mvn");
    maven.args(["--batch-mode", "--quiet"]).args(arguments).current_dir(folder);
    process::run(&mut maven)
}

/// A dependency on an artifact, given by group, artifact and version; `which` is its type.
fn dependency(coordinates: &str, which: &str) -> String {
    let names = ["groupId", "artifactId", "version"];
    let parts = names.into_iter().zip(coordinates.split(':'));
    let parts: String = parts.map(|(name, part)| format!("<{name}>{part}</{name}>")).collect();
    format!("<dependency>{parts}{which}</dependency>")
}

fn project(dependency: &str) -> String {
    format!(
        "<project xmlns=\"http://maven.apache.org/POM/4.0.0\">\n\
         <modelVersion>4.0.0</modelVersion>\n\
         <groupId>angarium</groupId><artifactId>compare</artifactId><version>1</version>\n\
         <packaging>pom</packaging>\n\
         <dependencies>{dependency}</dependencies>\n\
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
    fn the_project_names_what_it_depends_on() {
        let text = project(&dependency(PERF_TEST.coordinates, "<type>jar</type>"));
        let wanted = "<dependency><groupId>com.rabbitmq</groupId><artifactId>perf-test</artifactId>\
                      <version>2.22.1</version><type>jar</type></dependency>";
        assert!(text.contains(wanted), "{text}");
        assert_eq!(PERF_TEST.version(), "2.22.1");
    }
}
