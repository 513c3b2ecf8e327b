//! Whether the broker is healthy, in RabbitMQ's checks: 200, or 503 with the reason.

use super::super::audit::Shared;
use super::answer::{Answer, Refused};
use super::broker::{alarms, listeners, node_name};
use angarium_journal::State as Journal;
use axum::Json;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

fn well() -> Response {
    Json(json!({ "status": "ok" })).into_response()
}

fn unwell(reason: &str, more: Value) -> Response {
    let mut body = json!({ "status": "failed", "reason": reason });
    if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
        body.extend(more);
    }
    (StatusCode::SERVICE_UNAVAILABLE, Json(body)).into_response()
}

pub(super) async fn check_alarms(state: Shared) -> Answer<Response> {
    let (alarms, _) = alarms(&state).await?;
    if alarms.is_empty() {
        return Ok(well());
    }
    let node = node_name();
    let alarm = |name| json!({ "node": node, "resource": name });
    let alarms: Vec<Value> = alarms.into_iter().map(alarm).collect();
    Ok(unwell("There are alarms in effect in the cluster", json!({ "alarms": alarms })))
}

pub(super) async fn check_vhosts(state: Shared) -> Answer<Response> {
    let serves = state.mailboxes.home().ask(|shard| shard.is_serving()).await?;
    Ok(if serves { well() } else { unwell("the broker is shutting down", json!({})) })
}

/// One node has no quorum to lose.
pub(super) async fn check_quorum() -> Response {
    well()
}

pub(super) async fn check_port(state: Shared, Path(port): Path<u16>) -> Response {
    let listeners = listeners(&state);
    if listeners.iter().any(|it| it["port"] == port) {
        return Json(json!({ "status": "ok", "port": port })).into_response();
    }
    let ports: Vec<&Value> = listeners.iter().map(|it| &it["port"]).collect();
    unwell("No active listener", json!({ "missing": port, "ports": ports }))
}

pub(super) async fn check_protocol(state: Shared, Path(name): Path<String>) -> Response {
    let listeners = listeners(&state);
    let asked = match name.as_str() {
        "amqp091" | "amqp10" => "amqp",
        "amqps" => "amqp/ssl",
        "mqtts" => "mqtt/ssl",
        "stomps" => "stomp/ssl",
        name => name,
    };
    if listeners.iter().any(|it| it["protocol"] == asked) {
        return Json(json!({ "status": "ok", "protocol": name })).into_response();
    }
    let protocols: Vec<&Value> = listeners.iter().map(|it| &it["protocol"]).collect();
    unwell("No active listener", json!({ "missing": [name], "protocols": protocols }))
}

/// The certificate of TLS listeners, if there are any, is good for so long.
pub(super) async fn check_certificate(
    state: Shared,
    Path((count, unit)): Path<(u32, String)>,
) -> Answer<Response> {
    let days = match unit.as_str() {
        "days" => 1,
        "weeks" => 7,
        "months" => 31,
        "years" => 366,
        _ => return Err(Refused::bad(format!("'{unit}' is none of days, weeks, months, years"))),
    };
    let Some(file) = state.settings.tls_certificate.clone() else { return Ok(well()) };
    let ends = tokio::task::spawn_blocking(move || certificate_ends(&file)).await;
    let ends = ends.map_err(|error| Refused::bad(error.to_string()))??;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let by = now.saturating_add(u64::from(count) * days * 86_400);
    let is_good = u64::try_from(ends).is_ok_and(|ends| ends > by);
    let reason = "the certificate of TLS listeners expires before";
    Ok(if is_good { well() } else { unwell(reason, json!({ "expired": [] })) })
}

/// When the first certificate of a file is no longer valid, in seconds of the Unix epoch.
fn certificate_ends(file: &std::path::Path) -> Result<i64, String> {
    let bytes = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let (_, pem) = x509_parser::pem::parse_x509_pem(&bytes).map_err(|error| error.to_string())?;
    let certificate = pem.parse_x509().map_err(|error| error.to_string())?;
    Ok(certificate.validity().not_after.timestamp())
}

/// The journal stores, and the virtual host is there.
pub(super) async fn aliveness(state: Shared, Path(vhost): Path<String>) -> Answer<Response> {
    let named = vhost.clone();
    let look = move |shard: &mut crate::reactor::Shard| {
        let is_there = shard.node.engine().list_vhosts().any(|it| it.name == named);
        (is_there, *shard.node.journal().state() == Journal::Ready)
    };
    match state.mailboxes.home().ask(look).await? {
        (false, _) => Err(Refused::none(format!("no virtual host '{vhost}'"))),
        (true, true) => Ok(well()),
        (true, false) => Ok(unwell("the journal cannot store", json!({}))),
    }
}
