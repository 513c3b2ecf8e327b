//! What the engine sends to a connection, written in NATS's protocol straight into its outlet.

use super::codec::Message;
use super::mapping;
use crate::Outlet;
use angarium_engine::{Delivery, Format};

/// Writes MSG, or HMSG where the message has headers and the client understands them.
#[inline]
pub(crate) fn write_delivery(outlet: &mut Outlet, delivery: &Delivery<'_>) {
    let message = &delivery.message;
    if message.format != Format::Nats || delivery.missed > 0 {
        return write_reworded(outlet, delivery);
    }
    let (reply, headers) = mapping::split(message.properties);
    write(outlet, delivery, message.routing_key, reply, headers);
}

/// The same for a message whose subject, reply or headers are not what its publisher wrote: one of
/// another protocol, or the first behind some that the client missed.
#[cold]
fn write_reworded(outlet: &mut Outlet, delivery: &Delivery<'_>) {
    let message = &delivery.message;
    let (reply, mut headers) = mapping::shown(message);
    if delivery.missed > 0 {
        headers = mapping::with_missed(&headers, delivery.missed).into();
    }
    write(outlet, delivery, &mapping::subject(message), &reply, &headers);
}

/// What a listener's messages begin with, kept for as long as that is the same.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// Whose it is, and of which messages, as [`Delivery`] has both; zero: nobody's.
    tag: u64,
    streak: u64,
    bytes: Vec<u8>,
}

impl Names {
    /// The names in a message of a streak.
    #[inline]
    fn of(&mut self, delivery: &Delivery<'_>, message: &Message<'_>) -> &[u8] {
        if self.streak != delivery.streak || self.tag != delivery.tag {
            self.keep(delivery, message);
        }
        &self.bytes
    }

    #[inline(never)]
    fn keep(&mut self, delivery: &Delivery<'_>, message: &Message<'_>) {
        (self.tag, self.streak) = (delivery.tag, delivery.streak);
        self.bytes.clear();
        message.write_names(&mut self.bytes);
    }
}

#[inline(always)]
fn write(
    outlet: &mut Outlet,
    delivery: &Delivery<'_>,
    subject: &str,
    reply: &[u8],
    headers: &[u8],
) {
    let message = Message {
        subject: subject.as_bytes(),
        sid: delivery.subscription.as_bytes(),
        reply,
        headers: if outlet.takes_headers { headers } else { &[] },
        body: delivery.message.body,
    };
    if delivery.streak == 0 || !message.headers.is_empty() {
        return message.write(&mut outlet.bytes);
    }
    message.write_behind(outlet.names.of(delivery, &message), &mut outlet.bytes);
}
