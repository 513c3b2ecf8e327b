//! BEGIN, COMMIT, ABORT.

use super::check;

#[test]
fn what_is_in_a_transaction_comes_with_its_commit() {
    check(
        "
        > SUBSCRIBE|id:0|destination:/queue/a||
        > BEGIN|transaction:t|receipt:1||
        < RECEIPT|receipt-id:1||
        > BEGIN|transaction:u||
        > SEND|destination:/queue/a|transaction:t|receipt:2||1
        > SEND|destination:/queue/a|transaction:u|receipt:3||2
        > SEND|destination:/queue/a||3
        < MESSAGE|subscription:0|destination:/queue/a|message-id:S@@1@@1||3
        > ABORT|transaction:u|receipt:4||
        < RECEIPT|receipt-id:4||
        > COMMIT|transaction:t|receipt:5||
        < MESSAGE|subscription:0|destination:/queue/a|message-id:S@@1@@2||1
        < RECEIPT|receipt-id:2||
        < RECEIPT|receipt-id:5||
        ",
    );
}

#[test]
fn acknowledgements_are_part_of_transactions() {
    check(
        "
        > SUBSCRIBE|id:0|destination:/queue/a|ack:client-individual||
        > SEND|destination:/queue/a||1
        < MESSAGE|subscription:0|destination:/queue/a|message-id:S@@1@@1|ack:S@@1@@1||1
        > SEND|destination:/queue/a||2
        < MESSAGE|subscription:0|destination:/queue/a|message-id:S@@1@@2|ack:S@@1@@2||2
        > BEGIN|transaction:t||
        > ACK|id:S@@1@@1|transaction:t|receipt:1||
        > COMMIT|transaction:t||
        < RECEIPT|receipt-id:1||
        > BEGIN|transaction:t||
        > ACK|id:S@@1@@2|transaction:t||
        > ABORT|transaction:t||
        < MESSAGE|subscription:0|destination:/queue/a|message-id:S@@1@@3|ack:S@@1@@3|redelivered:true|\
          x-delivery-count:1||2
        > cut
        < closed: cut
        b> SUBSCRIBE|id:0|destination:/queue/a||
        b< MESSAGE|subscription:0|destination:/queue/a|message-id:S@@1@@1|redelivered:true|\
          x-delivery-count:2||2
        ",
    );
}

#[test]
fn transactions_end_with_the_connection() {
    check(
        "
        > BEGIN|transaction:t||
        > SEND|destination:/queue/a|transaction:t||1
        > DISCONNECT|receipt:1||
        < RECEIPT|receipt-id:1||
        > cut
        < closed: cut
        b> SUBSCRIBE|id:0|destination:/queue/a|receipt:2||
        b< RECEIPT|receipt-id:2||
        ",
    );
}

#[test]
fn names_that_are_wrong_say_why() {
    for (frame, message, why) in [
        (
            "COMMIT|transaction:t",
            "Bad transaction",
            "there is no open transaction 't': BEGIN comes first",
        ),
        (
            "ABORT|transaction:t",
            "Bad transaction",
            "there is no open transaction 't': BEGIN comes first",
        ),
        (
            "SEND|destination:/topic/a|transaction:t",
            "Bad transaction",
            "there is no open transaction 't': BEGIN comes first",
        ),
        ("BEGIN|x:y", "Missing header", "BEGIN needs a header 'transaction'"),
        ("COMMIT|x:y", "Missing header", "COMMIT needs a header 'transaction'"),
    ] {
        check(&format!(
            "
            > {frame}|receipt:9||
            < ERROR|message:{message}|receipt-id:9||{why}
            < closed
            "
        ));
    }
    check(
        "
        > BEGIN|transaction:t||
        > BEGIN|transaction:t||
        < ERROR|message:Bad transaction||transaction 't' has begun already
        < closed
        ",
    );
}
