//! Explanations by a broker in this process, of what clients do over sockets.

use super::explain;
use super::rabbitmq_tests::administrator;
use super::tests::Running;
use angarium_protocol::amqp091::codec::Method;
use serde_json::{Value, json};

/// What a command answers.
fn ask(running: &Running, words: &[&str]) -> Result<Value, String> {
    let words = ["explain"].iter().chain(words);
    let matches = explain::command().try_get_matches_from(words).unwrap();
    let (verb, arguments) = matches.subcommand().unwrap();
    explain::answer(&running.broker("guest"), verb, arguments)
}

/// All of it on one line.
#[track_caller]
fn told(running: &Running, words: &[&str]) -> String {
    let answer = ask(running, words).unwrap();
    let list = |field: &str| {
        let lines = answer[field].as_array().unwrap().iter();
        lines.map(|line| line.as_str().unwrap().to_owned()).collect::<Vec<_>>().join("; ")
    };
    format!("{} | {} | {}", answer["state"].as_str().unwrap(), list("because"), list("to_move"))
}

fn publish(running: &Running, queue: &str, payload: &str) {
    let body = json!({ "properties": { "delivery_mode": 2 }, "routing_key": queue,
        "payload": payload, "payload_encoding": "string" });
    administrator(running).check(&[("POST", "/exchanges/%2F/amq.default/publish", body, 200)]);
}

#[test]
fn a_queue_and_its_messages_tell_what_they_wait_for() {
    let running = Running::start();
    let mut client = running.client();
    client.declare("q").unwrap();
    publish(&running, "q", "one");
    publish(&running, "q", "two");
    let alone = told(&running, &["queue", "q"]);
    assert!(alone.starts_with("queue 'q' in virtual host '/': 2 messages wait"), "{alone}");
    assert!(alone.ends_with("nobody consumes from it | a client consumes from it"), "{alone}");
    client.put(&Method::BasicQos { prefetch_size: 0, prefetch_count: 1, global: false });
    client.expect("basic.qos-ok").unwrap();
    client.put(&Method::BasicConsume {
        ticket: 0,
        queue: "q",
        consumer_tag: "tag",
        no_local: false,
        no_ack: false,
        exclusive: false,
        no_wait: false,
        arguments: Default::default(),
    });
    client.expect("basic.consume-ok").unwrap();
    let full = loop {
        let told = told(&running, &["queue", "q"]);
        if told.contains("1 out and not settled") {
            break told;
        }
    };
    assert!(full.contains("consumer 'tag' has not settled them, the oldest for"), "{full}");
    assert!(full.contains("no credit: it may have 1 message unsettled and has 1"), "{full}");
    assert!(full.contains("(user 'guest', 127.0.0.1:"), "{full}");
    let first = told(&running, &["message", "q"]);
    assert!(
        first.contains("message 1 of queue 'q' in virtual host '/' waits: 3 bytes, persistent"),
        "{first}"
    );
    assert!(first.contains("published to the default exchange with key 'q'"), "{first}");
    assert!(first.contains("no credit"), "{first}");
    let second = told(&running, &["message", "q", "--place", "2"]);
    assert!(second.contains("does not wait: 1 message waits"), "{second}");
    let connections = running.broker("guest").ask("GET", "/v1/connections", None).unwrap();
    let id = connections[0]["id"].to_string();
    let held = told(&running, &["connection", &id]);
    assert!(held.contains("is read from"), "{held}");
    assert!(held.contains("channel 1: 1 delivery is not settled"), "{held}");
    let error = ask(&running, &["queue", "none"]).unwrap_err();
    assert!(error.contains("no queue 'none'"), "{error}");
    assert!(ask(&running, &["connection", "0"]).is_err());
}

#[test]
fn a_publish_is_looked_at_and_not_done() {
    let running = Running::start();
    let tool = administrator(&running);
    let bind = |key: &str| json!({ "routing_key": key, "arguments": {} });
    let headers = json!({ "routing_key": "", "arguments": { "x-match": "all", "kind": "a" } });
    let rights = json!({ "configure": "", "write": "^other$", "read": ".*" });
    tool.check(&[
        ("PUT", "/queues/%2F/q", json!({}), 201),
        ("PUT", "/exchanges/%2F/x", json!({ "type": "topic" }), 201),
        ("PUT", "/exchanges/%2F/h", json!({ "type": "headers" }), 201),
        ("PUT", "/exchanges/%2F/in", json!({ "type": "direct", "internal": true }), 201),
        ("POST", "/bindings/%2F/e/x/q/q", bind("a.*"), 201),
        ("POST", "/bindings/%2F/e/h/q/q", headers, 201),
        ("PUT", "/users/eve", json!({ "password": "x", "tags": "" }), 201),
        ("PUT", "/permissions/%2F/eve", rights, 201),
    ]);
    let there = told(&running, &["publish", "x", "--key", "a.b"]);
    assert!(there.contains("with key 'a.b' reaches 1 queue"), "{there}");
    assert!(there.contains("queue 'q': 0 messages wait before it, 0 consumers"), "{there}");
    assert!(there.contains("user 'eve' would be refused: write access to exchange 'x'"), "{there}");
    assert!(there.contains("users that may publish it: 'guest'"), "{there}");
    let nowhere = told(&running, &["publish", "x", "--key", "b", "--as", "guest"]);
    assert!(nowhere.contains("reaches no queue: it would be dropped"), "{nowhere}");
    assert!(!nowhere.contains("eve"), "{nowhere}");
    let by_headers = told(&running, &["publish", "h", "--headers", "{\"kind\": \"a\"}"]);
    assert!(by_headers.contains("reaches 1 queue"), "{by_headers}");
    let others = told(&running, &["publish", "h", "--headers", "{\"kind\": \"b\"}"]);
    assert!(others.contains("reaches no queue"), "{others}");
    let closed = told(&running, &["publish", "in"]);
    assert!(closed.contains("nobody publishes there: exchange 'in' is internal"), "{closed}");
    let by_name = told(&running, &["publish", "", "--key", "q"]);
    assert!(by_name.contains("the default exchange with key 'q' reaches 1 queue"), "{by_name}");
    assert!(ask(&running, &["publish", "none"]).unwrap_err().contains("no exchange 'none'"));
    assert!(ask(&running, &["publish", "x", "--headers", "no"]).is_err());
    assert_eq!(tool.get("/queues/%2F/q")["messages"], 0, "nothing was sent");
}
