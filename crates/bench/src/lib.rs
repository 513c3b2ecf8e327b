//! Load, verdicts and reports for any broker, over a socket.
//!
//! | module | what it knows |
//! |---|---|
//! | `client` | protocols, as a client speaks them |
//! | `load` | workloads: who publishes what to whom, and what became of it |
//! | `measure` | processes, latencies, the bare disk and the bare sockets |
//! | `exchange` | a stock exchange of three programs |
//! | `peer` | how brokers are found, started, killed and stopped |
//! | `preset` | the classic measurements as data: parameters, terms, historical figures |
//! | `campaign` | presets against brokers, in turn |
//! | `compare` | our broker beside a peer, against targets |
//! | `report` | results as text, JSON and a page; two of them beside each other |
//! | `arguments`, `output` | the command line, and what is said there |
//!
//! It meets our own broker exactly as it meets the others: nothing of the node or the server is in
//! here.

mod arguments;
mod campaign;
pub mod client;
mod compare;
pub mod exchange;
pub mod interrupt;
pub mod load;
pub mod measure;
mod output;
pub mod peer;
mod preset;
mod process_reaper;
mod report;
mod tcp;

pub use arguments::{BenchArguments, run};
