//! Requests below `$SYS.REQ` that the broker answers itself, as nats-server does: who a client is, and which
//! connections its virtual host has.
//!
//! Answers go only to subscriptions of the asking connection: elsewhere a client could direct them to
//! subjects that it may not publish to.

use super::codec::Publish;
use super::publish::published;
use super::settings::Settings;
use super::{mapping, subject};
use crate::connection_query::{
    ConnectionQuery, ConnectionRow, Figures, Order, QueryResult, SUBJECT_BYTES_MAX,
};
use crate::nats::handler::Handler;
use crate::{Context, Host};
use angarium_engine::{Content, Emit, SubjectPermissions, SubjectRules, Time};
use serde::Serialize;
use serde_json::{Map, Value};
use std::time::{Duration, UNIX_EPOCH};

/// The prefix of the subjects.
const PREFIX: &str = "$SYS.REQ.";
/// Most connections in one answer, and the default, as with nats-server.
const LIMIT: usize = 1_024;
/// The `state` of connections that have ended.
const ENDED: i64 = 1;

/// What is asked at a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// Who the client is.
    UserInfo,
    /// The connections of its virtual host.
    Connections,
    /// What they have sent and got together.
    Statistics,
}

/// A question about connections that waits for its answer.
#[derive(Debug)]
pub(super) struct Asked {
    question: Question,
    reply: String,
    /// Rows name their users.
    with_users: bool,
    /// Only ended connections are asked for, which are not kept.
    only_ended: bool,
    query: ConnectionQuery,
}

/// Why a question is refused: a status code of HTTP, and a text.
#[derive(Serialize)]
struct Mistake {
    code: u16,
    description: String,
}

impl Question {
    /// The question that is asked at a subject.
    #[inline]
    pub(super) fn at(subject: &str) -> Option<Question> {
        match subject.strip_prefix(PREFIX)? {
            "USER.INFO" => Some(Question::UserInfo),
            "ACCOUNT.PING.CONNZ" | "SERVER.PING.CONNZ" => Some(Question::Connections),
            "ACCOUNT.PING.STATZ" => Some(Question::Statistics),
            _ => None,
        }
    }
}

impl Handler {
    /// Takes a request to the broker, which is published as well. Returns whether the next operation may be
    /// taken before its answer.
    #[cold]
    pub(super) fn ask<W: Host>(
        &mut self,
        context: &mut Context<'_, W>,
        question: Question,
        message: &Publish<'_>,
    ) -> bool {
        let before = self.out(context).len();
        self.done(context);
        self.scratch.clear();
        mapping::put_properties(&mut self.scratch, message.reply, message.headers);
        let content = published(&self.scratch, message.body);
        // Without a kept subject, the next request is recognized too.
        let subject = std::mem::take(&mut self.subject);
        let emit = Emit { subject: &subject, echo: self.wishes.echo, asks: false, content };
        let emitted = context.engine.emit(context.now, self.channel(), &emit, context.host);
        match (emitted, str::from_utf8(message.reply)) {
            (Err(refusal), _) => self.not_done(context, &subject, before, &refusal),
            (Ok(_), Ok(reply)) if subject::is_literal(reply.as_bytes()) => match question {
                Question::UserInfo => self.tell_user(context, reply),
                _ => self.ask_connections(context, question, message.body, reply),
            },
            _ => {}
        }
        self.asked.is_none()
    }

    fn tell_user<W: Host>(&mut self, context: &mut Context<'_, W>, reply: &str) {
        let user = UserInfo {
            user: &self.user,
            account: &self.vhost,
            permissions: context.engine.subject_permissions(self.id).map(Permissions::of),
        };
        let body = answer(&self.settings, Outcome::Data(user));
        self.tell(context, reply, &body);
    }

    /// Queries the connections of its virtual host.
    fn ask_connections<W: Host>(
        &mut self,
        context: &mut Context<'_, W>,
        question: Question,
        options: &[u8],
        reply: &str,
    ) {
        match Asked::read(question, options, &self.settings) {
            Ok(Some(mut asked)) => {
                asked.query.vhost.clone_from(&self.vhost);
                reply.clone_into(&mut asked.reply);
                let (query, only_ended) = (asked.query.clone(), asked.only_ended);
                self.asked = Some(Box::new(asked));
                if only_ended {
                    self.tell_connections(context, &QueryResult::default());
                } else {
                    context.host.query_connections(self.id, query);
                }
            }
            // Other servers are asked.
            Ok(None) => {}
            Err(mistake) => {
                let body = answer::<()>(&self.settings, Outcome::Error(mistake));
                self.tell(context, reply, &body);
            }
        }
    }

    /// Answers what was asked about connections.
    pub(super) fn tell_connections<W: Host>(
        &mut self,
        context: &mut Context<'_, W>,
        found: &QueryResult,
    ) {
        let Some(asked) = self.asked.take() else { return };
        let (server_id, now) = (self.settings.server_id.as_str(), context.now);
        let body = match asked.question {
            Question::Statistics => {
                let account_statz = [AccountStatistics::of(&self.vhost, found)];
                let data = Statistics { server_id, now: date(now), account_statz };
                answer(&self.settings, Outcome::Data(data))
            }
            _ => {
                let data = asked.connections(server_id, &self.vhost, found, now);
                answer(&self.settings, Outcome::Data(data))
            }
        };
        self.tell(context, &asked.reply, &body);
    }

    fn tell<W: Host>(&self, context: &mut Context<'_, W>, reply: &str, body: &[u8]) {
        let content = Content {
            format: crate::format::NATS,
            properties: &[],
            body,
            shared: None,
            persistent: false,
            priority: 0,
            ttl: None,
        };
        context.engine.emit_to_self(self.channel(), reply, content, context.host);
    }
}

impl Asked {
    /// Reads the options of a question; `None`: other servers are asked. Unknown options are ignored, as with
    /// nats-server.
    fn read(
        question: Question,
        options: &[u8],
        settings: &Settings,
    ) -> Result<Option<Asked>, Mistake> {
        let query = ConnectionQuery { limit: LIMIT, ..ConnectionQuery::default() };
        let mut asked =
            Asked { question, reply: String::new(), with_users: false, only_ended: false, query };
        let (mut is_meant, mut mistake) = (true, None);
        if !options.is_empty() {
            let Ok(options) = serde_json::from_slice::<Map<String, Value>>(options) else {
                let description = "the options are not a JSON object".to_owned();
                return Err(Mistake { code: 400, description });
            };
            for (name, value) in &options {
                is_meant &= is_meant_by(name, value, settings);
                if let Err(wrong) = asked.set(name, value) {
                    mistake = Some(wrong);
                }
            }
        }
        if question == Question::Statistics {
            // Statistics are sums of all connections.
            asked.query = ConnectionQuery::default();
            return Ok(is_meant.then_some(asked));
        }
        match mistake {
            Some(mistake) => Err(mistake),
            None => Ok(is_meant.then_some(asked)),
        }
    }

    /// Takes an option.
    fn set(&mut self, name: &str, value: &Value) -> Result<(), Mistake> {
        let query = &mut self.query;
        match (name, value, value.as_i64()) {
            (_, Value::Null, _) => {}
            ("auth", Value::Bool(value), _) => self.with_users = *value,
            ("subscriptions" | "subscriptions_detail", Value::Bool(value), _) => {
                query.with_subjects |= value;
            }
            ("offset", _, Some(value)) => {
                query.offset = value.try_into().unwrap_or(0);
            }
            ("limit", _, Some(value)) => {
                let limit = usize::try_from(value).ok().filter(|limit| *limit > 0);
                query.limit = limit.unwrap_or(LIMIT).min(LIMIT);
            }
            ("cid", _, Some(value)) => {
                query.number = value.try_into().ok().filter(|number| *number > 0);
            }
            ("state", _, Some(value)) => self.only_ended = value == ENDED,
            ("user", Value::String(value), _) => query.user = some(value),
            ("filter_subject", Value::String(value), _) => query.subject = some(value),
            ("sort", Value::String(value), _) => query.order = order(value)?,
            (
                "auth"
                | "subscriptions"
                | "subscriptions_detail"
                | "offset"
                | "limit"
                | "cid"
                | "state"
                | "user"
                | "filter_subject"
                | "sort",
                ..,
            ) => {
                let description = format!("the option {name:?} has a value of another type");
                return Err(Mistake { code: 400, description });
            }
            _ => {}
        }
        Ok(())
    }

    fn connections<'a>(
        &self,
        server_id: &'a str,
        vhost: &'a str,
        found: &'a QueryResult,
        now: Time,
    ) -> Connections<'a> {
        let rows = found.page(&self.query);
        let mut subject_bytes = SUBJECT_BYTES_MAX;
        let mut shown = |row: &'a ConnectionRow| {
            let bytes: usize = row.subjects.iter().map(String::len).sum();
            let left = subject_bytes.checked_sub(bytes).filter(|_| bytes > 0);
            subject_bytes = left.unwrap_or(subject_bytes);
            Row {
                authorized_user: self.with_users.then_some(&row.user),
                account: self.with_users.then_some(vhost),
                subscriptions_list: left.map(|_| &row.subjects[..]),
                ..Row::of(row, now)
            }
        };
        Connections {
            server_id,
            now: date(now),
            num_connections: rows.len(),
            total: found.connections,
            offset: self.query.offset,
            limit: self.query.limit,
            connections: rows.iter().map(&mut shown).collect(),
        }
    }
}

/// The value of an option; empty: `None`.
fn some(text: &str) -> Option<String> {
    Some(text.to_owned()).filter(|text| !text.is_empty())
}

/// The order of a name, as nats-server has them.
fn order(name: &str) -> Result<Order, Mistake> {
    Ok(match name {
        "" | "cid" | "start" => Order::Number,
        "uptime" => Order::Oldest,
        "subs" => Order::Subjects,
        "pending" => Order::Unsent,
        "msgs_from" => Order::MessagesReceived,
        "msgs_to" => Order::MessagesSent,
        "bytes_from" => Order::BytesReceived,
        "bytes_to" => Order::BytesSent,
        _ => {
            let description = format!("invalid sorting option: {name}");
            return Err(Mistake { code: 500, description });
        }
    })
}

/// Whether an option that says which servers are asked means this one, as far as that option goes.
fn is_meant_by(name: &str, value: &Value, settings: &Settings) -> bool {
    let Value::String(wanted) = value else { return name != "tags" || *value == Value::Null };
    match name {
        "server_name" => settings.server_name.contains(wanted),
        "host" => settings.host.contains(wanted),
        "cluster" | "domain" => wanted.is_empty(),
        _ => true,
    }
}

/// An answer, in nats-server's words.
#[derive(Serialize)]
struct Answer<'a, D> {
    server: Server<'a>,
    #[serde(flatten)]
    outcome: Outcome<D>,
}

/// Who answers.
#[derive(Serialize)]
struct Server<'a> {
    name: &'a str,
    host: &'a str,
    id: &'a str,
    ver: &'a str,
    jetstream: bool,
}

/// What is answered.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Outcome<D> {
    Data(D),
    Error(Mistake),
}

/// Who a client is.
#[derive(Serialize)]
struct UserInfo<'a> {
    user: &'a str,
    account: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    permissions: Option<Permissions<'a>>,
}

/// Which subjects it may use; what is empty is left out.
#[derive(Serialize)]
struct Permissions<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    publish: Option<Rules<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subscribe: Option<Rules<'a>>,
}

#[derive(Serialize)]
struct Rules<'a> {
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    allow: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    deny: &'a [String],
}

/// The connections of a virtual host.
#[derive(Serialize)]
struct Connections<'a> {
    server_id: &'a str,
    now: String,
    num_connections: usize,
    total: u64,
    offset: usize,
    limit: usize,
    connections: Vec<Row<'a>>,
}

/// One connection.
#[derive(Serialize)]
struct Row<'a> {
    cid: u64,
    kind: &'static str,
    r#type: String,
    ip: &'a str,
    port: u16,
    start: String,
    uptime: String,
    pending_bytes: u64,
    in_msgs: u64,
    out_msgs: u64,
    in_bytes: u64,
    out_bytes: u64,
    subscriptions: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lang: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    authorized_user: Option<&'a String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subscriptions_list: Option<&'a [String]>,
}

/// What the connections of a virtual host have sent and received.
#[derive(Serialize)]
struct Statistics<'a> {
    server_id: &'a str,
    now: String,
    account_statz: [AccountStatistics<'a>; 1],
}

#[derive(Serialize)]
struct AccountStatistics<'a> {
    acc: &'a str,
    name: &'a str,
    conns: u64,
    leafnodes: u64,
    total_conns: u64,
    num_subscriptions: u64,
    sent: Sums,
    received: Sums,
    slow_consumers: u64,
}

#[derive(Serialize)]
struct Sums {
    msgs: u64,
    bytes: u64,
}

/// An answer as bytes.
fn answer<D: Serialize>(settings: &Settings, outcome: Outcome<D>) -> Vec<u8> {
    let server = Server {
        name: &settings.server_name,
        host: &settings.host,
        id: &settings.server_id,
        ver: &settings.version,
        jetstream: false,
    };
    serde_json::to_vec(&Answer { server, outcome }).expect("texts, numbers and flags are JSON")
}

impl<'a> Permissions<'a> {
    fn of(permissions: &'a SubjectPermissions) -> Permissions<'a> {
        let SubjectPermissions { publish, subscribe } = permissions;
        Permissions { publish: Rules::of(publish), subscribe: Rules::of(subscribe) }
    }
}

impl<'a> Rules<'a> {
    fn of(rules: &'a SubjectRules) -> Option<Rules<'a>> {
        let is_empty = rules.allow.is_empty() && rules.deny.is_empty();
        (!is_empty).then_some(Rules { allow: &rules.allow, deny: &rules.deny })
    }
}

impl<'a> Row<'a> {
    fn of(row: &'a ConnectionRow, now: Time) -> Row<'a> {
        let Figures { number, connected_at, unsent_bytes, traffic } = row.figures;
        let (host, port) = row.address.rsplit_once(':').unwrap_or((&row.address, "0"));
        Row {
            cid: number,
            kind: "Client",
            r#type: row.protocol.to_ascii_lowercase(),
            ip: host.trim_matches(['[', ']']),
            port: port.parse().unwrap_or(0),
            start: date(connected_at),
            uptime: uptime(now.since(connected_at)),
            pending_bytes: unsent_bytes,
            in_msgs: traffic.messages_received,
            out_msgs: traffic.messages_sent,
            in_bytes: traffic.bytes_received,
            out_bytes: traffic.bytes_sent,
            subscriptions: traffic.subjects,
            name: row.client.connection_name.as_deref(),
            lang: row.client.platform.as_deref(),
            version: row.client.version.as_deref(),
            authorized_user: None,
            account: None,
            subscriptions_list: None,
        }
    }
}

impl<'a> AccountStatistics<'a> {
    fn of(vhost: &'a str, found: &QueryResult) -> AccountStatistics<'a> {
        let traffic = &found.traffic;
        AccountStatistics {
            acc: vhost,
            name: vhost,
            conns: found.connections,
            leafnodes: 0,
            total_conns: found.connections,
            num_subscriptions: traffic.subjects,
            sent: Sums { msgs: traffic.messages_sent, bytes: traffic.bytes_sent },
            received: Sums { msgs: traffic.messages_received, bytes: traffic.bytes_received },
            slow_consumers: found.slow_consumers,
        }
    }
}

/// An instant as RFC 3339 writes it.
fn date(time: Time) -> String {
    humantime::format_rfc3339_micros(UNIX_EPOCH + Duration::from_micros(time.0)).to_string()
}

/// A time as nats-server writes it: days, hours, minutes and seconds, from the first that is not 0 on.
fn uptime(time: Duration) -> String {
    let seconds = time.as_secs();
    let parts = [(seconds / 86_400, 'd'), (seconds / 3_600 % 24, 'h'), (seconds / 60 % 60, 'm')];
    let shown = parts.iter().skip_while(|(count, _)| *count == 0);
    let shown: String = shown.map(|(count, unit)| format!("{count}{unit}")).collect();
    format!("{shown}{}s", seconds % 60)
}
