//! What the engine sends to a connection, written in NATS's protocol straight into its outlet.

use super::codec::Message;
use super::mapping;
use crate::Outlet;
use angarium_engine::Delivery;

/// Writes MSG, or HMSG where the message has headers and the client understands them.
#[inline]
pub(crate) fn write_delivery(outlet: &mut Outlet, delivery: &Delivery<'_>) {
    let message = &delivery.message;
    let (reply, block) = mapping::shown(message);
    let subject = mapping::subject(message);
    let with_missed;
    let headers = if !outlet.takes_headers {
        &[]
    } else if delivery.missed > 0 {
        with_missed = mapping::with_missed(&block, delivery.missed);
        &with_missed[..]
    } else {
        &block[..]
    };
    let message = Message {
        subject: subject.as_bytes(),
        sid: delivery.subscription.as_bytes(),
        reply: &reply,
        headers,
        body: message.body,
    };
    message.write(&mut outlet.bytes);
}
