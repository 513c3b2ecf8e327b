//! What listings show, looked up on the shard's thread and put into plain values.

use super::listings::Part;
use super::subjects::{KeysBody, SubjectsBody};
use crate::authenticate::NO_PASSWORD;
use crate::http::request_types::QuotaBody;
use crate::reactor::Shard;
use angarium_engine::{
    Discards, Durability, PermissionListing, QUEUE_OPTIONS, QueueListing, QueueOptions,
    SessionExpiry, UserListing, Value as Typed, VhostListing,
};
use angarium_journal::State;
use angarium_node::WaitsFor;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use std::ops::Range;

/// One queue.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct QueueView {
    pub(super) vhost: String,
    pub(super) name: String,
    pub(super) durable: bool,
    /// How well its persistent messages are kept: `flushed`, `buffered`, `memory`.
    pub(super) durability: &'static str,
    /// Its type: `classic`, `quorum`.
    pub(super) r#type: &'static str,
    /// On how many nodes it is: one, as long as a broker is one node.
    pub(super) copies: u32,
    /// Its options that are not the default, by the names that declarations use.
    pub(super) options: serde_json::Map<String, Value>,
    pub(super) exclusive: bool,
    pub(super) auto_delete: bool,
    pub(super) ready: u64,
    pub(super) unsettled: u64,
    pub(super) consumers: u64,
    pub(super) bytes: u64,
    /// Messages that are gone for good since it exists or was recovered, by reason.
    #[serde(serialize_with = "by_reason")]
    pub(super) discarded: Discards,
    /// `running`, or `stopped` at what cannot be read back.
    pub(super) state: &'static str,
    /// The place in the journal.
    pub(super) stopped_at: Option<Value>,
}

/// An object of the reasons there were.
fn by_reason<S: Serializer>(discarded: &Discards, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(discarded.iter().map(|(reason, messages)| (reason.name(), messages)))
}

/// Messages that wait in queues, and those that are out of them.
pub(super) fn messages(shard: &mut Shard, places: Range<usize>) -> Part<(u64, u64)> {
    let engine = shard.node.engine();
    let rows = engine.list_queues_in(places).map(|queue| (queue.ready, queue.unsettled));
    Part { rows: rows.collect(), places: engine.queue_places() }
}

/// The broker in short; `messages`: those of its queues.
pub(super) fn overview(shard: &mut Shard, connections: u64, messages: &[(u64, u64)]) -> Value {
    let counters = shard.node.engine().counters();
    let ready: u64 = messages.iter().map(|(ready, _)| ready).sum();
    let unsettled: u64 = messages.iter().map(|(_, unsettled)| unsettled).sum();
    let (journal, failure) = match shard.node.journal().state() {
        State::Ready => ("ready", None),
        State::Full => ("full", None),
        State::Failed(why) => ("failed", Some(why.as_str())),
    };
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "serving": shard.is_serving(),
        "journal": journal,
        "journal_failure": failure,
        "connections": connections,
        "queues": messages.len(),
        "messages_ready": ready,
        "messages_unsettled": unsettled,
        "published_total": counters.published,
        "delivered_total": counters.delivered,
        "accepted_total": counters.accepted,
    })
}

/// All virtual hosts.
pub(super) fn vhosts(shard: &mut Shard) -> Value {
    let vhosts = shard.node.engine().list_vhosts();
    let vhost = |vhost: VhostListing<'_>| {
        json!({
            "name": vhost.name,
            "queues": vhost.queues,
            "stored_bytes": vhost.stored_bytes,
            "connections": vhost.connections,
            "quota": QuotaBody::of(&vhost.quota),
        })
    };
    vhosts.map(vhost).collect()
}

/// All users.
pub(super) fn users(shard: &mut Shard) -> Value {
    let engine = shard.node.engine();
    let user = |user: UserListing<'_>| {
        json!({
            "name": user.name,
            "administrator": user.administrator,
            "password": engine.password_hash(user.name).is_some_and(|hash| hash != NO_PASSWORD),
            "queues": user.queues,
            "stored_bytes": user.stored_bytes,
            "quota": QuotaBody::of(&user.quota),
        })
    };
    engine.list_users().map(user).collect()
}

/// All permissions.
pub(super) fn permissions(shard: &mut Shard) -> Value {
    let engine = shard.node.engine();
    let permission = |permission: PermissionListing<'_>| {
        let subjects = engine.permitted_subjects(permission.user, permission.vhost);
        let exchanges = engine.exchange_rules(permission.user, permission.vhost);
        let exchanges: Map<String, Value> = exchanges
            .map(|(exchange, rules)| (exchange.to_owned(), json!(KeysBody::from(rules))))
            .collect();
        json!({
            "user": permission.user,
            "vhost": permission.vhost,
            "configure": permission.configure,
            "write": permission.write,
            "read": permission.read,
            "subjects": subjects.cloned().map(SubjectsBody::from),
            "exchanges": (!exchanges.is_empty()).then_some(exchanges),
        })
    };
    engine.list_permissions().map(permission).collect()
}

fn is_meant(wanted: Option<&str>, vhost: &str) -> bool {
    wanted.is_none_or(|wanted| wanted == vhost)
}

/// Exchanges, or those of one virtual host.
pub(super) fn exchanges(
    shard: &mut Shard,
    places: Range<usize>,
    vhost: Option<&str>,
) -> Part<Value> {
    let engine = shard.node.engine();
    let exchanges = engine.list_exchanges_in(places);
    let shown = exchanges.filter(|exchange| is_meant(vhost, exchange.vhost)).map(|exchange| {
        json!({
            "vhost": exchange.vhost,
            "name": exchange.name,
            "type": exchange.options.kind.name(),
            "durable": exchange.options.durable,
            "auto_delete": exchange.options.auto_delete,
            "internal": exchange.options.internal,
            "delaying": exchange.options.delaying,
            "alternate": exchange.options.alternate,
        })
    });
    Part { rows: shown.collect(), places: engine.exchange_places() }
}

/// How well a queue keeps persistent messages, whatever it was declared with.
fn durability(options: &QueueOptions) -> &'static str {
    let is_stored = options.durable && !options.exclusive;
    if is_stored { options.durability.name() } else { Durability::Memory.name() }
}

/// The options that are not the default, by name.
fn shown_options(options: &QueueOptions) -> serde_json::Map<String, Value> {
    let set = QUEUE_OPTIONS.iter().filter_map(|option| {
        let value = json_value(&option.get(options)?);
        Some((option.name.replace('-', "_"), value))
    });
    set.collect()
}

/// Queues, or those of one virtual host.
pub(super) fn queues(
    shard: &mut Shard,
    places: Range<usize>,
    vhost: Option<&str>,
) -> Part<QueueView> {
    let engine = shard.node.engine();
    let rows = engine.list_queues_in(places).filter(|queue| is_meant(vhost, queue.vhost));
    Part { rows: rows.map(|queue| queue_view(&queue)).collect(), places: engine.queue_places() }
}

fn queue_view(queue: &QueueListing<'_>) -> QueueView {
    QueueView {
        vhost: queue.vhost.to_owned(),
        name: queue.name.to_owned(),
        durable: queue.options.durable,
        durability: durability(queue.options),
        r#type: queue.options.queue_type.name(),
        copies: 1,
        options: shown_options(queue.options),
        exclusive: queue.options.exclusive,
        auto_delete: queue.options.auto_delete,
        ready: queue.ready,
        unsettled: queue.unsettled,
        consumers: queue.consumers as u64,
        bytes: queue.ready_bytes,
        discarded: queue.discarded,
        state: if queue.unreadable.is_some() { "stopped" } else { "running" },
        stopped_at: queue.unreadable.map(|position| {
            json!({ "segment": position.segment(), "offset": position.0 & u64::from(u32::MAX) })
        }),
    }
}

/// Named subscriptions, or those of one virtual host.
pub(super) fn subscriptions(
    shard: &mut Shard,
    places: Range<usize>,
    vhost: Option<&str>,
) -> Part<Value> {
    let engine = shard.node.engine();
    let subscriptions = engine.list_named_subscriptions_in(places);
    let shown = subscriptions.filter(|it| is_meant(vhost, it.vhost)).map(|it| {
        json!({
            "vhost": it.vhost,
            "client": it.owner,
            "name": it.name,
            "queue": it.queue,
            "source": it.source,
            "keys": it.keys,
            "selector": it.filter,
            "not_from": it.not_from,
            "durable": it.durable,
            "shared": it.shared,
            "ready": it.ready,
            "unsettled": it.unsettled,
            "consumers": it.consumers,
        })
    });
    Part { rows: shown.collect(), places: engine.queue_places() }
}

/// Sessions, or those of one virtual host.
pub(super) fn sessions(
    shard: &mut Shard,
    places: Range<usize>,
    vhost: Option<&str>,
) -> Part<Value> {
    let (engine, now) = (shard.node.engine(), shard.now);
    let sessions = engine.list_sessions_in(places).filter(|it| is_meant(vhost, it.vhost));
    let shown = sessions.map(|it| {
        let expiry = match it.expiry {
            SessionExpiry::AtDetach => json!(0),
            SessionExpiry::After(expiry) => json!(expiry.as_secs()),
            SessionExpiry::Never => json!("never"),
        };
        json!({
            "vhost": it.vhost,
            "name": it.name,
            "user": it.user,
            "state": if it.detached_at.is_some() { "detached" } else { "held" },
            "recorded": it.recorded,
            "expiry_s": expiry,
            "detached_for_s": it.detached_at.map(|at| now.since(at).as_secs()),
            "expires_in_s": it.expires_at.map(|at| at.since(now).as_secs()),
            "queue": it.queue,
            "attributes": it.attributes,
            "received": it.received,
            "released": it.released,
            "will": it.has_will,
        })
    });
    Part { rows: shown.collect(), places: engine.session_places() }
}

/// Bindings, or those of one virtual host.
pub(super) fn bindings(
    shard: &mut Shard,
    places: Range<usize>,
    vhost: Option<&str>,
) -> Part<Value> {
    let engine = shard.node.engine();
    let bindings = engine.list_bindings_in(places);
    let shown = bindings.filter(|binding| is_meant(vhost, binding.vhost)).map(|binding| {
        json!({
            "vhost": binding.vhost,
            "source": binding.source,
            "target_type": if binding.to_queue { "queue" } else { "exchange" },
            "target": binding.target,
            "key": binding.key,
            "arguments": json_object(binding.arguments.into_iter().flatten()),
            "filter": binding.filter,
            "not_from": binding.not_from,
        })
    });
    Part { rows: shown.collect(), places: engine.binding_places() }
}

fn json_object<'a>(entries: impl Iterator<Item = (&'a String, &'a Typed)>) -> Value {
    entries.map(|(name, value)| (name.clone(), json_value(value))).collect()
}

fn json_value(value: &Typed) -> Value {
    match value {
        Typed::Null => Value::Null,
        Typed::Bool(value) => (*value).into(),
        Typed::Int(value) => (*value).into(),
        Typed::Float(value) => (*value).into(),
        Typed::Text(text) => text.as_str().into(),
        Typed::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned().into(),
        Typed::Timestamp(seconds) => (*seconds).into(),
        Typed::List(items) => items.iter().map(json_value).collect(),
        Typed::Map(entries) => json_object(entries.iter()),
    }
}

/// Clients of one shard.
pub(super) fn connections(shard: &mut Shard, places: Range<usize>) -> Part<Value> {
    let node = &shard.node;
    let rows = node.connections_in(shard.now, places).map(|connection| {
        let (info, figures) = (connection.info, connection.figures);
        json!({
            "id": figures.number,
            "peer": info.peer.address,
            "encrypted": info.peer.encrypted,
            "user": info.user,
            "vhost": info.vhost,
            "state": info.state,
            "waits_for": connection.waits_for.map(WaitsFor::text),
            "channels": info.channels,
            "protocol": info.protocol,
            "product": info.client.product,
            "version": info.client.version,
            "name": info.client.connection_name,
            "heartbeat_s": info.heartbeat_seconds,
            "age_s": shard.now.since(figures.connected_at).as_secs(),
            "received_messages": figures.traffic.messages_received,
            "sent_messages": figures.traffic.messages_sent,
            "received_bytes": figures.traffic.bytes_received,
            "sent_bytes": figures.traffic.bytes_sent,
            "unsent_bytes": figures.unsent_bytes,
            "subjects": figures.traffic.subjects,
            "too_slow": connection.lag.map(|lag| json!({
                "policy": lag.policy.name(), "missed": lag.missed, "spooled": lag.spooled,
            })),
        })
    });
    Part { rows: rows.collect(), places: node.connection_places() }
}
