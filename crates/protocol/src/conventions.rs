//! What an engine that serves these protocols is made with: names, and readers of encoded properties.

use crate::names::NAMES;
use crate::{death_history, read_headers};
use angarium_engine::Conventions;

/// What an engine that serves these protocols is made with.
pub static CONVENTIONS: Conventions = Conventions {
    names: NAMES,
    read_headers,
    read_deaths: death_history::deaths,
    read_further_keys: death_history::further_keys,
};
