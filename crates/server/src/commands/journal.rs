//! `angarium journal`: looks at a data folder's journal while no broker uses it.

use super::output;
use crate::hints;
use crate::settings::Settings;
use angarium_journal::{Disk, Report, check, repair};
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::path::PathBuf;

/// The folder of the journal within the data folder.
pub(super) const FOLDER: &str = "journal";

/// The command's head.
pub(super) fn command() -> Command {
    let data = Arg::new("data")
        .long("data")
        .value_name("DIR")
        .env("ANGARIUM_DATA")
        .global(true)
        .help("The broker's data folder");
    Command::new("journal")
        .about("Checks or repairs a stopped broker's journal")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .arg(data)
        .subcommand(Command::new("check").about("Says what is in it and what is wrong with it"))
        .subcommand(repair_command())
}

fn repair_command() -> Command {
    let confirmed = Arg::new("drop-damaged")
        .long("drop-damaged")
        .action(ArgAction::SetTrue)
        .help("Really give up what is damaged; without it, only says what that would be");
    Command::new("repair")
        .about("Gives up what is damaged, and says what that was; copy the folder first")
        .arg(confirmed)
}

/// Carries it out.
pub(super) fn run(matches: &ArgMatches) -> Result<(), String> {
    let (verb, arguments) = matches.subcommand().unwrap_or(("", matches));
    let data = arguments.get_one::<String>("data").map(PathBuf::from);
    let folder = data.unwrap_or_else(|| Settings::default().data).join(FOLDER);
    if !folder.is_dir() {
        return Err(format!("no journal in '{}'", folder.display()));
    }
    let disk = Disk::open(&folder).map_err(|error| hints::in_data_folder(&folder, &error))?;
    let report = check(&disk)?;
    output::put(shown(&report))?;
    if verb == "repair" && !report.problems.is_empty() {
        if !arguments.get_flag("drop-damaged") {
            return Err(
                "nothing was changed; copy the folder, then --drop-damaged gives up what is \
                        damaged"
                    .into(),
            );
        }
        for dropped in repair(&disk, &report)? {
            output::put(format!("{dropped}\n"))?;
        }
        output::put("check again: what lay behind the damage shows only now\n")?;
        return Ok(());
    }
    match report.problems.len() {
        0 => Ok(()),
        problems => Err(advice(problems, arguments.get_one("data").map(String::as_str))),
    }
}

/// What to do about problems in that data folder, or in the usual one.
fn advice(problems: usize, data: Option<&str>) -> String {
    let problems = if problems == 1 { "a problem".into() } else { format!("{problems} problems") };
    let data = data.map(|folder| format!(" --data {folder}")).unwrap_or_default();
    format!(
        "the journal has {problems}: bring the file back from a copy, or let `angarium journal \
         repair{data}` give up what is damaged"
    )
}

/// A report in words.
pub(super) fn shown(report: &Report) -> String {
    let mut text = String::new();
    if let Some(checkpoint) = &report.checkpoint {
        let end = if checkpoint.clean { "closed in order" } else { "not closed in order" };
        text += &format!("{}: {} bytes, {end}\n", checkpoint.name, checkpoint.snapshot_bytes);
    } else {
        text += "no checkpoint that can be read: what is live is not known\n";
    }
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
            let advice = advice(problems, data);
            assert!(advice.starts_with(begins) && advice.contains(offers), "{advice}");
        }
    }
}
