//! What listings show, looked up on the shard's thread and put into plain values.

use super::listings::Part;
use super::subjects::SubjectsBody;
use crate::authenticate::NO_PASSWORD;
use crate::http::flow_metrics;
use crate::http::request_types::QuotaBody;
use crate::reactor::{Histogram, Shard};
use angarium_engine::{Durability, QUEUE_OPTIONS, QueueListing, QueueOptions};
use angarium_journal::State;
use angarium_node::WaitsFor;
use serde::Serialize;
use serde_json::{Value, json};
use std::ops::Range;

/// One queue.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct QueueView {
    pub(super) vhost: String,
    pub(super) name: String,
    pub(super) durable: bool,
    /// How well its persistent messages are kept: `flushed`, `buffered`, `memory`.
    pub(super) durability: &'static str,
    /// Its options that are not the default, by the names that declarations use.
    pub(super) options: serde_json::Map<String, Value>,
    pub(super) exclusive: bool,
    pub(super) auto_delete: bool,
    pub(super) ready: u64,
    pub(super) unsettled: u64,
    pub(super) consumers: u64,
    pub(super) bytes: u64,
    /// `running`, or `stopped` at what cannot be read back.
    pub(super) state: &'static str,
    pub(super) stopped_at: Option<PlaceView>,
}

/// A place in the journal.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PlaceView {
    pub(super) segment: u32,
    pub(super) offset: u64,
}

/// A name that is longer than the others.
const SLOW_STEPS: &str = "angarium_reactor_slow_steps_microseconds";

pub(super) type Series = (&'static str, &'static str, u64);

/// Everything that metrics show, except memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Measured {
    pub(super) counters: Vec<Series>,
    pub(super) gauges: Vec<Series>,
    /// Messages that were to wait on the disk and were missed, by why.
    pub(super) spill_missed: Vec<(&'static str, u64)>,
    /// Home's; the others have none.
    pub(super) journal: Option<State>,
    pub(super) flush_times: Histogram,
    pub(super) queues: Vec<QueueView>,
}

impl Measured {
    /// What all shards have measured, together.
    pub(super) fn sum(shards: Vec<Measured>) -> Measured {
        let mut shards = shards.into_iter();
        let mut all = shards.next().unwrap_or_default();
        for shard in shards {
            for (sum, more) in all.counters.iter_mut().zip(&shard.counters) {
                sum.2 += more.2;
            }
            for (sum, more) in all.gauges.iter_mut().zip(&shard.gauges) {
                sum.2 += more.2;
            }
            for (sum, more) in all.spill_missed.iter_mut().zip(&shard.spill_missed) {
                sum.1 += more.1;
            }
        }
        all
    }
}

/// Whether a user may administer.
pub(super) fn is_administrator(shard: &mut Shard, user: &str) -> bool {
    shard.node().engine().list_users().any(|found| found.name == user && found.administrator)
}

/// Messages that wait in queues, and those that are out of them.
pub(super) fn messages(shard: &mut Shard, places: Range<usize>) -> Part<(u64, u64)> {
    let engine = shard.node().engine();
    let rows = engine.list_queues_in(places).map(|queue| (queue.ready, queue.unsettled));
    Part { rows: rows.collect(), places: engine.queue_places() }
}

/// The broker in short; `messages`: those of its queues.
pub(super) fn overview(shard: &mut Shard, connections: u64, messages: &[(u64, u64)]) -> Value {
    let is_serving = shard.is_serving();
    let node = shard.node();
    let counters = node.engine().counters();
    let ready: u64 = messages.iter().map(|(ready, _)| ready).sum();
    let unsettled: u64 = messages.iter().map(|(_, unsettled)| unsettled).sum();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "serving": is_serving,
        "journal": format!("{:?}", node.journal().state()),
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
    let engine = shard.node().engine();
    let rows =
        engine.list_vhosts().map(|vhost| json!({ "name": vhost.name, "queues": vhost.queues }));
    rows.collect()
}

/// All users.
pub(super) fn users(shard: &mut Shard) -> Value {
    let engine = shard.node().engine();
    let rows = engine.list_users().map(|user| {
        json!({
            "name": user.name,
            "administrator": user.administrator,
            "password": engine.password_hash(user.name).is_some_and(|hash| hash != NO_PASSWORD),
            "quota": QuotaBody::of(&user.quota),
        })
    });
    rows.collect()
}

/// All permissions.
pub(super) fn permissions(shard: &mut Shard) -> Value {
    let engine = shard.node().engine();
    let rows = engine.list_permissions().map(|permission| {
        json!({
            "user": permission.user,
            "vhost": permission.vhost,
            "configure": permission.configure,
            "write": permission.write,
            "read": permission.read,
            "subjects": permission.subjects.map(SubjectsBody::from),
        })
    });
    rows.collect()
}

fn is_meant(wanted: Option<&str>, vhost: &str) -> bool {
    wanted.is_none_or(|wanted| wanted == vhost)
}

/// All exchanges, or those of one virtual host.
pub(super) fn exchanges(shard: &mut Shard, vhost: Option<&str>) -> Value {
    let engine = shard.node().engine();
    let rows = engine.list_exchanges().filter(|exchange| is_meant(vhost, exchange.vhost));
    let shown = rows.map(|exchange| {
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
    shown.collect()
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
    let engine = shard.node().engine();
    let rows = engine.list_queues_in(places).filter(|queue| is_meant(vhost, queue.vhost));
    Part { rows: rows.map(|queue| queue_view(&queue)).collect(), places: engine.queue_places() }
}

fn queue_view(queue: &QueueListing<'_>) -> QueueView {
    QueueView {
        vhost: queue.vhost.to_owned(),
        name: queue.name.to_owned(),
        durable: queue.options.durable,
        durability: durability(queue.options),
        options: shown_options(queue.options),
        exclusive: queue.options.exclusive,
        auto_delete: queue.options.auto_delete,
        ready: queue.ready,
        unsettled: queue.unsettled,
        consumers: queue.consumers as u64,
        bytes: queue.ready_bytes,
        state: if queue.unreadable.is_some() { "stopped" } else { "running" },
        stopped_at: queue.unreadable.map(|position| PlaceView {
            segment: position.segment(),
            offset: position.0 & u64::from(u32::MAX),
        }),
    }
}

/// All bindings, or those of one virtual host.
pub(super) fn bindings(shard: &mut Shard, vhost: Option<&str>) -> Value {
    let engine = shard.node().engine();
    let rows = engine.list_bindings().filter(|binding| is_meant(vhost, binding.vhost));
    let shown = rows.map(|binding| {
        json!({
            "vhost": binding.vhost,
            "source": binding.source,
            "target_type": if binding.to_queue { "queue" } else { "exchange" },
            "target": binding.target,
            "key": binding.key,
            "arguments": json_arguments(binding.arguments),
        })
    });
    shown.collect()
}

fn json_arguments(arguments: Option<&angarium_engine::Arguments>) -> Value {
    arguments.into_iter().flatten().map(|(name, value)| (name.clone(), json_value(value))).collect()
}

fn json_value(value: &angarium_engine::Value) -> Value {
    use angarium_engine::Value as Typed;
    match value {
        Typed::Null => Value::Null,
        Typed::Bool(value) => (*value).into(),
        Typed::Int(value) => (*value).into(),
        Typed::Float(value) => (*value).into(),
        Typed::Text(text) => text.as_str().into(),
        Typed::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned().into(),
        Typed::Timestamp(seconds) => (*seconds).into(),
        Typed::List(items) => items.iter().map(json_value).collect(),
        Typed::Map(entries) => {
            entries.iter().map(|(name, value)| (name.clone(), json_value(value))).collect()
        }
    }
}

/// Clients of one shard.
pub(super) fn connections(shard: &mut Shard, places: Range<usize>) -> Part<Value> {
    let now = shard.now();
    let node = shard.node();
    let rows = node.connections_in(now, places).map(|connection| {
        let session = connection.session;
        json!({
            "id": connection.number,
            "peer": session.peer.address,
            "encrypted": session.peer.encrypted,
            "user": session.user,
            "vhost": session.vhost,
            "state": session.state,
            "waits_for": connection.waits_for.map(WaitsFor::text),
            "channels": session.channels,
            "protocol": session.protocol,
            "product": session.client.product,
            "version": session.client.version,
            "name": session.client.connection_name,
            "heartbeat_s": session.heartbeat_seconds,
            "age_s": connection.age.as_secs(),
            "received_messages": connection.received_messages,
            "sent_messages": connection.sent_messages,
            "received_bytes": connection.received_bytes,
            "sent_bytes": connection.sent_bytes,
            "unsent_bytes": connection.unsent_bytes,
            "subjects": connection.subjects,
            "too_slow": connection.lag.map(|lag| json!({
                "policy": lag.policy.name(), "missed": lag.missed, "spooled": lag.spooled,
            })),
        })
    });
    Part { rows: rows.collect(), places: node.connection_places() }
}

/// What metrics show, except single queues.
pub(super) fn measured(shard: &mut Shard) -> Measured {
    let reactor = shard.counters().clone();
    let node = shard.node();
    let stats = node.stats();
    let queues: usize = node.engine().list_vhosts().map(|vhost| vhost.queues).sum();
    let engine = node.engine().counters();
    let (state, journal) = match node.is_home().then(|| node.journal()) {
        Some(journal) => (Some(journal.state().clone()), journal.stats()),
        None => Default::default(),
    };
    Measured {
        journal: state,
        counters: [
            ("angarium_connections_accepted", "Connections accepted.", stats.connections_total),
            (
                "angarium_connections_refused",
                "Refused: too many, of all or of one user.",
                reactor.refused + engine.not_admitted,
            ),
            ("angarium_tls_failures", "Failed handshakes.", reactor.handshakes_failed),
            ("angarium_login_failures", "Wrong credentials.", stats.authentications_failed),
            ("angarium_received_bytes", "Bytes from clients.", stats.received_bytes),
            ("angarium_sent_bytes", "Bytes to clients.", stats.sent_bytes),
            ("angarium_messages_published", "Messages in.", engine.published),
            ("angarium_messages_confirmed", "Told to be safe.", engine.confirmed),
            ("angarium_messages_unroutable", "No queue took them.", engine.unroutable),
            ("angarium_messages_returned", "Given back: mandatory.", engine.returned),
            ("angarium_messages_delivered", "Messages out.", engine.delivered),
            ("angarium_messages_accepted", "Settled as accepted.", engine.accepted),
            ("angarium_messages_requeued", "Back to their queue.", engine.requeued),
            ("angarium_messages_expired", "Their time passed.", engine.expired),
            ("angarium_messages_dropped", "Pushed out by limits.", engine.dropped),
            ("angarium_messages_dead_lettered", "Dead letters.", engine.dead_lettered),
            ("angarium_messages_spooled", "Written for memory.", engine.spooled),
            ("angarium_messages_not_stored", "Refused by the disk.", engine.not_stored),
            ("angarium_records_unreadable", "Not read back.", engine.unreadable),
            ("angarium_queue_stops", "Queues stopped by those.", engine.queue_stops),
            ("angarium_journal_records", "Records appended.", journal.records),
            ("angarium_journal_flushes", "Flushes.", journal.flushes),
            ("angarium_journal_flushed_bytes", "Bytes written.", journal.flushed_bytes),
            ("angarium_journal_checkpoints", "Checkpoints.", journal.checkpoints),
            ("angarium_reactor_turns", "Turns of the loop.", reactor.turns),
            ("angarium_reactor_held_up_steps", "Without a processor.", reactor.held_up_steps),
            ("angarium_reactor_slow_steps", "Of more than 1 ms.", reactor.slow_steps),
            (SLOW_STEPS, "What they took together.", reactor.slow_step_micros),
        ]
        .into_iter()
        .chain(flow_metrics::counters(node))
        .collect(),
        gauges: [
            ("angarium_connections", "Connections now.", stats.connections),
            ("angarium_queues", "Queues now.", queues as u64),
            ("angarium_journal_backlog_bytes", "Not yet written.", journal.backlog_bytes),
            ("angarium_journal_disk_bytes", "Size of its files.", journal.disk_bytes),
            ("angarium_journal_segments", "Files with records.", journal.segments),
        ]
        .into_iter()
        .chain(flow_metrics::gauges(node))
        .collect(),
        spill_missed: flow_metrics::missed(node),
        flush_times: reactor.flush_times,
        queues: Vec::new(),
    }
}
