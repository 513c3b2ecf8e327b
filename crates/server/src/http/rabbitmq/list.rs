//! What RabbitMQ's lists have in common: their parameters, which virtual host, whose rows.

use super::super::audit::Shared;
use super::super::listings::{self, Part};
use super::answer::{Answer, Refused};
use super::page::Asked;
use super::rows::Which;
use crate::reactor::Shard;
use axum::Json;
use axum::extract::{Path, Query};
use serde_json::Value;
use std::ops::Range;

/// What follows an address.
pub(super) type Parameters = Query<Vec<(String, String)>>;
/// A virtual host, and a name in it.
pub(super) type Pair = Path<(String, String)>;

/// What RabbitMQ calls the default exchange in addresses.
const DEFAULT_EXCHANGE: &str = "amq.default";

/// The name of an exchange in an address.
pub(super) fn exchange_name(named: String) -> String {
    if named == DEFAULT_EXCHANGE { String::new() } else { named }
}

/// Those of one virtual host, which has to be there, or of all.
pub(super) async fn within(state: &Shared, vhost: Option<Path<String>>) -> Answer<Which> {
    let vhost = vhost.map(|Path(vhost)| vhost);
    if let Some(vhost) = &vhost {
        check_vhost(state, vhost).await?;
    }
    Ok(Which { vhost, name: None })
}

/// Refuses a virtual host that is not there.
pub(super) async fn check_vhost(state: &Shared, vhost: &str) -> Answer<()> {
    let named = vhost.to_owned();
    let look =
        move |shard: &mut Shard| shard.node.engine().list_vhosts().any(|it| it.name == named);
    let is_there = state.mailboxes.home().ask(look).await?;
    if is_there { Ok(()) } else { Err(Refused::none(format!("no virtual host '{vhost}'"))) }
}

pub(super) fn page(query: &Parameters, rows: Vec<Value>) -> Answer {
    Ok(Json(Asked::read(&query.0)?.of(rows)?))
}

/// Rows of home that are meant.
pub(super) async fn home_rows<T: Send + 'static>(
    state: &Shared,
    which: &Which,
    look: fn(&mut Shard, Range<usize>, &Which) -> Part<T>,
) -> Answer<Vec<T>> {
    let which = which.clone();
    let look = move |shard: &mut Shard, places| look(shard, places, &which);
    Ok(listings::rows(std::slice::from_ref(state.mailboxes.home()), look).await?)
}
