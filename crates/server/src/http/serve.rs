//! The control thread: listeners of the HTTP side, and the limits each connection has.

use super::api;
use super::auth::{self, Caller};
use super::mailboxes::{Mailboxes, State};
use super::metrics;
use crate::threads;
use angarium_journal::State as Journal;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::net::sockopt;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;

/// Largest body of a request.
pub(crate) const BODY_BYTES_MAX: usize = 64 << 10;
/// Connections at once over TCP, and as many by the Unix socket: clients over TCP cannot take the room of the
/// operator.
const CONNECTIONS_MAX: usize = 256;
/// How long what is sent to a client may wait for it to take anything.
const SEND_TIMEOUT_MILLIS: u32 = 30_000;
/// How long a client may take to send a request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const TOO_LONG: &str = "the request took too long: whether it was carried out is unknown\n";
/// Accepting rests this long after an error such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Where HTTP is served; sockets are bound and non-blocking.
#[derive(Debug, Default)]
pub struct Endpoints {
    /// For administrators, with their passwords.
    pub tcp: Option<std::net::TcpListener>,
    /// For the operator, who may open the file.
    pub unix: Option<std::os::unix::net::UnixListener>,
}

/// Serves on a thread of its own until the process ends.
pub fn start(
    endpoints: Endpoints,
    mailboxes: Mailboxes,
    loopback_users: Vec<String>,
) -> Result<(), String> {
    let state = State { mailboxes, loopback_users: Arc::new(loopback_users) };
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        match runtime {
            Ok(runtime) => runtime.block_on(serve(endpoints, state)),
            Err(error) => tracing::error!(%error, "cannot start the control thread"),
        }
    };
    threads::spawn("control", run).map(drop)
}

async fn serve(endpoints: Endpoints, state: State) {
    let mut tasks = tokio::task::JoinSet::new();
    let tcp = endpoints.tcp.map(TcpListener::from_std);
    if let Some(listener) = opened(tcp, "cannot serve HTTP") {
        let accept = move |cx: &mut Context<'_>| {
            listener.poll_accept(cx).map_ok(|(stream, address)| {
                // A connection without this limit works too.
                let _ = sockopt::set_tcp_user_timeout(&stream, SEND_TIMEOUT_MILLIS);
                (stream, Caller::Remote(address.ip().to_canonical()))
            })
        };
        tasks.spawn(serve_each(accept, state.clone()));
    }
    let unix = endpoints.unix.map(UnixListener::from_std);
    if let Some(listener) = opened(unix, "cannot serve administration") {
        let accept = move |cx: &mut Context<'_>| {
            listener.poll_accept(cx).map_ok(|(stream, _)| (stream, Caller::Operator))
        };
        tasks.spawn(serve_each(accept, state));
    }
    while tasks.join_next().await.is_some() {}
}

fn opened<L>(listener: Option<io::Result<L>>, otherwise: &str) -> Option<L> {
    listener?.inspect_err(|error| tracing::error!(%error, "{otherwise}")).ok()
}

/// Serves clients of one listener.
async fn serve_each<S>(
    mut accept: impl FnMut(&mut Context<'_>) -> Poll<io::Result<(S, Caller)>>,
    state: State,
) where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let permit = Arc::clone(&room).acquire_owned().await;
        match std::future::poll_fn(&mut accept).await {
            Ok((stream, caller)) => {
                tokio::spawn(connection(TokioIo::new(stream), state.clone(), caller, permit));
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn connection<S, P>(stream: TokioIo<S>, state: State, caller: Caller, permit: P)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    P: Send + 'static,
{
    let service = TowerToHyperService::new(router(state).layer(Extension(caller)));
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(stream, service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "HTTP connection");
    }
    drop(permit);
}

/// Ends a request that takes too long, its body included.
async fn limit_time(request: Request, next: Next) -> Response {
    match tokio::time::timeout(REQUEST_TIMEOUT, next.run(request)).await {
        Ok(response) => response,
        Err(_) => (StatusCode::REQUEST_TIMEOUT, TOO_LONG).into_response(),
    }
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
        .layer(middleware::from_fn(limit_time))
        .with_state(state)
}

const WELCOME: &str = "Angarium\n
/health   the process lives
/ready    it takes clients and its journal stores
/metrics  for Prometheus
/api/...  administration: overview, vhosts, users, permissions, exchanges, queues, bindings,
          connections; HTTP basic authentication as an administrator
";

async fn ready(state: axum::extract::State<State>) -> (StatusCode, String) {
    let home = state.mailboxes.home();
    let answer = home.ask(|shard| (shard.is_serving(), shard.node.journal().state().clone()));
    match answer.await {
        Ok((true, Journal::Ready)) => (StatusCode::OK, "ready\n".to_owned()),
        Ok((true, state)) => (StatusCode::SERVICE_UNAVAILABLE, format!("journal: {state:?}\n")),
        Ok((false, _)) | Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "shutting down\n".to_owned()),
    }
}
