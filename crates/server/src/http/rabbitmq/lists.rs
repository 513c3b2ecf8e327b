//! RabbitMQ's lists of queues, exchanges and bindings.

use super::super::audit::Shared;
use super::answer::{Answer, Refused};
use super::client_lists::consumer_rows;
use super::list::{Pair, Parameters, exchange_name, home_rows, page, within};
use super::rates::Rates;
use super::rows::{self, Which};
use axum::extract::Path;
use axum::{Extension, Json};
use serde_json::Value;

fn one(vhost: String, name: String) -> Which {
    Which { vhost: Some(vhost), name: Some(name) }
}

/// The only one of these rows.
fn only(rows: Vec<Value>, what: &str, which: &Which) -> Answer<Value> {
    let Which { vhost, name } = which;
    let (vhost, name) = (vhost.as_deref().unwrap_or_default(), name.as_deref().unwrap_or_default());
    let none = || Refused::none(format!("no {what} '{name}' in virtual host '{vhost}'"));
    rows.into_iter().next().ok_or_else(none)
}

/// Sorts rows by virtual host and name.
fn sorted(mut rows: Vec<Value>) -> Vec<Value> {
    rows.sort_by_cached_key(|row| ["vhost", "name"].map(|it| row[it].as_str().map(str::to_owned)));
    rows
}

pub(super) async fn queue_rows(state: &Shared, rates: &Rates, which: &Which) -> Answer<Vec<Value>> {
    let found = home_rows(state, which, rows::queues).await?;
    Ok(sorted(found.into_iter().map(|row| row.finished(rates)).collect()))
}

pub(super) async fn queues(
    state: Shared,
    Extension(rates): Extension<Rates>,
    vhost: Option<Path<String>>,
    query: Parameters,
) -> Answer {
    let which = within(&state, vhost).await?;
    page(&query, queue_rows(&state, &rates, &which).await?)
}

pub(super) async fn queue(
    state: Shared,
    Extension(rates): Extension<Rates>,
    Path((vhost, name)): Pair,
) -> Answer {
    let which = one(vhost, name);
    let mut row = only(queue_rows(&state, &rates, &which).await?, "queue", &which)?;
    row["consumer_details"] = consumer_rows(&state, &which).await?.into();
    Ok(Json(row))
}

pub(super) async fn exchange_rows(state: &Shared, which: &Which) -> Answer<Vec<Value>> {
    Ok(sorted(home_rows(state, which, rows::exchanges).await?))
}

pub(super) async fn exchanges(
    state: Shared,
    vhost: Option<Path<String>>,
    query: Parameters,
) -> Answer {
    let which = within(&state, vhost).await?;
    page(&query, exchange_rows(&state, &which).await?)
}

pub(super) async fn exchange(state: Shared, Path((vhost, name)): Pair) -> Answer {
    let which = one(vhost, exchange_name(name));
    Ok(Json(only(exchange_rows(&state, &which).await?, "exchange", &which)?))
}

/// Bindings of a virtual host, or of all; those of default exchanges too.
pub(super) async fn binding_rows(state: &Shared, which: &Which) -> Answer<Vec<Value>> {
    let mut found = home_rows(state, which, rows::bindings).await?;
    found.extend(home_rows(state, which, rows::default_bindings).await?);
    Ok(found)
}

pub(super) async fn bindings(
    state: Shared,
    vhost: Option<Path<String>>,
    query: Parameters,
) -> Answer {
    let which = within(&state, vhost).await?;
    page(&query, binding_rows(&state, &which).await?)
}

/// One end of bindings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End<'a> {
    Source(&'a str),
    Queue(&'a str),
    Exchange(&'a str),
}

impl End<'_> {
    fn is_of(self, binding: &Value) -> bool {
        let leads_to = |name: &str, kind: &str| {
            binding["destination"] == name && binding["destination_type"] == kind
        };
        match self {
            End::Source(name) => binding["source"] == name,
            End::Queue(name) => leads_to(name, "queue"),
            End::Exchange(name) => leads_to(name, "exchange"),
        }
    }
}

/// Bindings of a virtual host that have all of these ends.
pub(super) async fn between(state: &Shared, vhost: String, ends: &[End<'_>]) -> Answer<Vec<Value>> {
    let which = within(state, Some(Path(vhost))).await?;
    let mut found = binding_rows(state, &which).await?;
    found.retain(|binding| ends.iter().all(|end| end.is_of(binding)));
    Ok(found)
}

pub(super) async fn queue_bindings(
    state: Shared,
    Path((vhost, name)): Pair,
    query: Parameters,
) -> Answer {
    page(&query, between(&state, vhost, &[End::Queue(&name)]).await?)
}

pub(super) async fn from_exchange(
    state: Shared,
    Path((vhost, name)): Pair,
    query: Parameters,
) -> Answer {
    let name = exchange_name(name);
    page(&query, between(&state, vhost, &[End::Source(&name)]).await?)
}

pub(super) async fn to_exchange(
    state: Shared,
    Path((vhost, name)): Pair,
    query: Parameters,
) -> Answer {
    let name = exchange_name(name);
    page(&query, between(&state, vhost, &[End::Exchange(&name)]).await?)
}
