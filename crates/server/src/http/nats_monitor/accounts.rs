//! `/accstatz` and `/accountz`: virtual hosts, which are accounts in nats-server's words.

use super::super::api::Failure;
use super::super::auth::Caller;
use super::super::listings::{self, Part};
use super::super::mailboxes::State;
use super::answers::{Answer, Shared, answered, check_names, server};
use super::options::Parameters;
use crate::reactor::Shard;
use angarium_protocol::Traffic;
use axum::extract::Query;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::{Extension, Json};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::Range;

/// The connections to one virtual host.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    connections: u64,
    /// What they have sent and received.
    traffic: Traffic,
}

pub(super) async fn accstatz(
    state: Shared,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Response {
    let answer = async {
        check_names(&state, caller, &headers).await?;
        let accounts = accounts(&state).await?;
        let server = server(&state).await?;
        let rows: Vec<Value> = accounts.iter().map(|(name, account)| row(name, account)).collect();
        Ok(Json(json!({ "server_id": server.id(), "now": server.date(), "account_statz": rows })))
    };
    answered(answer.await)
}

pub(super) async fn accountz(
    state: Shared,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Query(query): Query<Vec<(String, String)>>,
) -> Response {
    let answer = async {
        check_names(&state, caller, &headers).await?;
        look(&state, Parameters::read(query).text("acc")).await
    };
    answered(answer.await)
}

async fn look(state: &State, asked: Option<&str>) -> Answer {
    let accounts = accounts(state).await?;
    let server = server(state).await?;
    let mut answer = json!({ "server_id": server.id(), "now": server.date() });
    match asked {
        None => answer["accounts"] = accounts.keys().cloned().collect(),
        Some(name) => {
            let Some(Account { connections, traffic }) = accounts.get(name) else {
                let text = format!("there is no virtual host '{}'", name.escape_debug());
                return Err(Failure::new(StatusCode::NOT_FOUND, text));
            };
            answer["account_detail"] = json!({
                "account_name": name,
                "update_time": server.date(),
                "is_system": false,
                "expired": false,
                "complete": true,
                "jetstream_enabled": false,
                "leafnode_connections": 0,
                "client_connections": connections,
                "subscriptions": traffic.subjects,
            });
        }
    }
    Ok(Json(answer))
}

/// All virtual hosts, those without connections too.
async fn accounts(state: &State) -> Result<BTreeMap<String, Account>, Failure> {
    let names = |shard: &mut Shard| {
        let vhosts = shard.node.engine().list_vhosts();
        vhosts.map(|vhost| (vhost.name.to_owned(), Account::default())).collect()
    };
    let mut accounts: BTreeMap<String, Account> = state.mailboxes.home().ask(names).await?;
    for (name, found) in listings::rows(state.mailboxes.all(), count).await? {
        let account = accounts.entry(name).or_default();
        account.connections += found.connections;
        account.traffic.add(&found.traffic);
    }
    Ok(accounts)
}

/// The connections in some places of a shard, by virtual host.
fn count(shard: &mut Shard, places: Range<usize>) -> Part<(String, Account)> {
    let mut found = BTreeMap::<&str, Account>::new();
    for connection in shard.node.connections_in(shard.now, places) {
        // Who has not logged in is in none.
        if !connection.info.vhost.is_empty() {
            let account = found.entry(connection.info.vhost).or_default();
            account.connections += 1;
            account.traffic.add(&connection.figures.traffic);
        }
    }
    let rows = found.into_iter().map(|(name, account)| (name.to_owned(), account)).collect();
    Part { rows, places: shard.node.connection_places() }
}

/// Ended connections are not remembered.
fn row(name: &str, account: &Account) -> Value {
    let Account { connections, traffic } = account;
    let messages = |messages: u64, bytes: u64| json!({ "msgs": messages, "bytes": bytes });
    json!({
        "acc": name,
        "name": name,
        "conns": connections,
        "leafnodes": 0,
        "total_conns": connections,
        "num_subscriptions": traffic.subjects,
        "sent": messages(traffic.messages_sent, traffic.bytes_sent),
        "received": messages(traffic.messages_received, traffic.bytes_received),
        "slow_consumers": 0,
    })
}
