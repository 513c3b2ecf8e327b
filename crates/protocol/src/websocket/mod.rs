//! WebSocket (RFC 6455), the server's side: what lies between a transport and the protocol handler of a
//! connection that came by HTTP.
//!
//! | file | concern |
//! |---|---|
//! | `handshake` | the HTTP request that opens it, and its answer |
//! | `header` | headers of frames, close codes |
//! | `incoming` | frames from the client: their payload |
//! | `outgoing` | frames to the client |
//! | `utf8` | whether text that comes in parts is UTF-8 |
//!
//! Independent of what is inside the frames. No extension is negotiated, compression neither.

mod handshake;
mod header;
mod incoming;
mod outgoing;
mod settings;
#[cfg(test)]
mod tests;
mod utf8;

pub use handshake::{Opening, open, turned_away};
pub use header::{Code, Fault, TEXT_REFUSED};
pub use incoming::{End, Incoming, Received};
pub use outgoing::Outgoing;
pub use settings::Settings;
