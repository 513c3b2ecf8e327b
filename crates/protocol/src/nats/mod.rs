//! NATS's client protocol, as nats-server speaks it without JetStream.
//!
//! `frame` and `codec` know bytes only and serve clients as well as the broker; `session` and its
//! parts (`handshake`, `publish`, `gather`, `monitor`) are one connection; `deliver` writes what the engine
//! sends; `mapping` is where this protocol's words meet the engine's.

pub mod codec;
mod deliver;
pub mod fault;
pub mod frame;
mod gather;
mod handshake;
mod mapping;
mod monitor;
mod publish;
mod session;
mod settings;
mod subject;
#[cfg(test)]
mod tests;

pub(crate) use deliver::{ControlLine, write_burst, write_delivery, write_forbidden};
pub use mapping::{LAGGARD_PREFIX, reply_of};
pub(crate) use mapping::{amended, visit_properties};
pub use session::Connection;
pub use settings::{Settings, Tls};
