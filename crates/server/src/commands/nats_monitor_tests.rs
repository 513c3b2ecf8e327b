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
        for (path, expected) in [("/varz", varz), ("/connz", connz), ("/subsz", connz)] {
            let answer = ask(&running, path, "localhost", "");
            assert_eq!(status(&answer), expected, "{access} {path}: {answer}");
        }
        for (path, expected) in [("/varz", 421), ("/healthz", 200), ("/nothing", 421)] {
            let answer = ask(&running, path, "evil.example", "");
            assert_eq!(status(&answer), expected, "{access} {path}: {answer}");
        }
        let healthy = ask(&running, "/healthz?js-enabled-only=true", "localhost", "");
        assert!(healthy.ends_with("{\"status\":\"ok\"}"), "{healthy}");
    }
}
