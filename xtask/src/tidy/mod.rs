//! Checks rules of the source tree that the compiler does not, on the files that git tracks. Each rule is a
//! pure function over names and texts, with its own file and tests.

mod allow;
mod comment_style;
mod cycles;
mod dependencies;
mod edges;
mod map;
mod modules;
mod parameters;
mod paths;
mod protocol_folders;
mod protocol_names;
mod retired_names;
mod shape;
mod source;
mod tree;
mod words;

use crate::process;
use allow::{Excess, Finding, List};
use std::path::Path;
use tree::{Tree, Violation};

/// Where known offenders are listed, so that their number only shrinks.
const ALLOW: List = List { path: "xtask/tidy-allow.txt", rule: None };

/// Rules of which every place can be shown.
const COUNTED: &[&str] = &[
    comment_style::RULE,
    map::LOOSE_RULE,
    parameters::RULE,
    protocol_names::RULE,
    retired_names::RULE,
];

/// What the command line asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Options {
    /// Lower the lists of known offenders where less is found.
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
        for (path, text) in
            [(ALLOW.path, lowered(&tree)), (cycles::LIST.path, cycles::lowered(&tree))]
        {
            std::fs::write(root.join(path), &text).map_err(|error| format!("{path}: {error}"))?;
            tree.texts.insert(path.to_string(), text);
        }
    }
    let metadata = cargo("metadata --no-deps --format-version 1", root)?;
    let mut violations = check(&tree, &metadata)?;
    violations.extend(check_dependencies(root, &tree)?);
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

/// Checks third-party crates, by `cargo deny` too where it is installed.
fn check_dependencies(root: &Path, tree: &Tree) -> Result<Vec<Violation>, String> {
    let rules = tree.texts.get(dependencies::RULES_PATH).map_or("", String::as_str);
    let violations = dependencies::check(rules, &cargo(dependencies::TREE, root)?)?;
    if cargo("deny --version", root).is_ok() {
        cargo(dependencies::CARGO_DENY, root)?;
    } else {
        println!("tidy: cargo deny is not installed; its rules are checked without it");
    }
    Ok(violations)
}

fn cargo(arguments: &str, root: &Path) -> Result<String, String> {
    process::output("cargo", &arguments.split(' ').collect::<Vec<_>>(), root)
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
    if rule == cycles::RULE {
        cycles::show(tree);
        return Ok(());
    }
    if !COUNTED.contains(&rule) {
        let rules = COUNTED.join(", ");
        return Err(format!("no list for '{rule}'; there are {rules}, {}", cycles::RULE));
    }
    let findings: Vec<Finding> = find(tree).into_iter().filter(|it| it.rule == rule).collect();
    for finding in &findings {
        println!("{}", Violation::new(&finding.path, finding.line, finding.text.as_str()));
    }
    println!("{rule}: {}", findings.len());
    Ok(())
}

/// Every rule over the whole tree, in the order of paths.
fn check(tree: &Tree, metadata: &str) -> Result<Vec<Violation>, String> {
    let mut violations = edges::check(&edges::parse(metadata)?);
    violations.extend(cycles::check(tree));
    violations.extend(map::check(tree));
    violations.extend(modules::check(tree));
    violations.extend(protocol_folders::check(tree));
    violations.extend(words::check(tree));
    let (allowed, malformed) = ALLOW.parse(ALLOW.text(tree));
    violations.extend(malformed);
    violations.extend(ALLOW.settle(&allowed, &excesses(tree)));
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

/// Everything that the list of known offenders may cover.
fn excesses(tree: &Tree) -> Vec<Excess> {
    let mut excesses = shape::measure(tree);
    excesses.extend(allow::count(&find(tree)));
    excesses
}

fn lowered(tree: &Tree) -> String {
    ALLOW.lower(ALLOW.text(tree), &excesses(tree))
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
