//! MQTT 3.1, 3.1.1 (OASIS Standard, 29 October 2014) and 5 (OASIS Standard, 7 March 2019).

mod aliases;
mod answers;
mod authentication;
mod beginning;
mod broker_topics;
mod close;
pub mod codec;
mod enhanced;
pub mod frame;
mod handler;
mod handshake;
mod incoming;
mod mapping;
mod outgoing;
mod pending;
mod publish;
mod replay;
mod replayed;
mod requests;
mod session;
mod settings;
mod settle;
mod shown;
mod stored;
mod subscribe;
mod subscriptions;
#[cfg(test)]
mod tests;
mod translate;
mod writer;

pub use self::frame::PACKET_BYTES_MAX;
pub use self::handler::Handler;
pub use self::settings::Settings;
pub use self::writer::Writer;
pub(crate) use stored::is_exactly_once;
pub(crate) use translate::{amended, header_named, reply_to, text_property, visit_properties};
