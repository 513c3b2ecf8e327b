//! The administration API: JSON in, one request to the engine, JSON out.

use super::State;
use super::listings;
use super::subjects::SubjectsBody;
use super::views;
use crate::authenticate::{self, NO_PASSWORD};
use crate::http::request_types::{
    BindingBody, ExchangeBody, PermissionBody, QueueBody, QuotaBody, UserBody,
};
use crate::http::warnings;
use crate::http::warnings::Note;
use crate::reactor::{Gone, Shard};
use angarium_engine::{
    ExchangeDeclaration, QueueDeclaration, Refusal, RefusalKind, Reply, Request,
};
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, put};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

/// A request that was not carried out.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) status: StatusCode,
    text: String,
}

impl Failure {
    pub(super) fn new(status: StatusCode, text: impl Into<String>) -> Failure {
        Failure { status, text: text.into() }
    }

    pub(super) fn gone(_: Gone) -> Failure {
        Failure::new(StatusCode::SERVICE_UNAVAILABLE, "the broker is shutting down")
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        let status = match refusal.kind {
            RefusalKind::NotFound => StatusCode::NOT_FOUND,
            RefusalKind::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
            RefusalKind::AccessRefused | RefusalKind::NotAllowed => StatusCode::FORBIDDEN,
            RefusalKind::ResourceLocked => StatusCode::LOCKED,
            RefusalKind::LimitExceeded => StatusCode::TOO_MANY_REQUESTS,
            RefusalKind::NotImplemented => StatusCode::NOT_IMPLEMENTED,
            RefusalKind::StorageUnavailable => StatusCode::SERVICE_UNAVAILABLE,
            RefusalKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Failure::new(status, refusal.text)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.status, Json(json!({ "error": self.text }))).into_response()
    }
}

type Answer = Result<Json<Value>, Failure>;
type Shared = axum::extract::State<State>;

/// A body that is refused in our own words.
struct Body<T>(T);

impl<T: serde::de::DeserializeOwned> axum::extract::FromRequest<State> for Body<T> {
    type Rejection = Failure;

    async fn from_request(
        request: axum::extract::Request,
        state: &State,
    ) -> Result<Self, Self::Rejection> {
        let bytes = axum::body::Bytes::from_request(request, state)
            .await
            .map_err(|error| Failure::new(StatusCode::BAD_REQUEST, error.body_text()))?;
        serde_json::from_slice(&bytes)
            .map(Body)
            .map_err(|error| Failure::new(StatusCode::BAD_REQUEST, format!("body: {error}")))
    }
}

/// Every address below `/api`.
pub(super) fn routes() -> Router<State> {
    Router::new()
        .route("/overview", get(overview))
        .route("/vhosts", get(vhosts))
        .route("/vhosts/{vhost}", put(create_vhost).delete(delete_vhost))
        .route("/users", get(users))
        .route("/users/{user}", put(put_user).delete(delete_user))
        .route("/users/{user}/quota", put(set_quota))
        .route("/permissions", get(permissions))
        .route("/permissions/{vhost}/{user}", put(set_permissions).delete(clear_permissions))
        .route("/permissions/{vhost}/{user}/subjects", put(set_subjects))
        .route("/exchanges", get(exchanges))
        .route("/exchanges/{vhost}/{name}", put(declare_exchange).delete(delete_exchange))
        .route("/queues", get(queues))
        .route("/queues/{vhost}/{name}", put(declare_queue).delete(delete_queue))
        .route("/queues/{vhost}/{name}/messages", delete(purge_queue))
        .route("/bindings", get(bindings))
        .route("/bindings/{vhost}", put(bind).delete(unbind))
        .route("/connections", get(connections))
        .route("/connections/{id}", delete(close_connection))
        .fallback(|| async { Failure::new(StatusCode::NOT_FOUND, "no such address") })
}

/// Restricts a listing.
#[derive(Clone, Debug, Deserialize)]
struct Filter {
    vhost: Option<String>,
}

/// Conditions of a deletion.
#[derive(Debug, Deserialize)]
struct Conditions {
    #[serde(default)]
    if_unused: bool,
    #[serde(default)]
    if_empty: bool,
}

async fn view(state: &State, look: impl FnOnce(&mut Shard) -> Value + Send + 'static) -> Answer {
    state.mailboxes.home().ask(look).await.map(Json).map_err(Failure::gone)
}

async fn carry_out(state: &State, vhost: &str, request: Request) -> Answer {
    let vhost = vhost.to_owned();
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let then = |answer| {
        // Nobody waits for the answer any more where this fails.
        let _ = sender.send(answer);
    };
    let asked = state.mailboxes.home().tell(move |shard| shard.administer(&vhost, request, then));
    asked.map_err(Failure::gone)?;
    // The sender is dropped unused where the shard ends first.
    let reply = receiver.await.map_err(|_| Failure::gone(Gone))??;
    Ok(Json(match reply {
        Reply::Queue { name, messages, consumers } => {
            json!({ "name": name, "ready": messages, "consumers": consumers })
        }
        Reply::Messages(messages) => json!({ "messages": messages }),
        _ => json!({ "done": true }),
    }))
}

/// Carries a request out, and adds to its answer what home has to say about what there is now.
async fn carry_out_noted(
    state: &State,
    vhost: &str,
    request: Request,
    note: impl FnOnce(&mut Shard) -> Option<Note> + Send + 'static,
) -> Answer {
    let Json(mut answer) = carry_out(state, vhost, request).await?;
    match state.mailboxes.home().ask(note).await.map_err(Failure::gone)? {
        Some(Note::Tells(text)) => answer["note"] = text.into(),
        Some(Note::Warns(text)) => answer["warning"] = text.into(),
        None => {}
    }
    Ok(Json(answer))
}

async fn overview(state: Shared) -> Answer {
    let clients = state.mailboxes.ask_all(|shard| shard.node().stats().connections).await;
    let clients: u64 = clients.map_err(Failure::gone)?.iter().sum();
    let messages = listings::rows(state.mailboxes.home(), views::messages).await;
    let messages = messages.map_err(Failure::gone)?;
    view(&state, move |shard| views::overview(shard, clients, &messages)).await
}
async fn vhosts(state: Shared) -> Answer {
    view(&state, views::vhosts).await
}
async fn users(state: Shared) -> Answer {
    view(&state, views::users).await
}
async fn permissions(state: Shared) -> Answer {
    view(&state, views::permissions).await
}
async fn exchanges(state: Shared, Query(filter): Query<Filter>) -> Answer {
    view(&state, move |shard| views::exchanges(shard, filter.vhost.as_deref())).await
}
async fn queues(state: Shared, Query(filter): Query<Filter>) -> Answer {
    let look =
        move |shard: &mut Shard, places| views::queues(shard, places, filter.vhost.as_deref());
    let rows = listings::rows(state.mailboxes.home(), look).await.map_err(Failure::gone)?;
    Ok(Json(json!(rows)))
}
async fn bindings(state: Shared, Query(filter): Query<Filter>) -> Answer {
    view(&state, move |shard| views::bindings(shard, filter.vhost.as_deref())).await
}
async fn connections(state: Shared) -> Answer {
    let rows = listings::rows_of_all(&state.mailboxes, views::connections).await;
    let mut rows = rows.map_err(Failure::gone)?;
    rows.sort_by_key(|row| row["id"].as_u64());
    Ok(Json(rows.into()))
}

/// Where requests are made that concern no particular virtual host.
const ANY_VHOST: &str = "/";

async fn create_vhost(state: Shared, Path(name): Path<String>) -> Answer {
    carry_out(&state, ANY_VHOST, Request::CreateVhost { name }).await
}

async fn delete_vhost(state: Shared, Path(name): Path<String>) -> Answer {
    carry_out(&state, ANY_VHOST, Request::DeleteVhost { name }).await
}

async fn put_user(state: Shared, Path(name): Path<String>, Body(body): Body<UserBody>) -> Answer {
    let UserBody { password, administrator } = body;
    let password_hash = match password {
        Some(password) => hashed(password).await?,
        None => NO_PASSWORD.to_owned(),
    };
    let user = name.clone();
    let request = Request::PutUser { name, password_hash, administrator };
    carry_out_noted(&state, ANY_VHOST, request, move |shard| warnings::user(shard, &user)).await
}

async fn hashed(password: String) -> Result<String, Failure> {
    let hashed = tokio::task::spawn_blocking(move || authenticate::hash(&password)).await;
    let failed = |text| Failure::new(StatusCode::INTERNAL_SERVER_ERROR, text);
    hashed.map_err(|error| failed(error.to_string()))?.map_err(failed)
}

async fn set_quota(state: Shared, Path(user): Path<String>, Body(body): Body<QuotaBody>) -> Answer {
    let quota = body.quota().map_err(|text| Failure::new(StatusCode::BAD_REQUEST, text))?;
    let named = user.clone();
    let note = move |shard: &mut Shard| warnings::quota(shard, &named);
    carry_out_noted(&state, ANY_VHOST, Request::SetQuota { user, quota }, note).await
}

async fn delete_user(state: Shared, Path(name): Path<String>) -> Answer {
    carry_out(&state, ANY_VHOST, Request::DeleteUser { name }).await
}

async fn set_permissions(
    state: Shared,
    Path((vhost, user)): Path<(String, String)>,
    Body(body): Body<PermissionBody>,
) -> Answer {
    let PermissionBody { configure, write, read } = body;
    let request = Request::SetPermissions { user, vhost, configure, write, read };
    carry_out(&state, ANY_VHOST, request).await
}

async fn set_subjects(
    state: Shared,
    Path((vhost, user)): Path<(String, String)>,
    Body(body): Body<SubjectsBody>,
) -> Answer {
    let subjects = body.subjects().map_err(|text| Failure::new(StatusCode::BAD_REQUEST, text))?;
    let (named, there) = (user.clone(), vhost.clone());
    let request = Request::SetSubjectPermissions { user, vhost, subjects };
    let note = move |shard: &mut Shard| warnings::subjects(shard, &named, &there);
    carry_out_noted(&state, ANY_VHOST, request, note).await
}

async fn clear_permissions(state: Shared, Path((vhost, user)): Path<(String, String)>) -> Answer {
    carry_out(&state, ANY_VHOST, Request::ClearPermissions { user, vhost }).await
}

async fn declare_exchange(
    state: Shared,
    Path((vhost, name)): Path<(String, String)>,
    Body(body): Body<ExchangeBody>,
) -> Answer {
    let options = body.options().map_err(|text| Failure::new(StatusCode::BAD_REQUEST, text))?;
    let declaration = ExchangeDeclaration { name, options: Some(options) };
    carry_out(&state, &vhost, Request::DeclareExchange(declaration)).await
}

async fn delete_exchange(
    state: Shared,
    Path((vhost, name)): Path<(String, String)>,
    Query(conditions): Query<Conditions>,
) -> Answer {
    let if_unused = conditions.if_unused;
    let declaration = ExchangeDeclaration { name: name.clone(), options: None };
    let _ = carry_out(&state, &vhost, Request::DeclareExchange(declaration)).await?;
    carry_out(&state, &vhost, Request::DeleteExchange { name, if_unused }).await
}

async fn declare_queue(
    state: Shared,
    Path((vhost, name)): Path<(String, String)>,
    Body(body): Body<QueueBody>,
) -> Answer {
    let options = body.options().map_err(|text| Failure::new(StatusCode::BAD_REQUEST, text))?;
    let declaration = QueueDeclaration { name, options: Some(options) };
    carry_out(&state, &vhost, Request::DeclareQueue(declaration)).await
}

async fn delete_queue(
    state: Shared,
    Path((vhost, name)): Path<(String, String)>,
    Query(conditions): Query<Conditions>,
) -> Answer {
    let Conditions { if_unused, if_empty } = conditions;
    // Deleting what is not there is no error in protocols; an operator wants to know.
    let declaration = QueueDeclaration { name: name.clone(), options: None };
    let _ = carry_out(&state, &vhost, Request::DeclareQueue(declaration)).await?;
    carry_out(&state, &vhost, Request::DeleteQueue { name, if_unused, if_empty }).await
}

async fn purge_queue(state: Shared, Path((vhost, name)): Path<(String, String)>) -> Answer {
    carry_out(&state, &vhost, Request::PurgeQueue { name }).await
}

async fn bind(state: Shared, Path(vhost): Path<String>, Body(body): Body<BindingBody>) -> Answer {
    let binding = body.binding().map_err(|text| Failure::new(StatusCode::BAD_REQUEST, text))?;
    let (source, key, there) = (binding.source.clone(), binding.key.clone(), vhost.clone());
    let note = move |shard: &mut Shard| warnings::binding(shard, &there, &source, &key);
    carry_out_noted(&state, &vhost, Request::Bind(binding), note).await
}

async fn unbind(state: Shared, Path(vhost): Path<String>, Body(body): Body<BindingBody>) -> Answer {
    let binding = body.binding().map_err(|text| Failure::new(StatusCode::BAD_REQUEST, text))?;
    carry_out(&state, &vhost, Request::Unbind(binding)).await
}

/// Why a connection is closed.
#[derive(Debug, Deserialize)]
struct Why {
    reason: Option<String>,
}

async fn close_connection(state: Shared, Path(id): Path<String>, Query(why): Query<Why>) -> Answer {
    let reason = why.reason.unwrap_or_else(|| "closed by an operator".into());
    let none = || Failure::new(StatusCode::NOT_FOUND, format!("no connection {id}"));
    let number: u64 = id.parse().map_err(|_| none())?;
    let closed = state.mailboxes.of_connection(number).ask(move |shard| {
        let now = shard.now();
        let node = shard.node();
        let connection = node.connection_of(number);
        let is_closed = connection.is_some_and(|it| node.close_connection(now, it, &reason));
        if is_closed {
            tracing::info!(connection = number, reason, "an operator closes a connection");
        }
        is_closed
    });
    if closed.await.map_err(Failure::gone)? {
        Ok(Json(json!({ "done": true })))
    } else {
        Err(none())
    }
}
