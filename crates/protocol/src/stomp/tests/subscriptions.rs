//! Acknowledgements, prefetch, selectors, durable subscriptions.

use super::super::codec::Version;
use super::{check, check_with};

#[test]
fn acknowledgements_of_mode_client_are_cumulative() {
    check(
        "
        > SUBSCRIBE|id:0|destination:/queue/a|ack:client||
        > SEND|destination:/queue/a||1
        < MESSAGE|subscription:0|destination:/queue/a|message-id:S@@1@@1|ack:S@@1@@1||1
        > SEND|destination:/queue/a||2
        < MESSAGE|subscription:0|destination:/queue/a|message-id:S@@1@@2|ack:S@@1@@2||2
        > SEND|destination:/queue/a||3
        < MESSAGE|subscription:0|destination:/queue/a|message-id:S@@1@@3|ack:S@@1@@3||3
        > ACK|id:S@@1@@2||
        > ACK|id:S@@1@@1||
        > cut
        < closed: cut
        b> SUBSCRIBE|id:0|destination:/queue/a||
        b< MESSAGE|subscription:0|destination:/queue/a|message-id:S@@1@@1|redelivered:true|\
          x-delivery-count:1||3
        ",
    );
}

#[test]
fn acknowledgements_of_mode_client_may_have_receipts() {
    check(
        "
        > SUBSCRIBE|id:0|destination:/queue/a|ack:client||
        > SEND|destination:/queue/a||1
        < MESSAGE|subscription:0|destination:/queue/a|message-id:S@@1@@1|ack:S@@1@@1||1
        > SEND|destination:/queue/a||2
        < MESSAGE|subscription:0|destination:/queue/a|message-id:S@@1@@2|ack:S@@1@@2||2
        > SEND|destination:/queue/a||3
        < MESSAGE|subscription:0|destination:/queue/a|message-id:S@@1@@3|ack:S@@1@@3||3
        > ACK|id:S@@1@@2|receipt:1||
        < RECEIPT|receipt-id:1||
        > ACK|id:S@@1@@1|receipt:2||
        < RECEIPT|receipt-id:2||
        > NACK|id:S@@1@@3|receipt:3||
        < RECEIPT|receipt-id:3||
        < MESSAGE|subscription:0|destination:/queue/a|message-id:S@@1@@4|ack:S@@1@@4|redelivered:true|\
          x-delivery-count:1||3
        > ACK|id:S@@1@@4|receipt:4||
        < RECEIPT|receipt-id:4||
        ",
    );
}

#[test]
fn others_are_for_one_message() {
    check(
        "
        > SUBSCRIBE|id:0|destination:/queue/a|ack:client-individual||
        > SEND|destination:/queue/a||1
        < MESSAGE|subscription:0|destination:/queue/a|message-id:S@@1@@1|ack:S@@1@@1||1
        > SEND|destination:/queue/a||2
        < MESSAGE|subscription:0|destination:/queue/a|message-id:S@@1@@2|ack:S@@1@@2||2
        > ACK|id:S@@1@@2|receipt:r||
        < RECEIPT|receipt-id:r||
        > UNSUBSCRIBE|id:0|receipt:u||
        < RECEIPT|receipt-id:u||
        > SUBSCRIBE|id:1|destination:/queue/a|ack:client-individual||
        < MESSAGE|subscription:1|destination:/queue/a|message-id:S@@2@@1|ack:S@@2@@1|redelivered:true||1
        > ACK|id:S@@2@@1||
        > ACK|id:S@@2@@1|receipt:twice||
        < ERROR|message:Invalid message-id|receipt-id:twice||the message does not wait for an \
          acknowledgement: it has had one, or the broker has taken it back
        < closed
        ",
    );
}

#[test]
fn messages_come_again_or_go_as_nack_says() {
    check(
        "
        > SUBSCRIBE|id:0|destination:/queue/a|ack:client-individual|x-dead-letter-exchange:amq.topic|\
          x-dead-letter-routing-key:dead||
        b> SUBSCRIBE|id:0|destination:/topic/dead||
        > SEND|destination:/queue/a|expiration:60000||1
        < MESSAGE|subscription:0|destination:/queue/a|message-id:S@@1@@1|ack:S@@1@@1|expiration:60000||1
        > NACK|id:S@@1@@1||
        < MESSAGE|subscription:0|destination:/queue/a|message-id:S@@1@@2|ack:S@@1@@2|redelivered:true|\
          x-delivery-count:1|expiration:60000||1
        > NACK|id:S@@1@@2|requeue:false||
        b< MESSAGE|subscription:0|destination:/topic/dead|message-id:S@@1@@1|\
          x-first-death-reason:rejected|x-first-death-queue:a|x-first-death-exchange:|\
          x-last-death-reason:rejected|x-last-death-queue:a|x-last-death-exchange:||1
        ",
    );
}

#[test]
fn the_second_version_acknowledges_by_message_id() {
    check_with(
        Some(Version::V1_1),
        "
        > SUBSCRIBE|id:0|destination:/queue/a|ack:client||
        > SEND|destination:/queue/a||1
        < MESSAGE|subscription:0|destination:/queue/a|message-id:S@@1@@1||1
        > ACK|id:S@@1@@1|subscription:0||
        < ERROR|message:Missing header||ACK needs a header 'message-id'
        < closed
        b> SUBSCRIBE|id:0|destination:/queue/a|ack:client||
        b< MESSAGE|subscription:0|destination:/queue/a|message-id:S@@1@@1|redelivered:true|\
          x-delivery-count:1||1
        b> ACK|message-id:S@@1@@1|subscription:0|receipt:1||
        b< RECEIPT|receipt-id:1||
        ",
    );
}

#[test]
fn acknowledgements_that_name_nothing_say_why() {
    for id in ["x", "session-x@@1@@1"] {
        let shown = id.replace("session-x", "S");
        let why = format!("ACK of '{shown}', which is no id of this connection's messages");
        check(&format!(
            "
            > ACK|id:{id}||
            < ERROR|message:Invalid message-id||{why}
            < closed
            "
        ));
    }
    check(
        "
        > SUBSCRIBE|id:0|destination:/queue/a|ack:client|receipt:1||
        < RECEIPT|receipt-id:1||
        > ACK|id:S@@1@@1|receipt:2||
        < ERROR|message:Invalid message-id|receipt-id:2||ACK of 'S@@1@@1', which was not delivered
        < closed
        ",
    );
}

#[test]
fn prefetch_bounds_what_is_out() {
    for header in ["prefetch-count", "activemq.prefetchSize"] {
        check(&format!(
            "
            > SUBSCRIBE|id:0|destination:/queue/a|ack:client|{header}:1||
            > SEND|destination:/queue/a||1
            < MESSAGE|subscription:0|destination:/queue/a|message-id:S@@1@@1|ack:S@@1@@1||1
            > SEND|destination:/queue/a||2
            > ACK|id:S@@1@@1||
            < MESSAGE|subscription:0|destination:/queue/a|message-id:S@@1@@2|ack:S@@1@@2||2
            "
        ));
    }
}

#[test]
fn selectors_choose() {
    check(
        "
        > SUBSCRIBE|id:0|destination:/queue/a|selector:colour = 'red'||
        > SUBSCRIBE|id:1|destination:/topic/t|selector:JMSCorrelationID LIKE 'c%' AND JMSPriority > 4||
        > SEND|destination:/queue/a|colour:blue||1
        > SEND|destination:/queue/a|colour:red||2
        < MESSAGE|subscription:0|destination:/queue/a|message-id:S@@1@@1|colour:red||2
        > SEND|destination:/topic/t|correlation-id:c1|priority:4||3
        > SEND|destination:/topic/t|correlation-id:c1|priority:5||4
        < MESSAGE|subscription:1|destination:/topic/t|message-id:S@@2@@1|correlation-id:c1|priority:5||4
        > SUBSCRIBE|id:2|destination:/queue/a|selector:colour = ||
        < ERROR|message:Invalid selector||selector 'colour = ' is not valid: invalid selector at byte \
          9: expected a value, but found the end of the selector
        < closed
        ",
    );
}

#[test]
fn durable_subscriptions_of_rabbitmq_outlive_connections() {
    check(
        "
        > SUBSCRIBE|id:s|destination:/topic/t|durable:true|auto-delete:false|receipt:1||
        < RECEIPT|receipt-id:1||
        > UNSUBSCRIBE|id:s|receipt:2||
        < RECEIPT|receipt-id:2||
        > SEND|destination:/topic/t||1
        > cut
        < closed: cut
        b> SUBSCRIBE|id:s|destination:/topic/t|durable:true||
        b< MESSAGE|subscription:s|destination:/topic/t|message-id:S@@1@@1||1
        b> UNSUBSCRIBE|id:s|durable:true|receipt:3||
        b< RECEIPT|receipt-id:3||
        b> SEND|destination:/topic/t||2
        b> SUBSCRIBE|id:s|destination:/topic/t|persistent:true|receipt:4||
        b< RECEIPT|receipt-id:4||
        ",
    );
}

#[test]
fn durable_subscriptions_of_artemis_belong_to_clients() {
    check_with(
        None,
        "
        > CONNECT|client-id:me|accept-version:1.2||
        < CONNECTED|S|heart-beat:0,0|version:1.2|host:/||
        > SUBSCRIBE|id:0|destination:/topic/t|durable-subscription-name:mine|receipt:1||
        < RECEIPT|receipt-id:1||
        b> CONNECT|client-id:me|accept-version:1.2||
        b< CONNECTED|S|heart-beat:0,0|version:1.2|host:/||
        b> SUBSCRIBE|id:0|destination:/topic/t|activemq.subscriptionName:mine||
        b< ERROR|message:resource_locked||RESOURCE_LOCKED - subscription 'mine' of client 'me' is in \
          use by another consumer
        b< closed
        > cut
        < closed: cut
        c> CONNECT|client-id:me|accept-version:1.2||
        c< CONNECTED|S|heart-beat:0,0|version:1.2|host:/||
        c> SEND|destination:/topic/t||1
        c> SUBSCRIBE|id:7|destination:/topic/t|durable-subscriber-name:mine||
        c< MESSAGE|subscription:7|destination:/topic/t|message-id:S@@1@@1||1
        c> UNSUBSCRIBE|id:7|receipt:2||
        c< RECEIPT|receipt-id:2||
        c> UNSUBSCRIBE|id:7|durable-subscription-name:mine|receipt:3||
        c< RECEIPT|receipt-id:3||
        c> UNSUBSCRIBE|id:7|durable-subscription-name:mine|receipt:4||
        c< ERROR|message:not_found|receipt-id:4||NOT_FOUND - no durable subscription 'mine' of client \
          'me' in vhost '/'
        c< closed
        ",
    );
}

#[test]
fn clients_need_not_hear_themselves() {
    check(
        "
        > SUBSCRIBE|id:0|destination:/topic/t|no-local:true||
        > SUBSCRIBE|id:1|destination:/topic/t||
        > SEND|destination:/topic/t||1
        < MESSAGE|subscription:1|destination:/topic/t|message-id:S@@2@@1||1
        b> SEND|destination:/topic/t||2
        < MESSAGE|subscription:0|destination:/topic/t|message-id:S@@1@@1||2
        < MESSAGE|subscription:1|destination:/topic/t|message-id:S@@2@@2||2
        ",
    );
}

#[test]
fn subscriptions_may_do_without_queues() {
    check(
        "
        > SUBSCRIBE|id:0|destination:/topic/a.>|slow-consumer-policy:drop-oldest|receipt:1||
        < RECEIPT|receipt-id:1||
        b> SEND|destination:/topic/a.b.c|colour:red||1
        < MESSAGE|subscription:0|destination:/topic/a.b.c|message-id:S@@1@@1|colour:red||1
        > UNSUBSCRIBE|id:0|receipt:2||
        < RECEIPT|receipt-id:2||
        b> SEND|destination:/topic/a.b||2
        > SUBSCRIBE|id:0|destination:/topic/#|slow-consumer-policy:spool||
        < ERROR|message:precondition_failed||PRECONDITION_FAILED - slow-consumer-policy: such a \
          subscription has > at its end in place of #
        < closed
        ",
    );
}

#[test]
fn an_exclusive_consumer_has_its_queue_to_itself() {
    check(
        "
        > SUBSCRIBE|id:0|destination:/queue/a|activemq.exclusive:true|receipt:1||
        < RECEIPT|receipt-id:1||
        b> SUBSCRIBE|id:0|destination:/queue/a|receipt:2||
        b< ERROR|message:access_refused|receipt-id:2||ACCESS_REFUSED - queue 'a' has another, or an \
          exclusive, consumer
        b< closed
        > SEND|destination:/queue/a||x
        < MESSAGE|subscription:0|destination:/queue/a|message-id:S@@1@@1||x
        ",
    );
}

#[test]
fn what_is_not_offered_of_activemq_is_said_plainly() {
    for (frame, message, why) in [
        (
            "SUBSCRIBE|id:0|destination:/topic/a|activemq.retroactive:true||",
            "not_implemented",
            "a topic's messages are not kept for those who come later, as activemq.retroactive asks for: \
             a durable subscription collects them",
        ),
        (
            "SUBSCRIBE|id:0|destination:queue://a.>||",
            "Invalid destination",
            "'a.>' is a pattern, and a subscription is to one queue: subscribe to each, or to a topic",
        ),
        (
            "SUBSCRIBE|id:0|destination:/queue/*.a||",
            "Invalid destination",
            "'*.a' is a pattern, and a subscription is to one queue: subscribe to each, or to a topic",
        ),
        (
            "SEND|destination:/queue/a,/topic/b||x",
            "Invalid destination",
            "'/queue/a,/topic/b' is a list, and a frame has one destination: send one for each",
        ),
    ] {
        check(&format!("\n> {frame}\n< ERROR|message:{message}||{why}\n< closed\n"));
    }
    // A comma, or an asterisk, may be part of a name.
    check(
        "
        > SEND|destination:/queue/a,b*||x
        > SUBSCRIBE|id:0|destination:/queue/a,b*||
        < MESSAGE|subscription:0|destination:/queue/a,b*|message-id:S@@1@@1||x
        ",
    );
}
