//! MQTT 3.1, 3.1.1 (OASIS Standard, 29 October 2014) and 5 (OASIS Standard, 7 March 2019).

pub mod codec;
pub mod frame;
