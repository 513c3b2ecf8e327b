//! Load from several machines: workers run parts of a plan's producers and consumers, and one
//! coordinator measures, drains and judges as if all ran locally.

mod coordinate;
mod serve;
mod wire;

pub use coordinate::{check, run, run_within};
pub use serve::{serve, serve_within};

#[cfg(test)]
mod tests;
