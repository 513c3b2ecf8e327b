//! Rules of the source tree that the compiler does not check. Reads what git tracks, changes
//! nothing. Each rule is a pure function over names and texts, with its own file and tests.

mod allow;
mod edges;
mod map;
mod modules;
mod shape;
mod words;

use crate::process;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// Where known offenders against the length rules are listed, so that their number only shrinks.
const ALLOW_PATH: &str = "xtask/tidy-allow.txt";

/// One breach of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Violation {
    /// The file, relative to the root of the repository.
    pub(crate) path: String,
    /// The line, counted from 1; 0 where the whole file is meant.
    pub(crate) line: usize,
    /// What is wrong and what would be right.
    pub(crate) text: String,
}

impl Violation {
    fn new(path: &str, line: usize, text: impl Into<String>) -> Violation {
        Violation { path: path.to_string(), line, text: text.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.text),
            line => write!(f, "{}:{line}: {}", self.path, self.text),
        }
    }
}

/// The tracked files: text by path, and the size of those that are not text.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// Files of text.
    pub(crate) texts: BTreeMap<String, String>,
    /// Files that are no text, with their size in bytes.
    pub(crate) blobs: BTreeMap<String, usize>,
}

impl Tree {
    /// Reads every file that git tracks under `root`. A file that is tracked and gone is left out.
    fn read(root: &Path) -> Result<Tree, String> {
        let listing = process::output("git", &["ls-files", "-z"], root)?;
        let mut tree = Tree::default();
        for path in listing.split('\0').filter(|path| !path.is_empty()) {
            let Ok(bytes) = std::fs::read(root.join(path)) else { continue };
            match String::from_utf8(bytes) {
                Ok(text) if !text.contains('\0') => {
                    tree.texts.insert(path.to_string(), text);
                }
                Ok(text) => {
                    tree.blobs.insert(path.to_string(), text.len());
                }
                Err(error) => {
                    tree.blobs.insert(path.to_string(), error.as_bytes().len());
                }
            }
        }
        Ok(tree)
    }

    /// The Rust sources.
    fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        let texts = self.texts.iter().map(|(path, text)| (path.as_str(), text.as_str()));
        texts.filter(|(path, _)| path.ends_with(".rs"))
    }
}

/// Checks every rule, prints what breaks one, and fails if anything does.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let tree = Tree::read(root)?;
    let metadata =
        process::output("cargo", &["metadata", "--no-deps", "--format-version", "1"], root)?;
    let violations = check(&tree, &metadata)?;
    for violation in &violations {
        println!("{violation}");
    }
    match violations.len() {
        0 => {
            println!("tidy: {} files, no violations", tree.texts.len() + tree.blobs.len());
            Ok(())
        }
        count => Err(format!("tidy: {count} violations")),
    }
}

/// Every rule over the whole tree, in the order of paths.
fn check(tree: &Tree, metadata: &str) -> Result<Vec<Violation>, String> {
    let allow = tree.texts.get(ALLOW_PATH).map_or("", String::as_str);
    let mut violations = edges::check(&edges::parse(metadata)?);
    violations.extend(map::check(tree));
    violations.extend(modules::check(tree));
    violations.extend(words::check(tree));
    let (allowed, malformed) = allow::parse(ALLOW_PATH, allow);
    violations.extend(malformed);
    violations.extend(allow::settle(ALLOW_PATH, &allowed, shape::measure(tree)));
    violations.extend(shape::check_openings(tree));
    violations.sort();
    Ok(violations)
}
