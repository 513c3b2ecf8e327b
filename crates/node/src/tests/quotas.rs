//! Quotas of users, over one shard and several: rates, connections, subscriptions.

use super::amqp10;
use super::broker::Broker;
use super::host::{Host, Said};
use crate::WaitsFor;
use angarium_engine::{Bound, Quota, Request};
use std::time::Duration;

#[test]
fn the_rate_of_a_user_is_that_of_its_connections_to_all_shards() {
    for (by_user, is_read) in [(true, false), (false, true)] {
        let mut broker = Broker::new(3);
        let bound = if by_user { Bound::Messages } else { Bound::ConnectionMessages };
        let quota = Quota::default().with(bound, 100);
        broker.administer("/", Request::SetQuota { user: "user".to_owned(), quota });
        broker.connect("a", 1);
        broker.connect("b", 2);
        broker.say("a", &"PUB s 1\r\nx\r\n".repeat(30));
        assert!(!broker.is_read("a"));
        broker.say("b", "PUB s 1\r\nx\r\n");
        assert_eq!(broker.is_read("b"), is_read, "by user: {by_user}");
    }
}

#[test]
fn who_connects_again_and_again_is_held_to_its_users_rate() {
    for shards in [1, 3] {
        let mut broker = Broker::new(shards);
        let quota = Quota::default().with(Bound::Messages, 100);
        broker.administer("/", Request::SetQuota { user: "user".to_owned(), quota });
        broker.play("l> SUB s 1");
        let connections = 50;
        for number in 0..connections {
            let name = format!("c{number}");
            broker.connect(&name, number);
            broker.say(&name, &"PUB s 1\r\nx\r\n".repeat(100));
            broker.disconnect(&name);
        }
        let heard = broker.heard("l").matches("MSG s").count();
        assert!(heard < 200 + connections, "{shards} shards: {heard}");
        // What is no message does not wait.
        broker.play(
            "c> SUB other 1|PING
             c< PONG",
        );
    }
}

#[test]
fn a_users_connections_to_all_shards_are_counted_together() {
    for shards in [1, 3] {
        let mut broker = Broker::new(shards);
        let quota = Quota::default().with(Bound::Connections, 3);
        broker.administer("/", Request::SetQuota { user: "user".to_owned(), quota });
        // Those of home and of others, each of which may be the one too many.
        for (gone, first) in [("a", 0), ("b", 1), ("c", 2), ("a", 1), ("b", 2), ("c", 0)] {
            for (name, shard) in [("a", first), ("b", first + 1), ("c", first + 2)] {
                broker.connect(name, shard);
                assert!(broker.is_connected(name), "{shards} {name} {first}");
            }
            for shard in 0..3 {
                broker.connect("d", shard);
                assert!(!broker.is_connected("d"), "{shards} {shard} {first}");
            }
            broker.disconnect(gone);
            broker.connect("d", first);
            assert!(broker.is_connected("d"), "{shards} {gone} {first}");
            for name in ["a", "b", "c", "d"].into_iter().filter(|name| *name != gone) {
                broker.disconnect(name);
            }
        }
    }
}

/// Clients `a`, `b` and `c` are one user's, who may listen to three subjects; each line of `lines` is theirs,
/// `NAME gone` or a new bound. How many more the user may listen to then is the same on every shard.
#[track_caller]
fn check_listeners(lines: &str, left: usize) {
    for (shards, asked) in [(1, 0), (3, 0), (3, 1), (3, 2)] {
        let mut broker = Broker::new(shards);
        let bound = |broker: &mut Broker, most: Option<u64>| {
            let mut quota = Quota::default();
            quota.set(Bound::Subscriptions, most);
            broker.administer("/", Request::SetQuota { user: "user".to_owned(), quota });
        };
        bound(&mut broker, Some(3));
        for (shard, name) in ["a", "b", "c"].into_iter().enumerate() {
            broker.connect(name, shard);
        }
        for line in lines.lines().map(str::trim) {
            match line.split_once(' ').unwrap_or((line, "")) {
                (name, "gone") => broker.disconnect(name),
                ("bound", most) => bound(&mut broker, most.parse().ok()),
                ("reconnect", name) => drop(broker.connect(name, 1)),
                (name, said) => broker.say(name, &format!("{said}\r\n").replace('|', "\r\n")),
            }
        }
        broker.connect("d", asked);
        broker.say("d", &(0..5).map(|at| format!("SUB more {at}\r\n")).collect::<String>());
        let refused = broker.heard("d").matches("-ERR 'maximum subscriptions exceeded'").count();
        assert_eq!(5 - refused, left, "{shards} shards, asked on {asked}: {lines}");
    }
}

#[test]
fn a_users_connections_to_all_shards_listen_to_no_more_subjects_than_it_may() {
    for (lines, left) in [
        ("a SUB s 1|SUB s 2|SUB s 3", 0),
        ("a SUB s 1\nb SUB s 1\nc SUB s 1\nc SUB s 2", 0),
        ("a SUB s 1\nb SUB s 1\nc SUB t 1\nb UNSUB 1", 1),
        ("a SUB s 1\nb SUB s 1\nc SUB t 1\na gone\nb gone", 2),
        ("b SUB s 1|SUB s 2|SUB s 3\nb gone\nreconnect b\nb SUB s 1", 2),
        ("b SUB s 1|SUB t 1|UNSUB 1|SUB s 2|UNSUB 2", 3),
        ("b SUB s 1|UNSUB 1 1\na PUB s 0|", 3),
        ("a SUB s 1\nb SUB s 1\nbound none\nb SUB s 2|SUB s 3|UNSUB 2\nbound 4", 1),
        ("a SUB s 1\nb SUB s 1\nbound 1\na gone", 0),
        ("a SUB s 1\nb SUB s 1\nbound 1\nbound none\na gone\nbound 2", 1),
    ] {
        check_listeners(lines, left);
    }
}

#[test]
fn a_client_that_logs_in_anew_is_counted_once() {
    let mut broker = Broker::new(3);
    let quota = Quota::default().with(Bound::Connections, 1);
    broker.administer("/", Request::SetQuota { user: "user".to_owned(), quota });
    for shard in 0..3 {
        broker.connect("a", shard);
        let login = "CONNECT {\"verbose\":true,\"user\":\"user\",\"pass\":\"secret\"}\r\n";
        broker.say("a", login);
        assert_eq!(broker.heard("a"), "+OK\r\n", "{shard}");
        broker.disconnect("a");
    }
}

#[test]
fn who_is_gone_before_home_has_counted_it_takes_nobodys_place() {
    let mut broker = Broker::new(3);
    let quota = Quota::default().with(Bound::Connections, 1);
    broker.administer("/", Request::SetQuota { user: "user".to_owned(), quota });
    broker.play("hold");
    broker.connect("a", 1);
    broker.disconnect("a");
    // In the same slot.
    broker.connect("b", 1);
    broker.play(
        "carry
         b> PING
         b< PONG",
    );
    broker.connect("c", 2);
    assert!(broker.is_connected("b") && !broker.is_connected("c"));
}

#[test]
fn connections_of_all_shards_to_a_virtual_host_are_counted_together() {
    for shards in [1, 3] {
        let mut broker = Broker::new(shards);
        let quota = Quota::default().with(Bound::Connections, 2);
        let vhost = "/".to_owned();
        broker.administer("/", Request::SetVhostQuota { vhost, quota });
        for (name, shard) in [("a", 1), ("b", 2)] {
            broker.connect(name, shard);
            assert!(broker.is_connected(name), "{shards} {name}");
        }
        for shard in 0..3 {
            broker.connect("c", shard);
            assert!(!broker.is_connected("c"), "{shards} {shard}");
        }
        broker.disconnect("a");
        broker.connect("c", 0);
        assert!(broker.is_connected("c"), "{shards}");
    }
}

#[test]
fn an_amqp_client_is_refused_where_its_virtual_host_is_full() {
    for shards in [1, 3] {
        let mut host = Host::new(shards);
        let quota = Quota::default().with(Bound::Connections, 2);
        host.operate("/", Request::SetVhostQuota { vhost: "/".to_owned(), quota }).unwrap();
        let [first, _] = [host.client_on(0), host.client_on(shards - 1)];
        for shard in 0..shards {
            let more = host.connect_on(shard);
            assert_eq!(host.heard(more), [Said::Closed(530)], "{shard} of {shards}");
        }
        host.goodbye(first);
        let more = host.connect_on(shards - 1);
        let (now, slot) = (host.now, host.slot(more));
        let connection = host.nodes[shards - 1].connection(now, slot).unwrap();
        assert_eq!(connection.info.state, "running", "{shards}");
    }
}

#[test]
fn the_last_place_of_a_user_or_a_virtual_host_goes_to_one_shard() {
    let quota = Quota::default().with(Bound::Connections, 1);
    let (user, vhost) = ("user".to_owned(), "/".to_owned());
    for request in [Request::SetQuota { user, quota }, Request::SetVhostQuota { vhost, quota }] {
        let mut broker = Broker::new(3);
        broker.administer("/", request);
        broker.play("hold");
        broker.connect("a", 1);
        broker.connect("b", 2);
        broker.play("carry");
        let admitted = ["a", "b"].into_iter().filter(|name| broker.is_connected(name)).count();
        assert_eq!(admitted, 1);
        for shard in 0..3 {
            broker.connect("c", shard);
            assert!(!broker.is_connected("c"), "{shard}");
        }
    }
}

#[test]
fn the_rate_of_a_virtual_host_is_that_of_its_connections_to_all_shards() {
    let mut broker = Broker::new(3);
    let quota = Quota::default().with(Bound::Messages, 100);
    let vhost = "/".to_owned();
    broker.administer("/", Request::SetVhostQuota { vhost, quota });
    broker.connect("a", 1);
    broker.connect("b", 2);
    broker.say("a", &"PUB s 1\r\nx\r\n".repeat(30));
    assert!(!broker.is_read("a"));
    broker.say("b", "PUB s 1\r\nx\r\n");
    assert!(!broker.is_read("b"));
}

/// AMQP clients name their virtual host after they have logged in.
#[test]
fn the_rate_of_a_virtual_host_holds_for_amqp_clients_that_enter_it_later() {
    for (shards, shard) in [(1, 0), (3, 0), (3, 2)] {
        let mut host = Host::new(shards);
        let quota = Quota::default().with(Bound::Messages, 100);
        host.operate("/", Request::SetVhostQuota { vhost: "/".to_owned(), quota }).unwrap();
        let client = host.client_on(shard);
        host.declare(client, "q");
        host.publish_many(client, "q", b"x", false, 30);
        host.settle_down();
        assert_eq!(host.waits_for(client), Some(WaitsFor::VhostRate), "{shard} of {shards}");
        host.wait(Duration::from_secs(10));
        let mut other = amqp10::Client::open(&mut host, shard);
        other.sends_to(&mut host, 0, "q");
        other.publish(&mut host, 0, 30, 1);
        let waits_for = host.waits_for(other.number);
        assert_eq!(waits_for, Some(WaitsFor::VhostRate), "AMQP 1.0, {shard} of {shards}");
    }
}
