//! `/management`: what RabbitMQ's AMQP 1.0 clients ask, as `GET`, `PUT`, `POST` and `DELETE` of paths.
//!
//! The request's `subject` is the method, `to` the path, `message-id` comes back as the answer's
//! `correlation-id`; the answer's `subject` is the status.

use super::super::address::encoded;
use super::super::codec::{
    Field, Malformed, OwnedValue, Properties, SectionKind, Sections, Value, put_map_section,
    put_section,
};
use super::paths::{Ends, Path, parse};
use super::step::{Begun, Step, message_id};
use super::values::{arguments, arguments_map, key_text, list, put, queue_arguments};
use angarium_engine::{
    Arguments, Binding, BindingTarget, EXCHANGE_OPTIONS, ExchangeKind, ExchangeOptions,
    QUEUE_OPTIONS, QueueDescription, QueueOptions, Refusal, RefusalKind, Reply, Request, fnv_1a,
};

/// Octets of a request at most.
const REQUEST_BYTES_MAX: usize = 64 << 10;
/// What stands for the broker among the nodes that have a queue.
const NODE: &str = "angarium";

/// A request that waits for the engine.
#[derive(Debug)]
pub(in super::super) struct Call {
    message_id: Option<OwnedValue>,
    vhost: String,
    /// The engine is asked for what the next of these says.
    pending: Pending,
}

/// What the engine was asked last, and what its reply means.
#[derive(Debug)]
enum Pending {
    /// Whether a queue is there that is to be declared.
    Lookup { name: String, options: QueueOptions },
    /// A queue is declared.
    Declare { name: String, was_there: bool },
    /// What a queue is; the answer has this status.
    Describe(&'static str),
    /// Whether a queue is there whose messages, or which itself, go.
    Removal(Request),
    /// Messages went.
    Removed,
    /// Nothing is answered but that it is done.
    Done,
    /// The bindings between two ends.
    Bindings,
    /// The same, one of which goes.
    Unbinding(String),
}

/// A status and a text that explains it.
struct Failure {
    status: &'static str,
    why: String,
}

impl Failure {
    fn bad(why: impl Into<String>) -> Failure {
        Failure { status: "400", why: why.into() }
    }

    fn of(refusal: Refusal) -> Failure {
        let status = match refusal.kind {
            RefusalKind::NotFound | RefusalKind::Unroutable => "404",
            RefusalKind::PreconditionFailed => "409",
            RefusalKind::AccessRefused | RefusalKind::NotAllowed | RefusalKind::LimitExceeded => {
                "403"
            }
            RefusalKind::StorageUnavailable | RefusalKind::InDoubt | RefusalKind::MemoryShort => {
                "503"
            }
            RefusalKind::ResourceLocked
            | RefusalKind::TakenOver
            | RefusalKind::NotImplemented
            | RefusalKind::Internal => "400",
        };
        Failure { status, why: refusal.text }
    }
}

/// Begins a request.
pub(super) fn begin(request: &Sections<'_>, vhost: &str) -> Result<Begun<Call>, Malformed> {
    let properties = request.properties()?;
    let id = properties.message_id.map(|id| OwnedValue::new(&id));
    let reply_to = properties.reply_to.map(str::to_owned);
    let call = |pending| Call { message_id: id.clone(), vhost: vhost.to_owned(), pending };
    let asked = if request.message().len() > REQUEST_BYTES_MAX {
        let why = format!("a request has at most {REQUEST_BYTES_MAX} octets");
        Err(Failure { status: "413", why })
    } else {
        let body = request.amqp_value()?.unwrap_or(Value::Null);
        ask(&properties, body, vhost)
    };
    Ok(match asked {
        Ok((pending, request)) => {
            Begun { call: Some(call(pending)), step: Step::Ask(request), reply_to }
        }
        Err(failure) => Begun { call: None, step: call(Pending::Done).fail(failure), reply_to },
    })
}

/// What a request asks the engine first.
fn ask(
    properties: &Properties<'_>,
    body: Value<'_>,
    vhost: &str,
) -> Result<(Pending, Request), Failure> {
    let target = properties.to.ok_or_else(|| Failure::bad("the request has no `to`"))?;
    let method = properties.subject.ok_or_else(|| Failure::bad("the request has no `subject`"))?;
    let path = parse(target).map_err(Failure::bad)?;
    Ok(match (method, path) {
        ("GET", Path::Queue(name)) => (Pending::Describe("200"), Request::DescribeQueue { name }),
        ("PUT", Path::Queue(name)) => {
            if name.is_empty() {
                return Err(Failure::bad("a queue needs a name"));
            }
            let options = queue_options(&name, vhost, body)?;
            (Pending::Lookup { name: name.clone(), options }, Request::DescribeQueue { name })
        }
        ("DELETE", Path::Queue(name)) => {
            let delete =
                Request::DeleteQueue { name: name.clone(), if_unused: false, if_empty: false };
            (Pending::Removal(delete), Request::DescribeQueue { name })
        }
        ("DELETE", Path::Messages(name)) => (Pending::Removed, Request::PurgeQueue { name }),
        ("PUT", Path::Exchange(name)) => {
            let options = Some(exchange_options(body)?);
            (Pending::Done, Request::DeclareExchange { name, options })
        }
        ("DELETE", Path::Exchange(name)) => {
            (Pending::Done, Request::DeleteExchange { name, if_unused: false })
        }
        ("POST", Path::Bindings(None)) => (Pending::Done, Request::Bind(binding(body)?)),
        ("GET", Path::Bindings(Some(ends))) => (Pending::Bindings, describe_bindings(ends)),
        ("DELETE", Path::Binding { ends, arguments }) => {
            (Pending::Unbinding(arguments), describe_bindings(ends))
        }
        ("PUT", Path::Tokens) => {
            let why =
                "logins by token are not offered: a connection keeps the user of its SASL login";
            return Err(Failure { status: "501", why: why.to_owned() });
        }
        (method, _) => {
            let why = format!("'{target}' cannot be asked for with {method}");
            return Err(Failure { status: "405", why });
        }
    })
}

fn describe_bindings(Ends { source, target, key }: Ends) -> Request {
    Request::DescribeBindings { source, target, key }
}

impl Call {
    /// Continues with the engine's reply.
    pub(super) fn replied(&mut self, reply: Result<Reply, Refusal>) -> Step {
        let pending = std::mem::replace(&mut self.pending, Pending::Done);
        let reply = match (pending, reply) {
            // It is declared now, or there is nothing to remove.
            (Pending::Lookup { name, options }, Err(why)) if why.kind == RefusalKind::NotFound => {
                return self.declare(name, options, false);
            }
            (_, Err(refusal)) => return self.fail(Failure::of(refusal)),
            (pending, Ok(reply)) => (pending, reply),
        };
        match reply {
            (Pending::Lookup { name, options }, _) => self.declare(name, options, true),
            (Pending::Declare { name, was_there }, _) => {
                self.pending = Pending::Describe(if was_there { "200" } else { "201" });
                Step::Ask(Request::DescribeQueue { name })
            }
            (Pending::Describe(status), Reply::QueueDescriptions { queues, .. }) => {
                match queues.first() {
                    Some(queue) => self.answer(status, &queue_map(queue, &self.vhost).value()),
                    None => self.answer("404", &"the queue is gone"),
                }
            }
            (Pending::Removal(request), _) => {
                self.pending = Pending::Removed;
                Step::Ask(request)
            }
            (Pending::Removed, Reply::Messages(count)) => {
                let map = OwnedValue::map(|map| put(map, "message_count", &count));
                self.answer("200", &map.value())
            }
            (Pending::Bindings, Reply::Bindings(bindings)) => {
                let list = list(bindings.iter().map(binding_map));
                self.answer("200", &list.value())
            }
            (Pending::Unbinding(told_by), Reply::Bindings(bindings)) => {
                let named = bindings.into_iter().find(|it| digest(&it.arguments) == told_by);
                match named {
                    Some(binding) => Step::Ask(Request::Unbind(binding)),
                    None => self.done(),
                }
            }
            _ => self.done(),
        }
    }

    fn declare(&mut self, name: String, options: QueueOptions, was_there: bool) -> Step {
        self.pending = Pending::Declare { name: name.clone(), was_there };
        Step::Ask(Request::DeclareQueue { name, options: Some(options) })
    }

    fn done(&self) -> Step {
        self.answer("204", &Value::Null)
    }

    fn fail(&self, Failure { status, why }: Failure) -> Step {
        self.answer(status, &why.as_str())
    }

    /// The answer with this status and body.
    fn answer<'v>(&self, status: &str, body: &impl Field<'v>) -> Step {
        let correlation_id = message_id(self.message_id.as_ref());
        let mut message = Vec::new();
        Properties { subject: Some(status), correlation_id, ..Properties::default() }
            .write(&mut message);
        put_map_section(&mut message, SectionKind::ApplicationProperties, |map| {
            put(map, "http:response", &"1.1");
        });
        put_section(&mut message, SectionKind::Value, body);
        Step::Answer(message)
    }
}

/// The queue that a request's body describes.
fn queue_options(name: &str, vhost: &str, body: Value<'_>) -> Result<QueueOptions, Failure> {
    let mut options = QueueOptions { durable: true, ..QueueOptions::default() };
    for (field, value) in fields(body)? {
        match (field, value) {
            ("durable", Value::Boolean(value)) => options.durable = value,
            ("exclusive", Value::Boolean(value)) => options.exclusive = value,
            ("auto_delete", Value::Boolean(value)) => options.auto_delete = value,
            ("arguments", value) => set_queue_arguments(&mut options, name, vhost, value)?,
            _ => return Err(Failure::bad(format!("bad queue property '{field}'"))),
        }
    }
    Ok(options)
}

fn set_queue_arguments(
    options: &mut QueueOptions,
    name: &str,
    vhost: &str,
    value: Value<'_>,
) -> Result<(), Failure> {
    let given = arguments(value)
        .ok_or_else(|| Failure::bad("`arguments` is no map from texts to values"))?;
    for (argument, value) in given {
        let option = argument.strip_prefix("x-");
        let option = option.and_then(|name| QUEUE_OPTIONS.iter().find(|it| it.name == name));
        match option {
            Some(option) => option.set(options, &value).map_err(|why| {
                let what = format!("for queue '{name}' in vhost '{vhost}': {why}");
                Failure::bad(format!("invalid arg '{argument}' {what}"))
            })?,
            None => {
                options.other.insert(argument, value);
            }
        }
    }
    Ok(())
}

fn exchange_options(body: Value<'_>) -> Result<ExchangeOptions, Failure> {
    let mut options = ExchangeOptions {
        kind: ExchangeKind::Direct,
        delaying: false,
        durable: true,
        auto_delete: false,
        internal: false,
        alternate: None,
    };
    let mut given = Arguments::new();
    let mut kind = "direct";
    for (field, value) in fields(body)? {
        match (field, value) {
            ("durable", Value::Boolean(value)) => options.durable = value,
            ("auto_delete", Value::Boolean(value)) => options.auto_delete = value,
            ("internal", Value::Boolean(value)) => options.internal = value,
            ("type", Value::String(name)) => kind = name,
            ("arguments", value) => {
                given = arguments(value)
                    .ok_or_else(|| Failure::bad("`arguments` is no map from texts to values"))?;
            }
            _ => return Err(Failure::bad(format!("bad exchange property '{field}'"))),
        }
    }
    options.delaying = kind == "x-delayed-message";
    let routing = match options.delaying {
        true => given.get("x-delayed-type").and_then(|it| it.as_text()).unwrap_or(""),
        false => kind,
    };
    let Some(kind) = ExchangeKind::named(routing) else {
        return Err(Failure::bad(format!("unknown exchange type '{routing}'")));
    };
    options.kind = kind;
    for option in EXCHANGE_OPTIONS {
        if let Some(value) = given.get(option.name) {
            option
                .set(&mut options, value)
                .map_err(|why| Failure::bad(format!("invalid arg '{}': {why}", option.name)))?;
        }
    }
    Ok(options)
}

fn binding(body: Value<'_>) -> Result<Binding, Failure> {
    let (mut source, mut target, mut key) = (None, None, None);
    let mut given = Arguments::new();
    for (field, value) in fields(body)? {
        match (field, value) {
            ("source", Value::String(name)) => source = Some(name.to_owned()),
            ("destination_queue", Value::String(name)) => {
                target = Some(BindingTarget::Queue(name.to_owned()));
            }
            ("destination_exchange", Value::String(name)) => {
                target = Some(BindingTarget::Exchange(name.to_owned()));
            }
            ("binding_key", Value::String(name)) => key = Some(name.to_owned()),
            ("arguments", value) => {
                given = arguments(value)
                    .ok_or_else(|| Failure::bad("`arguments` is no map from texts to values"))?;
            }
            _ => return Err(Failure::bad(format!("bad binding field '{field}'"))),
        }
    }
    match (source, target, key) {
        (Some(source), Some(target), Some(key)) => {
            Ok(Binding { source, target, key, arguments: given, filter: None, not_from: None })
        }
        _ => {
            let why = "a binding has a source, a destination_queue or destination_exchange, and a \
                       binding_key";
            Err(Failure::bad(why))
        }
    }
}

/// The entries of a body that is a map, or nothing.
fn fields(body: Value<'_>) -> Result<Vec<(&str, Value<'_>)>, Failure> {
    let map = match body {
        Value::Map(map) => map,
        Value::Null => return Ok(Vec::new()),
        _ => return Err(Failure::bad("the body is no map")),
    };
    let entries = map.entries().map(|(key, value)| Some((key_text(key)?, value)));
    entries.collect::<Option<_>>().ok_or_else(|| Failure::bad("the body has a key that is no text"))
}

/// A queue as RabbitMQ's clients read it.
fn queue_map(queue: &QueueDescription, vhost: &str) -> OwnedValue {
    let options = &queue.options;
    OwnedValue::map(|map| {
        put(map, "message_count", &queue.ready);
        put(map, "consumer_count", &queue.consumers);
        put(map, "name", &queue.name.as_str());
        put(map, "vhost", &vhost);
        put(map, "durable", &options.durable);
        put(map, "auto_delete", &options.auto_delete);
        put(map, "exclusive", &options.exclusive);
        put(map, "type", &options.queue_type.name());
        put(map, "leader", &NODE);
        put(map, "replicas", &list(std::iter::once(OwnedValue::new(&NODE))).value());
        put(map, "arguments", &queue_arguments(options).value());
    })
}

/// A binding as they read it.
fn binding_map(binding: &Binding) -> OwnedValue {
    let (kind, letter, name) = match &binding.target {
        BindingTarget::Queue(name) => ("destination_queue", 'q', name),
        BindingTarget::Exchange(name) => ("destination_exchange", 'e', name),
    };
    let location = format!(
        "/bindings/src={};dst{letter}={};key={};args={}",
        encoded(&binding.source),
        encoded(name),
        encoded(&binding.key),
        digest(&binding.arguments)
    );
    OwnedValue::map(|map| {
        put(map, "source", &binding.source.as_str());
        put(map, kind, &name.as_str());
        put(map, "binding_key", &binding.key.as_str());
        put(map, "arguments", &arguments_map(&binding.arguments).value());
        put(map, "location", &location.as_str());
    })
}

/// Tells arguments from others in a binding's path: nothing for none, else FNV-1a of their encoding.
fn digest(arguments: &Arguments) -> String {
    if arguments.is_empty() {
        return String::new();
    }
    format!("{:016x}", fnv_1a(arguments_map(arguments).bytes()))
}
