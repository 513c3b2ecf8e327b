//! Simulates a fake world for a whole node: clients, network, disk and time, all derived from one seed,
//! around the code that ships.
//!
//! [`run::run`] draws a plan from the seed, runs it in a [`world::World`], and applies the [`checks`] to
//! the history.

pub mod canary;
pub mod checks;
pub mod client;
pub mod history;
pub mod network;
pub mod payload;
pub mod plan;
pub mod random;
pub mod run;
pub mod workload;
pub mod world;

#[cfg(test)]
mod tests;
