//! Definitions as files: what a broker is set up with, exported, imported or checked. Does not
//! know what is in them.

use super::administer::{broker, with_broker};
use super::http_client::escaped;
use super::output;
use clap::{Arg, ArgMatches, Command};
use serde_json::Value;
use std::path::PathBuf;

/// The address of all definitions.
const DEFINITIONS: &str = "/api/definitions";

/// The command with its verbs.
pub(super) fn command() -> Command {
    let file = |help| Arg::new("file").value_name("FILE").help(help);
    let vhost = |help| Arg::new("vhost").long("vhost").value_name("NAME").help(help);
    let into = || vhost("Only into this virtual host, which has to be there");
    let verbs = [
        Command::new("export")
            .about("Writes users, permissions, exchanges, queues and bindings as RabbitMQ does")
            .arg(file("Where to; standard output without it"))
            .arg(vhost("Only this virtual host")),
        Command::new("import")
            .about("Takes over what such a file has, also one of RabbitMQ's")
            .arg(file("The file").required(true))
            .arg(into()),
        Command::new("check")
            .about("Says what an import would not take over, and why; changes nothing")
            .arg(file("The file").required(true))
            .arg(into()),
    ];
    let command = Command::new("definitions").about("What the broker is set up with, as a file");
    with_broker(command.subcommand_required(true).subcommands(verbs))
}

/// Carries it out.
pub(super) fn run(matches: &ArgMatches) -> Result<(), String> {
    let Some((verb, arguments)) = matches.subcommand() else {
        return Err("definitions needs a verb: export, import or check".to_owned());
    };
    let file = arguments.get_one::<String>("file").map(PathBuf::from);
    let vhost = arguments.get_one::<String>("vhost");
    let path = vhost.map_or_else(String::new, |vhost| format!("/{}", escaped(vhost)));
    let path = format!("{DEFINITIONS}{path}");
    let broker = broker(arguments)?;
    let Some(file) = file.filter(|_| verb != "export") else {
        let answer = broker.ask("GET", &path, None)?;
        return write(arguments.get_one::<String>("file"), &format!("{answer:#}\n"));
    };
    let shown = file.display().to_string();
    let text = std::fs::read(&file).map_err(|error| format!("cannot read '{shown}': {error}"))?;
    let definitions: Value = serde_json::from_slice(&text)
        .map_err(|error| format!("'{shown}' is no file of definitions: {error}"))?;
    let checks = verb == "check";
    let query = if checks { "?check=true" } else { "" };
    let answer = broker.ask("POST", &format!("{path}{query}"), Some(&definitions))?;
    let text =
        if arguments.get_flag("json") { format!("{answer:#}\n") } else { report(&answer, checks) };
    output::put(text)?;
    match answer["left"].as_array().map_or(0, Vec::len) {
        0 => Ok(()),
        1 => Err("1 definition cannot be taken over".to_owned()),
        left => Err(format!("{left} definitions cannot be taken over")),
    }
}

fn write(file: Option<&String>, text: &str) -> Result<(), String> {
    let Some(file) = file else { return output::put(text).map(drop) };
    std::fs::write(file, text).map_err(|error| format!("cannot write '{file}': {error}"))
}

/// What was taken over, and what was not, a line each.
fn report(answer: &Value, checks: bool) -> String {
    let done = if checks { "can be taken over" } else { "taken over, or there already" };
    let taken = answer["taken"].as_object().into_iter().flatten();
    let taken = taken.map(|(kind, count)| format!("{kind}: {count} {done}\n"));
    let left = answer["left"].as_array().into_iter().flatten().map(|row| {
        let text = |name: &str| row[name].as_str().unwrap_or_default().escape_debug().to_string();
        let place = row["vhost"].as_str().map(|_| format!(" in '{}'", text("vhost")));
        let place = place.unwrap_or_default();
        format!("{} '{}'{place}: {}\n", text("kind"), text("name"), text("why"))
    });
    taken.chain(left).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_report_says_what_was_taken_and_what_not() {
        let answer = json!({
            "taken": { "queue": 2 },
            "left": [
                { "kind": "policy", "name": "p\u{1b}", "vhost": "/", "why": "none here" },
                { "kind": "user", "name": "u", "why": "a tag" },
            ],
        });
        let expected =
            "queue: 2 can be taken over\npolicy 'p\\u{1b}' in '/': none here\nuser 'u': a tag\n";
        assert_eq!(report(&answer, true), expected);
        assert!(report(&answer, false).starts_with("queue: 2 taken over, or there already\n"));
    }
}
