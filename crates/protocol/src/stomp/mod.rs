//! STOMP 1.0, 1.1 and 1.2, with RabbitMQ's destinations, and ActiveMQ's and Artemis's headers.

pub mod codec;
pub mod frame;

mod asked;
mod close;
mod destination;
mod fault;
mod handler;
mod handshake;
mod mapping;
mod properties;
mod publish;
mod reassembly;
mod settings;
mod settle;
mod shown;
mod subscribe;
mod subscription;
#[cfg(test)]
pub(crate) mod tests;
mod transactions;
mod unconfirmed;
mod unfinished;
mod unsubscribe;
mod writer;

pub use handler::Handler;
pub(crate) use properties::{
    amended, header_named, reply_to, text_property, timestamp, visit_properties,
};
pub use settings::Settings;
pub use writer::Writer;
