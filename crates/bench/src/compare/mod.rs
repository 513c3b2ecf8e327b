//! Our broker beside a peer: the same loads, in turn, on the same machine, against the targets.
//!
//! Some sections use the peer's own load tool for both; on the faster side it is the bottleneck. The others
//! use the generator of this crate, which is not.

mod amqp10;
mod comparison;
mod disk_share;
mod isolation;
mod loads;
mod mqtt;
mod nats;
mod nats_bench;
mod perftest;
mod rabbitmq;
mod relay;
mod runs;
mod side;
mod starts;
mod table;

use crate::campaign::Folder;
use crate::client::Protocol;
use crate::load::idle;
use crate::output;
pub(crate) use comparison::{CompareArguments, octets};
use comparison::{Comparison, With};
pub(crate) use side::Side;
use std::fs;
use std::path::Path;
use table::Report;

/// Starts both brokers, runs all loads and prints the report. `true` if every target is met.
pub(crate) fn run(arguments: &CompareArguments) -> Result<bool, String> {
    let folder = Folder::create(&arguments.folder)?;
    let report = match arguments.protocol {
        With::Amqp091 => with_rabbitmq(arguments, folder.path())?,
        With::Amqp10 => with_artemis(arguments, folder.path())?,
        With::Nats => with_nats_server(arguments, folder.path())?,
        With::Mqtt => with_mosquitto(arguments, folder.path())?,
    };
    if report.is_empty() {
        return Err(format!(
            "no load has '{}' in its name (`--only`)",
            arguments.only.join("' or '")
        ));
    }
    let text = report.render();
    output::put(&text);
    if let Some(output) = &arguments.output {
        fs::write(output, &text).map_err(|error| format!("{}: {error}", output.display()))?;
    }
    Ok(report.all_met())
}

fn with_rabbitmq(arguments: &CompareArguments, folder: &Path) -> Result<Report, String> {
    let mut sides = arguments.ours(Protocol::Amqp091, folder)?;
    if !arguments.alone {
        sides.push(Side::rabbitmq(arguments.rabbitmq.as_deref(), folder)?);
    }
    let mut report = Report::new(&theirs(&sides, side::RABBITMQ));
    let comparison = Comparison { arguments, sides: &sides, effort: arguments.effort(), folder };
    let misbehaving = arguments.misbehaving_on_queues();
    let ran = rabbitmq::run(&comparison, arguments.perf_test.as_deref(), misbehaving, &mut report);
    shown_if_cut_short(&report, ran)?;
    add_starts(arguments, sides, &mut report, folder)?;
    Ok(report)
}

fn with_artemis(arguments: &CompareArguments, folder: &Path) -> Result<Report, String> {
    let mut sides = arguments.ours(Protocol::Amqp10, folder)?;
    if !arguments.alone {
        sides.push(Side::artemis(&arguments.artemis, folder)?);
    }
    let mut report = Report::new(&theirs(&sides, "Artemis"));
    let comparison = Comparison { arguments, sides: &sides, effort: arguments.effort(), folder };
    let ran = amqp10::run(&comparison, arguments.qpid_jms.as_deref(), &mut report);
    shown_if_cut_short(&report, ran)?;
    Ok(report)
}

fn with_nats_server(arguments: &CompareArguments, folder: &Path) -> Result<Report, String> {
    // Brokers inherit the limit.
    idle::raise_descriptor_limit(nats::DESCRIPTORS);
    let mut sides = arguments.ours(Protocol::Nats, folder)?;
    if !arguments.alone {
        sides.push(Side::nats(&arguments.nats_server, folder)?);
    }
    let mut report = Report::new(&theirs(&sides, "nats-server"));
    let comparison = Comparison { arguments, sides: &sides, effort: arguments.effort(), folder };
    let ran = nats::run(&comparison, arguments.nats_bench.as_deref(), &mut report);
    shown_if_cut_short(&report, ran)?;
    add_starts(arguments, sides, &mut report, folder)?;
    Ok(report)
}

fn with_mosquitto(arguments: &CompareArguments, folder: &Path) -> Result<Report, String> {
    // Brokers inherit the limit.
    idle::raise_descriptor_limit(mqtt::DESCRIPTORS);
    let mut sides = arguments.ours(Protocol::Mqtt, folder)?;
    if !arguments.alone {
        sides.push(Side::mosquitto(&arguments.mosquitto, folder)?);
        let rumqttd = arguments.rumqttd.iter().map(|program| Side::rumqttd(program, folder));
        sides.extend(rumqttd.collect::<Result<Vec<_>, _>>()?);
    }
    let mut report = Report::new(&theirs(&sides, side::MOSQUITTO));
    let comparison = Comparison { arguments, sides: &sides, effort: arguments.effort(), folder };
    let ran = mqtt::run(&comparison, &mut report);
    shown_if_cut_short(&report, ran)?;
    add_starts(arguments, sides, &mut report, folder)?;
    Ok(report)
}

/// Prints what was measured before a load failed.
fn shown_if_cut_short(report: &Report, ran: Result<(), String>) -> Result<(), String> {
    if ran.is_err() && !report.is_empty() {
        output::put(&report.render());
    }
    ran
}

/// The peers' names in the report; `otherwise` if they are left out.
fn theirs<'a>(sides: &'a [Side], otherwise: &'a str) -> Vec<&'a str> {
    let names = sides.iter().map(|side| side.name.as_str());
    let names: Vec<&str> = names.filter(|name| *name != side::OURS).collect();
    if names.is_empty() { vec![otherwise] } else { names }
}

/// Measures starts, once the brokers of the other loads have ended.
fn add_starts(
    arguments: &CompareArguments,
    sides: Vec<Side>,
    report: &mut Report,
    folder: &Path,
) -> Result<(), String> {
    if arguments.wants("start") {
        let theirs = report.theirs().to_owned();
        drop(sides);
        let (protocol, peer) = match arguments.protocol {
            With::Amqp091 => (Protocol::Amqp091, arguments.rabbitmq.as_deref()),
            // Starts of Artemis are not compared: they take seconds.
            With::Amqp10 => return Ok(()),
            With::Nats => (Protocol::Nats, Some(arguments.nats_server.as_path())),
            With::Mqtt => (Protocol::Mqtt, Some(arguments.mosquitto.as_path())),
        };
        let starts = starts::Starts {
            ours: arguments.broker.as_deref(),
            protocol,
            peer,
            theirs: (!arguments.alone).then_some(theirs.as_str()),
        };
        report.add(starts::measure(&starts, folder, arguments.effort().rounds)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
