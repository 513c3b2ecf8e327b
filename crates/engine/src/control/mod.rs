//! Control requests: administration and topology, checked, carried out, answered.

pub(crate) mod requests;
pub(crate) mod topology;
mod ways;
