//! `/connz`: the connections, a page at a time.

use super::super::api::Failure;
use super::super::auth::Caller;
use super::super::listings::{self, Part};
use super::super::mailboxes::State;
use super::answers::{Answer, Shared, answered, check_names, server};
use super::options::{Ended, Parameters, wrong};
use super::subsz::{SUBSCRIPTIONS_MAX, detail};
use crate::reactor::Shard;
use angarium_engine::{ConnectionId, subjects_overlap};
use angarium_protocol::nats::monitoring::{connection_row, order, without_empty};
use angarium_protocol::{ConnectionRow, Order, SortKey};
use axum::extract::Query;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::{Extension, Json};
use serde_json::{Value, json};
use std::ops::Range;

/// What is asked.
#[derive(Clone, Debug)]
struct Asked {
    order: Order,
    /// Rows name users and virtual hosts.
    with_users: bool,
    subscriptions: Subscriptions,
    offset: usize,
    limit: usize,
    number: Option<u64>,
    user: Option<String>,
    vhost: Option<String>,
    subject: Option<String>,
    ended: Ended,
}

/// What rows list of subscriptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subscriptions {
    None,
    Subjects,
    Details,
}

/// Where a connection is, with its place in the order.
type Found = (SortKey, ConnectionId);

pub(super) async fn connz(
    state: Shared,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Query(query): Query<Vec<(String, String)>>,
) -> Response {
    let answer = async {
        check_names(&state, caller, &headers).await?;
        look(&state, Asked::read(&Parameters::read(query))?).await
    };
    answered(answer.await)
}

impl Asked {
    fn read(parameters: &Parameters) -> Result<Asked, Failure> {
        let sort = parameters.text("sort").unwrap_or_default();
        let details = parameters.text("subs").is_some_and(|it| it.eq_ignore_ascii_case("detail"));
        let subscriptions = match details {
            true => Subscriptions::Details,
            false if parameters.flag("subs")? => Subscriptions::Subjects,
            false => Subscriptions::None,
        };
        let (offset, limit) = parameters.page()?;
        let text = |name| parameters.text(name).map(str::to_owned);
        Ok(Asked {
            order: order(sort).ok_or_else(|| wrong(&format!("invalid sorting option: {sort}")))?,
            with_users: parameters.flag("auth")?,
            subscriptions,
            offset,
            limit,
            number: Some(parameters.number("cid")?).filter(|number| *number > 0),
            user: text("user"),
            vhost: text("acc"),
            subject: text("filter_subject"),
            ended: parameters.ended()?,
        })
    }
}

async fn look(state: &State, asked: Asked) -> Answer {
    let mut found: Vec<Found> = Vec::new();
    if asked.ended == Ended::No {
        let of_asked = asked.clone();
        let find = move |shard: &mut Shard, places| find(shard, places, &of_asked);
        found = listings::rows(state.mailboxes.all(), find).await?;
    }
    found.sort_unstable();
    let total = found.len();
    let page = found.into_iter().skip(asked.offset).take(asked.limit);
    let mut rows = Vec::new();
    for ((_, _, number), id) in page {
        let asked = asked.clone();
        let mailbox = state.mailboxes.of_connection(number);
        rows.extend(mailbox.ask(move |shard| row(shard, id, number, &asked)).await?);
    }
    let server = server(state).await?;
    Ok(Json(json!({
        "server_id": server.id(),
        "now": server.date(),
        "num_connections": rows.len(),
        "total": total,
        "offset": asked.offset,
        "limit": asked.limit,
        "connections": rows,
    })))
}

/// Those in some places of a shard that are meant.
fn find(shard: &mut Shard, places: Range<usize>, asked: &Asked) -> Part<Found> {
    let node = &shard.node;
    let is_meant = |connection: &angarium_node::ConnectionInfo<'_>| {
        let is =
            |wanted: &Option<String>, it: &str| wanted.as_ref().is_none_or(|wanted| wanted == it);
        let hears = |wanted: &String| {
            let subjects = node.engine().subscribed_subjects(connection.id);
            subjects.take(SUBSCRIPTIONS_MAX).any(|subject| subjects_overlap(wanted, subject))
        };
        is(&asked.user, connection.info.user)
            && is(&asked.vhost, connection.info.vhost)
            && asked.number.is_none_or(|number| number == connection.figures.number)
            && asked.subject.as_ref().is_none_or(hears)
    };
    let found = node.connections_in(shard.now, places).filter(is_meant);
    let rows = found.map(|it| (asked.order.key(&it.figures), it.id)).collect();
    Part { rows, places: node.connection_places() }
}

/// A connection's row, if it is still there.
fn row(shard: &mut Shard, id: ConnectionId, number: u64, asked: &Asked) -> Option<Value> {
    let node = &shard.node;
    let connection = node.connection(shard.now, id).filter(|it| it.figures.number == number)?;
    let info = &connection.info;
    let found = ConnectionRow {
        figures: connection.figures,
        protocol: info.protocol,
        address: info.peer.address.clone(),
        user: info.user.to_owned(),
        client: info.client.clone(),
        subjects: Vec::new(),
    };
    let mut row = connection_row(&found, shard.now);
    if asked.with_users {
        row["authorized_user"] = json!(info.user);
        row["account"] = json!(info.vhost);
    }
    let subscriptions = node.engine().list_subscriptions(id).take(SUBSCRIPTIONS_MAX);
    match asked.subscriptions {
        Subscriptions::None => {}
        Subscriptions::Subjects => {
            row["subscriptions_list"] = subscriptions.map(|it| json!(it.subject)).collect();
        }
        Subscriptions::Details => {
            row["subscriptions_list_detail"] =
                subscriptions.map(|it| detail(&it, number)).collect();
        }
    }
    Some(without_empty(row))
}
