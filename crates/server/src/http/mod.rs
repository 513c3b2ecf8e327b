//! HTTP: health, readiness, metrics and the administration API, on one control thread.
//!
//! Asks the shards by mailbox and never touches what they own.

mod api;
mod auth;
mod flow_metrics;
mod listings;
mod mailboxes;
mod metrics;
mod request_types;
mod serve;
mod subjects;
mod views;
mod warnings;

pub use crate::http::mailboxes::Mailboxes;
pub use serve::{Endpoints, start};

use axum::extract::DefaultBodyLimit;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Router, http::StatusCode, middleware};

/// Largest body of a request.
pub(crate) const BODY_BYTES_MAX: usize = 64 << 10;

/// What handlers share.
#[derive(Clone, Debug)]
pub(crate) struct State {
    mailboxes: Mailboxes,
    /// Users that are let in from this host only.
    loopback_users: std::sync::Arc<Vec<String>>,
}

/// Every address served.
fn router(state: State) -> Router {
    let authorize = middleware::from_fn_with_state(state.clone(), auth::authorize);
    let administration = api::routes().layer(authorize);
    Router::new()
        .route("/", get(|| async { WELCOME }))
        .route("/health", get(|| async { "ok\n" }))
        .route("/ready", get(ready))
        .route("/metrics", get(metrics::metrics))
        .nest("/api", administration)
        .fallback(|| async { (StatusCode::NOT_FOUND, "no such address; / lists what is here\n") })
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(middleware::from_fn(serve::limit_time))
        .with_state(state)
}

const WELCOME: &str = "Angarium\n
/health   the process lives
/ready    it takes clients and its journal stores
/metrics  for Prometheus
/api/...  administration: overview, vhosts, users, permissions, exchanges, queues, bindings,
          connections; HTTP basic authentication as an administrator
";

async fn ready(
    axum::extract::State(state): axum::extract::State<State>,
) -> axum::response::Response {
    let answer = state
        .mailboxes
        .home()
        .ask(|shard| (shard.is_serving(), shard.node().journal().state().clone()));
    let (status, text) = match answer.await {
        Ok((true, angarium_journal::State::Ready)) => (StatusCode::OK, "ready\n".to_owned()),
        Ok((true, state)) => (StatusCode::SERVICE_UNAVAILABLE, format!("journal: {state:?}\n")),
        Ok((false, _)) | Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "shutting down\n".to_owned()),
    };
    (status, text).into_response()
}
