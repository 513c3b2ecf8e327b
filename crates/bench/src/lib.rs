//! Load, verdicts and reports for any broker, over a socket.
//!
//! | module | what it knows |
//! |---|---|
//! | `client` | protocols, as a client speaks them |
//! | `load` | workloads: who publishes what to whom, and what became of it |
//! | `measure` | processes, latencies, the bare disk and the bare sockets |
//! | `peer` | how other brokers are started and stopped |
//! | `versus` | our broker beside a peer, against targets |
//! | `report` | text and JSON |
//! | `arguments` | the command line |
//!
//! It meets our own broker exactly as it meets the others: nothing of the node or the server is in
//! here.

mod arguments;
pub mod client;
pub mod interrupt;
pub mod load;
pub mod measure;
pub mod peer;
mod report;
mod versus;

pub use arguments::{BenchArguments, run};
