//! The control thread: listeners of the HTTP side, and the limits each connection has.

use super::api;
use super::auth::{self, Caller};
use super::hosts;
use super::mailboxes::{Mailboxes, State};
use super::metrics;
use super::nats_monitor::{self, Monitor};
use super::operations;
use super::rabbitmq::{self, Rates};
use super::slots::{Slot, Slots};
use crate::settings::Settings;
use crate::threads;
use angarium_journal::State as Journal;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use hyper::body::Body as _;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::net::sockopt;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};

/// Largest body of a request.
pub(crate) const BODY_BYTES_MAX: usize = 64 << 10;
/// Connections at once over TCP, and as many by the Unix socket: clients over TCP cannot take the room of the
/// operator.
pub const CONNECTIONS_MAX: usize = 256;
/// How long what is sent to a client may wait for it to take anything.
const SEND_TIMEOUT_MILLIS: u32 = 30_000;
/// How long a client may take to send a request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// The same of one that carries many definitions: each is flushed.
const LARGE_REQUEST_TIMEOUT: Duration = Duration::from_secs(600);
const TOO_LONG: &str = "the request took too long: whether it was carried out is unknown\n";
/// How long the rest of a body is discarded that was refused, and how much of it: a client that still sends
/// learns why only if it is read from.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(1);
const DISCARD_BYTES_MAX: u64 = 1 << 20;
/// Accepting rests this long after an error such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Where HTTP is served; sockets are bound and non-blocking.
#[derive(Debug)]
pub struct Endpoints {
    /// For administrators, with their passwords.
    pub tcp: Option<std::net::TcpListener>,
    /// For NATS's monitoring.
    pub nats_monitoring: Option<std::net::TcpListener>,
    /// For the operator, who may open the file.
    pub unix: Option<std::os::unix::net::UnixListener>,
    /// Connections at once to each; further ones take the room of those that stall.
    pub connections_max: usize,
}

/// Takes over the definitions of the file that a setting names, if one does. Errors: there is none, or it has
/// none; what single ones are refused for is logged.
pub fn take_definitions(mailboxes: Mailboxes, settings: &Settings) -> Result<(), String> {
    let Some(file) = &settings.definitions_file else { return Ok(()) };
    let state = State { mailboxes, settings: Arc::new(settings.clone()) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("cannot take definitions over: {error}"))?;
    runtime.block_on(rabbitmq::take_file(state, file))
}

/// Serves on a thread of its own until the process ends.
pub fn start(endpoints: Endpoints, mailboxes: Mailboxes, settings: Settings) -> Result<(), String> {
    let state = State { mailboxes, settings: Arc::new(settings) };
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
    let slots = || Slots::new(endpoints.connections_max);
    let rates = Rates::new();
    tasks.spawn(rates.clone().measure(state.mailboxes.clone()));
    let monitor = Arc::new(Monitor::new());
    let monitoring = nats_monitor_router(state.clone(), monitor);
    for (socket, router) in [
        (endpoints.tcp, router(state.clone(), rates.clone())),
        (endpoints.nats_monitoring, monitoring),
    ] {
        let tcp = socket.map(TcpListener::from_std);
        let Some(listener) = opened(tcp, "cannot serve HTTP") else { continue };
        let accept = move |cx: &mut Context<'_>| {
            listener.poll_accept(cx).map_ok(|(stream, address)| {
                // A connection without this limit works too.
                let _ = sockopt::set_tcp_user_timeout(&stream, SEND_TIMEOUT_MILLIS);
                (stream, Caller::Remote(address.ip().to_canonical()))
            })
        };
        tasks.spawn(serve_each(accept, slots(), router));
    }
    let unix = endpoints.unix.map(UnixListener::from_std);
    if let Some(listener) = opened(unix, "cannot serve administration") {
        let accept = move |cx: &mut Context<'_>| {
            listener.poll_accept(cx).map_ok(|(stream, _)| {
                let uid = stream.peer_cred().map(|peer| peer.uid()).ok();
                (stream, Caller::Operator { uid })
            })
        };
        tasks.spawn(serve_each(accept, slots(), router(state, rates)));
    }
    while tasks.join_next().await.is_some() {}
}

fn opened<L>(listener: Option<io::Result<L>>, otherwise: &str) -> Option<L> {
    listener?.inspect_err(|error| tracing::error!(%error, "{otherwise}")).ok()
}

/// Serves clients of one listener.
async fn serve_each<S>(
    mut accept: impl FnMut(&mut Context<'_>) -> Poll<io::Result<(S, Caller)>>,
    slots: Slots,
    router: Router,
) where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    loop {
        match std::future::poll_fn(&mut accept).await {
            Ok((stream, caller)) => {
                let slot = Arc::new(slots.take(caller.address()));
                let served = connection(stream, router.clone(), caller, slot.clone());
                slot.runs(tokio::spawn(served).abort_handle());
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn connection<S>(stream: S, router: Router, caller: Caller, slot: Arc<Slot>)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let router = router.layer(Extension(caller)).layer(Extension(slot));
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .without_shutdown()
        .await;
    match served {
        Ok(parts) => end(parts.io.into_inner()).await,
        Err(error) => tracing::debug!(%error, "HTTP connection"),
    }
}

/// Ends a connection so that the client reads the last answer, even if it still sends.
async fn end(mut stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin) {
    let discarded = async {
        stream.shutdown().await?;
        tokio::io::copy(&mut stream.take(DISCARD_BYTES_MAX), &mut tokio::io::sink()).await
    };
    // The client may have gone, or sends for ever.
    let _ = tokio::time::timeout(DISCARD_TIMEOUT, discarded).await;
}

/// Ends a request that takes too long, its body included.
async fn limit_time(
    Extension(slot): Extension<Arc<Slot>>,
    request: Request,
    next: Next,
) -> Response {
    let is_large = rabbitmq::takes_large_body(request.uri().path());
    let most = if is_large { LARGE_REQUEST_TIMEOUT } else { REQUEST_TIMEOUT };
    let response = match tokio::time::timeout(most, next.run(request)).await {
        Ok(response) => response,
        Err(_) => (StatusCode::REQUEST_TIMEOUT, TOO_LONG).into_response(),
    };
    slot.answered();
    response
}

/// Refuses a body whose announced length is too large before any of it is read.
async fn limit_body(request: Request, next: Next) -> Response {
    let announced = request.body().size_hint().lower();
    let is_large = rabbitmq::takes_large_body(request.uri().path());
    let most = if is_large { rabbitmq::LARGE_BODY_BYTES_MAX } else { BODY_BYTES_MAX };
    if announced <= most as u64 {
        return next.run(request).await;
    }
    let text = format!("a body of {announced} bytes is too large: at most {most}");
    let refused = api::Failure::new(StatusCode::PAYLOAD_TOO_LARGE, text);
    ([(header::CONNECTION, "close")], refused).into_response()
}

/// Every address of NATS's monitoring.
fn nats_monitor_router(state: State, monitor: Arc<Monitor>) -> Router {
    nats_monitor::guarded()
        .fallback(|| async { (StatusCode::NOT_FOUND, "no such address; / lists what is here\n") })
        .layer(middleware::from_fn_with_state(state.clone(), hosts::check))
        // Monitoring may call the process by any name: this answer says nothing about clients.
        .merge(nats_monitor::health())
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(middleware::from_fn(limit_body))
        .layer(middleware::from_fn(limit_time))
        .layer(Extension(monitor))
        .with_state(state)
}

/// Every address served.
fn router(state: State, rates: Rates) -> Router {
    let authorize = middleware::from_fn_with_state(state.clone(), auth::authorize);
    let administration = operations::routes().layer(authorize);
    let none = || async { (StatusCode::NOT_FOUND, "no such address; / lists what is here\n") };
    Router::new()
        .route("/", get(|| async { WELCOME }))
        .route("/metrics", get(metrics::metrics))
        .route("/metrics/per-object", get(metrics::per_object))
        .nest(operations::PREFIX, administration)
        .nest(rabbitmq::PREFIX, rabbitmq::routes(state.clone()).layer(Extension(rates)))
        .fallback(none)
        .layer(middleware::from_fn_with_state(state.clone(), hosts::check))
        // Monitoring may call the process by any name: these answers say nothing about clients.
        .route("/health", get(|| async { "ok\n" }))
        .route("/ready", get(ready))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(middleware::from_fn(limit_body))
        .layer(middleware::from_fn(limit_time))
        .with_state(state)
}

const WELCOME: &str = "Angarium\n
/health   the process lives
/ready    it takes clients and its journal stores
/metrics  for Prometheus; names of queues to whom the setting metrics-access says
/v1/...   administration: overview, vhosts, users, permissions, exchanges, queues, bindings,
          subscriptions, sessions, connections; HTTP basic authentication as an administrator;
          /v1/openapi.json describes it
/api/...  the same for RabbitMQ's tools
";

async fn ready(state: axum::extract::State<State>) -> (StatusCode, String) {
    let home = state.mailboxes.home();
    let answer = home.ask(|shard| (shard.is_serving(), shard.node.journal().state().clone()));
    match answer.await {
        Ok((true, Journal::Ready)) => (StatusCode::OK, "ready\n".to_owned()),
        Ok((true, Journal::Full)) => (StatusCode::SERVICE_UNAVAILABLE, "the disk is full\n".into()),
        Ok((true, Journal::Failed(why))) => {
            (StatusCode::SERVICE_UNAVAILABLE, format!("the disk failed: {why}\n"))
        }
        Ok((false, _)) | Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "shutting down\n".to_owned()),
    }
}
