//! Consumers that get what they are granted, and hear when there is nothing more; settles of ranges; what
//! becomes of deliveries when their consumer ends.

use super::{TestHost, check, check_in};
use crate::interface::limits::Limits;

#[test]
fn a_consumer_gets_as_many_deliveries_as_it_was_granted_whatever_it_settles() {
    for how in ["", "presettled"] {
        check(&format!(
            "a queue q
             > a queue q 0 0
             a publish - q 1
             a publish - q 2
             a publish - q 3
             a publish - q 4
             a consume q c granted {how}
             > a consuming c
             a grant c 2
             > a deliver c #1 1
             > a deliver c #2 2
             a accept 1 to=2
             a grant c 2
             a grant c 3
             > a deliver c #3 3
             a grant c 1
             a publish - q 5
             a grant c 3
             a grant c 5
             > a deliver c #4 4
             > a deliver c #5 5
             a grant c 7
             a publish - q 6
             > a deliver c #6 6
             a grant c 6
             a publish - q 7
             a grant nobody 100 drain"
        ));
    }
}

#[test]
fn a_drain_is_answered_once_and_ends_the_grant() {
    check(
        "a queue q
         > a queue q 0 0
         a consume q c granted
         > a consuming c
         a grant c 5 drain
         > a drained c 0
         a publish - q 1
         a publish - q 2
         a grant c 1 drain
         > a deliver c #1 1
         > a drained c 1
         a grant c 5 drain
         > a deliver c #2 2
         > a drained c 2
         a grant c 2 drain
         > a drained c 2
         a publish - q 3
         a grant c 3
         > a deliver c #3 3",
    );
}

#[test]
fn a_drain_waits_for_room_in_the_output_and_for_what_has_to_be_read() {
    let limits = Limits { queue_resident_bytes_max: 200, page_entries: 4, ..Limits::default() };
    let mut host = TestHost::with(limits);
    host.run("a queue q");
    for number in 1..=20 {
        host.run(&format!("a publish - q {number}"));
    }
    host.run("loads hold");
    host.run("a consume q c granted");
    let mut lines = host.run("a grant c 100 drain");
    while !host.fx.loads.is_empty() {
        assert!(!lines.iter().any(|line| line.contains("drained")), "too early: {lines:?}");
        lines.append(&mut host.run("load"));
    }
    assert_eq!(lines.len(), 21, "{lines:?}");
    assert_eq!(lines[19..], ["a deliver c #20 20", "a drained c 20"]);
    check(
        "a queue q
         > a queue q 0 0
         a consume q c granted
         > a consuming c
         b publish - q 1
         room a off
         a grant c 2 drain
         room a
         > a deliver c #1 1
         > a drained c 1",
    );
}

#[test]
fn a_consumer_that_is_not_active_drains_nothing_and_one_that_begins_waits_for_its_reply() {
    check(
        "a queue q single-active
         > a queue q 0 0
         a consume q c granted
         > a consuming c
         a consume q d granted
         > a consuming d
         a publish - q 1
         a grant d 5 drain
         > a drained d 0
         a grant c 5 drain
         > a deliver c #1 1
         > a drained c 1",
    );
}

#[test]
fn a_browser_sees_what_it_was_granted_and_drains() {
    check(
        "a queue q
         > a queue q 0 0
         a publish - q 1
         a publish - q 2
         a publish - q 3
         a consume q c browse granted
         > a consuming c
         a grant c 2
         > a deliver c #1 1
         > a deliver c #2 2
         a grant c 9 drain
         > a deliver c #3 3
         > a drained c 3
         a publish - q 4
         a grant c 4 drain
         > a deliver c #4 4
         > a drained c 4",
    );
}

#[test]
fn ranges_pass_over_what_is_settled_already() {
    check(
        "a queue q
         > a queue q 0 0
         a consume q c
         > a consuming c
         a publish - q 1
         > a deliver c #1 1
         a publish - q 2
         > a deliver c #2 2
         a publish - q 3
         > a deliver c #3 3
         a publish - q 4
         > a deliver c #4 4
         a publish - q 5
         > a deliver c #5 5
         a accept 3
         a accept 2 to=4
         a accept 2 to=4
         a accept 7 to=9
         a discard 0 to=1
         a cancel c
         > a ok
         b passive q
         > b queue q 0 0
         a requeue 0 multiple
         b get q
         > b deliver  #1 5 redelivered count=1
         > b got, 0 left",
    );
}

#[test]
fn a_released_message_is_at_its_place_and_does_not_count() {
    check(
        "a queue q limit=1 durable
         > a queue q 0 0
         a publish - q 1 persistent
         a publish - q 2 persistent
         a publish - q 3 persistent
         a consume q c granted
         > a consuming c
         a grant c 2
         > a deliver c #1 1
         > a deliver c #2 2
         a release 1 to=2
         a grant c 3
         > a deliver c #3 1 redelivered
         a requeue 3
         a grant c 4
         > a deliver c #4 1 redelivered count=1
         a release 4
         restart
         a consume q c
         > a consuming c
         > a deliver c #1 1 redelivered count=1
         > a deliver c #2 2 redelivered
         > a deliver c #3 3 redelivered
         a requeue 1
         a requeue 2
         > a deliver c #4 2 redelivered count=1",
    );
}

#[test]
fn what_becomes_of_deliveries_depends_on_how_their_consumer_ends() {
    let begin = "a queue q
         > a queue q 0 0
         b publish - q 1
         b publish - q 2
         a consume q c granted on-close=release on-loss=requeue
         > a consuming c
         a grant c 2
         > a deliver c #1 1
         > a deliver c #2 2
         b publish - q 3
         b consume q d granted
         > b consuming d
         b grant d 1
         > b deliver d #1 3
         b release 1";
    let uncounted = "b grant d 4
         > b deliver d #2 1 redelivered
         > b deliver d #3 2 redelivered
         > b deliver d #4 3 redelivered";
    for end in ["a close", "a cancel c returns\n> a ok"] {
        check(&format!("{begin}\n{end}\n{uncounted}"));
    }
    check(&format!(
        "{begin}
         a disconnect
         b grant d 4
         > b deliver d #2 1 redelivered count=1
         > b deliver d #3 2 redelivered count=1
         > b deliver d #4 3 redelivered"
    ));
}

#[test]
fn very_many_that_go_back_with_their_consumer_come_before_all_later_ones() {
    let host = TestHost::with(Limits { settles_at_once: 2, ..Limits::default() });
    check_in(
        host,
        "a queue q
         > a queue q 0 0
         a consume q c granted on-close=release
         > a consuming c
         a grant c 5
         b publish - q 1
         > a deliver c #1 1
         b publish - q 2
         > a deliver c #2 2
         b publish - q 3
         > a deliver c #3 3
         b publish - q 4
         > a deliver c #4 4
         a accept 2
         b publish - q 5
         > a deliver c #5 5
         b publish - q 6
         b consume q d granted
         > b consuming d
         b grant d 5
         > b deliver d #1 6
         b release 1
         > b deliver d #2 6 redelivered
         b release 2
         > b deliver d #3 6 redelivered
         b release 3
         > b deliver d #4 6 redelivered
         a cancel c returns
         > a ok
         > b deliver d #5 1 redelivered
         b grant d 9
         > b deliver d #6 3 redelivered
         > b deliver d #7 4 redelivered
         > b deliver d #8 5 redelivered",
    );
}

#[test]
fn granted_deliveries_may_stay_unsettled_for_any_time() {
    check(
        "a queue q timeout=1000
         > a queue q 0 0
         a publish - q 1
         a publish - q 2
         a consume q c granted
         > a consuming c
         a grant c 1
         > a deliver c #1 1
         time 100000000
         a accept 1
         a grant c 2
         > a deliver c #2 2",
    );
}
