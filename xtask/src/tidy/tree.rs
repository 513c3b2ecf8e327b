//! The input and output of rules: the tracked files, and violations.

use crate::process;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Violation {
    /// The file, relative to the root of the repository.
    pub(super) path: String,
    /// The line, counted from 1; 0 where the whole file is meant.
    pub(super) line: usize,
    /// What is wrong, and how to correct it.
    pub(super) text: String,
}

impl Violation {
    pub(super) fn new(path: &str, line: usize, text: impl Into<String>) -> Violation {
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
pub(super) struct Tree {
    /// Files of text.
    pub(super) texts: BTreeMap<String, String>,
    /// Other files, with their size in bytes.
    pub(super) blobs: BTreeMap<String, usize>,
}

impl Tree {
    /// Reads every existing file that git tracks under `root`.
    pub(super) fn read(root: &Path) -> Result<Tree, String> {
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
    pub(super) fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        let texts = self.texts.iter().map(|(path, text)| (path.as_str(), text.as_str()));
        texts.filter(|(path, _)| path.ends_with(".rs"))
    }
}
