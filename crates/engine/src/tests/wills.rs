//! Wills: when they are published, and when not.

use super::check_in;
use super::sessions::{check, check_restart, host_with};
use crate::interface::limits::Limits;

/// A queue that gets wills, which are shown where they come.
const BEGIN: &str = "a queue q durable
    > a queue q 0 0
    a bind amq.topic q gone
    > a ok
    a consume q t presettled
    > a consuming t
    c claim s expiry=5000 recorded
    flush
    > c session s new expiry=5s";

fn check_will(scenario: &str) {
    check(&format!("{BEGIN}\n{scenario}"));
}

#[test]
fn a_will_is_published_once_its_holder_is_lost() {
    for how in ["c disconnect", "c close", "c detach s\n> c ok"] {
        // Where the holder detaches, the will comes before the answer, which waits for the flush.
        let (lost, answer) = how.split_once('\n').unwrap_or((how, ""));
        check_will(&format!(
            "c will gone bye persistent
             flush
             > c ok
             {lost}
             > a deliver t #1 bye
             flush
             {answer}
             login e ann
             e claim s expiry=5000 recorded
             flush
             > e session s resumed expiry=5s
             e disconnect
             flush"
        ));
    }
}

#[test]
fn a_will_that_was_taken_away_is_not_published() {
    check_will(
        "c will gone bye
         flush
         > c ok
         c will gone farewell
         flush
         > c ok
         c no-will
         flush
         > c ok
         c disconnect
         flush
         time 9000
         flush",
    );
}

#[test]
fn a_will_waits_for_its_delay() {
    check_will(
        "c will gone bye delay=1000
         flush
         > c ok
         c disconnect
         flush
         time 999
         time 1
         > a deliver t #1 bye
         time 9000",
    );
    // No longer than the session lives.
    check_will(
        "c will gone bye delay=9000
         flush
         > c ok
         c disconnect
         time 4999
         time 1
         > a deliver t #1 bye",
    );
    check_will(
        "c will gone bye delay=9000
         flush
         > c ok
         c disconnect
         d end s
         > a deliver t #1 bye
         flush
         > d ok",
    );
    check_will(
        "c will gone bye delay=9000
         flush
         > c ok
         c disconnect
         d claim s fresh expiry=5000 recorded
         > a deliver t #1 bye
         flush
         > d session s new expiry=5s",
    );
}

#[test]
fn a_claim_in_time_takes_a_will_away() {
    check_will(
        "c will gone bye delay=1000
         flush
         > c ok
         c disconnect
         time 999
         d claim s expiry=5000 recorded
         flush
         > d session s resumed expiry=5s
         time 9000
         d disconnect
         time 1000",
    );
    // One that takes over, too; not where it waits for nothing.
    check_will(
        "c will gone bye delay=1000
         flush
         > c ok
         d claim s expiry=5000 recorded
         > c lost s TakenOver
         flush
         > d session s resumed expiry=5s
         d will gone farewell
         flush
         > d ok
         c disconnect
         c claim s expiry=5000 recorded
         > c refused NotAllowed: a session belongs to a user; the broker itself has none
         login e ann
         e claim s expiry=5000 recorded
         > d lost s TakenOver
         > a deliver t #1 farewell
         flush
         > e session s resumed expiry=5s
         time 9000",
    );
}

#[test]
fn a_will_of_a_session_that_ends_with_its_holder_is_published() {
    check(
        "a subscribe gone x
         c claim s
         > c session s new
         c will gone bye
         > c ok
         c disconnect
         > a hears x gone bye",
    );
}

#[test]
fn wills_survive_a_restart() {
    let before = "a queue q durable
         > a queue q 0 0
         a bind amq.topic q gone
         > a ok
         c claim s expiry=5000 recorded
         flush
         > c session s new expiry=5s
         c will gone bye delay=1000 persistent
         flush
         > c ok
         d claim t expiry=5000 recorded
         flush
         > d session t new expiry=5s
         d will gone taken
         flush
         > d ok
         d no-will
         flush
         > d ok
         c disconnect
         flush
         time 400";
    check_restart(
        before,
        "time 599
         a passive q
         > a queue q 0 0
         time 1
         a consume q t presettled
         > a consuming t
         > a deliver t #1 bye
         restart
         time 9000
         a passive q
         > a queue q 0 0",
    );
}

#[test]
fn a_will_is_published_with_the_rights_that_its_user_has() {
    let mut host = host_with(Limits::default());
    host.run("login c ann");
    let host = check_in(
        host,
        "a subscribe > x
         c claim s expiry=5000 recorded
         flush
         > c session s new expiry=5s
         a narrow ann gone
         > a ok
         c will secret.x bye
         > c refused AccessRefused: write access to subject 'secret.x' in vhost '/' refused for user 'ann'
         c will gone bye delay=100
         flush
         > c ok
         a permit ann .* ^$ .*
         > a ok
         c disconnect
         time 100",
    );
    assert_eq!(host.engine.list_sessions().filter(|session| session.has_will).count(), 0);
    let mut host = host_with(Limits::default());
    host.run("login c ann");
    host.run("c claim s");
    let large = "v".repeat(131_073);
    let refused =
        "c refused LimitExceeded: a will of 131073 bytes is larger than the limit of 131072";
    assert_eq!(host.run(&format!("c will gone {large}")), [refused]);
}

#[test]
fn a_will_to_a_subject_of_the_default_exchange_reaches_who_subscribes() {
    for (writes, told) in [(".*", &["a hears x s bye"][..]), ("^$", &[])] {
        let mut host = host_with(Limits::default());
        host.run("login c ann");
        for line in ["a subscribe s x", "c claim s", "c will s bye exchange=-"] {
            host.run(line);
        }
        host.run(&format!("a permit ann .* {writes} .*"));
        assert_eq!(host.run("c disconnect"), told, "{writes}");
    }
}
