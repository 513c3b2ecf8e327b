//! Logs, in which a message for many detached sessions is stored once.

use super::sessions::host_with;
use super::{TestHost, check_in};
use crate::interface::limits::Limits;
use crate::storage::record::Record;

fn limits() -> Limits {
    Limits { log_shared_by: 1, ..Limits::default() }
}

/// Runs a scenario in which one binding is enough for a log.
fn check(scenario: &str) -> TestHost {
    check_with(limits(), scenario)
}

fn check_with(limits: Limits, scenario: &str) -> TestHost {
    let mut host = host_with(limits);
    host.fx.shows_places = true;
    for line in ["login c ann", "login d ann"] {
        host.run(line);
    }
    check_in(host, scenario)
}

/// Claims session `name` on a channel, with bindings, and consumes.
fn begin(channel: &str, name: &str, patterns: &[&str]) -> String {
    let bind = |pattern: &&str| format!("{channel} bind amq.topic amq.session-{name} {pattern}\n");
    let bindings: String = patterns.iter().map(bind).collect();
    let answers = format!("> {channel} ok\n").repeat(patterns.len());
    format!(
        "{channel} claim {name} expiry=- recorded queue
         flush
         > {channel} session {name} new expiry=never queue=amq.session-{name}
         {bindings}
         flush
         {answers}
         {}",
        consume(channel, name)
    )
}

fn consume(channel: &str, name: &str) -> String {
    format!(
        "{channel} consume amq.session-{name} t granted on-close=release on-loss=release
         > {channel} consuming t
         {channel} grant t 1000000"
    )
}

/// Claims a session that is there; what it is sent follows.
fn resume(channel: &str, name: &str) -> String {
    format!(
        "login {channel} ann
         {channel} claim {name} expiry=- recorded queue
         flush
         > {channel} session {name} resumed expiry=never queue=amq.session-{name}
         {}",
        consume(channel, name)
    )
}

/// Whether a line of a scenario is an input, and no effect.
fn is_input(line: &str) -> bool {
    !line.trim().is_empty() && !line.trim().starts_with('>')
}

/// How many places each message has in the journal.
fn places(host: &TestHost) -> Vec<usize> {
    let records = host.fx.records.iter().filter_map(|record| match Record::parse(record) {
        Ok(Record::Published { places, .. }) => Some(places.len()),
        _ => None,
    });
    records.collect()
}

fn logs(host: &TestHost) -> usize {
    host.engine.queues.iter().filter(|(_, queue)| queue.options.is_log).count()
}

#[test]
fn a_message_for_detached_sessions_is_stored_once() {
    let (s, t) = (begin("c", "s", &["a.*"]), begin("d", "t", &["a.*"]));
    let (again_s, again_t) = (resume("c", "s"), resume("d", "t"));
    let host = check(&format!(
        "{s}\n{t}
         a publish amq.topic a.1 one persistent
         > c deliver t #1 one @1
         > d deliver t #1 one @1
         c accept 1
         d accept 1
         c disconnect
         d disconnect
         a publish amq.topic a.1 two persistent
         a publish amq.topic a.2 three persistent
         {again_s}
         > c deliver t #1 two @2
         > c deliver t #2 three @3
         a publish amq.topic a.2 four persistent
         > c deliver t #3 four @4
         {again_t}
         > d deliver t #1 two @2
         > d deliver t #2 three @3
         > d deliver t #3 four @4
         a publish amq.topic a.2 five persistent
         > c deliver t #4 five @5
         > d deliver t #4 five @5"
    ));
    // While one of them is detached, the log and the other's queue.
    assert_eq!(places(&host), [2, 1, 1, 2, 2]);
    assert_eq!(logs(&host), 0, "a log without sessions");
}

#[test]
fn very_many_sessions_cost_as_much_as_few() {
    let mut host = host_with(Limits::default());
    host.fx.quiet = true;
    host.run("login c ann");
    let count = 2_000;
    for number in 0..count {
        host.act_on(&format!("c claim s{number} expiry=- recorded queue"));
        host.act_on(&format!("c bind amq.topic amq.session-s{number} a.#"));
        host.act_on(&format!("c detach s{number}"));
    }
    host.run("flush");
    assert_eq!(logs(&host), 1);
    let before: usize = host.fx.records.iter().map(Vec::len).sum();
    for _ in 0..100 {
        host.act_on("a publish amq.topic a.1 message persistent");
    }
    let after: usize = host.fx.records.iter().map(Vec::len).sum();
    // The first ones had nobody to share with, and went to the log as soon as there was one.
    assert!((after - before) / 100 < 300, "{} bytes a message", (after - before) / 100);
    let held: Vec<usize> = places(&host);
    assert!(held.iter().all(|places| *places < 5), "{held:?}");
}

#[test]
fn few_sessions_keep_their_own_queues() {
    let host = check_with(Limits::default(), &(begin("c", "s", &["a.*"]) + "\nc disconnect"));
    assert_eq!(logs(&host), 0);
}

#[test]
fn overlapping_patterns_give_one_copy_in_the_order_of_arrival() {
    let (s, t) = (begin("c", "s", &["a.*", "a.1", "b"]), begin("d", "t", &["a.1"]));
    let again = resume("c", "s");
    check(&format!(
        "{s}\n{t}
         c disconnect
         d disconnect
         a publish amq.topic a.1 1 persistent
         a publish amq.topic b 2 persistent
         a publish amq.topic a.2 3
         a publish amq.topic c 4 persistent
         a publish amq.topic a.1 5 persistent
         {again}
         > c deliver t #1 1 @1
         > c deliver t #2 2 @2
         > c deliver t #3 3 @3
         > c deliver t #4 5 @4"
    ));
}

#[test]
fn what_one_was_sent_before_it_left_comes_first() {
    let (s, again) = (begin("c", "s", &["a"]), resume("c", "s"));
    check(&format!(
        "{s}
         a publish amq.topic a 1 persistent
         > c deliver t #1 1 @1
         c disconnect
         a publish amq.topic a 2 persistent
         {again}
         > c deliver t #1 1 @1 redelivered
         > c deliver t #2 2 @2"
    ));
}

#[test]
fn bindings_may_change_meanwhile() {
    let (s, again) = (begin("c", "s", &["a", "b"]), resume("c", "s"));
    check(&format!(
        "{s}
         c disconnect
         a publish amq.topic a 1 persistent
         a unbind amq.topic amq.session-s a
         > a ok
         a publish amq.topic a 2 persistent
         a bind amq.topic amq.session-s c.*
         > a ok
         a publish amq.topic c.1 3 persistent
         a publish amq.topic b 4 persistent
         a bind amq.topic amq.session-s a
         > a ok
         a publish amq.topic a 5 persistent
         {again}
         > c deliver t #1 1 @1
         > c deliver t #2 3 @2
         > c deliver t #3 4 @3
         > c deliver t #4 5 @4
         a publish amq.topic c.1 6 persistent
         > c deliver t #5 6 @5
         a publish amq.topic a 7 persistent
         > c deliver t #6 7 @6"
    ));
}

#[test]
fn what_may_not_be_read_any_more_is_not_sent() {
    let (s, again) = (begin("c", "s", &["a"]), resume("c", "s"));
    let host = check(&format!(
        "{s}
         c disconnect
         a publish amq.topic a 1 persistent
         a permit ann .* .* ^amq[.]session
         > a ok
         flush
         {again}
         a publish amq.topic a 2 persistent"
    ));
    assert_eq!(logs(&host), 0);
}

#[test]
fn a_log_goes_with_its_last_session() {
    for ends in ["time 2000", "a delete-user ann", "c claim s queue fresh recorded expiry=-"] {
        let s = begin("c", "s", &["a", "b"]);
        let mut host = check(&format!("{s}\nc detach s expiry=1000\nflush\n> c ok"));
        host.run("a publish amq.topic a 1 persistent");
        assert_eq!(logs(&host), 2, "{ends}");
        host.run(ends);
        host.run("flush");
        assert_eq!(logs(&host), 0, "{ends}");
        for how in ["restart", "restart clean"] {
            host.run(how);
            assert_eq!(logs(&host), 0, "{ends}");
        }
    }
}

#[test]
fn a_log_is_bounded_as_the_queues_of_its_sessions_are() {
    let again = resume("c", "s");
    check(&format!(
        "c claim s expiry=- recorded queue length=2
         flush
         > c session s new expiry=never queue=amq.session-s
         c bind amq.topic amq.session-s a
         flush
         > c ok
         c disconnect
         a publish amq.topic a 1 persistent
         a publish amq.topic a 2 persistent
         a publish amq.topic a 3 persistent
         {again}
         > c deliver t #1 2 @1 dropped=1
         > c deliver t #2 3 @2"
    ));
    let again = resume("c", "s");
    check(&format!(
        "c claim s expiry=- recorded queue length=2 overflow=reject
         flush
         > c session s new expiry=never queue=amq.session-s
         c bind amq.topic amq.session-s a
         flush
         > c ok
         c disconnect
         a confirms
         > a ok
         a publish amq.topic a 1 persistent
         a publish amq.topic a 2 persistent
         a publish amq.topic a 3 persistent
         > a nack 3
         flush
         > a confirm 2 multiple
         {again}
         > c deliver t #1 1 @1
         > c deliver t #2 2 @2"
    ));
}

#[test]
fn a_session_that_comes_back_takes_no_more_than_its_queue_may_have() {
    for bound in ["length=2", "bytes=8"] {
        let again = resume("c", "s");
        check(&format!(
            "c claim s expiry=- recorded queue {bound}
             flush
             > c session s new expiry=never queue=amq.session-s
             c bind amq.topic amq.session-s a
             c bind amq.topic amq.session-s b
             flush
             > c ok
             > c ok
             c disconnect
             a publish amq.topic a four persistent
             a publish amq.topic b 4444 persistent
             a publish amq.topic a more persistent
             a publish amq.topic b less persistent
             {again}
             > c deliver t #1 four @1
             > c deliver t #2 4444 @2
             > c deliver t #3 more @3
             > c deliver t #4 less @4"
        ));
    }
}

#[test]
fn bounds_of_a_session_may_change_while_it_is_away() {
    let (s, again) = (begin("c", "s", &["a", "b"]), resume("c", "s"));
    let mut host = check(&format!("{s}\nc disconnect"));
    for (_, queue) in host.engine.queues.iter_mut().filter(|(_, queue)| queue.own.is_some()) {
        queue.options.length_max = Some(100);
    }
    check_in(
        host,
        &format!(
            "a publish amq.topic a 1 persistent
             a unbind amq.topic amq.session-s a
             > a ok
             a publish amq.topic a 2 persistent
             a publish amq.topic b 3 persistent
             {again}
             > c deliver t #1 1 @1
             > c deliver t #2 3 @2"
        ),
    );
}

#[test]
fn what_has_expired_is_not_sent() {
    let (s, again) = (begin("c", "s", &["a"]), resume("c", "s"));
    check(&format!(
        "{s}
         c disconnect
         a publish amq.topic a 1 persistent
         a publish amq.topic a 2 persistent ttl=1000
         a publish amq.topic a 3 persistent ttl=5000
         time 2000
         {again}
         > c deliver t #1 1 @1
         > c deliver t #2 3 @2 ttl=3s"
    ));
}

#[test]
fn nobody_else_uses_a_log() {
    let mut host = check(&(begin("c", "s", &["a"]) + "\nc disconnect"));
    let log = host.engine.queues.iter().find(|(_, queue)| queue.options.is_log);
    let name = log.map(|(_, queue)| queue.name.clone()).unwrap();
    for line in ["delete NAME", "purge NAME", "get NAME", "consume NAME t", "bind amq.topic NAME x"]
    {
        let answer = host.run(&format!("a {}", line.replace("NAME", &name)));
        assert!(answer[0].starts_with("a refused ResourceLocked"), "{line}: {answer:?}");
    }
}

/// Loses the last records of what happens between a session's detach and its return, one more each time: what
/// was published in records that are left comes, in order and without gaps.
#[test]
fn what_is_stored_comes_after_a_crash_at_any_record() {
    for checkpoint in ["", "checkpoint", "snapshot"] {
        for lose in 0..60 {
            let limits = Limits {
                page_entries: 4,
                queue_resident_bytes_max: 300,
                snapshot_at_once: 2,
                ..limits()
            };
            let s = begin("c", "s", &["a.*", "a.1"]);
            let mut host = check_with(limits, &format!("{s}\n{}", begin("d", "t", &["a.1"])));
            host.fx.quiet = true;
            for line in ["c disconnect", "d disconnect"] {
                host.run(line);
            }
            for number in 1..=20 {
                host.run(&format!("a publish amq.topic a.{} m{number} persistent", number % 3));
                if number == 10 && !checkpoint.is_empty() {
                    host.run(checkpoint);
                }
            }
            let returns = |channel: &str, name: &str| {
                let lines = resume(channel, name);
                let lines = lines.lines().map(|line| line.trim().to_owned());
                lines.filter(|line| is_input(line)).collect::<Vec<String>>()
            };
            for line in returns("c", "s") {
                host.run(&line);
            }
            let all = host.fx.records.len();
            host.run(&format!("restart lose={lose}"));
            let kept: Vec<String> = host.fx.records[..all.saturating_sub(lose).max(host.flushed)]
                .iter()
                .filter_map(|record| match Record::parse(record) {
                    Ok(Record::Published { message, .. }) => {
                        let body =
                            crate::queue::stored::Stored::parse(message).unwrap().content.body;
                        Some(String::from_utf8(body.to_vec()).unwrap())
                    }
                    _ => None,
                })
                .collect();
            for (channel, name, only) in [("c", "s", None), ("d", "t", Some(1))] {
                host.fx.delivered.clear();
                for line in returns(channel, name) {
                    host.run(&line);
                }
                // It gets as much at a time as there is memory for.
                let mut sent = Vec::new();
                while let Some((_, tag, ..)) = host.fx.delivered.last().cloned() {
                    sent.extend(host.fx.delivered.drain(..).map(|it| it.2));
                    host.run(&format!("{channel} accept {tag} multiple"));
                }
                let number = |body: &String| body[1..].parse::<u64>().unwrap();
                let is_its = |body: &&String| only.is_none_or(|key| number(body) % 3 == key);
                let expected: Vec<String> = kept.iter().filter(is_its).cloned().collect();
                assert_eq!(sent, expected, "{name} after losing {lose}, {checkpoint}");
            }
        }
    }
}

#[test]
fn damaged_pages_are_made_anew_or_named() {
    for (repair, is_searched) in [("", true), ("repair drop", false)] {
        let limits = Limits { page_entries: 4, queue_resident_bytes_max: 100, ..limits() };
        let mut host = check_with(limits, &(begin("c", "s", &["a"]) + "\nc disconnect"));
        host.fx.quiet = true;
        for number in 1..=40 {
            host.run(&format!("a publish amq.topic a m{number} persistent"));
        }
        host.run("damage pages");
        if !is_searched {
            for number in 9..=12 {
                host.run(&format!("damage m{number}"));
            }
            host.run(repair);
        }
        for line in resume("c", "s").lines().filter(|line| is_input(line)) {
            host.run(line.trim());
        }
        let expected: Vec<String> = (1..=40)
            .filter(|number| is_searched || !(9..=12).contains(number))
            .map(|number| format!("m{number}"))
            .collect();
        let sent: Vec<String> = host.fx.delivered.iter().map(|it| it.2.clone()).collect();
        assert_eq!(sent, expected);
        let lost: u64 = host.engine.take_given_up().iter().map(|gone| gone.messages).sum();
        assert_eq!(lost, if is_searched { 0 } else { 4 });
    }
}

#[test]
fn wide_publishes_reach_a_session_once() {
    let limits = Limits { queues_at_once: 4, ..limits() };
    let mut host = host_with(limits);
    host.fx.quiet = true;
    for line in ["login c ann", "login d ann"] {
        host.run(line);
    }
    for number in 0..20 {
        host.run(&format!("a queue q{number}"));
        host.run(&format!("a bind amq.topic q{number} a.*"));
    }
    let s = begin("c", "s", &["a.*", "a.1"]);
    for line in s.lines().filter(|line| is_input(line)) {
        host.run(line.trim());
    }
    host.act_on("a publish amq.topic a.1 m1 persistent");
    host.act_on("c disconnect");
    host.run("a publish amq.topic a.1 m2 persistent");
    host.act_on("a publish amq.topic a.1 m3 persistent");
    for line in resume("c", "s").lines().filter(|line| is_input(line)) {
        host.run(line.trim());
    }
    host.run("a publish amq.topic a.1 m4 persistent");
    let sent: Vec<&str> = host.fx.delivered.iter().map(|it| it.2.as_str()).collect();
    assert_eq!(sent, ["m1", "m2", "m3", "m4"]);
}

#[test]
fn what_waits_goes_with_a_purge_of_the_sessions_queue() {
    let (s, t) = (begin("c", "s", &["a", "b"]), begin("d", "t", &["a"]));
    let (again_s, again_t) = (resume("c", "s"), resume("d", "t"));
    check(&format!(
        "{s}\n{t}
         c disconnect
         d disconnect
         a publish amq.topic a 1 persistent
         a unbind amq.topic amq.session-s b
         > a ok
         a purge amq.session-s
         > a messages 0
         a publish amq.topic a 2 persistent
         restart
         flush
         {again_s}
         > c deliver t #1 2 @1
         {again_t}
         > d deliver t #1 1 @1
         > d deliver t #2 2 @2"
    ));
}

/// It was unbound while its user might hear it: what had come by then waits on.
#[test]
fn what_may_not_be_heard_any_more_is_let_go_of_where_its_binding_is_gone() {
    let (s, again) = (begin("c", "s", &["a", "b"]), resume("c", "s"));
    let limits = Limits { log_shared_by: 1, ..Limits::default() };
    let mut host = check_with(
        limits,
        &format!(
            "{s}
             c disconnect
             a publish amq.topic b 1 persistent
             a unbind amq.topic amq.session-s b
             > a ok"
        ),
    );
    host.run("a permit ann .* .* ^amq[.]session");
    host.run("flush");
    host.fx.delivered.clear();
    for line in again.lines().filter(|line| is_input(line)) {
        host.run(line.trim());
    }
    assert!(host.fx.delivered.is_empty(), "{:?}", host.fx.delivered);
}

#[test]
fn logs_count_for_a_user_whose_stored_bytes_are_bounded() {
    let s = begin("c", "s", &["a"]);
    let again = resume("c", "s");
    let mut host = check(&format!(
        "a quota ann stored-bytes=8
         > a ok
         flush
         {s}
         c disconnect
         a publish amq.topic a four persistent
         a publish amq.topic a 4567 persistent
         a publish amq.topic a more persistent
         > a refused LimitExceeded: the quota of stored bytes (8) of user 'ann' is reached"
    ));
    let owned = host.engine.list_users().find(|user| user.name == "ann");
    let owned = owned.map(|user| (user.queues, user.stored_bytes));
    assert_eq!(owned, Some((1, 8)), "a log is no queue of its own");
    // Its log is found again, whatever the quota is by then.
    host.run("a quota ann");
    for how in ["restart", "restart clean"] {
        host.run(how);
        assert_eq!(logs(&host), 1, "{how}");
    }
    check_in(
        host,
        &format!(
            "{again}
             > c deliver t #1 four @1
             > c deliver t #2 4567 @2"
        ),
    );
}
