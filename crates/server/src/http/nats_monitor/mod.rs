//! NATS's monitoring port: what nats-server says by HTTP, with its names and parameters, so that its tools
//! read it.
//!
//! Totals and names are shown to those whom the setting `metrics-access` shows metrics and names of queues.

mod accounts;
mod answers;
mod connz;
mod options;
mod subsz;
mod varz;

use super::mailboxes::State;
use angarium_journal::State as Journal;
use answers::{Answer, Shared, server};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Json, Router};
use serde_json::json;
use std::sync::Arc;

pub(super) use answers::Monitor;

const WELCOME: &str = "NATS monitoring of Angarium\n
/varz     the broker
/connz    its connections
/subsz    its subscriptions
/accstatz its virtual hosts, /accountz one of them
/healthz  whether it serves
";

/// Every address that says something of clients or the broker.
pub(super) fn guarded() -> Router<State> {
    Router::new()
        .route("/", get(|| async { WELCOME }))
        .route("/varz", get(varz::varz))
        .route("/connz", get(connz::connz))
        .route("/subsz", get(subsz::subsz))
        .route("/subscriptionsz", get(subsz::subsz))
        .route("/accstatz", get(accounts::accstatz))
        .route("/accountz", get(accounts::accountz))
        .route("/routez", get(|state: Shared| none_of(state, "routes")))
        .route("/leafz", get(|state: Shared| none_of(state, "leafs")))
        .route("/gatewayz", get(|state: Shared| none_of(state, "gateways")))
        .layer(middleware::from_fn(count))
}

/// The address that says whether it serves.
pub(super) fn health() -> Router<State> {
    Router::new().route("/healthz", get(healthz)).layer(middleware::from_fn(count))
}

async fn count(
    Extension(monitor): Extension<Arc<Monitor>>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path().to_owned();
    let response = next.run(request).await;
    if response.status() != StatusCode::NOT_FOUND {
        monitor.count(&path);
    }
    response
}

/// What there is none of here.
async fn none_of(state: Shared, what: &'static str) -> Answer {
    let server = server(&state).await?;
    Ok(Json(match what {
        "gateways" => json!({
            "server_id": server.id(), "now": server.date(),
            "outbound_gateways": {}, "inbound_gateways": {},
        }),
        "leafs" => json!({
            "server_id": server.id(), "now": server.date(), "leafnodes": 0, "leafs": [],
        }),
        _ => json!({
            "server_id": server.id(), "server_name": server.settings.server_name,
            "now": server.date(), "num_routes": 0, "routes": [],
        }),
    }))
}

async fn healthz(state: Shared) -> Response {
    let home = state.mailboxes.home();
    let answer = home.ask(|shard| (shard.is_serving(), shard.node.journal().state().clone())).await;
    let error = match answer {
        Ok((true, Journal::Ready)) => return Json(json!({ "status": "ok" })).into_response(),
        Ok((true, _)) => "the journal cannot store",
        Ok((false, _)) | Err(_) => "the broker is shutting down",
    };
    let body = Json(json!({ "status": "unavailable", "error": error }));
    (StatusCode::SERVICE_UNAVAILABLE, body).into_response()
}
