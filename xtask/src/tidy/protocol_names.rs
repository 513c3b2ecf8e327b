//! Names of protocols in engine, journal and node, which are the same for all protocols.

use super::allow::Finding;
use super::{Tree, source};

/// The rule's name in the list of known offenders.
pub(super) const RULE: &str = "protocol-names";

/// The folders in which no protocol is named.
const NEUTRAL: &[&str] = &["crates/engine/src/", "crates/journal/src/", "crates/node/src/"];

/// The files in which a node assembles the protocols, and names them.
const ASSEMBLY: &[&str] = &[
    "crates/node/src/session.rs",
    "crates/node/src/options.rs",
    "crates/node/src/connection/handler.rs",
];

/// Protocols and their brokers, as words: `NatsOptions` and `nats_options` hold the word, `signatures`
/// does not. Digits behind a word belong to it.
const WORDS: &[&str] = &["amqp", "nats", "mqtt", "stomp", "jms", "rabbitmq", "jetstream"];

/// Names that belong to one protocol or broker: headers, arguments, reserved prefixes.
const MARKS: &[&str] = &["x-death", "\"x-", "amq.", "_inbox."];

/// Every line of neutral code that names a protocol.
pub(super) fn find(tree: &Tree) -> Vec<Finding> {
    let is_neutral = |path: &str| {
        NEUTRAL.iter().any(|folder| path.starts_with(folder))
            && !ASSEMBLY.contains(&path)
            && !source::is_test(path)
    };
    let mut found = Vec::new();
    for (path, text) in tree.rust().filter(|(path, _)| is_neutral(path)) {
        for (index, line) in source::without_tests(text).lines().enumerate() {
            if let Some(name) = name_in(line) {
                found.push(Finding::in_file(RULE, path, index + 1, format!("names '{name}'")));
            }
        }
    }
    found
}

/// The first name of a protocol in a line.
fn name_in(line: &str) -> Option<&'static str> {
    let word = words(line).find_map(|word| WORDS.iter().find(|name| **name == word));
    let lower = line.to_ascii_lowercase();
    let is_start = |at: usize| !lower[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    let mark = || MARKS.iter().find(|mark| lower.match_indices(**mark).any(|(at, _)| is_start(at)));
    word.or_else(mark).copied()
}

/// The words of a line in lower case: parts between underscores, at capitals, and whole runs.
fn words(line: &str) -> impl Iterator<Item = String> {
    let runs = line.split(|c: char| !c.is_ascii_alphanumeric()).filter(|run| !run.is_empty());
    runs.flat_map(|run| std::iter::once(run).chain(humps(run)))
        .map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit()).to_ascii_lowercase())
}

/// The parts of a name such as `NatsSession`: each begins with a capital.
fn humps(run: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let bytes = run.as_bytes();
    for at in 1..bytes.len() {
        let follows_lower = bytes[at].is_ascii_uppercase() && !bytes[at - 1].is_ascii_uppercase();
        let ends_capitals = bytes[at - 1].is_ascii_uppercase()
            && bytes[at].is_ascii_uppercase()
            && bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase);
        if follows_lower || ends_capitals {
            parts.push(&run[start..at]);
            start = at;
        }
    }
    parts.push(&run[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_are_found_as_words() {
        for line in [
            "// as AMQP 0-9-1 has it",
            "struct NatsOptions;",
            "use angarium_protocol::amqp091;",
            "let nats_port = 1;",
            "// RabbitMQ's",
            "enum Kind { MQTT5Session }",
            "const HEADER: &str = \"X-Death\";",
            "(\"x-max-length\", 1)",
            "\"amq.topic\"",
            "\"_INBOX.\"",
        ] {
            assert!(name_in(line).is_some(), "{line}");
        }
        for line in
            ["signatures", "donates", "let jmstore = 1;", "max-length", "stamq.x", "my_inbox.x"]
        {
            assert_eq!(name_in(line), None, "{line}");
        }
    }

    #[test]
    fn only_neutral_code_is_looked_at() {
        let mut tree = Tree::default();
        for path in [
            "crates/engine/src/a.rs",
            "crates/engine/src/tests.rs",
            "crates/node/src/options.rs",
            "crates/protocol/src/a.rs",
        ] {
            let text =
                "//! Nothing.\nfn nats() {}\n#[cfg(test)]\nmod tests {\n    fn amqp() {}\n}\n";
            tree.texts.insert(path.to_string(), text.to_string());
        }
        let found: Vec<_> = find(&tree).into_iter().map(|it| (it.path, it.line)).collect();
        assert_eq!(found, [("crates/engine/src/a.rs".to_string(), 2)]);
    }
}
