//! Presets against brokers: starts the brokers, interleaves runs, and saves after each preset.

mod arguments;
mod execute;
mod folder;
mod progress;
mod run;
mod side;

pub(crate) use arguments::{DiffArguments, PeersArguments, PresetArguments, diff, peers, run};
pub(crate) use folder::Folder;
pub(crate) use progress::Progress;
pub(crate) use side::listener_of;
