//! Rules of the source tree that the compiler does not check, over the files that git tracks. Each rule
//! is a pure function over names and texts, with its own file and tests.

mod allow;
mod comment_style;
mod edges;
mod map;
mod modules;
mod parameters;
mod protocol_names;
mod retired_names;
mod shape;
mod source;
mod words;

use crate::process;
use allow::Finding;
use shape::Excess;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// Where known offenders are listed, so that their number only shrinks.
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

/// What the command line asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Options {
    /// Write the lists of known offenders anew, lower where less is found.
    write_allow: bool,
    /// Print every place that counts for this rule.
    show: Option<String>,
}

/// Checks every rule, prints what breaks one, and fails if anything does.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<(), String> {
    let options = parse(arguments)?;
    let mut tree = Tree::read(root)?;
    if let Some(rule) = &options.show {
        return show(&tree, rule);
    }
    if options.write_allow {
        let lowered = lowered(&tree);
        std::fs::write(root.join(ALLOW_PATH), &lowered)
            .map_err(|error| format!("{ALLOW_PATH}: {error}"))?;
        tree.texts.insert(ALLOW_PATH.to_string(), lowered);
    }
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

fn parse(arguments: &[String]) -> Result<Options, String> {
    let mut options = Options::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--write-allow" => options.write_allow = true,
            "--show" => options.show = Some(rest.next().ok_or("--show needs a rule")?.clone()),
            other => return Err(format!("unknown option '{other}' of `cargo xtask tidy`")),
        }
    }
    Ok(options)
}

fn show(tree: &Tree, rule: &str) -> Result<(), String> {
    let findings: Vec<Finding> = find(tree).into_iter().filter(|it| it.rule == rule).collect();
    for finding in &findings {
        println!("{}", Violation::new(&finding.path, finding.line, finding.text.as_str()));
    }
    println!("{rule}: {}", findings.len());
    Ok(())
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
    violations.extend(allow::settle(ALLOW_PATH, &allowed, &excesses(tree)));
    violations.extend(shape::check_openings(tree));
    violations.sort();
    Ok(violations)
}

/// Every place that breaks a rule of which known offenders are listed.
fn find(tree: &Tree) -> Vec<Finding> {
    let mut findings = comment_style::find(tree);
    findings.extend(map::find_loose(tree));
    findings.extend(parameters::find(tree));
    findings.extend(protocol_names::find(tree));
    findings.extend(retired_names::find(tree));
    findings
}

/// What may be in the list of known offenders.
fn excesses(tree: &Tree) -> Vec<Excess> {
    let mut excesses = shape::measure(tree);
    excesses.extend(allow::count(&find(tree)));
    excesses
}

fn lowered(tree: &Tree) -> String {
    let allow = tree.texts.get(ALLOW_PATH).map_or("", String::as_str);
    let (entries, _) = allow::parse(ALLOW_PATH, allow);
    allow::lower(allow, &entries, &excesses(tree))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        let parse = |words: &[&str]| {
            parse(&words.iter().map(|word| (*word).to_string()).collect::<Vec<_>>())
        };
        let all = Options { write_allow: true, show: Some("retired-names".to_string()) };
        assert_eq!(parse(&["--write-allow", "--show", "retired-names"]), Ok(all));
        assert_eq!(parse(&[]), Ok(Options::default()));
        assert!(parse(&["--show"]).is_err() && parse(&["--quick"]).is_err());
    }
}
