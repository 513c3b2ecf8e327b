//! What a line of a scenario about users and rights means.

use super::host::Words;
use crate::*;

/// Requests about users.
pub(super) fn access_request(word: &str, words: &Words<'_>) -> Request {
    let text = |index: usize| words.0[index].to_owned();
    let vhost = "/".to_owned();
    // Words with what is allowed and what is denied; `-` or no such word: nothing.
    const NONE: usize = usize::MAX;
    let list = |at: usize| words.0.get(at).filter(|it| **it != "-").map(|it| (*it).to_owned());
    let list = |at: usize| list(at).into_iter().collect::<Vec<_>>();
    let rules = |allow, deny| SubjectRules { allow: list(allow), deny: list(deny) };
    let narrowed = |subjects| Request::SetSubjectPermissions {
        user: text(1),
        vhost: "/".to_owned(),
        subjects,
    };
    match word {
        "user" => Request::CreateUser {
            name: text(1),
            password_hash: text(2),
            administrator: words.has("administrator"),
        },
        "change-user" => Request::ChangeUser {
            name: text(1),
            password_hash: words.0.get(2).filter(|it| !it.contains('=')).map(|it| (*it).to_owned()),
            administrator: words.value("administrator").map(|it| it == "true"),
        },
        "permit" => {
            let (user, configure, write, read) = (text(1), text(2), text(3), text(4));
            let vhost = words.value("vhost").map_or(vhost, str::to_owned);
            Request::SetPermissions { user, vhost, configure, write, read }
        }
        "narrow" => narrowed(SubjectPermissions { publish: rules(2, 3), ..Default::default() }),
        "narrow-subscribing" => {
            narrowed(SubjectPermissions { subscribe: rules(2, 3), ..Default::default() })
        }
        "narrow-keys" => {
            let rules = ExchangeRules { publish: rules(3, NONE), subscribe: rules(4, NONE) };
            Request::SetExchangeRules { user: text(1), vhost, exchange: text(2), rules }
        }
        "forbid" => Request::ClearPermissions { user: text(1), vhost },
        "quota" => {
            let mut quota = Quota::default();
            quota.slow_consumer_policy =
                words.value("slow_consumer_policy").and_then(SlowConsumerPolicy::named);
            for (bound, name) in Bound::NAMES {
                quota.set(bound, words.number(name));
            }
            match words.value("of") {
                Some("vhost") => Request::SetVhostQuota { vhost: text(1), quota },
                _ => Request::SetQuota { user: text(1), quota },
            }
        }
        "policy" => Request::SetPolicy {
            vhost,
            kind: policy_kind(words),
            name: text(1),
            policy: Box::new(policy(words)),
        },
        "clear-policy" => Request::ClearPolicy { vhost, kind: policy_kind(words), name: text(1) },
        other => panic!("unknown request '{other}'"),
    }
}

fn policy_kind(words: &Words<'_>) -> PolicyKind {
    if words.has("operator") { PolicyKind::Operator } else { PolicyKind::Ordinary }
}

/// `policy NAME PATTERN OPTION=VALUE...`
pub(super) fn policy(words: &Words<'_>) -> Policy {
    let options = words.0[3..].iter().filter_map(|word| word.split_once('='));
    let options = options.filter(|(name, _)| !matches!(*name, "about" | "priority"));
    let value = |text: &str| text.parse().map_or_else(|_| Value::Text(text.to_owned()), Value::Int);
    Policy {
        pattern: words.0[2].to_owned(),
        applies_to: words.value("about").and_then(AppliesTo::named).unwrap_or_default(),
        priority: words.number("priority").unwrap_or(0),
        definition: options.map(|(name, text)| (name.to_owned(), value(text))).collect(),
    }
}
