//! What connections that are not read from are shown to wait for.

use super::broker::Broker;
use crate::WaitsFor;
use angarium_engine::{Bound, Quota, Request};
use std::time::Duration;

/// Client `p` does what `lines` say (`NAME> …` as in a script of [`Broker`], `deaf NAME`, `much NAME`: it
/// publishes 24 KB at once to `s`), with that quota; what it is shown to wait for at once, half a second
/// later, and when all is over, whichever shard it is on.
#[track_caller]
fn check(bounds: &[(Bound, u64)], lines: &str, expected: [Option<WaitsFor>; 3]) {
    for (shards, shard) in [(1, 0), (2, 0), (2, 1)] {
        let mut broker = Broker::new(shards);
        let quota =
            bounds.iter().fold(Quota::default(), |it, (bound, most)| it.with(*bound, *most));
        broker.administer("/", Request::SetQuota { user: "user".to_owned(), quota });
        broker.connect("p", shard);
        broker.connect("other", shard);
        broker.connect("far", shard + 1);
        broker.pass(Duration::from_millis(2));
        for line in lines.lines().map(str::trim) {
            match line.split_once(' ').expect("two words") {
                ("deaf", name) => broker.set_deaf(name, true),
                ("much", name) => {
                    broker
                        .say(name, &format!("PUB s 1000\r\n{}\r\n", "x".repeat(1_000)).repeat(24));
                }
                _ => broker.play(line),
            }
        }
        let mut found = vec![broker.waits_for("p")];
        broker.pass(Duration::from_millis(500));
        found.push(broker.waits_for("p"));
        broker.set_deaf("other", false);
        broker.set_deaf("far", false);
        for _ in 0..100 {
            broker.pass(Duration::from_millis(100));
        }
        found.push(broker.waits_for("p"));
        assert_eq!(found, expected, "{bounds:?}, shard {shard} of {shards}: {lines}");
    }
}

#[test]
fn who_is_not_read_from_is_shown_with_what_it_waits_for() {
    use Bound::{ConnectionBytes, ConnectionMessages, Messages};
    use WaitsFor::{Flooded, Rate, Subscribers, UserRate};
    let (rate, user_rate) = (Some(Rate), Some(UserRate));
    for (bounds, lines, expected) in [
        (&[][..], "p> PUB s 1|x", [None; 3]),
        // Nothing but its rate is in the way of who is alone.
        (&[], "much p", [None; 3]),
        (&[(ConnectionMessages, 20)], "much p", [rate, rate, None]),
        (&[(Messages, 20)], "much p", [user_rate, user_rate, None]),
        (&[(ConnectionBytes, 20_000)], "much p", [rate, rate, None]),
        (&[(Messages, 100), (ConnectionMessages, 20)], "much p", [rate, rate, None]),
        (&[(Messages, 20), (ConnectionMessages, 100)], "much p", [user_rate, user_rate, None]),
        // A pause of a moment is shown for a second.
        (&[], "other> PING\nmuch p", [Some(Flooded), Some(Flooded), None]),
        (&[], "other> SUB s 1\ndeaf other\nmuch p", [Some(Subscribers), Some(Subscribers), None]),
        (
            &[],
            "far> SUB s 1\ndeaf far\nmuch p\nmuch p",
            [Some(Subscribers), Some(Subscribers), None],
        ),
    ] {
        check(bounds, lines, expected);
    }
}

#[test]
fn paused_floods_are_counted() {
    for (lines, count) in [("much p", 0), ("other> PING\nmuch p", 1)] {
        let mut broker = Broker::new(1);
        broker.connect("p", 0);
        broker.connect("other", 0);
        broker.pass(Duration::from_millis(2));
        for line in lines.lines() {
            match line {
                "much p" => broker.say("p", &format!("PUB s 100\r\n{:100}\r\n", "").repeat(600)),
                _ => broker.play(line),
            }
        }
        assert_eq!(broker.nodes[0].stats().floods_paused, count, "{lines}");
    }
}
