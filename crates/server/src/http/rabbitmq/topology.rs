//! Exchanges, queues and bindings made and taken away in RabbitMQ's words.

use super::super::audit::Shared;
use super::super::request_types::engine_values;
use super::answer::{Answer, Refused, carry_out, changed};
use super::list::{Pair, Parameters, check_vhost, exchange_name};
use super::lists::{self, End};
use super::read::{Body, Flag};
use super::rows::properties_key;
use angarium_engine::{Binding, BindingTarget, ExchangeOptions, QueueOptions, Request};
use angarium_protocol::amqp091::declaration;
use axum::Json;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

type Given = BTreeMap<String, Value>;

/// A queue, as it is declared.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct QueueBody {
    durable: Option<Flag>,
    auto_delete: Option<Flag>,
    exclusive: Option<Flag>,
    arguments: Given,
}

/// An exchange, as it is declared.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ExchangeBody {
    r#type: Option<String>,
    durable: Option<Flag>,
    auto_delete: Option<Flag>,
    internal: Option<Flag>,
    arguments: Given,
}

/// A binding, without its ends.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct BindingBody {
    routing_key: String,
    arguments: Given,
}

fn is_set(flag: Option<Flag>, otherwise: bool) -> bool {
    flag.map_or(otherwise, |Flag(value)| value)
}

impl QueueBody {
    pub(super) fn options(&self, name: &str, vhost: &str) -> Result<QueueOptions, String> {
        if is_set(self.exclusive, false) {
            return Err("a queue that is exclusive belongs to a connection".to_owned());
        }
        if name.starts_with("amq.") {
            return Err(format!("queue name '{name}' contains reserved prefix 'amq.*'"));
        }
        let durable = is_set(self.durable, true);
        let auto_delete = is_set(self.auto_delete, false);
        let flags = QueueOptions { durable, auto_delete, ..QueueOptions::default() };
        declaration::queue_options(name, vhost, flags, &engine_values(&self.arguments))
    }
}

impl ExchangeBody {
    pub(super) fn options(&self, name: &str, vhost: &str) -> Result<ExchangeOptions, String> {
        let kind = self.r#type.as_deref().unwrap_or("direct");
        let with = engine_values(&self.arguments);
        let told = declaration::exchange_options(kind, name, vhost, &with)?;
        Ok(ExchangeOptions {
            durable: is_set(self.durable, true),
            auto_delete: is_set(self.auto_delete, false),
            internal: is_set(self.internal, false),
            ..told
        })
    }
}

impl BindingBody {
    pub(super) fn binding(
        &self,
        vhost: &str,
        source: &str,
        target: BindingTarget,
    ) -> Result<Binding, String> {
        let with = engine_values(&self.arguments);
        declaration::binding(vhost, source, target, &self.routing_key, &with)
    }
}

pub(super) async fn put_queue(
    state: Shared,
    Path((vhost, name)): Pair,
    Body(body): Body<QueueBody>,
) -> Answer<StatusCode> {
    check_vhost(&state, &vhost).await?;
    let options = Some(body.options(&name, &vhost)?);
    let exists = Request::DeclareQueue { name: name.clone(), options: None };
    let was_there = carry_out(&state, &vhost, exists).await.is_ok();
    carry_out(&state, &vhost, Request::DeclareQueue { name, options }).await?;
    Ok(changed(was_there))
}

/// Whether a parameter is given and says yes: `if-unused=true`.
fn is_asked(query: &Parameters, name: &str) -> bool {
    query.0.iter().any(|(it, value)| it == name && value == "true")
}

pub(super) async fn delete_queue(
    state: Shared,
    Path((vhost, name)): Pair,
    query: Parameters,
) -> Answer<StatusCode> {
    check_vhost(&state, &vhost).await?;
    let (if_unused, if_empty) = (is_asked(&query, "if-unused"), is_asked(&query, "if-empty"));
    let exists = Request::DeclareQueue { name: name.clone(), options: None };
    carry_out(&state, &vhost, exists).await?;
    carry_out(&state, &vhost, Request::DeleteQueue { name, if_unused, if_empty }).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn purge_queue(state: Shared, Path((vhost, name)): Pair) -> Answer<StatusCode> {
    check_vhost(&state, &vhost).await?;
    carry_out(&state, &vhost, Request::PurgeQueue { name }).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn put_exchange(
    state: Shared,
    Path((vhost, name)): Pair,
    Body(body): Body<ExchangeBody>,
) -> Answer<StatusCode> {
    check_vhost(&state, &vhost).await?;
    let name = exchange_name(name);
    let options = Some(body.options(&name, &vhost)?);
    let exists = Request::DeclareExchange { name: name.clone(), options: None };
    let was_there = carry_out(&state, &vhost, exists).await.is_ok();
    carry_out(&state, &vhost, Request::DeclareExchange { name, options }).await?;
    Ok(changed(was_there))
}

pub(super) async fn delete_exchange(
    state: Shared,
    Path((vhost, name)): Pair,
    query: Parameters,
) -> Answer<StatusCode> {
    check_vhost(&state, &vhost).await?;
    let name = exchange_name(name);
    let exists = Request::DeclareExchange { name: name.clone(), options: None };
    carry_out(&state, &vhost, exists).await?;
    let if_unused = is_asked(&query, "if-unused");
    carry_out(&state, &vhost, Request::DeleteExchange { name, if_unused }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The ends of a binding in an address: virtual host, exchange, `q` or `e`, name.
type Ends = (String, String, String, String);

/// What the kind and name of the end of a binding mean.
fn target(kind: &str, name: String) -> Answer<BindingTarget> {
    match kind {
        "q" => Ok(BindingTarget::Queue(name)),
        "e" => Ok(BindingTarget::Exchange(name)),
        _ => Err(Refused::none(format!("'{kind}' is no kind of binding: q or e"))),
    }
}

fn end(target: &BindingTarget) -> End<'_> {
    match target {
        BindingTarget::Queue(name) => End::Queue(name),
        BindingTarget::Exchange(name) => End::Exchange(name),
    }
}

pub(super) async fn bindings_between(
    state: Shared,
    Path((vhost, source, kind, name)): Path<Ends>,
) -> Answer {
    let (source, target) = (exchange_name(source), target(&kind, name)?);
    let found = lists::between(&state, vhost, &[End::Source(&source), end(&target)]).await?;
    Ok(Json(found.into()))
}

pub(super) async fn bind(
    state: Shared,
    Path((vhost, source, kind, name)): Path<Ends>,
    Body(body): Body<BindingBody>,
) -> Answer<Response> {
    check_vhost(&state, &vhost).await?;
    let (source, target) = (exchange_name(source), target(&kind, name)?);
    let binding = body.binding(&vhost, &source, target)?;
    let key = properties_key(&binding.key, &binding.arguments);
    carry_out(&state, &vhost, Request::Bind(binding)).await?;
    Ok((StatusCode::CREATED, [(LOCATION, key)]).into_response())
}

/// The same, with what tells the binding from others between its ends.
type Named = (String, String, String, String, String);

async fn found(state: &Shared, named: Named) -> Answer<(String, BindingTarget, Value)> {
    let (vhost, source, kind, name, key) = named;
    let (source, target) = (exchange_name(source), target(&kind, name)?);
    let ends = [End::Source(&source), end(&target)];
    let rows = lists::between(state, vhost.clone(), &ends).await?;
    let is_it = |row: &Value| {
        let has_none = row["arguments"].as_object().is_none_or(Map::is_empty);
        row["properties_key"] == key.as_str() || (has_none && row["routing_key"] == key.as_str())
    };
    let none = || Refused::none(format!("no binding '{key}' from exchange '{source}'"));
    let row = rows.into_iter().find(is_it).ok_or_else(none)?;
    Ok((vhost, target, row))
}

pub(super) async fn binding(state: Shared, Path(named): Path<Named>) -> Answer {
    let (_, _, row) = found(&state, named).await?;
    Ok(Json(row))
}

pub(super) async fn unbind(state: Shared, Path(named): Path<Named>) -> Answer<StatusCode> {
    let (vhost, target, row) = found(&state, named).await?;
    let text = |name: &str| row[name].as_str().unwrap_or_default();
    let with = engine_values(row["arguments"].as_object().into_iter().flatten());
    let binding = declaration::binding(&vhost, text("source"), target, text("routing_key"), &with)?;
    carry_out(&state, &vhost, Request::Unbind(binding)).await?;
    Ok(StatusCode::NO_CONTENT)
}
