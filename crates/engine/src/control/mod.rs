//! Control requests: administration and topology, checked, carried out, answered.

mod deletion;
pub(crate) mod requests;
mod rights_review;
pub(crate) mod topology;
mod ways;
