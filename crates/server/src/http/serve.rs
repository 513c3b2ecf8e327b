//! The control thread: listeners of the HTTP side, and the limits each connection has.

use super::{Mailboxes, State, router};
use crate::http::auth::Caller;
use axum::Extension;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::net::sockopt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Connections at once over TCP, and as many by the Unix socket: those who may open its file find room
/// whatever others do.
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
    std::thread::Builder::new()
        .name("control".into())
        .spawn(run)
        .map_err(|error| format!("cannot start a thread: {error}"))?;
    Ok(())
}

async fn serve(endpoints: Endpoints, state: State) {
    let mut tasks = tokio::task::JoinSet::new();
    if let Some(listener) = endpoints.tcp {
        tasks.spawn(serve_tcp(listener, state.clone()));
    }
    if let Some(listener) = endpoints.unix {
        tasks.spawn(serve_unix(listener, state));
    }
    while tasks.join_next().await.is_some() {}
}

async fn serve_tcp(listener: std::net::TcpListener, state: State) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "cannot serve HTTP"),
    };
    loop {
        let permit = Arc::clone(&room).acquire_owned().await;
        match listener.accept().await {
            Ok((stream, address)) => {
                let caller = Caller::Remote(address.ip().to_canonical());
                // Where the system has no such limit the connection is as good as any other.
                let _ = sockopt::set_tcp_user_timeout(&stream, SEND_TIMEOUT_MILLIS);
                tokio::spawn(connection(TokioIo::new(stream), state.clone(), caller, permit));
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn serve_unix(listener: std::os::unix::net::UnixListener, state: State) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let listener = match tokio::net::UnixListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "cannot serve administration"),
    };
    loop {
        let permit = Arc::clone(&room).acquire_owned().await;
        match listener.accept().await {
            Ok((stream, _)) => {
                let caller = Caller::Operator;
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
pub(super) async fn limit_time(request: Request, next: Next) -> Response {
    match tokio::time::timeout(REQUEST_TIMEOUT, next.run(request)).await {
        Ok(response) => response,
        Err(_) => (StatusCode::REQUEST_TIMEOUT, TOO_LONG).into_response(),
    }
}
