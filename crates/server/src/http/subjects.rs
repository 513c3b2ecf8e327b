//! Subjects that a user may use, as requests and listings have them: four lists of patterns.
//!
//! The engine takes any pattern that a client may subscribe with. Patterns that cannot mean what they look
//! like are refused here, and not by the engine, so that a journal with such patterns can be read again.

use crate::settings::{SettingValue, Span};
use angarium_engine::{ExchangeRules, Responses, SubjectPermissions, SubjectRules};
use angarium_protocol::nats::SLOW_CONSUMER_PREFIX;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Which subjects are allowed.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RulesBody {
    allow: Vec<String>,
    deny: Vec<String>,
}

/// What a user may do with the routing keys of an exchange in a virtual host.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct KeysBody {
    publish: RulesBody,
    subscribe: RulesBody,
}

/// What a user may do with subjects in a virtual host.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SubjectsBody {
    publish: RulesBody,
    subscribe: RulesBody,
    #[serde(skip_serializing_if = "Option::is_none")]
    responses: Option<ResponsesBody>,
}

/// The right to answer what it is sent.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct ResponsesBody {
    messages: u32,
    within_ms: u64,
}

/// As with nats-server.
impl Default for ResponsesBody {
    fn default() -> Self {
        ResponsesBody { messages: 1, within_ms: 120_000 }
    }
}

impl SubjectsBody {
    /// In the engine's words; refused: a pattern that cannot mean what it looks like.
    pub(super) fn subjects(&self) -> Result<SubjectPermissions, String> {
        let mut publish = self.publish.rules(pattern)?;
        let subscribe = self.subscribe.rules(subscribed)?;
        let responses = self.responses.map(|it| Responses {
            messages: it.messages,
            within: Duration::from_millis(it.within_ms),
        });
        // Who may answer and is given no subjects publishes nothing else, as with nats-server.
        if responses.is_some() && publish == SubjectRules::default() {
            publish.deny.push(">".to_owned());
        }
        Ok(SubjectPermissions { publish, subscribe, responses })
    }
}

impl KeysBody {
    /// The same.
    pub(super) fn rules(&self) -> Result<ExchangeRules, String> {
        let (publish, subscribe) = (self.publish.rules(pattern)?, self.subscribe.rules(pattern)?);
        Ok(ExchangeRules { publish, subscribe })
    }
}

impl From<&ExchangeRules> for KeysBody {
    fn from(rules: &ExchangeRules) -> KeysBody {
        let ExchangeRules { publish, subscribe } = rules.clone();
        KeysBody { publish: publish.into(), subscribe: subscribe.into() }
    }
}

impl From<SubjectRules> for RulesBody {
    fn from(SubjectRules { allow, deny }: SubjectRules) -> RulesBody {
        RulesBody { allow, deny }
    }
}

impl RulesBody {
    fn rules(&self, read: fn(&str) -> Result<String, String>) -> Result<SubjectRules, String> {
        let patterns = |list: &[String]| {
            list.iter().map(|text| read(text)).collect::<Result<Vec<_>, String>>()
        };
        Ok(SubjectRules { allow: patterns(&self.allow)?, deny: patterns(&self.deny)? })
    }
}

impl From<SubjectPermissions> for SubjectsBody {
    fn from(subjects: SubjectPermissions) -> SubjectsBody {
        let responses = subjects.responses.map(|it| ResponsesBody {
            messages: it.messages,
            within_ms: u64::try_from(it.within.as_millis()).unwrap_or(u64::MAX),
        });
        let (publish, subscribe) = (subjects.publish.into(), subjects.subscribe.into());
        SubjectsBody { publish, subscribe, responses }
    }
}

/// A pattern without blanks around it.
fn pattern(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err(
            "a pattern is empty: leave the list away where it is to have none, and deny '>' \
                    where all is to be forbidden"
                .to_owned(),
        );
    }
    let words: Vec<&str> = text.split('.').collect();
    for (at, word) in words.iter().enumerate() {
        let why = match *word {
            "" => "it has an empty word: words are parted by single dots",
            "#" => "'#' is AMQP's wildcard: write '>' for all words that follow",
            ">" if at + 1 < words.len() => "'>' stands for all words that follow and comes last",
            "*" | ">" => continue,
            word if word.contains(char::is_whitespace) => {
                "it has a blank, as no subject has: several patterns are parted by commas"
            }
            word if word.contains(['*', '>']) => {
                "'*' and '>' stand for whole words, as in 'a.*' and 'a.>'"
            }
            _ => continue,
        };
        return Err(format!("pattern '{text}': {why}"));
    }
    Ok(text.to_owned())
}

/// A pattern over subjects of subscriptions.
fn subscribed(text: &str) -> Result<String, String> {
    let text = pattern(text)?;
    if text.starts_with(SLOW_CONSUMER_PREFIX) {
        return Err(format!(
            "pattern '{text}': '{SLOW_CONSUMER_PREFIX}' and a policy are no part of the subject \
             that is subscribed to: write what follows them, as in 'a.>'"
        ));
    }
    Ok(text)
}

/// What holds for a user, in words: a line for each of the two.
pub(super) fn described(subjects: Option<&SubjectPermissions>) -> String {
    let none = SubjectRules::default();
    let (publish, subscribe) =
        subjects.map_or((&none, &none), |subjects| (&subjects.publish, &subjects.subscribe));
    let responses = subjects.and_then(|subjects| subjects.responses).map(|responses| {
        let messages = match responses.messages {
            0 => "any number of answers".to_owned(),
            1 => "one answer".to_owned(),
            count => format!("{count} answers"),
        };
        let within = match responses.within.as_millis() {
            0 => String::new(),
            _ => format!(" within {}", Span(responses.within).show()),
        };
        format!("\n  responses: {messages} to each message{within}")
    });
    let responses = responses.unwrap_or_default();
    described_rules(publish, subscribe) + &responses
}

/// What holds for a user's routing keys of an exchange, in words.
pub(super) fn described_keys(rules: Option<&ExchangeRules>) -> String {
    let none = ExchangeRules::default();
    let ExchangeRules { publish, subscribe } = rules.unwrap_or(&none);
    described_rules(publish, subscribe)
}

fn described_rules(publish: &SubjectRules, subscribe: &SubjectRules) -> String {
    let of = |rules: &SubjectRules| {
        let allowed = if rules.allow.is_empty() { "all".into() } else { rules.allow.join(", ") };
        match rules.deny.is_empty() {
            true => allowed,
            false => format!("{allowed}, but not {}", rules.deny.join(", ")),
        }
    };
    format!("  publish: {}\n  subscribe: {}", of(publish), of(subscribe))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_cannot_mean_what_they_look_like_are_refused() {
        for (text, expected) in [
            ("a.b", Ok("a.b")),
            (" a.> ", Ok("a.>")),
            ("$SLOW_CONSUMER", Ok("$SLOW_CONSUMER")),
            (">", Ok(">")),
            ("*.a.*", Ok("*.a.*")),
            ("$QUEUE.x", Ok("$QUEUE.x")),
            ("a#.b", Ok("a#.b")),
            ("", Err("a pattern is empty")),
            (" ", Err("a pattern is empty")),
            ("a..b", Err("pattern 'a..b': it has an empty word")),
            (".a", Err("pattern '.a': it has an empty word")),
            ("a.", Err("pattern 'a.': it has an empty word")),
            ("foo*", Err("pattern 'foo*': '*' and '>' stand for whole words")),
            ("foo.b>", Err("pattern 'foo.b>': '*' and '>' stand for whole words")),
            ("a.>.b", Err("pattern 'a.>.b': '>' stands for all words that follow")),
            ("a b", Err("pattern 'a b': it has a blank")),
            ("#", Err("pattern '#': '#' is AMQP's wildcard: write '>'")),
            ("a.#", Err("pattern 'a.#': '#' is AMQP's wildcard: write '>'")),
        ] {
            for list in ["publish", "subscribe"] {
                for side in ["allow", "deny"] {
                    let body = serde_json::json!({ list: { side: [text] } });
                    let body: SubjectsBody = serde_json::from_value(body).unwrap();
                    match (body.subjects(), expected) {
                        (Ok(subjects), Ok(pattern)) => {
                            let SubjectPermissions { publish, subscribe, .. } = subjects;
                            let lists =
                                [publish.allow, publish.deny, subscribe.allow, subscribe.deny];
                            assert_eq!(lists.concat(), [pattern]);
                        }
                        (Err(why), Err(begin)) => assert!(why.starts_with(begin), "{why}"),
                        (found, _) => panic!("{text:?}: {found:?}"),
                    }
                }
            }
        }
    }

    #[test]
    fn who_may_answer_and_is_given_no_subjects_publishes_nothing_else() {
        let read = |body: serde_json::Value| {
            serde_json::from_value::<SubjectsBody>(body).unwrap().subjects().unwrap()
        };
        let alone = read(serde_json::json!({ "responses": {} }));
        assert_eq!(alone.publish.deny, [">"]);
        let lines = described(Some(&alone));
        assert!(lines.ends_with("responses: one answer to each message within 2m"), "{lines}");
        let more = serde_json::json!({
            "publish": { "allow": ["a"] }, "responses": { "messages": 0, "within_ms": 0 },
        });
        let more = read(more);
        assert!(more.publish.deny.is_empty());
        let lines = described(Some(&more));
        assert!(lines.ends_with("responses: any number of answers to each message"), "{lines}");
        let again = read(serde_json::to_value(SubjectsBody::from(more.clone())).unwrap());
        assert_eq!(again, more);
    }

    #[test]
    fn a_slow_consumer_policy_is_no_part_of_a_subscribed_subject() {
        let found = |list: &str, side: &str, text: &str| {
            let body = serde_json::json!({ list: { side: [text] } });
            serde_json::from_value::<SubjectsBody>(body).unwrap().subjects().map(drop)
        };
        for text in ["$SLOW_CONSUMER.spool.a.>", " $SLOW_CONSUMER.>"] {
            for side in ["allow", "deny"] {
                let why = found("subscribe", side, text).unwrap_err();
                assert!(why.starts_with(&format!("pattern '{}': ", text.trim())), "{why}");
                assert!(why.ends_with("write what follows them, as in 'a.>'"), "{why}");
                // A publisher may publish to such a subject.
                assert_eq!(found("publish", side, text), Ok(()));
            }
        }
    }
}
