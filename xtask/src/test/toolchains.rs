//! Required tools: checked before anything runs, so that one error names everything that is missing.

use crate::process;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

/// A program that some step needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tool {
    Git,
    Openssl,
    Rustfmt,
    Clippy,
    Python,
    Java,
    Maven,
    Node,
    Npm,
    Go,
    Valgrind,
    Redis,
}

/// Succeeds where Python can make virtual environments.
const PYTHON_PROBE: &str = "import sys, venv, ensurepip; assert sys.version_info >= (3, 9)";

/// A tool's name, test, purpose and installation.
#[derive(Debug)]
pub(super) struct Row {
    /// Its name.
    pub(super) name: &'static str,
    /// A command that succeeds only where the tool works.
    probe: &'static [&'static str],
    /// Its purpose.
    why: &'static str,
    /// How to install it where no Debian package has it.
    install: &'static str,
    /// The Debian packages that have it.
    packages: &'static [&'static str],
}

impl Tool {
    /// The tool's row.
    pub(super) fn row(self) -> Row {
        match self {
            Tool::Git => {
                row("git", &["git", "--version"], "lists the files of the tree", "", &["git"])
            }
            Tool::Openssl => row(
                "openssl",
                &["openssl", "version"],
                "makes certificates for the TLS tests",
                "",
                &["openssl"],
            ),
            Tool::Rustfmt => row(
                "rustfmt",
                &["cargo", "fmt", "--version"],
                "checks the format",
                "rustup component add rustfmt",
                &[],
            ),
            Tool::Clippy => row(
                "clippy",
                &["cargo", "clippy", "--version"],
                "checks lints",
                "rustup component add clippy",
                &[],
            ),
            Tool::Python => row(
                "Python 3.9 or newer with venv",
                &["python3", "-c", PYTHON_PROBE],
                "runs the pika tests",
                "",
                &["python3", "python3-venv"],
            ),
            Tool::Java => row(
                "a Java development kit, 11 or newer",
                &["javac", "--release", "11", "-version"],
                "runs the tests of the RabbitMQ Java client",
                "",
                &["default-jdk-headless"],
            ),
            Tool::Maven => {
                row("Maven", &["mvn", "--version"], "fetches the Java client", "", &["maven"])
            }
            Tool::Node => {
                row("Node.js", &["node", "--version"], "runs the amqplib tests", "", &["nodejs"])
            }
            Tool::Npm => row("npm", &["npm", "--version"], "fetches amqplib", "", &["npm"]),
            Tool::Valgrind => row(
                "valgrind",
                &["valgrind", "--version"],
                "counts instructions",
                "",
                &["valgrind"],
            ),
            Tool::Redis => row(
                "Redis 6.2 or newer",
                &["redis-server", "--version"],
                "tests the benchmark's client for it",
                "",
                &["redis-server"],
            ),
            Tool::Go => row(
                "Go 1.21 or newer",
                &["go", "version"],
                "runs the amqp091-go tests",
                "see https://go.dev/doc/install, or take a package of Debian backports",
                &[],
            ),
        }
    }
}

fn row(
    name: &'static str,
    probe: &'static [&'static str],
    why: &'static str,
    install: &'static str,
    packages: &'static [&'static str],
) -> Row {
    Row { name, probe, why, install, packages }
}

/// Fails with every tool of these that the machine lacks. As root, with apt, it installs their Debian
/// packages first.
pub(super) fn check(root: &Path, tools: BTreeSet<Tool>) -> Result<(), String> {
    let mut missing: Vec<Row> =
        tools.into_iter().map(Tool::row).filter(|row| !works(root, row.probe)).collect();
    let packages: Vec<&str> = missing.iter().flat_map(|row| row.packages).copied().collect();
    if !packages.is_empty() && may_install(root) {
        println!("installing Debian packages: {}", packages.join(" "));
        install(&packages)?;
        missing.retain(|row| !works(root, row.probe));
    }
    if missing.is_empty() { Ok(()) } else { Err(complaint(&missing)) }
}

fn complaint(missing: &[Row]) -> String {
    let mut text = "missing on this machine:\n".to_string();
    for row in missing {
        let install = match row.packages {
            [] => row.install.to_string(),
            packages => format!("apt-get install {}", packages.join(" ")),
        };
        text += &format!("  {}: {}; to install it: {install}\n", row.name, row.why);
    }
    text + "steps that need none of them run with `cargo xtask test --only STEP` (see --list)"
}

fn works(root: &Path, probe: &[&str]) -> bool {
    process::output(probe[0], &probe[1..], root).is_ok()
}

fn may_install(root: &Path) -> bool {
    let is_root = process::output("id", &["-u"], root).is_ok_and(|id| id.trim() == "0");
    is_root && works(root, &["apt-get", "--version"])
}

fn install(packages: &[&str]) -> Result<(), String> {
    for arguments in [&["update", "-qq"][..], &[&["install", "-y", "-qq"], packages].concat()] {
        let mut command = Command::new("apt-get");
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null());
        command.status().map_err(|error| format!("cannot start 'apt-get': {error}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_tools_are_named_with_their_installation() {
        let text = complaint(&[Tool::Maven.row(), Tool::Go.row()]);
        assert!(
            text.contains("Maven: fetches the Java client; to install it: apt-get install maven")
        );
        assert!(text.contains(
            "Go 1.21 or newer: runs the amqp091-go tests; to install it: see https://go"
        ));
    }

    #[test]
    fn every_tool_has_one_way_of_installation() {
        use Tool::{Clippy, Git, Go, Java, Maven, Node, Npm, Openssl, Python, Redis, Rustfmt};
        for tool in [Git, Openssl, Rustfmt, Clippy, Python, Java, Maven, Node, Npm, Go, Redis] {
            let row = tool.row();
            assert!(row.packages.is_empty() != row.install.is_empty(), "{}", row.name);
        }
    }
}
