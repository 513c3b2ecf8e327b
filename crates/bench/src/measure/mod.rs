//! Measuring: processes, latencies, the disk and the sockets as they are without any broker.

pub mod bare_sockets;
pub mod disk;
pub mod instructions;
pub mod latency;
pub mod network;
pub mod process;
pub mod stalls;

#[cfg(test)]
mod tests;
