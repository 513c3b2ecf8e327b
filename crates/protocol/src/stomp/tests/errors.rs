//! What is wrong is said, and loses nothing.

use super::super::codec::Version;
use super::check;

#[test]
fn frames_that_are_wrong_say_why() {
    for (frame, message, why) in [
        ("WRONG|a:b||", "Bad command", "Could not interpret command \"WRONG\""),
        ("CONNECT||", "Already connected", "a second CONNECT on a connection"),
        ("SEND||x", "Missing header", "SEND needs a header 'destination'"),
        ("SUBSCRIBE|id:0||", "Missing header", "SUBSCRIBE needs a header 'destination'"),
        ("UNSUBSCRIBE||", "Missing header", "UNSUBSCRIBE needs a header 'id'"),
        (
            "UNSUBSCRIBE|id:7||",
            "Subscription not found",
            "there is no subscription '7' on this connection",
        ),
        (
            "SUBSCRIBE|id:0|destination:/queue/a|ack:never||",
            "Invalid ack mode",
            "ack is 'never', which is none of auto, client, client-individual",
        ),
        (
            "SUBSCRIBE|id:/temp-queue/a|destination:/queue/a||",
            "Invalid id",
            "subscription ids that begin with /temp-queue/ are the broker's",
        ),
        (
            "SUBSCRIBE|id:0|destination:/queue/a|prefetch-count:many||",
            "Malformed frame",
            "header 'prefetch-count' is 'many', which is no number",
        ),
        (
            "SUBSCRIBE|id:0|destination:/queue/a|x-max-length:many||",
            "precondition_failed",
            "PRECONDITION_FAILED - invalid header 'x-max-length': must be an integer",
        ),
        (
            "SUBSCRIBE|id:0|destination:/queue/a|x-queue-type:stream||",
            "not_implemented",
            "NOT_IMPLEMENTED - queues of type stream are not offered",
        ),
    ] {
        check_wrong(frame, message, why);
    }
}

#[test]
fn errors_of_messages_whose_head_was_read_name_the_receipt() {
    for (frame, message, why) in [
        ("content-length:1048577||", "Message too large", "the body is longer than 1048576 bytes"),
        (
            "content-length:1||xx",
            "Malformed frame",
            "behind the body, of as many bytes as content-length says, comes no NUL",
        ),
    ] {
        check(&format!(
            "
            > SEND|destination:/queue/a|receipt:7|{frame}
            < ERROR|message:{message}|receipt-id:7||{why}
            < closed
            "
        ));
    }
}

#[test]
fn receipts_have_a_limit() {
    let long = "r".repeat(1_025);
    for frame in ["SEND|destination:/queue/a", "BEGIN|transaction:t", "DISCONNECT"] {
        check(&format!(
            "
            > {frame}|receipt:{long}||
            < ERROR|message:Malformed frame|receipt-id:{long}||the receipt is longer than 1024 bytes: \
              take a shorter one
            < closed
            "
        ));
    }
}

#[test]
fn the_first_version_forges_nothing_with_spaces() {
    super::check_with(
        Some(Version::V1_0),
        "
        > SUBSCRIBE|destination:/topic/t||
        > SEND|destination:/topic/t| subscription:s| ack:a| message-id:m| content-length:1| odd: x||yes
        < MESSAGE|destination:/topic/t|message-id:S@@1@@1|odd:x||yes
        > SEND|destination:/topic/t| user-id:admin||no
        < ERROR|message:precondition_failed||PRECONDITION_FAILED - user-id is 'admin', and the \
          connection's user 'guest'
        < closed
        b> SEND|destination:/topic/t| :x||no
        b< ERROR|message:Malformed frame||a header line is not of the form name:value (headers end with \
          an empty line)
        b< closed
        ",
    );
}

fn check_wrong(frame: &str, message: &str, why: &str) {
    check(&format!(
        "
            > {frame}
            < ERROR|message:{message}||{why}
            < closed
            "
    ));
}

#[test]
fn messages_that_are_wrong_say_why() {
    for (frame, message, why) in [
        (
            "SEND|destination:/queue/a|priority:high||x",
            "Malformed frame",
            "header 'priority' is 'high': it has to be a number from 0 to 255",
        ),
        (
            "SEND|destination:/queue/a|expiration:soon||x",
            "Malformed frame",
            "header 'expiration' is 'soon': it has to be milliseconds, ten years at most",
        ),
        (
            "SEND|destination:/queue/a|user-id:other||x",
            "precondition_failed",
            "PRECONDITION_FAILED - user-id is 'other', and the connection's user 'guest'",
        ),
        (
            "SEND|destination:/queue/a|no colon||x",
            "Malformed frame",
            "a header line is not of the form name:value (headers end with an empty line)",
        ),
        (
            "SEND|destination:/queue/a|x:\\t||x",
            "Malformed frame",
            "a header has a backslash that escapes nothing: \\n, \\c and \\\\ are known, \\r since 1.2",
        ),
        ("SEND|destination:/queue/\u{fffd}||x", "Malformed frame", "a header is not UTF-8"),
        (
            "SEND|destination:/queue/a|content-length:1048577||",
            "Message too large",
            "the body is longer than 1048576 bytes",
        ),
        (
            "SEND|destination:/queue/a|content-length:1||xx",
            "Malformed frame",
            "behind the body, of as many bytes as content-length says, comes no NUL",
        ),
    ] {
        check_wrong(frame, message, why);
    }
}

#[test]
fn arguments_that_differ_are_told_in_words() {
    check(
        "
        > SEND|destination:/queue/a||1
        > SUBSCRIBE|id:0|destination:/queue/a|receipt:1||
        < RECEIPT|receipt-id:1||
        < MESSAGE|subscription:0|destination:/queue/a|message-id:S@@1@@1||1
        > SUBSCRIBE|id:1|destination:/queue/a|auto-delete:true|receipt:2||
        < ERROR|message:precondition_failed|receipt-id:2||PRECONDITION_FAILED - queue 'a' in vhost '/' \
          differs in auto_delete: received true, current is false
        < closed
        b> SUBSCRIBE|id:0|destination:/queue/b|auto-delete:true||
        b> SEND|destination:/queue/b||1
        b< MESSAGE|subscription:0|destination:/queue/b|message-id:S@@1@@1||1
        b> SEND|destination:/queue/b|auto-delete:true||2
        b< MESSAGE|subscription:0|destination:/queue/b|message-id:S@@1@@2|auto-delete:true||2
        b> SEND|destination:/queue/b|durable:false|receipt:3||3
        b< ERROR|message:precondition_failed|receipt-id:3||PRECONDITION_FAILED - queue 'b' in vhost '/' \
          differs in durable: received false, current is true
        b< closed
        ",
    );
}

#[test]
fn there_are_as_many_subscriptions_as_may_be() {
    check(
        "
        > SUBSCRIBE|id:0|destination:/queue/a||
        > SUBSCRIBE|id:0|destination:/queue/b||
        < ERROR|message:Duplicated subscription identifier||there is a subscription '0' on this \
          connection already
        < closed
        b> SUBSCRIBE|id:0|destination:/queue/a||
        b> SUBSCRIBE|id:1|destination:/queue/a||
        b> UNSUBSCRIBE|id:0||
        b> SUBSCRIBE|id:2|destination:/queue/a||
        b> SUBSCRIBE|id:3|destination:/queue/a||
        b> SUBSCRIBE|id:4|destination:/queue/a||
        b< ERROR|message:Too many subscriptions||a connection may have 3 subscriptions
        b< closed
        ",
    );
}

#[test]
fn rights_are_those_of_the_user() {
    super::check_with(
        None,
        "
        > CONNECT|accept-version:1.2|login:reader|passcode:reader||
        < CONNECTED|S|heart-beat:0,0|version:1.2|host:/||
        > SEND|destination:/topic/a|receipt:1||x
        < ERROR|message:access_refused|receipt-id:1||ACCESS_REFUSED - write access to exchange \
          'amq.topic' in vhost '/' refused for user 'reader'
        < closed
        b> CONNECT|accept-version:1.2|login:writer|passcode:writer||
        b< CONNECTED|S|heart-beat:0,0|version:1.2|host:/||
        b> SEND|destination:/queue/new||x
        b< ERROR|message:access_refused||ACCESS_REFUSED - configure access to queue 'new' in vhost '/' \
          refused for user 'writer'
        b< closed
        c> CONNECT|accept-version:1.2||
        c< CONNECTED|S|heart-beat:0,0|version:1.2|host:/||
        c> SEND|destination:/queue/old||1
        d> CONNECT|accept-version:1.2|login:writer|passcode:writer||
        d< CONNECTED|S|heart-beat:0,0|version:1.2|host:/||
        d> SEND|destination:/queue/old|receipt:2||2
        d< RECEIPT|receipt-id:2||
        d> SUBSCRIBE|id:0|destination:/queue/old||
        d< ERROR|message:access_refused||ACCESS_REFUSED - read access to queue 'old' in vhost '/' \
          refused for user 'writer'
        d< closed
        ",
    );
}

#[test]
fn a_queue_that_is_deleted_ends_its_subscribers() {
    check(
        "
        > SUBSCRIBE|id:0|destination:/queue/a||
        > SUBSCRIBE|id:1|destination:/topic/t|x-queue-name:a2|durable:true|receipt:1||
        < RECEIPT|receipt-id:1||
        B> 1 queue.delete queue=a
        B< 1 queue.delete-ok
        < ERROR|message:Server cancelled subscription||the queue of a subscription was deleted
        < closed
        ",
    );
}
