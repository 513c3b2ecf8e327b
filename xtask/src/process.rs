//! Runs other programs, and returns their output or shows it line by line.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs a program and returns its standard output. The error contains its standard error.
pub(crate) fn output(
    program: &str,
    arguments: &[impl AsRef<OsStr>],
    folder: &Path,
) -> Result<String, String> {
    let result = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .output()
        .map_err(|error| format!("cannot start '{program}': {error}"))?;
    if !result.status.success() {
        let stderr = String::from_utf8_lossy(&result.stderr);
        return Err(format!("'{program}' failed ({}): {}", result.status, stderr.trim()));
    }
    String::from_utf8(result.stdout)
        .map_err(|_| format!("'{program}' printed bytes that are no text"))
}

/// Runs a command and shows what it prints.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    stream(command, |_| true)
}

/// Runs a command, and shows the lines of its standard output for which `watch` returns true.
pub(crate) fn stream(
    command: &mut Command,
    mut watch: impl FnMut(&str) -> bool,
) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start '{program}': {error}"))?;
    let stdout = child.stdout.take().expect("standard output was asked for as a pipe");
    for line in BufReader::new(stdout).split(b'\n') {
        let line = line.map_err(|error| format!("'{program}': {error}"))?;
        let line = String::from_utf8_lossy(&line);
        if watch(&line) {
            println!("{line}");
        }
    }
    let status = child.wait().map_err(|error| format!("'{program}': {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("'{program}' failed ({status})")) }
}
