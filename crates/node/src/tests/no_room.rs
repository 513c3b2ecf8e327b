//! What clients and operators hear where the disk has no room for any record.

use super::host::{Host, Said};
use super::queue;
use angarium_engine::RefusalKind;

#[test]
fn what_is_to_survive_is_refused_where_nothing_can_be_written() {
    for shards in [1, 3] {
        refuses_what_is_to_survive(Host::new(shards));
    }
}

fn refuses_what_is_to_survive(mut host: Host) {
    let client = host.client();
    host.disk.set_capacity(Some(host.disk.used()));
    let long = "n".repeat(200);
    let refused = (0..2_000)
        .find_map(|number| host.operate("/", queue(&format!("{number}-{long}"), true)).err());
    assert_eq!(refused, Some(RefusalKind::InDoubt), "it waits for room");
    let unavailable = Err(RefusalKind::StorageUnavailable);
    assert_eq!(host.operate("/", queue("later", true)), unavailable);
    host.operate("/", queue("transient", false)).unwrap();
    host.heard(client);
    host.declare(client, "q");
    host.settle_down();
    assert!(host.heard(client).contains(&Said::Closed(506)), "a clear answer");
    host.disk.set_capacity(None);
    host.pass(3_000);
    host.operate("/", queue("later", true)).unwrap();
}
