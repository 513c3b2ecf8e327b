//! Wire protocols: bytes to and from the engine's words.
//!
//! | protocol | folder | specification |
//! |---|---|---|
//! | AMQP 0-9-1 | `amqp091` | amqp.org, "Advanced Message Queuing Protocol, Protocol Specification 0-9-1" |
//! | NATS | `nats` | docs.nats.io, "Client Protocol", and what nats-server does |
//!
//! Each folder has the same files: `frame` (wire types), `codec` (bytes to and from frames; names no
//! engine type), `session` (one connection's state machine), `mapping` (the only file where the
//! protocol's words meet the engine's).
//!
//! Knows nothing about sockets, clocks or the journal.

mod advisory;
pub mod amqp091;
mod info;
mod json;
mod large;
mod login;
pub mod nats;
mod properties;
mod session;
mod survey;
#[cfg(test)]
mod tests;

pub use advisory::LaggardAdvisory;
pub use info::{ClientProperties, ConnectionInfo};
pub use large::LargeBody;
pub use properties::{amended, read_headers};
pub use session::{
    Authentication, Close, Credentials, Identity, Outlet, Peer, Protocol, Session, Turn, World,
};
pub use survey::{
    Figures, Findings, Order, PlaceInOrder, SUBJECT_BYTES_MAX, Survey, SurveyRow, Traffic,
};
