//! Load from several machines: workers that hold a part of a plan's producers and consumers, and one
//! coordinator that measures, drains and judges as if all were here.

mod coordinate;
mod serve;
mod wire;

pub use coordinate::{check, run, run_within};
pub use serve::{serve, serve_within};

#[cfg(test)]
mod tests;
