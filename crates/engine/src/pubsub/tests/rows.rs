//! Messages in a row do what each of them would alone.

use super::odds;
use crate::tests::TestHost;

/// Has `lines` done in two worlds, in one of them with each `emits` taken apart. The effects are to be the
/// same, and the engine's counts.
#[track_caller]
fn check_rows(lines: &[String]) {
    let (mut in_rows, mut one_by_one) = (TestHost::new(), TestHost::new());
    for (at, line) in lines.iter().enumerate() {
        let words: Vec<&str> = line.split(' ').collect();
        let apart: Vec<String> = match words[..] {
            [who, "emits", subject, ref bodies @ .., "silent"] => {
                bodies.iter().map(|body| format!("{who} emit {subject} {body} silent")).collect()
            }
            [who, "emits", subject, ref bodies @ ..] => {
                bodies.iter().map(|body| format!("{who} emit {subject} {body}")).collect()
            }
            _ => vec![line.clone()],
        };
        let expected: Vec<String> = apart.iter().flat_map(|line| one_by_one.run(line)).collect();
        assert_eq!(in_rows.run(line), expected, "{:#?}", &lines[..=at]);
        assert_eq!(in_rows.engine.counters(), one_by_one.engine.counters());
    }
}

fn script(text: &str) -> Vec<String> {
    text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
}

#[test]
fn messages_in_a_row_reach_whom_they_would_reach_one_by_one() {
    for subscribers in [
        "",
        "a subscribe s one",
        "a subscribe s one
         b subscribe s two",
        "a subscribe s one
         b subscribe > two",
        "a subscribe s one group=g
         b subscribe s two group=g",
        "a subscribe s one
         b subscribe s two group=g
         b unsubscribe two",
        "a subscribe s one
         a unsubscribe one after=2",
        "a subscribe s one
         b subscribe s two
         a unsubscribe one after=4
         b unsubscribe two after=1",
        "c subscribe s own",
        "c subscribe s own
         a subscribe s one",
        "a queue q
         a bind amq.topic q s
         a subscribe s one",
        "a subscribe s one
         room a off",
        "a subscribe $QUEUE.s one
         c subscribe _INBOX.1 two",
    ] {
        for emitted in ["s 1 2 3 4 5", "s 1 2 3 4 5 silent", "$QUEUE.s 1 2", "_INBOX.1 1 2 3"] {
            let lines =
                format!("{subscribers}\nc emits {emitted}\na subscribe s late\nc emits {emitted}");
            check_rows(&script(&lines));
        }
    }
}

#[test]
fn what_comes_and_goes_between_rows_is_seen() {
    let mut random = odds(5);
    for _ in 0..40 {
        let mut lines = Vec::new();
        for _ in 0..60 {
            let who = ["a", "b", "c"][random(3)];
            let name = ["one", "two", "three"][random(3)];
            let subject = ["s", "s.t", "x"][random(3)];
            let pattern = [subject, ">", "s.*", "*"][random(4)];
            lines.push(match random(8) {
                0 | 1 => format!("{who} subscribe {pattern} {name}"),
                2 => format!("{who} subscribe {pattern} {name} group=g"),
                3 => format!("{who} unsubscribe {name}"),
                4 => format!("{who} unsubscribe {name} after={}", random(5)),
                5 => format!("{who} emits {subject} 1 2 3 4 silent"),
                _ => format!("{who} emits {subject} 1 2 3 4"),
            });
        }
        check_rows(&lines);
    }
}
