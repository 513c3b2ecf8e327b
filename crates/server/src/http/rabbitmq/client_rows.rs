//! Rows of RabbitMQ's lists of connections, channels and consumers, looked up on the shards' threads.

use super::super::listings::Part;
use super::broker::node_name;
use super::rows::Which;
use crate::reactor::Shard;
use angarium_engine::{ChannelListing, ConnectionId, ShardId, Time};
use angarium_node::ConnectionInfo;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

/// A connection in the slot of its shard.
pub(super) type Slot = (ShardId, ConnectionId);

/// A connection as it is shown, and what its channels and consumers show of it.
#[derive(Clone, Debug)]
pub(super) struct ConnectionRow {
    pub(super) slot: Slot,
    pub(super) number: u64,
    pub(super) user: String,
    pub(super) vhost: String,
    pub(super) name: String,
    pub(super) row: Value,
    /// What its channels show of it.
    pub(super) details: Value,
    pub(super) channels: Vec<ChannelListing>,
}

pub(super) fn connections(shard: &mut Shard, places: Range<usize>) -> Part<ConnectionRow> {
    let node = &shard.node;
    let name = node_name();
    let own = node.options().shard;
    let rows = node.connections_in(shard.now, places).map(|it| {
        let channels = node.engine().list_channels(it.id).collect();
        connection(&it, (own, it.id), channels, &name)
    });
    Part { rows: rows.collect(), places: node.connection_places() }
}

fn connection(
    connection: &ConnectionInfo<'_>,
    slot: Slot,
    channels: Vec<ChannelListing>,
    node: &str,
) -> ConnectionRow {
    let (info, figures) = (&connection.info, &connection.figures);
    let address = info.peer.address.as_str();
    let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
    let port: u16 = port.parse().unwrap_or(0);
    // The number tells it from an earlier one of the same address.
    let name = format!("{address} -> {node} #{}", figures.number);
    let details = json!({ "name": name, "peer_host": host, "peer_port": port });
    let row = json!({
        "name": name,
        "node": node,
        "user": info.user,
        "vhost": info.vhost,
        "protocol": info.protocol,
        "state": if connection.waits_for.is_some() { "flow" } else { info.state },
        "connected_at": millis(figures.connected_at),
        "channels": info.channels,
        "channel_max": u16::MAX,
        "frame_max": info.frame_bytes_max,
        "timeout": info.heartbeat_seconds,
        "ssl": info.peer.encrypted,
        "peer_host": host,
        "peer_port": port,
        "host": node,
        "port": 0,
        "type": "network",
        "recv_oct": figures.traffic.bytes_received,
        "recv_cnt": figures.traffic.messages_received,
        "send_oct": figures.traffic.bytes_sent,
        "send_cnt": figures.traffic.messages_sent,
        "send_pend": figures.unsent_bytes,
        "user_provided_name": info.client.connection_name,
        "client_properties": {
            "connection_name": info.client.connection_name.as_deref().unwrap_or_default(),
            "product": info.client.product.as_deref().unwrap_or_default(),
            "version": info.client.version.as_deref().unwrap_or_default(),
            "platform": info.client.platform.as_deref().unwrap_or_default(),
        },
    });
    let (user, vhost) = (info.user.to_owned(), info.vhost.to_owned());
    ConnectionRow { slot, number: figures.number, user, vhost, name, row, details, channels }
}

fn millis(at: Time) -> u64 {
    at.0 / 1_000
}

/// What home knows of the channels of all connections, those of other shards too.
pub(super) fn channels_at_home(
    shard: &mut Shard,
    places: Range<usize>,
) -> Part<(Slot, ChannelListing)> {
    let node = &shard.node;
    let slots = (places.start..places.end.min(node.connection_places())).filter_map(|slot| {
        let id = ConnectionId(u32::try_from(slot).ok()?);
        Some((id, node.owner_of(id)?))
    });
    let rows = slots
        .flat_map(|(id, slot)| node.engine().list_channels(id).map(move |channel| (slot, channel)));
    Part { rows: rows.collect(), places: node.connection_places() }
}

pub(super) fn channel_name(connection: &str, number: u16) -> String {
    format!("{connection} ({number})")
}

/// A channel, with what home knows of it.
pub(super) fn channel(
    of: &ConnectionRow,
    here: &ChannelListing,
    at_home: &HashMap<(Slot, u16), ChannelListing>,
) -> Value {
    let home = at_home.get(&(of.slot, here.number)).copied().unwrap_or(*here);
    json!({
        "name": channel_name(&of.name, here.number),
        "number": here.number,
        "node": of.row["node"],
        "user": of.user,
        "vhost": of.vhost,
        "connection_details": of.details,
        "state": "running",
        "consumer_count": here.consumers.max(home.consumers),
        "confirm": here.confirms || home.confirms,
        "transactional": here.transactional || home.transactional,
        "prefetch_count": here.credit.max(home.credit),
        "global_prefetch_count": here.channel_credit.max(home.channel_credit),
        "messages_unacknowledged": here.unsettled.max(home.unsettled),
        "messages_unconfirmed": here.unconfirmed.max(home.unconfirmed),
        "messages_uncommitted": 0,
        "acks_uncommitted": 0,
    })
}

/// A consumer's row without its channel, and whose that is.
pub(super) fn consumers(
    shard: &mut Shard,
    places: Range<usize>,
    which: &Which,
) -> Part<(Option<Slot>, u16, Value)> {
    let node = &shard.node;
    let engine = node.engine();
    let meant = engine.list_consumers_in(places).filter(|it| which.has(it.vhost, it.queue));
    let rows = meant.map(|it| {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let priority = (it.priority != 0).then(|| json!({ "x-priority": it.priority }));
        let row = json!({
            "consumer_tag": it.name,
            "queue": { "name": it.queue, "vhost": it.vhost },
            "active": it.active,
            "activity_status": if it.active { "up" } else { "waiting" },
            "ack_required": !it.presettled,
            "exclusive": it.exclusive,
            "prefetch_count": it.credit,
            "arguments": priority.unwrap_or_else(|| json!({})),
            // 0: no limit.
            "consumer_timeout": it.settle_timeout.map_or(0, millis),
        });
        (node.owner_of(it.channel.connection), it.channel.number, row)
    });
    Part { rows: rows.collect(), places: engine.queue_places() }
}
