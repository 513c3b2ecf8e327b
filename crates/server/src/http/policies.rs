//! Policies below `/v1`: what sets them, and what lists show of them.

use super::api::{self, Answer, Asked, Body, Pair};
use super::audit::Shared;
use super::request_types::engine_value;
use super::views::option_fields;
use crate::reactor::Shard;
use angarium_engine::{AppliesTo, Arguments, POLICY_OPTIONS, Policy, PolicyKind, Request};
use axum::extract::Path;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A policy to be set.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PolicyBody {
    /// A regular expression over names.
    pattern: String,
    /// `all`, `queues`, `exchanges`, `classic-queues`, `quorum-queues`.
    #[serde(default)]
    applies_to: Option<String>,
    /// Of several that match a name, the one with the highest is followed.
    #[serde(default)]
    priority: i64,
    /// Options of queues and exchanges, by the names that declarations use.
    definition: Map<String, Value>,
}

impl PolicyBody {
    fn policy(self) -> Result<Policy, String> {
        let PolicyBody { pattern, applies_to, priority, definition } = self;
        let option = |(field, value): (&String, &Value)| {
            let names = POLICY_OPTIONS.iter().map(|option| option.name);
            let mut found = names.filter(|name| name.replace('-', "_") == *field);
            let name = found.next().ok_or_else(|| {
                format!("definition: '{field}' is no option that a policy can set")
            })?;
            Ok((name.to_owned(), engine_value(value)))
        };
        let definition = definition.iter().map(option).collect::<Result<Arguments, String>>()?;
        let applies_to = match applies_to {
            Some(name) => AppliesTo::named(&name).ok_or_else(|| {
                format!("applies_to: must be one of {}", AppliesTo::NAMES.join(", "))
            })?,
            None => AppliesTo::default(),
        };
        Ok(Policy { pattern, applies_to, priority, definition })
    }
}

/// One policy.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PolicyView {
    vhost: String,
    name: String,
    /// It is an operator policy.
    operator: bool,
    pattern: String,
    applies_to: &'static str,
    priority: i64,
    definition: Map<String, Value>,
}

pub(super) async fn list(state: Shared, asked: Asked) -> Answer<Vec<PolicyView>> {
    let vhost = asked.0.vhost;
    let look = move |shard: &mut Shard| {
        let all = shard.node.engine().list_policies();
        let meant = all.filter(|it| vhost.as_ref().is_none_or(|vhost| vhost == it.vhost));
        let view = meant.map(|it| PolicyView {
            vhost: it.vhost.to_owned(),
            name: it.name.to_owned(),
            operator: it.kind == PolicyKind::Operator,
            pattern: it.policy.pattern.clone(),
            applies_to: it.policy.applies_to.name(),
            priority: it.policy.priority,
            definition: option_fields(&it.policy.definition),
        });
        view.collect()
    };
    api::view(state, look).await
}

async fn set(
    state: Shared,
    kind: PolicyKind,
    Path((vhost, name)): Pair,
    body: PolicyBody,
) -> Answer {
    let policy = Box::new(body.policy()?);
    let request = Request::SetPolicy { vhost, kind, name, policy };
    api::carry_out(&state, api::ANY_VHOST, request).await
}

async fn clear(state: Shared, kind: PolicyKind, Path((vhost, name)): Pair) -> Answer {
    api::carry_out(&state, api::ANY_VHOST, Request::ClearPolicy { vhost, kind, name }).await
}

pub(super) async fn put(state: Shared, place: Pair, Body(body): Body<PolicyBody>) -> Answer {
    set(state, PolicyKind::Ordinary, place, body).await
}

pub(super) async fn delete(state: Shared, place: Pair) -> Answer {
    clear(state, PolicyKind::Ordinary, place).await
}

pub(super) async fn put_operators(
    state: Shared,
    place: Pair,
    Body(body): Body<PolicyBody>,
) -> Answer {
    set(state, PolicyKind::Operator, place, body).await
}

pub(super) async fn delete_operators(state: Shared, place: Pair) -> Answer {
    clear(state, PolicyKind::Operator, place).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(body: Value, expected: Result<(&str, &str), &str>) {
        let body: PolicyBody = serde_json::from_value(body).unwrap();
        let found = body.policy().map(|policy| {
            let definition = Value::Object(option_fields(&policy.definition)).to_string();
            (policy.applies_to.name(), definition)
        });
        let found = found.as_ref().map(|(about, definition)| (*about, definition.as_str()));
        assert_eq!(found.map_err(String::as_str), expected);
    }

    #[test]
    fn a_body_says_what_a_policy_says() {
        let definition = json!({ "max_length": 3, "overflow": "reject-publish" });
        check(
            json!({ "pattern": "^a", "definition": definition }),
            Ok(("all", "{\"max_length\":3,\"overflow\":\"reject-publish\"}")),
        );
        check(
            json!({ "pattern": "", "definition": {}, "applies_to": "queues", "priority": -1 }),
            Ok(("queues", "{}")),
        );
        check(
            json!({ "pattern": "", "definition": { "ha_mode": "all" } }),
            Err("definition: 'ha_mode' is no option that a policy can set"),
        );
        check(
            json!({ "pattern": "", "definition": {}, "applies_to": "streams" }),
            Err("applies_to: must be one of all, queues, exchanges, classic-queues, quorum-queues"),
        );
    }
}
