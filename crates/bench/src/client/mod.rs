//! Native clients of the protocols that loads are made of, one folder each, behind one [`Link`].
//!
//! A workload names no protocol: it opens a link to a target, whose scheme says which client it is,
//! writes messages that the link encoded once, and lets the link parse what comes into a
//! [`Receiver`]. The choice of the client costs one branch for each read, none for each message.

pub mod amqp091;
mod error;
mod incoming;
mod link;
pub mod mqtt;
pub mod nats;
mod receiver;
pub mod stomp;
mod target;

pub use error::Error;
pub use incoming::Incoming;
pub use link::{Encoded, Link, Route, Source};
pub use receiver::{Confirm, Head, Receiver};
pub use target::{Protocol, Target};

#[cfg(test)]
mod tests;
