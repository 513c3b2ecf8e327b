//! Why something is as it is, as a running broker explains it: a queue, a message, a connection, a publish.

use super::administer::{broker, name, value, verb, vhost, with_broker};
use super::http_client::{Broker, escaped};
use super::output;
use clap::{ArgMatches, Command, value_parser};
use serde_json::Value;

/// What addresses call the default exchange.
const DEFAULT_EXCHANGE: &str = "amq.default";

/// The command with its verbs.
pub(super) fn command() -> Command {
    let place = value("place", "N", "Which of those that wait: 1 is handed out first");
    let verbs = [
        verb("queue", "Why a queue holds what it holds, and what has to happen for it to move")
            .args([name("NAME"), vhost()]),
        verb("message", "Why a message waits where it does").args([
            name("QUEUE"),
            vhost(),
            place.default_value("1").value_parser(value_parser!(u64).range(1..)),
        ]),
        verb("connection", "Why a connection is held, and what it has open").arg(name("ID")),
        verb("publish", "Where a message would go, and who would be refused; nothing is sent")
            .args([
                name("EXCHANGE"),
                vhost(),
                value("key", "KEY", "Its routing key").default_value(""),
                value("headers", "JSON", "Its headers, as in '{\"kind\": \"a\"}'"),
                value("as", "USER", "Only whether this user would be refused"),
            ])
            .after_help("The default exchange is amq.default: its keys are names of queues."),
    ];
    let about = "Why something is as it is: queue, message, connection, publish";
    let command = verb("explain", about).subcommand_required(true).arg_required_else_help(true);
    with_broker(command.subcommands(verbs))
}

/// Carries it out.
pub(super) fn run(matches: &ArgMatches) -> Result<(), String> {
    let Some((verb, arguments)) = matches.subcommand() else {
        return Err("explain needs one of queue, message, connection, publish".to_owned());
    };
    let answer = answer(&broker(arguments)?, verb, arguments)?;
    let is_json = arguments.get_flag("json");
    output::put(if is_json { format!("{answer:#}\n") } else { told(&answer) }).map(drop)
}

/// What the broker answers.
pub(super) fn answer(broker: &Broker, verb: &str, arguments: &ArgMatches) -> Result<Value, String> {
    broker.ask("GET", &path(verb, arguments), None)
}

fn path(verb: &str, arguments: &ArgMatches) -> String {
    let text = |name: &str| arguments.try_get_one::<String>(name).ok().flatten().cloned();
    let part = |name: &str| text(name).map_or_else(String::new, |it| format!("/{}", escaped(&it)));
    let place = arguments.try_get_one::<u64>("place").ok().flatten();
    let place = place.map_or_else(String::new, |place| format!("/{place}"));
    let named = match (verb, text("name").as_deref()) {
        ("publish", Some("")) => format!("/{DEFAULT_EXCHANGE}"),
        _ => part("name"),
    };
    let given = [("key", text("key")), ("headers", text("headers")), ("user", text("as"))];
    let given = given.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let given = given.filter(|_| verb == "publish");
    let given: Vec<String> =
        given.map(|(name, value)| format!("{name}={}", escaped(&value))).collect();
    let query = if given.is_empty() { String::new() } else { format!("?{}", given.join("&")) };
    format!("/v1/explain/{verb}{}{named}{place}{query}", part("vhost"))
}

/// An explanation as people read it.
fn told(answer: &Value) -> String {
    let state = answer["state"].as_str().unwrap_or_default();
    let list = |field: &str| -> String {
        let lines = answer[field].as_array().into_iter().flatten().filter_map(Value::as_str);
        lines.map(|line| format!("  {}\n", output::escaped(line))).collect()
    };
    let part = |head: &str, lines: String| {
        if lines.is_empty() { lines } else { format!("{head}\n{lines}") }
    };
    let because = part("because:", list("because"));
    format!("{}\n{because}{}", output::escaped(state), part("for it to move:", list("to_move")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(words: &[&str], expected: &str) {
        let words = ["explain"].iter().chain(words);
        let matches = command().try_get_matches_from(words).unwrap();
        let (verb, arguments) = matches.subcommand().unwrap();
        assert_eq!(path(verb, arguments), expected);
    }

    #[test]
    fn what_is_asked_is_what_the_words_say() {
        check(&["queue", "q"], "/v1/explain/queue/%2F/q");
        check(&["message", "q", "--place", "3", "--vhost", "v"], "/v1/explain/message/v/q/3");
        check(&["connection", "7"], "/v1/explain/connection/7");
        check(&["publish", "", "--key", "q"], "/v1/explain/publish/%2F/amq.default?key=q");
        check(
            &["publish", "x", "--as", "ada", "--headers", "{}"],
            "/v1/explain/publish/%2F/x?key=&headers=%7B%7D&user=ada",
        );
        assert!(
            command().try_get_matches_from(["explain", "message", "q", "--place", "0"]).is_err()
        );
    }

    #[test]
    fn an_explanation_is_a_list_of_sentences() {
        let answer = json!({ "state": "queue 'q'", "because": ["a\u{1b}", "b"], "to_move": [] });
        assert_eq!(told(&answer), "queue 'q'\nbecause:\n  a\\u{1b}\n  b\n");
    }
}
