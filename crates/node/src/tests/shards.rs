//! Several shards are one broker: whatever a client does on one is so for clients of all others.

use super::broker::Broker;
use crate::shard_of;
use angarium_engine::{Arguments, Binding, BindingTarget, Durability, QueueOptions, Request};
use std::collections::BTreeSet;

fn check(shards: usize, script: &str) {
    Broker::new(shards).play(script);
}

#[test]
fn listeners_hear_what_is_published_on_any_shard() {
    for shards in [1, 2, 3, 64] {
        check(
            shards,
            "a@1> SUB stock.*.ibm 1
             b@2> SUB stock.> 7
             c@0> SUB stock.us.ibm 3
             c> PUB stock.us.ibm 2|hi
             a< MSG stock.us.ibm 1 2|hi
             b< MSG stock.us.ibm 7 2|hi
             c< MSG stock.us.ibm 3 2|hi
             a> PUB stock.us 2|ho
             b< MSG stock.us 7 2|ho
             b> UNSUB 7
             c> PUB stock.us 2|ha
             b<
             b> SUB stock.us 8 |UNSUB 8 1
             c> PUB stock.us 1|1
             c> PUB stock.us 1|2
             b< MSG stock.us 8 1|1",
        );
    }
}

/// Publishes messages to `job` on shard 2, and checks that each member hears as many as any other within
/// `spread`, and together all of them once. Returns the broker, with clients "a" and on, and "p".
fn check_group(shards: usize, members: &[(usize, &str)], spread: usize) -> Broker {
    const EACH: usize = 30;
    let mut broker = Broker::new(shards);
    let names: Vec<String> = ('a'..).take(members.len()).map(|name| name.to_string()).collect();
    for (name, (shard, pattern)) in names.iter().zip(members) {
        broker.connect(name, *shard);
        broker.say(name, &format!("SUB {pattern} work 1\r\n"));
    }
    broker.connect("p", 2);
    let messages = EACH * members.len();
    for number in 0..messages {
        broker.say("p", &format!("PUB job 3\r\n{number:03}\r\n"));
    }
    let mut all = Vec::new();
    for name in &names {
        let heard = broker.heard(name);
        let numbers: Vec<&str> = heard.lines().skip(1).step_by(2).collect();
        let count = numbers.len();
        let what = format!("{name} of {members:?} on {shards} shards: {count}");
        assert!(count.abs_diff(EACH) <= spread, "{what}");
        all.extend(numbers.iter().map(|number| number.parse::<usize>().unwrap()));
    }
    all.sort_unstable();
    assert_eq!(all, (0..messages).collect::<Vec<_>>(), "{members:?} on {shards} shards");
    broker
}

#[test]
fn one_of_a_group_hears_each_message_whichever_shards_its_members_are_on() {
    for shards in [1, 2, 5] {
        check_group(shards, &[(0, "job"), (1, "job"), (1, "job"), (4, "job")], 5);
    }
}

#[test]
fn all_of_a_group_have_turns_whatever_patterns_they_listen_to() {
    for shards in [1, 2, 5] {
        for members in [
            &[(0, "job"), (0, "*"), (0, ">")][..],
            &[(2, "job"), (1, "*"), (1, "*"), (0, ">"), (3, ">"), (4, "job")],
            &[(1, "job"), (3, "*")],
        ] {
            check_group(shards, members, 8);
        }
    }
}

#[test]
fn what_is_published_on_all_shards_at_once_goes_to_many_of_a_group() {
    for (shards, each) in [(3, 1), (8, 1), (8, 3), (16, 1), (64, 1)] {
        let mut broker = Broker::new(shards);
        let names: Vec<String> = (0..shards * each).map(|number| format!("m{number}")).collect();
        for (number, name) in names.iter().enumerate() {
            broker.connect(name, number % shards);
            broker.say(name, "SUB job work 1\r\n");
        }
        for round in 0..10 {
            names.iter().for_each(|name| broker.say(name, "PUB job 1\r\nx\r\n"));
            let heard = names.iter().map(|name| broker.heard(name).lines().count() / 2);
            let heard: Vec<_> = heard.collect();
            assert_eq!(heard.iter().sum::<usize>(), names.len());
            let most = heard.iter().max();
            assert!(most <= Some(&3), "round {round}, {shards} shards, {each} each: {heard:?}");
        }
    }
}

#[test]
fn who_leaves_a_group_leaves_its_turns_to_those_with_other_patterns() {
    for shards in [1, 2, 5] {
        let mut broker = check_group(shards, &[(0, "job"), (1, "*"), (4, ">")], 8);
        broker.play(
            "a> UNSUB 1
             c> UNSUB 1
             p> PUB job 1|1
             p> PUB job 1|2
             p> PUB job 1|3
             a<
             b< MSG job 1 1|1|MSG job 1 1|2|MSG job 1 1|3
             c<",
        );
    }
}

#[test]
fn a_group_that_has_left_a_shard_is_looked_for_on_others() {
    check(
        3,
        "a@1> SUB job work 1
         b@2> SUB job work 1
         p@0> PUB job 1|1
         p> PUB job 1|2
         b< MSG job 1 1|1
         a< MSG job 1 1|2
         hold
         p> PUB job 1|3
         b> UNSUB 1
         carry
         b<
         a< MSG job 1 1|3",
    );
}

#[test]
fn requests_are_answered_from_any_shard_or_not_at_all() {
    for shards in [1, 2, 4] {
        check(
            shards,
            "r@1> SUB service 1
             q@2> SUB _INBOX.x.* 9|PUB service _INBOX.x.1 1|?
             r< MSG service 1 _INBOX.x.1 1|?
             r> PUB _INBOX.x.1 1|!
             q< MSG _INBOX.x.1 9 1|!
             q> PUB nobody _INBOX.x.2 1|?
             q< HMSG _INBOX.x.2 9 38 38|NATS/1.0 503|Nats-Subject: nobody||
             q> PUB $QUEUE.none _INBOX.x.3 1|?
             q< HMSG _INBOX.x.3 9 43 43|NATS/1.0 503|Nats-Subject: $QUEUE.none||",
        );
    }
}

#[test]
fn a_request_that_its_responder_has_left_is_told_to_be_unanswered() {
    check(
        2,
        "r@1> SUB service 1
         q@0> SUB _INBOX.x.* 9
         hold
         q> PUB service _INBOX.x.2 1|?
         r> UNSUB 1
         carry
         q< HMSG _INBOX.x.2 9 39 39|NATS/1.0 503|Nats-Subject: service||",
    );
}

#[test]
fn a_message_to_a_group_is_handed_on_until_a_shard_has_a_member() {
    // Each who leaves does so before the others' shards know, so that they hand on to one another.
    check(
        5,
        "a@1> SUB job work 1
         b@2> SUB job work 1
         c@3> SUB job work 1
         d@4> SUB job work 1
         p@0> PING
         hold
         p> PUB job 1|1
         a> UNSUB 1
         b> UNSUB 1
         c> UNSUB 1
         carry
         a<
         b<
         c<
         d< MSG job 1 1|1",
    );
}

#[test]
fn who_wants_no_echo_does_not_hear_its_own_message_handed_back() {
    check(
        3,
        "p@0> CONNECT {\"echo\":false,\"user\":\"user\",\"pass\":\"secret\",\"verbose\":false}
         p> SUB job work 1
         a@1> SUB job work 1
         b@2> SUB job work 1
         hold
         p> PUB job 1|1
         p> PUB job 1|2
         p> PUB job 1|3
         a> UNSUB 1
         b> UNSUB 1
         carry
         p<",
    );
}

#[test]
fn a_request_that_was_handed_on_is_told_to_be_unanswered() {
    check(
        4,
        "r@1> SUB service work 1
         s@2> SUB service work 1
         t@3> SUB service work 1
         q@0> SUB _INBOX.x.* 9
         hold
         q> PUB service _INBOX.x.2 1|?
         r> UNSUB 1
         s> UNSUB 1
         t> UNSUB 1
         carry
         q< HMSG _INBOX.x.2 9 39 39|NATS/1.0 503|Nats-Subject: service||",
    );
}

#[test]
fn what_follows_a_subscription_waits_until_all_shards_know_it() {
    check(
        2,
        "a@1> PING
         a< PONG
         hold
         a> SUB s 1|SUB t 2|PING|PUB other 0|
         a<
         carry
         a< PONG",
    );
    // What another client of its shard has said just before may not be known yet either.
    check(
        2,
        "a@1> PING
         b@1> PING
         b< PONG
         hold
         a> SUB s 1
         b> SUB s 1|PING
         b<
         carry
         b< PONG
         hold
         b> PING
         b< PONG",
    );
    let mut broker = Broker::new(2);
    broker.connect("a", 1);
    broker.connect("b", 0);
    broker.say("b", "SUB done 1\r\n");
    broker.holds = true;
    broker.say("a", "SUB s 1\r\n");
    assert!(broker.is_read("a"), "nothing of it waits");
    broker.say("a", "PUB done 0\r\n\r\n");
    assert!(!broker.is_read("a"));
    assert_eq!(broker.heard("b"), "");
    broker.play("carry");
    assert!(broker.is_read("a"));
    assert_eq!(broker.heard("b"), "MSG done 1 0\r\n\r\n");
}

/// A broker with a queue that catches what each of these patterns of the topic exchange matches.
fn catching(shards: usize, patterns: &[&str]) -> Broker {
    let mut broker = Broker::new(shards);
    let declare = Request::DeclareQueue {
        name: "q".to_owned(),
        options: Some(QueueOptions { durability: Durability::Memory, ..QueueOptions::default() }),
    };
    broker.administer("/", declare);
    patterns.iter().for_each(|pattern| bind(&mut broker, pattern));
    broker
}

fn bind(broker: &mut Broker, pattern: &str) {
    let binding = Binding {
        source: "amq.topic".to_owned(),
        target: BindingTarget::Queue("q".to_owned()),
        key: pattern.to_owned(),
        arguments: Arguments::new(),
        filter: None,
        not_from: None,
    };
    broker.administer("/", Request::Bind(binding));
}

#[test]
fn a_request_to_a_queue_that_there_is_not_is_answered_beside_queues_that_catch_all() {
    for shards in [1, 2] {
        for patterns in [&["other"][..], &["#"], &["#", "$QUEUE.*"]] {
            let mut broker = catching(shards, patterns);
            broker.play(
                "a@1> SUB _INBOX.x 7
                 a> PUB $QUEUE.nosuch _INBOX.x 0|",
            );
            let heard = broker.heard("a");
            assert!(heard.contains("503"), "{shards} shards, {patterns:?}: {heard:?}");
        }
    }
}

#[test]
fn queues_catch_what_is_published_on_any_shard() {
    let mut broker = catching(3, &["orders.#"]);
    let ready = |broker: &Broker| broker.nodes[0].engine().list_queues().next().unwrap().ready;
    broker.play("a@1> PUB orders 1|1");
    assert_eq!(ready(&broker), 1);
    broker.play("b@2> PUB orders.eu.new 1|2");
    broker.play("b> PUB other 1|x");
    assert_eq!(ready(&broker), 2);
    // Once, however many reasons there are; and not after the last has gone.
    broker.play("c@0> SUB orders.> 1");
    bind(&mut broker, "orders.*");
    broker.play("a> PUB orders.eu 1|3");
    assert_eq!(ready(&broker), 3);
    broker.play("c< MSG orders.eu 1 1|3");
    broker.play("c> UNSUB 1");
    broker.play("a> PUB orders.eu 1|4");
    assert_eq!(ready(&broker), 4);
    broker.play("a> PUB $QUEUE.q 1|5");
    assert_eq!(ready(&broker), 5);
    let delete = Request::DeleteQueue { name: "q".to_owned(), if_unused: false, if_empty: false };
    broker.administer("/", delete);
    broker.play(
        "a> SUB in 1|PUB orders.eu in 1|?
         a< HMSG in 1 41 41|NATS/1.0 503|Nats-Subject: orders.eu||",
    );
}

#[test]
fn who_listens_to_what_a_queue_catches_hears_all_shards() {
    for caught in ["*.#", "#", "orders.*.#", "orders.#", "orders.*", "orders.eu"] {
        for heard in [">", "orders.>", "orders.*", "orders.eu"] {
            for group in ["", " g"] {
                let mut broker = catching(3, &[caught]);
                broker.play(&format!(
                    "a@1> SUB {heard}{group} 1
                     b@2> PUB orders.eu 1|1
                     a< MSG orders.eu 1 1|1
                     c@0> PUB orders.eu 1|2
                     a< MSG orders.eu 1 1|2
                     a> UNSUB 1
                     b> PUB orders.eu 1|3
                     a<"
                ));
            }
        }
    }
}

#[test]
fn users_and_virtual_hosts_are_the_same_everywhere() {
    let mut broker = Broker::new(3);
    broker.connect("a", 1);
    broker.connect("b", 2);
    broker.administer("/", Request::CreateVhost { name: "other".to_owned() });
    let forbid = Request::SetPermissions {
        user: "user".to_owned(),
        vhost: "/".to_owned(),
        configure: String::new(),
        write: String::new(),
        read: ".*".to_owned(),
    };
    broker.administer("/", forbid);
    broker.play(
        "a> PUB s 1|x
         a< -ERR 'Permissions Violation for Publish to \"s\"'",
    );
    broker.administer("other", Request::DeleteVhost { name: "/".to_owned() });
    assert!(!broker.is_connected("a"));
    assert!(!broker.is_connected("b"));
    for node in &broker.nodes {
        assert_eq!(node.engine().list_vhosts().count(), 1);
    }
    broker.administer("other", Request::DeleteUser { name: "user".to_owned() });
    for node in &broker.nodes {
        assert_eq!(node.engine().list_users().count(), 0);
    }
}

#[test]
fn what_is_deleted_is_left_by_all_who_use_it_at_once() {
    let vhost = || Request::DeleteVhost { name: "/".to_owned() };
    let user = || Request::DeleteUser { name: "user".to_owned() };
    for (shards, delete) in [(1, vhost()), (1, user()), (3, vhost()), (3, user())] {
        let what = format!("{shards} {delete:?}");
        let mut broker = Broker::new(shards);
        broker.administer("/", Request::CreateVhost { name: "other".to_owned() });
        let names = ["a", "b", "c"];
        for (shard, name) in names.into_iter().enumerate() {
            broker.connect(name, shard);
            broker.say(name, "SUB s 1\r\n");
        }
        broker.administer("other", delete);
        for name in names {
            assert!(!broker.is_connected(name), "{what} {name}");
        }
        for (shard, name) in names.into_iter().enumerate() {
            broker.connect(name, shard);
            assert!(!broker.is_connected(name), "{what} {name}");
        }
    }
}

/// What every client hears in a random course of events that is the same for any number of shards.
fn heard_by_all(shards: usize, seed: u64) -> Vec<String> {
    const CLIENTS: usize = 12;
    let patterns = ["a", "a.b", "a.*", "*.b", "a.>", ">", "b.*.c", "*.*.c"];
    let subjects = ["a", "b", "a.b", "a.c", "c.b", "b.x.c", "a.x.c"];
    let mut state = seed;
    let mut draw = |below: usize| {
        // Numbers of a linear congruential generator (Knuth, MMIX); the upper bits are random enough.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut broker = Broker::new(shards);
    let names: Vec<String> = (0..CLIENTS).map(|client| format!("c{client}")).collect();
    for (at, name) in names.iter().enumerate() {
        broker.connect(name, at * 7);
    }
    for number in 0..300 {
        let name = &names[draw(CLIENTS)];
        let sid = draw(3);
        let text = match draw(4) {
            0 => format!("SUB {} {sid}\r\n", patterns[draw(patterns.len())]),
            1 => format!("UNSUB {sid}\r\n"),
            2 => format!("UNSUB {sid} {}\r\n", draw(5) + 1),
            _ => {
                let subject = subjects[draw(subjects.len())];
                format!("PUB {subject} 3\r\n{number:03}\r\n")
            }
        };
        broker.say(name, &text);
    }
    names.iter().map(|name| sorted(&broker.heard(name))).collect()
}

/// Messages in order of their numbers: those of one publish have no order among themselves.
fn sorted(heard: &str) -> String {
    let lines: Vec<&str> = heard.lines().collect();
    let mut messages: Vec<_> = lines.chunks(2).map(|message| (message[1], message[0])).collect();
    messages.sort_unstable();
    messages.iter().map(|(number, line)| format!("{line} {number}\n")).collect()
}

#[test]
fn any_number_of_shards_is_one_broker() {
    for seed in 0..6 {
        let alone = heard_by_all(1, seed);
        assert!(alone.iter().any(|heard| !heard.is_empty()));
        for shards in [2, 5, 16, 64] {
            assert_eq!(heard_by_all(shards, seed), alone, "{shards} shards, seed {seed}");
        }
    }
}

#[test]
fn clients_are_told_the_numbers_by_which_operators_know_them() {
    for shards in [1, 3] {
        let mut broker = Broker::new(shards);
        let connect = |broker: &mut Broker, at: usize| -> u64 {
            let info = broker.connect(&format!("c{at}"), at);
            let (_, rest) = info.split_once("\"client_id\":").expect("INFO names it");
            rest[..rest.find([',', '}']).unwrap()].parse().unwrap()
        };
        let told: BTreeSet<u64> = (0..6).map(|at| connect(&mut broker, at)).collect();
        assert_eq!(told.len(), 6, "{shards}");
        assert_eq!(told, broker.listed(), "{shards}");
        // Who asks for the end of one that has gone meanwhile does not end another.
        broker.disconnect("c2");
        let gone = told.difference(&broker.listed()).copied().next().unwrap();
        assert!(!told.contains(&connect(&mut broker, 8)), "{shards}");
        assert_eq!(broker.nodes[shard_of(gone, shards)].connection_of(gone), None, "{shards}");
    }
}

#[test]
fn news_on_their_way_to_a_late_shard_are_bounded() {
    let mut broker = Broker::new(2);
    broker.play(
        "a@0> PING
         a< PONG",
    );
    broker.holds = true;
    let both = "SUB some.subject.or.other 1\r\nUNSUB 1\r\n".repeat(100);
    let mut said = 0;
    while broker.is_read("a") && said < 100_000 {
        broker.send("a", &both);
        while broker.turn() && broker.nodes[0].has_work() {}
        said += 200;
    }
    assert!((4_000..10_000).contains(&said), "{said} SUB and UNSUB");
    // When that shard has taken them, the client goes on.
    broker.holds = false;
    broker.play(
        "a> PING
         a< PONG",
    );
    assert!(broker.is_read("a"));
}
