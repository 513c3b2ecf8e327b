//! Requests below `$SYS.REQ` that the broker answers itself, as nats-server does: who a client is, and which
//! connections its virtual host has.
//!
//! Answers go only to subscriptions of the asking connection: elsewhere a client could direct them to
//! subjects that it may not publish to.

use super::codec::Publish;
use super::monitoring::{connection_row, date, order, without_empty};
use super::publish::published;
use super::settings::Settings;
use super::{mapping, subject};
use crate::connection_query::{ConnectionQuery, ConnectionRow, QueryResult, SUBJECT_BYTES_MAX};
use crate::nats::handler::Handler;
use crate::{Context, Host};
use angarium_engine::{Content, Emit, SubjectPermissions, SubjectRules, Time};
use serde_json::{Map, Value, json};

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
    pub(super) fn ask(
        &mut self,
        context: &mut Context<impl Host>,
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
        let emit = Emit {
            subject: &subject,
            echo: self.wishes.echo,
            is_response: false,
            asks: false,
            content,
        };
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

    fn tell_user(&mut self, context: &mut Context<impl Host>, reply: &str) {
        let mut user = json!({ "user": self.user, "account": self.vhost });
        if let Some(permissions) = context.engine.subject_permissions(self.id) {
            let SubjectPermissions { publish, subscribe, responses } = permissions;
            let members = json!({
                "publish": rules(publish),
                "subscribe": rules(subscribe),
                "responses": responses.map(|it| json!({
                    "max": it.messages,
                    "ttl": u64::try_from(it.within.as_nanos()).unwrap_or(u64::MAX),
                })),
            });
            user["permissions"] = without_empty(members);
        }
        self.tell(context, reply, Ok(user));
    }

    /// Queries the connections of its virtual host.
    fn ask_connections(
        &mut self,
        context: &mut Context<impl Host>,
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
            Err(mistake) => self.tell(context, reply, Err(mistake)),
        }
    }

    /// Answers what was asked about connections.
    pub(super) fn tell_connections(
        &mut self,
        context: &mut Context<impl Host>,
        found: &QueryResult,
    ) {
        let Some(asked) = self.asked.take() else { return };
        let mut data = match asked.question {
            Question::Statistics => json!({ "account_statz": [sums(&self.vhost, found)] }),
            _ => asked.connections(&self.vhost, found, context.now),
        };
        data["server_id"] = json!(self.settings.server_id);
        data["now"] = json!(date(context.now));
        self.tell(context, &asked.reply, Ok(data));
    }

    fn tell(&self, context: &mut Context<impl Host>, reply: &str, outcome: Result<Value, Mistake>) {
        let settings = &self.settings;
        let server = json!({
            "name": settings.server_name,
            "host": settings.host,
            "id": settings.server_id,
            "ver": settings.version,
            "jetstream": false,
        });
        let answer = match outcome {
            Ok(data) => json!({ "server": server, "data": data }),
            Err(Mistake { code, description }) => {
                json!({ "server": server, "error": { "code": code, "description": description } })
            }
        };
        let body = answer.to_string();
        let content = Content { persistent: false, ..published(&[], body.as_bytes()) };
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
        let wrong = || {
            let description = format!("the option {name:?} has a value of another type");
            Mistake { code: 400, description }
        };
        let flag = || value.as_bool().ok_or_else(wrong);
        let number = || value.as_i64().ok_or_else(wrong);
        let text = || value.as_str().ok_or_else(wrong);
        match name {
            _ if value.is_null() => {}
            "auth" => self.with_users = flag()?,
            "subscriptions" | "subscriptions_detail" => query.with_subjects |= flag()?,
            "offset" => query.offset = number()?.try_into().unwrap_or(0),
            "limit" => {
                let limit = usize::try_from(number()?).ok().filter(|limit| *limit > 0);
                query.limit = limit.unwrap_or(LIMIT).min(LIMIT);
            }
            "cid" => query.number = number()?.try_into().ok().filter(|number| *number > 0),
            "state" => self.only_ended = number()? == ENDED,
            "user" => query.user = some(text()?),
            "filter_subject" => query.subject = some(text()?),
            "sort" => {
                let name = text()?;
                let unknown = || {
                    let description = format!("invalid sorting option: {name}");
                    Mistake { code: 500, description }
                };
                query.order = order(name).ok_or_else(unknown)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn connections(&self, vhost: &str, found: &QueryResult, now: Time) -> Value {
        let rows = found.page(&self.query);
        let mut subject_bytes = SUBJECT_BYTES_MAX;
        let shown = |found: &ConnectionRow| {
            let bytes: usize = found.subjects.iter().map(String::len).sum();
            let left = subject_bytes.checked_sub(bytes).filter(|_| bytes > 0);
            subject_bytes = left.unwrap_or(subject_bytes);
            let mut row = connection_row(found, now);
            row["authorized_user"] = json!(self.with_users.then_some(&found.user));
            row["account"] = json!(self.with_users.then_some(vhost));
            row["subscriptions_list"] = json!(left.map(|_| &found.subjects));
            without_empty(row)
        };
        json!({
            "num_connections": rows.len(),
            "total": found.connections,
            "offset": self.query.offset,
            "limit": self.query.limit,
            "connections": rows.iter().map(shown).collect::<Vec<_>>(),
        })
    }
}

/// The value of an option; empty: `None`.
fn some(text: &str) -> Option<String> {
    Some(text.to_owned()).filter(|text| !text.is_empty())
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

/// Which subjects a client may use.
fn rules(rules: &SubjectRules) -> Value {
    without_empty(json!({ "allow": rules.allow, "deny": rules.deny }))
}

/// What the connections of a virtual host have sent and received together.
fn sums(vhost: &str, found: &QueryResult) -> Value {
    let traffic = &found.traffic;
    json!({
        "acc": vhost,
        "name": vhost,
        "conns": found.connections,
        "leafnodes": 0,
        "total_conns": found.connections,
        "num_subscriptions": traffic.subjects,
        "sent": { "msgs": traffic.messages_sent, "bytes": traffic.bytes_sent },
        "received": { "msgs": traffic.messages_received, "bytes": traffic.bytes_received },
        "slow_consumers": found.slow_consumers,
    })
}
