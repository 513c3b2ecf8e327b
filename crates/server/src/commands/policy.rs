//! Policies on the command line: listed, set, cleared. Does not know what follows from them.

use super::administer::{any_vhost, broker, flag, list, name, option_flag, value, verb, vhost};
use super::administer::{said, with_broker};
use super::http_client::{Broker, escaped};
use super::output;
use angarium_engine::{
    AppliesTo, EXCHANGE_OPTIONS, OptionType, POLICY_OPTIONS, PolicyOption, QUEUE_OPTIONS,
};
use clap::{Arg, ArgMatches, Command};
use serde_json::{Map, Value, json};

/// What lists show to people.
const COLUMNS: &str = "vhost name operator pattern applies_to priority definition";

/// The command with its verbs.
pub(super) fn command() -> Command {
    let pattern = Arg::new("pattern").value_name("PATTERN").required(true);
    let operator = || flag("operator", "An operator policy: it bounds what others say");
    let set = verb("set", "Sets a policy: options for all that has a name its pattern matches")
        .args([
            name("NAME"),
            pattern.help("A regular expression over the names of queues and exchanges"),
            vhost(),
            operator(),
            value("apply-to", "", "What it is about")
                .value_name(AppliesTo::NAMES.join("|"))
                .default_value(AppliesTo::default().name()),
            value("priority", "N", "Of several that match, the one with the highest is followed")
                .default_value("0")
                .allow_negative_numbers(true),
        ])
        .args(POLICY_OPTIONS.iter().filter_map(flag_of))
        .after_help(
            "Of a limit that a queue was declared with and one of a policy the smaller holds; of \
             other options, what the queue or exchange was declared with.",
        );
    let clear = verb("clear", "Takes a policy away").args([name("NAME"), vhost(), operator()]);
    let about = "Policies, options by pattern: list, set, clear";
    let verbs = [list().arg(any_vhost()), set, clear];
    let command = verb("policy", about).subcommand_required(true).arg_required_else_help(true);
    with_broker(command.subcommands(verbs))
}

/// The flag of an option, as declarations have it.
fn flag_of(option: &PolicyOption) -> Option<Arg> {
    let queue = QUEUE_OPTIONS.iter().find(|it| it.name == option.name);
    let exchange = EXCHANGE_OPTIONS.iter().find(|it| it.name == option.name);
    let flag = queue.map(option_flag).or(exchange.map(option_flag))?;
    Some(flag.allow_negative_numbers(true))
}

/// Carries it out.
pub(super) fn run(matches: &ArgMatches) -> Result<(), String> {
    let Some((verb, arguments)) = matches.subcommand() else {
        return Err("policy needs a verb: list, set or clear".to_owned());
    };
    let answer = answer(&broker(arguments)?, verb, arguments)?;
    let text = match answer.as_array() {
        _ if arguments.get_flag("json") => format!("{answer:#}\n"),
        Some(rows) => output::table(rows, COLUMNS),
        None => said(&answer),
    };
    output::put(text).map(drop)
}

/// What the broker answers.
pub(super) fn answer(broker: &Broker, verb: &str, arguments: &ArgMatches) -> Result<Value, String> {
    if verb == "list" {
        let vhost = arguments.get_one::<String>("vhost");
        let query = vhost.map_or_else(String::new, |it| format!("?vhost={}", escaped(it)));
        return broker.ask("GET", &format!("/v1/policies{query}"), None);
    }
    let body = if verb == "set" { Some(body(arguments)?) } else { None };
    let method = if body.is_some() { "PUT" } else { "DELETE" };
    broker.ask(method, &path(arguments), body.as_ref())
}

/// The address of the policy that is meant.
fn path(arguments: &ArgMatches) -> String {
    let kind = if arguments.get_flag("operator") { "operator-policies" } else { "policies" };
    let part = |name: &str| arguments.get_one::<String>(name).map(|it| escaped(it));
    let [vhost, name] = ["vhost", "name"].map(|it| part(it).unwrap_or_default());
    format!("/v1/{kind}/{vhost}/{name}")
}

/// What it is to say.
fn body(arguments: &ArgMatches) -> Result<Value, String> {
    let text = |name: &str| arguments.get_one::<String>(name);
    let number = |name: &str, text: &str| {
        text.parse::<i64>().map_err(|_| format!("--{name}: expected a whole number"))
    };
    let mut definition = Map::new();
    for option in POLICY_OPTIONS {
        let Some(given) = text(option.name) else { continue };
        let is_number = option.described().is_some_and(|(_, kind)| {
            matches!(kind, OptionType::Count { .. } | OptionType::Millis { .. })
        });
        let value: Value =
            if is_number { number(option.name, given)?.into() } else { given.as_str().into() };
        definition.insert(option.name.replace('-', "_"), value);
    }
    let priority = text("priority").map_or(Ok(0), |text| number("priority", text))?;
    Ok(json!({
        "pattern": text("pattern"), "applies_to": text("apply-to"), "priority": priority,
        "definition": definition,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected_path: &str, expected: Result<Value, &str>) {
        let words = ["policy"].into_iter().chain(line.split(' '));
        let matches = command().try_get_matches_from(words).unwrap();
        let (_, arguments) = matches.subcommand().unwrap();
        assert_eq!(path(arguments), expected_path);
        assert_eq!(body(arguments), expected.map_err(str::to_owned));
    }

    #[test]
    fn what_is_set_is_what_the_flags_say() {
        check(
            "set p ^a --max-length 3 --overflow reject-publish --delivery-limit -1",
            "/v1/policies/%2F/p",
            Ok(json!({
                "pattern": "^a", "applies_to": "all", "priority": 0,
                "definition": {
                    "max_length": 3, "overflow": "reject-publish", "delivery_limit": -1,
                },
            })),
        );
        check(
            "set p .* --vhost v --operator --apply-to queues --priority -2 --expires 5",
            "/v1/operator-policies/v/p",
            Ok(json!({
                "pattern": ".*", "applies_to": "queues", "priority": -2,
                "definition": { "expires": 5 },
            })),
        );
        check(
            "set p .* --max-length much",
            "/v1/policies/%2F/p",
            Err("--max-length: expected a whole number"),
        );
    }
}
