//! The subjects below `$SYS.REQ` that the broker answers itself, in the words of nats-server: who a client
//! is, and which connections its virtual host has.
//!
//! Answers go to those who ask: libraries listen to them on the connection that asks. Anywhere else a client
//! could have them go where it may not publish itself.

use super::codec::Publish;
use super::publish::published;
use super::settings::Settings;
use super::{mapping, subject};
use crate::connection_query::{Figures, Findings, Order, SUBJECT_BYTES_MAX, Survey, SurveyRow};
use crate::json::{self, ObjectWriter, Value};
use crate::nats::handler::Handler;
use crate::{Context, Host};
use angarium_engine::{Content, Emit, Format, SubjectPermissions, SubjectRules, Time};
use std::time::{Duration, UNIX_EPOCH};

/// What the subjects begin with.
const PREFIX: &str = "$SYS.REQ.";
/// Connections in one answer: as many as nats-server tells of where nothing is said.
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

/// A question about connections that is not answered yet.
#[derive(Debug)]
pub(super) struct Asked {
    question: Question,
    reply: String,
    /// Rows say whose they are.
    with_users: bool,
    /// Connections that have ended are asked for, which nobody remembers.
    only_ended: bool,
    survey: Survey,
}

/// Why a question is not answered as it is asked: a code as of HTTP, and words.
type Mistake = (usize, String);

impl Question {
    /// What a client asks that publishes there.
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
    /// A request to the server, which answers it whoever else listens; says whether the next operation may be
    /// taken before that.
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
        // The next one is to come here too.
        let subject = std::mem::take(&mut self.subject);
        let emit = Emit { subject: &subject, echo: self.wishes.echo, asks: false, content };
        let emitted = context.engine.emit(context.now, self.session(), &emit, context.host);
        match (emitted, str::from_utf8(message.reply)) {
            (Err(refusal), _) => self.not_done(context, &subject, before, &refusal),
            (Ok(_), Ok(reply)) if subject::is_literal(reply.as_bytes()) => match question {
                Question::UserInfo => self.tell_user(context, reply),
                _ => self.look_around(context, question, message.body, reply),
            },
            _ => {}
        }
        self.asked.is_none()
    }

    fn tell_user<W: Host>(&mut self, context: &mut Context<'_, W>, reply: &str) {
        let body = answer(&self.settings, |object| {
            let mut user = object.object("data");
            user.text("user", &self.user);
            user.text("account", &self.vhost);
            if let Some(SubjectPermissions { publish, subscribe }) =
                context.engine.subject_permissions(self.id)
            {
                let mut permissions = user.object("permissions");
                put_rules(&mut permissions, "publish", publish);
                put_rules(&mut permissions, "subscribe", subscribe);
                permissions.end();
            }
            user.end();
        });
        self.tell(context, reply, &body);
    }

    /// Has the connections of its virtual host looked at.
    fn look_around<W: Host>(
        &mut self,
        context: &mut Context<'_, W>,
        question: Question,
        options: &[u8],
        reply: &str,
    ) {
        match Asked::read(question, options, &self.settings) {
            Ok(Some(mut asked)) => {
                asked.survey.vhost.clone_from(&self.vhost);
                reply.clone_into(&mut asked.reply);
                let (survey, only_ended) = (asked.survey.clone(), asked.only_ended);
                self.asked = Some(Box::new(asked));
                if only_ended {
                    self.tell_findings(context, &Findings::default());
                } else {
                    context.host.survey(self.id, survey);
                }
            }
            // It asks other servers.
            Ok(None) => {}
            Err((code, description)) => {
                let body = answer(&self.settings, |object| {
                    let mut error = object.object("error");
                    error.number("code", code);
                    error.text("description", &description);
                    error.end();
                });
                self.tell(context, reply, &body);
            }
        }
    }

    /// Answers what was asked about connections.
    pub(super) fn tell_findings<W: Host>(
        &mut self,
        context: &mut Context<'_, W>,
        found: &Findings,
    ) {
        let Some(asked) = self.asked.take() else { return };
        let body = answer(&self.settings, |object| {
            let mut data = object.object("data");
            data.text("server_id", &self.settings.server_id);
            data.text("now", &date(context.now));
            match asked.question {
                Question::Statistics => put_statistics(&mut data, &self.vhost, found),
                _ => asked.put_connections(&mut data, &self.vhost, found, context.now),
            }
            data.end();
        });
        self.tell(context, &asked.reply, &body);
    }

    fn tell<W: Host>(&self, context: &mut Context<'_, W>, reply: &str, body: &[u8]) {
        let content = Content {
            format: Format::Nats,
            properties: &[],
            body,
            shared: None,
            persistent: false,
            priority: 0,
            ttl: None,
        };
        context.engine.emit_to_self(self.session(), reply, content, context.host);
    }
}

impl Asked {
    /// Reads the options of a question; `None`: other servers are meant. What is not known is left out, as
    /// nats-server does.
    fn read(
        question: Question,
        options: &[u8],
        settings: &Settings,
    ) -> Result<Option<Asked>, Mistake> {
        let survey = Survey { limit: LIMIT, ..Survey::default() };
        let mut asked =
            Asked { question, reply: String::new(), with_users: false, only_ended: false, survey };
        let (mut is_meant, mut mistake) = (true, None);
        if !options.is_empty() {
            let read = json::members(options, |name, value| {
                is_meant &= is_meant_by(name, &value, settings);
                if let Err(wrong) = asked.set(name, value) {
                    mistake = Some(wrong);
                }
            });
            if read.is_err() {
                return Err((400, "the options are not a JSON object".to_owned()));
            }
        }
        if question == Question::Statistics {
            // They are of all, and need no rows.
            asked.survey = Survey::default();
            return Ok(is_meant.then_some(asked));
        }
        match mistake {
            Some(mistake) => Err(mistake),
            None => Ok(is_meant.then_some(asked)),
        }
    }

    fn set(&mut self, name: &str, value: Value<'_>) -> Result<(), Mistake> {
        let survey = &mut self.survey;
        match (name, value) {
            (_, Value::Null) => {}
            ("auth", Value::Bool(value)) => self.with_users = value,
            ("subscriptions" | "subscriptions_detail", Value::Bool(value)) => {
                survey.with_subjects |= value;
            }
            ("offset", Value::Number(value)) => survey.offset = value.try_into().unwrap_or(0),
            ("limit", Value::Number(value)) => {
                let limit = usize::try_from(value).ok().filter(|limit| *limit > 0);
                survey.limit = limit.unwrap_or(LIMIT).min(LIMIT);
            }
            ("cid", Value::Number(value)) => {
                survey.number = value.try_into().ok().filter(|number| *number > 0);
            }
            ("state", Value::Number(value)) => self.only_ended = value == ENDED,
            ("user", Value::Text(value)) => survey.user = some(&value),
            ("filter_subject", Value::Text(value)) => survey.subject = some(&value),
            ("sort", Value::Text(value)) => survey.order = order(&value)?,
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
                _,
            ) => return Err((400, format!("the option {name:?} has a value of another type"))),
            _ => {}
        }
        Ok(())
    }

    fn put_connections(
        &self,
        data: &mut ObjectWriter<'_>,
        vhost: &str,
        found: &Findings,
        now: Time,
    ) {
        let rows = found.page(&self.survey);
        data.number("num_connections", rows.len());
        data.number("total", number(found.connections));
        data.number("offset", self.survey.offset);
        data.number("limit", self.survey.limit);
        let mut subject_bytes = SUBJECT_BYTES_MAX;
        data.objects("connections", rows, |object, row| {
            put_row(object, row, now);
            if self.with_users {
                object.text("authorized_user", &row.user);
                object.text("account", vhost);
            }
            let bytes: usize = row.subjects.iter().map(String::len).sum();
            if let Some(left) = subject_bytes.checked_sub(bytes).filter(|_| bytes > 0) {
                subject_bytes = left;
                object.texts("subscriptions_list", &row.subjects);
            }
        });
    }
}

/// What an option says that may be empty.
fn some(text: &str) -> Option<String> {
    Some(text.to_owned()).filter(|text| !text.is_empty())
}

/// What nats-server calls an order, where it is offered.
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
        _ => return Err((500, format!("invalid sorting option: {name}"))),
    })
}

/// Whether an option that says which servers are asked means this one, as far as that option goes.
fn is_meant_by(name: &str, value: &Value<'_>, settings: &Settings) -> bool {
    let Value::Text(wanted) = value else { return name != "tags" || *value == Value::Null };
    match name {
        "server_name" => settings.server_name.contains(&**wanted),
        "host" => settings.host.contains(&**wanted),
        "cluster" | "domain" => wanted.is_empty(),
        _ => true,
    }
}

/// An answer as all are: who gives it, and what `put` says.
fn answer(settings: &Settings, put: impl FnOnce(&mut ObjectWriter<'_>)) -> Vec<u8> {
    let mut body = Vec::new();
    let mut object = ObjectWriter::new(&mut body);
    let mut server = object.object("server");
    server.text("name", &settings.server_name);
    server.text("host", &settings.host);
    server.text("id", &settings.server_id);
    server.text("ver", &settings.version);
    server.bool("jetstream", false);
    server.end();
    put(&mut object);
    object.end();
    body
}

fn put_row(object: &mut ObjectWriter<'_>, row: &SurveyRow, now: Time) {
    let Figures { number: cid, connected_at, unsent_bytes, traffic } = row.figures;
    let (host, port) = row.address.rsplit_once(':').unwrap_or((&row.address, "0"));
    object.number("cid", number(cid));
    object.text("kind", "Client");
    object.text("type", &row.protocol.to_ascii_lowercase());
    object.text("ip", host.trim_matches(['[', ']']));
    object.number("port", port.parse().unwrap_or(0));
    object.text("start", &date(connected_at));
    object.text("uptime", &uptime(now.since(connected_at)));
    object.number("pending_bytes", number(unsent_bytes));
    object.number("in_msgs", number(traffic.messages_received));
    object.number("out_msgs", number(traffic.messages_sent));
    object.number("in_bytes", number(traffic.bytes_received));
    object.number("out_bytes", number(traffic.bytes_sent));
    object.number("subscriptions", number(traffic.subjects));
    for (name, text) in [
        ("name", &row.client.connection_name),
        ("lang", &row.client.platform),
        ("version", &row.client.version),
    ] {
        if let Some(text) = text {
            object.text(name, text);
        }
    }
}

fn put_statistics(data: &mut ObjectWriter<'_>, vhost: &str, found: &Findings) {
    let traffic = &found.traffic;
    data.objects("account_statz", &[traffic], |account, traffic| {
        account.text("acc", vhost);
        account.text("name", vhost);
        account.number("conns", number(found.connections));
        account.number("leafnodes", 0);
        account.number("total_conns", number(found.connections));
        account.number("num_subscriptions", number(traffic.subjects));
        for (name, messages, bytes) in [
            ("sent", traffic.messages_sent, traffic.bytes_sent),
            ("received", traffic.messages_received, traffic.bytes_received),
        ] {
            let mut sums = account.object(name);
            sums.number("msgs", number(messages));
            sums.number("bytes", number(bytes));
            sums.end();
        }
        account.number("slow_consumers", number(found.laggards));
    });
}

/// As nats-server tells them: what is empty is left out.
fn put_rules(permissions: &mut ObjectWriter<'_>, name: &str, rules: &SubjectRules) {
    if rules.allow.is_empty() && rules.deny.is_empty() {
        return;
    }
    let mut object = permissions.object(name);
    for (name, patterns) in [("allow", &rules.allow), ("deny", &rules.deny)] {
        if !patterns.is_empty() {
            object.texts(name, patterns);
        }
    }
    object.end();
}

fn number(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
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
