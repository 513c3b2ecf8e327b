//! Requests as clients write them, what they ask the engine, and their answers.

use super::super::body::{put_json, text};
use super::super::codec::{
    Field, Limits, MessageId, OwnedValue, Properties, SectionKind, Sections, Value,
    put_map_section, put_section,
};
use super::Service;
use super::step::{Begun, Step};
use super::values::put;
use angarium_engine::{
    Binding, BindingTarget, QueueDescription, QueueOptions, Refusal, RefusalKind, Reply,
};

const LIMITS: Limits = Limits { properties_bytes_max: 1 << 16 };

/// A request of RabbitMQ's clients.
fn rabbitmq(method: &str, to: &str, body: &OwnedValue) -> Vec<u8> {
    let mut message = Vec::new();
    let properties = Properties {
        message_id: Some(MessageId::String("m1")),
        to: Some(to),
        subject: Some(method),
        reply_to: Some("$me"),
        ..Properties::default()
    };
    properties.write(&mut message);
    put_section(&mut message, SectionKind::Value, &body.value());
    message
}

/// A question to `$management`.
fn question(properties: &[(&str, &str)]) -> Vec<u8> {
    let mut message = Vec::new();
    let ids = Properties {
        message_id: Some(MessageId::ULong(7)),
        reply_to: Some("answers"),
        ..Properties::default()
    };
    ids.write(&mut message);
    put_map_section(&mut message, SectionKind::ApplicationProperties, |map| {
        properties.iter().for_each(|(name, value)| put(map, name, value));
    });
    message
}

/// An answer as one line: status, ids, body.
fn shown(answer: &[u8]) -> String {
    let sections = Sections::walk(answer, LIMITS).expect("it is well-formed");
    let properties = sections.properties().expect("it has properties");
    let status = match properties.subject {
        Some(status) => status.to_owned(),
        None => {
            let map = sections.application_properties().expect("it has application properties");
            let named = |name| map.get(name).map(|it| text(it).into_owned()).unwrap_or_default();
            // `$cbs` has other names for them.
            let code = named("statusCode") + &named("status-code");
            format!("{code} {}{}", named("statusDescription"), named("status-description"))
        }
    };
    let mut body = String::new();
    let value = sections.amqp_value().expect("it is well-formed").unwrap_or(Value::Null);
    put_json(&mut body, value);
    format!("{status} {:?} {body}", properties.correlation_id)
}

/// Asks, and answers for the engine: each reply belongs to the request that begins as `expected` says. The
/// last of `expected` is the answer.
fn check(
    service: Service,
    request: &[u8],
    replies: Vec<Result<Reply, Refusal>>,
    expected: &[&str],
) {
    let sections = Sections::walk(request, LIMITS).expect("it is well-formed");
    let Begun { mut call, mut step, .. } = service.begin(&sections, "/").expect("it is taken");
    let mut replies = replies.into_iter();
    let mut seen = Vec::new();
    loop {
        match step {
            Step::Ask(request) => {
                seen.push(format!("{request:?}"));
                let reply = replies.next().expect("there is a reply to each request");
                step = call.as_mut().expect("it waits").replied(reply);
            }
            Step::Answer(answer) => {
                seen.push(shown(&answer));
                break;
            }
        }
    }
    assert_eq!(seen.len(), expected.len(), "{seen:#?}");
    for (seen, expected) in seen.iter().zip(expected) {
        assert!(seen.contains(expected), "{seen}\nlacks\n{expected}");
    }
}

fn map(fill: impl FnOnce(&mut super::super::codec::MapWriter<'_>)) -> OwnedValue {
    OwnedValue::map(fill)
}

fn nothing() -> OwnedValue {
    OwnedValue::new(&Value::Null)
}

fn queue() -> QueueDescription {
    QueueDescription {
        name: "q".to_owned(),
        options: QueueOptions { durable: true, length_max: Some(9), ..QueueOptions::default() },
        ready: 3,
        unsettled: 1,
        consumers: 2,
    }
}

fn found() -> Result<Reply, Refusal> {
    Ok(Reply::QueueDescriptions { queues: vec![queue()], next: None })
}

fn missing() -> Result<Reply, Refusal> {
    Err(Refusal::new(RefusalKind::NotFound, "no queue 'q' in vhost '/'"))
}

fn declared() -> Result<Reply, Refusal> {
    Ok(Reply::Queue { name: "q".to_owned(), messages: 0, consumers: 0 })
}

#[test]
fn queues_are_declared_and_described() {
    let body = map(|map| {
        put(map, "durable", &true);
        let arguments = OwnedValue::map(|map| {
            put(map, "x-max-length", &9u32);
            put(map, "x-mine", &"1");
        });
        put(map, "arguments", &arguments.value());
    });
    let put_queue = rabbitmq("PUT", "/queues/q", &body);
    let shown = r#"{"message_count":3,"consumer_count":2,"name":"q","vhost":"/","durable":true"#;
    let [lookup, declare] = ["DescribeQueue { name: \"q\"", "length_max: Some(9)"];
    let new = format!("201 Some(String(\"m1\")) {shown}");
    let steps = [lookup, declare, lookup, &new];
    check(Service::Rabbitmq, &put_queue, vec![missing(), declared(), found()], &steps);
    let old = format!("200 Some(String(\"m1\")) {shown}");
    let steps = [lookup, declare, lookup, &old];
    check(Service::Rabbitmq, &put_queue, vec![found(), declared(), found()], &steps);
    let differs = Refusal::new(RefusalKind::PreconditionFailed, "it differs");
    let steps = [lookup, declare, "409 Some(String(\"m1\")) \"it differs\""];
    check(Service::Rabbitmq, &put_queue, vec![found(), Err(differs)], &steps);
    let get = rabbitmq("GET", "/queues/q", &nothing());
    check(Service::Rabbitmq, &get, vec![found()], &[lookup, &old]);
    check(Service::Rabbitmq, &get, vec![missing()], &[lookup, "404"]);
}

#[test]
fn queues_are_emptied_and_deleted() {
    let delete = rabbitmq("DELETE", "/queues/a%2Fb", &nothing());
    let asked = ["DescribeQueue { name: \"a/b\"", "DeleteQueue { name: \"a/b\""];
    let done = "200 Some(String(\"m1\")) {\"message_count\":3}";
    let replies = vec![found(), Ok(Reply::Messages(3))];
    check(Service::Rabbitmq, &delete, replies, &[asked[0], asked[1], done]);
    check(Service::Rabbitmq, &delete, vec![missing()], &[asked[0], "404"]);
    let purge = rabbitmq("DELETE", "/queues/q/messages", &nothing());
    check(Service::Rabbitmq, &purge, vec![Ok(Reply::Messages(3))], &["PurgeQueue", done]);
}

#[test]
fn bindings_come_and_go() {
    let body = map(|map| {
        put(map, "source", &"x");
        put(map, "destination_queue", &"q");
        put(map, "binding_key", &"k");
        put(map, "arguments", &map_of("n", 1).value());
    });
    let bind = rabbitmq("POST", "/bindings", &body);
    check(Service::Rabbitmq, &bind, vec![Ok(Reply::Done)], &["Bind(Binding", "204"]);
    let bound = |arguments| Binding {
        source: "x".to_owned(),
        target: BindingTarget::Queue("q".to_owned()),
        key: "k".to_owned(),
        arguments,
        filter: None,
        not_from: None,
    };
    let arguments: angarium_engine::Arguments =
        [("n".to_owned(), angarium_engine::Value::Int(1))].into();
    let replies =
        || vec![Ok(Reply::Bindings(vec![bound(Default::default()), bound(arguments.clone())]))];
    let get = rabbitmq("GET", "/bindings?src=x&dstq=q&key=k", &nothing());
    let location = "\"location\":\"/bindings/src=x;dstq=q;key=k;args=";
    check(Service::Rabbitmq, &get, replies(), &["DescribeBindings", location]);
    let delete = rabbitmq("DELETE", "/bindings/src=x;dstq=q;key=k;args=", &nothing());
    let both = replies().into_iter().chain([Ok(Reply::Done)]).collect();
    let unbind = "Unbind(Binding { source: \"x\", target: Queue(\"q\"), key: \"k\", arguments: {}";
    check(Service::Rabbitmq, &delete, both, &["DescribeBindings", unbind, "204"]);
    let other = rabbitmq("DELETE", "/bindings/src=x;dstq=q;key=k;args=ff", &nothing());
    check(Service::Rabbitmq, &other, replies(), &["DescribeBindings", "204"]);
}

fn map_of(name: &str, number: i64) -> OwnedValue {
    OwnedValue::map(|map| put(map, name, &number))
}

#[test]
fn what_cannot_be_says_why() {
    let refused = |method: &str, to: &str, body: &OwnedValue, answer: &str| {
        check(Service::Rabbitmq, &rabbitmq(method, to, body), Vec::new(), &[answer]);
    };
    refused("GET", "/nowhere", &nothing(), "400 Some(String(\"m1\")) \"nothing is at '/nowhere'\"");
    refused("POST", "/queues/q", &nothing(), "405");
    refused("PUT", "/queues/", &nothing(), "a queue needs a name");
    refused("PUT", "/queues/q", &map_of("colour", 1), "bad queue property 'colour'");
    refused("PUT", "/queues/q", &OwnedValue::new(&1u32), "the body is no map");
    refused("PUT", "/auth/tokens", &nothing(), "501");
    refused("GET", "/bindings?src=x", &nothing(), "lacks one of src, dstq or dste, key");
    refused("DELETE", "/bindings/src=x;dst=q", &nothing(), "is none of src");
    let length = map(|map| {
        put(map, "arguments", &map_of("x-max-length", -1).value());
    });
    let why = "invalid arg 'x-max-length' for queue 'q' in vhost '/': -1 is negative";
    refused("PUT", "/queues/q", &length, why);
    refused("PUT", "/exchanges/x", &map(|map| put(map, "type", &"odd")), "unknown exchange type");
}

#[test]
fn tokens_are_accepted_and_grant_nothing() {
    let put = [("operation", "put-token"), ("type", "jwt"), ("name", "amqp://host/q")];
    let asked = |properties: &[(&str, &str)], token: Option<&str>| {
        let mut request = question(properties);
        if let Some(token) = token {
            put_section(&mut request, SectionKind::Value, &token);
        }
        request
    };
    for (properties, token, answer) in [
        (&put[..], Some("token"), "202 Accepted Some(ULong(7)) null"),
        (&put, None, "400 the body of put-token is no token"),
        (&put[..1], Some("token"), "400 put-token needs a `name`"),
        (&[put[0], put[2]], Some("token"), "400 put-token needs a `type`"),
        (&[("operation", "dance")], None, "501"),
        (&[], None, "400 the request has no `operation`"),
    ] {
        check(Service::Claims, &asked(properties, token), Vec::new(), &[answer]);
    }
}

#[test]
fn queues_are_listed_and_read() {
    let query = question(&[("operation", "QUERY"), ("entityType", "queue")]);
    let more = || Ok(Reply::QueueDescriptions { queues: vec![queue()], next: Some(5) });
    let listed =
        r#""results":[["q","q","queue",true,false,false,3,1,2,{"x-max-length":9}]],"next":5"#;
    check(Service::Queries, &query, vec![more()], &["DescribeQueues { from: 0, most: 100", listed]);
    let read = question(&[("operation", "READ"), ("name", "q")]);
    let asked = "DescribeQueue { name: \"q\"";
    check(
        Service::Queries,
        &read,
        vec![found()],
        &[asked, "200 OK Some(ULong(7)) {\"name\":\"q\""],
    );
    check(Service::Queries, &read, vec![missing()], &[asked, "404 no queue 'q'"]);
    for (operation, answer) in [
        ("GET-TYPES", "{\"queue\":[]}"),
        ("GET-OPERATIONS", "{\"queue\":[\"READ\",\"QUERY\"]}"),
        ("DELETE", "405"),
        ("DANCE", "501"),
        ("READ", "400"),
    ] {
        check(Service::Queries, &question(&[("operation", operation)]), Vec::new(), &[answer]);
    }
}
