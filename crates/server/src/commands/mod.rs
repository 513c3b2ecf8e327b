//! The command line: what can be called, and which module carries it out.

// They panic if the reader has closed the pipe: `output` does not.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod administer;
mod amqp;
mod consume;
mod definitions;
mod explain;
#[cfg(test)]
mod explain_tests;
mod http_client;
#[cfg(test)]
mod http_tests;
mod journal;
#[cfg(test)]
mod nats_monitor_tests;
mod output;
mod policy;
#[cfg(test)]
mod policy_tests;
mod publish;
#[cfg(test)]
mod rabbitmq_tests;
mod serve;
#[cfg(test)]
mod tests;
mod top;
mod transport;
#[cfg(test)]
mod transport_tests;

use angarium_bench::secrets;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use std::ffi::OsString;
use std::process::ExitCode;

use crate::settings;

const ABOUT: &str = "A message broker: AMQP 0-9-1 with RabbitMQ's extensions, AMQP 1.0, NATS, MQTT and \
                     STOMP, on a journal that keeps its word.\n\nWithout a command it serves, with \
                     sensible defaults.";

const EXAMPLES: &str = "Examples:
  angarium                                      serve on 5672, 4222, 1883, 61613, data in the user's folder
  angarium serve --data /srv/mq --amqp :5673    another folder and port
  angarium queue add hello                      declare a durable queue
  angarium publish --queue hello 'good day'     send a message, wait until it is safe
  angarium consume hello                        print messages as they come
  angarium queue list --json                    what is there, for programs
  angarium top                                  what it does now, live
  angarium explain queue hello                  why its messages wait, and what has to happen
  angarium user add ada --administrator         a user; the password is read from standard input
  angarium bench --help                         measure any broker

Clients on this host connect as guest/guest to amqp://localhost:5672/, or to
nats://localhost:4222 without a name.
Commands find a running broker by its data folder (--data, ANGARIUM_DATA); over the network they
take --admin http://HOST:15672 with --user (ANGARIUM_USER) and the password in ANGARIUM_PASSWORD or in
the file that --password-file (ANGARIUM_PASSWORD_FILE) names: command lines can be read by everybody.
`publish` and `consume` are AMQP clients: where it is not on this host's 5672, --uri (ANGARIUM_URI).";

/// Every command.
pub fn command_line() -> Command {
    Command::new("angarium")
        .version(env!("CARGO_PKG_VERSION"))
        .about(ABOUT)
        .after_help(EXAMPLES)
        .subcommand_required(true)
        .max_term_width(100)
        .subcommand(serve_command())
        .subcommands(administer::commands())
        .subcommand(definitions::command())
        .subcommand(policy::command())
        .subcommand(explain::command())
        .subcommand(administer::with_broker(top::command()))
        .subcommand(publish::Publish::augment_args(Command::new("publish")))
        .subcommand(consume::Consume::augment_args(Command::new("consume")))
        .subcommand(journal::Journal::augment_args(Command::new("journal")))
        .subcommand(angarium_bench::BenchArguments::augment_args(
            Command::new("bench").about("Measures a broker, this one or another"),
        ))
}

/// `serve`, with a flag for each setting.
fn serve_command() -> Command {
    let config = Arg::new("config")
        .long("config")
        .value_name("FILE")
        .env("ANGARIUM_CONFIG")
        .help("A TOML file with settings; flags and the environment win over it");
    let flags = settings::DEFINITIONS.iter().map(|definition| {
        let text = definition.text.replace('\n', " ");
        let (variable, default) = (definition.variable(), definition.default());
        let help = format!("{} [{variable}; default: {default}]", text.trim());
        let flag = Arg::new(definition.name).long(definition.name);
        flag.value_name((definition.form)()).help(help)
    });
    Command::new("serve")
        .about("Runs the broker (also what `angarium` does without a command)")
        .arg(config)
        .args(flags)
        .after_help(
            "Sizes are written 64KiB, 128MiB, 2GiB; times 500ms, 30s, 10m. SIGTERM stops in order, \
             SIGHUP reads file and environment again.",
        )
}

/// Runs what the arguments say.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = with_command(arguments);
    if let Err(why) = secrets::refuse_in(&arguments) {
        output::complain(&why);
        return ExitCode::FAILURE;
    }
    let matches = match command_line().try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) => error.exit(),
    };
    let Some((name, matches)) = matches.subcommand() else {
        unreachable!("clap makes sure that there is a command")
    };
    let result = match name {
        "serve" => serve::run(matches),
        "publish" => parsed(matches).and_then(|arguments| publish::run(&arguments)),
        "consume" => parsed(matches).and_then(|arguments| consume::run(&arguments)),
        "definitions" => definitions::run(matches),
        "policy" => policy::run(matches),
        "explain" => explain::run(matches),
        "top" => top::run(matches),
        "journal" => parsed(matches).and_then(|arguments| journal::run(&arguments)),
        "bench" => match parsed(matches) {
            Ok(arguments) => return angarium_bench::run(arguments),
            Err(error) => Err(error),
        },
        _ => administer::run(name, matches),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&error);
            ExitCode::FAILURE
        }
    }
}

fn parsed<T: FromArgMatches>(matches: &ArgMatches) -> Result<T, String> {
    T::from_arg_matches(matches).map_err(|error| error.to_string())
}

/// Puts `serve` where no command is given: `angarium --amqp :5673` serves.
fn with_command(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    const ALONE: [&str; 4] = ["--help", "-h", "--version", "-V"];
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    let first = arguments.get(1).and_then(|first| first.to_str());
    let is_command = first.is_some_and(|first| !first.starts_with('-') || ALONE.contains(&first));
    if !is_command {
        arguments.insert(1.min(arguments.len()), "serve".into());
    }
    arguments
}
