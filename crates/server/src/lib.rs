//! The process: reactor, listeners, TLS, settings, command line, HTTP, metrics.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod settings;
