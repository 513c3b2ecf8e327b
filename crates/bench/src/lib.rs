//! Load, verdicts and reports for any broker, over a socket.
//!
//! | module | subject |
//! |---|---|
//! | `client` | protocols, as a client speaks them |
//! | `load` | workloads: producers, consumers, and the verdict on every message |
//! | `measure` | processes, latencies, the bare disk and the bare sockets |
//! | `exchange` | a stock exchange of three programs |
//! | `peer` | how brokers are found, started, killed and stopped |
//! | `preset` | the classic measurements as data: parameters, terms, historical figures |
//! | `campaign` | presets against brokers, in turn |
//! | `compare` | our broker beside a peer, against targets |
//! | `differ` | two brokers given the same frames: what they answer differently |
//! | `report` | results as text, JSON and a page; the difference of two results |
//! | `secrets` | passwords, which are on no command line |
//! | `arguments`, `output` | the command line, and what is printed |
//!
//! It measures our own broker exactly like the others: it uses nothing of the node or the server.

mod arguments;
mod campaign;
pub mod client;
mod compare;
mod differ;
pub mod exchange;
pub mod interrupt;
pub mod load;
pub mod measure;
mod output;
pub mod peer;
mod preset;
mod process_reaper;
mod report;
pub mod secrets;
mod tcp;

pub use arguments::{BenchArguments, run};
