//! RabbitMQ's topic permissions: which routing keys of an exchange a user may use, as regular expressions.
//!
//! Here these are patterns of subjects, so only expressions that say all or nothing can be set; what patterns
//! say is shown as expressions.

use super::super::api::ANY_VHOST;
use super::super::audit::Shared;
use super::answer::{Answer, Refused, carry_out};
use super::list::Pair;
use super::read::Body;
use crate::reactor::Shard;
use angarium_engine::{ExchangeRules, Request, SubjectPermissions, SubjectRules};
use angarium_protocol::SUBJECT_EXCHANGE;
use axum::Json;
use axum::extract::Path;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

/// The pattern of all subjects.
const ALL: &str = ">";

/// What a user may do with the keys of an exchange.
#[derive(Debug, Deserialize)]
pub(super) struct TopicBody {
    exchange: String,
    write: String,
    read: String,
}

/// Rules that say the same as an expression. Refused: one that says neither all nor nothing.
fn rules(expression: &str) -> Result<SubjectRules, String> {
    match expression {
        ".*" | "^.*$" | "^.*" => Ok(SubjectRules::default()),
        "" | "^$" => Ok(SubjectRules { allow: Vec::new(), deny: vec![ALL.to_owned()] }),
        other => Err(format!(
            "'{other}' cannot be taken over: routing keys are narrowed by patterns, not by regular \
             expressions, see `angarium permission subjects`; '.*' and '^$' can"
        )),
    }
}

/// An expression that matches what one of the patterns does.
fn any_of(patterns: &[String]) -> String {
    let word = |word: &str| match word {
        "*" => "[^.]+".to_owned(),
        ">" => ".+".to_owned(),
        word => regex::escape(word),
    };
    let one = |pattern: &String| pattern.split('.').map(word).collect::<Vec<_>>().join("\\.");
    patterns.iter().map(one).collect::<Vec<_>>().join("|")
}

/// An expression that says the same as rules.
fn expression(rules: &SubjectRules) -> String {
    if rules.deny.iter().any(|it| it == ALL) {
        return "^$".to_owned();
    }
    match (rules.allow.is_empty(), rules.deny.is_empty()) {
        (true, true) => ".*".to_owned(),
        (false, true) => format!("^({})$", any_of(&rules.allow)),
        (true, false) => format!("^(?!({})$)", any_of(&rules.deny)),
        (false, false) => format!("^(?!({})$)({})$", any_of(&rules.deny), any_of(&rules.allow)),
    }
}

pub(super) async fn rows(state: &Shared) -> Answer<Vec<Value>> {
    let row = |user: &str, vhost: &str, exchange: &str, [write, read]: [&SubjectRules; 2]| {
        json!({
            "user": user, "vhost": vhost, "exchange": exchange,
            "write": expression(write), "read": expression(read),
        })
    };
    let look = move |shard: &mut Shard| {
        let engine = shard.node.engine();
        let mut rows = Vec::new();
        for it in engine.list_permissions() {
            if let Some(subjects) = engine.permitted_subjects(it.user, it.vhost) {
                let both = [&subjects.publish, &subjects.subscribe];
                rows.push(row(it.user, it.vhost, SUBJECT_EXCHANGE, both));
            }
            let others = engine.exchange_rules(it.user, it.vhost);
            rows.extend(others.map(|(exchange, rules)| {
                row(it.user, it.vhost, exchange, [&rules.publish, &rules.subscribe])
            }));
        }
        rows
    };
    Ok(state.mailboxes.home().ask(look).await?)
}

async fn listed(state: &Shared, is_meant: impl Fn(&Value) -> bool) -> Answer {
    Ok(Json(rows(state).await?.into_iter().filter(is_meant).collect()))
}

pub(super) async fn all(state: Shared) -> Answer {
    listed(&state, |_| true).await
}

pub(super) async fn of_vhost(state: Shared, Path(vhost): Path<String>) -> Answer {
    listed(&state, |it| it["vhost"] == vhost).await
}

pub(super) async fn of_user(state: Shared, Path(user): Path<String>) -> Answer {
    listed(&state, |it| it["user"] == user).await
}

pub(super) async fn one(state: Shared, Path((vhost, user)): Pair) -> Answer {
    let found = listed(&state, |it| it["vhost"] == vhost && it["user"] == user).await?;
    if found.as_array().is_some_and(Vec::is_empty) {
        let text = format!("user '{user}' is not narrowed in virtual host '{vhost}'");
        return Err(Refused::none(text));
    }
    Ok(found)
}

/// Sets them for one exchange, or (`checks`) only says whether that would do.
pub(super) async fn set(
    state: &Shared,
    vhost: String,
    user: String,
    body: TopicBody,
    checks: bool,
) -> Answer<()> {
    let (publish, subscribe) = (rules(&body.write)?, rules(&body.read)?);
    if checks {
        return Ok(());
    }
    let request = if body.exchange == SUBJECT_EXCHANGE {
        let subjects = SubjectPermissions { publish, subscribe, responses: None };
        Request::SetSubjectPermissions { user, vhost, subjects }
    } else {
        let (exchange, rules) = (body.exchange, ExchangeRules { publish, subscribe });
        Request::SetExchangeRules { user, vhost, exchange, rules }
    };
    carry_out(state, ANY_VHOST, request).await?;
    Ok(())
}

pub(super) async fn put(
    state: Shared,
    Path((vhost, user)): Pair,
    Body(body): Body<TopicBody>,
) -> Answer<StatusCode> {
    set(&state, vhost, user, body, false).await?;
    Ok(StatusCode::CREATED)
}

/// Takes away what narrows a user in a virtual host.
pub(super) async fn delete(state: Shared, Path((vhost, user)): Pair) -> Answer<StatusCode> {
    let found = rows(&state).await?;
    let own = found.iter().filter(|it| it["vhost"] == vhost && it["user"] == user);
    for row in own {
        let exchange = row["exchange"].as_str().unwrap_or_default().to_owned();
        let all = || ".*".to_owned();
        let body = TopicBody { exchange, write: all(), read: all() };
        set(&state, vhost.clone(), user.clone(), body, false).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_and_nothing_go_both_ways_and_patterns_one() {
        for (text, shown) in [(".*", ".*"), ("", "^$"), ("^$", "^$")] {
            assert_eq!(expression(&rules(text).unwrap()), shown);
        }
        assert!(rules("^a").unwrap_err().contains("angarium permission subjects"));
        let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let check = |allow: &[&str], deny: &[&str], expected: &str| {
            let rules = SubjectRules { allow: list(allow), deny: list(deny) };
            assert_eq!(expression(&rules), expected);
        };
        check(&["a.>", "b.*.c"], &[], r"^(a\..+|b\.[^.]+\.c)$");
        check(&[], &["a"], r"^(?!(a)$)");
        check(&["a.>"], &["a.b"], r"^(?!(a\.b)$)(a\..+)$");
        check(&["a"], &[">"], "^$");
    }
}
