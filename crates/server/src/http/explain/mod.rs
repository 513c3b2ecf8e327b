//! Explanations: facts of shards are looked up, and [`words`] made of them.

#[cfg(test)]
mod tests;
mod words;

use super::api::{Asked, Failure, Pair};
use super::audit::Shared;
use super::listings::{self, Part};
use super::rabbitmq::message_properties;
use crate::reactor::Shard;
use angarium_engine::{
    ChannelId, ConnectionId, Content, Publish, Retain, ShardId, SlowConsumerPolicy, Time,
};
use angarium_node::{ConnectionInfo, Node};
use angarium_protocol::format;
use axum::Json;
use axum::extract::Path;
use axum::http::StatusCode;
use std::collections::HashMap;
use std::ops::Range;
use words::ConnectionFacts;

pub(super) use words::Explanation;

type Answer = Result<Json<Explanation>, Failure>;
/// A connection in the slot of its shard.
type Slot = (ShardId, ConnectionId);

/// What addresses call the default exchange.
const DEFAULT_EXCHANGE: &str = "amq.default";

fn told(connection: &ConnectionInfo<'_>) -> String {
    let (info, figures) = (&connection.info, &connection.figures);
    let name = info.client.connection_name.as_ref();
    let name = name.map_or_else(String::new, |name| format!(" '{name}'"));
    format!("connection {}{name} (user '{}', {})", figures.number, info.user, info.peer.address)
}

/// All connections, as explanations name them.
async fn connections(state: &Shared) -> Result<HashMap<Slot, String>, Failure> {
    let look = |shard: &mut Shard, places: Range<usize>| {
        let own = shard.node.options().shard;
        let rows = shard.node.connections_in(shard.now, places);
        let rows = rows.map(|it| ((own, it.id), told(&it))).collect();
        Part { rows, places: shard.node.connection_places() }
    };
    Ok(listings::rows(state.mailboxes.all(), look).await?.into_iter().collect())
}

/// Who a channel of home belongs to.
fn who(node: &Node, names: &HashMap<Slot, String>, channel: ChannelId) -> String {
    let slot = node.owner_of(channel.connection);
    let name = slot.and_then(|slot| names.get(&slot));
    name.map_or_else(
        || "a connection that has gone".to_owned(),
        |name| format!("{name}, channel {}", channel.number),
    )
}

pub(super) async fn queue(state: Shared, Path((vhost, name)): Pair) -> Answer {
    let names = connections(&state).await?;
    let look = move |shard: &mut Shard| {
        let node = &shard.node;
        let facts = node.engine().queue_facts(&vhost, &name)?;
        Ok(words::queue(&facts, &|channel| who(node, &names, channel), shard.now))
    };
    let explained: Result<Explanation, angarium_engine::Refusal> =
        state.mailboxes.home().ask(look).await?;
    Ok(Json(explained?))
}

pub(super) async fn message(
    state: Shared,
    Path((vhost, name, place)): Path<(String, String, u64)>,
) -> Answer {
    let ahead = place
        .checked_sub(1)
        .ok_or_else(|| Failure::new(StatusCode::BAD_REQUEST, "places are counted from 1"))?;
    let names = connections(&state).await?;
    let look = move |shard: &mut Shard| {
        let node = &shard.node;
        let facts = node.engine().queue_facts(&vhost, &name)?;
        let found = node.engine().message_facts(&vhost, &name, ahead)?;
        let who = |channel: ChannelId| who(node, &names, channel);
        Ok(words::message(&found, place, &facts, &who, shard.now))
    };
    let explained: Result<Explanation, angarium_engine::Refusal> =
        state.mailboxes.home().ask(look).await?;
    Ok(Json(explained?))
}

pub(super) async fn connection(state: Shared, Path(id): Path<String>) -> Answer {
    let none = || Failure::new(StatusCode::NOT_FOUND, format!("no connection {id}"));
    let number: u64 = id.parse().map_err(|_| none())?;
    let look = move |shard: &mut Shard| {
        let slot = shard.node.connection_of(number)?;
        Some(((shard.node.options().shard, slot), facts_of(&shard.node, shard.now, slot)?))
    };
    let (slot, mut facts) =
        state.mailboxes.of_connection(number).ask(look).await?.ok_or_else(none)?;
    if slot.0 != ShardId::HOME {
        let at_home = move |shard: &mut Shard| {
            let node = &shard.node;
            let slots = 0..u32::try_from(node.connection_places()).unwrap_or(u32::MAX);
            let mut slots = slots.map(ConnectionId);
            let there = slots.find(|it| node.owner_of(*it) == Some(slot));
            there.map(|it| channels_of(node, it)).unwrap_or_default()
        };
        facts.channels.extend(state.mailboxes.home().ask(at_home).await?);
    }
    Ok(Json(words::connection(&facts)))
}

fn facts_of(node: &Node, now: Time, slot: ConnectionId) -> Option<ConnectionFacts> {
    let connection = node.connection(now, slot)?;
    Some(ConnectionFacts {
        who: told(&connection),
        state: connection.info.state,
        waits_for: connection.waits_for,
        unsent_bytes: connection.figures.unsent_bytes,
        slow: connection.lag.map(|it| (SlowConsumerPolicy::name(it.policy), it.missed, it.spooled)),
        channels: channels_of(node, slot),
    })
}

fn channels_of(node: &Node, slot: ConnectionId) -> Vec<(u16, usize, u64)> {
    let channels = node.engine().list_channels(slot);
    channels.map(|it| (it.number, it.unsettled, it.unconfirmed)).collect()
}

pub(super) async fn publish(state: Shared, Path((vhost, exchange)): Pair, asked: Asked) -> Answer {
    let exchange = if exchange == DEFAULT_EXCHANGE { String::new() } else { exchange };
    let key = asked.0.key.unwrap_or_default();
    let properties = message_properties(asked.0.headers.as_deref())?;
    let user = asked.0.user;
    let look = move |shard: &mut Shard| {
        let publish = Publish {
            exchange: &exchange,
            routing_key: &key,
            also_to: &[],
            mandatory: false,
            retain: Retain::No,
            not_before: None,
            transaction: None,
            content: Content {
                format: format::AMQP091,
                properties: &properties,
                body: b"",
                shared: None,
                persistent: true,
                priority: 0,
                ttl: None,
            },
        };
        let facts = shard.node.publish_facts(&vhost, &publish, user.as_deref())?;
        Ok(words::publish(&facts, &exchange, &key))
    };
    let explained: Result<Explanation, angarium_engine::Refusal> =
        state.mailboxes.home().ask(look).await?;
    Ok(Json(explained?))
}
