//! NATS's client protocol, as nats-server speaks it without JetStream.
//!
//! `frame` and `codec` know bytes only and serve clients as well as the broker; `session` and its
//! parts are one connection; `mapping` is where this protocol's words meet the engine's.

pub mod codec;
pub mod frame;
pub mod subject;
