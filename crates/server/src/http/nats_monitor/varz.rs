//! `/varz`: the broker's settings and totals.

use super::super::auth::Caller;
use super::super::listings::{self, Part};
use super::super::mailboxes::State;
use super::super::measured::{Measured, measured, resident_bytes};
use super::answers::{Answer, Monitor, Shared, answered, processor_time, sees_names, server, time};
use crate::reactor::Shard;
use angarium_protocol::Traffic;
use angarium_protocol::nats::monitoring::{date, uptime};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::{Extension, Json};
use serde_json::{Value, json};
use std::ops::Range;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// The use of processors is measured over this time at least.
const MEASURED: Duration = Duration::from_millis(500);

pub(super) async fn varz(
    state: Shared,
    Extension(caller): Extension<Caller>,
    Extension(monitor): Extension<Arc<Monitor>>,
    headers: HeaderMap,
) -> Response {
    let answer = async {
        sees_names(&state, caller, &headers).await?;
        look(&state, &monitor).await
    };
    answered(answer.await)
}

async fn look(state: &State, monitor: &Monitor) -> Answer {
    let shards = state.mailboxes.ask_all(measured).await?;
    let traffic = listings::rows(state.mailboxes.all(), traffic).await?;
    let mut sum = Traffic::default();
    traffic.iter().for_each(|of_one| sum.add(of_one));
    let server = server(state).await?;
    let mut varz = settings(state, &server.settings);
    let started = time(monitor.started);
    let further = [
        totals(&shards, &sum),
        process(monitor),
        json!({
            "start": date(started),
            "now": server.date(),
            "uptime": uptime(server.now.since(started)),
            "config_load_time": date(started),
        }),
    ];
    for object in further {
        if let (Value::Object(all), Value::Object(object)) = (&mut varz, object) {
            all.extend(object);
        }
    }
    Ok(Json(varz))
}

/// What connections of one shard have sent and received.
fn traffic(shard: &mut Shard, places: Range<usize>) -> Part<Traffic> {
    let mut sum = Traffic::default();
    for connection in shard.node.connections_in(shard.now, places) {
        sum.add(&connection.figures.traffic);
    }
    Part { rows: vec![sum], places: shard.node.connection_places() }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn settings(state: &State, nats: &angarium_protocol::nats::Settings) -> Value {
    let settings = &state.settings;
    let http = settings.nats_monitoring;
    json!({
        "server_id": nats.server_id,
        "server_name": nats.server_name,
        "version": nats.version,
        "proto": 1,
        "go": "",
        "host": nats.host,
        "port": nats.port,
        "auth_required": true,
        "tls_required": nats.tls == angarium_protocol::nats::Tls::Required,
        "tls_verify": nats.tls_verify,
        "max_connections": settings.connections_max,
        "max_subscriptions": settings.subscriptions_max,
        "ping_interval": nanoseconds(nats.ping_interval),
        "ping_max": nats.pings_out_max,
        "http_host": http.map(|address| address.ip().to_string()),
        "http_port": http.map_or(0, |address| address.port()),
        "http_base_path": "",
        "https_port": 0,
        "auth_timeout": nats.login_timeout.as_secs_f64(),
        "max_control_line": nats.control_line_bytes_max,
        "max_payload": nats.payload_bytes_max,
        "max_pending": settings.direct_bytes_max.0,
        "tls_timeout": settings.handshake_timeout.0.as_secs_f64(),
        "write_deadline": 0,
        "cluster": {},
        "gateway": {},
        "leaf": {},
        "mqtt": {},
        "websocket": {},
        "jetstream": {},
    })
}

/// Totals since the start; of all protocols, since they share the messages.
fn totals(shards: &[Measured], open: &Traffic) -> Value {
    let sum = |value: fn(&Measured) -> u64| shards.iter().map(value).sum::<u64>();
    let in_msgs = sum(|it| it.engine.emitted + it.engine.published);
    let out_msgs = sum(|it| it.engine.direct_delivered + it.engine.delivered);
    let (in_bytes, out_bytes) = (sum(|it| it.node.received_bytes), sum(|it| it.node.sent_bytes));
    let slow_consumers = sum(|it| it.node.slow_consumers_disconnected);
    json!({
        "connections": sum(|it| it.node.connections),
        "total_connections": sum(|it| it.node.connections_total),
        "routes": 0,
        "remotes": 0,
        "leafnodes": 0,
        "in_msgs": in_msgs,
        "in_bytes": in_bytes,
        "in_client_msgs": in_msgs,
        "in_client_bytes": in_bytes,
        "out_msgs": out_msgs,
        "out_bytes": out_bytes,
        "out_client_msgs": out_msgs,
        "out_client_bytes": out_bytes,
        "slow_consumers": slow_consumers,
        "slow_consumer_stats": { "clients": slow_consumers, "routes": 0, "gateways": 0, "leafs": 0 },
        "stale_connections": 0,
        "stalled_clients": sum(|it| it.node.throttled + it.node.floods_paused),
        "subscriptions": open.subjects,
    })
}

fn process(monitor: &Monitor) -> Value {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let requests = monitor.requests.lock().unwrap_or_else(PoisonError::into_inner);
    json!({
        "mem": resident_bytes(),
        "cores": cores,
        "gomaxprocs": cores,
        "cpu": processor_percent(monitor),
        "http_req_stats": &*requests,
    })
}

/// The use of processors since it was last asked for, in percent of one.
fn processor_percent(monitor: &Monitor) -> f64 {
    let mut last = monitor.processor.lock().unwrap_or_else(PoisonError::into_inner);
    let (at, used, _) = *last;
    let (now, uses) = (Instant::now(), processor_time());
    if now.duration_since(at) >= MEASURED {
        let share = uses.saturating_sub(used).as_secs_f64() / now.duration_since(at).as_secs_f64();
        *last = (now, uses, (share * 1_000.0).round() / 10.0);
    }
    last.2
}
