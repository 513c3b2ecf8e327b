//! RabbitMQ's policies and operator policies.

use super::super::api::ANY_VHOST;
use super::super::audit::Shared;
use super::super::request_types::engine_values;
use super::answer::{Answer, Refused, carry_out, changed};
use super::list::{Pair, Parameters, check_vhost, page};
use super::read::Body;
use super::rows;
use crate::reactor::Shard;
use angarium_engine::{AppliesTo, Arguments, Policy, PolicyKind, PolicyOption, Request};
use axum::Json;
use axum::extract::Path;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// What operator policies are in files of definitions.
pub(super) const COMPONENT: &str = "operator_policy";

/// A policy, as tools set it and files have it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PolicyBody {
    pattern: Option<String>,
    /// Not set: `all`.
    #[serde(rename = "apply-to")]
    applies_to: Option<String>,
    /// A number, or the text of one.
    priority: Value,
    definition: Option<Map<String, Value>>,
}

/// What a policy is about, in RabbitMQ's words.
fn applies_to(named: &str) -> Answer<AppliesTo> {
    if named == "streams" {
        return Err(Refused::bad("apply-to: queues of type stream are not offered"));
    }
    let names = || AppliesTo::NAMES.join(", ").replace('-', "_");
    AppliesTo::named(&named.replace('_', "-"))
        .ok_or_else(|| Refused::bad(format!("apply-to: '{named}' is none of {}", names())))
}

impl PolicyBody {
    /// The policy, and names of its options that no policy can set here.
    pub(super) fn policy(&self) -> Answer<(Policy, Vec<String>)> {
        let missing = |field| move || Refused::bad(format!("{field}: is missing"));
        let priority = match &self.priority {
            Value::Null => Some(0),
            Value::String(text) => text.parse().ok(),
            other => other.as_i64(),
        };
        let priority = priority.ok_or_else(|| Refused::bad("priority: is no whole number"))?;
        let given = self.definition.as_ref().ok_or_else(missing("definition"))?;
        let is_offered =
            |it: &(String, angarium_engine::Value)| PolicyOption::named(&it.0).is_some();
        let (definition, others): (Arguments, Arguments) =
            engine_values(given).into_iter().partition(is_offered);
        let policy = Policy {
            pattern: self.pattern.clone().ok_or_else(missing("pattern"))?,
            applies_to: self.applies_to.as_deref().map_or(Ok(AppliesTo::All), applies_to)?,
            priority,
            definition,
        };
        Ok((policy, others.into_keys().collect()))
    }
}

/// A policy as it is listed.
#[derive(Debug)]
pub(super) struct Row {
    vhost: String,
    name: String,
    rest: Map<String, Value>,
}

impl Row {
    fn shown(self) -> Value {
        let Row { vhost, name, mut rest } = self;
        rest.extend([("vhost".to_owned(), vhost.into()), ("name".to_owned(), name.into())]);
        rest.into()
    }

    /// As files have operator policies.
    pub(super) fn parameter(self) -> Value {
        let Row { vhost, name, rest } = self;
        json!({ "component": COMPONENT, "vhost": vhost, "name": name, "value": rest })
    }
}

/// Policies of a kind, by virtual host and name; those of one virtual host, where it is named.
pub(super) async fn rows(
    state: &Shared,
    kind: PolicyKind,
    vhost: Option<&str>,
) -> Answer<Vec<Row>> {
    let vhost = vhost.map(str::to_owned);
    let look = move |shard: &mut Shard| -> Vec<Row> {
        let all = shard.node.engine().list_policies().filter(|it| it.kind == kind);
        let meant = all.filter(|it| vhost.as_ref().is_none_or(|vhost| vhost == it.vhost));
        let row = meant.map(|it| {
            let rest = json!({
                "pattern": it.policy.pattern,
                "apply-to": it.policy.applies_to.name().replace('-', "_"),
                "priority": it.policy.priority,
                "definition": rows::arguments(&it.policy.definition),
            });
            let rest = rest.as_object().cloned().unwrap_or_default();
            Row { vhost: it.vhost.to_owned(), name: it.name.to_owned(), rest }
        });
        row.collect()
    };
    let mut rows = state.mailboxes.home().ask(look).await?;
    rows.sort_by(|one, other| (&one.vhost, &one.name).cmp(&(&other.vhost, &other.name)));
    Ok(rows)
}

/// The same, as lists have them.
pub(super) async fn shown(
    state: &Shared,
    kind: PolicyKind,
    vhost: Option<&str>,
) -> Answer<Vec<Value>> {
    Ok(rows(state, kind, vhost).await?.into_iter().map(Row::shown).collect())
}

pub(super) async fn list(
    state: Shared,
    kind: PolicyKind,
    vhost: Option<Path<String>>,
    query: Parameters,
) -> Answer {
    let vhost = vhost.map(|Path(vhost)| vhost);
    if let Some(vhost) = &vhost {
        check_vhost(&state, vhost).await?;
    }
    page(&query, shown(&state, kind, vhost.as_deref()).await?)
}

async fn found(state: &Shared, kind: PolicyKind, vhost: &str, name: &str) -> Answer<Option<Value>> {
    let rows = rows(state, kind, Some(vhost)).await?;
    Ok(rows.into_iter().find(|row| row.name == name).map(Row::shown))
}

pub(super) async fn one(state: Shared, kind: PolicyKind, Path((vhost, name)): Pair) -> Answer {
    let none = || Refused::none(format!("no policy '{name}' in virtual host '{vhost}'"));
    Ok(Json(found(&state, kind, &vhost, &name).await?.ok_or_else(none)?))
}

pub(super) async fn put(
    state: Shared,
    kind: PolicyKind,
    Path((vhost, name)): Pair,
    Body(body): Body<PolicyBody>,
) -> Answer<StatusCode> {
    check_vhost(&state, &vhost).await?;
    let was_there = found(&state, kind, &vhost, &name).await?.is_some();
    set(&state, kind, vhost, name, &body).await?;
    Ok(changed(was_there))
}

/// Sets a policy. Refused: options that no policy can set here.
pub(super) async fn set(
    state: &Shared,
    kind: PolicyKind,
    vhost: String,
    name: String,
    body: &PolicyBody,
) -> Answer<()> {
    let (policy, others) = body.policy()?;
    if let Some(other) = others.first() {
        let text = format!("definition: '{other}' is no option that a policy can set here");
        return Err(Refused::bad(text));
    }
    let request = Request::SetPolicy { vhost, kind, name, policy: Box::new(policy) };
    carry_out(state, ANY_VHOST, request).await?;
    Ok(())
}

pub(super) async fn delete(
    state: Shared,
    kind: PolicyKind,
    Path((vhost, name)): Pair,
) -> Answer<StatusCode> {
    carry_out(&state, ANY_VHOST, Request::ClearPolicy { vhost, kind, name }).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(body: Value, expected: Result<(AppliesTo, i64, &[&str]), &str>) {
        let body: PolicyBody = serde_json::from_value(body).unwrap();
        let found = body.policy();
        let found = found.as_ref().map(|(policy, others)| {
            let others: Vec<&str> = others.iter().map(String::as_str).collect();
            (policy.applies_to, policy.priority, others)
        });
        let expected = expected.map(|(about, priority, others)| (about, priority, others.to_vec()));
        assert_eq!(found.map_err(|it| it.reason.as_str()), expected);
    }

    #[test]
    fn bodies_of_old_and_new_tools_are_read() {
        let with = |rest: Value| {
            let mut body = json!({ "pattern": "^a", "definition": { "max-length": 1 } });
            let rest = rest.as_object().cloned().unwrap_or_default();
            body.as_object_mut().unwrap().extend(rest);
            body
        };
        check(with(json!({})), Ok((AppliesTo::All, 0, &[])));
        check(
            with(json!({ "priority": "7", "apply-to": "quorum_queues" })),
            Ok((AppliesTo::QuorumQueues, 7, &[])),
        );
        check(
            with(json!({ "definition": { "ha-mode": "all", "expires": 5 }, "priority": -1 })),
            Ok((AppliesTo::All, -1, &["ha-mode"])),
        );
        check(with(json!({ "priority": "high" })), Err("priority: is no whole number"));
        check(with(json!({ "pattern": null })), Err("pattern: is missing"));
        check(with(json!({ "definition": null })), Err("definition: is missing"));
        check(
            with(json!({ "apply-to": "streams" })),
            Err("apply-to: queues of type stream are not offered"),
        );
        check(
            with(json!({ "apply-to": "topics" })),
            Err(
                "apply-to: 'topics' is none of all, queues, exchanges, classic_queues, quorum_queues",
            ),
        );
    }
}
