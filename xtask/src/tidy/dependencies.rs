//! Third-party crates: their licences and sources, and those with several versions. Compares the output of
//! `cargo tree` with the lists of deny.toml; `cargo deny` itself, which takes minutes to build, is run only
//! where it is installed.

use super::Violation;
use serde::Deserialize;
use spdx::{Expression, LicenseReq, Licensee, ParseMode};
use std::collections::{BTreeMap, BTreeSet};

/// The rules, in the format of `cargo deny`.
pub(super) const RULES_PATH: &str = "deny.toml";

/// Arguments for `cargo tree`, which prints every package as name, version and source, then its licence.
pub(super) const TREE: &str =
    "tree --workspace --locked --edges normal,build,dev --prefix none --format {p}|{l}";

/// Arguments for the same checks by `cargo deny`, without advisories, which need the network.
pub(super) const CARGO_DENY: &str = "deny --locked check licenses bans sources";

/// The parts of deny.toml that are used here.
#[derive(Debug, Deserialize)]
struct Rules {
    licenses: Licenses,
    bans: Bans,
}

#[derive(Debug, Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Bans {
    skip: Vec<Skip>,
}

/// A crate of which a further version is allowed.
#[derive(Debug, Deserialize)]
struct Skip {
    name: String,
    version: String,
}

/// One line of `cargo tree`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Package {
    name: String,
    version: String,
    /// A folder, or an address other than that of crates.io; empty for crates.io.
    source: String,
    licence: String,
}

/// Compares the packages with the rules.
pub(super) fn check(rules: &str, tree: &str) -> Result<Vec<Violation>, String> {
    let rules: Rules = toml::from_str(rules).map_err(|error| format!("{RULES_PATH}: {error}"))?;
    let allowed: Result<Vec<Licensee>, _> =
        rules.licenses.allow.iter().map(|licence| Licensee::parse(licence)).collect();
    let allowed = allowed.map_err(|error| format!("{RULES_PATH}: {error}"))?;
    let packages = parse(tree);
    let mut texts: Vec<String> = Vec::new();
    for package in &packages {
        texts.extend(check_licence(package, &allowed));
        // A package of this workspace shows its folder.
        if !package.source.is_empty() && !package.source.starts_with('/') {
            texts.push(format!("'{}' comes from {}, not crates.io", package.name, package.source));
        }
    }
    texts.extend(check_versions(&packages, &rules.bans.skip));
    Ok(texts.into_iter().map(|text| Violation::new(RULES_PATH, 0, text)).collect())
}

fn check_licence(package: &Package, allowed: &[Licensee]) -> Option<String> {
    let Package { name, licence, .. } = package;
    let is_allowed = |wanted: &LicenseReq| allowed.iter().any(|it| it.satisfies(wanted));
    match Expression::parse_mode(licence, ParseMode::LAX) {
        Ok(expression) if expression.evaluate(is_allowed) => None,
        Ok(_) => Some(format!("licence '{licence}' of '{name}' is not in the list")),
        Err(_) => Some(format!("'{name}' names no licence that can be read: '{licence}'")),
    }
}

/// Crates with several versions of which all but one must be listed.
fn check_versions(packages: &BTreeSet<Package>, skips: &[Skip]) -> Vec<String> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(&package.name).or_default().insert(&package.version);
    }
    let mut texts = Vec::new();
    for (name, versions) in &versions {
        let is_listed = |version: &&&str| {
            skips.iter().any(|skip| skip.name == *name && is_of(version, &skip.version))
        };
        let listed = versions.iter().filter(is_listed).count();
        if versions.len() - listed > 1 {
            let versions = versions.iter().copied().collect::<Vec<_>>().join(", ");
            texts.push(format!("'{name}' is in the tree more than once: {versions}"));
        }
    }
    for skip in skips {
        let versions = versions.get(skip.name.as_str());
        let is_needed = versions.is_some_and(|versions| {
            versions.len() > 1 && versions.iter().any(|version| is_of(version, &skip.version))
        });
        if !is_needed {
            texts.push(format!("'{} {}': not needed, remove it", skip.name, skip.version));
        }
    }
    texts
}

/// Whether a version begins with these parts.
fn is_of(version: &str, parts: &str) -> bool {
    version.strip_prefix(parts).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '+']))
}

/// Reads lines such as `syn v2.0.1 (proc-macro)|MIT OR Apache-2.0 (*)`.
fn parse(tree: &str) -> BTreeSet<Package> {
    let mut packages = BTreeSet::new();
    for line in tree.lines() {
        let Some((package, licence)) = line.split_once('|') else { continue };
        let package = package.replace("(proc-macro)", "");
        let mut parts = package.split_whitespace();
        let (Some(name), Some(version)) = (parts.next(), parts.next()) else { continue };
        let source = parts.collect::<Vec<_>>().join(" ");
        packages.insert(Package {
            name: name.to_string(),
            version: version.trim_start_matches('v').to_string(),
            source: source.trim_matches(['(', ')']).to_string(),
            licence: licence.trim_end_matches(" (*)").to_string(),
        });
    }
    packages
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = "[licenses]\nallow = ['MIT', 'Unicode-3.0', 'Apache-2.0 WITH LLVM-exception']\n\
        [bans]\nskip = [{ name = 'syn', version = '2', reason = 'why' }]\n";
    /// The two versions of which one is listed.
    const SYN: &str = "syn v2.0.1|MIT\nsyn v3.0.0|MIT\n";

    #[track_caller]
    fn check_one(tree: &str, expected: &[&str]) {
        let found = check(RULES, &format!("{SYN}{tree}")).unwrap();
        let texts: Vec<&str> = found.iter().map(|violation| violation.text.as_str()).collect();
        assert_eq!(texts, expected, "{tree}");
    }

    #[test]
    fn licences_in_the_list_pass() {
        check_one("", &[]);
        check_one("a v1.0.0|MIT/Apache-2.0\na v1.0.0|MIT/Apache-2.0 (*)\n", &[]);
        check_one("a v1.0.0 (proc-macro)|(Apache-2.0 OR MIT) AND Unicode-3.0", &[]);
        check_one("a v1.0.0 (/src/a)|Apache-2.0 WITH LLVM-exception", &[]);
    }

    #[test]
    fn other_licences_are_found() {
        check_one("a v1.0.0|GPL-3.0-only", &["licence 'GPL-3.0-only' of 'a' is not in the list"]);
        check_one("a v1.0.0|MIT AND ISC", &["licence 'MIT AND ISC' of 'a' is not in the list"]);
        check_one("a v1.0.0|", &["'a' names no licence that can be read: ''"]);
        check_one("a v1.0.0|ours", &["'a' names no licence that can be read: 'ours'"]);
    }

    #[test]
    fn other_sources_are_found() {
        check_one(
            "a v1.0.0 (https://example.org/a#1234)|MIT",
            &["'a' comes from https://example.org/a#1234, not crates.io"],
        );
        check_one(
            "a v1.0.0 (registry `other`)|MIT",
            &["'a' comes from registry `other`, not crates.io"],
        );
    }

    #[test]
    fn versions_that_are_not_listed_are_found() {
        check_one(
            "a v1.0.0|MIT\na v1.1.0|MIT",
            &["'a' is in the tree more than once: 1.0.0, 1.1.0"],
        );
        check_one(
            "syn v20.0.0|MIT",
            &["'syn' is in the tree more than once: 2.0.1, 20.0.0, 3.0.0"],
        );
        let found = check(RULES, "syn v3.0.0|MIT").unwrap();
        assert_eq!(found[0].text, "'syn 2': not needed, remove it");
    }
}
