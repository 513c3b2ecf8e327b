//! A fake world for a whole node: clients, network, disk and time are simulated, everything follows
//! from one seed, and the code under test is the very code that ships.
//!
//! [`run::run`] makes a plan from the seed, lets it happen in a [`world::World`], and judges what the
//! clients saw by the [`checks`].

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
