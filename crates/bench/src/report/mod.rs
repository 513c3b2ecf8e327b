//! Results as text, as JSON and as a page, and the difference of two results.

mod charts;
mod drivers;
mod html;
mod machine;
mod plots;
mod result;
mod result_diff;
mod runs;
mod table;
mod text_table;

pub(crate) use crate::output::grouped;
pub(crate) use drivers::drivers;
pub(crate) use html::page;
pub(crate) use machine::Machine;
pub(crate) use result::{
    Absent, CaseResult, DIED, Extent, FORMAT, Measurement, PresetResult, Raw, Report, Run,
    SideInfo, median,
};
pub(crate) use result_diff::{diff, noise};
pub(crate) use runs::{disk, idle, isolation, load, round_trips, sockets, start};
pub(crate) use table::{figure, preset as preset_table, summary};

#[cfg(test)]
mod tests;
