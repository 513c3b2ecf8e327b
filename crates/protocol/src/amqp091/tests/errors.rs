//! What ends a channel, what ends the connection, and what is said.

use super::{check, play};
use crate::amqp091::Settings;

/// A line is answered by connection.close with that text.
fn check_hard(line: &str, code: u16, text: &str, ids: &str) {
    let quoted = if text.contains(' ') { format!("\"{text}\"") } else { text.to_owned() };
    check(&format!(
        "> {line}
         < 0 connection.close reply_code={code} reply_text={quoted}{ids}
         > 1 queue.declare queue=ignored
         > 0 connection.close-ok
         < closed: {text}"
    ));
}

/// A line is answered by channel.close with that text; the channel can be opened anew.
fn check_soft(line: &str, code: u16, text: &str, ids: &str) {
    check(&format!(
        "> {line}
         < 1 channel.close reply_code={code} reply_text=\"{text}\"{ids}
         > 1 queue.declare queue=ignored
         > 1 basic.publish routing_key=ignored | \"x\"
         > 1 channel.close-ok
         > 1 channel.open
         < 1 channel.open-ok"
    ));
}

#[test]
fn broken_frames() {
    let cases = [
        ("bytes 0800000000000000", "frame ends with octet 0x00 instead of 0xce"),
        ("bytes 07000000000000ce", "unknown frame type 7"),
        (
            "bytes 01000100020001",
            "frame of 131081 bytes is larger than the agreed maximum of 131072",
        ),
    ];
    for (line, text) in cases {
        // Nothing can be understood after it, so not even the answer to connection.close.
        check(&format!(
            "> {line}
             < 0 connection.close reply_code=501 reply_text=\"FRAME_ERROR - {text}\"
             > wait 5000
             < closed: FRAME_ERROR - {text}"
        ));
    }
    let text = "UNEXPECTED_FRAME - heartbeat on channel 1";
    check_hard("bytes 08000100000000ce", 505, text, "");
}

#[test]
fn broken_methods() {
    check_hard(
        "bytes 01000100000004 003c 0063 ce",
        503,
        "COMMAND_INVALID - there is no method 99 in class 60",
        " class_id=60 method_id=99",
    );
    check_hard(
        "bytes 01000100000004 0032 000a ce",
        502,
        "SYNTAX_ERROR - queue.declare ends in the middle of a field",
        " class_id=50 method_id=10",
    );
    check_hard(
        "bytes 0100010000000b 003c 0028 0000 01ff 01ff 00 ce",
        502,
        "SYNTAX_ERROR - basic.publish short string is not valid UTF-8",
        " class_id=60 method_id=40",
    );
    check_hard(
        "1 queue.declare-ok queue=q",
        503,
        "COMMAND_INVALID - queue.declare-ok cannot come from a client",
        " class_id=50 method_id=11",
    );
}

#[test]
fn channels_that_are_not_open_or_are_already() {
    let ids = " class_id=50 method_id=10";
    let text = "CHANNEL_ERROR - queue.declare on channel 9, which is not open";
    check_hard("9 queue.declare queue=q", 504, text, ids);
    let text = "CHANNEL_ERROR - basic.publish on channel 9, which is not open";
    check_hard("9 basic.publish routing_key=q", 504, text, " class_id=60 method_id=40");
    let text = "CHANNEL_ERROR - second channel.open on channel 1";
    check_hard("1 channel.open", 504, text, " class_id=20 method_id=10");
    let text = "CHANNEL_ERROR - queue.declare needs a channel other than 0";
    check_hard("0 queue.declare queue=q", 504, text, ids);
    let text = "COMMAND_INVALID - connection.open on channel 1 instead of 0";
    check_hard("1 connection.open virtual_host=/", 503, text, " class_id=10 method_id=40");
    let text = "COMMAND_INVALID - connection.tune-ok cannot come now";
    check_hard("0 connection.tune-ok", 503, text, " class_id=10 method_id=31");
}

#[test]
fn content_out_of_order() {
    let ids = " class_id=60 method_id=40";
    let header = "bytes 0200010000000e 003c 0000 0000000000000002 0000 ce";
    let text = "UNEXPECTED_FRAME - content header frame without a method before it";
    check_hard(header, 505, text, ids);
    let text = "UNEXPECTED_FRAME - content body frame without a method before it";
    check_hard("bytes 03000100000001 61 ce", 505, text, ids);
    let text = "UNEXPECTED_FRAME - content body frame outside of any channel";
    check_hard("bytes 03000000000001 61 ce", 505, text, ids);
    let text = "CHANNEL_ERROR - content body frame on channel 9, which is not open";
    check_hard("bytes 03000900000001 61 ce", 504, text, ids);

    let after_publish = |more: &str, code: u16, text: &str, ids: &str| {
        check(&format!(
            "> 1 basic.publish routing_key=q
             > {more}
             < 0 connection.close reply_code={code} reply_text=\"{text}\"{ids}"
        ));
    };
    let text = "UNEXPECTED_FRAME - basic.ack where a content header frame has to come";
    after_publish("1 basic.ack delivery_tag=1", 505, text, " class_id=60 method_id=80");
    let text = "UNEXPECTED_FRAME - content body frame where a header frame has to come";
    after_publish("bytes 03000100000001 61 ce", 505, text, ids);
    let text = "UNEXPECTED_FRAME - content header of class 50 after basic.publish";
    after_publish("bytes 0200010000000e 0032 0000 0000000000000002 0000 ce", 505, text, ids);
    let text = "SYNTAX_ERROR - content header has weight 1 instead of 0";
    after_publish("bytes 0200010000000e 003c 0001 0000000000000002 0000 ce", 502, text, ids);
    let text = "SYNTAX_ERROR - content header has property flags that class basic does not have";
    after_publish("bytes 0200010000000e 003c 0000 0000000000000000 0003 ce", 502, text, ids);

    check(&format!(
        "> 1 basic.publish routing_key=q
         > {header}
         > bytes 03000100000003 616263 ce
         < 0 connection.close reply_code=505 reply_text=\"UNEXPECTED_FRAME - body of 3 bytes where \
           the header announced 2\"{ids}"
    ));
    check(&format!(
        "> 1 basic.publish routing_key=q
         > {header}
         > {header}
         < 0 connection.close reply_code=505 reply_text=\"UNEXPECTED_FRAME - second content header \
           frame where a body frame has to come\"{ids}"
    ));
    check(&format!(
        "> 1 basic.publish routing_key=q
         > {header}
         > 1 queue.declare queue=q
         < 0 connection.close reply_code=505 reply_text=\"UNEXPECTED_FRAME - queue.declare where a \
           content body frame has to come\" class_id=50 method_id=10"
    ));
}

#[test]
fn messages_have_a_largest_size() {
    let settings = || Settings { body_bytes_max: 4, ..Settings::default() };
    let text = "PRECONDITION_FAILED - message size 5 is larger than configured max size 4";
    play(
        &format!(
            "> 1 queue.declare queue=q
             < 1 queue.declare-ok queue=q
             > 1 basic.publish routing_key=q | \"four\"
             > 1 basic.publish routing_key=q | \"fives\"
             < 1 channel.close reply_code=406 reply_text=\"{text}\" class_id=60 method_id=40
             > 1 channel.close-ok
             > 1 channel.open
             < 1 channel.open-ok
             > 1 queue.declare queue=q passive=true
             < 1 queue.declare-ok queue=q message_count=1"
        ),
        true,
        settings(),
    );
}

#[test]
fn unfinished_messages_have_a_largest_size_together() {
    let settings = || Settings { body_bytes_max: 2, ..Settings::default() };
    let header =
        |channel| format!("bytes 02000{channel}0000000e 003c 0000 0000000000000002 0000 ce");
    let mut script = String::new();
    for channel in 2..=5 {
        script += &format!(
            "> {channel} channel.open
             < {channel} channel.open-ok
             > {channel} basic.publish routing_key=q
             > {}
             ",
            header(channel)
        );
    }
    let text = "RESOURCE_ERROR - unfinished messages of 8 bytes on this connection leave no room \
                for one of 2";
    script += &format!(
        "> 1 basic.publish routing_key=q
         > {}
         < 1 channel.close reply_code=506 reply_text=\"{text}\" class_id=60 method_id=40",
        header(1)
    );
    play(&script, true, settings());
}

#[test]
fn refusals_of_the_engine() {
    let declare = " class_id=50 method_id=10";
    let text = "NOT_FOUND - no queue 'missing' in vhost '/'";
    check_soft("1 queue.declare queue=missing passive=true", 404, text, declare);
    check_soft("1 basic.consume queue=missing", 404, text, " class_id=60 method_id=20");
    check_soft("1 basic.get queue=missing", 404, text, " class_id=60 method_id=70");
    let text = "NOT_FOUND - no exchange 'missing' in vhost '/'";
    check_soft(
        "1 exchange.declare exchange=missing passive=true",
        404,
        text,
        " class_id=40 method_id=10",
    );
    let publish = "1 basic.publish exchange=missing routing_key=k | \"x\"";
    check_soft(publish, 404, text, " class_id=60 method_id=40");
    let text = "PRECONDITION_FAILED - unknown delivery tag 7";
    check_soft("1 basic.ack delivery_tag=7", 406, text, " class_id=60 method_id=80");
    check_soft("1 basic.nack delivery_tag=7", 406, text, " class_id=60 method_id=120");
    check_soft("1 basic.reject delivery_tag=7", 406, text, " class_id=60 method_id=90");
    let text = "ACCESS_REFUSED - exchange name 'amq.mine' contains reserved prefix 'amq.*'";
    check_soft(
        "1 exchange.declare exchange=amq.mine kind=direct",
        403,
        text,
        " class_id=40 method_id=10",
    );
    let text = "ACCESS_REFUSED - queue name 'amq.mine' contains reserved prefix 'amq.*'";
    check_soft("1 queue.declare queue=amq.mine", 403, text, declare);
    let text = "ACCESS_REFUSED - queue name 'amq.gen-1' contains reserved prefix 'amq.*'";
    check_soft("1 queue.declare queue=amq.gen-1", 403, text, declare);
    check_soft(
        "1 queue.declare passive=true",
        404,
        "NOT_FOUND - no queue '' in vhost '/'",
        declare,
    );
    let text = "ACCESS_REFUSED - operation not permitted on the default exchange";
    check_soft("1 queue.bind queue=q routing_key=k", 403, text, " class_id=50 method_id=20");
    check_soft("1 exchange.delete", 403, text, " class_id=40 method_id=20");
}

#[test]
fn what_is_not_offered_or_makes_no_sense() {
    let ids = " class_id=60 method_id=40";
    let text = "NOT_IMPLEMENTED - immediate=true";
    check_hard("1 basic.publish immediate=true | \"x\"", 540, text, ids);
    let text = "NOT_IMPLEMENTED - requeue=false";
    check_hard("1 basic.recover", 540, text, " class_id=60 method_id=110");
    let text = "PRECONDITION_FAILED - unknown exchange type 'x-magic'";
    let line = "1 exchange.declare exchange=e kind=x-magic";
    check_soft(line, 406, text, " class_id=40 method_id=10");
    let text = "NOT_IMPLEMENTED - queues of type stream are not offered (queue 'q')";
    let line = "1 queue.declare queue=q arguments={x-queue-type:stream}";
    check_hard(line, 540, text, " class_id=50 method_id=10");
    let text = "NOT_FOUND - no previously declared queue";
    check_soft("1 basic.consume", 404, text, " class_id=60 method_id=20");
    let text = "PRECONDITION_FAILED - channel is not transactional";
    check_soft("1 tx.commit", 406, text, " class_id=90 method_id=20");
    check_soft("1 tx.rollback", 406, text, " class_id=90 method_id=30");
    let text = "PRECONDITION_FAILED - invalid expiration '1x': must be decimal milliseconds";
    check_soft("1 basic.publish routing_key=q | expiration=1x \"x\"", 406, text, ids);
    let text =
        "PRECONDITION_FAILED - user_id property set to 'eve' but authenticated user was 'guest'";
    check_soft("1 basic.publish routing_key=q | user_id=eve \"x\"", 406, text, ids);
    let text = "PRECONDITION_FAILED - headers CC and BCC must be arrays of strings: not an array";
    check_soft("1 basic.publish routing_key=q | headers={CC:k} \"x\"", 406, text, ids);
    let text = "PRECONDITION_FAILED - fast reply consumer does not exist";
    let line = "1 basic.publish routing_key=q | reply_to=amq.rabbitmq.reply-to \"x\"";
    check_soft(line, 406, text, ids);
    let text = "PRECONDITION_FAILED - reply consumer cannot acknowledge";
    let line = "1 basic.consume queue=amq.rabbitmq.reply-to";
    check_soft(line, 406, text, " class_id=60 method_id=20");
}

#[test]
fn arguments_that_are_wrong() {
    let cases = [
        ("{x-message-ttl:-1}", "x-message-ttl", "-1 is negative"),
        ("{x-message-ttl:soon}", "x-message-ttl", "must be an integer"),
        ("{x-expires:0}", "x-expires", "0 is less than 1"),
        ("{x-max-priority:256}", "x-max-priority", "256 is not between 0 and 255"),
        (
            "{x-overflow:explode}",
            "x-overflow",
            "'explode' is none of drop-head, reject-publish, reject-publish-dlx",
        ),
        ("{x-dead-letter-exchange:7}", "x-dead-letter-exchange", "must be a string"),
        (
            "{x-dead-letter-routing-key:k}",
            "x-dead-letter-routing-key",
            "needs x-dead-letter-exchange beside it",
        ),
        ("{x-single-active-consumer:1}", "x-single-active-consumer", "must be true or false"),
        ("{x-queue-type:odd}", "x-queue-type", "'odd' is none of classic, quorum"),
        (
            "{x-message-ttl:315360000001}",
            "x-message-ttl",
            "315360000001 is not between 0 and 315360000000",
        ),
    ];
    for (arguments, name, why) in cases {
        let line = format!("1 queue.declare queue=q arguments={arguments}");
        let text =
            format!("PRECONDITION_FAILED - invalid arg '{name}' for queue 'q' in vhost '/': {why}");
        check_soft(&line, 406, &text, " class_id=50 method_id=10");
    }
}

#[test]
fn declarations_that_contradict_themselves_or_what_exists() {
    let declare = " class_id=50 method_id=10";
    let flags = ["", "durable=true exclusive=true", "durable=true auto_delete=true"];
    for (flags, property) in flags.iter().zip(["non-durable", "exclusive-owner", "auto-delete"]) {
        let line = format!("1 queue.declare queue=q {flags} arguments={{x-queue-type:quorum}}");
        let text = format!(
            "PRECONDITION_FAILED - invalid property '{property}' for queue 'q' in vhost '/'"
        );
        check_soft(&line, 406, &text, declare);
    }
    check(
        "> 1 queue.declare queue=q arguments={x-single-active-consumer:true}
         < 1 queue.declare-ok queue=q
         > 1 basic.consume queue=q exclusive=true
         < 1 channel.close reply_code=403 reply_text=\"ACCESS_REFUSED - queue 'q' has a single \
           active consumer: none is exclusive\" class_id=60 method_id=20
         > 1 channel.close-ok
         > 1 channel.open
         < 1 channel.open-ok
         > 1 queue.declare queue=q exclusive=true arguments={x-single-active-consumer:true}
         < 1 channel.close reply_code=405 reply_text=\"RESOURCE_LOCKED - queue 'q' was declared \
           with another value of exclusive\" class_id=50 method_id=10",
    );
    let text = "ACCESS_REFUSED - operation not permitted on the default exchange";
    check_soft("1 exchange.declare passive=true", 403, text, " class_id=40 method_id=10");
    let text = "PRECONDITION_FAILED - invalid expiration '315360000001': must be at most ten years";
    let line = "1 basic.publish routing_key=q | expiration=315360000001 \"x\"";
    check_soft(line, 406, text, " class_id=60 method_id=40");
}

#[test]
fn modes_do_not_mix() {
    check(
        "> 1 confirm.select
         < 1 confirm.select-ok
         > 1 confirm.select
         < 1 confirm.select-ok
         > 1 tx.select
         < 1 channel.close reply_code=406 reply_text=\"PRECONDITION_FAILED - cannot switch from \
           confirm to tx mode\" class_id=90 method_id=10",
    );
    check(
        "> 1 tx.select
         < 1 tx.select-ok
         > 1 confirm.select
         < 1 channel.close reply_code=406 reply_text=\"PRECONDITION_FAILED - cannot switch from tx \
           to confirm mode\" class_id=85 method_id=10",
    );
}

#[test]
fn an_error_on_one_channel_leaves_the_others() {
    check(
        "> 2 channel.open
         < 2 channel.open-ok
         > 2 basic.ack delivery_tag=1
         < 2 channel.close reply_code=406 reply_text=\"PRECONDITION_FAILED - unknown delivery tag \
           1\" class_id=60 method_id=80
         > 1 queue.declare queue=q
         < 1 queue.declare-ok queue=q
         > 2 channel.close
         < 2 channel.close-ok
         > 2 channel.close-ok
         > 2 channel.open
         < 2 channel.open-ok",
    );
}
