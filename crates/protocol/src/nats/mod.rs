//! NATS's client protocol, as nats-server speaks it without JetStream.

pub mod codec;
pub mod fault;
pub mod frame;
mod handler;
mod handshake;
mod mapping;
pub mod monitoring;
mod publish;
mod reassembly;
mod responses;
mod settings;
mod subject;
mod sys_requests;
#[cfg(test)]
pub(crate) mod tests;
mod writer;

pub use crate::nats::handler::Handler;
pub use crate::nats::writer::Writer;
pub use mapping::{SLOW_CONSUMER_PREFIX, reply_of};
pub(crate) use mapping::{amended, header_named, text_property, timestamp, visit_properties};
pub use settings::{Settings, Tls};
