//! Tests of the simulator itself.

mod canaries;
mod parts;
mod seeds;
