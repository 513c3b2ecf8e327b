//! Queries of clients about the connections of their virtual host.

use super::broker::Broker;

/// A broker with clients `c0` to `c5`, each on the shard of its number, that listen to `all` and to a subject
/// of their own, and have each published as many messages to `all` as their number says.
fn six(shards: usize) -> Broker {
    let mut broker = Broker::new(shards);
    for at in 0..6 {
        let name = format!("c{at}");
        broker.connect(&name, at);
        broker.say(&name, &format!("SUB all 1\r\nSUB own.{at}.* 2\r\nSUB me{at} 3\r\n"));
    }
    for at in 0..6 {
        broker.say(&format!("c{at}"), &"PUB all 1\r\nx\r\n".repeat(at));
    }
    for at in 0..6 {
        broker.heard(&format!("c{at}"));
    }
    broker
}

/// What a client hears that asks with such options, and for a PONG after that.
fn ask(broker: &mut Broker, at: usize, options: &str) -> String {
    let name = format!("c{at}");
    let bytes = options.len();
    let ask = format!("PUB $SYS.REQ.SERVER.PING.CONNZ me{at} {bytes}\r\n{options}\r\nPING\r\n");
    broker.say(&name, &ask);
    let heard = broker.heard(&name);
    let lines: Vec<_> = heard.lines().collect();
    assert!(lines[0].starts_with(&format!("MSG me{at} 3 ")), "{heard}");
    assert!(lines[2] == "PONG" && broker.is_read(&name), "{heard}");
    lines[1].to_owned()
}

/// The numbers behind a member's name, in their order.
fn numbers(answer: &str, name: &str) -> Vec<u64> {
    let name = format!("\"{name}\":");
    let parts = answer.split(&name).skip(1);
    let digits = |part: &str| part.split(|it: char| !it.is_ascii_digit()).next().map(str::to_owned);
    parts.filter_map(digits).map(|digits| digits.parse().expect("a number")).collect()
}

#[test]
fn connections_of_all_shards_are_told_in_one_answer() {
    for shards in [1, 2, 5] {
        let mut broker = six(shards);
        let listed: Vec<u64> = broker.listed().into_iter().collect();
        for at in 0..6 {
            let answer = ask(&mut broker, at, "{\"subscriptions\":true}");
            assert_eq!(numbers(&answer, "cid"), listed, "{shards}");
            assert_eq!(numbers(&answer, "total"), [6], "{shards}");
            assert_eq!(numbers(&answer, "subscriptions"), [3; 6], "{shards}");
            for own in 0..6 {
                let list = format!("[\"all\",\"me{own}\",\"own.{own}.*\"]");
                assert!(answer.contains(&list), "{shards}: {answer}");
            }
            // They have all heard 15 messages, and some of them an answer.
            let mut sent = numbers(&answer, "out_msgs");
            sent.sort_unstable();
            let expected: Vec<u64> = (0..6).map(|it| 15 + u64::from(it >= 6 - at)).collect();
            assert_eq!(sent, expected, "{shards}");
        }
    }
}

#[test]
fn a_survey_says_which_connections_are_meant_and_in_which_order() {
    for shards in [1, 2, 5] {
        let mut broker = six(shards);
        for (options, received) in [
            ("{\"sort\":\"msgs_from\",\"limit\":3}", vec![6, 4, 3]),
            ("{\"sort\":\"msgs_from\",\"limit\":9,\"offset\":4}", vec![1, 0]),
            ("{\"filter_subject\":\"own.4.x\"}", vec![4]),
            ("{\"filter_subject\":\"own.*.>\",\"sort\":\"msgs_from\",\"limit\":1}", vec![9]),
            ("{\"filter_subject\":\"nobody\"}", vec![]),
            ("{\"user\":\"other\"}", vec![]),
        ] {
            let answer = ask(&mut broker, 5, options);
            // The one that asks has published that, each time.
            assert_eq!(numbers(&answer, "in_msgs"), received, "{shards}: {options}");
        }
    }
}

#[test]
fn who_has_asked_and_gone_is_not_answered_and_nobody_in_its_place() {
    let mut broker = six(2);
    broker.play("hold");
    broker.say("c1", "PUB $SYS.REQ.SERVER.PING.CONNZ me1 0\r\n\r\nPUB all 1\r\nx\r\n");
    assert!(!broker.is_read("c1"));
    broker.disconnect("c1");
    broker.play("carry");
    broker.connect("next", 1);
    broker.say("next", "SUB > 1\r\nPING\r\n");
    assert_eq!(broker.heard("next").lines().next(), Some("PONG"));
    // What it had said behind that is not said any more.
    assert_eq!(broker.heard("c0"), "");
}

#[test]
fn nobody_waits_for_a_survey_of_very_many() {
    for shards in [1, 2] {
        let mut broker = Broker::new(shards);
        for at in 0..3_000 {
            broker.connect(&format!("c{at}"), 0);
        }
        broker.say("c0", "SUB me 1\r\n");
        broker.heard("c0");
        broker.send("c0", "PUB $SYS.REQ.SERVER.PING.CONNZ me 0\r\n\r\n");
        broker.turn();
        // What others ask meanwhile is answered.
        broker.heard("c1");
        broker.send("c1", "PING\r\n");
        broker.turn();
        assert_eq!(broker.heard("c1"), "PONG\r\n", "{shards}");
        assert_eq!(broker.heard("c0"), "", "{shards}");
        // One that was seen goes, and another client has its slot.
        broker.replace("c900", "other");
        broker.settle_down();
        let answer = broker.heard("c0");
        assert_eq!(numbers(&answer, "total"), [3_000], "{shards}");
        let listed = numbers(&answer, "cid");
        assert_eq!(listed.len(), 1_023, "{shards}");
        assert!(listed.is_sorted() && broker.listed().is_superset(&listed.into_iter().collect()));
    }
}
