//! The administration API: JSON in, one request to the engine, JSON out.

use super::audit::{Change, Shared};
use super::listings;
use super::mailboxes::State;
use super::measured::measured;
use super::request_types::{
    AdministratorBody, BindingBody, ExchangeBody, PasswordBody, PermissionBody, QueueBody,
    QuotaBody, SubscriptionBody, UserBody,
};
use super::subjects::{KeysBody, SubjectsBody};
use super::views::{
    self, BindingView, ConnectionView, ExchangeView, Overview, QueueView, SessionView,
    SubscriptionView,
};
use super::warnings::{self, Note};
use crate::authenticate::{self, NO_PASSWORD};
use crate::reactor::{Gone, Shard};
use crate::threads;
use angarium_engine::{Refusal, RefusalKind, Reply, Request};
use axum::Json;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use tokio::sync::oneshot;

/// A request that was not carried out.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) status: StatusCode,
    pub(super) text: String,
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
            RefusalKind::ResourceLocked | RefusalKind::TakenOver => StatusCode::LOCKED,
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

pub(super) type Answer<T = Outcome> = Result<Json<T>, Failure>;
type Name = Path<String>;
/// A virtual host, and a name in it.
pub(super) type Pair = Path<(String, String)>;
pub(super) type Asked = Query<Parameters>;

/// What came of a change.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(default)]
pub(super) struct Outcome {
    #[serde(skip_serializing_if = "Option::is_none")]
    done: Option<bool>,
    /// The queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Messages that wait in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    ready: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    consumers: Option<u32>,
    /// How many messages that concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<u64>,
    /// What follows, or is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    /// It was done, and is hardly meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

impl Outcome {
    fn done() -> Outcome {
        Outcome { done: Some(true), ..Outcome::default() }
    }
}

/// A body that is refused in our own words.
pub(super) struct Body<T>(pub(super) T);

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

/// What may follow an address.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Parameters {
    /// The only virtual host that is listed.
    pub(super) vhost: Option<String>,
    /// Only what nobody uses is deleted.
    if_unused: bool,
    /// Only what is empty is deleted.
    if_empty: bool,
    /// Whose named subscription is deleted.
    client: Option<String>,
    /// Why a connection is closed.
    reason: Option<String>,
    /// The routing key of a message.
    pub(super) key: Option<String>,
    /// Its headers: an object in JSON.
    pub(super) headers: Option<String>,
    /// The only user who is looked at.
    pub(super) user: Option<String>,
}

pub(super) async fn view<T: Send + 'static>(
    state: Shared,
    look: impl FnOnce(&mut Shard) -> T + Send + 'static,
) -> Answer<T> {
    Ok(Json(state.mailboxes.home().ask(look).await?))
}

/// Has home carry a request out; a change is logged.
pub(super) async fn perform(
    state: &Shared,
    vhost: &str,
    request: Request,
) -> Result<Result<Reply, Refusal>, Gone> {
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
    Ok(reply)
}

pub(super) async fn carry_out(state: &Shared, vhost: &str, request: Request) -> Answer {
    Ok(Json(match perform(state, vhost, request).await?? {
        Reply::Queue { name, messages, consumers } => Outcome {
            name: Some(name),
            ready: Some(messages),
            consumers: Some(consumers),
            ..Outcome::default()
        },
        Reply::Messages(messages) => Outcome { messages: Some(messages), ..Outcome::default() },
        _ => Outcome::done(),
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
        Some(Note::Tells(text)) => answer.note = Some(text),
        Some(Note::Warns(text)) => answer.warning = Some(text),
        None => {}
    }
    Ok(Json(answer))
}

pub(super) async fn overview(state: Shared) -> Answer<Overview> {
    let home = state.mailboxes.home();
    let messages = listings::rows(std::slice::from_ref(home), views::messages).await?;
    let shards = state.mailboxes.ask_all(measured).await?;
    view(state, move |shard| views::overview(shard, &shards, &messages)).await
}

pub(super) async fn exchanges(state: Shared, asked: Asked) -> Answer<Vec<ExchangeView>> {
    let vhost = asked.0.vhost;
    let look = move |shard: &mut Shard, places| views::exchanges(shard, places, vhost.as_deref());
    let mut rows = listings::rows(std::slice::from_ref(state.mailboxes.home()), look).await?;
    rows.sort_by_cached_key(|row| [row.vhost.clone(), row.name.clone()]);
    Ok(Json(rows))
}

pub(super) async fn queues(state: Shared, asked: Asked) -> Answer<Vec<QueueView>> {
    let vhost = asked.0.vhost;
    let look = move |shard: &mut Shard, places| views::queues(shard, places, vhost.as_deref());
    Ok(Json(listings::rows(std::slice::from_ref(state.mailboxes.home()), look).await?))
}

pub(super) async fn subscriptions(state: Shared, asked: Asked) -> Answer<Vec<SubscriptionView>> {
    let vhost = asked.0.vhost;
    let look =
        move |shard: &mut Shard, places| views::subscriptions(shard, places, vhost.as_deref());
    let mut rows = listings::rows(std::slice::from_ref(state.mailboxes.home()), look).await?;
    rows.sort_by_cached_key(|row| (row.vhost.clone(), row.client.clone(), row.name.clone()));
    Ok(Json(rows))
}

pub(super) async fn sessions(state: Shared, asked: Asked) -> Answer<Vec<SessionView>> {
    let vhost = asked.0.vhost;
    let look = move |shard: &mut Shard, places| views::sessions(shard, places, vhost.as_deref());
    let mut rows = listings::rows(std::slice::from_ref(state.mailboxes.home()), look).await?;
    rows.sort_by_cached_key(|row| [row.vhost.clone(), row.name.clone()]);
    Ok(Json(rows))
}

pub(super) async fn end_session(state: Shared, Path((vhost, name)): Pair) -> Answer {
    carry_out(&state, &vhost, Request::EndSession { name }).await
}

pub(super) async fn bindings(state: Shared, asked: Asked) -> Answer<Vec<BindingView>> {
    let vhost = asked.0.vhost;
    let look = move |shard: &mut Shard, places| views::bindings(shard, places, vhost.as_deref());
    Ok(Json(listings::rows(std::slice::from_ref(state.mailboxes.home()), look).await?))
}

pub(super) async fn connections(state: Shared) -> Answer<Vec<ConnectionView>> {
    let mut rows = listings::rows(state.mailboxes.all(), views::connections).await?;
    rows.sort_by_key(|row| row.id);
    Ok(Json(rows))
}

/// Where requests are made that concern no particular virtual host.
pub(super) const ANY_VHOST: &str = "/";

pub(super) async fn create_vhost(state: Shared, Path(name): Name) -> Answer {
    carry_out(&state, ANY_VHOST, Request::CreateVhost { name }).await
}

pub(super) async fn delete_vhost(state: Shared, Path(name): Name) -> Answer {
    carry_out(&state, ANY_VHOST, Request::DeleteVhost { name }).await
}

pub(super) async fn create_user(
    state: Shared,
    Path(name): Name,
    Body(body): Body<UserBody>,
) -> Answer {
    let password_hash = hash_of(body.password).await?;
    let user = name.clone();
    let request = Request::CreateUser { name, password_hash, administrator: body.administrator };
    carry_out_noted(&state, ANY_VHOST, request, move |shard| warnings::user(shard, &user)).await
}

pub(super) async fn change_password(
    state: Shared,
    Path(name): Name,
    Body(body): Body<PasswordBody>,
) -> Answer {
    let password_hash = Some(hash_of(body.password).await?);
    let request = Request::ChangeUser { name, password_hash, administrator: None };
    carry_out(&state, ANY_VHOST, request).await
}

pub(super) async fn change_administrator(
    state: Shared,
    Path(name): Name,
    Body(body): Body<AdministratorBody>,
) -> Answer {
    let administrator = Some(body.administrator);
    let request = Request::ChangeUser { name, password_hash: None, administrator };
    carry_out(&state, ANY_VHOST, request).await
}

/// What is stored of a password, or of none.
pub(super) async fn hash_of(password: Option<String>) -> Result<String, Failure> {
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

pub(super) async fn set_quota(
    state: Shared,
    Path(user): Name,
    Body(body): Body<QuotaBody>,
) -> Answer {
    let request = Request::SetQuota { user: user.clone(), quota: body.quota()? };
    carry_out_noted(&state, ANY_VHOST, request, move |shard| warnings::quota(shard, &user)).await
}

pub(super) async fn set_vhost_quota(
    state: Shared,
    Path(vhost): Name,
    Body(body): Body<QuotaBody>,
) -> Answer {
    let request = Request::SetVhostQuota { vhost: vhost.clone(), quota: body.of_vhost()? };
    let note = move |shard: &mut Shard| warnings::vhost_quota(shard, &vhost);
    carry_out_noted(&state, ANY_VHOST, request, note).await
}

pub(super) async fn delete_user(state: Shared, Path(name): Name) -> Answer {
    carry_out(&state, ANY_VHOST, Request::DeleteUser { name }).await
}

pub(super) async fn set_permissions(
    state: Shared,
    Path((vhost, user)): Pair,
    Body(PermissionBody { configure, write, read }): Body<PermissionBody>,
) -> Answer {
    let request = Request::SetPermissions { user, vhost, configure, write, read };
    carry_out(&state, ANY_VHOST, request).await
}

pub(super) async fn subjects(
    state: Shared,
    Path((vhost, user)): Pair,
    body: Body<SubjectsBody>,
) -> Answer {
    let (named, there, subjects) = (user.clone(), vhost.clone(), body.0.subjects()?);
    let request = Request::SetSubjectPermissions { user, vhost, subjects };
    let note = move |shard: &mut Shard| warnings::subjects(shard, &named, &there);
    carry_out_noted(&state, ANY_VHOST, request, note).await
}

pub(super) async fn exchange_keys(
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

pub(super) async fn clear_permissions(state: Shared, Path((vhost, user)): Pair) -> Answer {
    carry_out(&state, ANY_VHOST, Request::ClearPermissions { user, vhost }).await
}

pub(super) async fn put_exchange(
    state: Shared,
    Path((vhost, name)): Pair,
    body: Body<ExchangeBody>,
) -> Answer {
    let options = Some(body.0.0.exchange_options()?);
    carry_out(&state, &vhost, Request::DeclareExchange { name, options }).await
}

pub(super) async fn delete_exchange(
    state: Shared,
    Path((vhost, name)): Pair,
    asked: Asked,
) -> Answer {
    let if_unused = asked.if_unused;
    let exists = Request::DeclareExchange { name: name.clone(), options: None };
    let _ = carry_out(&state, &vhost, exists).await?;
    carry_out(&state, &vhost, Request::DeleteExchange { name, if_unused }).await
}

pub(super) async fn put_queue(
    state: Shared,
    Path((vhost, name)): Pair,
    body: Body<QueueBody>,
) -> Answer {
    let options = Some(body.0.0.queue_options()?);
    carry_out(&state, &vhost, Request::DeclareQueue { name, options }).await
}

pub(super) async fn delete_queue(state: Shared, Path((vhost, name)): Pair, asked: Asked) -> Answer {
    let Parameters { if_unused, if_empty, .. } = asked.0;
    // Deleting what is not there is no error in protocols; an operator wants to know.
    let exists = Request::DeclareQueue { name: name.clone(), options: None };
    let _ = carry_out(&state, &vhost, exists).await?;
    carry_out(&state, &vhost, Request::DeleteQueue { name, if_unused, if_empty }).await
}

pub(super) async fn purge_queue(state: Shared, Path((vhost, name)): Pair) -> Answer {
    carry_out(&state, &vhost, Request::PurgeQueue { name }).await
}

pub(super) async fn put_subscription(
    state: Shared,
    Path((vhost, name)): Pair,
    Body(body): Body<SubscriptionBody>,
) -> Answer {
    carry_out(&state, &vhost, Request::OpenSubscription(Box::new(body.open(name)?))).await
}

pub(super) async fn delete_subscription(
    state: Shared,
    Path((vhost, name)): Pair,
    asked: Asked,
) -> Answer {
    let owner = asked.0.client;
    carry_out(&state, &vhost, Request::DeleteSubscription { owner, name }).await
}

pub(super) async fn bind(
    state: Shared,
    Path(vhost): Name,
    Body(body): Body<BindingBody>,
) -> Answer {
    let binding = body.binding()?;
    let (source, key, there) = (binding.source.clone(), binding.key.clone(), vhost.clone());
    let note = move |shard: &mut Shard| warnings::binding(shard, &there, &source, &key);
    carry_out_noted(&state, &vhost, Request::Bind(binding), note).await
}

pub(super) async fn unbind(
    state: Shared,
    Path(vhost): Name,
    Body(body): Body<BindingBody>,
) -> Answer {
    carry_out(&state, &vhost, Request::Unbind(body.binding()?)).await
}

pub(super) async fn close_connection(state: Shared, Path(id): Name, asked: Asked) -> Answer {
    let reason = asked.0.reason.unwrap_or_else(|| "closed by an operator".into());
    let none = || Failure::new(StatusCode::NOT_FOUND, format!("no connection {id}"));
    let number: u64 = id.parse().map_err(|_| none())?;
    let is_ended = end_connection(&state, number, reason).await?;
    if is_ended { Ok(Json(Outcome::done())) } else { Err(none()) }
}

/// Ends the connection of that number; says whether it was there.
pub(super) async fn end_connection(
    state: &Shared,
    number: u64,
    reason: String,
) -> Result<bool, Gone> {
    let by = state.administrator.clone();
    let ended = state.mailboxes.of_connection(number).ask(move |shard| {
        let (now, node) = (shard.now, &mut shard.node);
        let connection = node.connection_of(number);
        let is_ended = connection.is_some_and(|it| node.close_connection(now, it, &reason));
        if is_ended {
            let (user, from) = (by.user.as_deref(), by.from.as_str());
            let action = "close connection";
            tracing::info!(user, from, action, connection = number, reason, "administration");
        }
        is_ended
    });
    ended.await
}
