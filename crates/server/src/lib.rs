//! The process: reactor, listeners, TLS, settings, command line, HTTP, metrics.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod allocator;
mod amqp_client;
pub mod authenticate;
pub mod commands;
mod hints;
pub mod http;
mod journal_threads;
pub mod logs;
mod memory;
mod memory_available;
pub mod reactor;
pub mod settings;
pub mod signals;
mod spill_thread;
mod threads;
