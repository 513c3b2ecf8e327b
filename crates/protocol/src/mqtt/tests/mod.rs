//! Connections of clients against the real engine.

mod errors;
mod features;
mod fragmentation;
mod retained;
mod sessions;
mod speech;
