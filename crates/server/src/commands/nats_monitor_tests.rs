//! What NATS's monitoring port answers: over its socket, against a broker in this process.

use super::http_tests::{login, status};
use super::tests::Running;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;

fn ask(running: &Running, path: &str, host: &str, fields: &str) -> String {
    let mut stream = TcpStream::connect(&running.nats_monitoring).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: {host}{fields}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// The JSON that an administrator gets.
fn seen(running: &Running, path: &str) -> Value {
    let answer = ask(running, path, "localhost", &login("guest", "guest"));
    assert_eq!(status(&answer), 200, "{path}: {answer}");
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

/// A client that has sent these lines and got PONG.
fn client(running: &Running, lines: &str) -> TcpStream {
    let mut stream = TcpStream::connect(&running.nats).unwrap();
    let hello =
        "CONNECT {\"verbose\":false,\"name\":\"n\",\"lang\":\"rust\",\"version\":\"1\"}\r\n";
    stream.write_all(format!("{hello}{lines}PING\r\n").as_bytes()).unwrap();
    let (mut read, mut block) = (Vec::new(), [0; 4_096]);
    while !read.ends_with(b"PONG\r\n") {
        let count = stream.read(&mut block).unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&read));
        read.extend_from_slice(&block[..count]);
    }
    stream
}

#[test]
fn totals_and_connections_are_shown_in_nats_servers_words() {
    let running = Running::start();
    let first = "SUB a.> 1\r\nSUB b g 2\r\nPUB a.x 2\r\nhi\r\n";
    let _clients = [client(&running, first), client(&running, "SUB c 9\r\n")];
    let varz = seen(&running, "/varz");
    for (name, expected) in [
        ("connections", json!(2)),
        ("total_connections", json!(2)),
        ("subscriptions", json!(3)),
        ("in_msgs", json!(1)),
        ("out_msgs", json!(1)),
        ("slow_consumers", json!(0)),
        ("max_payload", json!(1 << 20)),
        ("ping_interval", json!(120_000_000_000u64)),
        ("ping_max", json!(2)),
        ("http_req_stats", json!({})),
    ] {
        assert_eq!(varz[name], expected, "{name}: {varz}");
    }
    assert_eq!(seen(&running, "/varz")["http_req_stats"], json!({ "/varz": 1 }));
    let connz = seen(&running, "/connz?subs=1&auth=true&sort=subs");
    assert_eq!((&connz["num_connections"], &connz["total"]), (&json!(2), &json!(2)), "{connz}");
    let row = &connz["connections"][0];
    for (name, expected) in [
        ("kind", json!("Client")),
        ("type", json!("nats")),
        ("ip", json!("127.0.0.1")),
        ("name", json!("n")),
        ("lang", json!("rust")),
        ("version", json!("1")),
        ("in_msgs", json!(1)),
        ("subscriptions", json!(2)),
        ("authorized_user", json!("guest")),
        ("account", json!("/")),
    ] {
        assert_eq!(row[name], expected, "{name}: {row}");
    }
    assert_eq!(row["subscriptions_list"].as_array().map(Vec::len), Some(2), "{row}");
    assert!(row["last_activity"].is_string() && row["idle"].is_string(), "{row}");
}

#[test]
fn lists_come_a_page_at_a_time_and_may_be_narrowed() {
    let running = Running::start();
    let first = "SUB a.> 1\r\nSUB b g 2\r\nUNSUB 2 7\r\n";
    let _clients = [client(&running, first), client(&running, "SUB a.x 9\r\n")];
    let page = seen(&running, "/connz?limit=1&offset=1");
    assert_eq!((&page["num_connections"], &page["total"]), (&json!(1), &json!(2)), "{page}");
    assert_eq!((&page["limit"], &page["offset"]), (&json!(1), &json!(1)), "{page}");
    let number = page["connections"][0]["cid"].as_u64().unwrap();
    let one = seen(&running, &format!("/connz?cid={number}&subs=detail"));
    let detail = json!([{ "subject": "a.x", "sid": "9", "msgs": 0, "cid": number }]);
    assert_eq!(one["connections"][0]["subscriptions_list_detail"], detail, "{one}");
    for (path, expected) in [
        ("/connz?acc=none", 0),
        ("/connz?user=guest", 2),
        ("/connz?filter_subject=b", 1),
        ("/connz?state=closed", 0),
        ("/subsz?subs=1", 3),
        ("/subsz?subs=1&test=a.x", 2),
        ("/subsz?subs=1&acc=none", 0),
        ("/subscriptionsz?subs=1&offset=2", 3),
    ] {
        assert_eq!(seen(&running, path)["total"], json!(expected), "{path}");
    }
    assert_eq!(seen(&running, "/subsz")["num_subscriptions"], json!(3));
    let listed = seen(&running, "/subsz?subs=1&test=b");
    let row = &listed["subscriptions_list"][0];
    assert_eq!(
        (&row["qgroup"], &row["max"], &row["account"]),
        (&json!("g"), &json!(7), &json!("/"))
    );
    for path in ["/connz?sort=x", "/connz?limit=x", "/connz?subs=x", "/subsz?test=a.*&subs=1"] {
        let answer = ask(&running, path, "localhost", &login("guest", "guest"));
        assert_eq!(status(&answer), 400, "{path}: {answer}");
    }
    for path in ["/routez", "/leafz", "/gatewayz"] {
        assert!(seen(&running, path)["server_id"].is_string());
    }
}

#[test]
fn names_of_clients_are_shown_to_whom_the_setting_says() {
    for (access, varz, connz) in [("totals", 200, 401), ("open", 200, 200), ("users", 401, 401)] {
        let running = Running::start_with(&[("metrics-access", access)]);
        for (path, expected) in
            [("/varz", varz), ("/connz", connz), ("/subsz", connz), ("/accstatz", connz)]
        {
            let answer = ask(&running, path, "localhost", "");
            assert_eq!(status(&answer), expected, "{access} {path}: {answer}");
            // nats-top shows the first line of an error, and crashes where there is none.
            assert!(expected == 200 || answer.ends_with("}\n"), "{access} {path}: {answer}");
        }
        for (path, expected) in [("/varz", 421), ("/healthz", 200), ("/nothing", 421)] {
            let answer = ask(&running, path, "evil.example", "");
            assert_eq!(status(&answer), expected, "{access} {path}: {answer}");
        }
        let healthy = ask(&running, "/healthz?js-enabled-only=true", "localhost", "");
        assert!(healthy.ends_with("{\"status\":\"ok\"}"), "{healthy}");
    }
}

/// What nats-top and prometheus-nats-exporter read: each field as JSON pointer, and whether it is a number,
/// a text, a list or an object. The exporter ends where one of them is of another kind.
const READ: [(&str, &str); 6] = [
    (
        "/varz",
        "server_id: text, server_name: text, version: text, now: text, start: text, uptime: text, \
         cpu: number, mem: number, cores: number, connections: number, total_connections: number, \
         subscriptions: number, \
         in_msgs: number, out_msgs: number, in_bytes: number, out_bytes: number, slow_consumers: number, \
         slow_consumer_stats: object, routes: number, leafnodes: number, max_connections: number, \
         max_payload: number, http_req_stats: object, jetstream: object",
    ),
    (
        "/connz?auth=true&subs=1",
        "num_connections: number, total: number, offset: number, limit: number, connections: list, \
         connections/0/cid: number, connections/0/kind: text, connections/0/type: text, \
         connections/0/ip: text, connections/0/port: number, connections/0/start: text, \
         connections/0/last_activity: text, connections/0/uptime: text, connections/0/idle: text, \
         connections/0/pending_bytes: number, connections/0/in_msgs: number, connections/0/out_msgs: number, \
         connections/0/in_bytes: number, connections/0/out_bytes: number, \
         connections/0/subscriptions: number, connections/0/name: text, connections/0/account: text, \
         connections/0/lang: text, \
         connections/0/version: text, connections/0/subscriptions_list: list",
    ),
    (
        "/subsz",
        "num_subscriptions: number, num_cache: number, num_inserts: number, num_removes: number, \
         num_matches: number, cache_hit_rate: number, max_fanout: number, avg_fanout: number",
    ),
    (
        "/accstatz?unused=1",
        "account_statz/0/acc: text, account_statz/0/name: text, account_statz/0/conns: number, \
         account_statz/0/leafnodes: number, account_statz/0/total_conns: number, \
         account_statz/0/num_subscriptions: number, account_statz/0/slow_consumers: number, \
         account_statz/0/sent/msgs: number, account_statz/0/sent/bytes: number, \
         account_statz/0/received/msgs: number, account_statz/0/received/bytes: number",
    ),
    ("/routez", "num_routes: number, routes: list"),
    ("/leafz", "leafnodes: number, leafs: list"),
];

#[test]
fn tools_find_the_fields_that_they_read() {
    let running = Running::start();
    let _client = client(&running, "SUB a.> 1\r\n");
    for (path, fields) in READ {
        let answer = seen(&running, path);
        for field in fields.split(", ") {
            let (name, kind) = field.split_once(": ").unwrap();
            let found = match answer.pointer(&format!("/{name}")) {
                Some(Value::Number(_)) => "number",
                Some(Value::String(_)) => "text",
                Some(Value::Array(_)) => "list",
                Some(Value::Object(_)) => "object",
                _ => "nothing",
            };
            assert_eq!(found, kind, "{path} {name}: {answer}");
        }
    }
}

#[test]
fn virtual_hosts_are_accounts() {
    let running = Running::start();
    let _clients = [client(&running, "SUB a 1\r\nPUB a 2\r\nhi\r\n"), client(&running, "")];
    let account = &seen(&running, "/accstatz")["account_statz"][0];
    for (name, expected) in
        [("acc", json!("/")), ("conns", json!(2)), ("num_subscriptions", json!(1))]
    {
        assert_eq!(account[name], expected, "{name}: {account}");
    }
    assert_eq!(account["received"]["msgs"], json!(1), "{account}");
    assert_eq!(seen(&running, "/accountz")["accounts"], json!(["/"]));
    let detail = &seen(&running, "/accountz?acc=/")["account_detail"];
    assert_eq!(detail["client_connections"], json!(2), "{detail}");
    let unknown = ask(&running, "/accountz?acc=none", "localhost", &login("guest", "guest"));
    assert_eq!(status(&unknown), 404, "{unknown}");
}
