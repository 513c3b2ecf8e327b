//! AMQP 1.0's wire format (OASIS Standard, 29 October 2012), for brokers and clients: no handler uses it yet.

pub mod codec;
pub mod frame;
