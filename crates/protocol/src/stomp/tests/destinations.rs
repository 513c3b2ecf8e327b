//! Where messages go, and what becomes of their headers.

use super::super::codec::Version;
use super::{check, check_with};

#[test]
fn queues_are_made_by_who_sends_and_by_who_subscribes() {
    check(
        "
        > SEND|destination:/queue/a|content-type:text/plain||hello
        > SUBSCRIBE|id:0|destination:/queue/a||
        < MESSAGE|subscription:0|destination:/queue/a|message-id:S@@1@@1|content-type:text/plain||hello
        b> SUBSCRIBE|id:x|destination:/queue/b|receipt:1||
        b< RECEIPT|receipt-id:1||
        > SEND|destination:/queue/b|receipt:2||
        < RECEIPT|receipt-id:2||
        b< MESSAGE|subscription:x|destination:/queue/b|message-id:S@@1@@1||
        > SEND|destination:/amq/queue/c||x
        < ERROR|message:not_found||NOT_FOUND - no queue 'c' takes the message
        < closed
        ",
    );
}

#[test]
fn topics_reach_whoever_subscribes() {
    check(
        "
        > SUBSCRIBE|id:0|destination:/topic/a.*||
        b> SUBSCRIBE|id:0|destination:/topic/a.>||
        c> SUBSCRIBE|id:0|destination:/topic/#||
        d> SEND|destination:/topic/a.b||1
        < MESSAGE|subscription:0|destination:/topic/a.b|message-id:S@@1@@1||1
        b< MESSAGE|subscription:0|destination:/topic/a.b|message-id:S@@1@@1||1
        c< MESSAGE|subscription:0|destination:/topic/a.b|message-id:S@@1@@1||1
        d> SEND|destination:/topic/a||2
        c< MESSAGE|subscription:0|destination:/topic/a|message-id:S@@1@@2||2
        > UNSUBSCRIBE|id:0|receipt:1||
        < RECEIPT|receipt-id:1||
        d> SEND|destination:/exchange/amq.topic/a.b||3
        b< MESSAGE|subscription:0|destination:/topic/a.b|message-id:S@@1@@2||3
        c< MESSAGE|subscription:0|destination:/topic/a.b|message-id:S@@1@@3||3
        ",
    );
}

#[test]
fn exchanges_have_to_be_there() {
    check(
        "
        > SUBSCRIBE|id:0|destination:/exchange/amq.direct/k||
        > SEND|destination:/exchange/amq.direct/k||x
        < MESSAGE|subscription:0|destination:/exchange/amq.direct/k|message-id:S@@1@@1||x
        > SUBSCRIBE|id:1|destination:/exchange/amq.fanout||
        > SEND|destination:/exchange/amq.fanout||y
        < MESSAGE|subscription:1|destination:/exchange/amq.fanout|message-id:S@@2@@1||y
        > SUBSCRIBE|id:2|destination:/exchange/does.not.exist|receipt:7||
        < ERROR|message:not_found|receipt-id:7||NOT_FOUND - no exchange 'does.not.exist' in vhost '/'
        < closed
        ",
    );
}

#[test]
fn answers_find_temporary_queues() {
    check(
        "
        b> SUBSCRIBE|id:0|destination:/queue/service||
        > SEND|destination:/queue/service|reply-to:/temp-queue/mine||ask
        b< MESSAGE|subscription:0|destination:/queue/service|message-id:S@@1@@1|\
          reply-to:/reply-queue/amq.gen:QUEUE||ask
        > SUBSCRIBE|id:9|destination:/temp-queue/other|receipt:1||
        < RECEIPT|receipt-id:1||
        > SEND|destination:/temp-queue/other||x
        < MESSAGE|subscription:9|destination:/temp-queue/other|message-id:S@@2@@1||x
        > SEND|destination:/temp-queue/none||x
        < ERROR|message:not_found||there is no /temp-queue/none on this connection: SUBSCRIBE to it, or \
          a reply-to header with it, makes it
        < closed
        ",
    );
}

#[test]
fn addresses_of_answers_are_escaped_as_they_came() {
    check(
        "
        > SUBSCRIBE|id:0|destination:/topic/t||
        > SEND|destination:/topic/t|reply-to:x\\n\\nforged||1
        < MESSAGE|subscription:0|destination:/topic/t|message-id:S@@1@@1|reply-to:x\\n\\nforged||1
        > SEND|destination:/topic/t|reply-to:C\\c\\\\p||2
        < MESSAGE|subscription:0|destination:/topic/t|message-id:S@@1@@2|reply-to:C\\c\\\\p||2
        ",
    );
}

#[test]
fn temporary_queues_go_with_their_last_subscription() {
    check(
        "
        > SUBSCRIBE|id:0|destination:/temp-queue/t||
        > SUBSCRIBE|id:1|destination:/temp-queue/t||
        > UNSUBSCRIBE|id:0|receipt:1||
        < RECEIPT|receipt-id:1||
        > SEND|destination:/temp-queue/t||x
        < MESSAGE|subscription:1|destination:/temp-queue/t|message-id:S@@2@@1||x
        > UNSUBSCRIBE|id:1|receipt:2||
        < RECEIPT|receipt-id:2||
        > SUBSCRIBE|id:2|destination:/temp-queue/t||
        > SEND|destination:/temp-queue/t||y
        < MESSAGE|subscription:2|destination:/temp-queue/t|message-id:S@@3@@1||y
        > UNSUBSCRIBE|id:2|receipt:3||
        < RECEIPT|receipt-id:3||
        > SEND|destination:/temp-queue/t||z
        < ERROR|message:not_found||there is no /temp-queue/t on this connection: SUBSCRIBE to it, or a \
          reply-to header with it, makes it
        < closed
        ",
    );
}

#[test]
fn names_of_other_brokers_are_understood() {
    check(
        "
        > SUBSCRIBE|id:0|destination:orders||
        > SUBSCRIBE|id:1|destination:prices|subscription-type:MULTICAST||
        > SUBSCRIBE|id:2|destination:queue://q||
        > SEND|destination:/queue/orders||1
        < MESSAGE|subscription:0|destination:orders|message-id:S@@1@@1||1
        > SEND|destination:prices|destination-type:MULTICAST||2
        < MESSAGE|subscription:1|destination:prices|message-id:S@@2@@1|destination-type:MULTICAST||2
        > SEND|destination:q||3
        < MESSAGE|subscription:2|destination:queue\\c//q|message-id:S@@3@@1||3
        ",
    );
}

#[test]
fn headers_reach_other_versions_escaped_as_they_have_it() {
    let transcript = "
        > CONNECT|accept-version:1.0||
        < CONNECTED|S|heart-beat:0,0|version:1.0|host:/||
        b> CONNECT|accept-version:1.1||
        b< CONNECTED|S|heart-beat:0,0|version:1.1|host:/||
        c> CONNECT|accept-version:1.2||
        c< CONNECTED|S|heart-beat:0,0|version:1.2|host:/||
        > SUBSCRIBE|destination:/topic/t||
        b> SUBSCRIBE|id:0|destination:/topic/t||
        c> SUBSCRIBE|id:0|destination:/topic/t||
        c> SEND|destination:/topic/t|odd:a\\nb\\rc\\cd\\\\e|odd:second||
        < MESSAGE|destination:/topic/t|message-id:S@@1@@1|odd:a b c:d\\e|odd:second||
        b< MESSAGE|subscription:0|destination:/topic/t|message-id:S@@1@@1|odd:a\\nb c\\cd\\\\e|\
          odd:second||
        c< MESSAGE|subscription:0|destination:/topic/t|message-id:S@@1@@1|odd:a\\nb\\rc\\cd\\\\e|\
          odd:second||
        > SEND|destination: /topic/t|odd: a:b\\n||
        < MESSAGE|destination:/topic/t|message-id:S@@1@@2|odd:a:b\\n||
        b< MESSAGE|subscription:0|destination:/topic/t|message-id:S@@1@@2|odd:a\\cb\\\\n||
        c< MESSAGE|subscription:0|destination:/topic/t|message-id:S@@1@@2|odd:a\\cb\\\\n||
        ";
    check_with(None, transcript);
}

#[test]
fn bodies_have_nuls_where_their_length_is_told() {
    check(
        "
        > SUBSCRIBE|id:0|destination:/queue/a||
        > SEND|destination:/queue/a|content-length:5||a~b~c
        < MESSAGE|subscription:0|destination:/queue/a|message-id:S@@1@@1||a~b~c
        ",
    );
}

#[test]
fn first_version_needs_no_ids() {
    check_with(
        Some(Version::V1_0),
        "
        > SUBSCRIBE|destination:/queue/a|ack:client||
        > SEND|destination:/queue/a||x
        < MESSAGE|destination:/queue/a|message-id:S@@1@@1||x
        > ACK|message-id:S@@1@@1|receipt:1||
        < RECEIPT|receipt-id:1||
        > UNSUBSCRIBE|destination:/queue/a|receipt:2||
        < RECEIPT|receipt-id:2||
        ",
    );
}
