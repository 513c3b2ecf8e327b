//! What a broker refuses whose journal has failed, and clients that do not log in in time.

use super::{Running, publish};
use angarium_journal::FaultyStorage;
use serde_json::{Value, json};
use std::io::Read;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[test]
fn a_client_that_does_not_log_in_in_time_is_reset_after_it_was_told() {
    let running = Running::start_with(&[("nats-login-timeout", "50ms")]);
    let mut client = TcpStream::connect(&running.nats).unwrap();
    let mut said = String::new();
    client.read_to_string(&mut said).unwrap();
    assert!(said.ends_with("-ERR 'Authentication Timeout'\r\n"), "{said}");
    // It would learn nothing more of a socket that is closed in order.
    let until = Instant::now() + Duration::from_secs(10);
    let error = loop {
        if let Some(error) = client.take_error().unwrap() {
            break error;
        }
        assert!(Instant::now() < until, "it is not reset");
        std::thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
}

#[test]
fn what_the_journal_cannot_keep_is_refused() {
    let storage = Arc::new(FaultyStorage::new(1));
    let running = Running::start_on(storage.clone(), tempfile::tempdir().unwrap());
    let broker = running.broker("guest");
    let put = |path: &str, body: Value| broker.ask("PUT", path, Some(&body));
    put("/v1/queues/%2F/kept", json!({})).unwrap();
    storage.fail_sync(true);
    let error = put("/v1/queues/%2F/q", json!({})).unwrap_err();
    let failed = "the journal has failed: what is to survive a restart cannot be changed";
    // A segment that was being made ready may have failed before it.
    let unknown = "the journal failed: whether that is stored is unknown";
    assert!([unknown, failed].contains(&error.as_str()), "{error}");
    storage.fail_sync(false);
    let error = publish(&running, "kept x").unwrap_err();
    assert!(error.starts_with("1 refused: the disk failed: "), "{error}");
    let error = put("/v1/users/ada", json!({ "password": null })).unwrap_err();
    assert_eq!(error, failed);
    put("/v1/queues/%2F/transient", json!({ "durable": false })).unwrap();
}

#[test]
fn a_publish_whose_own_flush_fails_is_refused_with_the_reason() {
    let storage = Arc::new(FaultyStorage::new(1));
    let running = Running::start_on(storage.clone(), tempfile::tempdir().unwrap());
    publish(&running, "kept --declare x").unwrap();
    storage.fail_sync(true);
    let error = publish(&running, "kept x").unwrap_err();
    assert!(error.starts_with("1 refused: the disk failed: "), "{error}");
}
