//! RabbitMQ's limits of virtual hosts and users: some of the bounds of their quotas.

use super::super::api::ANY_VHOST;
use super::super::audit::Shared;
use super::super::request_types::least;
use super::answer::{Answer, Refused, carry_out};
use super::list::{Pair, check_vhost};
use super::read::Body;
use crate::reactor::Shard;
use angarium_engine::{Bound, Quota, Request};
use axum::Json;
use axum::extract::Path;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The limits that there are.
pub(super) type Known = &'static [(&'static str, Bound)];

const OF_VHOSTS: Known = &[("max-connections", Bound::Connections), ("max-queues", Bound::Queues)];
pub(super) const OF_USERS: Known = &[("max-connections", Bound::Connections)];

/// A limit; below 0: none.
#[derive(Debug, Deserialize)]
pub(super) struct LimitBody {
    value: i64,
}

impl LimitBody {
    fn limit(&self) -> Option<u64> {
        u64::try_from(self.value).ok()
    }
}

/// The limits that a quota sets, or none.
pub(super) fn shown(quota: &Quota, known: Known) -> Option<Map<String, Value>> {
    let set = known
        .iter()
        .filter_map(|(name, bound)| Some(((*name).to_owned(), quota.get(*bound)?.into())));
    let set: Map<String, Value> = set.collect();
    (!set.is_empty()).then_some(set)
}

/// A quota with a limit set, or taken away.
fn changed(mut quota: Quota, known: Known, name: &str, value: Option<u64>) -> Answer<Quota> {
    let Some((_, bound)) = known.iter().find(|(it, _)| *it == name) else {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        let text = format!("the limit '{name}' is not offered here: {}", names.join(", "));
        return Err(Refused::bad(text));
    };
    let (least, instead) = least(*bound);
    if value.is_some_and(|value| value < least) {
        return Err(Refused::bad(format!("{name}: must be at least {least}; {instead}")));
    }
    quota.set(*bound, value);
    Ok(quota)
}

/// The number that a limit is given; below 0: none.
pub(super) fn limit_of(value: &Value) -> Answer<Option<u64>> {
    let number = value.as_i64().ok_or_else(|| Refused::bad(format!("'{value}' is no number")))?;
    Ok(u64::try_from(number).ok())
}

/// Gives a virtual host these limits, and takes those away that are not among them.
pub(super) async fn replace_vhost_limits(
    state: &Shared,
    vhost: String,
    given: &Map<String, Value>,
) -> Answer<()> {
    let named = vhost.clone();
    let look = move |shard: &mut Shard| shard.node.engine().vhost_quota(&named);
    let mut quota = state.mailboxes.home().ask(look).await?;
    for (_, bound) in OF_VHOSTS {
        quota.set(*bound, None);
    }
    for (name, value) in given {
        quota = changed(quota, OF_VHOSTS, name, limit_of(value)?)?;
    }
    carry_out(state, ANY_VHOST, Request::SetVhostQuota { vhost, quota }).await?;
    Ok(())
}

/// Whether users have such a limit, and it may be this.
pub(super) fn check_user_limit(name: &str, value: Option<u64>) -> Answer<()> {
    changed(Quota::default(), OF_USERS, name, value).map(drop)
}

/// Whether virtual hosts have such a limit, and it may be this.
pub(super) fn check_vhost_limit(name: &str, value: Option<u64>) -> Answer<()> {
    changed(Quota::default(), OF_VHOSTS, name, value).map(drop)
}

pub(super) async fn vhost_rows(state: &Shared) -> Answer<Vec<Value>> {
    let look = |shard: &mut Shard| {
        let vhosts = shard.node.engine().list_vhosts();
        let limited = vhosts.filter_map(|it| {
            let value = shown(&it.quota, OF_VHOSTS)?;
            Some(json!({ "vhost": it.name, "value": value }))
        });
        limited.collect()
    };
    Ok(state.mailboxes.home().ask(look).await?)
}

pub(super) async fn of_vhosts(state: Shared) -> Answer {
    Ok(Json(vhost_rows(&state).await?.into()))
}

pub(super) async fn of_vhost(state: Shared, Path(vhost): Path<String>) -> Answer {
    check_vhost(&state, &vhost).await?;
    let rows = vhost_rows(&state).await?;
    Ok(Json(rows.into_iter().filter(|row| row["vhost"] == vhost).collect()))
}

async fn user_rows(state: &Shared) -> Answer<Vec<Value>> {
    let look = |shard: &mut Shard| {
        let users = shard.node.engine().list_users();
        let limited = users.filter_map(|it| {
            let value = shown(&it.quota, OF_USERS)?;
            Some(json!({ "user": it.name, "value": value }))
        });
        limited.collect()
    };
    Ok(state.mailboxes.home().ask(look).await?)
}

pub(super) async fn of_users(state: Shared) -> Answer {
    Ok(Json(user_rows(&state).await?.into()))
}

pub(super) async fn of_user(state: Shared, Path(user): Path<String>) -> Answer {
    let rows = user_rows(&state).await?;
    Ok(Json(rows.into_iter().filter(|row| row["user"] == user).collect()))
}

pub(super) async fn set_vhost_limit(
    state: &Shared,
    vhost: String,
    name: &str,
    value: Option<u64>,
) -> Answer<StatusCode> {
    check_vhost(state, &vhost).await?;
    let named = vhost.clone();
    let look = move |shard: &mut Shard| shard.node.engine().vhost_quota(&named);
    let quota = changed(state.mailboxes.home().ask(look).await?, OF_VHOSTS, name, value)?;
    carry_out(state, ANY_VHOST, Request::SetVhostQuota { vhost, quota }).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn set_user_limit(
    state: &Shared,
    user: String,
    name: &str,
    value: Option<u64>,
) -> Answer<StatusCode> {
    let named = user.clone();
    let look = move |shard: &mut Shard| shard.node.engine().quota(&named);
    let quota = changed(state.mailboxes.home().ask(look).await?, OF_USERS, name, value)?;
    carry_out(state, ANY_VHOST, Request::SetQuota { user, quota }).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn put_vhost_limit(
    state: Shared,
    Path((vhost, name)): Pair,
    Body(body): Body<LimitBody>,
) -> Answer<StatusCode> {
    set_vhost_limit(&state, vhost, &name, body.limit()).await
}

pub(super) async fn delete_vhost_limit(
    state: Shared,
    Path((vhost, name)): Pair,
) -> Answer<StatusCode> {
    set_vhost_limit(&state, vhost, &name, None).await
}

pub(super) async fn put_user_limit(
    state: Shared,
    Path((user, name)): Pair,
    Body(body): Body<LimitBody>,
) -> Answer<StatusCode> {
    set_user_limit(&state, user, &name, body.limit()).await
}

pub(super) async fn delete_user_limit(
    state: Shared,
    Path((user, name)): Pair,
) -> Answer<StatusCode> {
    set_user_limit(&state, user, &name, None).await
}
