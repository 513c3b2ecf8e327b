//! What an operator can set: one definition each, from which flags, environment, file and the
//! documentation derive.
//!
//! Does not know what the settings do.

mod definitions;
mod document;
mod listener_kinds;
mod network;
mod place;
mod sources;
#[cfg(test)]
mod tests;
mod value;

pub use definitions::{DEFINITIONS, DIRECT_BYTES_LEAST, Definition, Reload, Settings};
pub use document::document;
pub use listener_kinds::{LISTENERS, ListenerKind, Placement, Transport, default_port};
pub use network::Networks;
pub use place::{FileMode, Place, Places};
pub use sources::{Reloaded, Sources};
pub use value::{
    ByteCount, CertificateUser, Encryption, LogFormat, LogLevel, MetricsAccess, SessionOverflow,
    SettingValue, Span,
};
