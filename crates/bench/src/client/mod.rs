//! Native clients of the protocols under load, one folder each, behind one [`Link`].
//!
//! A workload names no protocol: it opens a link to a target, whose scheme selects the client, writes
//! messages that the link encoded once, and lets the link parse the input into a [`Receiver`]. Selecting
//! the client costs one branch per read, none per message.

pub mod amqp091;
pub mod amqp10;
mod encoded;
mod error;
mod fake_broker;
mod link;
pub mod mqtt;
pub mod nats;
mod receive_buffer;
mod receiver;
pub mod resp;
mod route;
pub mod stomp;
mod target;
mod wire;

pub use encoded::Encoded;
pub(crate) use encoded::write_decimal;
pub use error::Error;
pub(crate) use error::is_timeout;
pub use fake_broker::FakeBroker;
pub use link::Link;
pub use receive_buffer::ReceiveBuffer;
pub use receiver::{Confirm, Head, Receiver};
pub use route::{Acks, Labels, Route, Session, Source};
pub use target::{Protocol, Target};
pub(crate) use wire::PATIENCE;
use wire::Wire;

/// The fake broker for the protocol of `target`.
pub fn fake_broker(target: &Target) -> FakeBroker {
    match target.protocol() {
        Protocol::Amqp091 => amqp091::fake_broker(),
        Protocol::Amqp10 => amqp10::fake_broker(),
        // JetStream addresses use core NATS subjects here; the fake has no streams.
        Protocol::Nats | Protocol::JetStream => nats::fake_broker(),
        Protocol::Mqtt => mqtt::fake_broker(target.into()),
        Protocol::Stomp => stomp::fake_broker(),
        Protocol::Resp => resp::fake_broker(),
    }
}

#[cfg(test)]
mod tests;
