//! Presets against brokers: starts these, interleaves runs, keeps what is done whatever happens.

mod arguments;
mod execute;
mod folder;
mod progress;
mod run;
mod side;

pub(crate) use arguments::{DiffArguments, PeersArguments, PresetArguments, diff, peers, run};
pub(crate) use progress::Progress;
