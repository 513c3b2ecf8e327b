//! `angarium journal`: looks at a data folder's journal while no broker uses it.

use super::output;
use crate::hints;
use crate::settings::Settings;
use angarium_journal::{Disk, Report, check, repair};
use angarium_node::Options;
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};

/// The folder of the journal within the data folder.
pub(super) const FOLDER: &str = "journal";

/// Most times in a row that a repair is followed by another, for what it made visible.
const REPAIRS_MAX: usize = 8;

/// Checks or repairs a stopped broker's journal
#[derive(Args, Debug)]
pub(super) struct Journal {
    /// The broker's data folder
    #[arg(long, value_name = "DIR", env = "ANGARIUM_DATA", global = true)]
    data: Option<PathBuf>,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Says what is in it and what is wrong with it
    Check,
    /// Makes anew what it can, gives up what is damaged, and says what that was; copy the folder first
    Repair {
        /// Really give up what is damaged; without it, only says what that would be
        #[arg(long)]
        drop_damaged: bool,
    },
}

/// Carries it out.
pub(super) fn run(arguments: &Journal) -> Result<(), String> {
    let data = arguments.data.as_deref();
    let folder = data.map_or_else(|| Settings::default().data, Path::to_owned).join(FOLDER);
    if !folder.is_dir() {
        return Err(format!("no journal in '{}'", folder.display()));
    }
    let disk = Disk::open(&folder).map_err(|error| hints::in_data_folder(&folder, &error))?;
    let mut report = check(&disk)?;
    output::put(shown(&report))?;
    let problems = report.problems.len();
    match arguments.verb {
        _ if problems == 0 => Ok(()),
        _ if report.is_of_another_version() => Err("nothing was changed".into()),
        Verb::Check => Err(advice(problems, data)),
        Verb::Repair { drop_damaged: false } => Err(
            "nothing was changed; copy the folder, then --drop-damaged gives up what is damaged"
                .into(),
        ),
        Verb::Repair { drop_damaged: true } => {
            // What lay behind the damage shows only once it is mended.
            for _ in 0..REPAIRS_MAX {
                let said = match report.needs_rebuild() {
                    true => angarium_node::rebuild(&disk, &Options::alone([0; 32]))?,
                    false => repair(&disk, &report)?,
                };
                for line in said {
                    output::put(format!("{line}\n"))?;
                }
                report = check(&disk)?;
                if report.problems.is_empty() {
                    return output::put(shown(&report)).map(drop);
                }
            }
            output::put(shown(&report))?;
            Err("some of it cannot be repaired: restore the data from a copy".into())
        }
    }
}

/// What to do about problems in that data folder, or in the usual one.
fn advice(problems: usize, data: Option<&Path>) -> String {
    let problems = if problems == 1 { "a problem".into() } else { format!("{problems} problems") };
    let data = data.map(|folder| format!(" --data {}", folder.display())).unwrap_or_default();
    format!(
        "the journal has {problems}: bring the file back from a copy, or let `angarium journal \
         repair{data}` give up what is damaged"
    )
}

/// A report in words.
pub(super) fn shown(report: &Report) -> String {
    let mut text = match &report.checkpoint {
        Some(checkpoint) => {
            let end = if checkpoint.clean { "closed in order" } else { "not closed in order" };
            format!("{}: {} bytes, {end}\n", checkpoint.name, checkpoint.snapshot_bytes)
        }
        None if !report.problems.is_empty() => {
            "no checkpoint that can be read: what is live is not known\n".to_owned()
        }
        None => "no checkpoint yet: a start reads the log from its beginning\n".to_owned(),
    };
    for segment in &report.segments {
        text += &format!(
            "{}: {} bytes, {} blocks, {} records",
            segment.name, segment.bytes, segment.blocks, segment.records
        );
        if let Some(live) = segment.live {
            text += &format!(", {live} live references");
        }
        if segment.given_up > 0 {
            text += &format!(", {} bytes given up by a repair", segment.given_up);
        }
        text.push('\n');
    }
    for note in &report.notes {
        text += &format!("NOTE {note}\n");
    }
    for problem in &report.problems {
        text +=
            &format!("PROBLEM {} at offset {}: {}\n", problem.name, problem.offset, problem.what);
    }
    if report.problems.is_empty() {
        text += "the journal is whole\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_come_with_what_to_do() {
        for (problems, data, begins, offers) in [
            (1, None, "the journal has a problem: ", "`angarium journal repair`"),
            (2, Some("d"), "the journal has 2 problems: ", "`angarium journal repair --data d`"),
        ] {
            let advice = advice(problems, data.map(Path::new));
            assert!(advice.starts_with(begins) && advice.contains(offers), "{advice}");
        }
    }
}
