//! Control requests: administration and topology, checked, carried out, answered.

mod deletion;
mod description;
pub(crate) mod requests;
mod rights_review;
pub(crate) mod topology;
mod ways;
