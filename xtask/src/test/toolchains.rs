//! Required tools: checked before anything runs, so that one error names everything that is missing.

use crate::process;
use serde::Deserialize;
use std::path::Path;
use std::process::{Command, Stdio};

/// A program that some step needs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tool {
    /// Its name.
    pub(super) name: String,
    /// A command that succeeds only where the tool works.
    probe: Vec<String>,
    /// Its purpose.
    why: String,
    /// How to install it where no Debian package has it.
    #[serde(default)]
    install: String,
    /// The Debian packages that have it.
    #[serde(default)]
    packages: Vec<String>,
}

/// Fails with every tool of these that the machine lacks. As root, with apt, it installs their Debian
/// packages first.
pub(super) fn check(root: &Path, mut tools: Vec<&Tool>) -> Result<(), String> {
    tools.retain(|tool| !works(root, &tool.probe));
    let packages: Vec<&str> =
        tools.iter().flat_map(|tool| &tool.packages).map(String::as_str).collect();
    if !packages.is_empty() && may_install(root) {
        println!("installing Debian packages: {}", packages.join(" "));
        install(&packages)?;
        tools.retain(|tool| !works(root, &tool.probe));
    }
    if tools.is_empty() { Ok(()) } else { Err(complaint(&tools)) }
}

fn complaint(missing: &[&Tool]) -> String {
    let mut text = "missing on this machine:\n".to_string();
    for tool in missing {
        let install = match tool.packages.as_slice() {
            [] => tool.install.clone(),
            packages => format!("apt-get install {}", packages.join(" ")),
        };
        text += &format!("  {}: {}; to install it: {install}\n", tool.name, tool.why);
    }
    text + "steps that need none of them run with `cargo xtask test --only STEP` (see --list)"
}

fn works(root: &Path, probe: &[impl AsRef<str>]) -> bool {
    let words: Vec<&str> = probe.iter().map(AsRef::as_ref).collect();
    process::output(words[0], &words[1..], root).is_ok()
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
    use super::super::steps::plan;
    use super::*;

    #[test]
    fn missing_tools_are_named_with_their_installation() {
        let text = complaint(&[&plan().tool["maven"], &plan().tool["go"]]);
        assert!(
            text.contains("Maven: fetches the Java clients; to install it: apt-get install maven")
        );
        assert!(text.contains(
            "Go 1.21 or newer: runs the tests of amqp091-go, nats.go, go-amqp and Paho's; to install it: "
        ));
    }

    #[test]
    fn the_readme_names_every_tool() {
        let readme = include_str!("../../../README.md").replace('\n', " ");
        for tool in plan().tool.values() {
            assert!(readme.contains(&tool.name), "{}", tool.name);
        }
    }

    #[test]
    fn every_tool_has_one_way_of_installation() {
        for tool in plan().tool.values() {
            assert!(tool.packages.is_empty() != tool.install.is_empty(), "{}", tool.name);
        }
    }
}
