//! RabbitMQ's lists of connections, channels and consumers.

use super::super::audit::Shared;
use super::super::listings;
use super::answer::{Answer, Refused};
use super::client_rows::{self, ConnectionRow, Slot, channel_name};
use super::list::{Parameters, check_vhost, home_rows, page, within};
use super::rows::Which;
use axum::Json;
use axum::extract::Path;
use serde_json::{Value, json};
use std::collections::HashMap;

/// The connections of all shards, in the order in which they came.
pub(super) async fn connection_rows(state: &Shared) -> Answer<Vec<ConnectionRow>> {
    let mut found = listings::rows(state.mailboxes.all(), client_rows::connections).await?;
    found.sort_by_key(|row| row.number);
    Ok(found)
}

fn rows_where(rows: Vec<ConnectionRow>, is_meant: impl Fn(&ConnectionRow) -> bool) -> Vec<Value> {
    rows.into_iter().filter(is_meant).map(|row| row.row).collect()
}

pub(super) async fn connections(state: Shared, query: Parameters) -> Answer {
    page(&query, rows_where(connection_rows(&state).await?, |_| true))
}

pub(super) async fn vhost_connections(
    state: Shared,
    Path(vhost): Path<String>,
    query: Parameters,
) -> Answer {
    check_vhost(&state, &vhost).await?;
    page(&query, rows_where(connection_rows(&state).await?, |row| row.vhost == vhost))
}

pub(super) async fn user_connections(
    state: Shared,
    Path(user): Path<String>,
    query: Parameters,
) -> Answer {
    page(&query, rows_where(connection_rows(&state).await?, |row| row.user == user))
}

pub(super) async fn connection(state: Shared, Path(name): Path<String>) -> Answer {
    let found = rows_where(connection_rows(&state).await?, |row| row.name == name);
    let none = || Refused::none(format!("no connection '{name}'"));
    Ok(Json(found.into_iter().next().ok_or_else(none)?))
}

/// The channels of these connections.
async fn channel_rows(
    state: &Shared,
    is_meant: impl Fn(&ConnectionRow) -> bool,
) -> Answer<Vec<Value>> {
    let home = std::slice::from_ref(state.mailboxes.home());
    let at_home = listings::rows(home, client_rows::channels_at_home).await?;
    let at_home: HashMap<_, _> =
        at_home.into_iter().map(|(slot, it)| ((slot, it.number), it)).collect();
    let connections = connection_rows(state).await?;
    let meant = connections.iter().filter(|row| is_meant(row));
    let shown = |row: &ConnectionRow| -> Vec<Value> {
        row.channels.iter().map(|it| client_rows::channel(row, it, &at_home)).collect()
    };
    Ok(meant.flat_map(shown).collect())
}

pub(super) async fn channels(state: Shared, query: Parameters) -> Answer {
    page(&query, channel_rows(&state, |_| true).await?)
}

pub(super) async fn vhost_channels(
    state: Shared,
    Path(vhost): Path<String>,
    query: Parameters,
) -> Answer {
    check_vhost(&state, &vhost).await?;
    page(&query, channel_rows(&state, |row| row.vhost == vhost).await?)
}

pub(super) async fn connection_channels(
    state: Shared,
    Path(name): Path<String>,
    query: Parameters,
) -> Answer {
    page(&query, channel_rows(&state, |row| row.name == name).await?)
}

pub(super) async fn channel(state: Shared, Path(name): Path<String>) -> Answer {
    let found = channel_rows(&state, |row| name.starts_with(&row.name)).await?;
    let none = || Refused::none(format!("no channel '{name}'"));
    Ok(Json(found.into_iter().find(|row| row["name"] == name.as_str()).ok_or_else(none)?))
}

/// The consumers of queues, with their channels.
pub(super) async fn consumer_rows(state: &Shared, which: &Which) -> Answer<Vec<Value>> {
    let found = home_rows(state, which, client_rows::consumers).await?;
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let connections = connection_rows(state).await?;
    let of: HashMap<Slot, &ConnectionRow> = connections.iter().map(|row| (row.slot, row)).collect();
    let rows = found.into_iter().map(|(slot, number, mut row)| {
        let owner = slot.and_then(|slot| of.get(&slot));
        row["channel_details"] = owner.map_or_else(|| json!({}), |it| channel_details(it, number));
        row
    });
    Ok(rows.collect())
}

fn channel_details(of: &ConnectionRow, number: u16) -> Value {
    json!({
        "name": channel_name(&of.name, number),
        "number": number,
        "connection_name": of.name,
        "node": of.row["node"],
        "peer_host": of.details["peer_host"],
        "peer_port": of.details["peer_port"],
        "user": of.user,
    })
}

pub(super) async fn consumers(
    state: Shared,
    vhost: Option<Path<String>>,
    query: Parameters,
) -> Answer {
    let which = within(&state, vhost).await?;
    page(&query, consumer_rows(&state, &which).await?)
}
