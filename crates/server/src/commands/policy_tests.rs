//! Policies through RabbitMQ's interface, ours and the command line, against a broker in this process.

use super::policy;
use super::rabbitmq_tests::{NONE, administrator};
use super::tests::Running;
use crate::http::{self, Mailboxes};
use serde_json::{Value, json};

/// A policy as RabbitMQ's tools set it.
fn body(pattern: &str, about: &str, definition: &Value) -> Value {
    json!({ "pattern": pattern, "apply-to": about, "definition": definition, "priority": 0 })
}

/// What a command answers.
fn ask(running: &Running, words: &[&str]) -> Result<Value, String> {
    let words = ["policy"].iter().chain(words);
    let matches = policy::command().try_get_matches_from(words).unwrap();
    let (verb, arguments) = matches.subcommand().unwrap();
    policy::answer(&running.broker("guest"), verb, arguments)
}

/// The options that follow for a queue, and the policies they follow from.
fn effective(queue: &Value) -> [&Value; 3] {
    ["policy", "operator_policy", "effective_policy_definition"].map(|field| &queue[field])
}

#[test]
fn policies_are_set_listed_followed_and_cleared() {
    let running = Running::start();
    let tool = administrator(&running);
    let lengths = body("^q", "queues", &json!({ "max-length": 1, "message-ttl": 60000 }));
    let mut bounds = body(".*", "classic_queues", &json!({ "message-ttl": 50, "expires": 90000 }));
    bounds["priority"] = json!("7");
    tool.check(&[
        ("PUT", "/queues/%2F/q", json!({ "arguments": { "x-max-length": 5 } }), 201),
        ("PUT", "/policies/%2F/lengths", lengths.clone(), 201),
        ("PUT", "/policies/%2F/lengths", lengths.clone(), 204),
        ("PUT", "/operator-policies/%2F/bounds", bounds, 201),
        ("PUT", "/queues/%2F/q", json!({ "arguments": { "x-max-length": 5 } }), 204),
        ("PUT", "/queues/%2F/other", json!({}), 201),
        ("PUT", "/policies/none/p", lengths.clone(), 404),
        ("PUT", "/policies/%2F/p", body(".*", "all", &json!({ "ha-mode": "all" })), 400),
        ("PUT", "/policies/%2F/p", body(".*", "streams", &json!({ "max-length": 1 })), 400),
        ("PUT", "/policies/%2F/p", body("(", "all", &json!({ "max-length": 1 })), 400),
        ("PUT", "/policies/%2F/p", body(".*", "all", &json!({ "max-length": "x" })), 400),
        (
            "PUT",
            "/operator-policies/%2F/p",
            body(".*", "all", &json!({ "dead-letter-exchange": "x" })),
            400,
        ),
        ("GET", "/policies/%2F/none", NONE, 404),
        ("GET", "/policies/none", NONE, 404),
    ]);
    let mut row = lengths;
    row["vhost"] = json!("/");
    row["name"] = json!("lengths");
    assert_eq!(tool.get("/policies"), json!([row]));
    assert_eq!(tool.get("/policies/%2F/lengths"), row);
    assert_eq!(tool.get("/operator-policies/%2F")[0]["priority"], 7);
    let both = json!({ "max-length": 1, "message-ttl": 50, "expires": 90000 });
    let q = tool.get("/queues/%2F/q");
    assert_eq!(effective(&q), [&json!("lengths"), &json!("bounds"), &both]);
    assert_eq!(q["arguments"], json!({ "x-max-length": 5 }), "what was declared stays");
    let other = tool.get("/queues/%2F/other");
    let bounds = json!({ "message-ttl": 50, "expires": 90000 });
    assert_eq!(effective(&other), [&NONE, &json!("bounds"), &bounds]);
    tool.check(&[
        ("DELETE", "/operator-policies/%2F/bounds", NONE, 204),
        ("DELETE", "/operator-policies/%2F/bounds", NONE, 404),
    ]);
    for body in ["1", "2"] {
        let publish = json!({ "properties": {}, "routing_key": "q", "payload": body,
            "payload_encoding": "string" });
        tool.check(&[("POST", "/exchanges/%2F/amq.default/publish", publish, 200)]);
    }
    assert_eq!(tool.get("/queues/%2F/q")["messages"], 1, "the policy's length is smaller");
    let listed = running.broker("guest").ask("GET", "/v1/queues", None).unwrap();
    let q = listed.as_array().unwrap().iter().find(|row| row["name"] == "q").unwrap();
    let own = json!({ "max_length": 1, "message_ttl": 60000 });
    assert_eq!(effective(q), [&json!("lengths"), &NONE, &own]);
    tool.check(&[("DELETE", "/policies/%2F/lengths", NONE, 204)]);
    assert_eq!(effective(&tool.get("/queues/%2F/q")), [&NONE, &NONE, &json!({})]);
}

#[test]
fn policies_go_with_definitions() {
    let running = Running::start();
    let tool = administrator(&running);
    let definition = json!({ "max-length": 3, "ha-mode": "exactly", "ha-params": 2 });
    let bound = json!({ "pattern": ".*", "apply-to": "queues", "priority": 1,
        "definition": { "max-length": 9 } });
    let file = json!({
        "vhosts": [{ "name": "v" }],
        "policies": [{ "vhost": "v", "name": "p", "pattern": "^a", "apply-to": "queues",
                       "priority": 2, "definition": definition }],
        "parameters": [{ "component": "operator_policy", "vhost": "v", "name": "o",
                         "value": bound }],
        "users": [{ "name": "ada", "password_hash": "", "tags": "",
                    "limits": { "max-connections": 4, "max-channels": 5 } }],
    });
    let (_, checked) = tool.ask("POST", "/definitions?check=true", &file);
    assert_eq!(tool.get("/policies"), json!([]), "a check changes nothing");
    let (status, report) = tool.ask("POST", "/definitions", &file);
    assert_eq!((status, &report), (200, &checked));
    let why: Vec<&str> =
        report["left"].as_array().unwrap().iter().filter_map(|row| row["why"].as_str()).collect();
    assert_eq!(why.len(), 3, "{why:?}");
    assert!(why[0].contains("max-channels"), "{why:?}");
    assert_eq!(
        why[1..],
        ["its option 'ha-mode' is not offered", "its option 'ha-params' is not offered"]
    );
    assert_eq!(tool.get("/policies/v/p")["definition"], json!({ "max-length": 3 }));
    let parameter = json!({ "component": "operator_policy", "vhost": "v", "name": "o",
        "value": bound });
    assert_eq!(tool.get("/parameters"), json!([parameter]));
    let exported = tool.get("/definitions");
    assert_eq!(exported["parameters"], json!([parameter]));
    let ada = exported["users"].as_array().unwrap().iter().find(|it| it["name"] == "ada").unwrap();
    assert_eq!(ada["limits"], json!({ "max-connections": 4 }));
    tool.check(&[("DELETE", "/vhosts/v", NONE, 204)]);
    assert_eq!(tool.get("/operator-policies"), json!([]));
    let (_, report) = tool.ask("POST", "/definitions", &exported);
    assert_eq!(report["left"], json!([]));
    assert_eq!(tool.get("/definitions"), exported);
    let of_v = tool.get("/definitions/v");
    assert!(of_v["policies"][0].get("vhost").is_none(), "{of_v}");
    let (_, report) = tool.ask("POST", "/definitions/%2F", &of_v);
    assert_eq!(report["left"], json!([]));
    assert_eq!(tool.get("/operator-policies/%2F/o")["definition"], json!({ "max-length": 9 }));
}

/// As at the start of the program.
fn take_definitions(running: &Running) -> Result<(), String> {
    let mailboxes = Mailboxes::new([running.mailbox.clone()].into());
    http::take_definitions(mailboxes, &running.settings)
}

#[test]
fn definitions_are_taken_over_at_each_start() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let definitions = json!({
        "vhosts": [{ "name": "v" }],
        "queues": [{ "name": "q", "vhost": "v", "durable": true, "arguments": {} }],
        "policies": [{ "vhost": "v", "name": "p", "pattern": ".*",
                       "definition": { "max-length": 3 } }],
    });
    std::fs::write(file.path(), definitions.to_string()).unwrap();
    let path = file.path().display().to_string();
    let running = Running::start_with(&[("definitions-file", &path)]);
    let tool = administrator(&running);
    for _ in 0..2 {
        take_definitions(&running).unwrap();
        let q = tool.get("/queues/v/q");
        assert_eq!(effective(&q)[2], &json!({ "max-length": 3 }));
    }
    std::fs::write(file.path(), "no JSON").unwrap();
    assert!(take_definitions(&running).unwrap_err().contains("is no file of definitions"));
    drop(file);
    assert!(take_definitions(&running).unwrap_err().starts_with("cannot read"));
}

#[test]
fn limits_are_parameters_too() {
    let running = Running::start();
    let tool = administrator(&running);
    let limits = |value: Value| json!({ "value": value, "component": "vhost-limits" });
    tool.check(&[
        ("PUT", "/parameters/vhost-limits/%2F/limits", limits(json!({ "max-queues": 3 })), 201),
        (
            "PUT",
            "/parameters/vhost-limits/%2F/limits",
            limits(json!({ "max-connections": 4 })),
            204,
        ),
        ("PUT", "/parameters/vhost-limits/%2F/limits", limits(json!({ "max-none": 4 })), 400),
        ("PUT", "/parameters/vhost-limits/%2F/limits", limits(json!({ "max-queues": "x" })), 400),
        ("PUT", "/parameters/shovel/%2F/s", json!({ "value": {} }), 501),
        ("GET", "/parameters/shovel/%2F/s", NONE, 404),
    ]);
    let row = json!({ "component": "vhost-limits", "vhost": "/", "name": "limits",
        "value": { "max-connections": 4 } });
    assert_eq!(tool.get("/parameters/vhost-limits/%2F/limits"), row);
    assert_eq!(tool.get("/parameters/vhost-limits"), json!([row]));
    assert_eq!(tool.get("/vhost-limits")[0]["value"], json!({ "max-connections": 4 }));
    let policy = json!({ "pattern": "", "definition": { "expires": 9 } });
    tool.check(&[
        ("DELETE", "/parameters/vhost-limits/%2F/limits", NONE, 204),
        ("DELETE", "/parameters/vhost-limits/%2F/limits", NONE, 404),
        ("PUT", "/parameters/operator_policy/%2F/o", json!({ "value": policy }), 201),
        ("GET", "/operator-policies/%2F/o", NONE, 200),
        ("DELETE", "/parameters/operator_policy/%2F/o", NONE, 204),
    ]);
    assert_eq!(tool.get("/parameters"), json!([]));
}

#[test]
fn the_command_line_sets_policies() {
    let running = Running::start();
    let set = ["set", "p", "^q", "--max-length", "3", "--apply-to", "queues"];
    ask(&running, &set).unwrap();
    ask(&running, &["set", "o", "", "--operator", "--max-length", "2"]).unwrap();
    let rows = ask(&running, &["list"]).unwrap();
    let row = |name: &str, operator: bool, pattern: &str, about: &str, most: u64| {
        json!({ "vhost": "/", "name": name, "operator": operator, "pattern": pattern,
            "applies_to": about, "priority": 0, "definition": { "max_length": most } })
    };
    assert_eq!(rows, json!([row("p", false, "^q", "queues", 3), row("o", true, "", "all", 2)]));
    ask(&running, &["clear", "p"]).unwrap();
    let error = ask(&running, &["clear", "p"]).unwrap_err();
    assert!(error.contains("no policy 'p' in vhost '/'"), "{error}");
    let error = ask(&running, &["set", "p", "("]).unwrap_err();
    assert!(error.contains("sets nothing"), "{error}");
}
