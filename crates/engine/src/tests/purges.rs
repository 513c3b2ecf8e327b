//! Purges of queues with many messages under way: they take several turns, and no crash, checkpoint or settle
//! in between loses a message that stays.

use super::TestHost;
use crate::interface::limits::Limits;

/// Ends a turn.
fn turn(host: &mut TestHost) {
    host.engine.dispatch(host.now, &mut host.fx);
    host.engine.check_invariants(&host.fx.references);
}

fn ready(host: &TestHost, name: &str) -> u64 {
    host.engine.list_queues().find(|it| it.name == name).map_or(0, |it| it.ready)
}

#[test]
fn no_turn_looks_at_more_deliveries_than_the_limit_says() {
    const OUT: usize = 1_000;
    const AT_ONCE: usize = 50;
    let limits = Limits { given_back_at_once: AT_ONCE, ..Limits::default() };
    let mut host = TestHost::with(limits);
    host.fx.quiet = true;
    host.run("a queue q durable");
    host.run("a queue other durable");
    for number in 0..OUT {
        host.act_on(&format!("a publish - other {number} persistent"));
    }
    (0..300).for_each(|number| host.act_on(&format!("a publish - q {number} persistent")));
    host.run("b consume other c");
    host.run("c consume q c credit=3");
    host.fx.quiet = false;
    let before = ready(&host, "q");
    host.act_on("a purge q");
    assert_eq!(ready(&host, "q"), 0, "it is gone at once");
    assert!(host.fx.lines.is_empty(), "{:?}", host.fx.lines);
    let given_back = |host: &TestHost| host.engine.agenda.departures.entries().count();
    let waiting = given_back(&host);
    let mut turns = 1;
    while !host.engine.agenda.purges.is_empty() {
        assert_eq!(given_back(&host), waiting, "nothing is given back before there is a record");
        turn(&mut host);
        turns += 1;
    }
    let steps = turns * AT_ONCE;
    assert!((OUT..2 * (OUT + 300)).contains(&steps), "{turns} turns");
    host.settle_down();
    assert!(host.fx.lines.is_empty(), "it waits for the flush: {:?}", host.fx.lines);
    assert_eq!(host.run("flush"), [format!("a messages {before}")]);
    host.run("restart");
    let left = 300 - before;
    assert_eq!(host.run("a passive q"), [format!("a queue q {left} 0")]);
    assert_eq!(host.run("a passive other"), ["a queue other 1000 0"]);
}

/// Eight messages, of which five are out, one of these in a transaction; and the purge of the other three has
/// begun.
fn begun() -> TestHost {
    let mut host =
        TestHost::with(Limits { given_back_at_once: 1, snapshot_at_once: 2, ..Limits::default() });
    host.run("a queue q durable");
    (1..=8).for_each(|number| host.act_on(&format!("a publish - q {number} persistent")));
    host.run("b consume q c credit=3");
    host.run("d transactions");
    host.run("d consume q c credit=2");
    host.run("d requeue 1");
    host.act_on("a purge q");
    assert!(!host.engine.agenda.purges.is_empty());
    host
}

#[test]
fn what_happens_meanwhile_loses_nothing_that_was_out() {
    for (meanwhile, left) in [
        (&[][..], 5),
        (&["b requeue 3 multiple"], 5),
        (&["b requeue 1", "b requeue 4", "b release 5"], 5),
        (&["b release 3", "b accept 4"], 4),
        (&["b accept 1"], 4),
        (&["b close"], 5),
        (&["b disconnect", "e consume q c credit=1"], 5),
        (&["d rollback"], 5),
        (&["d rollback", "d accept 2", "d commit"], 4),
        (&["d commit"], 5),
        (&["d close"], 5),
        (&["a publish - q 9 persistent"], 6),
        (&["b close", "a purge q"], 2),
        (&["b close", "e consume q c credit=1", "a purge q"], 3),
        (&["a delete q"], 0),
    ] {
        for turns in 0..14 {
            for way in ["restart", "checkpoint", "crash"] {
                let mut host = begun();
                (0..turns).for_each(|_| turn(&mut host));
                if way == "checkpoint" {
                    host.begin_snapshot();
                }
                for line in meanwhile {
                    host.act_on(line);
                    turn(&mut host);
                    host.take_part();
                }
                let is_complete = way != "crash" || host.engine.agenda.purges.is_empty();
                if way != "crash" {
                    host.settle_down();
                }
                host.run("restart");
                let found = host.run("a passive q");
                let found = match found[0].strip_prefix("a queue q ") {
                    Some(rest) => rest.split(' ').next().unwrap().parse().unwrap(),
                    None => 0,
                };
                let expected = if is_complete { left..=left } else { left..=9 };
                assert!(
                    expected.contains(&found),
                    "{meanwhile:?} after {turns} turns, {way}: {found}"
                );
                host.run("a purge q");
                assert!(host.fx.references.is_empty(), "{meanwhile:?} {turns} {way}");
            }
        }
    }
}

/// Who waits for a purge gets the answers to what it asks for behind it later.
#[test]
fn answers_keep_their_order() {
    let mut host = begun();
    host.fx.lines.clear();
    host.act_on("a passive q");
    host.act_on("c passive q");
    assert_eq!(std::mem::take(&mut host.fx.lines), ["c queue q 0 2"]);
    host.settle_down();
    assert!(host.fx.lines.is_empty());
    assert_eq!(host.run("flush"), ["a messages 3", "a queue q 0 2"]);
}

/// What consumers have added to messages that go is forgotten, and stays for those that are out.
#[test]
fn what_is_known_of_single_messages_goes_with_them() {
    for given_back_at_once in [1, 1_000] {
        let mut host = TestHost::with(Limits { given_back_at_once, ..Limits::default() });
        host.run("a queue q durable");
        (1..=4).for_each(|number| host.act_on(&format!("a publish - q {number} persistent")));
        host.run("b consume q c credit=4");
        (1..=4).for_each(|tag| host.act_on(&format!("b release {tag} changed=x{tag}")));
        host.run("b cancel c");
        host.run("c consume q c credit=1");
        host.run("c cancel c");
        host.run("a purge q");
        let known = |host: &TestHost| {
            let (_, queue) = host.engine.queues.iter().next().unwrap();
            queue.notes.as_ref().map_or(0, |notes| notes.changed_bytes())
        };
        assert_eq!(known(&host), 2, "that of the one that is out");
        host.run("restart");
        assert_eq!(known(&host), 2);
    }
}

/// What is flushed while the purge before it goes on is answered with that.
#[test]
fn an_answer_behind_a_purge_waits_for_no_further_flush() {
    let mut host = TestHost::with(Limits { given_back_at_once: 1, ..Limits::default() });
    host.run("a queue q");
    (1..=8).for_each(|number| host.act_on(&format!("a publish - q {number}")));
    host.run("b consume q c credit=5");
    host.client("c");
    host.run("flush");
    host.fx.lines.clear();
    host.act_on("c purge q");
    host.act_on("c queue other durable");
    assert!(!host.engine.agenda.purges.is_empty());
    let end = host.fx.end();
    host.engine.durable(end, &mut host.fx);
    assert!(host.fx.lines.is_empty(), "{:?}", host.fx.lines);
    host.settle_down();
    assert_eq!(host.fx.lines, ["c messages 3", "c queue other 0 0"]);
}
