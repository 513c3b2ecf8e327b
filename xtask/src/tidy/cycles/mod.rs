//! Cycles of modules that use each other, which cannot be understood one by one. Known cycles, intended or
//! not undone yet, are in a list that can only shrink.

mod graph;

use super::allow::{Entry, Excess, List};
use super::{Tree, Violation};
use graph::Graph;
use std::collections::BTreeSet;

/// The rule's name, for `--show`.
pub(super) const RULE: &str = "cycles";
/// The list of known cycles: an entry stands for the cycle that its file is in.
pub(super) const LIST: List = List { path: "xtask/tidy-cycles.txt", rule: Some(RULE) };

/// A cycle: the files of the modules in it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cycle {
    files: Vec<String>,
    /// The shortest way round from its first module.
    way: String,
}

/// Compares the cycles with the list.
pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let (entries, mut violations) = LIST.parse(LIST.text(tree));
    violations.extend(LIST.settle(&entries, &excesses(&entries, &cycles(tree))));
    violations
}

/// The list with lower counts where cycles have fewer modules. Entries follow moved modules as long as the
/// number of modules in cycles does not grow in the crate.
pub(super) fn lowered(tree: &Tree) -> String {
    lower(LIST.text(tree), &cycles(tree))
}

fn lower(text: &str, cycles: &[Cycle]) -> String {
    LIST.lower(text, &excesses(&LIST.parse(text).0, cycles))
}

/// Each cycle under the file that the list has, or under its first.
fn excesses(entries: &[Entry], cycles: &[Cycle]) -> Vec<Excess> {
    let excess = |cycle: &Cycle| {
        let entry = entries.iter().find(|entry| cycle.files.contains(&entry.path));
        let path = entry.map_or(&cycle.files[0], |entry| &entry.path);
        let detail = format!(" modules that use each other: {}", cycle.way);
        Excess { detail, ..Excess::new(path, 0, RULE, cycle.files.len(), 0) }
    };
    cycles.iter().map(excess).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn cycle(files: &[&str]) -> Cycle {
        let files = files.iter().map(|file| format!("crates/a/src/{file}.rs")).collect();
        Cycle { files, way: "way".to_string() }
    }

    #[track_caller]
    fn check(list: &str, cycles: &[Cycle], expected: &[&str]) {
        let (entries, mut violations) = LIST.parse(list);
        violations.extend(LIST.settle(&entries, &excesses(&entries, cycles)));
        let texts: Vec<String> = violations.iter().map(ToString::to_string).collect();
        assert_eq!(texts, expected);
    }

    #[test]
    fn a_new_cycle_is_refused_and_a_listed_one_passes() {
        let found = [cycle(&["b", "c"])];
        check("crates/a/src/c.rs 2  # parent and part", &found, &[]);
        let said = ": cycles: 2, at most 0 modules that use each other: way";
        check("", &found, &[&format!("crates/a/src/b.rs{said}")]);
        let said = said.replace('0', "1");
        check("crates/a/src/c.rs 1  # why", &found, &[&format!("crates/a/src/c.rs{said}")]);
    }

    #[test]
    fn the_list_only_shrinks() {
        let found = [cycle(&["b", "c"])];
        let list = "crates/a/src/b.rs 3  # why\ncrates/a/src/c.rs 2  # why\n";
        check(
            list,
            &found,
            &[
                "xtask/tidy-cycles.txt:1: crates/a/src/b.rs cycles: lower it to 2",
                "xtask/tidy-cycles.txt:2: crates/a/src/c.rs cycles: not needed, remove it",
            ],
        );
        assert_eq!(lower(list, &found), "crates/a/src/b.rs 2  # why\n");
        check("crates/a/src/b.rs 2", &[], &["xtask/tidy-cycles.txt:1: not 'path count  # reason'"]);
    }

    #[test]
    fn a_cycle_that_falls_apart_is_written_as_its_parts() {
        let list = "# about\ncrates/a/src/b.rs 5  # why\n";
        let found = [cycle(&["b", "c"]), cycle(&["d", "e"])];
        let lowered = "# about\ncrates/a/src/b.rs 2  # why\n\
                       crates/a/src/d.rs 2  # not undone yet\n";
        assert_eq!(lower(list, &found), lowered);
        let more = [cycle(&["b", "c"]), cycle(&["d", "e", "f", "g"])];
        assert_eq!(lower(list, &more), "# about\ncrates/a/src/b.rs 2  # why\n");
    }
}
