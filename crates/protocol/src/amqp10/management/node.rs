//! `$management`: questions about queues, in the words of the AMQP management draft 1.0.
//!
//! Application properties name the operation: `QUERY` lists entities, `READ` shows one, `GET-TYPES`,
//! `GET-ATTRIBUTES` and `GET-OPERATIONS` say what can be asked. Nothing can be changed. Where a `QUERY` is
//! not answered with all entities, its answer has a `next`: the `offset` to go on at.

use super::super::codec::{
    Field, Malformed, Map, OwnedValue, Properties, SectionKind, Sections, Value, put_map_section,
    put_section,
};
use super::step::{Begun, Step, message_id};
use super::values::{list, put, queue_arguments};
use angarium_engine::{QueueDescription, Refusal, RefusalKind, Reply, Request};

/// The one type of entities.
const QUEUE_TYPE: &str = "queue";
/// Entities of an answer, unless less are asked for.
const COUNT_MAX: u32 = 100;

/// The attributes of a queue, in their order.
const ATTRIBUTES: [&str; 10] = [
    "name",
    "identity",
    "type",
    "durable",
    "exclusive",
    "auto-delete",
    "messages",
    "unsettled",
    "consumers",
    "arguments",
];

/// What operations an entity has.
const OPERATIONS: [&str; 2] = ["READ", "QUERY"];

/// A question that waits for the engine.
#[derive(Debug)]
pub(in super::super) struct Call {
    message_id: Option<OwnedValue>,
    /// It is about one queue.
    is_read: bool,
}

/// Begins a request.
pub(super) fn begin(request: &Sections<'_>) -> Result<Begun<Call>, Malformed> {
    let properties = request.properties()?;
    let reply_to = properties.reply_to.map(str::to_owned);
    // What answers carry back: the correlation id, or else the message's own.
    let id = properties.correlation_id.or(properties.message_id);
    let mut call = Call { message_id: id.map(|id| OwnedValue::new(&id)), is_read: false };
    let asked = request.application_properties()?;
    let text = |name| match asked.get(name) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    let operation = text("operation").unwrap_or_default();
    let entity = text("entityType").or(text("type"));
    let is_known = entity.is_none_or(|it| it == QUEUE_TYPE || it.ends_with("management"));
    let step = match operation {
        _ if !is_known => call.answer("404", "no entities of this type", &Value::Null),
        "QUERY" => {
            let from = number(&asked, "offset").unwrap_or(0);
            let most = number(&asked, "count").unwrap_or(COUNT_MAX.into());
            let most = u32::try_from(most).unwrap_or(COUNT_MAX);
            Step::Ask(Request::DescribeQueues { from, most })
        }
        "READ" => match text("name").or(text("identity")) {
            Some(name) => {
                call.is_read = true;
                Step::Ask(Request::DescribeQueue { name: name.to_owned() })
            }
            None => call.answer("400", "READ needs a `name`", &Value::Null),
        },
        "GET-TYPES" => call.answer_with(QUEUE_TYPE, &[]),
        "GET-ATTRIBUTES" => call.answer_with(QUEUE_TYPE, &ATTRIBUTES),
        "GET-OPERATIONS" => call.answer_with(QUEUE_TYPE, &OPERATIONS),
        "" => call.answer("400", "the request has no `operation`", &Value::Null),
        "CREATE" | "UPDATE" | "DELETE" => {
            let why = "$management changes nothing; declare queues at /management";
            call.answer("405", why, &Value::Null)
        }
        _ => call.answer("501", "there is no such operation", &Value::Null),
    };
    let waits = matches!(step, Step::Ask(_));
    let call = waits.then_some(call);
    Ok(Begun { call, step, reply_to })
}

/// A whole number among application properties.
fn number(asked: &Map<'_>, name: &str) -> Option<u64> {
    match asked.get(name)? {
        Value::Int(value) => value.try_into().ok(),
        Value::Long(value) => value.try_into().ok(),
        Value::UInt(value) => Some(value.into()),
        Value::ULong(value) => Some(value),
        _ => None,
    }
}

impl Call {
    /// Continues with the engine's reply.
    pub(super) fn replied(&mut self, reply: Result<Reply, Refusal>) -> Step {
        match reply {
            Ok(Reply::QueueDescriptions { queues, .. }) if self.is_read => match queues.first() {
                Some(queue) => self.answer("200", "OK", &queue_map(queue).value()),
                None => self.answer("404", "the queue is gone", &Value::Null),
            },
            Ok(Reply::QueueDescriptions { queues, next }) => {
                let names = list(ATTRIBUTES.iter().map(OwnedValue::new));
                let results = queues.iter().map(|queue| list(values(queue).into_iter()));
                let results = list(results);
                let body = OwnedValue::map(|map| {
                    put(map, "attributeNames", &names.value());
                    put(map, "results", &results.value());
                    if let Some(next) = next {
                        put(map, "next", &next);
                    }
                });
                self.answer("200", "OK", &body.value())
            }
            Ok(_) => self.answer("500", "the broker answered something else", &Value::Null),
            Err(refusal) => {
                let status = match refusal.kind {
                    RefusalKind::NotFound => "404",
                    RefusalKind::AccessRefused | RefusalKind::NotAllowed => "403",
                    _ => "500",
                };
                self.answer(status, &refusal.text, &Value::Null)
            }
        }
    }

    /// The answer that has a list for a type.
    fn answer_with(&self, kind: &str, names: &[&'static str]) -> Step {
        let names = list(names.iter().map(OwnedValue::new));
        let body = OwnedValue::map(|map| put(map, kind, &names.value()));
        self.answer("200", "OK", &body.value())
    }

    fn answer<'v>(&self, status: &str, description: &str, body: &impl Field<'v>) -> Step {
        let correlation_id = message_id(self.message_id.as_ref());
        let mut message = Vec::new();
        Properties { correlation_id, ..Properties::default() }.write(&mut message);
        put_map_section(&mut message, SectionKind::ApplicationProperties, |map| {
            put(map, "statusCode", &status.parse::<i32>().unwrap_or(500));
            put(map, "statusDescription", &description);
        });
        put_section(&mut message, SectionKind::Value, body);
        Step::Answer(message)
    }
}

/// The values of a queue's [`ATTRIBUTES`].
fn values(queue: &QueueDescription) -> [OwnedValue; ATTRIBUTES.len()] {
    let options = &queue.options;
    [
        OwnedValue::new(&queue.name.as_str()),
        OwnedValue::new(&queue.name.as_str()),
        OwnedValue::new(&QUEUE_TYPE),
        OwnedValue::new(&options.durable),
        OwnedValue::new(&options.exclusive),
        OwnedValue::new(&options.auto_delete),
        OwnedValue::new(&queue.ready),
        OwnedValue::new(&queue.unsettled),
        OwnedValue::new(&queue.consumers),
        queue_arguments(options),
    ]
}

fn queue_map(queue: &QueueDescription) -> OwnedValue {
    OwnedValue::map(|map| {
        for (name, value) in ATTRIBUTES.iter().zip(values(queue)) {
            put(map, name, &value.value());
        }
    })
}
