//! Every message that is gone for good is counted with its reason, and a poison message does not go round for
//! ever in a quorum queue.

use super::TestHost;
use crate::DiscardReason;

/// Plays lines; how many messages were discarded for which reasons, in all and of queue `q`.
#[track_caller]
fn check(lines: &str, expected: &[(DiscardReason, u64)]) {
    let mut host = TestHost::new();
    for line in lines.lines().map(str::trim) {
        host.run(line);
    }
    let all: Vec<_> = host.engine.counters().discarded.iter().collect();
    assert_eq!(all, expected, "{lines}");
    if let Some(queue) = host.engine.list_queues().find(|queue| queue.name == "q") {
        assert_eq!(queue.discarded.iter().collect::<Vec<_>>(), expected, "{lines}");
    }
}

#[test]
fn what_is_gone_for_good_is_counted_with_its_reason() {
    use DiscardReason::*;
    check("a queue q ttl=10\n a publish - q 1\n a publish - q 2\n time 10", &[(Expired, 2)]);
    check("a queue q length=1\n a publish - q 1\n a publish - q 2", &[(MaxLength, 1)]);
    check(
        "a queue q length=1 overflow=reject\n a publish - q 1\n a publish - q 2",
        &[(QueueFull, 1)],
    );
    check("a queue q\n a publish - q 1\n a get q\n a discard 1", &[(Rejected, 1)]);
    check("a queue q limit=0\n a publish - q 1\n a get q\n a requeue 1", &[(DeliveryLimit, 1)]);
    check("a queue q\n a publish - q 1\n a publish - q 2\n a purge q", &[(Purged, 2)]);
    check("a queue q\n a publish - q 1\n a delete q", &[(QueueDeleted, 1)]);
    for (settle, expected) in
        [("discard", &[(QueueDeleted, 1)][..]), ("requeue", &[(QueueDeleted, 1)]), ("accept", &[])]
    {
        let lines = "a queue q\n a publish - q 1\n b get q\n a delete q";
        check(&format!("{lines}\n b {settle} 1"), expected);
    }
    check("a queue q\n a publish - q 1\n b get q\n a delete q\n b close", &[(QueueDeleted, 1)]);
    check("a queue q expires=10\n a publish - q 1\n time 10", &[(QueueDeleted, 1)]);
    check("a queue q ttl=10 dlx=nosuch\n a publish - q 1\n time 10", &[(DeadLetterNotTaken, 1)]);
    check("a queue q ttl=10 dlx=-\n a publish - q 1\n time 10", &[(DeadLetterCycle, 1)]);
    check(
        "a queue r length=0 overflow=reject\n a queue q ttl=10 dlx=- dlk=none\n a publish - q 1\n time 10",
        &[(DeadLetterNotTaken, 1)],
    );
    check("a queue r\n a queue q ttl=10 dlx=- dlk=r\n a publish - q 1\n time 10", &[]);
    check("a queue q\n a publish - q 1\n a get q\n a accept 1", &[]);
}

/// How often a message is delivered that goes back each time, up to 50 times.
fn deliveries(options: &str) -> usize {
    let mut host = TestHost::new();
    host.run(&format!("a queue q {options}"));
    host.run("a publish - q x");
    host.run("a consume q c");
    let mut count = 0;
    while count < 50 && host.fx.delivered.len() > count {
        count += 1;
        host.run(&format!("a requeue {count}"));
    }
    count
}

#[test]
fn a_poison_message_leaves_a_quorum_queue_after_twenty_returns() {
    assert_eq!(deliveries("quorum"), 21);
    assert_eq!(deliveries(""), 50);
    assert_eq!(deliveries("quorum limit=3"), 4);
    assert_eq!(deliveries("limit=3"), 4);
    assert_eq!(deliveries(&format!("quorum limit={}", u32::MAX)), 50);
}
