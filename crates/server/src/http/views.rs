//! What listings show, looked up on the shard's thread and put into plain values.

use super::listings::Part;
use super::measured::{Measured, resident_bytes};
use super::subjects::{KeysBody, SubjectsBody};
use crate::authenticate::NO_PASSWORD;
use crate::http::request_types::QuotaBody;
use crate::reactor::Shard;
use angarium_engine::{
    Arguments, Discards, Durability, Engine, Followed, PermissionListing, QUEUE_OPTIONS,
    QueueListing, QueueOptions, SessionExpiry, UserListing, Value as Typed, VhostListing,
};
use angarium_journal::State;
use angarium_node::WaitsFor;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::ops::Range;

/// One queue.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
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
    /// The policies it follows, and the options that they set together.
    pub(super) policy: Option<String>,
    pub(super) operator_policy: Option<String>,
    pub(super) effective_policy_definition: serde_json::Map<String, Value>,
    pub(super) exclusive: bool,
    pub(super) auto_delete: bool,
    pub(super) ready: u64,
    pub(super) unsettled: u64,
    pub(super) consumers: u64,
    pub(super) bytes: u64,
    /// Messages that came in, went out and were accepted since it exists or was recovered.
    pub(super) published_total: u64,
    pub(super) delivered_total: u64,
    pub(super) accepted_total: u64,
    /// Messages that are gone for good since it exists or was recovered, by reason.
    #[serde(serialize_with = "by_reason")]
    #[schemars(with = "BTreeMap<String, u64>")]
    pub(super) discarded: Discards,
    /// `running`, or `stopped` at what cannot be read back.
    pub(super) state: &'static str,
    /// The place in the journal.
    pub(super) stopped_at: Option<JournalPlace>,
}

/// A place in the journal.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct JournalPlace {
    pub(super) segment: u64,
    pub(super) offset: u64,
}

/// The broker in short.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Overview {
    pub(super) version: &'static str,
    /// It takes clients.
    pub(super) serving: bool,
    /// `ready`, `full`, `failed`.
    pub(super) journal: &'static str,
    pub(super) journal_failure: Option<String>,
    pub(super) connections: u64,
    /// Clients that are too slow now.
    pub(super) slow_consumers: u64,
    pub(super) queues: usize,
    pub(super) messages_ready: u64,
    pub(super) messages_unsettled: u64,
    pub(super) published_total: u64,
    pub(super) delivered_total: u64,
    pub(super) accepted_total: u64,
    /// Messages that are gone for good.
    pub(super) discarded_total: u64,
    pub(super) direct_published_total: u64,
    pub(super) direct_delivered_total: u64,
    /// Missed by clients that were too slow.
    pub(super) direct_missed_total: u64,
    pub(super) flushes_total: u64,
    pub(super) flushed_bytes_total: u64,
    /// The size of the journal's files.
    pub(super) journal_bytes: u64,
    /// What the process takes.
    pub(super) memory_resident_bytes: u64,
    /// What clients hold of it, and may hold together.
    pub(super) memory_held_bytes: u64,
    pub(super) memory_max_bytes: u64,
}

/// One virtual host.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct VhostView {
    pub(super) name: String,
    pub(super) queues: usize,
    pub(super) stored_bytes: u64,
    pub(super) connections: u64,
    pub(super) quota: QuotaBody,
}

/// One user.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct UserView {
    pub(super) name: String,
    pub(super) administrator: bool,
    /// Whether it has one.
    pub(super) password: bool,
    pub(super) queues: u64,
    pub(super) stored_bytes: u64,
    pub(super) quota: QuotaBody,
}

/// What a user may do in a virtual host.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PermissionView {
    pub(super) user: String,
    pub(super) vhost: String,
    pub(super) configure: String,
    pub(super) write: String,
    pub(super) read: String,
    pub(super) subjects: Option<SubjectsBody>,
    /// By the names of exchanges.
    pub(super) exchanges: Option<BTreeMap<String, KeysBody>>,
}

/// One exchange.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ExchangeView {
    pub(super) vhost: String,
    pub(super) name: String,
    pub(super) r#type: &'static str,
    pub(super) durable: bool,
    pub(super) auto_delete: bool,
    pub(super) internal: bool,
    pub(super) delaying: bool,
    pub(super) alternate: Option<String>,
    /// The policies it follows.
    pub(super) policy: Option<String>,
    pub(super) operator_policy: Option<String>,
}

/// One named subscription.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SubscriptionView {
    pub(super) vhost: String,
    pub(super) client: Option<String>,
    pub(super) name: String,
    pub(super) queue: String,
    pub(super) source: String,
    pub(super) keys: Vec<String>,
    pub(super) selector: Option<String>,
    pub(super) not_from: Option<String>,
    pub(super) durable: bool,
    pub(super) shared: bool,
    pub(super) ready: u64,
    pub(super) unsettled: u64,
    pub(super) consumers: usize,
}

/// One session.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SessionView {
    pub(super) vhost: String,
    pub(super) name: String,
    pub(super) user: String,
    /// `held` or `detached`.
    pub(super) state: &'static str,
    pub(super) recorded: bool,
    /// Seconds, or `never`.
    pub(super) expiry_s: Value,
    pub(super) detached_for_s: Option<u64>,
    pub(super) expires_in_s: Option<u64>,
    pub(super) queue: Option<String>,
    pub(super) attributes: usize,
    pub(super) received: usize,
    pub(super) released: usize,
    pub(super) will: bool,
}

/// One binding.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct BindingView {
    pub(super) vhost: String,
    pub(super) source: String,
    /// `queue` or `exchange`.
    pub(super) target_type: &'static str,
    pub(super) target: String,
    pub(super) key: String,
    pub(super) arguments: Map<String, Value>,
    pub(super) filter: Option<String>,
    pub(super) not_from: Option<String>,
}

/// A client that is too slow for direct messages.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SlownessView {
    pub(super) policy: &'static str,
    pub(super) missed: u64,
    pub(super) spooled: u64,
}

/// One connection.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ConnectionView {
    pub(super) id: u64,
    pub(super) peer: String,
    pub(super) encrypted: bool,
    pub(super) user: String,
    pub(super) vhost: String,
    pub(super) state: &'static str,
    pub(super) waits_for: Option<&'static str>,
    pub(super) channels: usize,
    pub(super) protocol: &'static str,
    pub(super) product: Option<String>,
    pub(super) version: Option<String>,
    pub(super) name: Option<String>,
    pub(super) heartbeat_s: u16,
    pub(super) age_s: u64,
    pub(super) received_messages: u64,
    pub(super) sent_messages: u64,
    pub(super) received_bytes: u64,
    pub(super) sent_bytes: u64,
    pub(super) unsent_bytes: u64,
    pub(super) subjects: u64,
    pub(super) too_slow: Option<SlownessView>,
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

/// The broker in short; `shards`: what each has counted; `messages`: those of its queues.
pub(super) fn overview(
    shard: &mut Shard,
    shards: &[Measured],
    messages: &[(u64, u64)],
) -> Overview {
    let (journal, failure) = match shard.node.journal().state() {
        State::Ready => ("ready", None),
        State::Full => ("full", None),
        State::Failed(why) => ("failed", Some(why.clone())),
    };
    let sum = |value: fn(&Measured) -> u64| shards.iter().map(value).sum::<u64>();
    Overview {
        version: env!("CARGO_PKG_VERSION"),
        serving: shard.is_serving(),
        journal,
        journal_failure: failure,
        connections: sum(|it| it.node.connections),
        slow_consumers: sum(|it| it.slow_consumers),
        queues: messages.len(),
        messages_ready: messages.iter().map(|(ready, _)| ready).sum(),
        messages_unsettled: messages.iter().map(|(_, unsettled)| unsettled).sum(),
        published_total: sum(|it| it.engine.published),
        delivered_total: sum(|it| it.engine.delivered),
        accepted_total: sum(|it| it.engine.accepted),
        discarded_total: sum(|it| it.engine.discarded.iter().map(|(_, messages)| messages).sum()),
        direct_published_total: sum(|it| it.engine.emitted),
        direct_delivered_total: sum(|it| it.engine.direct_delivered),
        direct_missed_total: sum(|it| it.engine.missed),
        flushes_total: sum(|it| it.journal.flushes),
        flushed_bytes_total: sum(|it| it.journal.flushed_bytes),
        journal_bytes: sum(|it| it.journal.disk_bytes),
        memory_resident_bytes: resident_bytes(),
        memory_held_bytes: sum(|it| it.held.all()),
        memory_max_bytes: shard.node.memory_limits().all,
    }
}

/// All virtual hosts.
pub(super) fn vhosts(shard: &mut Shard) -> Vec<VhostView> {
    let vhosts = shard.node.engine().list_vhosts();
    let vhost = |vhost: VhostListing<'_>| VhostView {
        name: vhost.name.to_owned(),
        queues: vhost.queues,
        stored_bytes: vhost.stored_bytes,
        connections: vhost.connections,
        quota: QuotaBody::of(&vhost.quota),
    };
    vhosts.map(vhost).collect()
}

/// All users.
pub(super) fn users(shard: &mut Shard) -> Vec<UserView> {
    let engine = shard.node.engine();
    let user = |user: UserListing<'_>| UserView {
        name: user.name.to_owned(),
        administrator: user.administrator,
        password: engine.password_hash(user.name).is_some_and(|hash| hash != NO_PASSWORD),
        queues: user.queues,
        stored_bytes: user.stored_bytes,
        quota: QuotaBody::of(&user.quota),
    };
    engine.list_users().map(user).collect()
}

/// All permissions.
pub(super) fn permissions(shard: &mut Shard) -> Vec<PermissionView> {
    let engine = shard.node.engine();
    let permission = |permission: PermissionListing<'_>| {
        let subjects = engine.permitted_subjects(permission.user, permission.vhost);
        let exchanges = engine.exchange_rules(permission.user, permission.vhost);
        let exchanges: BTreeMap<String, KeysBody> =
            exchanges.map(|(exchange, rules)| (exchange.to_owned(), rules.into())).collect();
        PermissionView {
            user: permission.user.to_owned(),
            vhost: permission.vhost.to_owned(),
            configure: permission.configure.to_owned(),
            write: permission.write.to_owned(),
            read: permission.read.to_owned(),
            subjects: subjects.cloned().map(SubjectsBody::from),
            exchanges: (!exchanges.is_empty()).then_some(exchanges),
        }
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
) -> Part<ExchangeView> {
    let engine = shard.node.engine();
    let exchanges = engine.list_exchanges_in(places);
    let shown =
        exchanges.filter(|exchange| is_meant(vhost, exchange.vhost)).map(|exchange| ExchangeView {
            vhost: exchange.vhost.to_owned(),
            name: exchange.name.to_owned(),
            r#type: exchange.options.kind.name(),
            durable: exchange.options.durable,
            auto_delete: exchange.options.auto_delete,
            internal: exchange.options.internal,
            delaying: exchange.options.delaying,
            alternate: exchange.options.alternate.clone(),
            policy: exchange.followed.policy.map(str::to_owned),
            operator_policy: exchange.followed.operator_policy.map(str::to_owned),
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

/// Values of options, by the names that declarations use.
pub(super) fn option_fields(options: &Arguments) -> Map<String, Value> {
    options.iter().map(|(name, value)| (name.replace('-', "_"), json_value(value))).collect()
}

/// The options that follow from policies together.
fn effective(engine: &Engine, vhost: &str, of: Followed<'_>) -> Map<String, Value> {
    if of == Followed::default() {
        return Map::new();
    }
    option_fields(&engine.policy_definition(vhost, of))
}

/// Queues, or those of one virtual host.
pub(super) fn queues(
    shard: &mut Shard,
    places: Range<usize>,
    vhost: Option<&str>,
) -> Part<QueueView> {
    let engine = shard.node.engine();
    let rows = engine.list_queues_in(places).filter(|queue| is_meant(vhost, queue.vhost));
    Part {
        rows: rows.map(|queue| queue_view(engine, &queue)).collect(),
        places: engine.queue_places(),
    }
}

fn queue_view(engine: &Engine, queue: &QueueListing<'_>) -> QueueView {
    QueueView {
        vhost: queue.vhost.to_owned(),
        name: queue.name.to_owned(),
        durable: queue.options.durable,
        durability: durability(queue.options),
        r#type: queue.options.queue_type.name(),
        copies: 1,
        options: shown_options(queue.options),
        policy: queue.followed.policy.map(str::to_owned),
        operator_policy: queue.followed.operator_policy.map(str::to_owned),
        effective_policy_definition: effective(engine, queue.vhost, queue.followed),
        exclusive: queue.options.exclusive,
        auto_delete: queue.options.auto_delete,
        ready: queue.ready,
        unsettled: queue.unsettled,
        consumers: queue.consumers as u64,
        bytes: queue.ready_bytes,
        published_total: queue.counters.published,
        delivered_total: queue.counters.delivered,
        accepted_total: queue.counters.accepted,
        discarded: queue.discarded,
        state: if queue.unreadable.is_some() { "stopped" } else { "running" },
        stopped_at: queue.unreadable.map(|position| {
            let offset = position.0 & u64::from(u32::MAX);
            JournalPlace { segment: position.segment().into(), offset }
        }),
    }
}

/// Named subscriptions, or those of one virtual host.
pub(super) fn subscriptions(
    shard: &mut Shard,
    places: Range<usize>,
    vhost: Option<&str>,
) -> Part<SubscriptionView> {
    let engine = shard.node.engine();
    let subscriptions = engine.list_named_subscriptions_in(places);
    let shown = subscriptions.filter(|it| is_meant(vhost, it.vhost)).map(|it| SubscriptionView {
        vhost: it.vhost.to_owned(),
        client: it.owner.map(str::to_owned),
        name: it.name.to_owned(),
        queue: it.queue.to_owned(),
        source: it.source.to_owned(),
        keys: it.keys.to_vec(),
        selector: it.filter.map(str::to_owned),
        not_from: it.not_from.map(str::to_owned),
        durable: it.durable,
        shared: it.shared,
        ready: it.ready,
        unsettled: it.unsettled,
        consumers: it.consumers,
    });
    Part { rows: shown.collect(), places: engine.queue_places() }
}

/// Sessions, or those of one virtual host.
pub(super) fn sessions(
    shard: &mut Shard,
    places: Range<usize>,
    vhost: Option<&str>,
) -> Part<SessionView> {
    let (engine, now) = (shard.node.engine(), shard.now);
    let sessions = engine.list_sessions_in(places).filter(|it| is_meant(vhost, it.vhost));
    let shown = sessions.map(|it| {
        let expiry = match it.expiry {
            SessionExpiry::AtDetach => json!(0),
            SessionExpiry::After(expiry) => json!(expiry.as_secs()),
            SessionExpiry::Never => json!("never"),
        };
        SessionView {
            vhost: it.vhost.to_owned(),
            name: it.name.to_owned(),
            user: it.user.to_owned(),
            state: if it.detached_at.is_some() { "detached" } else { "held" },
            recorded: it.recorded,
            expiry_s: expiry,
            detached_for_s: it.detached_at.map(|at| now.since(at).as_secs()),
            expires_in_s: it.expires_at.map(|at| at.since(now).as_secs()),
            queue: it.queue.map(str::to_owned),
            attributes: it.attributes,
            received: it.received,
            released: it.released,
            will: it.has_will,
        }
    });
    Part { rows: shown.collect(), places: engine.session_places() }
}

/// Bindings, or those of one virtual host.
pub(super) fn bindings(
    shard: &mut Shard,
    places: Range<usize>,
    vhost: Option<&str>,
) -> Part<BindingView> {
    let engine = shard.node.engine();
    let bindings = engine.list_bindings_in(places);
    let shown =
        bindings.filter(|binding| is_meant(vhost, binding.vhost)).map(|binding| BindingView {
            vhost: binding.vhost.to_owned(),
            source: binding.source.to_owned(),
            target_type: if binding.to_queue { "queue" } else { "exchange" },
            target: binding.target.to_owned(),
            key: binding.key.to_owned(),
            arguments: json_object(binding.arguments.into_iter().flatten()),
            filter: binding.filter.map(str::to_owned),
            not_from: binding.not_from.map(str::to_owned),
        });
    Part { rows: shown.collect(), places: engine.binding_places() }
}

pub(super) fn json_object<'a>(
    entries: impl Iterator<Item = (&'a String, &'a Typed)>,
) -> Map<String, Value> {
    entries.map(|(name, value)| (name.clone(), json_value(value))).collect()
}

pub(super) fn json_value(value: &Typed) -> Value {
    match value {
        Typed::Null => Value::Null,
        Typed::Bool(value) => (*value).into(),
        Typed::Int(value) => (*value).into(),
        Typed::Float(value) => (*value).into(),
        Typed::Text(text) => text.as_str().into(),
        Typed::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned().into(),
        Typed::Timestamp(seconds) => (*seconds).into(),
        Typed::List(items) => items.iter().map(json_value).collect(),
        Typed::Map(entries) => json_object(entries.iter()).into(),
    }
}

/// Clients of one shard.
pub(super) fn connections(shard: &mut Shard, places: Range<usize>) -> Part<ConnectionView> {
    let node = &shard.node;
    let rows = node.connections_in(shard.now, places).map(|connection| {
        let (info, figures) = (connection.info, connection.figures);
        ConnectionView {
            id: figures.number,
            peer: info.peer.address.clone(),
            encrypted: info.peer.encrypted,
            user: info.user.to_owned(),
            vhost: info.vhost.to_owned(),
            state: info.state,
            waits_for: connection.waits_for.map(WaitsFor::text),
            channels: info.channels,
            protocol: info.protocol,
            product: info.client.product.clone(),
            version: info.client.version.clone(),
            name: info.client.connection_name.clone(),
            heartbeat_s: info.heartbeat_seconds,
            age_s: shard.now.since(figures.connected_at).as_secs(),
            received_messages: figures.traffic.messages_received,
            sent_messages: figures.traffic.messages_sent,
            received_bytes: figures.traffic.bytes_received,
            sent_bytes: figures.traffic.bytes_sent,
            unsent_bytes: figures.unsent_bytes,
            subjects: figures.traffic.subjects,
            too_slow: connection.lag.map(|lag| {
                let (policy, missed, spooled) = (lag.policy.name(), lag.missed, lag.spooled);
                SlownessView { policy, missed, spooled }
            }),
        }
    });
    Part { rows: rows.collect(), places: node.connection_places() }
}
