//! Messages with large bodies: they are whole wherever they have been.

use super::host::{Host, Said, message};
use angarium_protocol::amqp091::codec::{Method, content};

const SIZES: [usize; 5] = [65_535, 65_536, 131_064, 131_065, 1 << 20];

fn body(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at % 251) as u8).collect()
}

/// The bodies that a client was delivered.
fn delivered(host: &mut Host, client: usize) -> Vec<Vec<u8>> {
    let bodies = host.heard(client).into_iter().filter_map(|said| match said {
        Said::Delivered(body, _) => Some(body),
        _ => None,
    });
    bodies.collect()
}

#[track_caller]
fn check(bodies: &[Vec<u8>]) {
    let whole = SIZES.map(body);
    let sizes: Vec<usize> = bodies.iter().map(Vec::len).collect();
    assert!(bodies == whole, "{sizes:?}");
}

/// Publishes from one shard what is consumed on another, at once, from memory or the disk, and after a crash.
fn check_queue(publisher: usize, consumer: usize, shards: usize, persistent: bool) {
    let mut host = Host::new(shards);
    let (from, to) = (host.client_on(publisher), host.client_on(consumer));
    host.declare(from, "waited");
    host.declare(from, "kept");
    host.consume(to, "waited", 0);
    host.confirm_select(from);
    for (number, bytes) in (1..).zip(SIZES) {
        host.publish(from, "waited", &body(bytes), persistent);
        host.publish(from, "kept", &body(bytes), persistent);
        host.settle_down();
        let confirms = host.heard(from);
        assert!(confirms.contains(&Said::Confirm(2 * number, true)), "{confirms:?}");
    }
    check(&delivered(&mut host, to));
    if persistent {
        host.crash();
        host.settle_down();
    }
    let to = host.client_on(consumer);
    host.get(to, "kept", SIZES.len());
    check(&delivered(&mut host, to));
}

#[test]
fn they_come_whole_from_any_shard_to_any() {
    for (publisher, consumer, shards) in [(0, 0, 1), (1, 0, 2), (0, 1, 2), (2, 1, 3)] {
        for persistent in [false, true] {
            check_queue(publisher, consumer, shards, persistent);
        }
    }
}

#[test]
fn they_come_back_whole_where_no_queue_takes_them() {
    for shards in [1, 2] {
        let mut host = Host::new(shards);
        let client = host.client();
        for bytes in SIZES {
            let bytes = message("nowhere", &body(bytes), false);
            // The same with the flag `mandatory`.
            let (method, mut mandatory) = (frame_bytes(&bytes), Vec::new());
            let publish = content::PublishMethod {
                exchange: "",
                routing_key: "nowhere",
                mandatory: true,
                immediate: false,
            };
            publish.write_frame(1, &mut mandatory);
            mandatory.extend_from_slice(&bytes[method..]);
            host.send_bytes(client, &mandatory);
            host.settle_down();
        }
        check(&delivered(&mut host, client));
    }
}

#[test]
fn transactions_hold_them() {
    for shards in [1, 2] {
        let mut host = Host::new(shards);
        let client = host.client();
        host.declare(client, "q");
        host.send(client, 1, &Method::TxSelect {});
        for bytes in SIZES {
            host.publish(client, "q", &body(bytes), true);
        }
        host.settle_down();
        assert_eq!(host.count(client, "q"), 0);
        host.send(client, 1, &Method::TxCommit {});
        host.settle_down();
        host.heard(client);
        host.get(client, "q", SIZES.len());
        check(&delivered(&mut host, client));
    }
}

/// How many bytes the first frame takes.
fn frame_bytes(frames: &[u8]) -> usize {
    let frame = angarium_protocol::amqp091::frame::read(frames, 0).unwrap();
    frame.expect("a whole frame").1
}
