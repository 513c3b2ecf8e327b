//! Measurements: processes, latencies, bare disk and bare sockets.

pub mod bare_sockets;
pub mod disk;
pub mod instructions;
pub mod latency;
pub mod network;
pub mod process;
pub mod stalls;

#[cfg(test)]
mod tests;
