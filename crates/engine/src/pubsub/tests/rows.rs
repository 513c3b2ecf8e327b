//! Messages in a row do what each of them would alone.

use super::odds;
use crate::tests::World;

/// Has `lines` done in two worlds, in one of them with each `emits` taken apart. The effects are to be the
/// same, and the engine's counts.
#[track_caller]
fn check_rows(lines: &[String]) {
    let (mut in_rows, mut one_by_one) = (World::new(), World::new());
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
    for listeners in [
        "",
        "a listen s one",
        "a listen s one
         b listen s two",
        "a listen s one
         b listen > two",
        "a listen s one group=g
         b listen s two group=g",
        "a listen s one
         b listen s two group=g
         b unlisten two",
        "a listen s one
         a unlisten one after=2",
        "a listen s one
         b listen s two
         a unlisten one after=4
         b unlisten two after=1",
        "c listen s own",
        "c listen s own
         a listen s one",
        "a queue q
         a bind amq.topic q s
         a listen s one",
        "a listen s one
         room a off",
        "a listen $QUEUE.s one
         c listen _INBOX.1 two",
    ] {
        for emitted in ["s 1 2 3 4 5", "s 1 2 3 4 5 silent", "$QUEUE.s 1 2", "_INBOX.1 1 2 3"] {
            let lines =
                format!("{listeners}\nc emits {emitted}\na listen s late\nc emits {emitted}");
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
                0 | 1 => format!("{who} listen {pattern} {name}"),
                2 => format!("{who} listen {pattern} {name} group=g"),
                3 => format!("{who} unlisten {name}"),
                4 => format!("{who} unlisten {name} after={}", random(5)),
                5 => format!("{who} emits {subject} 1 2 3 4 silent"),
                _ => format!("{who} emits {subject} 1 2 3 4"),
            });
        }
        check_rows(&lines);
    }
}
