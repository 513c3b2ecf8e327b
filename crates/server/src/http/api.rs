//! The administration API: JSON in, one request to the engine, JSON out.

use super::audit::{Change, Shared};
use super::listings;
use super::mailboxes::State;
use super::request_types::{
    AdministratorBody, BindingBody, Declaration, PasswordBody, PermissionBody, QuotaBody,
    SubscriptionBody, UserBody,
};
use super::subjects::{KeysBody, SubjectsBody};
use super::views;
use super::warnings::{self, Note};
use crate::authenticate::{self, NO_PASSWORD};
use crate::reactor::{Gone, Shard};
use crate::threads;
use angarium_engine::{Refusal, RefusalKind, Reply, Request};
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, put};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::oneshot;

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
}

impl From<Gone> for Failure {
    fn from(_: Gone) -> Failure {
        Failure::new(StatusCode::SERVICE_UNAVAILABLE, "the broker is shutting down")
    }
}

/// What is wrong with a body.
impl From<String> for Failure {
    fn from(text: String) -> Failure {
        Failure::new(StatusCode::BAD_REQUEST, text)
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        let status = match refusal.kind {
            RefusalKind::NotFound | RefusalKind::Unroutable => StatusCode::NOT_FOUND,
            RefusalKind::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
            RefusalKind::AccessRefused | RefusalKind::NotAllowed => StatusCode::FORBIDDEN,
            RefusalKind::ResourceLocked => StatusCode::LOCKED,
            RefusalKind::LimitExceeded => StatusCode::TOO_MANY_REQUESTS,
            RefusalKind::NotImplemented => StatusCode::NOT_IMPLEMENTED,
            RefusalKind::StorageUnavailable | RefusalKind::InDoubt | RefusalKind::MemoryShort => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            RefusalKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Failure::new(status, refusal.text)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        // Tools show the first line of it.
        let body = format!("{}\n", json!({ "error": self.text }));
        (self.status, [(CONTENT_TYPE, "application/json")], body).into_response()
    }
}

type Answer = Result<Json<Value>, Failure>;
type Name = Path<String>;
/// A virtual host, and a name in it.
type Pair = Path<(String, String)>;
type Asked = Query<Parameters>;

/// A body that is refused in our own words.
struct Body<T>(T);

impl<T: serde::de::DeserializeOwned> axum::extract::FromRequest<State> for Body<T> {
    type Rejection = Failure;

    async fn from_request(
        request: axum::extract::Request,
        state: &State,
    ) -> Result<Self, Self::Rejection> {
        let bytes = axum::body::Bytes::from_request(request, state).await;
        let bytes = bytes.map_err(|error| Failure::new(error.status(), error.body_text()))?;
        Ok(Body(serde_json::from_slice(&bytes).map_err(|error| format!("body: {error}"))?))
    }
}

/// Every address below `/api`.
pub(super) fn routes() -> Router<State> {
    Router::new()
        .route("/overview", get(overview))
        .route("/vhosts", get(|state: Shared| view(state, views::vhosts)))
        .route("/vhosts/{vhost}", put(create_vhost).delete(delete_vhost))
        .route("/vhosts/{vhost}/quota", put(set_vhost_quota))
        .route("/users", get(|state: Shared| view(state, views::users)))
        .route("/users/{user}", put(create_user).delete(delete_user))
        .route("/users/{user}/password", put(change_password))
        .route("/users/{user}/administrator", put(change_administrator))
        .route("/users/{user}/quota", put(set_quota))
        .route("/permissions", get(|state: Shared| view(state, views::permissions)))
        .route("/permissions/{vhost}/{user}", put(set_permissions).delete(clear_permissions))
        .route("/permissions/{vhost}/{user}/subjects", put(subjects))
        .route("/permissions/{vhost}/{user}/subjects/{exchange}", put(exchange_keys))
        .route("/exchanges", get(exchanges))
        .route("/exchanges/{vhost}/{name}", put(put_exchange).delete(delete_exchange))
        .route("/queues", get(queues))
        .route("/queues/{vhost}/{name}", put(put_queue).delete(delete_queue))
        .route("/queues/{vhost}/{name}/messages", delete(purge_queue))
        .route("/subscriptions", get(subscriptions))
        .route("/subscriptions/{vhost}/{name}", put(put_subscription).delete(delete_subscription))
        .route("/sessions", get(sessions))
        .route("/sessions/{vhost}/{name}", delete(end_session))
        .route("/bindings", get(bindings))
        .route("/bindings/{vhost}", put(bind).delete(unbind))
        .route("/connections", get(connections))
        .route("/connections/{id}", delete(close_connection))
        .fallback(|| async { Failure::new(StatusCode::NOT_FOUND, "no such address") })
}

/// What may follow an address.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Parameters {
    /// The only virtual host that is listed.
    vhost: Option<String>,
    /// Conditions of a deletion.
    if_unused: bool,
    if_empty: bool,
    /// Whose named subscription is deleted.
    client: Option<String>,
    /// Why a connection is closed.
    reason: Option<String>,
}

async fn view(state: Shared, look: impl FnOnce(&mut Shard) -> Value + Send + 'static) -> Answer {
    Ok(Json(state.mailboxes.home().ask(look).await?))
}

async fn carry_out(state: &Shared, vhost: &str, request: Request) -> Answer {
    let change = Change::of(&request, vhost);
    let vhost = vhost.to_owned();
    let reply = state.mailboxes.home().ask_later(move |shard, answer| {
        // The caller may have gone.
        shard.administer(&vhost, request, |reply| drop(answer.send(reply)));
    });
    let reply = reply.await?;
    if let Some(change) = change {
        change.log(&state.administrator, reply.as_ref().err().map(|refusal| refusal.text.as_str()));
    }
    Ok(Json(match reply? {
        Reply::Queue { name, messages, consumers } => {
            json!({ "name": name, "ready": messages, "consumers": consumers })
        }
        Reply::Messages(messages) => json!({ "messages": messages }),
        _ => json!({ "done": true }),
    }))
}

/// Carries a request out, and adds a note of home to its answer.
async fn carry_out_noted(
    state: &Shared,
    vhost: &str,
    request: Request,
    note: impl FnOnce(&mut Shard) -> Option<Note> + Send + 'static,
) -> Answer {
    let Json(mut answer) = carry_out(state, vhost, request).await?;
    match state.mailboxes.home().ask(note).await? {
        Some(Note::Tells(text)) => answer["note"] = text.into(),
        Some(Note::Warns(text)) => answer["warning"] = text.into(),
        None => {}
    }
    Ok(Json(answer))
}

async fn overview(state: Shared) -> Answer {
    let clients = state.mailboxes.ask_all(|shard| shard.node.stats().connections).await?;
    let messages =
        listings::rows(std::slice::from_ref(state.mailboxes.home()), views::messages).await?;
    let clients = clients.iter().sum();
    view(state, move |shard| views::overview(shard, clients, &messages)).await
}

async fn exchanges(state: Shared, asked: Asked) -> Answer {
    let vhost = asked.0.vhost;
    let look = move |shard: &mut Shard, places| views::exchanges(shard, places, vhost.as_deref());
    let mut rows = listings::rows(std::slice::from_ref(state.mailboxes.home()), look).await?;
    let name = |row: &Value| ["vhost", "name"].map(|it| row[it].as_str().map(str::to_owned));
    rows.sort_by_cached_key(name);
    Ok(Json(rows.into()))
}

async fn queues(state: Shared, asked: Asked) -> Answer {
    let vhost = asked.0.vhost;
    let look = move |shard: &mut Shard, places| views::queues(shard, places, vhost.as_deref());
    Ok(Json(json!(listings::rows(std::slice::from_ref(state.mailboxes.home()), look).await?)))
}

async fn subscriptions(state: Shared, asked: Asked) -> Answer {
    let vhost = asked.0.vhost;
    let look =
        move |shard: &mut Shard, places| views::subscriptions(shard, places, vhost.as_deref());
    let mut rows = listings::rows(std::slice::from_ref(state.mailboxes.home()), look).await?;
    let name =
        |row: &Value| ["vhost", "client", "name"].map(|it| row[it].as_str().map(str::to_owned));
    rows.sort_by_cached_key(name);
    Ok(Json(rows.into()))
}

async fn sessions(state: Shared, asked: Asked) -> Answer {
    let vhost = asked.0.vhost;
    let look = move |shard: &mut Shard, places| views::sessions(shard, places, vhost.as_deref());
    let mut rows = listings::rows(std::slice::from_ref(state.mailboxes.home()), look).await?;
    rows.sort_by_cached_key(|row| ["vhost", "name"].map(|it| row[it].as_str().map(str::to_owned)));
    Ok(Json(rows.into()))
}

async fn end_session(state: Shared, Path((vhost, name)): Pair) -> Answer {
    carry_out(&state, &vhost, Request::EndSession { name }).await
}

async fn bindings(state: Shared, asked: Asked) -> Answer {
    let vhost = asked.0.vhost;
    let look = move |shard: &mut Shard, places| views::bindings(shard, places, vhost.as_deref());
    Ok(Json(listings::rows(std::slice::from_ref(state.mailboxes.home()), look).await?.into()))
}

async fn connections(state: Shared) -> Answer {
    let mut rows = listings::rows(state.mailboxes.all(), views::connections).await?;
    rows.sort_by_key(|row| row["id"].as_u64());
    Ok(Json(rows.into()))
}

/// Where requests are made that concern no particular virtual host.
const ANY_VHOST: &str = "/";

async fn create_vhost(state: Shared, Path(name): Name) -> Answer {
    carry_out(&state, ANY_VHOST, Request::CreateVhost { name }).await
}

async fn delete_vhost(state: Shared, Path(name): Name) -> Answer {
    carry_out(&state, ANY_VHOST, Request::DeleteVhost { name }).await
}

async fn create_user(state: Shared, Path(name): Name, Body(body): Body<UserBody>) -> Answer {
    let password_hash = hash_of(body.password).await?;
    let user = name.clone();
    let request = Request::CreateUser { name, password_hash, administrator: body.administrator };
    carry_out_noted(&state, ANY_VHOST, request, move |shard| warnings::user(shard, &user)).await
}

async fn change_password(
    state: Shared,
    Path(name): Name,
    Body(body): Body<PasswordBody>,
) -> Answer {
    let password_hash = Some(hash_of(body.password).await?);
    let request = Request::ChangeUser { name, password_hash, administrator: None };
    carry_out(&state, ANY_VHOST, request).await
}

async fn change_administrator(
    state: Shared,
    Path(name): Name,
    Body(body): Body<AdministratorBody>,
) -> Answer {
    let administrator = Some(body.administrator);
    let request = Request::ChangeUser { name, password_hash: None, administrator };
    carry_out(&state, ANY_VHOST, request).await
}

/// What is stored of a password, or of none.
async fn hash_of(password: Option<String>) -> Result<String, Failure> {
    let Some(password) = password else { return Ok(NO_PASSWORD.to_owned()) };
    let password: Arc<str> = password.into();
    let (sender, hashed) = oneshot::channel();
    let hash = {
        let password = password.clone();
        move || drop(sender.send(authenticate::hash(&password)))
    };
    let hashed = match threads::spawn("hash", hash) {
        Ok(_) => hashed.await.unwrap_or_else(|error| Err(error.to_string())),
        // There is no memory for another thread: other requests wait some ten milliseconds.
        Err(_) => authenticate::hash(&password),
    };
    hashed.map_err(|text| Failure::new(StatusCode::INTERNAL_SERVER_ERROR, text))
}

async fn set_quota(state: Shared, Path(user): Name, Body(body): Body<QuotaBody>) -> Answer {
    let request = Request::SetQuota { user: user.clone(), quota: body.quota()? };
    carry_out_noted(&state, ANY_VHOST, request, move |shard| warnings::quota(shard, &user)).await
}

async fn set_vhost_quota(state: Shared, Path(vhost): Name, Body(body): Body<QuotaBody>) -> Answer {
    let request = Request::SetVhostQuota { vhost: vhost.clone(), quota: body.of_vhost()? };
    let note = move |shard: &mut Shard| warnings::vhost_quota(shard, &vhost);
    carry_out_noted(&state, ANY_VHOST, request, note).await
}

async fn delete_user(state: Shared, Path(name): Name) -> Answer {
    carry_out(&state, ANY_VHOST, Request::DeleteUser { name }).await
}

async fn set_permissions(
    state: Shared,
    Path((vhost, user)): Pair,
    Body(PermissionBody { configure, write, read }): Body<PermissionBody>,
) -> Answer {
    let request = Request::SetPermissions { user, vhost, configure, write, read };
    carry_out(&state, ANY_VHOST, request).await
}

async fn subjects(state: Shared, Path((vhost, user)): Pair, body: Body<SubjectsBody>) -> Answer {
    let (named, there, subjects) = (user.clone(), vhost.clone(), body.0.subjects()?);
    let request = Request::SetSubjectPermissions { user, vhost, subjects };
    let note = move |shard: &mut Shard| warnings::subjects(shard, &named, &there);
    carry_out_noted(&state, ANY_VHOST, request, note).await
}

async fn exchange_keys(
    state: Shared,
    Path((vhost, user, exchange)): Path<(String, String, String)>,
    Body(body): Body<KeysBody>,
) -> Answer {
    let rules = body.rules()?;
    let (there, named, keys_of) = (vhost.clone(), user.clone(), exchange.clone());
    let request = Request::SetExchangeRules { user, vhost, exchange, rules };
    let note = move |shard: &mut Shard| warnings::exchange_keys(shard, &named, &there, &keys_of);
    carry_out_noted(&state, ANY_VHOST, request, note).await
}

async fn clear_permissions(state: Shared, Path((vhost, user)): Pair) -> Answer {
    carry_out(&state, ANY_VHOST, Request::ClearPermissions { user, vhost }).await
}

async fn put_exchange(state: Shared, Path((vhost, name)): Pair, body: Body<Declaration>) -> Answer {
    let options = Some(body.0.exchange_options()?);
    carry_out(&state, &vhost, Request::DeclareExchange { name, options }).await
}

async fn delete_exchange(state: Shared, Path((vhost, name)): Pair, asked: Asked) -> Answer {
    let if_unused = asked.if_unused;
    let exists = Request::DeclareExchange { name: name.clone(), options: None };
    let _ = carry_out(&state, &vhost, exists).await?;
    carry_out(&state, &vhost, Request::DeleteExchange { name, if_unused }).await
}

async fn put_queue(state: Shared, Path((vhost, name)): Pair, body: Body<Declaration>) -> Answer {
    let options = Some(body.0.queue_options()?);
    carry_out(&state, &vhost, Request::DeclareQueue { name, options }).await
}

async fn delete_queue(state: Shared, Path((vhost, name)): Pair, asked: Asked) -> Answer {
    let Parameters { if_unused, if_empty, .. } = asked.0;
    // Deleting what is not there is no error in protocols; an operator wants to know.
    let exists = Request::DeclareQueue { name: name.clone(), options: None };
    let _ = carry_out(&state, &vhost, exists).await?;
    carry_out(&state, &vhost, Request::DeleteQueue { name, if_unused, if_empty }).await
}

async fn purge_queue(state: Shared, Path((vhost, name)): Pair) -> Answer {
    carry_out(&state, &vhost, Request::PurgeQueue { name }).await
}

async fn put_subscription(
    state: Shared,
    Path((vhost, name)): Pair,
    Body(body): Body<SubscriptionBody>,
) -> Answer {
    carry_out(&state, &vhost, Request::OpenSubscription(Box::new(body.open(name)?))).await
}

async fn delete_subscription(state: Shared, Path((vhost, name)): Pair, asked: Asked) -> Answer {
    let owner = asked.0.client;
    carry_out(&state, &vhost, Request::DeleteSubscription { owner, name }).await
}

async fn bind(state: Shared, Path(vhost): Name, Body(body): Body<BindingBody>) -> Answer {
    let binding = body.binding()?;
    let (source, key, there) = (binding.source.clone(), binding.key.clone(), vhost.clone());
    let note = move |shard: &mut Shard| warnings::binding(shard, &there, &source, &key);
    carry_out_noted(&state, &vhost, Request::Bind(binding), note).await
}

async fn unbind(state: Shared, Path(vhost): Name, Body(body): Body<BindingBody>) -> Answer {
    carry_out(&state, &vhost, Request::Unbind(body.binding()?)).await
}

async fn close_connection(state: Shared, Path(id): Name, asked: Asked) -> Answer {
    let reason = asked.0.reason.unwrap_or_else(|| "closed by an operator".into());
    let none = || Failure::new(StatusCode::NOT_FOUND, format!("no connection {id}"));
    let number: u64 = id.parse().map_err(|_| none())?;
    let by = state.administrator.clone();
    let closed = state.mailboxes.of_connection(number).ask(move |shard| {
        let (now, node) = (shard.now, &mut shard.node);
        let connection = node.connection_of(number);
        let is_closed = connection.is_some_and(|it| node.close_connection(now, it, &reason));
        if is_closed {
            let (user, from) = (by.user.as_deref(), by.from.as_str());
            let action = "close connection";
            tracing::info!(user, from, action, connection = number, reason, "administration");
        }
        is_closed
    });
    if closed.await? { Ok(Json(json!({ "done": true }))) } else { Err(none()) }
}
