//! AMQP 1.0 (OASIS Standard, 29 October 2012).

mod address;
mod anonymous;
mod attach;
mod body;
mod close;
pub mod codec;
mod detach;
mod fault;
mod filters;
mod flow;
pub mod frame;
mod handler;
mod handshake;
mod held;
mod incoming;
mod link;
mod link_state;
mod management;
mod mapping;
mod outcomes;
mod pending;
mod properties;
mod requests;
mod selection;
mod service;
mod session;
mod session_state;
mod sessions;
mod settings;
mod settle;
mod stored;
mod terminus;
#[cfg(test)]
pub(crate) mod tests;
mod transactions;
mod transfer_frame;
mod translate;
mod unconfirmed;
mod writer;

pub use self::handler::Handler;
pub use self::handshake::{Spoken, spoken};
pub use self::settings::Settings;
pub use self::writer::Writer;
pub(crate) use body::payload;
pub(crate) use properties::{amended, read_headers, visit_properties};
pub(crate) use selection::{annotation, application_property, properties_field};
