//! Where AMQP 0-9-1's words meet the engine's: refusals, headers, and the arguments of declarations.

use super::codec::table::Entry;
use super::codec::{FieldValue, Table, properties};
use super::fault::{Code, Fault, Reach};
use super::jms_selector;
use super::mismatch;
use angarium_engine::selector::{self, Filter, ParseOptions};
use angarium_engine::{
    Arguments, Binding, BindingTarget, EXCHANGE_OPTIONS, ExchangeKind, ExchangeOptions, MILLIS_MAX,
    OptionDefinition, QUEUE_OPTIONS, QueueOptions, QueueType, Refusal, RefusalKind, Value,
};
use std::time::Duration;

/// The argument of basic.consume, and of bindings, that has a selector.
const SELECTOR_ARGUMENT: &str = "x-selector";
/// What RabbitMQ's JMS client calls exchanges that look at selectors, and the argument of its bindings that
/// has one, as an Erlang term.
pub(super) const JMS_EXCHANGE: &str = "x-jms-topic";
const JMS_SELECTOR_ARGUMENT: &str = "rjms_erlang_selector";

/// Visits the headers in a property list.
pub(crate) fn read_headers(raw: &[u8], visit: &mut dyn FnMut(&str, Value)) {
    for entry in properties::headers(raw).unwrap_or_default().entries() {
        visit(entry.name, comparable(entry.value));
    }
}

/// A message's header of that name as selectors see it; of several, the first counts.
pub(crate) fn header_named<'m>(raw: &'m [u8], name: &str) -> Option<selector::Value<'m>> {
    Some(match properties::header(raw, name)? {
        FieldValue::Void => selector::Value::Null,
        FieldValue::Bool(value) => selector::Value::Bool(value),
        FieldValue::Int(value) => selector::Value::Exact(value),
        FieldValue::Float(value) => selector::Value::Approximate(value),
        FieldValue::Decimal { scale, value } => {
            selector::Value::Approximate(f64::from(value) / 10f64.powi(scale.into()))
        }
        FieldValue::LongStr(bytes) => {
            str::from_utf8(bytes).map_or(selector::Value::Other, selector::Value::Text)
        }
        FieldValue::Timestamp(seconds) => match i64::try_from(seconds) {
            Ok(seconds) => selector::Value::Exact(seconds),
            Err(_) => selector::Value::Approximate(seconds as f64),
        },
        FieldValue::Bytes(_) | FieldValue::Array(_) | FieldValue::Table(_) => {
            selector::Value::Other
        }
    })
}

/// The arguments of a binding, as headers exchanges compare them.
pub(super) fn binding_arguments(table: Table<'_>) -> Arguments {
    let compared = |entry: Entry<'_>| match entry.name {
        "x-match" => value(entry.value),
        _ => comparable(entry.value),
    };
    table.entries().map(|entry| (entry.name.to_owned(), compared(entry))).collect()
}

/// A field value for comparison: bytes and a text of the same bytes are equal.
fn comparable(field: FieldValue<'_>) -> Value {
    match field {
        FieldValue::Bytes(bytes) => value(FieldValue::LongStr(bytes)),
        other => value(other),
    }
}

/// A field value in the engine's terms.
pub(super) fn value(field: FieldValue<'_>) -> Value {
    match field {
        FieldValue::Void => Value::Null,
        FieldValue::Bool(value) => Value::Bool(value),
        FieldValue::Int(value) => Value::Int(value),
        FieldValue::Float(value) => Value::Float(value),
        FieldValue::Decimal { scale, value } => {
            Value::Float(f64::from(value) / 10f64.powi(scale.into()))
        }
        FieldValue::LongStr(bytes) => match str::from_utf8(bytes) {
            Ok(text) => Value::Text(text.to_owned()),
            Err(_) => Value::Bytes(bytes.to_vec()),
        },
        FieldValue::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
        FieldValue::Timestamp(seconds) => Value::Timestamp(seconds),
        FieldValue::Array(array) => Value::List(array.values().map(value).collect()),
        FieldValue::Table(table) => Value::Map(arguments(table)),
    }
}

/// A table in the engine's terms.
pub(super) fn arguments(table: Table<'_>) -> Arguments {
    table.entries().map(|entry| (entry.name.to_owned(), value(entry.value))).collect()
}

/// The error for a refusal.
pub(super) fn fault(refusal: Refusal) -> Fault {
    let code = match refusal.kind {
        RefusalKind::NotFound => Code::NOT_FOUND,
        RefusalKind::Unroutable => Code::NO_ROUTE,
        RefusalKind::PreconditionFailed | RefusalKind::LimitExceeded => Code::PRECONDITION_FAILED,
        // Reserved names, the default exchange: RabbitMQ says so with a channel error.
        RefusalKind::AccessRefused | RefusalKind::NotAllowed => Code::ACCESS_REFUSED,
        RefusalKind::ResourceLocked | RefusalKind::TakenOver => Code::RESOURCE_LOCKED,
        RefusalKind::NotImplemented => Code::NOT_IMPLEMENTED,
        RefusalKind::StorageUnavailable | RefusalKind::InDoubt | RefusalKind::MemoryShort => {
            Code::RESOURCE_ERROR
        }
        RefusalKind::Internal => Code::INTERNAL_ERROR,
    };
    let text = refusal.mismatch.map_or(refusal.text, |mismatch| mismatch::text(&mismatch));
    Fault::new(code, text)
}

/// The error for a refused settle.
pub(super) fn settle_fault(tag: u64, refusal: Refusal) -> Fault {
    let is_unknown = refusal.kind == RefusalKind::PreconditionFailed;
    let mut fault = fault(refusal);
    if is_unknown {
        fault.text = format!("unknown delivery tag {tag}");
        fault.reach = Reach::Channel;
    }
    fault
}

/// How the exchange types of this protocol route; `x-delayed-message` says so in an argument.
pub(super) fn exchange_options(
    kind: &str,
    name: &str,
    vhost: &str,
    table: Table<'_>,
) -> Result<ExchangeOptions, Fault> {
    let what = Declared { noun: "exchange", name, vhost };
    let delaying = kind == "x-delayed-message";
    let routing = match table.get("x-delayed-type") {
        _ if !delaying => kind,
        Some(FieldValue::LongStr(bytes)) => str::from_utf8(bytes).unwrap_or(""),
        Some(_) => return Err(what.invalid("x-delayed-type", "must be a string")),
        None => return Err(what.invalid("x-delayed-type", "is missing")),
    };
    let routed_by = match routing {
        JMS_EXCHANGE => Some(ExchangeKind::Filtered),
        _ => ExchangeKind::named(routing),
    };
    let Some(kind) = routed_by else {
        let text = format!("unknown exchange type '{routing}'");
        return Err(match delaying {
            true => what.invalid("x-delayed-type", &text),
            false => Fault::new(Code::PRECONDITION_FAILED, text),
        });
    };
    let mut options = ExchangeOptions {
        kind,
        delaying,
        durable: false,
        auto_delete: false,
        internal: false,
        alternate: None,
    };
    for option in EXCHANGE_OPTIONS {
        if let Some(entry) = table.entries().find(|entry| entry.name == option.name) {
            what.set(&entry, option, &mut options)?;
        }
    }
    Ok(options)
}

/// The options in the arguments of queue.declare.
pub(super) fn queue_options(
    name: &str,
    vhost: &str,
    table: Table<'_>,
) -> Result<QueueOptions, Fault> {
    let what = Declared { noun: "queue", name, vhost };
    let mut options = QueueOptions::default();
    for entry in table.entries() {
        let entry = &entry;
        let option = entry.name.strip_prefix("x-");
        let option = option.and_then(|name| QUEUE_OPTIONS.iter().find(|it| it.name == name));
        if let Some(option) = option {
            match (entry.name, entry.value) {
                ("x-queue-type", FieldValue::LongStr(b"stream")) => {
                    let text = format!("queues of type stream are not offered (queue '{name}')");
                    return Err(Fault::new(Code::NOT_IMPLEMENTED, text));
                }
                // RabbitMQ takes it for the default.
                ("x-queue-type", FieldValue::LongStr(b"")) => continue,
                _ => {}
            }
            what.set(entry, option, &mut options)?;
            continue;
        }
        options.other.insert(entry.name.to_owned(), value(entry.value));
    }
    if options.dead_letter_routing_key.is_some() && options.dead_letter_exchange.is_none() {
        let why = "needs x-dead-letter-exchange beside it";
        return Err(what.invalid("x-dead-letter-routing-key", why));
    }
    Ok(options)
}

/// What queues of type quorum cannot be, as RabbitMQ refuses it: programs rely on what is refused.
pub(super) fn check_quorum(name: &str, vhost: &str, options: &QueueOptions) -> Result<(), Fault> {
    let QueueOptions { queue_type, durable, exclusive, auto_delete, .. } = *options;
    let property = match (durable, exclusive, auto_delete) {
        _ if queue_type == QueueType::Classic => return Ok(()),
        (_, true, _) => "exclusive-owner",
        (_, _, true) => "auto-delete",
        (false, ..) => "non-durable",
        _ => return Ok(()),
    };
    let text = format!("invalid property '{property}' for queue '{name}' in vhost '{vhost}'");
    Err(Fault::new(Code::PRECONDITION_FAILED, text))
}

/// The consumer priority in the arguments of basic.consume.
pub(super) fn consumer_priority(queue: &str, vhost: &str, table: Table<'_>) -> Result<i32, Fault> {
    let what = Declared { noun: "queue", name: queue, vhost };
    match table.get("x-priority") {
        None => Ok(0),
        Some(FieldValue::Int(priority)) => {
            Ok(priority.clamp(i32::MIN.into(), i32::MAX.into()) as i32)
        }
        Some(_) => Err(what.invalid("x-priority", "must be an integer")),
    }
}

/// Whether the arguments of basic.consume ask to see messages and leave them: `x-browse`. Such deliveries
/// cannot be acknowledged.
pub(super) fn browses(
    queue: &str,
    vhost: &str,
    table: Table<'_>,
    no_ack: bool,
) -> Result<bool, Fault> {
    let what = Declared { noun: "queue", name: queue, vhost };
    match table.get("x-browse") {
        None | Some(FieldValue::Bool(false)) => Ok(false),
        Some(FieldValue::Bool(true)) if no_ack => Ok(true),
        Some(FieldValue::Bool(true)) => Err(what.invalid("x-browse", "needs no-ack")),
        Some(_) => Err(what.invalid("x-browse", "must be true or false")),
    }
}

/// Which messages a consumer takes, where the arguments of basic.consume say so.
pub(super) fn consumer_filter(
    queue: &str,
    vhost: &str,
    table: Table<'_>,
) -> Result<Option<Filter>, Fault> {
    filter(table, &Declared { noun: "queue", name: queue, vhost })
}

/// A binding in a virtual host, with what its arguments say.
pub(super) fn binding(
    vhost: &str,
    source: String,
    target: BindingTarget,
    key: String,
    table: Table<'_>,
) -> Result<Binding, Fault> {
    let filter = binding_filter(&source, vhost, table)?;
    let arguments = binding_arguments(table);
    Ok(Binding { source, target, key, arguments, filter, not_from: None })
}

/// Which messages a binding takes, where its arguments say so.
fn binding_filter(exchange: &str, vhost: &str, table: Table<'_>) -> Result<Option<Filter>, Fault> {
    let what = Declared { noun: "exchange", name: exchange, vhost };
    let term = match table.get(JMS_SELECTOR_ARGUMENT) {
        None => return filter(table, &what),
        Some(FieldValue::LongStr(term)) => str::from_utf8(term).ok(),
        Some(_) => None,
    };
    let invalid = |why: &str| what.invalid(JMS_SELECTOR_ARGUMENT, why);
    let term = term.ok_or_else(|| invalid("must be a string of UTF-8"))?;
    let text = jms_selector::selector_text(term).map_err(|why| invalid(&why))?;
    let filter = Filter::parse(&text, &ParseOptions::default());
    filter.map(Some).map_err(|error| invalid(&error.to_string()))
}

fn filter(table: Table<'_>, what: &Declared<'_>) -> Result<Option<Filter>, Fault> {
    let text = match table.get(SELECTOR_ARGUMENT) {
        None => return Ok(None),
        Some(FieldValue::LongStr(text)) => str::from_utf8(text),
        Some(_) => return Err(what.invalid(SELECTOR_ARGUMENT, "must be a string")),
    };
    let text = text.map_err(|_| what.invalid(SELECTOR_ARGUMENT, "is not UTF-8"))?;
    let filter = Filter::parse(text, &ParseOptions::default());
    filter.map(Some).map_err(|error| what.invalid(SELECTOR_ARGUMENT, &error.to_string()))
}

/// How long a consumer's deliveries may stay unsettled, where the arguments of basic.consume say so.
pub(super) fn consumer_timeout(
    queue: &str,
    vhost: &str,
    table: Table<'_>,
) -> Result<Option<Duration>, Fault> {
    let what = Declared { noun: "queue", name: queue, vhost };
    match table.get("x-consumer-timeout") {
        None => Ok(None),
        Some(FieldValue::Int(millis)) => match u64::try_from(millis) {
            Ok(millis @ 1..) => Ok(Some(Duration::from_millis(millis))),
            _ => Err(what.invalid("x-consumer-timeout", "must be at least 1")),
        },
        Some(_) => Err(what.invalid("x-consumer-timeout", "must be an integer")),
    }
}

/// The time to live in the expiration property: decimal milliseconds.
pub(super) fn expiration(digits: &[u8]) -> Result<Duration, Fault> {
    let text = str::from_utf8(digits).unwrap_or("");
    let plain = !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    let why = match text.parse::<u64>() {
        Ok(millis @ 0..=MILLIS_MAX) if plain => return Ok(Duration::from_millis(millis)),
        Ok(_) if plain => "must be at most ten years",
        _ => "must be decimal milliseconds",
    };
    let shown = String::from_utf8_lossy(digits);
    Err(Fault::new(Code::PRECONDITION_FAILED, format!("invalid expiration '{shown}': {why}")))
}

/// The milliseconds in a header that asks for a delay, as the plugin for RabbitMQ reads them: numbers of
/// all kinds, and texts of digits. Anything else asks for none.
pub(super) fn delay_millis(value: FieldValue<'_>) -> Option<i64> {
    match value {
        FieldValue::Int(millis) => Some(millis),
        FieldValue::LongStr(digits) => str::from_utf8(digits).ok()?.parse().ok(),
        FieldValue::Float(millis) => Some(millis as i64),
        FieldValue::Decimal { scale, value } => {
            Some(10i64.checked_pow(scale.into()).map_or(0, |unit| i64::from(value) / unit))
        }
        _ => None,
    }
}

/// What a declaration is about, for error texts.
struct Declared<'a> {
    noun: &'static str,
    name: &'a str,
    vhost: &'a str,
}

impl Declared<'_> {
    fn invalid(&self, argument: &str, why: &str) -> Fault {
        let Declared { noun, name, vhost } = self;
        let text =
            format!("invalid arg '{argument}' for {noun} '{name}' in vhost '{vhost}': {why}");
        Fault::new(Code::PRECONDITION_FAILED, text)
    }
    fn set<O>(
        &self,
        entry: &Entry<'_>,
        option: &OptionDefinition<O>,
        options: &mut O,
    ) -> Result<(), Fault> {
        option.set(options, &value(entry.value)).map_err(|why| self.invalid(entry.name, &why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_names_every_option() {
        let page = include_str!("../../../../docs/protocols/amqp-0-9-1.md");
        let queue = QUEUE_OPTIONS.iter().map(|option| format!("`x-{}`", option.name));
        let exchange = EXCHANGE_OPTIONS.iter().map(|option| format!("`{}`", option.name));
        for name in queue.chain(exchange) {
            assert!(page.contains(&name), "docs/protocols/amqp-0-9-1.md lacks {name}");
        }
    }
}
