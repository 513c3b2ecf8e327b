//! Commands that ask a running broker: `user`, `vhost`, `permission`, `queue`, `exchange`, `binding`,
//! `subscription`, `connection`, `status`.

use super::http_client::{Broker, escaped};
use super::output;
use crate::settings::{ByteCount, SettingValue, Settings, Span};
use angarium_bench::secrets;
use angarium_engine::{Bound, EXCHANGE_OPTIONS, OptionDefinition, OptionType, QUEUE_OPTIONS};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// The socket in the data folder through which the operator administers.
pub(super) const SOCKET_NAME: &str = "admin.sock";

/// The exchange whose routing keys are the subjects of NATS.
const SUBJECT_EXCHANGE: &str = "amq.topic";

/// The flag of what becomes of slow clients.
const SLOW_CONSUMER_POLICY: &str = "slow-consumer-policy";

/// All of them.
pub(super) fn commands() -> Vec<Command> {
    let pattern = |name, help| value(name, "PATTERN", help).default_value(".*");
    let vhosts = [
        list(),
        verb("add", "Creates a virtual host").arg(name("NAME")),
        vhost_quota_command(),
        verb("delete", "Deletes a virtual host and all in it").arg(name("NAME")),
    ];
    let permission = [
        list(),
        verb("set", "Sets what a user may do in a virtual host, by patterns over names").args([
            name("USER"),
            vhost(),
            pattern("configure", "Declare and delete"),
            pattern("write", "Publish and bind"),
            pattern("read", "Consume and bind from"),
        ]),
        subjects_command(),
        verb("clear", "Takes a user's permissions away and closes its connections there")
            .args([name("USER"), vhost()]),
    ];
    let close = "Closes a connection; clients of AMQP are told why, those of NATS to go";
    let connection = [
        list(),
        verb("close", close).args([
            name("ID"),
            value("reason", "TEXT", "Why, for the log and for clients of AMQP"),
        ]),
    ];
    let commands = [
        verb("status", "What a running broker does, in short"),
        group("user", "Users: list, add, password, administrator, quota, delete")
            .subcommands(user_commands()),
        group("vhost", "Virtual hosts: list, add, quota, delete").subcommands(vhosts),
        group("permission", "What users may do: list, set, clear").subcommands(permission),
        group("queue", "Queues: list, add, delete, purge").subcommands(queue_commands()),
        group("exchange", "Exchanges: list, add, delete").subcommands(exchange_commands()),
        group("binding", "Bindings: list, add, delete").subcommands(binding_commands()),
        group("subscription", "Named subscriptions of clients: list, add, delete")
            .subcommands(subscription_commands()),
        group("session", "Sessions of clients: list, end").subcommands([
            list().arg(any_vhost()),
            verb("end", "Ends a session: its queue goes, its will is published")
                .args([name("NAME"), vhost()]),
        ]),
        group("connection", "Clients' connections: list, close").subcommands(connection),
    ];
    commands.into_iter().map(with_broker).collect()
}

fn user_commands() -> [Command; 6] {
    [
        list(),
        verb("add", "Creates a user; its password is read from standard input").args([
            name("NAME"),
            flag("administrator", "May administer"),
            value(
                "new-password-file",
                "FILE",
                "Has it in its first line, instead of standard input",
            ),
            flag("no-password", "It logs in by an nkey or a certificate alone")
                .conflicts_with("new-password-file"),
        ]),
        verb("password", "Changes a user's password, read from standard input, and nothing else")
            .args([
                name("NAME"),
                value(
                    "new-password-file",
                    "FILE",
                    "Has it in its first line, instead of standard input",
                ),
                flag("no-password", "Takes its password away").conflicts_with("new-password-file"),
            ])
            .after_help("Connections that logged in by the old password are closed."),
        verb("administrator", "Says whether a user may administer").args([
            name("NAME"),
            Arg::new("answer")
                .value_name("yes|no")
                .required(true)
                .value_parser(["yes", "no"])
                .help("Whether it may"),
        ]),
        quota_command(),
        verb("delete", "Deletes a user").arg(name("NAME")),
    ]
}

/// The flag of a bound.
fn bound_flag(bound: Bound, name: &'static str) -> Arg {
    let help = match bound {
        Bound::Connections => "Connections at once",
        Bound::Subscriptions => "Subscriptions of all its connections together",
        Bound::ConnectionSubscriptions => "Subscriptions of each of its connections",
        Bound::UnsentBytes => "Unsent bytes beyond which each is too slow",
        Bound::Messages => "Messages published in a second by all its connections",
        Bound::Bytes => "Bytes sent in a second by all its connections",
        Bound::ConnectionMessages => "Messages that each connection publishes in a second",
        Bound::ConnectionBytes => "Bytes that each connection sends in a second",
        Bound::Queues => "Queues: those that the user declares, or those in the virtual host",
        Bound::StoredBytes => "Bytes of messages that wait in these queues",
    };
    value(name, "N", help)
}

fn quota_command() -> Command {
    let bounds = Bound::NAMES.into_iter().map(|(bound, name)| bound_flag(bound, name));
    let policies = "spool|drop-oldest|drop-new|conflate|disconnect";
    let policy = "What becomes of direct messages for which its clients are too slow";
    verb("quota", "Sets what a user may use; what is not said is as for everybody")
        .args([name("NAME"), value(SLOW_CONSUMER_POLICY, policies, policy)])
        .args(bounds)
}

fn vhost_quota_command() -> Command {
    let bounds = Bound::NAMES.into_iter().filter(|(bound, _)| Bound::OF_VHOSTS.contains(bound));
    verb("quota", "Sets what all in a virtual host may use together; what is not said has no bound")
        .arg(name("NAME"))
        .args(bounds.map(|(bound, name)| bound_flag(bound, name)))
}

fn subjects_command() -> Command {
    let list = |name, help| {
        value(name, "SUBJECT,...", help).value_delimiter(',').action(ArgAction::Append)
    };
    verb(
        "subjects",
        "Narrows a user to subjects, in NATS and on the exchange amq.topic, or to routing keys of another \
         exchange; sets all four lists",
    )
    .args([
        name("USER"),
        vhost(),
        value("exchange", "NAME", "Of this exchange, which need not be there yet [default: amq.topic]"),
        list("publish", "It may publish to these subjects alone [default: all]"),
        list("publish-deny", "It may not publish to these, even if --publish has them"),
        list("subscribe", "It may subscribe to these subjects alone [default: all]"),
        list(
            "subscribe-deny",
            "It may not subscribe to these, even if --subscribe has them; what it subscribes to more \
             widely comes without them",
        ),
        value(
            "responses",
            "COUNT",
            "It may answer what it is sent, this often, wherever it may publish otherwise; 0: as often as it \
             likes",
        )
        .value_parser(value_parser!(u32))
        .conflicts_with("exchange"),
        value("responses-within", "TIME", "How long its answers may take; 0s: any time [default: 2m]")
            .requires("responses"),
    ])
    .after_help(
        "In patterns `*` is one word and `>`, at the end, one or more.\n\
         Each call sets all four lists. One that is not given is empty, whatever it had before: \
         the user is not narrowed by it any more. The answer shows what holds then, and so does \
         `angarium permission list`.",
    )
}

fn queue_commands() -> [Command; 4] {
    let add = verb("add", "Declares a queue").args([
        name("NAME"),
        vhost(),
        flag("transient", "Gone after a restart"),
        flag("auto-delete", "Goes when its last consumer goes"),
    ]);
    let delete = verb("delete", "Deletes a queue and its messages").args([
        name("NAME"),
        vhost(),
        flag("if-unused", "Only without consumers"),
        flag("if-empty", "Only without messages"),
    ]);
    let purge = verb("purge", "Drops a queue's ready messages").args([name("NAME"), vhost()]);
    let add = add.args(QUEUE_OPTIONS.iter().map(option_flag));
    [list().arg(any_vhost()), add, delete, purge]
}

fn exchange_commands() -> [Command; 3] {
    let kind = value("type", "KIND", "How it routes: direct, fanout, topic or headers");
    let add = verb("add", "Declares an exchange").args([
        name("NAME"),
        vhost(),
        kind.default_value("direct"),
        flag("transient", "Gone after a restart"),
        flag("auto-delete", "Goes when its last binding goes"),
        flag("internal", "Only exchanges publish to it"),
        flag("delaying", "Holds messages with x-delay back"),
    ]);
    let unused = flag("if-unused", "Only without bindings");
    let delete = verb("delete", "Deletes an exchange").args([name("NAME"), vhost(), unused]);
    [list().arg(any_vhost()), add.args(EXCHANGE_OPTIONS.iter().map(option_flag)), delete]
}

fn binding_commands() -> [Command; 3] {
    let key = "Its key or pattern: for topic exchanges `*` is one word, `#` any number";
    let argument = value("argument", "NAME=VALUE", "An argument, for headers exchanges");
    let ends = [
        name("SOURCE"),
        vhost(),
        value("queue", "NAME", "It leads to this queue"),
        value("exchange", "NAME", "It leads to this exchange"),
        value("key", "KEY", key).default_value(""),
        argument.action(ArgAction::Append),
    ];
    [
        list().arg(any_vhost()),
        verb("add", "Binds a queue or an exchange to an exchange").args(&ends),
        verb("delete", "Takes a binding away").args(&ends),
    ]
}

fn subscription_commands() -> [Command; 3] {
    let client = || value("client", "ID", "The client it belongs to [default: all clients]");
    let key = "A key or pattern that binds it there, several times for several";
    let add = verb("add", "Adds a durable subscription, as a client that subscribes would").args([
        name("NAME"),
        vhost(),
        client(),
        value("source", "NAME", "The exchange that its messages come from").required(true),
        value("key", "KEY", key).action(ArgAction::Append),
        flag("shared", "Several consumers share it"),
        value("selector", "SQL", "A condition on properties, as of JMS, for messages it gets"),
    ]);
    let delete = verb("delete", "Deletes a durable subscription that nobody consumes from");
    [list().arg(any_vhost()), add, delete.args([name("NAME"), vhost(), client()])]
}

fn group(name: &'static str, about: &'static str) -> Command {
    verb(name, about).subcommand_required(true).arg_required_else_help(true)
}
pub(super) fn verb(name: &'static str, about: &'static str) -> Command {
    Command::new(name).about(about)
}
pub(super) fn list() -> Command {
    verb("list", "Lists them")
}
pub(super) fn name(shown: &'static str) -> Arg {
    let help = match shown {
        "ID" => "As `connection list` shows it",
        "USER" => "The user's name",
        "SOURCE" => "The exchange that messages come from",
        _ => "Its name",
    };
    Arg::new("name").value_name(shown).required(true).help(help)
}
pub(super) fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}
/// The flag of one of the options that declarations have.
pub(super) fn option_flag<O>(option: &OptionDefinition<O>) -> Arg {
    let mut help = option.what.to_owned();
    help[..1].make_ascii_uppercase();
    match option.kind {
        OptionType::Flag => flag(option.name, ""),
        OptionType::Count { .. } => value(option.name, "N", ""),
        OptionType::Millis { .. } => value(option.name, "MS", ""),
        OptionType::Text => value(option.name, "NAME", ""),
        OptionType::Choice(names) => value(option.name, "", "").value_name(names.join("|")),
    }
    .help(help)
}
pub(super) fn value(name: &'static str, shown: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(shown).help(help)
}
pub(super) fn vhost() -> Arg {
    value("vhost", "NAME", "The virtual host").default_value("/")
}
pub(super) fn any_vhost() -> Arg {
    value("vhost", "NAME", "Only this virtual host")
}

/// Adds what says which broker is meant and how to print. The help shows it below what each command
/// has of its own.
pub(super) fn with_broker(command: Command) -> Command {
    let arguments = [
        flag("json", "Print JSON"),
        value("data", "DIR", "The broker's data folder").env("ANGARIUM_DATA"),
        value("admin", "URL", "The broker's HTTP address, such as http://127.0.0.1:15672")
            .env("ANGARIUM_ADMIN"),
        value("user", "NAME", "An administrator").env("ANGARIUM_USER"),
        value("password-file", "FILE", "Has the administrator's password; else ANGARIUM_PASSWORD"),
    ];
    let heading = "Which broker, and how to print";
    command.args(arguments.map(|argument| argument.global(true).help_heading(heading)))
}

/// One request to the broker.
#[derive(Debug, PartialEq)]
pub(super) struct Call {
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) body: Option<Value>,
    /// Columns of the listing, parted by blanks; empty where it is none.
    pub(super) columns: &'static str,
}

/// Carries a command out.
pub(super) fn run(command: &str, matches: &ArgMatches) -> Result<(), String> {
    let (verb, arguments) = matches.subcommand().unwrap_or(("", matches));
    let call = call(command, verb, arguments, read_password)?;
    let answer = broker(arguments)?.ask(call.method, &call.path, call.body.as_ref())?;
    let text = if arguments.get_flag("json") {
        format!("{answer:#}\n")
    } else if let (Some(rows), false) = (answer.as_array(), call.columns.is_empty()) {
        output::table(rows, call.columns)
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
pub(super) fn broker(matches: &ArgMatches) -> Result<Broker, String> {
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
        password: secrets::password(text("password-file").map(PathBuf::from).as_deref())?.ok_or(
            "--admin needs a password: in ANGARIUM_PASSWORD, or in a file named by --password-file",
        )?,
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
        "status" => "/v1/overview".to_owned(),
        _ => format!("/v1/{command}s"),
    };
    let named = |arguments: &[&str]| {
        let part = |name: &&str| format!("/{}", escaped(&asked.text(name).unwrap_or_default()));
        resource.clone() + &arguments.iter().map(part).collect::<String>()
    };
    let path = || match command {
        "queue" | "exchange" | "permission" | "subscription" | "session" => {
            named(&["vhost", "name"])
        }
        "binding" => named(&["vhost"]),
        _ => named(&["name"]),
    };
    let query = |name: &str| match asked.text(name) {
        Some(value) => format!("?{name}={}", escaped(&value)),
        None => String::new(),
    };
    let call = |method, path, body| Ok(Call { method, path, body, columns: "" });
    match (command, verb) {
        (_, "list") | ("status", _) => {
            let path = named(&[]) + &query("vhost");
            Ok(Call { method: "GET", path, body: None, columns: columns(command) })
        }
        ("queue", "purge") => call("DELETE", path() + "/messages", None),
        ("binding", "add") => call("PUT", path(), Some(asked.binding()?)),
        ("binding", _) => call("DELETE", path(), Some(asked.binding()?)),
        ("subscription", "add") => call("PUT", path(), Some(asked.subscription())),
        ("subscription", _) => call("DELETE", path() + &query("client"), None),
        ("connection", "close") => call("DELETE", path() + &query("reason"), None),
        ("session", _) => call("DELETE", path(), None),
        (_, "delete" | "clear") => call("DELETE", path() + &asked.conditions(), None),
        ("user", "add") => {
            let password = asked.password(password)?;
            let administrator = asked.flag("administrator");
            let body = json!({ "password": password, "administrator": administrator });
            call("PUT", path(), Some(body))
        }
        ("user", "password") => {
            let body = json!({ "password": asked.password(password)? });
            call("PUT", path() + "/password", Some(body))
        }
        ("user", "administrator") => {
            let is_one = asked.text("answer").is_some_and(|answer| answer == "yes");
            call("PUT", path() + "/administrator", Some(json!({ "administrator": is_one })))
        }
        ("user" | "vhost", "quota") => call("PUT", path() + "/quota", Some(asked.quota()?)),
        ("permission", "subjects") => {
            let exchange = asked.text("exchange").filter(|name| name != SUBJECT_EXCHANGE);
            let exchange = exchange.map(|name| format!("/{}", escaped(&name)));
            let path = path() + "/subjects" + &exchange.unwrap_or_default();
            call("PUT", path, Some(asked.subjects()?))
        }
        ("vhost", "add") => call("PUT", path(), None),
        _ => call("PUT", path(), Some(asked.body()?)),
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

    /// The subjects that a user may use.
    fn subjects(&self) -> Result<Value, String> {
        let rules = |allow, deny| json!({ "allow": self.list(allow), "deny": self.list(deny) });
        let mut body = json!({
            "publish": rules("publish", "publish-deny"),
            "subscribe": rules("subscribe", "subscribe-deny"),
        });
        if let Some(messages) = self.matches.get_one::<u32>("responses") {
            body["responses"] = json!({ "messages": messages });
            if let Some(time) = self.text("responses-within") {
                let time =
                    Span::parse(&time).map_err(|why| format!("--responses-within: {why}"))?;
                body["responses"]["within_ms"] =
                    json!(u64::try_from(time.0.as_millis()).unwrap_or(u64::MAX));
            }
        }
        Ok(body)
    }

    fn list(&self, name: &str) -> Vec<String> {
        self.matches.get_many::<String>(name).into_iter().flatten().cloned().collect()
    }

    fn flag(&self, name: &str) -> bool {
        self.matches.try_get_one::<bool>(name).ok().flatten().copied().unwrap_or(false)
    }

    /// The password that is given, or read; none where there is to be none.
    fn password(
        &self,
        read: impl FnOnce() -> Result<String, String>,
    ) -> Result<Option<String>, String> {
        if self.flag("no-password") {
            return Ok(None);
        }
        let file = self.text("new-password-file");
        file.map_or_else(read, |file| secrets::read(Path::new(&file))).map(Some)
    }

    fn conditions(&self) -> String {
        let set = ["if-unused", "if-empty"].into_iter().filter(|name| self.flag(name));
        let pairs: Vec<String> = set.map(|name| name.replace('-', "_") + "=true").collect();
        if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
    }

    /// A field for each of these flags that is given, under the same name.
    fn fields(
        &self,
        flags: impl IntoIterator<Item = (&'static str, OptionType)>,
        number: impl Fn(&str) -> Option<Value>,
    ) -> Result<Map<String, Value>, String> {
        let mut fields = Map::new();
        for (name, kind) in flags {
            let value = match (kind, self.text(name)) {
                (OptionType::Flag, _) => self.flag(name).then_some(true.into()),
                (OptionType::Text | OptionType::Choice(_), text) => text.map(Value::from),
                (_, None) => None,
                (OptionType::Count { .. } | OptionType::Millis { .. }, Some(text)) => {
                    let expected = || format!("--{name}: expected a whole number");
                    Some(number(&text).ok_or_else(expected)?)
                }
            };
            if let Some(value) = value {
                fields.insert(name.replace('-', "_"), value);
            }
        }
        Ok(fields)
    }

    fn quota(&self) -> Result<Value, String> {
        let number = OptionType::Count { min: 0, max: i64::MAX };
        let bounds = Bound::NAMES.map(|(_, name)| (name, number));
        let flags = [(SLOW_CONSUMER_POLICY, OptionType::Text)].into_iter().chain(bounds);
        let bytes = |text: &str| Some(ByteCount::parse(text).ok()?.0.into());
        self.fields(flags, bytes).map(Value::Object)
    }

    /// The body of a declaration, or what a user may do.
    fn body(&self) -> Result<Value, String> {
        use OptionType::{Flag, Text};
        let flags = [("auto-delete", Flag), ("internal", Flag), ("delaying", Flag)];
        let texts = [("type", Text), ("configure", Text), ("write", Text), ("read", Text)];
        let queue = QUEUE_OPTIONS.iter().map(|option| (option.name, option.kind));
        let exchange = EXCHANGE_OPTIONS.iter().map(|option| (option.name, option.kind));
        let number = |text: &str| Some(text.parse::<i64>().ok()?.into());
        let all = queue.chain(exchange).chain(flags).chain(texts);
        let mut body = self.fields(all, number)?;
        if self.command != "permission" {
            body.insert("durable".into(), (!self.flag("transient")).into());
        }
        Ok(Value::Object(body))
    }

    fn subscription(&self) -> Value {
        json!({
            "client": self.text("client"),
            "source": self.text("source"),
            "keys": self.list("key"),
            "shared": self.flag("shared"),
            "selector": self.text("selector"),
        })
    }

    fn binding(&self) -> Result<Value, String> {
        let texts = ["queue", "exchange", "key"].map(|name| (name, OptionType::Text));
        let mut body = self.fields(texts, |_| None)?;
        if body.contains_key("queue") == body.contains_key("exchange") {
            return Err(format!("binding {} needs either --queue or --exchange", self.verb));
        }
        let mut arguments = Map::new();
        for pair in self.list("argument") {
            let (name, value) = pair.split_once('=').ok_or("--argument: expected NAME=VALUE")?;
            arguments.insert(name.to_owned(), value.into());
        }
        body.insert("source".into(), self.text("name").into());
        body.insert("arguments".into(), arguments.into());
        Ok(Value::Object(body))
    }
}

/// What a listing shows to people.
fn columns(command: &str) -> &'static str {
    match command {
        "user" => "name administrator password queues stored_bytes quota",
        "vhost" => "name queues stored_bytes connections quota",
        "permission" => "vhost user configure write read subjects exchanges",
        "queue" => {
            "vhost name type copies ready unsettled consumers bytes durability state discarded"
        }
        "exchange" => "vhost name type durable",
        "subscription" => {
            "vhost client name source keys selector durable shared ready unsettled consumers"
        }
        "session" => "vhost name user state expiry_s expires_in_s queue attributes will",
        "binding" => "vhost source target_type target key arguments",
        "connection" => {
            "id peer user vhost state waits_for channels subjects unsent_bytes product name age_s"
        }
        _ => "",
    }
}

/// An answer that is no listing, in words.
pub(super) fn said(answer: &Value) -> String {
    let Some(fields) = answer.as_object() else { return format!("{answer}\n") };
    if fields.get("done").is_some() {
        let note = fields.get("note").and_then(Value::as_str);
        return note.map_or_else(|| "done\n".into(), |note| format!("done\n{note}\n"));
    }
    let shown = |value: &Value| match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    fields.iter().map(|(name, value)| format!("{name}: {}\n", shown(value))).collect()
}
