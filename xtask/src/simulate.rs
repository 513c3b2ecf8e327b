//! `cargo xtask sim`: runs the simulator's release build.

use crate::process;
use std::path::Path;
use std::process::Command;

/// Runs it seed after seed until one fails, or as the arguments say.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<(), String> {
    let forever = ["--forever".to_string()];
    let arguments = if arguments.is_empty() { &forever[..] } else { arguments };
    let mut cargo = Command::new("cargo");
    cargo.args(["run", "--quiet", "--release", "-p", "angarium-sim", "--"]).args(arguments);
    process::run(cargo.current_dir(root))
}
