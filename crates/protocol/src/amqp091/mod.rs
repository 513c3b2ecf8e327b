//! AMQP 0-9-1 with RabbitMQ's extensions.

pub mod codec;
pub mod frame;

mod channel;
mod close;
mod control;
pub mod declaration;
pub mod fault;
mod handler;
mod handshake;
mod jms_selector;
mod mapping;
mod mismatch;
mod publish;
mod publish_memo;
mod settings;
#[cfg(test)]
pub(crate) mod tests;
mod translate;
mod writer;

pub use crate::amqp091::handler::Handler;
pub use crate::amqp091::writer::Writer;
pub(crate) use crate::amqp091::writer::amended;
pub(crate) use mapping::{header_named, read_headers as read_amqp_headers};
pub use settings::Settings;
pub(crate) use translate::{reply_to, text_property, timestamp, visit_properties};

/// The capability that says that basic.consume takes `x-browse`.
pub const BROWSE_CAPABILITY: &str = "x-browse";

/// The queue name that stands for "replies straight to this channel".
pub const DIRECT_REPLY_TO: &str = "amq.rabbitmq.reply-to";
