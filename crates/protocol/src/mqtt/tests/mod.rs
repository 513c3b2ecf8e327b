//! Connections of clients against the real engine.

mod authentication;
mod broker_topics;
mod errors;
mod features;
mod fragmentation;
mod retained;
mod sessions;
mod speech;
