//! Frames read back as they were written.

use super::*;

/// A step is sent as bytes that are shown as this text.
#[track_caller]
fn check(step: &str, shown: &str) {
    let mut frames = Frames::default();
    let mut bytes = frames.encode(step).unwrap().bytes;
    let mut lines = Vec::new();
    frames.decode(&mut bytes, &mut lines);
    assert_eq!(lines, [shown], "{step}");
    assert!(bytes.is_empty(), "{step}");
}

#[test]
fn frames_read_back() {
    check(
        "attach name=s handle=3 snd-settle-mode=1 source={} target={q($q) durable=2}",
        "0 attach name=s role=sender snd-settle-mode=1 source=source{} \
         target=target{address=$q durable=2 capabilities=queue}",
    );
    check(
        "close error={condition=a:b description=\"why not\"}",
        "close error=error{condition=a:b description=\"why not\"}",
    );
    check("1 end", "1 end");
    check("frame 0 5 \"\\x40\"", "frame 0 5 \"@\"");
    check("raw \"AMQP\\x00\\x01\\x00\\x00\"", "raw AMQP\\x00\\x01\\x00\\x00");
    check(
        "disposition role=receiver first=4 settled state=modified{delivery-failed}",
        "0 outcome receiver 4 settled modified{delivery-failed}",
    );
    check(
        "transfer handle=0 delivery-id=0 | header durable | properties message-id=(ul 5) subject=s \
         | application {\"a\": i -1} | \"body\"",
        "0 transfer link= 0 | header durable | properties message-id=(ul 5) subject=s \
         | application {\"a\": i -1} | \"body\"",
    );
}

#[test]
fn values_read_back() {
    for value in [
        "null",
        "true",
        "ub 255",
        "us 65535",
        "ui 4000000000",
        "ul 9",
        "b -1",
        "s -2",
        "i -3",
        "l -4",
        "ts 5",
        "f 1.5",
        "d -2.5",
        "x \"\\x00\"",
        "\"text\"",
        ":symbol",
        "[i 1, \"a\"]",
        "{\"a\": i 1, :b: null}",
        "@[:a, :b]",
        "the :own:filter \"x\"",
        "declared{txn-id=a}",
    ] {
        check(
            &format!("transfer handle=0 delivery-id=0 | value {value}"),
            &format!("0 transfer link= 0 | value {value}"),
        );
    }
}

#[test]
fn a_message_of_several_frames_is_shown_once() {
    let mut frames = Frames::default();
    let mut bytes = Vec::new();
    bytes.extend(frames.encode("attach name=l handle=0").unwrap().bytes);
    bytes.extend(
        frames
            .encode("transfer handle=0 delivery-id=7 more | raw \"\\x00Su\\xa0\\x02a\"")
            .unwrap()
            .bytes,
    );
    bytes.extend(frames.encode("transfer handle=0 | raw \"b\"").unwrap().bytes);
    let mut lines = Vec::new();
    frames.decode(&mut bytes, &mut lines);
    assert_eq!(lines[1..], ["0 transfer link=l 0 | \"ab\""]);
}
