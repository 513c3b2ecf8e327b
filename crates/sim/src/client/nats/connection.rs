//! The client's side of a NATS connection: operations in and out by the protocol crate's codec,
//! subscriptions, and what each PONG confirms.

use super::incoming::{Arrived, Incoming};
use super::proxy::Proxy;
use crate::client::{PASSWORD, USER};
use crate::history::{Event, HeadersSeen, MessageId};
use crate::payload;
use crate::plan::nats::Client as Plan;
use angarium_protocol::nats::codec::client::{Publish, write_unsubscribe};
use angarium_protocol::nats::codec::client::{write_ping, write_pong, write_subscribe};
use angarium_protocol::nats::codec::{Connect, Headers, Info, Message, ServerOp};
use std::collections::{BTreeMap, VecDeque};

/// Longest payload that is accepted.
const PAYLOAD_MAX: usize = 1 << 20;
/// The header with the number of missed messages.
const MISSED: &str = "Angarium-Missed";

/// A subscription of the connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subscribed {
    pub(crate) subscription: u32,
    /// The part of the client that it belongs to.
    pub(crate) part: usize,
}

/// What was sent since the last PING, and is confirmed by the PONG of the next one.
#[derive(Debug, Default)]
struct Sent {
    subscribed: Vec<u32>,
    unsubscribed: Vec<u32>,
    /// The newest message of each publisher.
    published: BTreeMap<u32, MessageId>,
}

/// One connection.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    /// Its number.
    pub(crate) number: u32,
    input: Vec<u8>,
    pub(crate) output: Vec<u8>,
    subscribed: BTreeMap<u32, Subscribed>,
    sent: Sent,
    /// What each unanswered PING covers.
    asked: VecDeque<Sent>,
    proxy: Option<Proxy>,
}

impl Connection {
    /// A connection behind a proxy.
    pub(crate) fn behind(proxy: Option<Proxy>) -> Connection {
        Connection { proxy, ..Connection::default() }
    }

    /// The next connection, behind the same proxy.
    pub(crate) fn renewed(&mut self, number: u32) -> Connection {
        Connection { number, ..Connection::behind(self.proxy.take()) }
    }

    // ---- out ----

    /// Sends CONNECT.
    pub(crate) fn connect(&mut self, plan: &Plan) {
        let echo = plan.echo || self.proxy.as_ref().is_some_and(Proxy::forces_echo);
        let connect = Connect {
            verbose: plan.verbose,
            pedantic: false,
            user: Some(USER.to_owned()),
            pass: Some(PASSWORD.to_owned()),
            protocol: 1,
            echo,
            no_responders: plan.headers,
            headers: plan.headers,
            ..Connect::default()
        };
        connect.write(&mut self.output);
    }

    pub(crate) fn publish(&mut self, message: MessageId, publish: &Publish<'_>) {
        let is_lost =
            self.proxy.as_ref().is_some_and(|proxy| proxy.swallows_publish(publish.subject));
        if !is_lost {
            publish.write(&mut self.output);
        }
        self.sent.published.insert(message.producer(), message);
    }

    /// Subscribes; returns the sid.
    pub(crate) fn subscribe(
        &mut self,
        pattern: &str,
        group: Option<&str>,
        subscription: u32,
        part: usize,
    ) -> u32 {
        let sid = u32::try_from(self.subscribed.len() + 1).expect("runs are short");
        self.subscribed.insert(sid, Subscribed { subscription, part });
        let group = group.filter(|_| !self.proxy.as_ref().is_some_and(Proxy::ignores_groups));
        let name = sid.to_string();
        let group = group.unwrap_or_default().as_bytes();
        write_subscribe(&mut self.output, pattern.as_bytes(), group, name.as_bytes());
        self.sent.subscribed.push(subscription);
        sid
    }

    pub(crate) fn unsubscribe(&mut self, sid: u32, after: Option<u64>) {
        let after = after.map(|after| usize::try_from(after).expect("limits are small"));
        if !self.proxy.as_ref().is_some_and(|proxy| proxy.swallows_unsubscribe(after)) {
            write_unsubscribe(&mut self.output, sid.to_string().as_bytes(), after);
        }
        self.sent.unsubscribed.extend(self.subscribed.get(&sid).map(|it| it.subscription));
    }

    pub(crate) fn ping(&mut self) {
        write_ping(&mut self.output);
        self.asked.push_back(std::mem::take(&mut self.sent));
    }

    pub(crate) fn pong(&mut self) {
        write_pong(&mut self.output);
    }

    /// Whether the broker has processed everything that was sent.
    pub(crate) fn is_synced(&self) -> bool {
        let Sent { subscribed, unsubscribed, published } = &self.sent;
        let is_all_asked = subscribed.is_empty() && unsubscribed.is_empty() && published.is_empty();
        is_all_asked && self.asked.is_empty()
    }

    /// Whether a PING is unanswered.
    pub(crate) fn is_asking(&self) -> bool {
        !self.asked.is_empty()
    }

    // ---- in ----

    pub(crate) fn subscribed(&self, sid: u32) -> Option<Subscribed> {
        self.subscribed.get(&sid).copied()
    }

    /// Handles a PONG; returns the events that it confirms.
    pub(crate) fn ponged(&mut self) -> Result<Vec<Event>, String> {
        let sent = self.asked.pop_front().ok_or("a PONG to no PING")?;
        let subscribed =
            sent.subscribed.into_iter().map(|subscription| Event::Subscribed { subscription });
        let unsubscribed = sent.unsubscribed.into_iter();
        let unsubscribed = unsubscribed.map(|subscription| Event::Unsubscribed { subscription });
        let flushed = sent.published.into_values().map(|message| Event::Flushed { message });
        Ok(subscribed.chain(unsubscribed).chain(flushed).collect())
    }

    /// Takes bytes; returns what they complete. Fails if the broker breaks the protocol.
    pub(crate) fn received(&mut self, bytes: &[u8]) -> Result<Vec<Incoming>, String> {
        self.input.extend_from_slice(bytes);
        let mut incoming = Vec::new();
        let mut used = 0;
        while let Some((op, length)) = ServerOp::decode(&self.input[used..], PAYLOAD_MAX)
            .map_err(|wrong| format!("the broker sent no operation: {wrong:?}"))?
        {
            used += length;
            incoming.push(match op {
                ServerOp::Info(json) => {
                    let info = Info::decode(json).map_err(|_| "INFO is no JSON")?;
                    Incoming::Info { lame_duck: info.ldm }
                }
                ServerOp::Message(message) => Incoming::Message(arrived(&message)?),
                ServerOp::Ping => Incoming::Ping,
                ServerOp::Pong => Incoming::Pong,
                ServerOp::Ok => Incoming::Done,
                ServerOp::Error(text) => Incoming::Error(String::from_utf8_lossy(text).into()),
            });
        }
        self.input.drain(..used);
        if let Some(proxy) = &mut self.proxy {
            proxy.alter_direct(&mut incoming);
        }
        Ok(incoming)
    }
}

fn arrived(message: &Message<'_>) -> Result<Arrived, String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let sid = text(message.sid).parse().map_err(|_| "a message for nobody's subscription")?;
    let headers = Headers::read(message.headers);
    let no_responders = headers.status().filter(|(code, _)| code == b"503");
    let id = payload::read(message.body);
    let missed = headers.get(MISSED);
    Ok(Arrived {
        sid,
        subject: text(message.subject),
        reply: Some(text(message.reply)).filter(|reply| !reply.is_empty()),
        id,
        headers: seen(message.headers, missed.is_some(), id),
        missed: missed.and_then(|count| text(&count).parse().ok()).unwrap_or(0),
        no_responders: no_responders
            .map(|_| text(&headers.get("Nats-Subject").unwrap_or_default())),
    })
}

/// Whose headers these are.
fn seen(block: &[u8], has_missed: bool, id: Option<MessageId>) -> HeadersSeen {
    let headers = Headers::read(block);
    let others = headers.entries().filter(|(name, _)| *name != MISSED.as_bytes()).count();
    if block.is_empty() || (others == 0 && has_missed) {
        return HeadersSeen::None;
    }
    let Some(id) = id else { return HeadersSeen::Other };
    let own = payload::headers(id);
    let own = own.strip_suffix(b"\r\n").expect("a block ends with an empty connection");
    let follows = block.strip_prefix(own);
    let is_own = follows.is_some_and(|rest| has_missed || rest == b"\r\n");
    // Messages of other protocols carry the number as a property.
    let is_translated = headers.get("Nats-Msg-Id").as_deref() == Some(id.0.to_string().as_bytes());
    if is_own || is_translated { HeadersSeen::Own } else { HeadersSeen::Other }
}
