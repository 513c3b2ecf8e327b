//! RabbitMQ's management interface over HTTP, against a broker in this process: requests as its tools send
//! them (rabbitmqadmin, KEDA's scaler, Terraform's provider), and the fields that they cannot do without.

use super::http_tests::{answer, login, status};
use super::tests::Running;
use serde_json::{Value, json};

/// A user's requests.
pub(super) struct Tool<'a> {
    pub(super) running: &'a Running,
    pub(super) login: String,
}

impl Tool<'_> {
    pub(super) fn ask(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let head = format!(
            "{method} /api{path} HTTP/1.1\r\nHost: {}{}\r\nContent-Length: {}",
            self.running.http,
            self.login,
            body.len()
        );
        let text = answer(self.running, &head, body.as_bytes());
        let content = text.split_once("\r\n\r\n").map_or("", |(_, content)| content);
        (status(&text), serde_json::from_str(content).unwrap_or(Value::Null))
    }

    pub(super) fn get(&self, path: &str) -> Value {
        let (status, answer) = self.ask("GET", path, &Value::Null);
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    /// Asks for several things in turn; each is answered with that status.
    #[track_caller]
    pub(super) fn check(&self, requests: &[(&str, &str, Value, u16)]) {
        for (method, path, body, expected) in requests {
            let (status, answer) = self.ask(method, path, body);
            assert_eq!(status, *expected, "{method} {path}: {answer}");
            if status >= 400 {
                assert!(answer["error"].is_string() && answer["reason"].is_string(), "{answer}");
            }
        }
    }
}

pub(super) fn administrator(running: &Running) -> Tool<'_> {
    Tool { running, login: login("guest", "guest") }
}

pub(super) const NONE: Value = Value::Null;

#[test]
fn everything_is_made_found_and_taken_away() {
    let running = Running::start();
    let tool = administrator(&running);
    let queue =
        json!({ "durable": "true", "auto_delete": false, "arguments": { "x-max-length": 9 } });
    let permission = json!({ "configure": ".*", "write": ".*", "read": ".*" });
    tool.check(&[
        ("PUT", "/vhosts/v", NONE, 201),
        ("PUT", "/vhosts/v", json!({ "description": "d", "tags": "" }), 204),
        ("PUT", "/users/ada", json!({ "password": "secret", "tags": "" }), 201),
        ("PUT", "/users/ada", json!({ "password": "secret", "tags": ["administrator"] }), 204),
        ("PUT", "/users/eve", json!({ "password": "x", "tags": "management" }), 400),
        ("PUT", "/users/eve", json!({ "password": "x" }), 400),
        ("PUT", "/permissions/v/ada", permission.clone(), 201),
        ("PUT", "/permissions/v/ada", permission.clone(), 204),
        ("PUT", "/permissions/none/ada", permission, 404),
        ("PUT", "/exchanges/v/e", json!({ "type": "topic", "durable": true }), 201),
        ("PUT", "/exchanges/v/e", json!({ "type": "topic" }), 204),
        ("PUT", "/exchanges/v/e", json!({ "type": "fanout" }), 400),
        ("PUT", "/exchanges/v/f", json!({ "type": "none" }), 400),
        ("PUT", "/queues/v/q", queue.clone(), 201),
        ("PUT", "/queues/v/q", queue, 204),
        ("PUT", "/queues/v/q", json!({ "durable": false }), 400),
        ("PUT", "/queues/v/s", json!({ "arguments": { "x-queue-type": "stream" } }), 400),
        ("PUT", "/queues/none/q", json!({}), 404),
        ("PUT", "/queues/v/amq.q", json!({}), 400),
        ("POST", "/bindings/v/e/e/q/q", json!({ "routing_key": "a.#", "arguments": {} }), 201),
        ("POST", "/bindings/v/e/e/q/none", json!({ "routing_key": "a" }), 404),
        ("PUT", "/vhost-limits/v/max-queues", json!({ "value": 1 }), 204),
        ("PUT", "/queues/v/second", json!({}), 400),
        ("PUT", "/vhost-limits/v/max-none", json!({ "value": 1 }), 400),
        ("PUT", "/user-limits/ada/max-connections", json!({ "value": 7 }), 204),
        (
            "PUT",
            "/topic-permissions/v/ada",
            json!({ "exchange": "e", "write": "^$", "read": ".*" }),
            201,
        ),
        (
            "PUT",
            "/topic-permissions/v/ada",
            json!({ "exchange": "e", "write": "^a", "read": "" }),
            400,
        ),
    ]);
    all_is_found(&tool);
    all_is_taken_away(&tool);
}

fn all_is_found(tool: &Tool<'_>) {
    assert_eq!(tool.get("/queues/v/q")["arguments"], json!({ "x-max-length": 9 }));
    assert_eq!(tool.get("/vhost-limits/v")[0]["value"], json!({ "max-queues": 1 }));
    assert_eq!(tool.get("/user-limits/ada")[0]["value"], json!({ "max-connections": 7 }));
    assert_eq!(tool.get("/topic-permissions/v/ada")[0]["write"], "^$");
    assert_eq!(tool.get("/users/ada")["tags"], json!(["administrator"]));
    let bindings = tool.get("/bindings/v/e/e/q/q");
    assert_eq!(bindings[0]["properties_key"], "a.%23");
    for path in ["/queues/v/q/bindings", "/exchanges/v/e/bindings/source", "/bindings/v"] {
        let found = tool.get(path);
        assert!(found.as_array().unwrap().contains(&bindings[0]), "{path}: {found}");
    }
}

fn all_is_taken_away(tool: &Tool<'_>) {
    tool.check(&[
        ("GET", "/bindings/v/e/e/q/q/a.%2523", NONE, 200),
        ("DELETE", "/bindings/v/e/e/q/q/a.%2523", NONE, 204),
        ("DELETE", "/bindings/v/e/e/q/q/a.%2523", NONE, 404),
        ("DELETE", "/topic-permissions/v/ada", NONE, 204),
        ("GET", "/topic-permissions/v/ada", NONE, 404),
        ("DELETE", "/vhost-limits/v/max-queues", NONE, 204),
        ("DELETE", "/exchanges/v/e?if-unused=true", NONE, 204),
        ("DELETE", "/exchanges/v/e", NONE, 404),
        ("DELETE", "/queues/v/q?if-empty=true", NONE, 204),
        ("GET", "/queues/v/q", NONE, 404),
        ("DELETE", "/permissions/v/ada", NONE, 204),
        ("DELETE", "/users/ada", NONE, 204),
        ("DELETE", "/vhosts/v", NONE, 204),
        ("GET", "/vhosts/v", NONE, 404),
    ]);
}

#[test]
fn messages_are_published_and_taken() {
    let running = Running::start();
    let tool = administrator(&running);
    tool.check(&[("PUT", "/queues/%2F/q", json!({}), 201)]);
    let publish = |exchange: &str, key: &str, payload: &str, encoding: &str| {
        let properties = json!({ "delivery_mode": 2, "headers": { "n": 1 } });
        let body = json!({ "properties": properties, "routing_key": key, "payload": payload,
            "payload_encoding": encoding });
        tool.ask("POST", &format!("/exchanges/%2F/{exchange}/publish"), &body)
    };
    assert_eq!(publish("amq.default", "q", "one", "string"), (200, json!({ "routed": true })));
    assert_eq!(publish("amq.default", "q", "/w==", "base64"), (200, json!({ "routed": true })));
    assert_eq!(publish("amq.default", "none", "x", "string"), (200, json!({ "routed": false })));
    let (status, answer) = publish("none", "q", "x", "string");
    assert_eq!(status, 404, "{answer}");
    assert!(answer["reason"].as_str().unwrap().contains("no exchange 'none'"), "{answer}");
    let get = |mode: &str, count: u32| {
        let body = json!({ "count": count, "ackmode": mode, "encoding": "auto" });
        let (status, answer) = tool.ask("POST", "/queues/%2F/q/get", &body);
        assert_eq!(status, 200, "{answer}");
        answer
    };
    let seen = get("ack_requeue_true", 5);
    assert_eq!(seen.as_array().unwrap().len(), 2);
    assert_eq!(seen[0]["payload"], "one");
    assert_eq!(seen[0]["properties"]["headers"], json!({ "n": 1 }));
    assert_eq!((&seen[0]["message_count"], &seen[0]["redelivered"]), (&json!(1), &json!(false)));
    assert_eq!(
        (&seen[1]["payload"], &seen[1]["payload_encoding"]),
        (&json!("/w=="), &json!("base64"))
    );
    assert_eq!(tool.get("/queues/%2F/q")["messages"], 2);
    assert_eq!(get("ack_requeue_false", 1)[0]["redelivered"], true);
    assert_eq!(get("reject_requeue_false", 1)[0]["payload_encoding"], "base64");
    assert_eq!(get("ack_requeue_false", 1), json!([]));
    publish("amq.default", "q", "last", "string");
    tool.check(&[
        ("DELETE", "/queues/%2F/q/contents", NONE, 204),
        ("POST", "/queues/%2F/q/get", json!({ "count": 0, "encoding": "auto" }), 400),
        ("POST", "/queues/%2F/none/get", json!({ "count": 1, "encoding": "auto" }), 404),
    ]);
    assert_eq!(tool.get("/queues/%2F/q")["messages"], 0);
    // All of these came and went as clients; others find as much room as before.
    for _ in 0..3 {
        running.client();
    }
}

/// The fields without which rabbitmqadmin, KEDA or Terraform's provider refuse an answer.
const FIELDS: [(&str, &str); 12] = [
    (
        "/overview",
        "cluster_name node erlang_version erlang_full_version rabbitmq_version product_name \
             product_version management_version statistics_db_event_queue exchange_types contexts \
             churn_rates.connection_created churn_rates.queue_declared churn_rates.channel_closed \
             queue_totals.messages queue_totals.messages_details.rate object_totals.consumers \
             message_stats.publish_details.rate listeners",
    ),
    (
        "/nodes",
        "name uptime run_queue processors os_pid fd_total proc_total mem_limit mem_alarm \
             disk_free_limit disk_free_alarm rates_mode enabled_plugins being_drained running type",
    ),
    (
        "/queues",
        "name vhost type durable auto_delete exclusive arguments node state messages \
             messages_ready messages_unacknowledged messages_details.rate consumers message_bytes \
             message_stats.publish message_stats.publish_details.rate message_stats.deliver_get \
             message_stats.ack effective_policy_definition",
    ),
    ("/queues/detailed", "name vhost type messages"),
    ("/exchanges/%2F", "name vhost type durable auto_delete internal arguments"),
    ("/bindings", "source vhost destination destination_type routing_key arguments properties_key"),
    (
        "/connections",
        "name node protocol user vhost connected_at channels client_properties.product state \
             peer_host peer_port",
    ),
    (
        "/channels",
        "number name connection_details.name connection_details.peer_port vhost state \
             consumer_count confirm prefetch_count messages_unacknowledged messages_unconfirmed user",
    ),
    (
        "/consumers",
        "consumer_tag active ack_required prefetch_count exclusive arguments consumer_timeout \
             queue.name queue.vhost channel_details.number channel_details.connection_name \
             channel_details.peer_port channel_details.user channel_details.node",
    ),
    ("/vhosts", "name tags description default_queue_type metadata.tags messages"),
    ("/users", "name tags password_hash hashing_algorithm limits"),
    ("/permissions", "user vhost configure write read"),
];

#[test]
fn answers_have_the_fields_that_tools_need() {
    let running = Running::start();
    let tool = administrator(&running);
    let mut client = running.client();
    client.declare("q").unwrap();
    client.put(&angarium_protocol::amqp091::codec::Method::BasicConsume {
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
    for (path, fields) in FIELDS {
        let answer = tool.get(path);
        let row = answer.get(0).unwrap_or(&answer);
        for field in fields.split_whitespace() {
            let value = field.split('.').try_fold(row, |value, name| value.get(name));
            assert!(value.is_some(), "{path} has no {field}: {row}");
        }
    }
    assert_eq!(tool.get("/whoami"), json!({ "name": "guest", "tags": ["administrator"] }));
    assert_eq!(tool.get("/consumers/%2F")[0]["consumer_tag"], "tag");
    assert_eq!(tool.get("/overview")["object_totals"]["queues"], 1);
    for path in [
        "/vhost-limits",
        "/user-limits",
        "/policies",
        "/policies/%2F",
        "/operator-policies",
        "/parameters",
        "/global-parameters",
        "/feature-flags",
        "/deprecated-features",
        "/topic-permissions",
    ] {
        assert_eq!(tool.get(path), json!([]), "{path}");
    }
}

#[test]
fn health_is_200_or_503_with_the_reason() {
    let running = Running::start();
    let tool = administrator(&running);
    for check in [
        "alarms",
        "local-alarms",
        "virtual-hosts",
        "node-is-quorum-critical",
        "protocol-listener/amqp",
        "certificate-expiration/1/months",
    ] {
        assert_eq!(tool.get(&format!("/health/checks/{check}"))["status"], "ok", "{check}");
    }
    assert_eq!(tool.get("/aliveness-test/%2F"), json!({ "status": "ok" }));
    tool.check(&[("GET", "/aliveness-test/none", NONE, 404)]);
    let (status, answer) = tool.ask("GET", "/health/checks/port-listener/1", &NONE);
    assert_eq!((status, &answer["missing"]), (503, &json!(1)), "{answer}");
    let (status, answer) = tool.ask("GET", "/health/checks/protocol-listener/amqps", &NONE);
    assert_eq!((status, &answer["missing"]), (503, &json!(["amqps"])), "{answer}");
}

#[test]
fn long_lists_come_in_pages() {
    let running = Running::start();
    let tool = administrator(&running);
    for index in 0..5 {
        tool.check(&[("PUT", &format!("/queues/%2F/q{index}"), json!({}), 201)]);
    }
    // As KEDA asks for queues by a pattern.
    let page = tool.get(
        "/queues/%2F?page=1&use_regex=true&pagination=false&name=%5Eq%5B0-2%5D%24&page_size=2\
         &sort=name&sort_reverse=true&columns=name",
    );
    assert_eq!(page["items"], json!([{ "name": "q2" }, { "name": "q1" }]));
    assert_eq!((&page["filtered_count"], &page["total_count"]), (&json!(3), &json!(5)));
    tool.check(&[
        ("GET", "/queues?page=9", NONE, 400),
        ("GET", "/queues?page=1&page_size=501", NONE, 400),
        ("GET", "/queues?page=1&name=(&use_regex=true", NONE, 400),
    ]);
}

#[test]
fn who_is_no_administrator_sees_what_its_tag_says() {
    let running = Running::start_with(&[("metrics-users", "watcher")]);
    let tool = administrator(&running);
    tool.check(&[
        ("PUT", "/users/watcher", json!({ "password": "x", "tags": "monitoring" }), 201),
        ("PUT", "/users/ada", json!({ "password": "x", "tags": "monitoring" }), 400),
        ("PUT", "/users/ada", json!({ "password": "x", "tags": "" }), 201),
    ]);
    let watcher = Tool { running: &running, login: login("watcher", "x") };
    assert_eq!(watcher.get("/whoami")["tags"], json!(["monitoring"]));
    watcher.check(&[
        ("GET", "/queues", NONE, 200),
        ("GET", "/users", NONE, 401),
        ("GET", "/definitions", NONE, 401),
        ("PUT", "/queues/%2F/q", json!({}), 401),
    ]);
    let nobody = Tool { running: &running, login: login("ada", "x") };
    nobody.check(&[("GET", "/whoami", NONE, 401), ("GET", "/queues", NONE, 401)]);
    let unknown = Tool { running: &running, login: String::new() };
    unknown.check(&[("GET", "/overview", NONE, 401)]);
    let head = format!("GET /api/overview HTTP/1.1\r\nHost: {}", running.http);
    let asks = "www-authenticate: basic realm=\"rabbitmq management\"";
    assert!(answer(&running, &head, b"").to_lowercase().contains(asks));
}

#[test]
fn what_is_not_offered_is_refused_with_the_reason() {
    let running = Running::start();
    let tool = administrator(&running);
    tool.check(&[
        ("PUT", "/parameters/shovel/%2F/s", json!({ "value": {} }), 501),
        ("PUT", "/vhosts/traced", json!({ "tracing": true }), 501),
        ("GET", "/policies/%2F/p", NONE, 404),
        ("GET", "/nothing", NONE, 404),
        ("PATCH", "/queues", NONE, 405),
        ("PUT", "/queues/%2F/q", json!("text"), 400),
    ]);
}

#[test]
fn connections_are_closed_by_name_and_by_user() {
    let running = Running::start();
    let tool = administrator(&running);
    for by_user in [false, true] {
        let mut client = running.client();
        assert_eq!(tool.get("/connections").as_array().unwrap().len(), 1);
        let name = tool.get("/connections")[0]["name"].as_str().unwrap().to_owned();
        let escaped = super::http_client::escaped(&name);
        let path = if by_user {
            "/connections/username/guest".to_owned()
        } else {
            format!("/connections/{escaped}")
        };
        assert_eq!(tool.get(&format!("/connections/{escaped}/channels"))[0]["number"], 1);
        tool.check(&[("DELETE", &path, NONE, 204)]);
        let error = client.expect("channel.open-ok").unwrap_err();
        assert!(error.contains("closed by an operator"), "{error}");
        drop(client);
        // It goes once its end is seen.
        while tool.get("/connections") != json!([]) {}
        tool.check(&[("GET", &format!("/connections/{escaped}"), NONE, 404)]);
    }
}

/// As RabbitMQ 3.8 exports them; the hash is that of `test12`, from RabbitMQ's documentation.
fn file() -> Value {
    json!({
        "rabbit_version": "3.8.9", "product_name": "RabbitMQ",
        "users": [
            { "name": "ada", "password_hash": "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR",
              "hashing_algorithm": "rabbit_password_hashing_sha256", "tags": "administrator,policymaker" },
            { "name": "old", "password_hash": "x", "hashing_algorithm": "rabbit_password_hashing_md5",
              "tags": "" },
        ],
        "vhosts": [{ "name": "/" }, { "name": "v" }],
        "permissions": [{ "user": "ada", "vhost": "v", "configure": ".*", "write": ".*", "read": ".*" }],
        "topic_permissions": [],
        "parameters": [{ "component": "vhost-limits", "vhost": "v", "name": "limits",
                         "value": { "max-queues": 5 } }],
        "global_parameters": [{ "name": "cluster_name", "value": "rabbit@x" }],
        "policies": [{ "vhost": "v", "name": "ha", "pattern": ".*", "apply-to": "all",
                       "definition": { "ha-mode": "all" }, "priority": 0 }],
        "queues": [{ "name": "q", "vhost": "v", "durable": true, "auto_delete": false,
                     "arguments": { "x-queue-type": "quorum", "x-max-length": 7 } }],
        "exchanges": [{ "name": "e", "vhost": "v", "type": "headers", "durable": true,
                        "auto_delete": false, "internal": false, "arguments": {} }],
        "bindings": [{ "source": "e", "vhost": "v", "destination": "q", "destination_type": "queue",
                       "routing_key": "", "arguments": { "x-match": "all", "k": "1" } }],
    })
}

#[test]
fn definitions_go_in_and_out_whole() {
    let running = Running::start();
    let tool = administrator(&running);
    let import = |query: &str, file: &Value| {
        let (status, report) = tool.ask("POST", &format!("/definitions{query}"), file);
        assert_eq!(status, 200, "{report}");
        report
    };
    let left = |report: &Value| -> Vec<String> {
        let rows = report["left"].as_array().unwrap().iter();
        rows.map(|row| {
            format!("{} {}", row["kind"].as_str().unwrap(), row["name"].as_str().unwrap())
        })
        .collect()
    };
    let expected = ["user ada", "user old", "global parameter cluster_name", "policy ha"];
    assert_eq!(left(&import("?check=true", &file())), expected);
    assert_eq!(tool.get("/queues"), json!([]), "a check changes nothing");
    for _ in 0..2 {
        let report = import("", &file());
        assert_eq!(left(&report), expected);
        let taken = json!({ "vhost": 2, "user": 1, "permission": 1, "vhost limit": 1, "exchange": 1,
            "queue": 1, "binding": 1 });
        assert_eq!(report["taken"], taken);
    }
    let ada = Tool { running: &running, login: login("ada", "test12") };
    assert_eq!(ada.get("/whoami")["tags"], json!(["administrator"]));
    let wrong = Tool { running: &running, login: login("ada", "test13") };
    wrong.check(&[("GET", "/whoami", NONE, 401)]);

    let exported = tool.get("/definitions");
    for kind in ["queues", "exchanges", "bindings"] {
        let (own, given) = (&exported[kind][0], &file()[kind][0]);
        for (name, value) in given.as_object().unwrap() {
            assert_eq!(&own[name], value, "{kind} {name}");
        }
    }
    let users = exported["users"].as_array().unwrap();
    assert_eq!(users[0]["password_hash"], file()["users"][0]["password_hash"]);
    tool.check(&[("DELETE", "/vhosts/v", NONE, 204), ("DELETE", "/users/ada", NONE, 204)]);
    assert_eq!(left(&import("", &exported)), Vec::<String>::new());
    assert_eq!(tool.get("/definitions"), exported);
    // Those of one virtual host name none, and go into another.
    let of_v = tool.get("/definitions/v");
    assert!(of_v["queues"][0].get("vhost").is_none() && of_v.get("users").is_none(), "{of_v}");
    assert_eq!(left(&import("/%2F", &of_v)), Vec::<String>::new());
    assert_eq!(tool.get("/queues/%2F/q")["type"], "quorum");
    tool.check(&[
        ("POST", "/definitions/none", of_v, 404),
        ("POST", "/definitions", json!("text"), 400),
    ]);
}
