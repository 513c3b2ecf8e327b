//! HTTP: health, readiness, metrics and the administration API, on one control thread.
//!
//! Asks the shards by mailbox and never touches what they own.

mod api;
mod audit;
mod auth;
mod explain;
mod hosts;
mod listings;
mod mailboxes;
mod measured;
mod metrics;
mod nats_monitor;
mod openapi;
mod operations;
mod policies;
mod rabbitmq;
mod request_types;
mod serve;
mod slots;
mod subjects;
mod views;
mod warnings;

pub(crate) use hosts::machine_name;
pub use mailboxes::Mailboxes;
#[cfg(test)]
pub(crate) use serve::BODY_BYTES_MAX;
pub use serve::{CONNECTIONS_MAX, Endpoints, start, take_definitions};
