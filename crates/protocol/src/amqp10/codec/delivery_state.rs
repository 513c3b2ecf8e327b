//! Delivery states and outcomes (part 3, 3.4; part 4, 4.5): what became of a message.

use super::composite::composites;
use super::error::Error;
use super::union::one_of;
use super::value::Map;

composites! {
    /// A part of the message was received: where to resume.
    0x23 "amqp:received:list" "received" Received {
        "section-number" section_number: u32, required;
        "section-offset" section_offset: u64, required;
    }
    /// The receiver processed the message.
    0x24 "amqp:accepted:list" "accepted" Accepted {}
    /// The message is invalid and cannot be processed.
    0x25 "amqp:rejected:list" "rejected" Rejected<'a> {
        "error" error: Error<'a>, optional;
    }
    /// The message was not processed and may be delivered again.
    0x26 "amqp:released:list" "released" Released {}
    /// The message was not processed and is to be changed before it is delivered again.
    0x27 "amqp:modified:list" "modified" Modified<'a> {
        "delivery-failed" delivery_failed: bool, default false;
        "undeliverable-here" undeliverable_here: bool, default false;
        "message-annotations" message_annotations: Map<'a>, optional;
    }
    /// A transaction was declared; this is its id.
    0x33 "amqp:declared:list" "declared" Declared<'a> {
        "txn-id" txn_id: &'a [u8], required;
    }
    /// The delivery is part of a transaction.
    0x34 "amqp:transactional-state:list" "transactional-state" TransactionalState<'a> {
        "txn-id" txn_id: &'a [u8], required;
        "outcome" outcome: Outcome<'a>, optional;
    }
}

one_of! {
    /// A terminal delivery state.
    "outcome" Outcome<'a> {
        Accepted(Accepted),
        Rejected(Rejected<'a>),
        Released(Released),
        Modified(Modified<'a>),
    }
    /// The state of a delivery.
    "delivery-state" DeliveryState<'a> {
        Received(Received),
        Accepted(Accepted),
        Rejected(Rejected<'a>),
        Released(Released),
        Modified(Modified<'a>),
        Declared(Declared<'a>),
        TransactionalState(TransactionalState<'a>),
    }
}

/// The state of a processed message.
pub const ACCEPTED: DeliveryState<'static> = DeliveryState::Accepted(Accepted {});
/// The state of a message that may be delivered again.
pub const RELEASED: DeliveryState<'static> = DeliveryState::Released(Released {});

impl<'a> From<Outcome<'a>> for DeliveryState<'a> {
    fn from(outcome: Outcome<'a>) -> DeliveryState<'a> {
        match outcome {
            Outcome::Accepted(it) => DeliveryState::Accepted(it),
            Outcome::Rejected(it) => DeliveryState::Rejected(it),
            Outcome::Released(it) => DeliveryState::Released(it),
            Outcome::Modified(it) => DeliveryState::Modified(it),
        }
    }
}
