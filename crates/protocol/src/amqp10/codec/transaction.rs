//! What is sent to a coordinator, as the body of a message (part 4, 4.5.1 to 4.5.3).

use super::composite::composites;
use super::union::one_of;
use super::value::Value;

composites! {
    /// Begins a transaction; a delivery state [`Declared`](super::Declared) answers.
    0x31 "amqp:declare:list" "declare" Declare<'a> {
        "global-id" global_id: Value<'a>, optional;
    }
    /// Ends a transaction.
    0x32 "amqp:discharge:list" "discharge" Discharge<'a> {
        "txn-id" txn_id: &'a [u8], required;
        "fail" fail: bool, default false;
    }
}

one_of! {
    /// What a coordinator is asked for.
    "coordinator request" CoordinatorRequest<'a> {
        Declare(Declare<'a>),
        Discharge(Discharge<'a>),
    }
}
