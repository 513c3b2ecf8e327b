//! Rows of RabbitMQ's lists of queues, exchanges and bindings, looked up on the home shard's thread.

use super::super::listings::Part;
use super::super::views::json_object;
use super::broker::node_name;
use super::rates::{Counts, Rates, counts_of_queue, lengths};
use crate::reactor::Shard;
use angarium_engine::{
    Arguments, BindingListing, Engine, ExchangeListing, Followed, QueueListing, fnv_1a,
};
use angarium_protocol::amqp091::declaration;
use serde_json::{Map, Value, json};
use std::ops::Range;

/// Which of several are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Which {
    pub(super) vhost: Option<String>,
    pub(super) name: Option<String>,
}

impl Which {
    pub(super) fn has(&self, vhost: &str, name: &str) -> bool {
        self.is_in(vhost) && self.name.as_ref().is_none_or(|it| it == name)
    }

    fn is_in(&self, vhost: &str) -> bool {
        self.vhost.as_ref().is_none_or(|it| it == vhost)
    }
}

/// A queue's row, and counters that get their rates later.
#[derive(Debug)]
pub(super) struct QueueRow {
    row: Value,
    vhost: String,
    name: String,
    lengths: Counts,
    counts: Counts,
}

impl QueueRow {
    /// With its rates.
    pub(super) fn finished(self, rates: &Rates) -> Value {
        let mut row = rates.of_queue(&self.vhost, &self.name, &self.lengths);
        let stats = rates.of_queue(&self.vhost, &self.name, &self.counts);
        row.insert("message_stats".to_owned(), stats.into());
        if let Value::Object(rest) = self.row {
            row.extend(rest);
        }
        row.into()
    }
}

pub(super) fn arguments(arguments: &Arguments) -> Map<String, Value> {
    json_object(arguments.iter())
}

/// The options that follow from policies together.
fn effective(engine: &Engine, vhost: &str, of: Followed<'_>) -> Map<String, Value> {
    if of == Followed::default() {
        return Map::new();
    }
    arguments(&engine.policy_definition(vhost, of))
}

pub(super) fn queues(shard: &mut Shard, places: Range<usize>, which: &Which) -> Part<QueueRow> {
    let engine = shard.node.engine();
    let node = node_name();
    let queues = engine.list_queues_in(places).filter(|it| which.has(it.vhost, it.name));
    Part {
        rows: queues.map(|it| queue(engine, &it, &node)).collect(),
        places: engine.queue_places(),
    }
}

fn queue(engine: &Engine, queue: &QueueListing<'_>, node: &str) -> QueueRow {
    let options = queue.options;
    let row = json!({
        "name": queue.name,
        "vhost": queue.vhost,
        "type": options.queue_type.name(),
        "durable": options.durable,
        "auto_delete": options.auto_delete,
        "exclusive": options.exclusive,
        "arguments": arguments(&declaration::queue_arguments(options)),
        "node": node,
        "leader": node,
        "members": [node],
        "online": [node],
        "state": if queue.unreadable.is_some() { "stopped" } else { "running" },
        "policy": queue.followed.policy,
        "operator_policy": queue.followed.operator_policy,
        "effective_policy_definition": effective(engine, queue.vhost, queue.followed),
        "consumers": queue.consumers,
        "memory": queue.resident_bytes,
        "message_bytes": queue.ready_bytes,
        "message_bytes_ready": queue.ready_bytes,
    });
    QueueRow {
        row,
        vhost: queue.vhost.to_owned(),
        name: queue.name.to_owned(),
        lengths: lengths(queue.ready, queue.unsettled).to_vec(),
        counts: counts_of_queue(&queue.counters),
    }
}

pub(super) fn exchanges(shard: &mut Shard, places: Range<usize>, which: &Which) -> Part<Value> {
    let engine = shard.node.engine();
    let exchanges = engine.list_exchanges_in(places).filter(|it| which.has(it.vhost, it.name));
    Part { rows: exchanges.map(|it| exchange(&it)).collect(), places: engine.exchange_places() }
}

fn exchange(exchange: &ExchangeListing<'_>) -> Value {
    let (kind, with) = declaration::exchange_arguments(exchange.options);
    json!({
        "name": exchange.name,
        "vhost": exchange.vhost,
        "type": kind,
        "durable": exchange.options.durable,
        "auto_delete": exchange.options.auto_delete,
        "internal": exchange.options.internal,
        "arguments": arguments(&with),
        "policy": exchange.followed.policy,
        "operator_policy": exchange.followed.operator_policy,
    })
}

/// Bindings, but those of default exchanges.
pub(super) fn bindings(shard: &mut Shard, places: Range<usize>, which: &Which) -> Part<Value> {
    let engine = shard.node.engine();
    let bindings = engine.list_bindings_in(places).filter(|it| which.is_in(it.vhost));
    Part { rows: bindings.map(|it| binding(&it)).collect(), places: engine.binding_places() }
}

fn binding(binding: &BindingListing<'_>) -> Value {
    let none = Arguments::default();
    let with = binding.arguments.unwrap_or(&none);
    json!({
        "source": binding.source,
        "vhost": binding.vhost,
        "destination": binding.target,
        "destination_type": if binding.to_queue { "queue" } else { "exchange" },
        "routing_key": binding.key,
        "arguments": arguments(with),
        "properties_key": properties_key(binding.key, with),
    })
}

/// The queues that the default exchange leads to by their names.
pub(super) fn default_bindings(
    shard: &mut Shard,
    places: Range<usize>,
    which: &Which,
) -> Part<Value> {
    let engine = shard.node.engine();
    let queues = engine.list_queues_in(places).filter(|it| which.is_in(it.vhost));
    let rows = queues.map(|it| {
        json!({
            "source": "", "vhost": it.vhost, "destination": it.name, "destination_type": "queue",
            "routing_key": it.name, "arguments": {},
            "properties_key": properties_key(it.name, &Arguments::default()),
        })
    });
    Part { rows: rows.collect(), places: engine.queue_places() }
}

/// What names a binding between two ends: its key, and a sum of its arguments.
pub(super) fn properties_key(key: &str, with: &Arguments) -> String {
    let shown = escaped(key);
    if with.is_empty() {
        return if key.is_empty() { "~".to_owned() } else { shown };
    }
    let text = Value::from(arguments(with)).to_string();
    format!("{shown}~{:016x}", fnv_1a(text.as_bytes()))
}

/// As it may be a part of an address.
fn escaped(key: &str) -> String {
    let escape = |byte: u8| match byte {
        b'-' | b'_' | b'.' | b'*' => char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    key.bytes().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use angarium_engine::Value as Typed;

    #[test]
    fn a_binding_is_named_by_its_key_and_arguments() {
        let none = Arguments::default();
        let some: Arguments = [("x-match".to_owned(), Typed::Text("all".to_owned()))].into();
        assert_eq!(properties_key("", &none), "~");
        assert_eq!(properties_key("a.*", &none), "a.*");
        assert_eq!(properties_key("a/#", &none), "a%2F%23");
        let keys = [properties_key("", &some), properties_key("k", &some)];
        assert!(keys[0].starts_with('~') && keys[1].starts_with("k~") && keys[0] != keys[1]);
    }
}
