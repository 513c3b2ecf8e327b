//! Retained messages: what stays behind, who is shown it, and that nothing that happens to the broker
//! changes it.

use super::host::Words;
use super::{TestHost, check, check_in};
use crate::interface::limits::Limits;
use crate::{Replay, Request};

/// `replay NAME KEY session note=TEXT`, `end-replay NAME`.
pub(super) fn request(words: &Words<'_>) -> Request {
    let name = words.0[1].to_owned();
    if words.0[0] == "end-replay" {
        return Request::EndReplay { name };
    }
    Request::Replay(Box::new(Replay {
        name,
        key: words.0[2].to_owned(),
        through_session: words.has("session"),
        note: words.value("note").unwrap_or_default().to_owned().into(),
    }))
}

/// A host that keeps no retained message in memory.
fn forgetful() -> TestHost {
    TestHost::with(Limits { resident_bytes_max: 0, ..Limits::default() })
}

/// The same whether or not messages are in memory.
#[track_caller]
fn check_both(scenario: &str) {
    check(scenario);
    check_in(forgetful(), scenario);
}

#[test]
fn the_last_message_of_a_subject_is_shown_to_who_comes_later() {
    check_both(
        "a publish amq.topic a.b one retain
         a publish amq.topic a.b two retain
         a publish amq.topic a.c three
         a publish amq.topic d four retain persistent
         b replay r a.#
         > b ok
         > b deliver r #1 two
         b replay r #
         > b ok
         > b deliver r #2 two
         > b deliver r #3 four
         b replay s d
         > b ok
         > b deliver s #4 four
         b replay s a.*.x
         > b ok
         b replay s a.#.x
         > b refused PreconditionFailed: 'a.#.x' has '#' elsewhere than at its end",
    );
}

#[test]
fn one_without_payload_takes_it_away() {
    check_both(
        "a publish amq.topic k one retain
         a publish amq.topic k '' retain
         a publish amq.topic k '' retain
         b replay r #
         > b ok
         a publish amq.topic k two retain
         restart
         b replay r #
         > b ok
         > b deliver r #1 two
         a publish amq.topic k '' retain
         restart
         b replay r #
         > b ok",
    );
}

#[test]
fn only_the_exchange_of_subjects_retains() {
    check_both(
        "a queue q
         > a queue q 0 0
         a exchange x topic
         > a ok
         a publish - q one retain
         a publish x k one retain
         a replay r #
         > a ok",
    );
}

#[test]
fn what_was_emitted_is_retained_alone() {
    check_both(
        "a confirms
         > a ok
         b subscribe k s
         a publish amq.topic k one retain-only
         b replay r k
         > b ok
         > b deliver r #1 one",
    );
}

#[test]
fn a_confirm_says_that_it_is_safe() {
    check_both(
        "a confirms explained
         > a ok
         a publish amq.topic k one retain mandatory
         flush
         > a confirm 1
         a publish amq.topic k '' retain mandatory
         flush
         > a confirm 2
         a publish amq.topic k '' retain
         > a confirm 3
         a queue q durable
         > a queue q 0 0
         a bind amq.topic q k
         > a ok
         a publish amq.topic k two retain persistent
         flush
         > a confirm 4",
    );
}

#[test]
fn it_lasts_over_restarts_of_all_kinds() {
    for how in
        ["restart", "restart clean", "restart killed", "checkpoint\nrestart", "snapshot\nrestart"]
    {
        for change in
            ["", "a publish amq.topic a.b new retain", "a publish amq.topic a.b '' retain"]
        {
            let mut host = forgetful();
            for at in 0..40 {
                host.run(&format!("a publish amq.topic n.{at} {at} retain"));
            }
            host.run("a publish amq.topic a.b old retain persistent");
            let (before, after) = how.split_once('\n').unwrap_or(("", how));
            if !before.is_empty() {
                host.run(before);
            }
            if !change.is_empty() {
                host.run(change);
            }
            host.run(after);
            host.run("restart");
            let mut shown = host.run("b replay r a.#");
            shown.remove(0);
            let expected = match change {
                "" => vec!["b deliver r #1 old"],
                change if change.contains("new") => vec!["b deliver r #1 new"],
                _ => vec![],
            };
            assert_eq!(shown, expected, "{how} {change}");
            assert_eq!(host.run("c replay r n.#").len(), 41, "{how} {change}");
        }
    }
}

#[test]
fn a_snapshot_over_several_turns_says_how_it_was_at_its_beginning() {
    let mut host = forgetful();
    host.set_snapshot_at_once(1);
    for at in 0..10 {
        host.run(&format!("a publish amq.topic n.{at} old retain"));
    }
    host.run("checkpoint");
    for at in (0..10).step_by(2) {
        host.run(&format!("a publish amq.topic n.{at} new retain"));
        host.run(&format!("a publish amq.topic n.{} '' retain", at + 1));
        host.run(&format!("a publish amq.topic m.{at} new retain"));
    }
    host.run("restart");
    let shown = host.run("b replay r #");
    assert_eq!(shown.len(), 11, "{shown:?}");
    assert!(shown[1..].iter().all(|line| line.ends_with("new")), "{shown:?}");
}

#[test]
fn it_is_moved_out_of_segments_that_are_given_back() {
    let mut host = forgetful();
    for at in 0..40 {
        host.run(&format!("a publish amq.topic n.{at} {at} retain"));
    }
    for at in (0..40).filter(|at| at % 8 > 0) {
        host.run(&format!("a publish amq.topic n.{at} '' retain"));
    }
    host.run("checkpoint");
    for segment in 1..4 {
        host.run(&format!("relocate {segment}"));
        assert!(!host.fx.references.contains_key(&segment), "{:?}", host.fx.references);
    }
    for restart in ["", "restart", "restart"] {
        if !restart.is_empty() {
            host.run(restart);
        }
        assert_eq!(host.run("b replay r n.#").len(), 6);
    }
}

#[test]
fn a_replay_goes_on_as_the_connection_takes_it() {
    for mut host in [TestHost::new(), forgetful()] {
        for at in 0..300 {
            host.run(&format!("a publish amq.topic n.{at:04} {at} retain"));
        }
        host.run("room b off");
        assert_eq!(host.run("b replay r #"), ["b ok"]);
        assert_eq!(host.run("c replay r #").len(), 301, "others are not held up");
        assert_eq!(host.run("room b").len(), 300);
        host.run("room d off");
        assert_eq!(host.run("d replay r #"), ["d ok"]);
        assert_eq!(host.run("d end-replay r"), ["d ok"]);
        assert!(host.run("room d").is_empty());
        host.run("room e off");
        host.run("e replay r #");
        host.run("e close");
        assert!(host.run("room e").is_empty());
    }
}

#[test]
fn what_is_retained_later_is_not_replayed_and_nothing_old_comes_after_it() {
    let mut host = forgetful();
    host.run("a publish amq.topic k1 old retain");
    host.run("a publish amq.topic k2 old retain");
    host.run("loads hold");
    assert_eq!(host.run("b replay r #"), ["b ok"]);
    host.run("a publish amq.topic k2 new retain");
    host.run("a publish amq.topic k3 new retain");
    assert_eq!(host.run("loads"), ["b deliver r #1 old"]);
}

#[test]
fn one_that_moves_while_it_is_read_is_read_again() {
    let mut host = forgetful();
    host.run("a publish amq.topic k one retain");
    host.run("loads hold");
    assert_eq!(host.run("b replay r #"), ["b ok"]);
    host.run("relocate 1");
    host.fx.loads.swap(0, 1);
    host.run("load");
    host.fx.damaged.insert(0);
    assert_eq!(host.run("loads"), ["b deliver r #1 one"]);
    assert_eq!(host.engine.counters.unreadable, 0);
}

#[test]
fn one_that_cannot_be_read_is_passed_over() {
    let mut host = forgetful();
    for at in 10..20 {
        host.run(&format!("a publish amq.topic n.{at} {at} retain"));
    }
    host.run("damage 15");
    assert_eq!(host.run("b replay r #").len(), 10);
    assert_eq!(host.engine.counters.unreadable, 1);
    host.run("repair drop");
    assert_eq!(host.run("b replay r #").len(), 10);
    assert_eq!((host.engine.counters.given_up, host.engine.retained().0), (1, 9));
}

#[test]
fn time_to_live_counts_on_and_ends_it() {
    let scenario = "
         places
         a publish amq.topic k one retain ttl=1000
         a publish amq.topic l two retain
         time 400
         b replay r #
         > b ok
         > b deliver r #1 one @0 ttl=600ms
         > b deliver r #2 two @0
         time 300
         restart
         b replay r #
         > b ok
         > b deliver r #1 one @0 ttl=300ms
         > b deliver r #2 two @0
         time 300
         b replay r #
         > b ok
         > b deliver r #3 two @0
         restart
         b replay r #
         > b ok
         > b deliver r #1 two @0";
    let mut host = TestHost::new();
    host.fx.shows_places = true;
    let scenario = scenario.replace("places\n", "\n");
    let host = check_in(host, &scenario);
    assert_eq!(host.engine.retained().0, 1);
}

#[test]
fn limits_hold() {
    let limits = Limits { retained_max: 2, retained_bytes_max: 200, ..Limits::default() };
    let mut host = TestHost::with(limits);
    host.fx.explains = true;
    for line in [
        "a confirms explained",
        "a publish amq.topic k1 one retain",
        "a publish amq.topic k2 one retain",
    ] {
        host.run(line);
    }
    let refused = host.run("a publish amq.topic k3 one retain");
    assert_eq!(refused, ["a nack 3: LimitExceeded 2 messages are retained, as many as may be"]);
    let large = "x".repeat(200);
    let refused = host.run(&format!("a publish amq.topic k1 {large} retain"));
    assert!(refused[0].starts_with("a nack 4: LimitExceeded"), "{refused:?}");
    // It is the one that there is that it replaces.
    host.run("a publish amq.topic k1 two retain");
    host.run("a publish amq.topic k2 '' retain");
    host.run("a publish amq.topic k3 three retain");
    let shown = host.run("b replay r #");
    assert_eq!(shown, ["b ok", "b deliver r #1 two", "b deliver r #2 three"]);
    host.run("storage full");
    let refused = host.run("a publish amq.topic k1 four retain");
    assert!(refused[0].contains("StorageUnavailable"), "{refused:?}");
    host.run("a publish amq.topic k1 '' retain");
    assert_eq!(host.run("b replay r #").len(), 2);
}

#[test]
fn rights_are_looked_at_again() {
    let mut host = TestHost::new();
    host.client("e");
    for key in ["a.x", "a.y", "b"] {
        host.run(&format!("a publish amq.topic {key} {key} retain"));
    }
    assert_eq!(host.run("e replay r #").len(), 4);
    host.run("room e off");
    assert_eq!(host.run("e replay r #"), ["e ok"]);
    host.run("a narrow-subscribing ann - a.x");
    assert_eq!(host.run("room e"), ["e deliver r #4 a.y", "e deliver r #5 b"]);
    host.run("room e off");
    assert_eq!(host.run("e replay r #"), ["e ok"]);
    host.run("a permit ann .* .* -");
    assert!(host.run("room e").is_empty());
    assert!(host.run("e replay r #")[0].starts_with("e refused AccessRefused"));
}

#[test]
fn a_virtual_host_takes_its_own_along() {
    let mut host = forgetful();
    host.run("a create-vhost v");
    let channel = crate::ChannelId { connection: crate::ConnectionId(25), number: 1 };
    host.enter_vhost("z1", channel, "v");
    for at in 0..30 {
        host.run(&format!("z1 publish amq.topic n.{at} {at} retain"));
    }
    host.run("a publish amq.topic k here retain");
    assert_eq!(host.run("a replay r #").len(), 2);
    host.run("z1 disconnect");
    host.run("a delete-vhost v");
    assert_eq!(host.engine.retained().0, 1);
    host.run("restart");
    assert_eq!(host.run("a replay r #"), ["a ok", "a deliver r #1 here"]);
}

#[test]
fn wills_can_be_retained() {
    let mut host = TestHost::new();
    host.client("c");
    host.run("c claim s expiry=5000 recorded");
    host.run("flush");
    host.run("c will gone bye persistent retain");
    host.run("flush");
    host.run("restart");
    host.run("time 6000");
    assert_eq!(host.run("b replay r #"), ["b ok", "b deliver r #1 bye"]);
}

/// A host with a session that has a queue and a consumer of it, and as many retained messages, every fourth
/// of which is not persistent.
fn with_session(mut host: TestHost, messages: usize) -> TestHost {
    host.client("c");
    host.run("c claim s expiry=5000 recorded queue");
    host.run("flush");
    host.run("c consume amq.session-s t granted on-close=release on-loss=release");
    for at in 0..messages {
        let how = if at % 4 == 3 { "" } else { "persistent" };
        host.run(&format!("a publish amq.topic n.{at:04} {at:04} retain {how}"));
    }
    host
}

fn bodies(lines: &[String], consumer: &str) -> Vec<String> {
    let of = |line: &String| {
        let mut words = line.split(' ').skip(1);
        let is_one = words.next() == Some("deliver") && words.next() == Some(consumer);
        is_one.then(|| words.nth(1).unwrap().to_owned())
    };
    lines.iter().filter_map(of).collect()
}

#[test]
fn persistent_ones_go_through_the_queue_of_the_session() {
    for host in [TestHost::new(), forgetful()] {
        let mut host = with_session(host, 400);
        let mut direct = bodies(&host.run("c replay r # session note=x"), "r");
        let (mut queued, mut granted) = (Vec::new(), 0);
        while queued.len() < 300 {
            let waiting = host.engine.queues.iter().map(|(_, queue)| queue.ready).max();
            assert!(waiting <= Some(64), "{waiting:?} messages wait");
            granted += 7;
            let lines = host.run(&format!("c grant t {granted}"));
            direct.extend(bodies(&lines, "r"));
            let more = bodies(&lines, "t");
            assert!(!more.is_empty(), "nothing comes after {}", queued.len());
            queued.extend(more);
            let lines = host.run("c accept 10000000 multiple");
            assert!(bodies(&lines, "t").is_empty());
        }
        let numbers = |rest: bool| (0..400).filter(move |at| (at % 4 == 3) == rest);
        let expected = |rest| numbers(rest).map(|at| format!("{at:04}")).collect::<Vec<_>>();
        assert_eq!((queued, direct), (expected(false), expected(true)));
    }
}

#[test]
fn a_replay_of_a_session_goes_on_with_its_next_holder() {
    let mut host = with_session(TestHost::new(), 400);
    host.run("c replay r # session");
    host.run("c grant t 10");
    let tag = host.fx.delivered.last().map_or(0, |it| it.1);
    host.run(&format!("c accept {tag} multiple"));
    host.run("c disconnect");
    host.login("d", "ann");
    host.run("d claim s expiry=5000 recorded queue");
    host.run("flush");
    host.run("d consume amq.session-s t granted on-close=release on-loss=release");
    let queued = bodies(&host.run("d grant t 1000"), "t");
    assert_eq!(queued.len(), 290, "{queued:?}");
    assert_eq!(queued.last().map(String::as_str), Some("0398"));
    host.run("d replay r # session");
    host.run("d end s");
    assert!(host.engine.retained.replays.is_empty());
}
