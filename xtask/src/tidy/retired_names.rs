//! Retired names of modules: the vocabulary of ARCHITECTURE.md has one word for each thing.

use super::Tree;
use super::allow::Finding;
use std::collections::BTreeSet;

/// The rule's name in the list of known offenders.
pub(super) const RULE: &str = "retired-names";

/// A name of a file or folder that must not come back.
struct Retired {
    /// The crate; `*` for all.
    of: &'static str,
    /// One part of a path, or several with `/` between them; a file without its `.rs`.
    name: &'static str,
    /// The name to use.
    instead: &'static str,
}

/// Every retired name. One that still exists is in the list of known offenders until it is renamed.
fn names() -> impl Iterator<Item = Retired> {
    let lines = include_str!("../../tidy-retired.txt").lines().filter(|it| !it.starts_with('#'));
    lines.map(|line| {
        let mut words = line.split_whitespace();
        let mut word = || words.next().expect("a line has three words");
        Retired { of: word(), name: word(), instead: word() }
    })
}

/// Every file and folder of a crate's sources and examples that has a retired name.
pub(super) fn find(tree: &Tree) -> Vec<Finding> {
    let mut found = BTreeSet::new();
    for (path, _) in tree.rust() {
        let Some((name, inner)) = path.strip_prefix("crates/").and_then(|it| it.split_once('/'))
        else {
            continue;
        };
        if !inner.starts_with("src/") && !inner.starts_with("examples/") {
            continue;
        }
        for row in names().filter(|row| row.of == "*" || row.of == name) {
            if let Some(place) = place(inner, row.name) {
                found.insert((format!("crates/{name}/{place}"), row.name, row.instead));
            }
        }
    }
    let finding = |(path, name, instead): (String, &str, &str)| {
        let text = format!("the name '{name}' was retired: say '{instead}'");
        Finding::in_file(RULE, &path, 0, text)
    };
    found.into_iter().map(finding).collect()
}

/// The file or folder in the path that bears the name.
fn place<'a>(path: &'a str, name: &str) -> Option<&'a str> {
    let ends = |end: usize| {
        let rest = &path[end..];
        rest.starts_with('/') || rest == ".rs"
    };
    let found = path.match_indices(name).find(|(start, _)| {
        let begins = *start == 0 || path[..*start].ends_with('/');
        begins && ends(start + name.len())
    });
    found.map(|(start, _)| {
        let end = start + name.len();
        if &path[end..] == ".rs" { path } else { &path[..end] }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(paths: &[&str], expected: &[&str]) {
        let mut tree = Tree::default();
        for path in paths {
            tree.texts.insert((*path).to_string(), String::new());
        }
        let found: Vec<String> = find(&tree).into_iter().map(|it| it.path).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn files_and_folders_are_found() {
        check(&["crates/engine/src/away.rs"], &["crates/engine/src/away.rs"]);
        check(
            &["crates/node/src/egress/mod.rs", "crates/node/src/egress/piece.rs"],
            &["crates/node/src/egress"],
        );
        check(&["crates/bench/src/load/wave.rs"], &["crates/bench/src/load/wave.rs"]);
        check(&["crates/engine/src/subscription/mod.rs"], &["crates/engine/src/subscription"]);
    }

    #[test]
    fn other_crates_and_other_names_pass() {
        check(&["crates/bench/src/direct.rs", "crates/engine/src/redirect.rs"], &[]);
        check(&["crates/server/src/away.rs", "crates/bench/src/wave.rs"], &[]);
        check(&["crates/engine/src/pubsub/subscription.rs", "docs/away.rs"], &[]);
    }

    #[test]
    fn each_row_has_its_own_name() {
        let rows: BTreeSet<_> = names().map(|row| (row.of, row.name)).collect();
        assert_eq!(rows.len(), names().count());
        assert!(names().all(|row| row.name != row.instead));
    }
}
