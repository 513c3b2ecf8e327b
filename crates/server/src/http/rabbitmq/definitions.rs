//! Definitions, whole: what RabbitMQ exports into a file.

use super::super::audit::Shared;
use super::access;
use super::answer::Answer;
use super::broker::{PRODUCT, RABBITMQ_VERSION, VERSION};
use super::list::check_vhost;
use super::lists;
use super::parameters;
use super::policies;
use super::rates::Rates;
use super::rows::Which;
use super::topic_permissions;
use angarium_engine::PolicyKind;
use axum::extract::Path;
use axum::{Extension, Json};
use serde_json::{Map, Value, json};
use std::collections::HashSet;

/// The fields of rows that a file has.
fn fields(rows: Vec<Value>, place: &[&str], names: &[&str]) -> Value {
    let cut = |mut row: Value| {
        let names = place.iter().chain(names);
        let kept = names.map(|name| ((*name).to_owned(), row[*name].take()));
        Value::from(kept.collect::<Map<String, Value>>())
    };
    rows.into_iter().map(cut).collect()
}

/// What is in virtual hosts; `place`: the fields that say in which.
async fn inside(
    state: &Shared,
    rates: &Rates,
    which: &Which,
    place: &[&str],
) -> Answer<Map<String, Value>> {
    let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let mut exchanges = lists::exchange_rows(state, which).await?;
    exchanges.retain(|row| {
        let name = text(row, "name");
        !name.is_empty() && !name.starts_with("amq.")
    });
    let mut queues = lists::queue_rows(state, rates, which).await?;
    queues.retain(|row| row["exclusive"] == false);
    let kept: HashSet<(String, String)> =
        queues.iter().map(|row| (text(row, "vhost"), text(row, "name"))).collect();
    let mut bindings = lists::binding_rows(state, which).await?;
    bindings.retain(|row| {
        let end = (text(row, "vhost"), text(row, "destination"));
        row["source"] != "" && (row["destination_type"] != "queue" || kept.contains(&end))
    });
    let queue = ["name", "durable", "auto_delete", "type", "arguments"];
    let exchange = ["name", "type", "durable", "auto_delete", "internal", "arguments"];
    let binding = ["source", "destination", "destination_type", "routing_key", "arguments"];
    let within = which.vhost.as_deref();
    let policy = ["name", "pattern", "apply-to", "priority", "definition"];
    let policies = policies::shown(state, PolicyKind::Ordinary, within).await?;
    let all = [
        ("policies", fields(policies, place, &policy)),
        ("queues", fields(queues, place, &queue)),
        ("exchanges", fields(exchanges, place, &exchange)),
        ("bindings", fields(bindings, place, &binding)),
    ];
    Ok(all.into_iter().map(|(name, rows)| (name.to_owned(), rows)).collect())
}

fn with_head(mut rest: Map<String, Value>) -> Json<Value> {
    for (name, version) in [
        ("rabbit_version", RABBITMQ_VERSION),
        ("rabbitmq_version", RABBITMQ_VERSION),
        ("product_name", PRODUCT),
        ("product_version", VERSION),
    ] {
        rest.insert(name.to_owned(), version.into());
    }
    Json(rest.into())
}

pub(super) async fn export(state: Shared, Extension(rates): Extension<Rates>) -> Answer {
    let mut all = inside(&state, &rates, &Which::default(), &["vhost"]).await?;
    let mut put = |name: &str, rows: Value| drop(all.insert(name.to_owned(), rows));
    let user = ["name", "password_hash", "hashing_algorithm", "tags", "limits"];
    put("users", fields(access::user_rows(&state).await?, &[], &user));
    put("vhosts", fields(access::vhost_rows(&state).await?, &[], &["name"]));
    put("permissions", access::permission_rows(&state).await?.into());
    put("topic_permissions", topic_permissions::rows(&state).await?.into());
    put("global_parameters", json!([]));
    put("parameters", parameters::rows(&state, None).await?.into());
    Ok(with_head(all))
}

pub(super) async fn export_vhost(
    state: Shared,
    Extension(rates): Extension<Rates>,
    Path(vhost): Path<String>,
) -> Answer {
    check_vhost(&state, &vhost).await?;
    let mut parameters = parameters::rows(&state, Some(&vhost)).await?;
    for parameter in parameters.iter_mut().filter_map(Value::as_object_mut) {
        parameter.remove("vhost");
    }
    let which = Which { vhost: Some(vhost), name: None };
    let mut all = inside(&state, &rates, &which, &[]).await?;
    all.insert("parameters".to_owned(), parameters.into());
    Ok(with_head(all))
}
