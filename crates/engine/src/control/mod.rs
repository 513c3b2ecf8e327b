//! Control requests: administration and topology, checked, carried out, answered.

mod deletion;
mod description;
pub(crate) mod purge;
pub(crate) mod requests;
mod rights_review;
pub(crate) mod topology;
pub(crate) mod vhost_deletion;
mod ways;
