//! Wire protocols: bytes to and from the engine's words.
//!
//! | protocol | folder | specification |
//! |---|---|---|
//! | AMQP 0-9-1 | `amqp091` | amqp.org, "Advanced Message Queuing Protocol, Protocol Specification 0-9-1" |
//! | AMQP 1.0 | `amqp10` | OASIS, "AMQP Version 1.0", parts 1 to 5 |
//! | MQTT 3.1.1 and 5 | `mqtt` | OASIS, "MQTT Version 3.1.1" and "MQTT Version 5.0" |
//! | NATS | `nats` | docs.nats.io, "Client Protocol", and what nats-server does |
//! | STOMP 1.0 to 1.2 | `stomp` | stomp.github.io, "STOMP Protocol Specification", and RabbitMQ's plugin |
//!
//! Each folder has the same files: `frame` (wire types) and `codec` (bytes to and from frames), which name no
//! engine type and serve clients too, `handler` (one connection's state machine), `writer` (what the engine
//! sends, as bytes),
//! `mapping` (between the protocol's terms and the engine's). A new protocol is a folder and a variant of
//! [`Protocol`] and [`AnyWriter`].
//!
//! Independent of sockets, clocks and the journal.

mod advisory;
pub mod amqp091;
pub mod amqp10;
mod broker_figures;
mod connection_query;
mod conventions;
mod first_bytes;
pub mod format;
mod handler;
mod login_names;
mod login_refusal;
pub mod mqtt;
mod names;
pub mod nats;
mod output;
mod peer;
mod properties;
pub mod scram;
mod selection;
mod shared_body;
pub mod stomp;
#[cfg(test)]
mod tests;
mod translation;
mod undecided;
pub mod web_origin;
pub mod websocket;
mod writer;

pub use crate::broker_figures::{BrokerFigures, BrokerTopics, ToldTopics};
pub use crate::connection_query::{
    ConnectionQuery, ConnectionRow, Figures, Order, QueryResult, SUBJECT_BYTES_MAX, SortKey,
    Traffic,
};
pub use crate::conventions::CONVENTIONS;
pub use crate::first_bytes::FirstBytes;
pub use crate::handler::{Close, Context, Host, ProtocolHandler, TurnedAway};
pub use crate::names::SUBJECT_EXCHANGE;
pub use crate::nats::reply_of;
pub use crate::output::Output;
pub use crate::peer::{
    Authentication, ClientProperties, ConnectionInfo, Credentials, Identity, Peer, Protocol,
};
pub use crate::shared_body::SharedBody;
pub use crate::undecided::{Settings as UndecidedSettings, Undecided};
pub use crate::writer::{AnyWriter, Writer};
pub use advisory::SlowConsumerEvent;
pub use translation::{amended, read_headers};
