//! Frames read back as they were written.

use super::*;

/// A step is sent as bytes that are shown as this text.
#[track_caller]
fn check(step: &str, shown: &str) {
    let mut bytes = encode(step).unwrap().bytes;
    let mut lines = Vec::new();
    Frames::default().decode(&mut bytes, &mut lines);
    assert_eq!(lines, [shown], "{step}");
    assert!(bytes.is_empty(), "{step}");
}

#[test]
fn methods_read_back() {
    check("tx.select", "1 tx.select");
    check(
        "7 queue.declare queue=a durable auto-delete arguments={b: S \"c d\", a: I -1}",
        "7 queue.declare ticket=0 queue=a durable auto-delete arguments={a: I -1, b: S \"c d\"}",
    );
    check(
        "basic.publish routing-key=k mandatory | delivery-mode=2 headers={a: A [V, F {}]} | body",
        "1 basic.publish ticket=0 exchange=\"\" routing-key=k mandatory \
         | headers={a: A [V, F {}]} delivery-mode=2 | body",
    );
    check("frame 9 3 \"\\x00\"", "frame 9 3 \"\\x00\"");
    check("frame 1 3 \"abc\"", "3 method \"abc\"");
}

#[test]
fn all_types_of_values_read_back() {
    for value in [
        "t true",
        "b -1",
        "B 255",
        "s -1",
        "u 65535",
        "I -1",
        "i 4000000000",
        "l -1",
        "T 5",
        "f 1.5",
        "d -2.5",
        "D 2 500",
        "S text",
        "x \"bytes\"",
        "F {a: V}",
        "A [I 1, S b]",
        "V",
    ] {
        let method = "exchange.bind-ok";
        check(method, &format!("1 {method}"));
        check(
            &format!("queue.unbind arguments={{a: {value}}}"),
            &format!(
                "1 queue.unbind ticket=0 queue=\"\" exchange=\"\" routing-key=\"\" arguments={{a: {value}}}"
            ),
        );
    }
}

#[test]
fn steps_with_mistakes_are_refused() {
    for step in
        ["queue.declear", "queue.declare name=x", "basic.publish | x=1 | b", "basic.publish | b"]
    {
        assert!(encode(step).is_err(), "{step}");
    }
}

#[test]
fn what_differs_from_run_to_run_is_blanked() {
    for (line, normal) in [
        ("queue=amq.gen-AbC_12 message-count=0", "queue=amq.gen-* message-count=0"),
        ("reply-text=\"no queue 'amq.gen-x' in\"", "reply-text=\"no queue 'amq.gen-*' in\""),
        ("{time: T 1764300000, x: I 1}", "{time: T *, x: I 1}"),
    ] {
        assert_eq!(Frames::normalize(line), normal);
    }
}
