//! Control requests: administration and topology, checked, carried out, answered.

pub(crate) mod deletion;
mod description;
mod facts;
mod purge;
pub(crate) mod requests;
mod rights_review;
pub(crate) mod topology;
pub(crate) mod underway;
mod vhost_deletion;
mod ways;
