//! ARCHITECTURE.md names every folder under crates/ and nothing that does not exist; of engine and node it
//! also names every file directly in `src`.

use super::allow::Finding;
use super::{Tree, Violation};
use std::collections::BTreeSet;

const MAP: &str = "ARCHITECTURE.md";
/// The longest that the map may be.
const LINES_MAX: usize = 250;
/// Folders with tests or their data, which the map need not name.
const UNNAMED: &[&str] = &["tests", "golden", "fuzz", "benches", "examples"];

/// The name of the rule about loose files in the list of known offenders.
pub(super) const LOOSE_RULE: &str = "unnamed-files";
/// Crates whose files directly in `src` the map names.
const FILES_NAMED: &[&str] = &["engine", "node"];
/// Files that need no name.
const UNNAMED_FILES: &[&str] = &["lib.rs", "tests.rs"];

/// Compares the map with the tree, both ways.
pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let Some(text) = tree.texts.get(MAP) else {
        return vec![Violation::new(MAP, 0, "missing: the map of the workspace")];
    };
    let mut violations = Vec::new();
    let lines = text.lines().count();
    if lines > LINES_MAX {
        violations.push(Violation::new(MAP, 0, format!("{lines} lines, at most {LINES_MAX}")));
    }
    let paths: BTreeSet<&str> =
        tree.texts.keys().chain(tree.blobs.keys()).map(String::as_str).collect();
    let known = folders_and_files(&paths);
    let named = named(text);
    for (name, line) in &named {
        if !known.contains(name) {
            violations.push(Violation::new(MAP, *line, format!("'{name}' does not exist")));
        }
    }
    violations.extend(missing_files(text, &paths));
    let names: BTreeSet<&str> = named.iter().map(|(name, _)| name.as_str()).collect();
    for folder in module_folders(&paths) {
        if !names.contains(folder.as_str()) {
            violations.push(Violation::new(MAP, 0, format!("does not name the folder '{folder}'")));
        }
    }
    violations
}

/// Every file directly in the `src` of these crates that the map does not name, neither by its path nor as
/// `name.rs` in the crate's section.
pub(super) fn find_loose(tree: &Tree) -> Vec<Finding> {
    let text = tree.texts.get(MAP).map_or("", String::as_str);
    let mut found = Vec::new();
    for (path, _) in tree.rust() {
        let Some((name, file)) = path.strip_prefix("crates/").and_then(|it| it.split_once("/src/"))
        else {
            continue;
        };
        if !FILES_NAMED.contains(&name) || file.contains('/') || UNNAMED_FILES.contains(&file) {
            continue;
        }
        let section = section(text, &format!("crates/{name}"));
        if !text.contains(path) && !section.contains(&format!("`{file}`")) {
            let text = format!("{MAP} does not name it: move it into a folder, or name it");
            found.push(Finding::in_file(LOOSE_RULE, path, 0, text));
        }
    }
    found
}

/// The text under the heading that names a folder.
fn section<'a>(text: &'a str, folder: &str) -> &'a str {
    let heading = format!("### `{folder}`");
    let Some(start) = text.find(&heading) else { return "" };
    let rest = &text[start + heading.len()..];
    &rest[..rest.find("\n#").unwrap_or(rest.len())]
}

/// Names such as `file.rs` that no file has: in the crate whose section they are in, else anywhere.
fn missing_files(text: &str, paths: &BTreeSet<&str>) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut folder = "";
    for (index, line) in text.lines().enumerate() {
        if line.starts_with('#') {
            folder = line.split('`').nth(1).unwrap_or_default();
        }
        let is_file = |name: &&str| {
            name.ends_with(".rs") && !name.contains([' ', '*']) && !name.starts_with("crates/")
        };
        for name in line.split('`').skip(1).step_by(2).filter(is_file) {
            let is_it = |path: &&str| path.strip_suffix(name).is_some_and(|it| it.ends_with('/'));
            let mut named = paths.iter().filter(|path| path.starts_with(folder));
            if !named.any(|path| *path == name || is_it(path)) {
                violations.push(Violation::new(MAP, index + 1, format!("'{name}' does not exist")));
            }
        }
    }
    violations
}

/// Every path under crates/ that the text names, with its line.
fn named(text: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for (start, _) in line.match_indices("crates/") {
            if line[..start].ends_with(|c: char| c.is_alphanumeric() || c == '/' || c == '-') {
                continue;
            }
            let rest = &line[start..];
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "/_-.".contains(c)));
            let name = rest[..end.unwrap_or(rest.len())].trim_end_matches(['/', '.']);
            if name != "crates" {
                found.push((name.to_string(), index + 1));
            }
        }
    }
    found
}

/// Every tracked path and every folder above one.
fn folders_and_files(paths: &BTreeSet<&str>) -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    for path in paths {
        let mut path = *path;
        known.insert(path.to_string());
        while let Some((folder, _)) = path.rsplit_once('/') {
            known.insert(folder.to_string());
            path = folder;
        }
    }
    known
}

/// The folders that the map has to name: each crate, and each folder of modules below its src/.
fn module_folders(paths: &BTreeSet<&str>) -> BTreeSet<String> {
    let mut folders = BTreeSet::new();
    for path in paths.iter().filter(|path| path.ends_with(".rs")) {
        let parts: Vec<&str> = path.split('/').collect();
        let ["crates", name, "src", inner @ .., _] = parts.as_slice() else { continue };
        folders.insert(format!("crates/{name}"));
        if !inner.is_empty() && !inner.iter().any(|part| UNNAMED.contains(part)) {
            folders.insert(format!("crates/{name}/src/{}", inner.join("/")));
        }
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_one(map: &str, paths: &[&str], expected: &[&str]) {
        let mut tree = Tree::default();
        tree.texts.insert(MAP.to_string(), map.to_string());
        for path in paths {
            tree.texts.insert((*path).to_string(), String::new());
        }
        let found: Vec<String> = check(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_true_map_passes() {
        check_one(
            "`crates/engine`: rules; crates/engine/src/queue/ holds queues, see crates/engine/src/lib.rs.",
            &[
                "crates/engine/src/lib.rs",
                "crates/engine/src/queue/mod.rs",
                "crates/engine/src/tests/a.rs",
            ],
            &[],
        );
    }

    #[test]
    fn a_folder_that_is_gone_is_found() {
        check_one(
            "first\n`crates/engine` and `crates/router`",
            &["crates/engine/src/lib.rs"],
            &["ARCHITECTURE.md:2: 'crates/router' does not exist"],
        );
    }

    #[test]
    fn a_file_that_is_gone_is_found() {
        check_one(
            "`lib.rs` and `engine/src/lib.rs`\n### `crates/engine`\n`lib.rs`, `step.rs`\n\
             ## Rules\n`x/lib.rs`",
            &["crates/engine/src/lib.rs"],
            &[
                "ARCHITECTURE.md:3: 'step.rs' does not exist",
                "ARCHITECTURE.md:5: 'x/lib.rs' does not exist",
            ],
        );
    }

    #[test]
    fn a_folder_that_is_not_named_is_found() {
        check_one(
            "`crates/engine`",
            &[
                "crates/engine/src/lib.rs",
                "crates/engine/src/route/topic/mod.rs",
                "crates/sim/src/lib.rs",
            ],
            &[
                "ARCHITECTURE.md: does not name the folder 'crates/engine/src/route/topic'",
                "ARCHITECTURE.md: does not name the folder 'crates/sim'",
            ],
        );
    }

    #[test]
    fn loose_files_are_named_by_path_or_in_their_section() {
        let map = "see crates/node/src/a.rs\n### `crates/engine`: rules\n`b.rs` and c.rs\n\
                   ### `crates/node`\n`d.rs`\n";
        let mut tree = Tree::default();
        tree.texts.insert(MAP.to_string(), map.to_string());
        for path in ["engine/src/lib.rs", "engine/src/b.rs", "engine/src/c.rs", "engine/src/d.rs"]
            .into_iter()
            .chain(["node/src/a.rs", "node/src/d.rs", "node/src/x/b.rs", "sim/src/e.rs"])
        {
            tree.texts.insert(format!("crates/{path}"), String::new());
        }
        let found: Vec<String> = find_loose(&tree).into_iter().map(|it| it.path).collect();
        assert_eq!(found, ["crates/engine/src/c.rs", "crates/engine/src/d.rs"]);
    }

    #[test]
    fn a_map_that_is_too_long_is_found() {
        check_one(&"line\n".repeat(250), &[], &[]);
        check_one(&"line\n".repeat(251), &[], &["ARCHITECTURE.md: 251 lines, at most 250"]);
    }

    #[test]
    fn a_missing_map_is_found() {
        assert_eq!(check(&Tree::default()).len(), 1);
    }
}
