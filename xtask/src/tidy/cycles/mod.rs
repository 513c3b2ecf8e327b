//! Cycles of modules that use each other, which cannot be understood one by one. Known cycles, intended or
//! not undone yet, are in a list that can only shrink.

mod graph;

use super::{Tree, Violation};
use graph::Graph;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The rule's name, for `--show`.
pub(super) const RULE: &str = "cycles";
/// The list of known cycles.
pub(super) const LIST_PATH: &str = "xtask/tidy-cycles.txt";

/// One line of the list: `path count  # reason`. It stands for the cycle that the file is in.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    line: usize,
    path: String,
    count: usize,
    reason: String,
}

/// A cycle: the files of the modules in it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cycle {
    files: Vec<String>,
    /// The shortest way round from its first module.
    way: String,
}

/// Compares the cycles with the list.
pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let text = tree.texts.get(LIST_PATH).map_or("", String::as_str);
    let (entries, mut violations) = parse(text);
    let cycles = cycles(tree);
    violations.extend(settle(&entries, &cycles));
    violations
}

/// The list with lower counts where cycles have fewer modules. Entries follow moved modules as long as the
/// number of modules in cycles does not grow in the crate.
pub(super) fn lowered(tree: &Tree) -> String {
    let text = tree.texts.get(LIST_PATH).map_or("", String::as_str);
    lower(text, &parse(text).0, &cycles(tree))
}

/// Every use of one module by another that is part of a cycle.
pub(super) fn show(tree: &Tree) {
    for graph in crates(tree).iter().map(|folder| graph::read(tree, folder)) {
        for cycle in graph.cycles() {
            println!("{} modules:", cycle.len());
            let inside = |at: &usize| cycle.contains(at);
            for edge in graph.edges.iter().filter(|it| inside(&it.from) && inside(&it.to)) {
                println!(
                    "  {}:{} uses {}",
                    graph.files[edge.from], edge.line, graph.files[edge.to]
                );
            }
        }
    }
}

fn crates(tree: &Tree) -> BTreeSet<String> {
    let roots = tree.texts.keys().filter_map(|path| {
        let folder = path.strip_suffix("/src/lib.rs").or_else(|| path.strip_suffix("/src/main.rs"));
        folder.filter(|folder| folder.matches('/').count() < 2)
    });
    roots.map(str::to_string).collect()
}

fn cycles(tree: &Tree) -> Vec<Cycle> {
    let graphs = crates(tree).into_iter().map(|folder| graph::read(tree, &folder));
    graphs.flat_map(|graph| cycles_of(&graph)).collect()
}

fn cycles_of(graph: &Graph) -> Vec<Cycle> {
    let cycle = |group: Vec<usize>| {
        let steps = graph.shortest_cycle(group[0]);
        let steps = steps.iter().map(|edge| format!("{}:{}", graph.files[edge.from], edge.line));
        let way = steps.collect::<Vec<_>>().join(" -> ");
        let mut files: Vec<String> = group.iter().map(|at| graph.files[*at].clone()).collect();
        files.sort();
        Cycle { files, way }
    };
    graph.cycles().into_iter().map(cycle).collect()
}

fn parse(text: &str) -> (Vec<Entry>, Vec<Violation>) {
    let (mut entries, mut malformed) = (Vec::new(), Vec::new());
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let (row, reason) = line.split_once('#').unwrap_or((line, ""));
        let reason = reason.trim().to_string();
        let parts: Vec<&str> = row.split_whitespace().collect();
        match parts.as_slice() {
            [path, count] if count.parse::<usize>().is_ok() && !reason.is_empty() => {
                let count = count.parse().unwrap_or_default();
                entries.push(Entry { line: index + 1, path: (*path).to_string(), count, reason });
            }
            _ => malformed.push(Violation::new(LIST_PATH, index + 1, "not 'path count  # reason'")),
        }
    }
    (entries, malformed)
}

fn settle(entries: &[Entry], cycles: &[Cycle]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut used = vec![false; entries.len()];
    for cycle in cycles {
        let mut of_cycle =
            entries.iter().enumerate().filter(|(_, it)| cycle.files.contains(&it.path));
        let found = cycle.files.len();
        let Some((index, entry)) = of_cycle.next() else {
            let text = format!("{found} modules use each other in a circle: {}", cycle.way);
            violations.push(Violation::new(&cycle.files[0], 0, text));
            continue;
        };
        used[index] = true;
        if found > entry.count {
            let text = format!(
                "{found} modules use each other in a circle, at most {} (`cargo xtask tidy --show cycles`)",
                entry.count
            );
            violations.push(Violation::new(&entry.path, 0, text));
        } else if found < entry.count {
            let text = format!("{}: lower it to {found}", entry.path);
            violations.push(Violation::new(LIST_PATH, entry.line, text));
        }
        for (index, entry) in of_cycle {
            used[index] = true;
            let text = format!("{}: is in one circle with another entry", entry.path);
            violations.push(Violation::new(LIST_PATH, entry.line, text));
        }
    }
    for (entry, _) in entries.iter().zip(&used).filter(|(_, used)| !**used) {
        let text = format!("{}: is in no circle, remove it", entry.path);
        violations.push(Violation::new(LIST_PATH, entry.line, text));
    }
    violations
}

fn lower(text: &str, entries: &[Entry], cycles: &[Cycle]) -> String {
    let mut sums: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    for entry in entries {
        sums.entry(super::allow::group(&entry.path)).or_default()[0] += entry.count;
    }
    for cycle in cycles {
        sums.entry(super::allow::group(&cycle.files[0])).or_default()[1] += cycle.files.len();
    }
    let mut lowered = String::new();
    for comment in text.lines().filter(|line| line.starts_with('#')) {
        writeln!(lowered, "{comment}").expect("a String takes any text");
    }
    for cycle in cycles {
        let entry = entries.iter().find(|entry| cycle.files.contains(&entry.path));
        let [listed, found] = sums[super::allow::group(&cycle.files[0])];
        let count = match entry {
            _ if found <= listed => cycle.files.len(),
            Some(entry) => entry.count.min(cycle.files.len()),
            None => continue,
        };
        let path = entry.map_or(&cycle.files[0], |entry| &entry.path);
        let reason = entry.map_or("not undone yet", |entry| &entry.reason);
        writeln!(lowered, "{path} {count}  # {reason}").expect("a String takes any text");
    }
    lowered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycle(files: &[&str]) -> Cycle {
        let files = files.iter().map(|file| format!("crates/a/src/{file}.rs")).collect();
        Cycle { files, way: "way".to_string() }
    }

    #[track_caller]
    fn check(list: &str, cycles: &[Cycle], expected: &[&str]) {
        let (entries, mut violations) = parse(list);
        violations.extend(settle(&entries, cycles));
        let texts: Vec<String> = violations.iter().map(ToString::to_string).collect();
        assert_eq!(texts, expected);
    }

    #[test]
    fn a_new_cycle_is_refused_and_a_listed_one_passes() {
        let found = [cycle(&["b", "c"])];
        check("crates/a/src/c.rs 2  # parent and part", &found, &[]);
        check("", &found, &["crates/a/src/b.rs: 2 modules use each other in a circle: way"]);
        check(
            "crates/a/src/c.rs 1  # why",
            &found,
            &["crates/a/src/c.rs: 2 modules use each other in a circle, at most 1 \
               (`cargo xtask tidy --show cycles`)"],
        );
    }

    #[test]
    fn the_list_only_shrinks() {
        let found = [cycle(&["b", "c"])];
        let list = "crates/a/src/b.rs 3  # why\ncrates/a/src/d.rs 2  # why\n";
        check(
            list,
            &found,
            &[
                "xtask/tidy-cycles.txt:1: crates/a/src/b.rs: lower it to 2",
                "xtask/tidy-cycles.txt:2: crates/a/src/d.rs: is in no circle, remove it",
            ],
        );
        let lowered = lower(list, &parse(list).0, &found);
        assert_eq!(lowered, "crates/a/src/b.rs 2  # why\n");
        check("crates/a/src/b.rs 2", &[], &["xtask/tidy-cycles.txt:1: not 'path count  # reason'"]);
    }

    #[test]
    fn a_cycle_that_falls_apart_is_written_as_its_parts() {
        let list = "# about\ncrates/a/src/b.rs 5  # why\n";
        let found = [cycle(&["b", "c"]), cycle(&["d", "e"])];
        let lowered = "# about\ncrates/a/src/b.rs 2  # why\n\
                       crates/a/src/d.rs 2  # not undone yet\n";
        assert_eq!(lower(list, &parse(list).0, &found), lowered);
        let more = [cycle(&["b", "c"]), cycle(&["d", "e", "f", "g"])];
        assert_eq!(lower(list, &parse(list).0, &more), "# about\ncrates/a/src/b.rs 2  # why\n");
    }
}
