//! Definitions taken over from a file that RabbitMQ has exported, or [`super::definitions`].
//!
//! An import goes on where something cannot be taken over, and says what and why. Doing it again changes
//! nothing.

use super::super::api::ANY_VHOST;
use super::super::audit::{Administrator, Shared};
use super::super::mailboxes::State;
use super::access::{self, UserBody};
use super::answer::{Answer, Refused, carry_out};
use super::auth::ADMINISTRATOR;
use super::limits;
use super::list::check_vhost;
use super::parameters;
use super::policies::{self, PolicyBody};
use super::read::Body;
use super::topic_permissions::{self, TopicBody};
use super::topology::{BindingBody, ExchangeBody, QueueBody};
use angarium_engine::{BindingTarget, PolicyKind, Request};
use axum::Json;
use axum::extract::{self, Query};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// What a file has. What is not named here is not looked at.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Definitions {
    vhosts: Vec<VhostDefinition>,
    users: Vec<UserDefinition>,
    permissions: Vec<PermissionDefinition>,
    topic_permissions: Vec<TopicDefinition>,
    parameters: Vec<Parameter>,
    global_parameters: Vec<Parameter>,
    policies: Vec<PolicyDefinition>,
    exchanges: Vec<Declared<ExchangeBody>>,
    queues: Vec<Declared<QueueBody>>,
    bindings: Vec<BindingDefinition>,
}

#[derive(Debug, Deserialize)]
struct VhostDefinition {
    name: String,
}

#[derive(Debug, Deserialize)]
struct UserDefinition {
    name: String,
    #[serde(default)]
    limits: Map<String, Value>,
    #[serde(flatten)]
    body: UserBody,
}

#[derive(Debug, Deserialize)]
struct PermissionDefinition {
    user: String,
    vhost: String,
    configure: String,
    write: String,
    read: String,
}

#[derive(Debug, Deserialize)]
struct TopicDefinition {
    user: String,
    vhost: String,
    #[serde(flatten)]
    body: TopicBody,
}

#[derive(Debug, Deserialize)]
struct PolicyDefinition {
    name: String,
    vhost: Option<String>,
    #[serde(flatten)]
    body: PolicyBody,
}

/// A parameter.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Parameter {
    component: String,
    vhost: Option<String>,
    name: String,
    value: Value,
}

/// A queue or an exchange; in the file of one virtual host it names none.
#[derive(Debug, Deserialize)]
struct Declared<T> {
    name: String,
    vhost: Option<String>,
    #[serde(flatten)]
    body: T,
}

#[derive(Debug, Deserialize)]
struct BindingDefinition {
    source: String,
    vhost: Option<String>,
    destination: String,
    destination_type: String,
    #[serde(flatten)]
    body: BindingBody,
}

/// What came of an import.
#[derive(Debug, Default, Serialize)]
struct Report {
    /// How many of each kind were taken over, or were there.
    taken: BTreeMap<&'static str, u64>,
    /// What was not.
    left: Vec<Left>,
}

#[derive(Debug, Serialize)]
struct Left {
    kind: &'static str,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    vhost: Option<String>,
    why: String,
}

/// Where an import goes.
struct Import {
    state: Shared,
    /// Nothing is changed: only whether it could be read.
    checks: bool,
    /// The only virtual host that it is for.
    vhost: Option<String>,
    report: Report,
}

/// What follows the address of an import.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct How {
    check: bool,
}

pub(super) async fn all(
    state: Shared,
    Query(How { check: checks }): Query<How>,
    Body(definitions): Body<Definitions>,
) -> Answer {
    Ok(Json(json!(take_over(state, checks, definitions).await?)))
}

/// Takes over all that a file has; `checks`: only says what of it could be.
async fn take_over(state: Shared, checks: bool, definitions: Definitions) -> Answer<Report> {
    let mut import = Import { state, checks, vhost: None, report: Report::default() };
    import.vhosts(definitions.vhosts).await;
    import.users(definitions.users).await?;
    import.permissions(definitions.permissions).await;
    import.topic_permissions(definitions.topic_permissions).await;
    for parameter in definitions.global_parameters {
        let why = "global parameters are not offered";
        import.leave("global parameter", &parameter.name, None, why);
    }
    import.parameters(definitions.parameters).await;
    import.policies(definitions.policies).await;
    import.topology(definitions.exchanges, definitions.queues, definitions.bindings).await;
    Ok(import.report)
}

/// Takes over what a file has that a setting names, and logs what came of it.
pub(in crate::http) async fn take_file(state: State, file: &Path) -> Result<(), String> {
    let shown = file.display();
    let text = std::fs::read(file).map_err(|error| format!("cannot read '{shown}': {error}"))?;
    let definitions = serde_json::from_slice(&text)
        .map_err(|error| format!("'{shown}' is no file of definitions: {error}"))?;
    let by = Administrator { user: None, from: "the setting definitions-file".to_owned() };
    let report = take_over(Shared::of(state, by), false, definitions).await;
    let report =
        report.map_err(|refused| format!("definitions of '{shown}': {}", refused.reason))?;
    for Left { kind, name, vhost, why } in &report.left {
        tracing::warn!(kind, name, vhost, why, "a definition is not taken over");
    }
    let taken: Vec<String> =
        report.taken.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    let (taken, left) = (taken.join(", "), report.left.len());
    tracing::info!(file = %shown, taken, left, "definitions are there");
    Ok(())
}

pub(super) async fn into_vhost(
    state: Shared,
    extract::Path(vhost): extract::Path<String>,
    Query(How { check: checks }): Query<How>,
    Body(definitions): Body<Definitions>,
) -> Answer {
    check_vhost(&state, &vhost).await?;
    let mut import = Import { state, checks, vhost: Some(vhost), report: Report::default() };
    import.parameters(definitions.parameters).await;
    import.policies(definitions.policies).await;
    import.topology(definitions.exchanges, definitions.queues, definitions.bindings).await;
    Ok(Json(json!(import.report)))
}

impl Import {
    /// Counts what was taken over, or says why it was not.
    fn note(&mut self, kind: &'static str, name: &str, vhost: Option<&str>, done: Answer<()>) {
        match done {
            Ok(()) => *self.report.taken.entry(kind).or_default() += 1,
            Err(refused) => self.leave(kind, name, vhost, refused.reason),
        }
    }

    fn leave(
        &mut self,
        kind: &'static str,
        name: &str,
        vhost: Option<&str>,
        why: impl Into<String>,
    ) {
        let (name, vhost) = (name.to_owned(), vhost.map(str::to_owned));
        self.report.left.push(Left { kind, name, vhost, why: why.into() });
    }

    /// The virtual host of a definition; empty where it names none.
    fn place(&self, own: Option<String>) -> String {
        self.vhost.clone().or(own).unwrap_or_default()
    }

    async fn ask(&self, vhost: &str, request: Request) -> Answer<()> {
        if !self.checks {
            carry_out(&self.state, vhost, request).await?;
        }
        Ok(())
    }

    async fn vhosts(&mut self, vhosts: Vec<VhostDefinition>) {
        for VhostDefinition { name } in vhosts {
            let done = if check_vhost(&self.state, &name).await.is_ok() {
                Ok(())
            } else {
                self.ask(ANY_VHOST, Request::CreateVhost { name: name.clone() }).await
            };
            self.note("vhost", &name, None, done);
        }
    }

    async fn users(&mut self, users: Vec<UserDefinition>) -> Answer<()> {
        let present = access::user_rows(&self.state).await?;
        for UserDefinition { name, limits, body } in users {
            let present = present.iter().find(|row| row["name"] == name.as_str());
            let done = self.user(&name, &body, present).await;
            self.note("user", &name, None, done);
            self.user_limits(&name, &limits).await;
            let tags = body.tags.unwrap_or_default().0;
            for tag in tags.iter().filter(|tag| *tag != ADMINISTRATOR) {
                let why =
                    format!("its tag '{tag}' is not taken over: administrator is, and no other");
                self.leave("user", &name, None, why);
            }
        }
        Ok(())
    }

    async fn user_limits(&mut self, user: &str, given: &Map<String, Value>) {
        for (limit, value) in given {
            let done = match limits::limit_of(value) {
                Ok(value) if self.checks => limits::check_user_limit(limit, value),
                Ok(value) => {
                    let set = limits::set_user_limit(&self.state, user.to_owned(), limit, value);
                    set.await.map(drop)
                }
                Err(refused) => Err(refused),
            };
            self.note("user limit", limit, None, done);
        }
    }

    async fn user(&self, name: &str, body: &UserBody, present: Option<&Value>) -> Answer<()> {
        let password_hash = body.stored().await?;
        let tags = body.tags.clone().unwrap_or_default().0;
        let administrator = tags.iter().any(|tag| tag == ADMINISTRATOR);
        let name = name.to_owned();
        let Some(present) = present else {
            let request = Request::CreateUser { name, password_hash, administrator };
            return self.ask(ANY_VHOST, request).await;
        };
        let is_administrator = present["tags"]
            .as_array()
            .is_some_and(|tags| tags.iter().any(|tag| tag == ADMINISTRATOR));
        let hash = body.password_hash.as_deref().unwrap_or_default();
        let is_same = body.password.is_none() && present["password_hash"] == hash;
        // A changed password ends the user's connections: only where it is another.
        let password_hash = (!is_same).then_some(password_hash);
        let administrator = (is_administrator != administrator).then_some(administrator);
        if password_hash.is_none() && administrator.is_none() {
            return Ok(());
        }
        self.ask(ANY_VHOST, Request::ChangeUser { name, password_hash, administrator }).await
    }

    async fn permissions(&mut self, permissions: Vec<PermissionDefinition>) {
        for PermissionDefinition { user, vhost, configure, write, read } in permissions {
            let (named, place) = (user.clone(), vhost.clone());
            let request = Request::SetPermissions { user, vhost, configure, write, read };
            let done = self.ask(ANY_VHOST, request).await;
            self.note("permission", &named, Some(&place), done);
        }
    }

    async fn topic_permissions(&mut self, permissions: Vec<TopicDefinition>) {
        for TopicDefinition { user, vhost, body } in permissions {
            let (named, place, checks) = (user.clone(), vhost.clone(), self.checks);
            let done = topic_permissions::set(&self.state, vhost, user, body, checks).await;
            self.note("topic permission", &named, Some(&place), done);
        }
    }

    /// Limits of virtual hosts, and operator policies, are parameters in these files.
    async fn parameters(&mut self, parameters: Vec<Parameter>) {
        for Parameter { component, vhost, name, value } in parameters {
            if component == policies::COMPONENT {
                let place = self.place(vhost);
                match serde_json::from_value(value) {
                    Ok(body) => self.policy(PolicyKind::Operator, place, &name, &body).await,
                    Err(why) => {
                        self.leave("operator policy", &name, Some(&place), why.to_string());
                    }
                }
                continue;
            }
            if component != parameters::LIMITS {
                let why = format!("'{component}' is not offered");
                self.leave("parameter", &name, vhost.as_deref(), why);
                continue;
            }
            let place = self.place(vhost);
            for (limit, value) in value.as_object().into_iter().flatten() {
                let done = self.limit(place.clone(), limit, value).await;
                self.note("vhost limit", limit, Some(&place), done);
            }
        }
    }

    async fn limit(&self, vhost: String, limit: &str, value: &Value) -> Answer<()> {
        let value = limits::limit_of(value)?;
        if self.checks {
            return limits::check_vhost_limit(limit, value);
        }
        limits::set_vhost_limit(&self.state, vhost, limit, value).await.map(drop)
    }

    async fn policies(&mut self, policies: Vec<PolicyDefinition>) {
        for PolicyDefinition { name, vhost, body } in policies {
            let place = self.place(vhost);
            self.policy(PolicyKind::Ordinary, place, &name, &body).await;
        }
    }

    /// Sets a policy with those of its options that there are here; the others are named.
    async fn policy(&mut self, kind: PolicyKind, vhost: String, name: &str, body: &PolicyBody) {
        let what = match kind {
            PolicyKind::Ordinary => "policy",
            PolicyKind::Operator => "operator policy",
        };
        let (policy, others) = match body.policy() {
            Ok(read) => read,
            Err(refused) => return self.leave(what, name, Some(&vhost), refused.reason),
        };
        for other in &others {
            let why = format!("its option '{other}' is not offered");
            self.leave(what, name, Some(&vhost), why);
        }
        if policy.definition.is_empty() && !others.is_empty() {
            return;
        }
        let done = match policy.check(kind) {
            Ok(()) => {
                let (vhost, name) = (vhost.clone(), name.to_owned());
                let policy = Box::new(policy);
                self.ask(ANY_VHOST, Request::SetPolicy { vhost, kind, name, policy }).await
            }
            Err(refusal) => Err(refusal.into()),
        };
        self.note(what, name, Some(&vhost), done);
    }

    async fn topology(
        &mut self,
        exchanges: Vec<Declared<ExchangeBody>>,
        queues: Vec<Declared<QueueBody>>,
        bindings: Vec<BindingDefinition>,
    ) {
        for Declared { name, vhost, body } in exchanges {
            let place = self.place(vhost);
            let done = self.exchange(&place, &name, &body).await;
            self.note("exchange", &name, Some(&place), done);
        }
        for Declared { name, vhost, body } in queues {
            let place = self.place(vhost);
            let done = self.queue(&place, &name, &body).await;
            self.note("queue", &name, Some(&place), done);
        }
        for binding in bindings {
            let place = self.place(binding.vhost.clone());
            let done = self.bind(&place, &binding).await;
            let name = format!("{} to {}", binding.source, binding.destination);
            self.note("binding", &name, Some(&place), done);
        }
    }

    async fn exchange(&self, vhost: &str, name: &str, body: &ExchangeBody) -> Answer<()> {
        let options = Some(body.options(name, vhost)?);
        self.ask(vhost, Request::DeclareExchange { name: name.to_owned(), options }).await
    }

    async fn queue(&self, vhost: &str, name: &str, body: &QueueBody) -> Answer<()> {
        let options = Some(body.options(name, vhost)?);
        self.ask(vhost, Request::DeclareQueue { name: name.to_owned(), options }).await
    }

    async fn bind(&self, vhost: &str, given: &BindingDefinition) -> Answer<()> {
        let name = given.destination.clone();
        let target = match given.destination_type.as_str() {
            "queue" => BindingTarget::Queue(name),
            "exchange" => BindingTarget::Exchange(name),
            other => return Err(Refused::bad(format!("destination_type: '{other}'"))),
        };
        let binding = given.body.binding(vhost, &given.source, target)?;
        self.ask(vhost, Request::Bind(binding)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_both_generations_are_read() {
        let queue = json!({ "name": "q", "vhost": "/", "durable": true, "auto_delete": false,
            "arguments": { "x-queue-type": "quorum" } });
        let binding = json!({ "source": "e", "vhost": "/", "destination": "q",
            "destination_type": "queue", "routing_key": "", "arguments": {} });
        let user = |tags: Value| {
            json!({ "name": "a", "password_hash": "x", "tags": tags,
            "hashing_algorithm": "rabbit_password_hashing_sha256", "limits": {} })
        };
        for file in [
            json!({ "rabbit_version": "3.8.9", "users": [user(json!("administrator,monitoring"))],
                "vhosts": [{ "name": "/" }], "queues": [queue], "bindings": [binding],
                "policies": [{ "vhost": "/", "name": "p", "pattern": ".*", "definition": {} }] }),
            json!({ "rabbitmq_version": "4.1.0", "product_name": "RabbitMQ",
                "users": [user(json!(["administrator", "monitoring"]))],
                "vhosts": [{ "name": "/", "metadata": { "tags": [] }, "limits": [] }],
                "queues": [queue], "bindings": [binding] }),
        ] {
            let read: Definitions = serde_json::from_value(file).unwrap();
            let tags = read.users[0].body.tags.clone().unwrap();
            assert_eq!(tags.0, ["administrator", "monitoring"]);
            assert_eq!((read.queues[0].name.as_str(), read.bindings.len()), ("q", 1));
            assert!(read.queues[0].body.options("q", "/").unwrap().durable);
        }
    }
}
