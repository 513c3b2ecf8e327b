//! The broker and its one node, as RabbitMQ's management shows them.

use super::super::audit::Shared;
use super::super::listings::{self, Part};
use super::super::mailboxes::State;
use super::super::measured::{Measured, measured, resident_bytes};
use super::answer::{Answer, Refused};
use super::auth::Tags;
use super::rates::{self, Rates};
use crate::reactor::{Gone, Shard};
use crate::settings::{LISTENERS, Transport};
use angarium_engine::ExchangeKind;
use angarium_journal::State as Journal;
use axum::extract::Path;
use axum::{Extension, Json};
use serde_json::{Value, json};
use std::ops::Range;

/// The version of RabbitMQ whose management this is, for tools that look at it.
pub(in super::super) const RABBITMQ_VERSION: &str = "4.1.0";
pub(super) const PRODUCT: &str = "Angarium";
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The name of the node, and of the cluster that it is alone in.
pub(in super::super) fn node_name() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("angarium@{}", host.split('.').next().unwrap_or_default())
}

/// Ready and unsettled messages, and consumers, of each queue.
fn totals(shard: &mut Shard, places: Range<usize>) -> Part<[u64; 3]> {
    let engine = shard.node.engine();
    let queues = engine.list_queues_in(places);
    let rows = queues.map(|it| [it.ready, it.unsettled, it.consumers as u64]).collect();
    Part { rows, places: engine.queue_places() }
}

/// The channels of each connection.
pub(in super::super) fn channels(shard: &mut Shard, places: Range<usize>) -> Part<u64> {
    let node = &shard.node;
    let channels = node.connections_in(shard.now, places).map(|it| it.info.channels as u64);
    Part { rows: channels.collect(), places: node.connection_places() }
}

/// What the whole broker has.
#[derive(Debug, Default)]
pub(in super::super) struct Totals {
    pub(in super::super) shards: Vec<Measured>,
    pub(in super::super) queues: u64,
    pub(in super::super) ready: u64,
    pub(in super::super) unsettled: u64,
    pub(in super::super) consumers: u64,
    pub(in super::super) exchanges: u64,
    pub(in super::super) connections: u64,
    pub(in super::super) channels: u64,
}

/// Counts it, a part at a time.
pub(in super::super) async fn count(state: &State) -> Result<Totals, Gone> {
    let shards = state.mailboxes.ask_all(measured).await?;
    let home = std::slice::from_ref(state.mailboxes.home());
    let queues = listings::rows(home, totals).await?;
    let channels = listings::rows(state.mailboxes.all(), channels).await?;
    let exchanges = |shard: &mut Shard, places| {
        let engine = shard.node.engine();
        let rows = engine.list_exchanges_in(places).map(|_| ()).collect();
        Part { rows, places: engine.exchange_places() }
    };
    let exchanges = listings::rows(home, exchanges).await?.len() as u64;
    let sum = |index: usize| queues.iter().map(|row| row[index]).sum::<u64>();
    Ok(Totals {
        queues: queues.len() as u64,
        ready: sum(0),
        unsettled: sum(1),
        consumers: sum(2),
        exchanges,
        connections: shards.iter().map(|it| it.node.connections).sum(),
        channels: channels.into_iter().sum(),
        shards,
    })
}

pub(super) async fn overview(state: Shared, Extension(rates): Extension<Rates>) -> Answer {
    let totals = count(&state).await?;
    let created: u64 = totals.shards.iter().map(|it| it.node.connections_total).sum();
    let node = node_name();
    let kind = |name: &&str| json!({ "name": name, "description": "", "enabled": true });
    let kinds: Vec<Value> = ExchangeKind::NAMES.iter().map(kind).collect();
    let lengths = rates::lengths(totals.ready, totals.unsettled).to_vec();
    Ok(Json(json!({
        "management_version": RABBITMQ_VERSION,
        "rates_mode": "basic",
        "sample_retention_policies": { "global": [], "basic": [], "detailed": [] },
        "exchange_types": kinds,
        "product_version": VERSION,
        "product_name": PRODUCT,
        "rabbitmq_version": RABBITMQ_VERSION,
        "cluster_name": node,
        "cluster_tags": {},
        "node_tags": {},
        "node": node,
        "erlang_version": "0",
        "erlang_full_version": "0: Angarium is no Erlang program",
        "release_series_support_status": "supported",
        "disable_stats": false,
        "enable_queue_totals": true,
        "statistics_db_event_queue": 0,
        "message_stats": rates.of_broker(&rates::broker_counts(&totals.shards)),
        "churn_rates": {
            "connection_created": created,
            "connection_closed": created.saturating_sub(totals.connections),
            "channel_created": 0, "channel_closed": 0,
            "queue_declared": 0, "queue_created": 0, "queue_deleted": 0,
        },
        "queue_totals": rates.of_broker(&lengths),
        "object_totals": {
            "connections": totals.connections, "channels": totals.channels,
            "exchanges": totals.exchanges, "queues": totals.queues,
            "consumers": totals.consumers,
        },
        "listeners": listeners(&state),
        "contexts": [],
    })))
}

/// Where clients are served, by the settings.
pub(super) fn listeners(state: &State) -> Vec<Value> {
    let node = node_name();
    let listener = |protocol: &str, address: std::net::SocketAddr| {
        json!({
            "node": node, "protocol": protocol, "ip_address": address.ip().to_string(),
            "port": address.port(), "socket_opts": {},
        })
    };
    let clients = LISTENERS.iter().flat_map(|kind| {
        let addresses = (kind.places)(&state.settings).addresses();
        addresses.map(|address| listener(protocol_name(kind.name, kind.transport), address))
    });
    clients.chain(state.settings.http.map(|address| listener("http", address))).collect()
}

/// What RabbitMQ calls a listener's protocol.
fn protocol_name(name: &'static str, transport: Transport) -> &'static str {
    match (name, transport) {
        ("amqps", Transport::Tls) => "amqp/ssl",
        ("mqtts", Transport::Tls) => "mqtt/ssl",
        ("stomps", Transport::Tls) => "stomp/ssl",
        (name, _) => name,
    }
}

/// What wants an operator: `memory`, `disk`; and how much memory clients may hold.
pub(super) async fn alarms(state: &State) -> Answer<(Vec<&'static str>, u64)> {
    let home = state.mailboxes.home();
    let look = |shard: &mut Shard| {
        let short = shard.node.memory_short_connections() > 0;
        let full = *shard.node.journal().state() != Journal::Ready;
        let alarms = [("memory", short), ("disk", full)];
        let alarms = alarms.into_iter().filter_map(|(name, is_on)| is_on.then_some(name));
        (alarms.collect(), shard.node.memory_limits().all)
    };
    Ok(home.ask(look).await?)
}

pub(super) async fn nodes(state: Shared, Extension(rates): Extension<Rates>) -> Answer {
    Ok(Json(json!([node(&state, &rates).await?])))
}

pub(super) async fn one_node(
    state: Shared,
    Extension(rates): Extension<Rates>,
    Path(name): Path<String>,
) -> Answer {
    check_node(&name)?;
    Ok(Json(node(&state, &rates).await?))
}

fn check_node(name: &str) -> Answer<()> {
    let own = node_name();
    if name == own { Ok(()) } else { Err(Refused::none(format!("no node '{name}', but '{own}'"))) }
}

async fn node(state: &State, rates: &Rates) -> Answer<Value> {
    let (alarms, memory_max) = alarms(state).await?;
    let descriptors = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let used = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let free = rustix::fs::statvfs(state.settings.data.as_path()).ok();
    let uptime = rates.began.elapsed().as_millis();
    Ok(json!({
        "name": node_name(),
        "type": "disc",
        "running": true,
        "being_drained": false,
        "uptime": u32::try_from(uptime).unwrap_or(u32::MAX),
        "run_queue": 0,
        "processors": std::thread::available_parallelism().map_or(1, usize::from),
        "os_pid": std::process::id().to_string(),
        "fd_used": used,
        "fd_total": descriptors.map_or(u32::MAX, |it| u32::try_from(it).unwrap_or(u32::MAX)),
        "sockets_used": 0, "sockets_total": 0,
        "proc_used": 0, "proc_total": 0,
        "mem_used": resident_bytes(),
        "mem_limit": memory_max,
        "mem_alarm": alarms.contains(&"memory"),
        "disk_free": free.map_or(0, |it| it.f_bavail * it.f_frsize),
        "disk_free_limit": 0,
        "disk_free_alarm": alarms.contains(&"disk"),
        "rates_mode": "basic",
        "net_ticktime": 0,
        "enabled_plugins": ["rabbitmq_management", "rabbitmq_prometheus"],
        "applications": [{ "name": "rabbit", "description": PRODUCT, "version": VERSION }],
        "auth_mechanisms": [], "exchange_types": [], "partitions": [], "contexts": [],
        "config_files": [], "log_files": [],
        "db_dir": state.settings.data.display().to_string(),
    }))
}

/// `/metrics` has memory by kind, in other words than Erlang's.
pub(super) async fn node_memory(Path(name): Path<String>) -> Answer {
    check_node(&name)?;
    Ok(Json(json!({ "memory": "not_available" })))
}

pub(super) async fn whoami(state: Shared, Extension(Tags(tags)): Extension<Tags>) -> Answer {
    let name = state.administrator.user.as_deref().unwrap_or_default();
    Ok(Json(json!({ "name": name, "tags": tags })))
}

pub(super) async fn cluster_name() -> Json<Value> {
    Json(json!({ "name": node_name() }))
}

/// Logins are counted all together, whatever their protocol.
pub(super) async fn login_attempts(state: Shared, Path(name): Path<String>) -> Answer {
    check_node(&name)?;
    let shards = state.mailboxes.ask_all(measured).await?;
    let failed: u64 = shards.iter().map(|it| it.node.authentications_failed).sum();
    let made: u64 = shards.iter().map(|it| it.node.connections_total).sum();
    Ok(Json(json!([{
        "protocol": "amqp091", "auth_attempts": made, "auth_attempts_failed": failed,
        "auth_attempts_succeeded": made.saturating_sub(failed),
    }])))
}

/// What there is none of: parameters, policies, feature flags.
pub(super) async fn empty() -> Json<Value> {
    Json(json!([]))
}
