//! Times to live of messages in transactions: from when they count, and what becomes of those that are over.

use super::{TestHost, check, check_in};

#[test]
fn a_time_to_live_counts_from_the_send_and_that_of_a_queue_from_the_commit() {
    check(
        "a queue q durable dlx=- dlk=dead
         > a queue q 0 0
         a queue dead durable
         > a queue dead 0 0
         a queue own durable ttl=100
         > a queue own 0 0
         a begin
         > a transaction 1
         a publish - q short persistent ttl=50 in=1
         a publish - q long persistent ttl=100 in=1
         a publish - own late ttl=500 in=1
         time 60
         a end-transaction 1 commit
         flush
         > a ok
         b passive dead
         > b queue dead 1 0
         b get dead
         > b deliver  #1 short died=Expired:q:1
         > b got, 0 left
         time 39
         b passive q
         > b queue q 1 0
         time 1
         b passive q
         > b queue q 0 0
         b passive own
         > b queue own 1 0
         time 60
         b passive own
         > b queue own 0 0",
    );
}

#[test]
fn no_consumer_gets_what_has_expired_before_its_commit() {
    for (queue, consumer) in [("", ""), ("groups", ""), ("", "filter=colour_=_'red'")] {
        let mut host = TestHost::new();
        let before = format!(
            "a queue q {queue} dlx=- dlk=dead
             > a queue q 0 0
             a queue dead
             > a queue dead 0 0
             b consume q c presettled {consumer}
             > b consuming c
             a transactions
             > a ok
             a publish - q at-once ttl=0 props=colour:red
             a publish - q gone ttl=10 props=colour:red
             a publish - q here ttl=11 props=colour:red
             time 10"
        );
        host = check_in(host, &before);
        let mut deliveries = host.run("a commit");
        deliveries.retain(|line| line.starts_with('b'));
        assert_eq!(
            deliveries,
            ["b deliver c #1 at-once", "b deliver c #2 here"],
            "{queue} {consumer}"
        );
        assert_eq!(host.run("a passive q"), ["a queue q 0 1"]);
        assert_eq!(host.run("a passive dead"), ["a queue dead 1 0"]);
    }
}
