//! What the HTTP side answers, and to whom: over its sockets, against a broker in this process.

use super::http_client::Broker;
use super::tests::Running;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Sends a request as it is, and returns the whole answer.
pub(super) fn answer(running: &Running, head: &str, body: &[u8]) -> String {
    let mut stream = TcpStream::connect(&running.http).unwrap();
    stream.write_all(format!("{head}\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
    // What is refused may not be read to its end.
    let _ = stream.write_all(body);
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn get(running: &Running, path: &str, fields: &str) -> String {
    answer(running, &format!("GET {path} HTTP/1.1\r\nHost: {}{fields}", running.http), b"")
}

/// The field that logs a user in.
pub(super) fn login(user: &str, password: &str) -> String {
    let encoded = BASE64_STANDARD.encode(format!("{user}:{password}"));
    format!("\r\nAuthorization: Basic {encoded}")
}

pub(super) fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).unwrap_or_default().parse().unwrap_or_default()
}

#[test]
fn health_and_totals_are_open() {
    let running = Running::start();
    assert!(get(&running, "/health", "").starts_with("HTTP/1.1 200"));
    assert!(get(&running, "/ready", "").ends_with("ready\n"));
    running.client().declare("q\"uoted").unwrap();
    let metrics = get(&running, "/metrics", "");
    assert!(metrics.contains("angarium_connections_accepted_total 1\n"), "{metrics}");
    assert!(metrics.contains("angarium_journal_flush_seconds_count"));
    assert_eq!(status(&get(&running, "/v1/queues", "")), 401);
    assert_eq!(status(&get(&running, "/nothing", "")), 404);
}

#[test]
fn the_description_names_each_address_and_method_and_no_other() {
    let running = Running::start();
    let login = login("guest", "guest");
    let ask = |method: &str, path: &str| {
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {}{login}", running.http);
        answer(&running, &head, b"")
    };
    let text = ask("GET", "/v1/openapi.json");
    let document: Value = serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap();
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.len() > 20, "{text}");
    for (path, described) in paths {
        // No such thing is there: nothing changes.
        let named = path.replace('{', "no-").replace('}', "");
        for method in ["GET", "PUT", "POST", "DELETE", "PATCH"] {
            let answer = ask(method, &named);
            let is_there = status(&answer) != 405 && !answer.contains("no such address");
            let is_described = described.get(method.to_lowercase()).is_some();
            assert_eq!(is_there, is_described, "{method} {path}: {answer}");
        }
    }
    assert!(ask("GET", "/v1/nothing").contains("no such address"));
}

#[test]
fn names_of_queues_are_shown_to_whom_the_setting_says() {
    let names = "angarium_queue_messages_ready{vhost=\"/\",queue=\"q\\\"uoted\"} 0\n";
    // Which status, and whether names are shown: to anybody, to a user, to one of `metrics-users`, to an
    // administrator, and to who has a wrong password.
    for (access, expected) in [
        ("totals", [(200, false), (403, false), (200, true), (200, true), (401, false)]),
        ("open", [(200, true), (200, true), (200, true), (200, true), (200, true)]),
        ("users", [(401, false), (403, false), (200, true), (200, true), (401, false)]),
    ] {
        let running =
            Running::start_with(&[("metrics-access", access), ("metrics-users", "scraper,other")]);
        running.client().declare("q\"uoted").unwrap();
        for user in ["ada", "scraper"] {
            let body = json!({ "password": "secret" });
            running.broker("guest").ask("PUT", &format!("/v1/users/{user}"), Some(&body)).unwrap();
        }
        let callers = [
            String::new(),
            login("ada", "secret"),
            login("scraper", "secret"),
            login("guest", "guest"),
            login("guest", "wrong"),
        ];
        for (caller, (expected, shows_names)) in callers.iter().zip(expected) {
            let page = get(&running, "/metrics", caller);
            assert_eq!(status(&page), expected, "{access}: {caller} {page}");
            assert_eq!(page.contains(names), shows_names, "{access}: {caller} {page}");
        }
    }
}

#[test]
fn requests_for_another_name_and_of_other_sites_are_refused() {
    let running = Running::start_with(&[
        ("http-hosts", "mq.example.com"),
        ("http-origins", "https://mq.example.com"),
    ]);
    let port = running.http.rsplit(':').next().unwrap();
    let guest = login("guest", "guest");
    for (host, origin, expected) in [
        (format!("127.0.0.1:{port}"), "", 200),
        (format!("localhost:{port}"), "", 200),
        ("mq.example.com".to_owned(), "", 200),
        ("mq.example.com".to_owned(), "https://mq.example.com", 200),
        (format!("localhost:{port}"), "https://mq.example.com", 200),
        (format!("evil.example:{port}"), "", 421),
        ("evil.example".to_owned(), "http://evil.example", 421),
        (format!("localhost:{port}"), "http://evil.example", 403),
        (format!("localhost:{port}"), "null", 403),
        (format!("localhost:{port}"), "http://localhost:1", 403),
    ] {
        let origin = match origin {
            "" => String::new(),
            origin => format!("\r\nOrigin: {origin}"),
        };
        for (method, path) in
            [("GET", "/v1/users"), ("GET", "/metrics"), ("PUT", "/v1/queues/%2F/q")]
        {
            let body: &[u8] = if method == "PUT" { b"{}" } else { b"" };
            let length = format!("\r\nContent-Length: {}", body.len());
            let head = format!("{method} {path} HTTP/1.1\r\nHost: {host}{origin}{guest}{length}");
            assert_eq!(status(&answer(&running, &head, body)), expected, "{head}");
        }
        let health = format!("GET /health HTTP/1.1\r\nHost: {host}{origin}");
        assert_eq!(status(&answer(&running, &health, b"")), 200, "{health}");
    }
    assert_eq!(status(&answer(&running, "GET /v1/users HTTP/1.1", b"")), 400);
}

#[test]
fn bodies_that_are_too_large_are_refused_as_that() {
    let running = Running::start();
    let head = |path: &str, length: &str| {
        let (host, login) = (&running.http, login("guest", "guest"));
        format!("PUT {path} HTTP/1.1\r\nHost: {host}{login}\r\n{length}")
    };
    let large = vec![b' '; 200_000];
    for (path, length, body) in [
        ("/v1/queues/%2F/q", "Content-Length: 1000000000", &large[..]),
        ("/v1/queues/%2F/q", "Content-Length: 70000", &large[..70_000]),
        ("/health", "Content-Length: 1000000000", &large),
    ] {
        let text = answer(&running, &head(path, length), body);
        assert_eq!(status(&text), 413, "{text}");
        assert!(text.contains("too large: at most 65536"), "{text}");
    }
    let mut chunked = format!("{:x}\r\n", large.len()).into_bytes();
    chunked.extend(&large);
    chunked.extend(b"\r\n0\r\n\r\n");
    let text = answer(&running, &head("/v1/queues/%2F/q", "Transfer-Encoding: chunked"), &chunked);
    assert_eq!(status(&text), 413, "{text}");
}

#[test]
fn clients_that_stall_keep_nobody_out() {
    let running = Running::start();
    let begun = Instant::now();
    let mut stalled = Vec::new();
    // More than there is room for: they say nothing, half a head, half a body, or read nothing.
    for round in 0..40 {
        let mut stream = TcpStream::connect(&running.http).unwrap();
        let half: &[u8] = match round % 4 {
            0 => b"",
            1 => b"GET /health HTTP/1.1\r\nHost: ",
            2 => b"PUT /v1/queues/%2F/q HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{",
            _ => b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
        };
        stream.write_all(half).unwrap();
        stalled.push(stream);
        assert_eq!(status(&get(&running, "/health", "")), 200);
    }
    assert_eq!(status(&get(&running, "/ready", "")), 200);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[test]
fn an_operator_finds_room_whatever_others_do() {
    let running = Running::start();
    let others: Vec<TcpStream> =
        (0..300).map(|_| TcpStream::connect(&running.http).unwrap()).collect();
    let broker = Broker::Socket(running.folder.path().join("admin.sock"));
    assert!(broker.ask("GET", "/v1/queues", None).unwrap().is_array());
    drop(others);
}
