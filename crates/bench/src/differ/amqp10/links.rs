//! What is known of a connection's sessions and links, so that lines say nothing that brokers choose, and
//! steps need not say what follows from what came before.

use super::value::{Value, show_value};
use std::collections::{BTreeMap, BTreeSet};

/// A session.
#[derive(Debug, Default)]
struct Session {
    /// The broker's links by its handles: their names.
    links: BTreeMap<u64, Link>,
    /// The delivery-ids of what has come, in order.
    delivered: Vec<u64>,
    /// Transfer frames that have come, and that were sent.
    next_incoming: u64,
    next_outgoing: u64,
}

/// A link.
#[derive(Debug, Default)]
struct Link {
    name: String,
    /// The broker receives, and has given credit.
    receives: bool,
    has_credit: bool,
    /// The message of which not all frames have come, and what its first one says.
    partial: Option<(String, Vec<u8>)>,
}

/// All sessions, by our channels.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    all: BTreeMap<u16, Session>,
    /// Our channels by the broker's.
    channels: BTreeMap<u16, u16>,
    /// The ids of transactions, in the order in which they were declared.
    transactions: Vec<Vec<u8>>,
}

fn number(fields: &[Value], at: usize) -> Option<u64> {
    fields.get(at).and_then(Value::number)
}

fn is_true(fields: &[Value], at: usize) -> bool {
    fields.get(at) == Some(&Value::Bool(true))
}

impl Sessions {
    /// The broker has begun a session.
    pub(super) fn begun(&mut self, channel: u16, fields: &[Value]) {
        let ours = number(fields, 0).map_or(channel, |ours| ours as u16);
        self.channels.insert(channel, ours);
        let session =
            Session { next_incoming: number(fields, 1).unwrap_or(0), ..Session::default() };
        self.all.insert(ours, session);
    }

    /// Our channel of the broker's.
    pub(super) fn ours(&mut self, channel: u16, name: &str, fields: &[Value]) -> u16 {
        if name == "begin" {
            self.begun(channel, fields);
        }
        self.channels.get(&channel).copied().unwrap_or(channel)
    }

    fn session(&mut self, channel: u16) -> &mut Session {
        self.all.entry(channel).or_default()
    }

    pub(super) fn attached(&mut self, channel: u16, fields: &[Value], shown: &str) -> String {
        let name = match fields.first() {
            Some(Value::Text(name)) => String::from_utf8_lossy(name).into_owned(),
            _ => String::new(),
        };
        let receives = is_true(fields, 2);
        let link = Link { name, receives, ..Link::default() };
        self.session(channel).links.insert(number(fields, 1).unwrap_or(0), link);
        format!("{channel} attach {}", without_dynamic(shown))
    }

    pub(super) fn detached(&mut self, channel: u16, fields: &[Value], shown: &str) -> String {
        let link = self.session(channel).links.remove(&number(fields, 0).unwrap_or(0));
        let name = link.map_or("?".to_owned(), |link| link.name);
        format!("{channel} detach link={name} {shown}")
    }

    /// What a flow frame says: of the broker's own credit only that it has given some.
    pub(super) fn flow(&mut self, channel: u16, fields: &[Value]) -> Option<String> {
        let handle = number(fields, 4)?;
        let credit = number(fields, 6).unwrap_or(0);
        let link = self.session(channel).links.get_mut(&handle)?;
        let name = &link.name;
        if link.receives {
            let is_news = credit > 0 && !std::mem::replace(&mut link.has_credit, true);
            return is_news.then(|| format!("{channel} flow link={name} with credit"));
        }
        let count = number(fields, 5).unwrap_or(0);
        let drain = if is_true(fields, 8) { " drain" } else { "" };
        Some(format!(
            "{channel} flow link={name} delivery-count={count} link-credit={credit}{drain}"
        ))
    }

    /// Takes a transfer frame; returns a whole message with what its frames say.
    pub(super) fn transfer(
        &mut self,
        channel: u16,
        fields: &[Value],
        payload: &[u8],
    ) -> Option<(String, Vec<u8>)> {
        let session = self.session(channel);
        session.next_incoming += 1;
        let link = session.links.entry(number(fields, 0).unwrap_or(0)).or_default();
        let (head, mut message) = match link.partial.take() {
            Some(partial) => partial,
            None => {
                let settled = if is_true(fields, 4) { " settled" } else { "" };
                let which = session.delivered.len();
                session.delivered.extend(number(fields, 1));
                (format!("{channel} transfer link={} {which}{settled}", link.name), Vec::new())
            }
        };
        message.extend_from_slice(payload);
        if is_true(fields, 5) {
            link.partial = Some((head, message));
            return None;
        }
        Some((head, message))
    }

    /// What became of deliveries, a line for each.
    pub(super) fn outcomes(&mut self, channel: u16, fields: &[Value]) -> Vec<String> {
        let role = if is_true(fields, 0) { "receiver" } else { "sender" };
        let first = number(fields, 1).unwrap_or(0);
        let last = number(fields, 2).unwrap_or(first).min(first + 1_000);
        let settled = if is_true(fields, 3) { " settled" } else { "" };
        let state = fields.get(4).unwrap_or(&Value::Null);
        let text = self.state_text(state);
        let delivered = &self.session(channel).delivered;
        let which = |id: u64| match role {
            "sender" => delivered.iter().position(|it| *it == id).map_or(id, |at| at as u64),
            _ => id,
        };
        (first..=last)
            .map(|id| format!("{channel} outcome {role} {}{settled} {text}", which(id)))
            .collect()
    }

    fn state_text(&mut self, state: &Value) -> String {
        let text = match state.composite() {
            Some((composite, [Value::Binary(id), ..])) if composite.name == "declared" => {
                self.transactions.push(id.clone());
                format!("declared t{}", self.transactions.len() - 1)
            }
            Some((composite, [Value::Binary(_), outcome, ..]))
                if composite.name == "transactional" =>
            {
                format!("transactional {}", show_value(outcome))
            }
            _ => show_value(state),
        };
        without_info(&text)
    }

    /// A text in which `t0` is the id of the first transaction.
    pub(super) fn named(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (at, id) in self.transactions.iter().enumerate() {
            let id = format!("txn-id=\"{}\"", crate::differ::text::escape(id));
            text = text.replace(&format!("txn-id=t{at}"), &id);
        }
        text
    }

    /// Adds to a performative what follows from what came before.
    pub(super) fn complete(
        &mut self,
        channel: u16,
        word: &str,
        fields: &mut Vec<(String, String)>,
    ) {
        for (_, value) in fields.iter_mut() {
            *value = self.named(value);
        }
        let given: BTreeSet<String> = fields.iter().map(|(name, _)| name.clone()).collect();
        let mut add = |name: &str, value: String| {
            if !given.contains(name) {
                fields.push((name.to_owned(), value));
            }
        };
        match word {
            "begin" => {
                add("next-outgoing-id", "0".to_owned());
                add("incoming-window", "2048".to_owned());
                add("outgoing-window", "2048".to_owned());
            }
            "attach" if !given.contains("role") => {
                add("role", "sender".to_owned());
                add("initial-delivery-count", "0".to_owned());
            }
            "flow" => {
                let session = self.session(channel);
                add("next-incoming-id", session.next_incoming.to_string());
                add("incoming-window", "2048".to_owned());
                add("next-outgoing-id", session.next_outgoing.to_string());
                add("outgoing-window", "2048".to_owned());
            }
            "transfer" => {
                self.session(channel).next_outgoing += 1;
                if given.contains("delivery-id") {
                    let tag = format!("tag{}", self.session(channel).next_outgoing);
                    add("delivery-tag", tag);
                }
            }
            "disposition" => {
                let delivered = &self.session(channel).delivered;
                let is_receiver = fields.iter().any(|(_, value)| value == "receiver");
                let ids = fields.iter_mut().filter(|(name, _)| name == "first" || name == "last");
                for (_, value) in ids.filter(|_| is_receiver) {
                    let at: Option<usize> = value.parse().ok();
                    if let Some(id) = at.and_then(|at| delivered.get(at)) {
                        *value = id.to_string();
                    }
                }
            }
            _ => {}
        }
    }
}

/// An attach without the address that the broker has made up.
fn without_dynamic(shown: &str) -> String {
    let Some((before, behind)) = shown.split_once("{address=") else { return shown.to_owned() };
    match behind.split_once(' ') {
        Some((_, rest)) if rest.split('}').next().is_some_and(|it| it.contains("dynamic")) => {
            format!("{before}{{address=* {rest}")
        }
        _ => shown.to_owned(),
    }
}

/// A line without the `info` of an error, which each broker has of its own.
pub(super) fn without_info(line: &str) -> String {
    match line.split_once(" info={") {
        Some((before, behind)) => match behind.split_once('}') {
            Some((_, rest)) => format!("{before}{rest}"),
            None => before.to_owned(),
        },
        None => line.to_owned(),
    }
}
