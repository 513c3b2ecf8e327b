//! Connections against the real engine: what a peer sends, and every frame that it gets.

pub(crate) mod client;
mod connections;
mod fragmentation;
mod fuzz;
mod fuzz_dialogues;
mod levels;
mod links;
pub(crate) mod message_text;
mod messages;
mod nodes;
pub(crate) mod show;
mod transactions;
