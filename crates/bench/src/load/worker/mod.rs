//! Load from several machines: workers that hold a part of a plan's producers and consumers, and one
//! coordinator that measures, drains and judges as if all were here.

mod coordinate;
mod serve;
mod wire;

pub use coordinate::{check, run};
pub use serve::serve;

#[cfg(test)]
mod tests;
