//! `/subsz`: how many subscriptions there are, and which, a page at a time.

use super::super::api::Failure;
use super::super::auth::Caller;
use super::super::listings::{self, Part};
use super::super::mailboxes::State;
use super::answers::{Answer, Shared, answered, check_names, server};
use super::options::{Parameters, wrong};
use crate::reactor::Shard;
use angarium_engine::{SubscriptionListing, subjects_overlap};
use angarium_protocol::nats::monitoring::without_empty;
use axum::extract::Query;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::{Extension, Json};
use serde_json::{Value, json};
use std::ops::Range;

/// Subscriptions of one connection that are looked at and listed.
pub(super) const SUBSCRIPTIONS_MAX: usize = 1_024;
/// Connections whose subscriptions are looked at before other work of the shard.
const CONNECTIONS_PER_TURN: usize = 16;

/// What is asked.
#[derive(Clone, Debug)]
struct Asked {
    lists: bool,
    offset: usize,
    limit: usize,
    vhost: Option<String>,
    /// Only those that a message to this subject would reach.
    test: Option<String>,
}

pub(super) async fn subsz(
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
        let (offset, limit) = parameters.page()?;
        let test = parameters.text("test").map(str::to_owned);
        let is_literal = |it: &String| it.split('.').all(|word| !matches!(word, "" | "*" | ">"));
        if let Some(test) = test.as_ref().filter(|test| !is_literal(test)) {
            let text = format!("invalid test subject, must be valid publish subject: {test}");
            return Err(wrong(&text));
        }
        let vhost = parameters.text("acc").map(str::to_owned);
        Ok(Asked { lists: parameters.flag("subs")?, offset, limit, vhost, test })
    }
}

async fn look(state: &State, asked: Asked) -> Answer {
    let of_asked = asked.clone();
    let count = move |shard: &mut Shard, places| count(shard, places, &of_asked);
    let subscriptions: u64 = listings::rows(state.mailboxes.all(), count).await?.into_iter().sum();
    let server = server(state).await?;
    let mut answer = json!({
        "server_id": server.id(),
        "now": server.date(),
        "num_subscriptions": subscriptions,
        "num_cache": 0,
        "num_inserts": 0,
        "num_removes": 0,
        "num_matches": 0,
        "cache_hit_rate": 0,
        "max_fanout": 0,
        "avg_fanout": 0,
        "total": 0,
        "offset": asked.offset,
        "limit": asked.limit,
    });
    if asked.lists {
        let (rows, total) = page(state, &asked).await?;
        answer["total"] = json!(total);
        answer["subscriptions_list"] = rows.into();
    }
    Ok(Json(answer))
}

/// How many subscriptions connections in some places have.
fn count(shard: &mut Shard, places: Range<usize>, asked: &Asked) -> Part<u64> {
    let node = &shard.node;
    let is_meant = |vhost: &str| asked.vhost.as_ref().is_none_or(|wanted| wanted == vhost);
    let found = node.connections_in(shard.now, places).filter(|it| is_meant(it.info.vhost));
    let rows = vec![found.map(|it| it.figures.traffic.subjects).sum()];
    Part { rows, places: node.connection_places() }
}

/// The rows that are asked for, and how many there would be without end; connections in the order of their
/// places.
async fn page(state: &State, asked: &Asked) -> Result<(Vec<Value>, usize), Failure> {
    let (mut rows, mut total) = (Vec::new(), 0);
    for mailbox in state.mailboxes.all() {
        let mut from = 0;
        loop {
            let to = from + CONNECTIONS_PER_TURN;
            let (asked, skip) = (asked.clone(), total);
            let mut part = mailbox.ask(move |shard| list(shard, from..to, &asked, skip)).await?;
            total += part.count;
            rows.append(&mut part.rows);
            if to >= part.places {
                break;
            }
            from = to;
        }
    }
    Ok((rows, total))
}

#[derive(Debug)]
struct Listed {
    rows: Vec<Value>,
    /// Those that are meant, listed or not.
    count: usize,
    places: usize,
}

/// Subscriptions of connections in some places; `before`: how many come before them.
fn list(shard: &mut Shard, places: Range<usize>, asked: &Asked, before: usize) -> Listed {
    let node = &shard.node;
    let (mut rows, mut count) = (Vec::new(), 0);
    let page = asked.offset..asked.offset.saturating_add(asked.limit);
    for connection in node.connections_in(shard.now, places) {
        if asked.vhost.as_ref().is_some_and(|wanted| wanted != connection.info.vhost) {
            continue;
        }
        let number = connection.figures.number;
        let all = node.engine().list_subscriptions(connection.id).take(SUBSCRIPTIONS_MAX);
        let is_meant = |it: &SubscriptionListing<'_>| {
            asked.test.as_ref().is_none_or(|test| subjects_overlap(test, it.subject))
        };
        for subscription in all.filter(is_meant) {
            if page.contains(&(before + count)) {
                let mut row = detail(&subscription, number);
                row["account"] = json!(connection.info.vhost);
                rows.push(row);
            }
            count += 1;
        }
    }
    Listed { rows, count, places: node.connection_places() }
}

/// A subscription in nats-server's words.
pub(super) fn detail(subscription: &SubscriptionListing<'_>, connection: u64) -> Value {
    without_empty(json!({
        "subject": subscription.subject,
        "qgroup": subscription.group,
        "sid": subscription.name,
        "msgs": subscription.delivered,
        "max": subscription.until,
        "cid": connection,
    }))
}
