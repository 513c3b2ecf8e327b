//! Publishes that sessions take once, and places of deliveries that stay in use once those are settled.

use super::sessions::{check, check_restart, host_with};
use super::{TestHost, check_in};
use crate::interface::limits::Limits;

/// A session that publishes, and a queue that takes what it publishes.
const BEGIN: &str = "c claim s expiry=5000 recorded
    flush
    > c session s new expiry=5s
    c confirms
    > c ok
    a queue q durable
    > a queue q 0 0
    a bind amq.topic q #
    > a ok";

fn check_once(scenario: &str) -> TestHost {
    check(&format!("{BEGIN}\n{scenario}"))
}

#[test]
fn a_publish_is_taken_once() {
    check_once(
        "c publish amq.topic k one persistent once=7
         c publish amq.topic k one persistent once=7
         flush
         > c confirm 2 multiple
         // It is confirmed at once now.
         c publish amq.topic k one persistent once=7
         > c confirm 3
         c publish amq.topic k two persistent once=8
         c forget 7
         flush
         > c ok
         > c confirm 4
         c publish amq.topic k three persistent once=7
         flush
         > c confirm 5
         a consume q t presettled
         > a consuming t
         > a deliver t #1 one
         > a deliver t #2 two
         > a deliver t #3 three",
    );
}

#[test]
fn a_number_is_flushed_before_its_publish_is_confirmed() {
    // Also where no queue stores the message, and where none takes it.
    for key in ["k persistent", "k", "nowhere"] {
        let (key, how) = key.split_once(' ').unwrap_or((key, ""));
        let scenario = format!(
            "a queue m
             > a queue m 0 0
             a delete q
             > a messages 0
             a bind amq.topic m k
             > a ok
             c publish amq.topic {key} one {how} once=7
             flush
             > c confirm 1
             restart
             login c ann
             c claim s expiry=5000 recorded
             flush
             > c session s resumed expiry=5s
             c confirms
             > c ok
             c publish amq.topic {key} one {how} once=7
             > c confirm 1"
        );
        let host = check_once(&scenario);
        assert_eq!(host.engine.counters().session_duplicates, 1);
        assert_eq!(host.engine.list_queues().map(|queue| queue.ready).sum::<u64>(), 0);
    }
}

#[test]
fn a_message_and_its_number_survive_a_restart_or_both_do_not() {
    check_restart(
        &format!(
            "{BEGIN}
             c publish amq.topic k one persistent once=7
             flush
             > c confirm 1
             c publish amq.topic k two persistent once=8
             flush
             > c confirm 2
             c forget 8
             flush
             > c ok"
        ),
        "c claim s expiry=5000 recorded
         flush
         > c session s resumed expiry=5s
         c confirms
         > c ok
         c publish amq.topic k one persistent once=7
         > c confirm 1
         c publish amq.topic k three persistent once=8
         flush
         > c confirm 2
         a consume q t presettled
         > a consuming t
         > a deliver t #1 one redelivered
         > a deliver t #2 two redelivered
         > a deliver t #3 three",
    );
    // What was not flushed is lost as a whole.
    check_once(
        "c publish amq.topic k one persistent once=7
         restart lose=1
         login c ann
         c claim s expiry=5000 recorded
         flush
         > c session s resumed expiry=5s
         c publish amq.topic k one persistent once=7
         a consume q t presettled
         > a consuming t
         > a deliver t #1 one",
    );
}

#[test]
fn a_number_that_was_just_forgotten_is_free_once_that_is_flushed() {
    check_once(
        "c publish amq.topic k one persistent once=7
         flush
         > c confirm 1
         c forget 7
         // Asked again before the record is flushed, it waits for that, too.
         c forget 7
         flush
         > c ok
         > c ok
         c forget 7
         > c ok
         c forget 9
         > c ok",
    );
}

#[test]
fn a_refused_publish_does_not_count() {
    check_once(
        "a queue r durable length=0 overflow=reject
         > a queue r 0 0
         a bind amq.direct r k
         > a ok
         c publish amq.direct k one persistent once=7
         > c nack 1
         a unbind amq.direct r k
         > a ok
         a bind amq.direct q k
         > a ok
         c publish amq.direct k one persistent once=7
         flush
         > c confirm 2
         c publish nowhere k one persistent once=9
         > c refused NotFound: no exchange 'nowhere' in vhost '/'
         c publish amq.direct k two persistent once=9
         flush
         > c confirm 3
         d publish amq.direct k two persistent once=9
         > d refused PreconditionFailed: the channel holds no session
         a passive q
         > a queue q 2 0",
    );
}

#[test]
fn a_publish_that_one_of_its_queues_refused_does_not_count_after_a_restart() {
    // Where another queue has it, and where its dead letter is all that is stored.
    for (queue, stored) in
        [("q", "overflow=reject"), ("r", "overflow=reject-dead-letter dlx=- dlk=dead")]
    {
        check(&format!(
            "c claim s expiry=5000 recorded
             flush
             > c session s new expiry=5s
             c confirms
             > c ok
             a queue dead durable
             > a queue dead 0 0
             a queue q durable
             > a queue q 0 0
             a queue r durable length=0 {stored}
             > a queue r 0 0
             a bind amq.direct {queue} k
             > a ok
             a bind amq.direct r k
             > a ok
             c publish amq.direct k one persistent once=7
             > c nack 1
             flush
             restart
             login c ann
             c claim s expiry=5000 recorded
             flush
             > c session s resumed expiry=5s
             c confirms
             > c ok
             c publish - q two persistent once=7
             flush
             > c confirm 1
             a purge dead
             > a messages {}
             a purge q
             > a messages {}",
            u8::from(queue == "r"),
            1 + u8::from(queue == "q"),
        ));
    }
}

/// A session whose publish is on its way to twenty queues, of which some have it.
fn underway(options: &str) -> TestHost {
    let mut host = host_with(Limits { queues_at_once: 8, ..Limits::default() });
    for number in 0..20 {
        host.run(&format!("a queue q{number} {options}"));
        host.run(&format!("a bind amq.fanout q{number} k"));
    }
    host.run("login c ann");
    host.run("c claim s expiry=5000 recorded");
    host.run("flush");
    host.run("c confirms");
    host.act_on("c publish amq.fanout k one persistent once=7");
    host.engine.dispatch(host.now, &mut host.fx);
    assert!(host.engine.has_work());
    assert_eq!(std::mem::take(&mut host.fx.lines), [""; 0]);
    host
}

fn ready_in_each(host: &TestHost) -> Vec<u64> {
    host.engine.list_queues().filter(|it| it.name.starts_with('q')).map(|it| it.ready).collect()
}

#[test]
fn a_publish_to_very_many_counts_once_all_have_it() {
    let mut host = underway("durable");
    host.settle_down();
    assert_eq!(host.run("flush"), ["c confirm 1"]);
    for line in ["restart", "login c ann", "c claim s expiry=5000 recorded", "flush"] {
        host.run(line);
    }
    host.run("c confirms");
    assert_eq!(host.run("c publish amq.fanout k one persistent once=7"), ["c confirm 1"]);
    assert_eq!(ready_in_each(&host), [1; 20]);
    // One that a crash has interrupted is taken again.
    let mut host = underway("durable");
    for line in ["restart", "login c ann", "c claim s expiry=5000 recorded", "flush"] {
        host.run(line);
    }
    host.run("c publish amq.fanout k one persistent once=7");
    assert!(ready_in_each(&host).iter().all(|ready| *ready >= 1));
}

#[test]
fn a_repetition_of_a_publish_that_is_under_way_waits_for_it() {
    for (options, confirm) in [("durable", "confirm"), ("length=0 overflow=reject", "nack")] {
        let mut host = underway(options);
        host.act_on("c disconnect");
        host.login("d", "ann");
        host.act_on("d claim s expiry=5000 recorded");
        host.act_on("d confirms");
        host.act_on("d publish amq.fanout k one persistent once=7");
        let end = host.fx.end();
        host.engine.durable(end, &mut host.fx);
        let lines = std::mem::take(&mut host.fx.lines);
        assert_eq!(lines, ["d session s resumed expiry=5s", "d ok"], "{options}");
        host.settle_down();
        assert_eq!(host.run("flush"), [format!("d {confirm} 1")], "{options}");
        assert_eq!(ready_in_each(&host), [u64::from(confirm == "confirm"); 20]);
    }
    // A refused one does not count.
    let mut host = underway("length=0 overflow=reject");
    host.settle_down();
    assert_eq!(std::mem::take(&mut host.fx.lines), ["c nack 1"]);
    host.run("a queue other durable");
    host.run("c publish - other two persistent once=7");
    assert_eq!(host.run("flush"), ["c confirm 2"]);
    assert_eq!(host.run("a passive other"), ["a queue other 1 0"]);
}

#[test]
fn numbers_of_a_session_that_is_not_recorded_need_no_flush() {
    check(
        "c claim s queue
         > c session s new queue=amq.session-s
         c confirms
         > c ok
         c publish amq.topic k one once=7
         > c confirm 1
         c publish amq.topic k one once=7
         > c confirm 2
         c forget 7
         > c ok
         c publish amq.topic k one once=7
         > c confirm 3",
    );
}

/// A session that consumes.
const CONSUME: &str = "c claim s expiry=5000 recorded queue
    flush
    > c session s new expiry=5s queue=amq.session-s
    c bind amq.topic amq.session-s #
    flush
    > c ok
    c consume amq.session-s t granted on-close=release on-loss=release
    > c consuming t
    c grant t 100
    a publish amq.topic k one persistent
    > c deliver t #1 one
    a publish amq.topic k two persistent
    > c deliver t #2 two
    a publish amq.topic k three persistent
    > c deliver t #3 three
    c let-out 2";

#[test]
fn a_released_place_is_known_until_it_is_forgotten() {
    let again = "flush
         > c session s resumed expiry=5s queue=amq.session-s released=[2]
         c consume amq.session-s t granted on-loss=release
         > c consuming t
         c grant t 100
         > c deliver t #1 one redelivered
         > c deliver t #2 three redelivered
         c let-in 2
         > c ok
         c let-in 2
         > c ok
         c let-in 9
         > c ok
         c claim s expiry=5000 recorded queue
         flush
         > c session s resumed expiry=5s queue=amq.session-s";
    check(&format!(
        "{CONSUME}
         flush
         > c ok
         c disconnect
         login c ann
         c claim s expiry=5000 recorded queue
         {again}"
    ));
    check_restart(
        &format!("{CONSUME}\nflush\n> c ok"),
        &format!(
            "c claim s expiry=5000 recorded queue\n{again}\nrestart\nlogin c ann
             c claim s expiry=5000 recorded queue
             flush
             > c session s resumed expiry=5s queue=amq.session-s"
        ),
    );
}

#[test]
fn a_release_is_lost_as_a_whole() {
    // Neither the settle nor the release is flushed: the message comes again at its place.
    check(&format!(
        "{CONSUME}
         restart lose=2
         login c ann
         c claim s expiry=5000 recorded queue
         flush
         > c session s resumed expiry=5s queue=amq.session-s
         c consume amq.session-s t granted on-loss=release
         > c consuming t
         c grant t 100
         > c deliver t #1 one redelivered
         > c deliver t #2 two redelivered
         > c deliver t #3 three redelivered"
    ));
    // The release is: the message does not come again, although the record of its settle is lost.
    check(&format!(
        "{CONSUME}
         restart lose=1
         login c ann
         c claim s expiry=5000 recorded queue
         flush
         > c session s resumed expiry=5s queue=amq.session-s released=[2]"
    ));
}

#[test]
fn only_deliveries_of_the_sessions_queue_are_released() {
    check_in(
        check(&format!("{CONSUME}\nflush\n> c ok")),
        "c let-out 2
         > c refused PreconditionFailed: unknown delivery tag 2
         d let-out 1
         > d refused PreconditionFailed: the channel holds no session
         a queue other
         > a queue other 0 0
         a publish - other x
         c get other
         > c deliver  #4 x
         > c got, 0 left
         c let-out 4
         > c refused PreconditionFailed: delivery 4 is not of the queue of session 's'
         c accept 4
         c let-out 1
         flush
         > c ok",
    );
}
