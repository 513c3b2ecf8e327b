//! Two brokers given the same frames, scenario by scenario: whatever they answer differently.
//!
//! Scenarios are text files (`amqp091/*.txt`, `amqp10/*.txt`, `nats/*.txt`; `scenario.rs` has their
//! grammar). Each runs on
//! connections of its own against both brokers. What comes back is written as text in the scenarios' own
//! words, without what differs from run to run, and compared line by line.

mod amqp091;
mod amqp10;
mod connection;
mod nats;
mod release;
mod scenario;
mod text;

use crate::campaign::Folder;
use crate::client::{Protocol, Target};
use crate::compare::Side;
use crate::output;
use crate::process_reaper;
use clap::{Args, ValueEnum};
use connection::{Player, Wire};
use scenario::Scenario;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// What to compare and with what.
#[derive(Debug, Args)]
pub(crate) struct DifferArguments {
    /// The protocol, and with it the peer
    #[arg(value_enum, default_value = "amqp091")]
    protocol: With,
    /// Our broker's program
    #[arg(long)]
    broker: PathBuf,
    /// A running peer, such as amqp://127.0.0.1:5673 [default: an installed one is started]
    #[arg(long)]
    peer: Option<Target>,
    /// Artemis's program
    #[arg(long, default_value = "artemis")]
    artemis: PathBuf,
    /// nats-server's program
    #[arg(long, default_value = "nats-server")]
    nats_server: PathBuf,
    /// Only scenarios whose name contains this; may be given several times
    #[arg(long)]
    only: Vec<String>,
    /// Print what both brokers answer in every scenario
    #[arg(long)]
    show: bool,
    /// Where the brokers keep their data
    #[arg(long, default_value = "target/differ")]
    folder: PathBuf,
}

/// The protocols that have scenarios.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum With {
    /// AMQP 0-9-1, with RabbitMQ
    Amqp091,
    /// AMQP 1.0, with ActiveMQ Artemis
    Amqp10,
    /// NATS, with nats-server
    Nats,
}

/// What both brokers answered in one scenario.
#[derive(Debug)]
struct Outcome {
    ours: Vec<String>,
    theirs: Vec<String>,
}

/// How one scenario ended.
#[derive(Debug, PartialEq, Eq)]
enum Finding {
    Same,
    /// They explain an error in other words.
    OtherWords,
    /// They differ, as the scenario says that they may.
    Accepted,
    Different,
    /// The scenario says that they may differ, and they do not.
    NoLongerDifferent,
}

/// Starts both brokers, plays all scenarios and prints the differences. `true` if there are none that are not
/// accepted.
pub(crate) fn run(arguments: &DifferArguments) -> Result<bool, String> {
    process_reaper::start().map_err(|error| error.to_string())?;
    let folder = Folder::create(&arguments.folder)?;
    let mut played = match arguments.protocol {
        With::Amqp091 => {
            let scenarios = wanted(amqp091::SCENARIOS, &arguments.only)?;
            let ours = Side::ours(&arguments.broker, Protocol::Amqp091, folder.path())?;
            let start = || Side::rabbitmq(None, folder.path());
            play_beside::<amqp091::Frames>(scenarios, &ours, arguments.peer.as_ref(), start)?
        }
        With::Amqp10 => {
            let scenarios = wanted(amqp10::SCENARIOS, &arguments.only)?;
            let ours = Side::ours(&arguments.broker, Protocol::Amqp10, folder.path())?;
            let start = || Side::artemis(&arguments.artemis, folder.path());
            play_beside::<amqp10::Frames>(scenarios, &ours, arguments.peer.as_ref(), start)?
        }
        With::Nats => {
            let scenarios = wanted(nats::SCENARIOS, &arguments.only)?;
            let ours = Side::ours(&arguments.broker, Protocol::Nats, folder.path())?;
            let start = || Side::nats(&arguments.nats_server, folder.path());
            play_beside::<nats::Lines>(scenarios, &ours, arguments.peer.as_ref(), start)?
        }
    };
    if arguments.protocol == With::Nats && arguments.peer.is_none() {
        played.extend(play_with_users(arguments, &folder.path().join("users"))?);
    }
    let (scenarios, outcomes): (Vec<_>, Vec<_>) = played.into_iter().unzip();
    Ok(report(&scenarios, &outcomes, arguments.show))
}

/// The scenarios of these files whose names are asked for.
fn wanted(files: &[(&str, &str)], only: &[String]) -> Result<Vec<Scenario>, String> {
    let mut scenarios = Vec::new();
    for (file, text) in files {
        scenarios.extend(scenario::parse(file, text)?);
    }
    let is_wanted = |name: &str| only.iter().any(|part| name.contains(part.as_str()));
    scenarios.retain(|scenario| only.is_empty() || is_wanted(&scenario.name));
    Ok(scenarios)
}

/// Plays scenarios on our broker and on a peer, which is started unless it is given.
fn play_beside<W: Wire>(
    scenarios: Vec<Scenario>,
    ours: &Side,
    peer: Option<&Target>,
    start: impl FnOnce() -> Result<Side, String>,
) -> Result<Vec<(Scenario, Outcome)>, String> {
    if scenarios.is_empty() {
        return Ok(Vec::new());
    }
    let started = if peer.is_some() { None } else { Some(start()?) };
    let theirs = peer.or(started.as_ref().map(|side| &side.uri));
    let theirs = theirs.expect("it is given or started");
    let greeting = connection::greeting::<W>(address(theirs)?)?;
    output::line(&release::headline(&W::COMPARED, &greeting));
    play_on_both::<W>(scenarios, &ours.uri, theirs)
}

fn play_on_both<W: Wire>(
    scenarios: Vec<Scenario>,
    ours: &Target,
    theirs: &Target,
) -> Result<Vec<(Scenario, Outcome)>, String> {
    let outcomes = play_all::<W>(&scenarios, [address(ours)?, address(theirs)?])?;
    Ok(scenarios.into_iter().zip(outcomes).collect())
}

/// Plays NATS's scenarios with users, on brokers of their own.
fn play_with_users(
    arguments: &DifferArguments,
    folder: &Path,
) -> Result<Vec<(Scenario, Outcome)>, String> {
    let scenarios = wanted(nats::WITH_USERS, &arguments.only)?;
    if scenarios.is_empty() {
        return Ok(Vec::new());
    }
    let (broker, flags) = (&arguments.broker, nats::OUR_FLAGS);
    let ours = Side::ours_with(broker, Protocol::Nats, folder, flags)?;
    for command in nats::OUR_USERS.lines() {
        Side::administer(broker, folder, command)?;
    }
    let theirs = Side::nats_with(&arguments.nats_server, folder, nats::THEIR_USERS)?;
    play_on_both::<nats::Lines>(scenarios, &ours.uri, &theirs.uri)
}

fn address(target: &Target) -> Result<SocketAddr, String> {
    let name = format!("{}:{}", target.host(), target.port());
    let mut addresses = name.to_socket_addrs().map_err(|error| format!("{name}: {error}"))?;
    addresses.next().ok_or_else(|| format!("{name} has no address"))
}

/// Plays all scenarios on both brokers, several at once.
fn play_all<W: Wire>(
    scenarios: &[Scenario],
    [ours, theirs]: [SocketAddr; 2],
) -> Result<Vec<Outcome>, String> {
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::with_capacity(scenarios.len()));
    let work = || -> Result<(), String> {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(scenario) = scenarios.get(at) else { return Ok(()) };
            let play = |address| {
                let played = Player::<W>::new(address, at).play(scenario);
                played.map_err(|error| format!("{}: {error}", scenario.name))
            };
            let (ours, theirs) = thread::scope(|scope| {
                let theirs = scope.spawn(|| play(theirs));
                (play(ours), theirs.join().expect("no player panics"))
            });
            let outcome = Outcome { ours: ours?, theirs: theirs? };
            outcomes.lock().expect("no player panics").push((at, outcome));
        }
    };
    thread::scope(|scope| {
        let players: Vec<_> = (0..W::AT_ONCE).map(|_| scope.spawn(work)).collect();
        players.into_iter().try_for_each(|player| player.join().expect("no player panics"))
    })?;
    let mut outcomes = outcomes.into_inner().expect("no player panics");
    outcomes.sort_by_key(|(at, _)| *at);
    Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
}

fn finding(scenario: &Scenario, outcome: &Outcome) -> Finding {
    let wordless =
        |lines: &[String]| lines.iter().map(|line| without_words(line)).collect::<Vec<_>>();
    let is_alike = wordless(&outcome.ours) == wordless(&outcome.theirs);
    match (is_alike, scenario.reason.is_some()) {
        (true, false) if outcome.ours == outcome.theirs => Finding::Same,
        (true, false) => Finding::OtherWords,
        (false, true) => Finding::Accepted,
        (false, false) => Finding::Different,
        (true, true) => Finding::NoLongerDifferent,
    }
}

/// A line without the explanation in an error's text: `reply-text="NOT_FOUND - why"` or `description="why"`.
fn without_words(line: &str) -> String {
    if let Some((before, text)) = line.split_once(" description=") {
        let behind = match text.strip_prefix('"') {
            Some(quoted) => quoted.rsplit_once('"').map_or("", |(_, behind)| behind),
            None => text.find(['}', ' ']).map_or("", |end| &text[end..]),
        };
        return format!("{before}{behind}");
    }
    let Some((before, text)) = line.split_once("reply-text=\"") else { return line.to_owned() };
    let Some((name, rest)) = text.split_once(" - ") else { return line.to_owned() };
    let behind = rest.rsplit_once('"').map_or("", |(_, behind)| behind);
    format!("{before}reply-text=\"{name}\"{behind}")
}

/// Prints all differences and the accepted ones' reasons. `true` if each difference is accepted.
fn report(scenarios: &[Scenario], outcomes: &[Outcome], show: bool) -> bool {
    let (mut accepted, mut different, mut other_words) = (0, 0, 0);
    for (scenario, outcome) in scenarios.iter().zip(outcomes) {
        let finding = finding(scenario, outcome);
        let name = &scenario.name;
        match (&finding, &scenario.reason) {
            (Finding::Same, _) => {}
            (Finding::OtherWords, _) => other_words += 1,
            (Finding::Accepted, reason) => {
                accepted += 1;
                output::line(&format!("accepted: {name}: {}", reason.as_deref().unwrap_or("")));
            }
            (Finding::NoLongerDifferent, _) => {
                different += 1;
                output::line(&format!("no longer different (take the reason out): {name}"));
            }
            (Finding::Different, _) => {
                different += 1;
                output::line(&format!("different: {name}"));
                output::put(&beside(&outcome.ours, &outcome.theirs));
            }
        }
        if show && finding != Finding::Different {
            output::line(&format!("{name}:"));
            output::put(&beside(&outcome.ours, &outcome.theirs));
        }
    }
    let count = scenarios.len();
    output::line(&format!(
        "{count} scenarios: {different} different, {accepted} accepted, {other_words} explain an error in \
         other words (--show)"
    ));
    different == 0
}

/// Both transcripts as one text: common lines once, others marked by whose they are.
fn beside(ours: &[String], theirs: &[String]) -> String {
    let mut text = String::new();
    let (mut at, mut theirs_at) = (0, 0);
    while at < ours.len() || theirs_at < theirs.len() {
        match (ours.get(at), theirs.get(theirs_at)) {
            (Some(our), Some(their)) if our == their => {
                text.push_str(&format!("    {our}\n"));
                (at, theirs_at) = (at + 1, theirs_at + 1);
            }
            (Some(our), their)
                if their.is_none() || !ours[at..].contains(their.expect("it is there")) =>
            {
                text.push_str(&format!("  - {our}\n"));
                at += 1;
                if let Some(their) = their {
                    text.push_str(&format!("  + {their}\n"));
                    theirs_at += 1;
                }
            }
            (Some(our), _) => {
                text.push_str(&format!("  - {our}\n"));
                at += 1;
            }
            (None, Some(their)) => {
                text.push_str(&format!("  + {their}\n"));
                theirs_at += 1;
            }
            (None, None) => {}
        }
    }
    text
}

#[cfg(test)]
mod tests;
