//! The parts of a protocol: `frame` and `codec` are its wire format and do not know the engine, `mapping`
//! translates between the two for the `handler`, and engine and node do not know the wire format.

use super::{Tree, Violation, paths, source};
use std::collections::BTreeSet;

const FOLDER: &str = "crates/protocol/src/";
/// Files or folders that each protocol has; `mapping` only if it has a `handler`, for which it translates.
const PARTS: &[&str] = &["codec", "frame", "mapping"];
const HANDLER: &str = "handler";
/// Those of them that do not know the engine, and that engine and node do not know.
const WIRE_FORMAT: &[&str] = &["codec", "frame"];
/// Crates that do not know wire formats.
const NEUTRAL: &[&str] = &["crates/engine/src/", "crates/node/src/"];

/// Compares each protocol with these rules.
pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = lacking(tree);
    for (path, text) in tree.rust() {
        if is_wire_format(path) {
            let lines = text.lines().enumerate().filter(|(_, it)| it.contains("angarium_engine"));
            let text = "a wire format does not know the engine: `mapping` does";
            violations.extend(lines.map(|(index, _)| Violation::new(path, index + 1, text)));
        }
        if NEUTRAL.iter().any(|folder| path.starts_with(folder)) && !source::is_test(path) {
            let lines = uses_of_wire_formats(names(text));
            let text = "engine and node do not know wire formats";
            violations.extend(lines.into_iter().map(|line| Violation::new(path, line, text)));
        }
    }
    violations
}

/// Parts that a protocol lacks. A folder is a protocol's if it has one of them.
fn lacking(tree: &Tree) -> Vec<Violation> {
    let mut protocols: BTreeSet<&str> = BTreeSet::new();
    let mut present: BTreeSet<(&str, &str)> = BTreeSet::new();
    for (path, _) in tree.rust() {
        let inner = path.strip_prefix(FOLDER).and_then(|inner| inner.split_once('/'));
        let Some((protocol, rest)) = inner else { continue };
        let part = rest.split('/').next().unwrap_or(rest).trim_end_matches(".rs");
        if PARTS.contains(&part) {
            protocols.insert(protocol);
        }
        present.insert((protocol, part));
    }
    let mut violations = Vec::new();
    for protocol in protocols {
        let has_handler = present.contains(&(protocol, HANDLER));
        let expected = PARTS.iter().filter(|part| has_handler || **part != "mapping");
        for part in expected.filter(|part| !present.contains(&(protocol, **part))) {
            let text = format!("has no `{part}`, which each protocol has");
            violations.push(Violation::new(&format!("{FOLDER}{protocol}"), 0, text));
        }
    }
    violations
}

fn is_wire_format(path: &str) -> bool {
    let Some(inner) = path.strip_prefix(FOLDER) else { return false };
    inner.split('/').any(|part| WIRE_FORMAT.contains(&part.trim_end_matches(".rs")))
}

fn names(text: &str) -> paths::Names {
    paths::read(&source::split(&source::without_tests(text)).code)
}

/// Lines that name a protocol's `codec` or `frame`.
fn uses_of_wire_formats(names: paths::Names) -> Vec<usize> {
    let imports = names.imports.into_iter().map(|import| import.target);
    let is_use = |path: &[String]| {
        path.first().is_some_and(|first| first == "angarium_protocol")
            && path.iter().any(|part| WIRE_FORMAT.contains(&part.as_str()))
    };
    let named = names.paths.into_iter().chain(imports);
    named.filter(|named| is_use(&named.path)).map(|named| named.line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_one(path: &str, text: &str, lines: &[usize]) {
        let mut tree = Tree::default();
        for part in PARTS {
            tree.texts.insert(format!("{FOLDER}amqp/{part}.rs"), String::new());
        }
        tree.texts.insert(path.to_string(), text.to_string());
        let found: Vec<usize> = check(&tree).into_iter().map(|it| it.line).collect();
        assert_eq!(found, lines, "{text:?}");
    }

    #[test]
    fn a_wire_format_that_names_the_engine_is_found() {
        let text = "//! x\nuse angarium_engine::Value;";
        check_one("crates/protocol/src/amqp/codec.rs", text, &[2]);
        check_one("crates/protocol/src/amqp/codec/x.rs", text, &[2]);
        check_one("crates/protocol/src/amqp/frame.rs", text, &[2]);
        check_one("crates/protocol/src/amqp/mapping.rs", text, &[]);
    }

    #[test]
    fn a_wire_format_in_engine_or_node_is_found() {
        let text = "//! x\nuse angarium_protocol::{\n    amqp::{Settings, codec::Method},\n};\n\
                    fn f() { angarium_protocol::amqp::frame::read() }";
        check_one("crates/node/src/x.rs", text, &[5, 3]);
        check_one("crates/node/src/tests/x.rs", text, &[]);
        check_one("crates/server/src/x.rs", text, &[]);
        check_one(
            "crates/node/src/x.rs",
            "use angarium_protocol::amqp::Settings;\nuse x::frame;",
            &[],
        );
    }

    #[test]
    fn a_protocol_that_lacks_a_part_is_found() {
        let mut tree = Tree::default();
        for path in ["nats/codec/mod.rs", "nats/frame.rs", "tests/x.rs", "x.rs"] {
            tree.texts.insert(format!("{FOLDER}{path}"), String::new());
        }
        assert!(check(&tree).is_empty());
        tree.texts.insert(format!("{FOLDER}nats/handler.rs"), String::new());
        let found: Vec<String> = check(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["crates/protocol/src/nats: has no `mapping`, which each protocol has"]);
    }
}
