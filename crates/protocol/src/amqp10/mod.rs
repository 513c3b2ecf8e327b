//! AMQP 1.0 (OASIS Standard, 29 October 2012): its wire format, and messages that are kept and translated. No
//! handler uses it yet.

#[expect(dead_code, reason = "the handler reads addresses with it")]
mod address;
mod body;
pub mod codec;
pub mod frame;
#[allow(dead_code, reason = "the handler answers with it")]
mod management;
mod properties;
#[expect(dead_code, reason = "the handler keeps messages with it")]
mod stored;
#[expect(dead_code, reason = "the writer translates messages with it")]
mod translate;

pub(crate) use body::payload;
pub(crate) use properties::{amended, read_headers, visit_properties};
