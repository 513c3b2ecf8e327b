//! Commands that ask a running broker: `user`, `vhost`, `permission`, `queue`, `exchange`, `binding`,
//! `connection`, `status`.

use super::http_client::{Broker, escaped};
use super::output;
use super::table::table;
use crate::settings::{ByteCount, SettingValue, Settings};
use angarium_engine::{Bound, EXCHANGE_OPTIONS, OptionDefinition, OptionType, QUEUE_OPTIONS};
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// The socket in the data folder through which the operator administers.
pub(super) const SOCKET_NAME: &str = "admin.sock";

/// The flag of what becomes of slow clients.
const SLOW_CONSUMER_POLICY: &str = "slow-consumer-policy";

/// All of them.
pub(super) fn commands() -> Vec<Command> {
    let group = |name: &'static str, about: &'static str| {
        Command::new(name).about(about).subcommand_required(true).arg_required_else_help(true)
    };
    let commands = vec![
        Command::new("status").about("What a running broker does, in short"),
        group("user", "Users: list, add, quota, delete")
            .subcommand(list())
            .subcommand(
                verb("add", "Creates a user or sets its password, read from standard input")
                    .arg(name("NAME"))
                    .arg(flag("administrator", "May administer"))
                    .arg(value("new-password", "PASSWORD", "Instead of standard input"))
                    .arg(
                        flag("no-password", "It logs in by an nkey or a certificate alone")
                            .conflicts_with("new-password"),
                    ),
            )
            .subcommand(quota_command())
            .subcommand(verb("delete", "Deletes a user").arg(name("NAME"))),
        group("vhost", "Virtual hosts: list, add, delete")
            .subcommand(list())
            .subcommand(verb("add", "Creates a virtual host").arg(name("NAME")))
            .subcommand(verb("delete", "Deletes a virtual host and all in it").arg(name("NAME"))),
        group("permission", "What users may do: list, set, clear")
            .subcommand(list())
            .subcommand(
                verb("set", "Sets what a user may do in a virtual host, by patterns over names")
                    .arg(name("USER"))
                    .arg(vhost())
                    .arg(value("configure", "PATTERN", "Declare and delete").default_value(".*"))
                    .arg(value("write", "PATTERN", "Publish and bind").default_value(".*"))
                    .arg(value("read", "PATTERN", "Consume and bind from").default_value(".*")),
            )
            .subcommand(subjects_command())
            .subcommand(
                verb("clear", "Takes a user's permissions away").arg(name("USER")).arg(vhost()),
            ),
        queue_command(group("queue", "Queues: list, add, delete, purge")),
        exchange_command(group("exchange", "Exchanges: list, add, delete")),
        binding_command(group("binding", "Bindings: list, add, delete")),
        group("connection", "Clients' connections: list, close").subcommand(list()).subcommand(
            verb("close", "Closes a connection; clients of AMQP are told why, those of NATS to go")
                .arg(name("ID"))
                .arg(value("reason", "TEXT", "Why, for the log and for clients of AMQP")),
        ),
    ];
    commands.into_iter().map(with_broker).collect()
}

fn quota_command() -> Command {
    let command = verb("quota", "Sets what a user may use; what is not said is as for everybody")
        .arg(name("NAME"))
        .arg(value(
            SLOW_CONSUMER_POLICY,
            "spool|drop-oldest|drop-new|disconnect",
            "What becomes of direct messages for which its clients are too slow",
        ));
    Bound::NAMES.into_iter().fold(command, |command, (bound, name)| {
        let help = match bound {
            Bound::Connections => "Connections at once",
            Bound::Subscriptions => "Subscriptions of all its connections together",
            Bound::ConnectionSubscriptions => "Subscriptions of each of its connections",
            Bound::UnsentBytes => "Unsent bytes beyond which each is too slow",
            Bound::Messages => "Messages that it publishes in a second",
            Bound::Bytes => "Bytes that it sends in a second",
            Bound::ConnectionMessages => "Messages that each connection publishes in a second",
            Bound::ConnectionBytes => "Bytes that each connection sends in a second",
        };
        command.arg(value(name, "N", help))
    })
}

fn subjects_command() -> Command {
    let list = |name, help| {
        value(name, "SUBJECT,...", help).value_delimiter(',').action(ArgAction::Append)
    };
    verb(
        "subjects",
        "Narrows a user to subjects, in NATS and on the exchange amq.topic; sets all four lists",
    )
    .arg(name("USER"))
    .arg(vhost())
    .arg(list("publish", "It may publish to these subjects alone [default: all]"))
    .arg(list("publish-deny", "It may not publish to these, even if --publish has them"))
    .arg(list("subscribe", "It may subscribe to these subjects alone [default: all]"))
    .arg(list(
        "subscribe-deny",
        "It may not subscribe to these, even if --subscribe has them; what it subscribes to more \
         widely comes without them",
    ))
    .after_help(
        "In patterns `*` is one word and `>`, at the end, one or more.\n\
         Each call sets all four lists. One that is not given is empty, whatever it had before: \
         the user is not narrowed by it any more. The answer shows what holds then, and so does \
         `angarium permission list`.",
    )
}

fn queue_command(group: Command) -> Command {
    let add = verb("add", "Declares a queue")
        .arg(name("NAME"))
        .arg(vhost())
        .arg(flag("transient", "Gone after a restart"))
        .arg(flag("auto-delete", "Goes when its last consumer goes"));
    let add = QUEUE_OPTIONS.iter().fold(add, |add, option| add.arg(option_flag(option)));
    group
        .subcommand(list().arg(any_vhost()))
        .subcommand(add)
        .subcommand(
            verb("delete", "Deletes a queue and its messages")
                .arg(name("NAME"))
                .arg(vhost())
                .arg(flag("if-unused", "Only without consumers"))
                .arg(flag("if-empty", "Only without messages")),
        )
        .subcommand(verb("purge", "Drops a queue's ready messages").arg(name("NAME")).arg(vhost()))
}

fn exchange_command(group: Command) -> Command {
    let add = verb("add", "Declares an exchange")
        .arg(name("NAME"))
        .arg(vhost())
        .arg(
            value("type", "KIND", "How it routes: direct, fanout, topic or headers")
                .default_value("direct"),
        )
        .arg(flag("transient", "Gone after a restart"))
        .arg(flag("auto-delete", "Goes when its last binding goes"))
        .arg(flag("internal", "Only exchanges publish to it"))
        .arg(flag("delaying", "Holds messages with x-delay back"));
    let add = EXCHANGE_OPTIONS.iter().fold(add, |add, option| add.arg(option_flag(option)));
    group.subcommand(list().arg(any_vhost())).subcommand(add).subcommand(
        verb("delete", "Deletes an exchange")
            .arg(name("NAME"))
            .arg(vhost())
            .arg(flag("if-unused", "Only without bindings")),
    )
}

fn binding_command(group: Command) -> Command {
    let ends = |command: Command| {
        command
            .arg(name("SOURCE"))
            .arg(vhost())
            .arg(value("queue", "NAME", "It leads to this queue"))
            .arg(value("exchange", "NAME", "It leads to this exchange"))
            .arg(
                value(
                    "key",
                    "KEY",
                    "Its key or pattern: for topic exchanges `*` is one word, `#` any number",
                )
                .default_value(""),
            )
            .arg(
                value("argument", "NAME=VALUE", "An argument, for headers exchanges")
                    .action(ArgAction::Append),
            )
    };
    group
        .subcommand(list().arg(any_vhost()))
        .subcommand(ends(verb("add", "Binds a queue or an exchange to an exchange")))
        .subcommand(ends(verb("delete", "Takes a binding away")))
}

fn verb(name: &'static str, about: &'static str) -> Command {
    Command::new(name).about(about)
}
fn list() -> Command {
    verb("list", "Lists them")
}
fn name(shown: &'static str) -> Arg {
    let help = match shown {
        "ID" => "As `connection list` shows it",
        "USER" => "The user's name",
        "SOURCE" => "The exchange that messages come from",
        _ => "Its name",
    };
    Arg::new("name").value_name(shown).required(true).help(help)
}
fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}
/// The flag of one of the options that declarations have.
fn option_flag<O>(option: &OptionDefinition<O>) -> Arg {
    let mut help = option.what.to_owned();
    help[..1].make_ascii_uppercase();
    match option.kind {
        OptionType::Flag => Arg::new(option.name).long(option.name).action(ArgAction::SetTrue),
        OptionType::Count { .. } => value(option.name, "N", ""),
        OptionType::Millis { .. } => value(option.name, "MS", ""),
        OptionType::Text => value(option.name, "NAME", ""),
        OptionType::Choice(names) => value(option.name, "", "").value_name(names.join("|")),
    }
    .help(help)
}
fn value(name: &'static str, shown: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(shown).help(help)
}
fn vhost() -> Arg {
    value("vhost", "NAME", "The virtual host").default_value("/")
}
fn any_vhost() -> Arg {
    value("vhost", "NAME", "Only this virtual host")
}

/// Adds what says which broker is meant and how to print. The help shows it below what each command
/// has of its own.
fn with_broker(command: Command) -> Command {
    let arguments = [
        flag("json", "Print JSON"),
        value("data", "DIR", "The broker's data folder").env("ANGARIUM_DATA"),
        value("admin", "URL", "The broker's HTTP address, such as http://127.0.0.1:15672")
            .env("ANGARIUM_ADMIN"),
        value("user", "NAME", "An administrator").env("ANGARIUM_USER"),
        value("password", "PASSWORD", "The administrator's password")
            .env("ANGARIUM_PASSWORD")
            .hide_env_values(true),
    ];
    arguments.into_iter().fold(command, |command, argument| {
        command.arg(argument.global(true).help_heading("Which broker, and how to print"))
    })
}

/// One request to the broker.
#[derive(Debug, PartialEq)]
pub(super) struct Call {
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) body: Option<Value>,
    /// Columns of the listing; empty where it is none.
    pub(super) columns: &'static [&'static str],
}

/// Carries a command out.
pub(super) fn run(command: &str, matches: &ArgMatches) -> Result<(), String> {
    let (verb, arguments) = matches.subcommand().unwrap_or(("", matches));
    let call = call(command, verb, arguments, read_password)?;
    let answer = broker(arguments)?.ask(call.method, &call.path, call.body.as_ref())?;
    let text = if arguments.get_flag("json") {
        format!("{answer:#}\n")
    } else if let (Some(rows), false) = (answer.as_array(), call.columns.is_empty()) {
        table(rows, call.columns)
    } else {
        said(&answer)
    };
    output::put(text)?;
    if let Some(warning) = answer.get("warning").and_then(Value::as_str) {
        output::complain(&format!("warning: {warning}"));
    }
    Ok(())
}

/// Which broker the arguments mean.
fn broker(matches: &ArgMatches) -> Result<Broker, String> {
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    let Some(url) = text("admin") else {
        let data = text("data").map_or_else(|| Settings::default().data, PathBuf::from);
        return Ok(Broker::Socket(data.join(SOCKET_NAME)));
    };
    let address = url
        .strip_prefix("http://")
        .ok_or("--admin: expected an address such as http://127.0.0.1:15672")?;
    Ok(Broker::Address {
        address: address.trim_end_matches('/').to_owned(),
        user: text("user").ok_or("--admin needs --user, or ANGARIUM_USER")?,
        password: text("password").ok_or("--admin needs --password, or ANGARIUM_PASSWORD")?,
    })
}

fn read_password() -> Result<String, String> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).map_err(|error| format!("no password: {error}"))?;
    let password = line.trim_end_matches(['\r', '\n']).to_owned();
    if password.is_empty() { Err("no password on standard input".into()) } else { Ok(password) }
}

/// What a command asks of the broker.
pub(super) fn call(
    command: &str,
    verb: &str,
    matches: &ArgMatches,
    password: impl FnOnce() -> Result<String, String>,
) -> Result<Call, String> {
    let asked = Asked { command, verb, matches };
    let resource = match command {
        "status" => "overview".to_owned(),
        _ => format!("{command}s"),
    };
    let named = |with_vhost: bool| {
        let mut path = format!("/api/{resource}");
        if with_vhost {
            path += &format!("/{}", escaped(&asked.text("vhost").unwrap_or_default()));
        }
        path + &format!("/{}", escaped(&asked.text("name").unwrap_or_default()))
    };
    let call = |method, path, body| Ok(Call { method, path, body, columns: &[] });
    let in_vhost = matches!(command, "queue" | "exchange" | "permission");
    match (command, verb) {
        (_, "list") | ("status", _) => {
            let filter = match asked.text("vhost") {
                Some(vhost) => format!("?vhost={}", escaped(&vhost)),
                None => String::new(),
            };
            let path = format!("/api/{resource}{filter}");
            Ok(Call { method: "GET", path, body: None, columns: columns(command) })
        }
        ("queue", "purge") => call("DELETE", named(true) + "/messages", None),
        ("binding", _) => {
            let path =
                format!("/api/bindings/{}", escaped(&asked.text("vhost").unwrap_or_default()));
            let method = if verb == "add" { "PUT" } else { "DELETE" };
            call(method, path, Some(asked.binding()?))
        }
        ("connection", "close") => {
            let reason = asked.text("reason").map(|reason| format!("?reason={}", escaped(&reason)));
            call("DELETE", named(false) + &reason.unwrap_or_default(), None)
        }
        (_, "delete" | "clear") => call("DELETE", named(in_vhost) + &asked.conditions(), None),
        ("user", "add") => {
            let password = match asked.flag("no-password") {
                true => None,
                false => Some(asked.text("new-password").map_or_else(password, Ok)?),
            };
            let administrator = asked.flag("administrator");
            let body = json!({ "password": password, "administrator": administrator });
            call("PUT", named(false), Some(body))
        }
        ("user", "quota") => call("PUT", named(false) + "/quota", Some(asked.quota()?)),
        ("permission", "subjects") => {
            let rules =
                |allow, deny| json!({ "allow": asked.list(allow), "deny": asked.list(deny) });
            let body = json!({
                "publish": rules("publish", "publish-deny"),
                "subscribe": rules("subscribe", "subscribe-deny"),
            });
            call("PUT", named(true) + "/subjects", Some(body))
        }
        ("vhost", "add") => call("PUT", named(false), None),
        _ => call("PUT", named(true), Some(asked.body()?)),
    }
}

/// The arguments of one command.
struct Asked<'a> {
    command: &'a str,
    verb: &'a str,
    matches: &'a ArgMatches,
}

impl Asked<'_> {
    fn text(&self, name: &str) -> Option<String> {
        self.matches.try_get_one::<String>(name).ok().flatten().cloned()
    }

    fn list(&self, name: &str) -> Vec<String> {
        self.matches.get_many::<String>(name).into_iter().flatten().cloned().collect()
    }

    fn flag(&self, name: &str) -> bool {
        self.matches.try_get_one::<bool>(name).ok().flatten().copied().unwrap_or(false)
    }

    fn conditions(&self) -> String {
        let set = ["if-unused", "if-empty"].into_iter().filter(|name| self.flag(name));
        let pairs: Vec<String> = set.map(|name| name.replace('-', "_") + "=true").collect();
        if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
    }

    /// What a user may use: a field for each flag.
    fn quota(&self) -> Result<Value, String> {
        let mut body = Map::new();
        if let Some(policy) = self.text(SLOW_CONSUMER_POLICY) {
            body.insert(SLOW_CONSUMER_POLICY.replace('-', "_"), policy.into());
        }
        for (_, name) in Bound::NAMES {
            if let Some(text) = self.text(name) {
                let number = ByteCount::parse(&text);
                let number = number.map_err(|_| format!("--{name}: expected a whole number"))?;
                body.insert(name.replace('-', "_"), number.0.into());
            }
        }
        Ok(Value::Object(body))
    }

    /// The options of a declaration: a field for each flag.
    fn options<O>(
        &self,
        table: &[OptionDefinition<O>],
        body: &mut Map<String, Value>,
    ) -> Result<(), String> {
        for option in table {
            let name = option.name;
            let value = match option.kind {
                OptionType::Flag if self.flag(name) => Some(true.into()),
                OptionType::Flag => None,
                OptionType::Text | OptionType::Choice(_) => self.text(name).map(Value::from),
                OptionType::Count { .. } | OptionType::Millis { .. } => {
                    let number = |text: String| text.parse::<i64>().map(Value::from);
                    let number = self.text(name).map(number).transpose();
                    number.map_err(|_| format!("--{name}: expected a whole number"))?
                }
            };
            if let Some(value) = value {
                body.insert(name.replace('-', "_"), value);
            }
        }
        Ok(())
    }

    /// The body of a declaration: a field for each flag, under the same name.
    fn body(&self) -> Result<Value, String> {
        const TEXTS: [&str; 4] = ["type", "configure", "write", "read"];
        const FLAGS: [&str; 3] = ["auto-delete", "internal", "delaying"];
        let mut body = Map::new();
        self.options(QUEUE_OPTIONS, &mut body)?;
        self.options(EXCHANGE_OPTIONS, &mut body)?;
        for name in TEXTS {
            if let Some(text) = self.text(name) {
                body.insert(name.replace('-', "_"), text.into());
            }
        }
        for name in FLAGS.into_iter().filter(|name| self.flag(name)) {
            body.insert(name.replace('-', "_"), true.into());
        }
        if self.command != "permission" {
            body.insert("durable".into(), (!self.flag("transient")).into());
        }
        Ok(Value::Object(body))
    }

    fn binding(&self) -> Result<Value, String> {
        let (queue, exchange) = (self.text("queue"), self.text("exchange"));
        if queue.is_some() == exchange.is_some() {
            return Err(format!("binding {} needs either --queue or --exchange", self.verb));
        }
        let mut arguments = Map::new();
        let given = self.matches.get_many::<String>("argument").into_iter().flatten();
        for pair in given {
            let (name, value) = pair.split_once('=').ok_or("--argument: expected NAME=VALUE")?;
            arguments.insert(name.to_owned(), value.into());
        }
        let mut body = json!({
            "source": self.text("name"),
            "key": self.text("key").unwrap_or_default(),
            "arguments": arguments,
        });
        if let Some(queue) = queue {
            body["queue"] = queue.into();
        }
        if let Some(exchange) = exchange {
            body["exchange"] = exchange.into();
        }
        Ok(body)
    }
}

/// What a listing shows to people.
fn columns(command: &str) -> &'static [&'static str] {
    match command {
        "user" => &["name", "administrator", "password", "quota"],
        "vhost" => &["name", "queues"],
        "permission" => &["vhost", "user", "configure", "write", "read", "subjects"],
        "queue" => {
            &["vhost", "name", "ready", "unsettled", "consumers", "bytes", "durability", "state"]
        }
        "exchange" => &["vhost", "name", "type", "durable"],
        "binding" => &["vhost", "source", "target_type", "target", "key", "arguments"],
        "connection" => &[
            "id",
            "peer",
            "user",
            "vhost",
            "state",
            "waits_for",
            "channels",
            "subjects",
            "unsent_bytes",
            "product",
            "name",
            "age_s",
        ],
        _ => &[],
    }
}

/// An answer that is no listing, in words.
pub(super) fn said(answer: &Value) -> String {
    let Some(fields) = answer.as_object() else { return format!("{answer}\n") };
    if fields.get("done").is_some() {
        let note = fields.get("note").and_then(Value::as_str);
        return note.map_or_else(|| "done\n".into(), |note| format!("done\n{note}\n"));
    }
    fields.iter().map(|(name, value)| format!("{name}: {value}\n")).collect()
}
