//! Folders: the root of the repository, and where Cargo builds to.

use crate::process;
use std::path::{Path, PathBuf};

/// The root of the repository: one above this crate.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask lies one below the root").to_path_buf()
}

/// The release build of the program.
pub(crate) fn program(root: &Path) -> Result<PathBuf, String> {
    Ok(target_folder(root)?.join("release/angarium"))
}

/// Where Cargo builds to, which depends on the environment.
pub(crate) fn target_folder(root: &Path) -> Result<PathBuf, String> {
    let metadata = ["metadata", "--no-deps", "--offline", "--format-version", "1"];
    let text = process::output("cargo", &metadata, root)?;
    let value: serde_json::Value = serde_json::from_str(&text)
        .map_err(|error| format!("cargo metadata printed no JSON: {error}"))?;
    let folder = value["target_directory"].as_str();
    folder.map(PathBuf::from).ok_or_else(|| "cargo metadata names no target folder".to_string())
}
