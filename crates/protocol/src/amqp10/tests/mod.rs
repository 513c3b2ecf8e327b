//! Connections against the real engine: what a peer sends, and every frame that it gets.

mod client;
mod connections;
mod fragmentation;
mod fuzz;
mod links;
mod messages;
mod nodes;
mod show;
mod transactions;
