//! What the tests of all protocols share: a host without sockets, transcripts that are played on it,
//! and a seeded generator.

pub(crate) mod fragmentation;
pub(crate) mod fuzz;
pub(crate) mod host;
mod login;
mod pairs;
pub(crate) mod random;
pub(crate) mod transcript;
