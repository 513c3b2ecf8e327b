//! Which crate may depend on which, and which may use an asynchronous runtime.

use super::Violation;
use serde::Deserialize;

/// Every crate of the workspace, with the crates of the workspace that it may depend on.
const ALLOWED: &[(&str, &[&str])] = &[
    ("engine", &[]),
    ("journal", &[]),
    ("protocol", &["engine"]),
    ("node", &["engine", "protocol", "journal"]),
    ("instructions", &["node", "protocol", "engine", "journal"]),
    ("server", &["node", "protocol", "engine", "journal", "bench"]),
    ("sim", &["node", "protocol", "journal", "engine"]),
    ("bench", &["protocol"]),
    ("xtask", &[]),
];

/// The crates that may use tokio, for the control plane or for client drivers.
const MAY_USE_TOKIO: &[&str] = &["server", "bench"];

/// The answer of `cargo metadata --no-deps`.
#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// A crate and its dependencies of every kind (normal, development, build).
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Dependency {
    name: String,
}

/// Reads the answer of `cargo metadata --no-deps`.
pub(super) fn parse(metadata: &str) -> Result<Vec<Package>, String> {
    let parsed: Result<Metadata, _> = serde_json::from_str(metadata);
    Ok(parsed.map_err(|error| format!("cargo metadata: {error}"))?.packages)
}

/// Compares the dependencies with the table.
pub(super) fn check(packages: &[Package]) -> Vec<Violation> {
    packages.iter().flat_map(check_package).collect()
}

fn check_package(package: &Package) -> Vec<Violation> {
    let name = short(&package.name);
    let path = if name == "xtask" { "xtask".to_string() } else { format!("crates/{name}") };
    let path = format!("{path}/Cargo.toml");
    let Some((_, allowed)) = ALLOWED.iter().find(|(of, _)| *of == name) else {
        let text =
            format!("crate '{name}' has no row in the table of allowed edges (tidy/edges.rs)");
        return vec![Violation::new(&path, 0, text)];
    };
    let mut violations = Vec::new();
    for Dependency { name: dependency } in &package.dependencies {
        if dependency.starts_with("angarium-") && !allowed.contains(&short(dependency)) {
            let text = format!("'{name}' must not depend on '{}'", short(dependency));
            violations.push(Violation::new(&path, 0, text));
        }
        let runtime = dependency == "tokio" || dependency.starts_with("tokio-");
        if runtime && !MAY_USE_TOKIO.contains(&name) {
            let text =
                format!("'{name}' must not depend on '{dependency}': no runtime below server");
            violations.push(Violation::new(&path, 0, text));
        }
    }
    violations
}

fn short(name: &str) -> &str {
    name.strip_prefix("angarium-").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dependency(name: &str) -> Dependency {
        Dependency { name: name.to_string() }
    }

    #[track_caller]
    fn check_one(name: &str, dependencies: &[&str], expected: &[&str]) {
        let package = Package {
            name: name.to_string(),
            dependencies: dependencies.iter().copied().map(dependency).collect(),
        };
        let found: Vec<String> = check(&[package]).into_iter().map(|v| v.text).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn allowed_edges_pass() {
        check_one("angarium-protocol", &["angarium-engine", "hashbrown"], &[]);
        check_one("angarium-server", &["angarium-node", "tokio", "tokio-rustls"], &[]);
        check_one("xtask", &["serde_json"], &[]);
    }

    #[test]
    fn an_edge_against_the_order_is_found() {
        check_one(
            "angarium-engine",
            &["angarium-protocol"],
            &["'engine' must not depend on 'protocol'"],
        );
        check_one("xtask", &["angarium-sim"], &["'xtask' must not depend on 'sim'"]);
    }

    #[test]
    fn a_runtime_below_server_is_found() {
        check_one(
            "angarium-node",
            &["tokio"],
            &["'node' must not depend on 'tokio': no runtime below server"],
        );
    }

    #[test]
    fn a_crate_without_a_row_is_found() {
        check_one(
            "angarium-common",
            &[],
            &["crate 'common' has no row in the table of allowed edges (tidy/edges.rs)"],
        );
    }

    #[test]
    fn metadata_is_read() {
        let metadata = r#"{"packages":[{"name":"angarium-node","dependencies":
            [{"name":"angarium-engine","kind":null},{"name":"proptest","kind":"dev"}]}]}"#;
        let expected = Package {
            name: "angarium-node".to_string(),
            dependencies: ["angarium-engine", "proptest"].map(dependency).to_vec(),
        };
        assert_eq!(parse(metadata), Ok(vec![expected]));
        assert!(parse("{}").is_err());
        assert!(parse("not json").is_err());
    }
}
