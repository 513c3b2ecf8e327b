//! Dead sources: Rust files that no `mod` declares, so that nothing compiles them.

use super::{Tree, Violation};
use std::collections::BTreeSet;

/// Finds Rust files that are neither a root (library, program, test, example) nor reached from one.
pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let sources: BTreeSet<&str> = tree.rust().map(|(path, _)| path).collect();
    let mut reached: BTreeSet<String> = BTreeSet::new();
    let mut open: Vec<(String, bool)> = roots(tree).into_iter().map(|path| (path, true)).collect();
    while let Some((path, is_root)) = open.pop() {
        let Some(text) = tree.texts.get(&path) else { continue };
        if !reached.insert(path.clone()) {
            continue;
        }
        for child in children(&path, text, is_root) {
            if sources.contains(child.as_str()) {
                open.push((child, false));
            }
        }
    }
    let dead = sources.into_iter().filter(|path| !reached.contains(*path));
    dead.map(|path| Violation::new(path, 0, "no `mod` leads here: nothing compiles it")).collect()
}

/// The files that cargo compiles by itself, by its naming rules and by `path` in a manifest.
fn roots(tree: &Tree) -> Vec<String> {
    let mut roots = Vec::new();
    let manifests = tree.texts.iter().filter(|(path, _)| path.ends_with("Cargo.toml"));
    for (manifest, text) in manifests {
        let folder = manifest.trim_end_matches("Cargo.toml");
        for (path, _) in tree.rust() {
            let Some(inner) = path.strip_prefix(folder) else { continue };
            let parts: Vec<&str> = inner.split('/').collect();
            let is_root = matches!(
                parts.as_slice(),
                ["build.rs"]
                    | ["src", "lib.rs" | "main.rs"]
                    | ["tests" | "benches" | "examples", _]
                    | ["tests" | "benches" | "examples", _, "main.rs"]
                    | ["src", "bin", _]
                    | ["src", "bin", _, "main.rs"]
            );
            if is_root {
                roots.push(path.to_string());
            }
        }
        roots.extend(
            text.lines().filter_map(|line| quoted(line, "path")).map(|p| format!("{folder}{p}")),
        );
    }
    roots
}

/// The value of `key = "value"` in a line.
fn quoted<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let rest = &line[line.find(key)? + key.len()..];
    rest.trim_start().strip_prefix('=')?.trim_start().strip_prefix('"')?.split('"').next()
}

/// The files that the `mod` lines (and `include!`) of a source may lead to.
fn children(path: &str, text: &str, is_root: bool) -> Vec<String> {
    let (folder, file) = path.rsplit_once('/').unwrap_or((".", path));
    let inner = if is_root || file == "mod.rs" {
        folder.to_string()
    } else {
        format!("{folder}/{}", file.trim_end_matches(".rs"))
    };
    let mut found = Vec::new();
    let mut explicit = None;
    for line in text.lines().map(str::trim) {
        if let Some(start) = line.find("include!(\"") {
            let name = line[start + 10..].split('"').next().unwrap_or_default();
            found.push(normal(&format!("{folder}/{name}")));
        }
        if line.starts_with("#[path") {
            explicit = quoted(line, "path");
        } else if let Some(name) = module_name(line) {
            match explicit.take() {
                Some(name) => found.push(normal(&format!("{folder}/{name}"))),
                None => {
                    found.push(format!("{inner}/{name}.rs"));
                    found.push(format!("{inner}/{name}/mod.rs"));
                }
            }
        }
    }
    found
}

/// The module that a line such as `pub(crate) mod name;` declares.
fn module_name(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub").map_or(line, |rest| {
        let rest = rest.trim_start();
        if rest.starts_with('(') {
            rest.split_once(')').map_or(rest, |(_, rest)| rest)
        } else {
            rest
        }
    });
    let name = line.trim_start().strip_prefix("mod ")?.split(';').next()?.trim();
    let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_') && line.contains(';');
    is_name.then_some(name)
}

/// A path without `..` and `.`.
fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_one(files: &[(&str, &str)], dead: &[&str]) {
        let mut tree = Tree::default();
        tree.texts.insert("crates/a/Cargo.toml".to_string(), String::new());
        for (path, text) in files {
            tree.texts.insert((*path).to_string(), (*text).to_string());
        }
        let found: Vec<String> = check(&tree).into_iter().map(|v| v.path).collect();
        assert_eq!(found, dead);
    }

    #[test]
    fn what_a_mod_leads_to_is_alive() {
        check_one(
            &[
                ("crates/a/src/lib.rs", "mod one;\npub(crate) mod two;\n#[cfg(test)]\nmod tests;"),
                ("crates/a/src/one.rs", "mod deep;"),
                ("crates/a/src/one/deep.rs", ""),
                ("crates/a/src/two/mod.rs", "pub mod leaf;"),
                ("crates/a/src/two/leaf.rs", ""),
                ("crates/a/src/tests.rs", ""),
                ("crates/a/tests/whole.rs", "mod wire;"),
                ("crates/a/tests/wire/mod.rs", ""),
                ("crates/a/build.rs", ""),
            ],
            &[],
        );
    }

    #[test]
    fn what_no_mod_leads_to_is_dead() {
        check_one(
            &[
                ("crates/a/src/lib.rs", "mod one; // mod two\n// mod three;"),
                ("crates/a/src/one.rs", ""),
                ("crates/a/src/three.rs", ""),
                ("crates/a/src/two.rs", "mod four;"),
                ("crates/a/src/two/four.rs", ""),
            ],
            &["crates/a/src/three.rs", "crates/a/src/two.rs", "crates/a/src/two/four.rs"],
        );
    }

    #[test]
    fn explicit_paths_are_followed() {
        check_one(
            &[
                ("crates/a/Cargo.toml", "[[bin]]\npath = \"fuzz/target.rs\""),
                (
                    "crates/a/fuzz/target.rs",
                    "#[path = \"../shared/x.rs\"]\nmod x;\ninclude!(\"t.rs\");",
                ),
                ("crates/a/fuzz/t.rs", ""),
                ("crates/a/shared/x.rs", ""),
            ],
            &[],
        );
    }
}
