//! What passes of those whose bytes are bounded, however they are cut and connected.

use super::host::{Host, message};
use angarium_engine::{Bound, Quota, Request};

/// A host whose user may send 10 000 bytes in a second, and a client of it that has declared `q`.
fn bounded() -> (Host, usize) {
    let mut host = Host::new(1);
    let client = host.client();
    host.declare(client, "q");
    let quota = Quota::default().with(Bound::Bytes, 10_000);
    host.operate("/", Request::SetQuota { user: "user".to_owned(), quota }).unwrap();
    (host, client)
}

#[test]
fn further_connections_of_a_user_in_debt_pay_for_each_part_of_a_message() {
    let (mut host, first) = bounded();
    host.publish(first, "q", &[1; 100_000], false);
    host.settle_down();
    assert!(!host.wants_read(first));
    for _ in 0..5 {
        let further = host.client();
        host.publish(further, "q", &[2; 200_000], false);
        host.settle_down();
        assert!(!host.wants_read(further));
    }
    let watch = host.client();
    assert!(host.count(watch, "q") <= 1);
}

#[test]
fn who_sends_in_small_pieces_pays_for_them() {
    let (mut host, client) = bounded();
    for piece in message("q", &[1; 500_000], false).chunks(120) {
        host.send_bytes(client, piece);
    }
    host.settle_down();
    assert!(!host.wants_read(client));
    let watch = host.client();
    assert_eq!(host.count(watch, "q"), 0);
}
