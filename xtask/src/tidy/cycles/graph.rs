//! Which module of a crate uses which, and the groups of modules that use each other.

use crate::tidy::paths::{self, Import, Named, Names};
use crate::tidy::{Tree, source};
use std::collections::{BTreeMap, BTreeSet};

/// Steps after which resolving a path through re-exports is given up.
const STEPS_MAX: usize = 16;

/// One module uses another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Edge {
    /// Index of the module that uses.
    pub(super) from: usize,
    /// Index of the module that is used.
    pub(super) to: usize,
    /// The first line that does.
    pub(super) line: usize,
}

/// The modules of a crate, one a file, and how they use each other.
#[derive(Debug, Default)]
pub(super) struct Graph {
    /// Their files.
    pub(super) files: Vec<String>,
    /// One for each pair of modules.
    pub(super) edges: Vec<Edge>,
}

/// What is known of a module.
#[derive(Debug, Default)]
struct Module {
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    names: Names,
}

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Module(usize),
    /// An item that this module defines.
    Item(usize),
}

impl Target {
    fn module(self) -> usize {
        match self {
            Target::Module(module) | Target::Item(module) => module,
        }
    }
}

/// Reads the library of the crate in `folder`, or the program where there is no library, without what is
/// for tests.
pub(super) fn read(tree: &Tree, folder: &str) -> Graph {
    let src = format!("{folder}/src/");
    let has_library = tree.texts.contains_key(&format!("{src}lib.rs"));
    let mut files: Vec<(String, &str, &str)> = Vec::new();
    for (path, text) in tree.rust() {
        let Some(inner) = path.strip_prefix(&src) else { continue };
        let is_program = has_library && inner == "main.rs" || inner.starts_with("bin/");
        if !source::is_test(path) && !is_program {
            files.push((module_path(inner), path, text));
        }
    }
    files.sort();
    let at: BTreeMap<&str, usize> =
        files.iter().enumerate().map(|(at, file)| (file.0.as_str(), at)).collect();
    let mut modules: Vec<Module> = Vec::new();
    for (name, _, text) in &files {
        let parent = name.rsplit_once('/').map_or("", |(parent, _)| parent);
        let parent = if name.is_empty() { None } else { at.get(parent).copied() };
        let code = source::split(&source::without_tests(text)).code;
        let names = paths::read(&code);
        modules.push(Module { parent, children: BTreeMap::new(), names });
    }
    for (index, (name, ..)) in files.iter().enumerate() {
        if let Some(parent) = modules[index].parent {
            let last = name.rsplit('/').next().unwrap_or(name);
            modules[parent].children.insert(last.to_string(), index);
        }
    }
    let files = files.iter().map(|(_, path, _)| (*path).to_string()).collect();
    Graph { files, edges: edges(&modules) }
}

/// Where a file of `src` is among the modules: the root is "", `a/mod.rs` is "a".
fn module_path(inner: &str) -> String {
    let path = inner.trim_end_matches(".rs");
    if path == "lib" || path == "main" {
        return String::new();
    }
    path.strip_suffix("/mod").unwrap_or(path).to_string()
}

fn edges(modules: &[Module]) -> Vec<Edge> {
    let mut found: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for (from, module) in modules.iter().enumerate() {
        let mut note = |to: usize, line: usize| {
            if to != from {
                let first = found.entry((from, to)).or_insert(line);
                *first = line.min(*first);
            }
        };
        for Named { path, line } in &module.names.paths {
            if let Some(target) = resolve(modules, from, path, 0) {
                note(target.module(), *line);
            }
        }
        for import in &module.names.imports {
            let Some(target) = resolve(modules, from, &import.target.path, 0) else { continue };
            // What uses an imported module names it in a path.
            let is_item = matches!(target, Target::Item(_)) || import.name == "*";
            let shows_part = import.is_public && is_within(modules, target.module(), from);
            if is_item && !shows_part {
                note(target.module(), import.target.line);
            }
        }
    }
    found.into_iter().map(|((from, to), line)| Edge { from, to, line }).collect()
}

fn is_within(modules: &[Module], mut module: usize, above: usize) -> bool {
    while let Some(parent) = modules[module].parent {
        if parent == above {
            return true;
        }
        module = parent;
    }
    false
}

/// What a path in the module `from` leads to; `None` for what is not of this crate.
fn resolve(modules: &[Module], from: usize, path: &[String], steps: usize) -> Option<Target> {
    let (first, mut rest) = path.split_first()?;
    let start = match first.as_str() {
        "crate" => modules.iter().position(|module| module.parent.is_none())?,
        "self" => from,
        "super" => {
            let mut module = modules[from].parent?;
            while let Some((first, after)) = rest.split_first()
                && first == "super"
            {
                module = modules[module].parent?;
                rest = after;
            }
            module
        }
        name => {
            let known = modules[from].children.contains_key(name)
                || modules[from].names.imports.iter().any(|it| it.name == *name);
            return if known { descend(modules, from, path, steps) } else { None };
        }
    };
    descend(modules, start, rest, steps)
}

/// What a path leads to from the inside of a module.
fn descend(modules: &[Module], mut at: usize, path: &[String], steps: usize) -> Option<Target> {
    for (index, name) in path.iter().enumerate() {
        if let Some(child) = modules[at].children.get(name) {
            at = *child;
            continue;
        }
        return imported(modules, at, &path[index..], steps);
    }
    Some(Target::Module(at))
}

/// What a path leads to whose first name is no module in `at`: an import, or an item.
fn imported(modules: &[Module], at: usize, path: &[String], steps: usize) -> Option<Target> {
    if steps > STEPS_MAX {
        return None;
    }
    let names = &modules[at].names;
    let name = &path[0];
    let follow = |import: &Import| match resolve(modules, at, &import.target.path, steps + 1)? {
        Target::Module(module) => descend(modules, module, &path[1..], steps + 1),
        item @ Target::Item(_) => Some(item),
    };
    if let Some(import) = names.imports.iter().find(|it| it.name == *name) {
        // An import of an item of the same name from elsewhere leads out of the crate.
        return follow(import);
    }
    if !names.items.contains(name) {
        for import in names.imports.iter().filter(|it| it.name == "*") {
            let Some(Target::Module(module)) = resolve(modules, at, &import.target.path, steps + 1)
            else {
                continue;
            };
            if module != at && has(&modules[module], name) {
                return descend(modules, module, path, steps + 1);
            }
        }
    }
    Some(Target::Item(at))
}

fn has(module: &Module, name: &String) -> bool {
    module.names.items.contains(name)
        || module.children.contains_key(name)
        || module.names.imports.iter().any(|it| it.name == *name)
}

impl Graph {
    /// The groups of two or more modules each of which uses every other, if through others; the modules
    /// in the order of their files.
    pub(super) fn cycles(&self) -> Vec<Vec<usize>> {
        let forward: Vec<BTreeSet<usize>> =
            (0..self.files.len()).map(|from| self.reachable(from)).collect();
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let mut seen: BTreeSet<usize> = BTreeSet::new();
        for module in 0..self.files.len() {
            if seen.contains(&module) {
                continue;
            }
            let back = |other: &&usize| forward[**other].contains(&module);
            let group: Vec<usize> = forward[module].iter().filter(back).copied().collect();
            seen.extend(&group);
            if group.len() > 1 {
                groups.push(group);
            }
        }
        groups
    }

    /// What `from` uses, itself or through others.
    fn reachable(&self, from: usize) -> BTreeSet<usize> {
        let mut reached = BTreeSet::new();
        let mut open = vec![from];
        while let Some(at) = open.pop() {
            for edge in self.edges.iter().filter(|edge| edge.from == at) {
                if reached.insert(edge.to) {
                    open.push(edge.to);
                }
            }
        }
        reached
    }

    /// The shortest way from a module back to itself.
    pub(super) fn shortest_cycle(&self, from: usize) -> Vec<Edge> {
        let mut came: BTreeMap<usize, Edge> = BTreeMap::new();
        let mut open = std::collections::VecDeque::from([from]);
        while let Some(at) = open.pop_front() {
            for edge in self.edges.iter().filter(|edge| edge.from == at) {
                if edge.to == from {
                    let mut way = vec![*edge];
                    while way[way.len() - 1].from != from {
                        way.push(came[&way[way.len() - 1].from]);
                    }
                    way.reverse();
                    return way;
                }
                came.entry(edge.to).or_insert_with(|| {
                    open.push_back(edge.to);
                    *edge
                });
            }
        }
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let mut tree = Tree::default();
        for (path, text) in files {
            tree.texts.insert(format!("crates/a/src/{path}"), (*text).to_string());
        }
        let graph = read(&tree, "crates/a");
        let name = |at: usize| graph.files[at].trim_start_matches("crates/a/src/");
        let edges = graph.edges.iter();
        let edges = edges.map(|it| format!("{}:{} {}", name(it.from), it.line, name(it.to)));
        assert_eq!(edges.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn imports_and_paths_lead_to_the_defining_module() {
        check(
            &[
                ("lib.rs", "mod b;\nmod c;\npub use b::B;\npub use c::*;"),
                ("b.rs", "pub struct B;"),
                ("c/mod.rs", "mod d;\npub use d::D;\npub fn c() {}"),
                ("c/d.rs", "use crate::B;\npub struct D(super::super::B);\nfn f() { crate::c() }"),
                ("e.rs", "use crate::c::{self, D};\nuse std::fmt::B;\nfn f() { c::c() }"),
                ("f.rs", "fn f() { let x: crate::c::D; fmt::Result }"),
            ],
            &[
                "c/d.rs:1 b.rs",
                "c/d.rs:3 c/mod.rs",
                "e.rs:3 c/mod.rs",
                "e.rs:1 c/d.rs",
                "f.rs:1 c/d.rs",
            ],
        );
    }

    #[test]
    fn a_parent_that_only_shows_its_parts_does_not_use_them() {
        let part = ("b/c.rs", "use super::P;\npub struct C(P);\n#[cfg(test)]\nuse crate::d::D;");
        check(
            &[("lib.rs", ""), ("b/mod.rs", "mod c;\npub(crate) use c::C;\npub struct P;"), part],
            &["b/c.rs:1 b/mod.rs"],
        );
        check(
            &[("lib.rs", ""), ("b/mod.rs", "mod c;\nuse c::C;\npub struct P(C);"), part],
            &["b/mod.rs:2 b/c.rs", "b/c.rs:1 b/mod.rs"],
        );
        check(
            &[("lib.rs", ""), ("b/mod.rs", "mod c;\nfn f() { c::g() }"), ("b/c.rs", "fn g() {}")],
            &["b/mod.rs:2 b/c.rs"],
        );
    }

    #[test]
    fn modules_that_use_each_other_are_grouped() {
        let files = ["a", "b", "c", "d", "e"].map(String::from).to_vec();
        let mut graph = Graph { files, edges: Vec::new() };
        for (from, to) in [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 3), (0, 2)] {
            graph.edges.push(Edge { from, to, line: 1 });
        }
        assert_eq!(graph.cycles(), [vec![0, 1, 2], vec![3, 4]]);
        let way: Vec<usize> = graph.shortest_cycle(0).iter().map(|edge| edge.to).collect();
        assert_eq!(way, [2, 0]);
        assert!(graph.shortest_cycle(3).len() == 2);
    }
}
