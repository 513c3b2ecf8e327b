//! Consumers and bindings that take only messages which their filter selects.

use super::host::{Words, end_outcome};
use super::{TestHost, check, check_in};
use crate::selector::{Filter, ParseOptions};
use crate::{Consume, Credit};

/// What a line says of a consumer.
pub(super) fn consume(words: &Words<'_>) -> Consume {
    let text = |index: usize| words.0[index].to_owned();
    Consume {
        queue: text(1),
        name: text(2),
        browses: words.has("browse"),
        presettled: words.has("presettled"),
        exclusive: words.has("exclusive"),
        priority: words.number("priority").unwrap_or(0),
        credit: Credit {
            messages: words.number("credit").unwrap_or(0),
            bytes: words.number("bytes").unwrap_or(0),
        },
        is_granted: words.has("granted"),
        on_close: end_outcome(words, "on-close"),
        on_loss: end_outcome(words, "on-loss"),
        settle_timeout: words.millis("timeout"),
        filter: filter(words),
    }
}

/// `filter=TEXT`, with `_` for blanks.
pub(super) fn filter(words: &Words<'_>) -> Option<Filter> {
    let text = words.value("filter")?.replace('_', " ");
    Some(Filter::parse(&text, &ParseOptions::default()).unwrap())
}

#[test]
fn each_consumer_gets_what_its_filter_selects_and_the_rest_waits() {
    check(
        "a queue q
         > a queue q 0 0
         b consume q red filter=colour_=_'red'
         > b consuming red
         c consume q big filter=size_>_5
         > c consuming big
         a publish - q 1 props=colour:red
         > b deliver red #1 1
         a publish - q 2 props=colour:blue
         a publish - q 3 props=size:9
         > c deliver big #1 3
         a publish - q 4 props=colour:red,size:9
         > b deliver red #2 4
         a publish - q 5 props=colour:red,size:9
         > c deliver big #2 5
         a passive q
         > a queue q 1 2
         d consume q all
         > d consuming all
         > d deliver all #1 2",
    );
}

#[test]
fn what_waits_is_found_in_its_order_and_what_comes_back_goes_to_its_place() {
    check(
        "a queue q
         > a queue q 0 0
         a publish - q 1 props=colour:red
         a publish - q 2 props=colour:blue
         a publish - q 3 props=colour:red
         a publish - q 4 props=colour:red
         b consume q red credit=2 filter=colour_=_'red'
         > b consuming red
         > b deliver red #1 1
         > b deliver red #2 3
         b requeue 2
         > b deliver red #3 3 redelivered count=1
         a publish - q 5 props=colour:red
         b accept 1
         > b deliver red #4 4
         b requeue 3
         > b deliver red #5 3 redelivered count=2
         b accept 4
         > b deliver red #6 5
         c consume q again filter=count_>_1
         > c consuming again
         b requeue 5
         > c deliver again #1 3 redelivered count=3",
    );
}

#[test]
fn one_that_takes_everything_does_not_stop_at_what_others_pass() {
    check(
        "a queue q
         > a queue q 0 0
         b consume q red credit=1 filter=colour_=_'red'
         > b consuming red
         c consume q all credit=1
         > c consuming all
         a publish - q 1 props=colour:red
         > c deliver all #1 1
         a publish - q 2 props=colour:red
         > b deliver red #1 2
         a publish - q 3 props=colour:red
         a publish - q 4 props=colour:red
         c accept 1
         > c deliver all #2 3
         b accept 1
         > b deliver red #2 4",
    );
}

#[test]
fn the_one_of_highest_priority_is_served_whatever_it_selects() {
    check(
        "a queue q priorities=2
         > a queue q 0 0
         b consume q all priority=1
         > b consuming all
         c consume q red priority=2 credit=1 filter=colour_=_'red'
         > c consuming red
         a publish - q 1 props=colour:red
         > c deliver red #1 1
         a publish - q 2 props=colour:red
         > b deliver all #1 2
         b cancel all
         > b ok
         a publish - q 3 props=colour:red priority=1
         a publish - q 4 props=colour:red priority=2
         c accept 1
         > c deliver red #2 4
         c accept 2
         > c deliver red #3 3",
    );
}

#[test]
fn what_has_expired_or_is_purged_is_passed_over() {
    check(
        "a queue q
         > a queue q 0 0
         b consume q red credit=1 filter=colour_=_'red'
         > b consuming red
         a publish - q 1 props=colour:red
         > b deliver red #1 1
         a publish - q 2 props=colour:blue
         a publish - q 3 props=colour:red ttl=10
         a publish - q 4 props=colour:red
         time 20
         b accept 1
         > b deliver red #2 4
         a publish - q 5 props=colour:red
         a purge q
         > a messages 3
         b accept 2
         a publish - q 6 props=colour:red
         > b deliver red #3 6",
    );
}

#[test]
fn a_consumer_that_ends_takes_its_filter_along_and_its_messages_go_to_the_others() {
    let host = check_in(
        TestHost::new(),
        "a queue q
         > a queue q 0 0
         b consume q red filter=colour_=_'red'
         > b consuming red
         c consume q red filter=colour='red'
         > c consuming red
         a publish - q 1 props=colour:red
         > b deliver red #1 1
         a publish - q 2 props=colour:red
         > c deliver red #1 2
         b close
         > c deliver red #2 1 redelivered count=1
         c cancel red
         > c ok
         a publish - q 3 props=colour:red
         c requeue 2
         d consume q all
         > d consuming all
         > d deliver all #1 1 redelivered count=2
         > d deliver all #2 3",
    );
    assert!(host.engine.queues.iter().all(|(_, queue)| queue.filtered.is_none()));
}

#[test]
fn a_presettled_consumer_takes_what_its_filter_selects() {
    check(
        "a queue q durable
         > a queue q 0 0
         b consume q red presettled filter=colour_=_'red'
         > b consuming red
         a publish - q 1 props=colour:red persistent
         > b deliver red #1 1
         a publish - q 2 persistent
         a passive q
         > a queue q 1 1",
    );
}

#[test]
fn a_browser_is_shown_what_its_filter_selects() {
    check(
        "a queue q
         > a queue q 0 0
         a publish - q 1 props=colour:red
         a publish - q 2 props=colour:blue
         a publish - q 3 props=colour:red
         b consume q look browse filter=colour_=_'red'
         > b consuming look
         > b deliver look #1 1
         > b deliver look #2 3
         a publish - q 4
         a publish - q 5 props=colour:red
         > b deliver look #3 5
         a passive q
         > a queue q 5 0",
    );
}

/// A queue that has more than one look covers, and consumers who join at different times.
#[test]
fn all_that_waits_is_found_by_all_however_they_join() {
    let mut host = TestHost::new();
    host.run("a queue q");
    for number in 0..300 {
        host.run(&format!("a publish - q {number} props=own:{}", number % 3));
    }
    let mut delivered = Vec::new();
    for (name, own) in [("b", 0), ("c", 1), ("d", 2)] {
        delivered.extend(host.run(&format!("{name} consume q it credit=1 filter=own_=_{own}")));
    }
    for tag in 1..=110 {
        for name in ["d", "b", "c"] {
            delivered.extend(host.run(&format!("{name} accept {tag}")));
        }
    }
    for (own, name) in ["b", "c", "d"].iter().enumerate() {
        let got = delivered.iter().filter(|line| line.starts_with(&format!("{name} deliver")));
        let got: Vec<usize> =
            got.map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect();
        let expected: Vec<usize> = (0..300).filter(|number| number % 3 == own).collect();
        assert_eq!(got, expected, "{name}");
    }
}

#[test]
fn more_matches_than_are_noted_are_found_later() {
    let mut host = TestHost::new();
    host.run("a queue q");
    host.run("b consume q it credit=1 filter=own_=_1");
    let mut delivered = Vec::new();
    for number in 0..3_000 {
        delivered.extend(host.run(&format!("a publish - q {number} props=own:{}", number % 2)));
    }
    for tag in 1..=1_500 {
        delivered.extend(host.run(&format!("b accept {tag}")));
    }
    let got: Vec<usize> =
        delivered.iter().map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect();
    assert_eq!(got, (0..3_000).filter(|number| number % 2 == 1).collect::<Vec<_>>());
}

#[test]
fn a_binding_takes_what_its_filter_selects_and_a_message_that_none_takes_is_returned() {
    for exchange in ["amq.topic", "amq.direct", "amq.fanout"] {
        check(&format!(
            "a queue r
             > a queue r 0 0
             a queue b
             > a queue b 0 0
             a bind {exchange} r k filter=colour_=_'red'
             > a ok
             a bind {exchange} b k filter=colour_=_'blue'
             > a ok
             a publish {exchange} k 1 props=colour:red mandatory
             a publish {exchange} k 2 props=colour:blue mandatory
             a publish {exchange} k 3 props=colour:green mandatory
             > a returned 3
             a bind {exchange} b k
             > a ok
             a publish {exchange} k 4 props=colour:red
             a unbind {exchange} b k filter=colour_=_'blue'
             > a ok
             a unbind {exchange} r k filter=colour='red'
             > a ok
             a publish {exchange} k 5 props=colour:red
             c consume r c
             > c consuming c
             > c deliver c #1 1
             > c deliver c #2 4
             d consume b c
             > d consuming c
             > d deliver c #1 2
             > d deliver c #2 4
             > d deliver c #3 5",
        ));
    }
}

#[test]
fn a_client_does_not_get_its_own_messages_by_a_binding_that_says_so() {
    check(
        "a queue q
         > a queue q 0 0
         name a ann
         name b bob
         a bind amq.topic q # not-from=ann
         > a ok
         c consume q c
         > c consuming c
         a publish amq.topic k 1
         b publish amq.topic k 2
         > c deliver c #1 2
         d publish amq.topic k 3
         > c deliver c #2 3
         a bind amq.topic q # not-from=ann filter=size_>_5
         > a ok
         a publish amq.topic k 4 props=size:9
         b publish amq.topic k 5 props=size:9
         > c deliver c #3 5",
    );
}

#[test]
fn conditions_hold_between_exchanges_and_before_alternates() {
    check(
        "a exchange x fanout alternate=rest
         > a ok
         a exchange rest fanout
         > a ok
         a exchange red filtered
         > a ok
         a queue q
         > a queue q 0 0
         a queue r
         > a queue r 0 0
         a queue others
         > a queue others 0 0
         a bind x @red k filter=colour_=_'red'
         > a ok
         a bind red q k filter=size_>_5
         > a ok
         a bind red r k filter=size_<_5
         > a ok
         a bind rest others k
         > a ok
         b consume q q
         > b consuming q
         c consume r r
         > c consuming r
         d consume others o
         > d consuming o
         a publish x k 1 props=colour:red,size:9
         > b deliver q #1 1
         a publish x k 2 props=colour:red,size:1
         > c deliver r #1 2
         a publish x k 3 props=colour:blue,size:9
         > d deliver o #1 3
         a publish red other 4 props=size:9
         > b deliver q #2 4
         a bind red q k
         > a refused PreconditionFailed: exchange 'red' leads messages on by filters alone: a binding of it \
         needs one that does not select every message",
    );
}

#[test]
fn bindings_with_filters_survive_a_restart() {
    for last in ["", "snapshot\n", "checkpoint\n"] {
        check(&format!(
            "a exchange red filtered durable
             > a ok
             a queue q durable
             > a queue q 0 0
             name a ann
             a bind red q k filter=colour_=_'red' not-from=ann
             > a ok
             a bind amq.topic q k filter=size_>_5
             > a ok
             {last}restart
             name a ann
             a publish red k 1 props=colour:red
             b publish red k 2 props=colour:red
             b publish red k 3
             b publish amq.topic k 4 props=size:9
             b publish amq.topic k 5
             b consume q b
             > b consuming b
             > b deliver b #1 2
             > b deliver b #2 4
             a unbind amq.topic q k filter=size_>_5
             > a ok
             b publish amq.topic k 6 props=size:9",
        ));
    }
}

#[test]
fn a_message_that_is_returned_for_others_goes_to_another_one_whose_filter_selects_it() {
    check(
        "a queue q
         > a queue q 0 0
         b consume q one filter=colour_=_'red'
         > b consuming one
         a publish - q 1 props=colour:red
         > b deliver one #1 1
         b release 1 elsewhere
         a publish - q 2 props=colour:red
         > b deliver one #2 2
         c consume q all filter=colour_IS_NOT_NULL
         > c consuming all
         > c deliver all #1 1 redelivered",
    );
}
