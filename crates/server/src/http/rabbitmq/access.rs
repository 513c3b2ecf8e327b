//! Virtual hosts, users, and what these may do, in RabbitMQ's words.

use super::super::api::{ANY_VHOST, hash_of};
use super::super::audit::Shared;
use super::super::listings::Part;
use super::super::mailboxes::State;
use super::answer::{Answer, Refused, carry_out, changed};
use super::auth::{ADMINISTRATOR, MONITORING, tags};
use super::broker::node_name;
use super::limits;
use super::list::{Pair, Parameters, check_vhost, home_rows, page};
use super::read::{Body, Flag, TagList};
use super::rows::Which;
use crate::authenticate::{self, NO_PASSWORD};
use crate::reactor::Shard;
use angarium_engine::{Quota, Request};
use axum::Json;
use axum::extract::Path;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::ops::Range;

/// A virtual host to be made. What is not named here changes nothing.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct VhostBody {
    tracing: Option<Flag>,
}

/// A user to be made or changed.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct UserBody {
    pub(super) password: Option<String>,
    pub(super) password_hash: Option<String>,
    pub(super) hashing_algorithm: Option<String>,
    pub(super) tags: Option<TagList>,
}

/// What a user may do in a virtual host.
#[derive(Debug, Deserialize)]
pub(super) struct PermissionBody {
    configure: String,
    write: String,
    read: String,
}

/// Messages of queues, by virtual host.
fn lengths(shard: &mut Shard, places: Range<usize>, _: &Which) -> Part<(String, [u64; 2])> {
    let engine = shard.node.engine();
    let queues = engine.list_queues_in(places);
    let rows = queues.map(|it| (it.vhost.to_owned(), [it.ready, it.unsettled]));
    Part { rows: rows.collect(), places: engine.queue_places() }
}

pub(super) async fn vhost_rows(state: &Shared) -> Answer<Vec<Value>> {
    let mut messages: HashMap<String, [u64; 2]> = HashMap::new();
    for (vhost, [ready, unsettled]) in home_rows(state, &Which::default(), lengths).await? {
        let all = messages.entry(vhost).or_default();
        *all = [all[0] + ready, all[1] + unsettled];
    }
    let node = node_name();
    let row = move |name: &str| {
        let [ready, unsettled] = messages.get(name).copied().unwrap_or_default();
        json!({
            "name": name, "description": "", "tags": [], "tracing": false,
            "default_queue_type": "classic", "protected_from_deletion": false,
            "metadata": { "description": "", "tags": [], "default_queue_type": "classic" },
            "cluster_state": { node.as_str(): "running" },
            "messages": ready + unsettled, "messages_ready": ready,
            "messages_unacknowledged": unsettled,
        })
    };
    let look =
        move |shard: &mut Shard| shard.node.engine().list_vhosts().map(|it| row(it.name)).collect();
    Ok(state.mailboxes.home().ask(look).await?)
}

pub(super) async fn vhosts(state: Shared, query: Parameters) -> Answer {
    page(&query, vhost_rows(&state).await?)
}

fn named(rows: Vec<Value>, what: &str, name: &str) -> Answer {
    let none = || Refused::none(format!("no {what} '{name}'"));
    Ok(Json(rows.into_iter().find(|row| row["name"] == name).ok_or_else(none)?))
}

pub(super) async fn vhost(state: Shared, Path(name): Path<String>) -> Answer {
    named(vhost_rows(&state).await?, "virtual host", &name)
}

pub(super) async fn put_vhost(
    state: Shared,
    Path(name): Path<String>,
    Body(body): Body<VhostBody>,
) -> Answer<StatusCode> {
    if body.tracing == Some(Flag(true)) {
        return Err(Refused::not_offered("virtual hosts are not traced"));
    }
    if check_vhost(&state, &name).await.is_ok() {
        return Ok(changed(true));
    }
    carry_out(&state, ANY_VHOST, Request::CreateVhost { name: name.clone() }).await?;
    // As RabbitMQ does: who makes one may use it.
    if let Some(user) = state.administrator.user.clone() {
        let all = || ".*".to_owned();
        let (configure, write, read) = (all(), all(), all());
        let permit = Request::SetPermissions { user, vhost: name, configure, write, read };
        carry_out(&state, ANY_VHOST, permit).await?;
    }
    Ok(changed(false))
}

pub(super) async fn delete_vhost(state: Shared, Path(name): Path<String>) -> Answer<StatusCode> {
    carry_out(&state, ANY_VHOST, Request::DeleteVhost { name }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Users, with what their passwords are checked against.
pub(super) async fn user_rows(state: &Shared) -> Answer<Vec<Value>> {
    let shared: State = (**state).clone();
    let look = move |shard: &mut Shard| {
        let engine = shard.node.engine();
        let user = |name: &str, is_administrator, quota: &Quota| {
            let stored = engine.password_hash(name).unwrap_or_default();
            let (algorithm, hash) = authenticate::exported(stored);
            json!({
                "name": name, "tags": tags(&shared, name, is_administrator),
                "limits": limits::shown(quota, limits::OF_USERS).unwrap_or_default(),
                "password_hash": hash, "hashing_algorithm": algorithm,
            })
        };
        engine.list_users().map(|it| user(it.name, it.administrator, &it.quota)).collect()
    };
    Ok(state.mailboxes.home().ask(look).await?)
}

pub(super) async fn users(state: Shared, query: Parameters) -> Answer {
    page(&query, user_rows(&state).await?)
}

pub(super) async fn user(state: Shared, Path(name): Path<String>) -> Answer {
    named(user_rows(&state).await?, "user", &name)
}

/// Users who may do nothing anywhere.
pub(super) async fn users_without_permissions(state: Shared) -> Answer {
    let mut rows = user_rows(&state).await?;
    let permissions = permission_rows(&state).await?;
    rows.retain(|user| !permissions.iter().any(|it| it["user"] == user["name"]));
    Ok(Json(rows.into()))
}

/// Whether a user of these tags administers. Refused: a tag that it cannot be given.
fn administers(state: &State, name: &str, given: &TagList) -> Result<bool, String> {
    let own = tags(state, name, true);
    match given.0.iter().find(|tag| !own.contains(&tag.as_str())) {
        None => Ok(given.0.iter().any(|tag| tag == ADMINISTRATOR)),
        Some(tag) if tag == MONITORING => Err(format!(
            "the tag monitoring is given by the setting metrics-users: add '{name}' there"
        )),
        Some(tag) => Err(format!("the tag '{tag}' is not offered: administrator, or none")),
    }
}

impl UserBody {
    /// What is stored of the password that is given.
    pub(super) async fn stored(&self) -> Answer<String> {
        match (&self.password, self.password_hash.as_deref()) {
            (Some(password), _) if !password.is_empty() => {
                Ok(hash_of(Some(password.clone())).await?)
            }
            (_, Some(hash)) if !hash.is_empty() => {
                Ok(authenticate::imported(self.hashing_algorithm.as_deref(), hash)?)
            }
            _ => Ok(NO_PASSWORD.to_owned()),
        }
    }
}

pub(super) async fn put_user(
    state: Shared,
    Path(name): Path<String>,
    Body(body): Body<UserBody>,
) -> Answer<StatusCode> {
    let tags = body.tags.as_ref().ok_or_else(|| Refused::bad("tags: is missing"))?;
    let administrator = administers(&state, &name, tags)?;
    let password_hash = body.stored().await?;
    let asked = name.clone();
    let look = move |shard: &mut Shard| shard.node.engine().list_users().any(|it| it.name == asked);
    let was_there = state.mailboxes.home().ask(look).await?;
    let request = if was_there {
        let (password_hash, administrator) = (Some(password_hash), Some(administrator));
        Request::ChangeUser { name, password_hash, administrator }
    } else {
        Request::CreateUser { name, password_hash, administrator }
    };
    carry_out(&state, ANY_VHOST, request).await?;
    Ok(changed(was_there))
}

pub(super) async fn delete_user(state: Shared, Path(name): Path<String>) -> Answer<StatusCode> {
    carry_out(&state, ANY_VHOST, Request::DeleteUser { name }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Several users that go.
#[derive(Debug, Deserialize)]
pub(super) struct Names {
    users: Vec<String>,
}

pub(super) async fn delete_users(state: Shared, Body(body): Body<Names>) -> Answer<StatusCode> {
    for name in body.users {
        carry_out(&state, ANY_VHOST, Request::DeleteUser { name }).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn permission_rows(state: &Shared) -> Answer<Vec<Value>> {
    let look = |shard: &mut Shard| {
        let permissions = shard.node.engine().list_permissions();
        let rows = permissions.map(|it| {
            json!({
                "user": it.user, "vhost": it.vhost, "configure": it.configure,
                "write": it.write, "read": it.read,
            })
        });
        rows.collect()
    };
    Ok(state.mailboxes.home().ask(look).await?)
}

pub(super) async fn permissions(state: Shared, query: Parameters) -> Answer {
    page(&query, permission_rows(&state).await?)
}

fn is_of(row: &Value, vhost: &str, user: &str) -> bool {
    row["vhost"] == vhost && row["user"] == user
}

pub(super) async fn permission(state: Shared, Path((vhost, user)): Pair) -> Answer {
    let rows = permission_rows(&state).await?;
    let found = rows.into_iter().find(|row| is_of(row, &vhost, &user));
    let none = || Refused::none(format!("user '{user}' may do nothing in virtual host '{vhost}'"));
    Ok(Json(found.ok_or_else(none)?))
}

/// Rows of a list that have this value in a field.
fn with(rows: Vec<Value>, field: &str, value: &str) -> Json<Value> {
    Json(rows.into_iter().filter(|row| row[field] == value).collect())
}

pub(super) async fn vhost_permissions(state: Shared, Path(vhost): Path<String>) -> Answer {
    check_vhost(&state, &vhost).await?;
    Ok(with(permission_rows(&state).await?, "vhost", &vhost))
}

pub(super) async fn user_permissions(state: Shared, Path(user): Path<String>) -> Answer {
    Ok(with(permission_rows(&state).await?, "user", &user))
}

pub(super) async fn put_permission(
    state: Shared,
    Path((vhost, user)): Pair,
    Body(body): Body<PermissionBody>,
) -> Answer<StatusCode> {
    let PermissionBody { configure, write, read } = body;
    let rows = permission_rows(&state).await?;
    let was_there = rows.iter().any(|row| is_of(row, &vhost, &user));
    let request = Request::SetPermissions { user, vhost, configure, write, read };
    carry_out(&state, ANY_VHOST, request).await?;
    Ok(changed(was_there))
}

pub(super) async fn delete_permission(
    state: Shared,
    Path((vhost, user)): Pair,
) -> Answer<StatusCode> {
    carry_out(&state, ANY_VHOST, Request::ClearPermissions { user, vhost }).await?;
    Ok(StatusCode::NO_CONTENT)
}
