//! What nats-server's monitoring calls things: rows of connections, orders, times.

use crate::connection_query::{ConnectionRow, Figures, Order};
use angarium_engine::Time;
use serde_json::{Value, json};
use std::time::{Duration, UNIX_EPOCH};

/// The order of a name. `None`: nats-server has none of that name. Ended connections are not remembered, and
/// round trips not measured, so that orders by those are by number.
#[must_use]
pub fn order(name: &str) -> Option<Order> {
    Some(match name {
        "" | "cid" | "start" | "stop" | "reason" | "rtt" => Order::Number,
        "uptime" => Order::Oldest,
        "last" => Order::LastInput,
        "idle" => Order::Idle,
        "subs" => Order::Subjects,
        "pending" => Order::Unsent,
        "msgs_from" => Order::MessagesReceived,
        "msgs_to" => Order::MessagesSent,
        "bytes_from" => Order::BytesReceived,
        "bytes_to" => Order::BytesSent,
        _ => return None,
    })
}

/// One connection.
#[must_use]
pub fn connection_row(row: &ConnectionRow, now: Time) -> Value {
    let Figures { number, connected_at, last_input, unsent_bytes, traffic } = row.figures;
    let (host, port) = row.address.rsplit_once(':').unwrap_or((&row.address, "0"));
    json!({
        "cid": number,
        "kind": "Client",
        "type": row.protocol.to_ascii_lowercase(),
        "ip": host.trim_matches(['[', ']']),
        "port": port.parse().unwrap_or(0u16),
        "start": date(connected_at),
        "last_activity": date(last_input),
        "uptime": uptime(now.since(connected_at)),
        "idle": uptime(now.since(last_input)),
        "pending_bytes": unsent_bytes,
        "in_msgs": traffic.messages_received,
        "out_msgs": traffic.messages_sent,
        "in_bytes": traffic.bytes_received,
        "out_bytes": traffic.bytes_sent,
        "subscriptions": traffic.subjects,
        "name": row.client.connection_name,
        "lang": row.client.platform,
        "version": row.client.version,
    })
}

/// An object without the members that are null or empty.
#[must_use]
pub fn without_empty(mut object: Value) -> Value {
    if let Value::Object(members) = &mut object {
        members.retain(|_, it| *it != Value::Null && *it != json!([]) && *it != json!({}));
    }
    object
}

/// An instant as RFC 3339 writes it.
#[must_use]
pub fn date(time: Time) -> String {
    humantime::format_rfc3339_micros(UNIX_EPOCH + Duration::from_micros(time.0)).to_string()
}

/// A time as nats-server writes it: years, days, hours, minutes and seconds, from the first that is not 0 on.
#[must_use]
pub fn uptime(time: Duration) -> String {
    let seconds = time.as_secs();
    let parts = [
        (seconds / 31_536_000, 'y'),
        (seconds / 86_400 % 365, 'd'),
        (seconds / 3_600 % 24, 'h'),
        (seconds / 60 % 60, 'm'),
    ];
    let shown = parts.iter().skip_while(|(count, _)| *count == 0);
    let shown: String = shown.map(|(count, unit)| format!("{count}{unit}")).collect();
    format!("{shown}{}s", seconds % 60)
}
