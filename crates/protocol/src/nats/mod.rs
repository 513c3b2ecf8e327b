//! NATS's client protocol, as nats-server speaks it without JetStream.
//!
//! `frame` and `codec` deal with bytes only and serve clients as well as the broker; `handler` and its parts
//! are one connection; `writer` writes what the engine sends; `mapping` translates between the protocol's
//! terms and the engine's.

pub mod codec;
pub mod fault;
pub mod frame;
mod handler;
mod handshake;
mod mapping;
mod publish;
mod reassembly;
mod settings;
mod subject;
mod sys_requests;
#[cfg(test)]
mod tests;
mod writer;

pub use crate::nats::handler::Handler;
pub use crate::nats::writer::Writer;
pub use mapping::{SLOW_CONSUMER_PREFIX, reply_of};
pub(crate) use mapping::{amended, visit_properties};
pub use settings::{Settings, Tls};
