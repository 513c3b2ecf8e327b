//! The client's side of a NATS connection: operations in and out by the protocol crate's codec,
//! subscriptions, and what each PONG confirms.

use super::incoming::{Arrived, Incoming};
use super::proxy::Proxy;
use crate::canary::Canary;
use crate::client::{PASSWORD, USER};
use crate::history::{Event, HeadersSeen, MessageId};
use crate::payload;
use crate::plan::nats::Client as Plan;
use angarium_engine::QUEUE_SUBJECT_PREFIX;
use angarium_protocol::nats::codec::client::{Publish, write_unsubscribe};
use angarium_protocol::nats::codec::client::{write_ping, write_subscribe};
use angarium_protocol::nats::codec::{Connect, Headers, Info, Message, ServerOp};
use std::collections::{BTreeMap, VecDeque};

const PAYLOAD_MAX: usize = 1 << 20;
/// The header with the number of missed messages.
const MISSED: &str = "Angarium-Missed";

/// A subscription of the connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subscribed {
    pub(super) subscription: u32,
    /// The part of the client that it belongs to.
    pub(super) part: usize,
}

/// What was sent since the last PING, and is confirmed by the PONG of the next one.
#[derive(Debug, Default, PartialEq)]
struct Sent {
    subscribed: Vec<u32>,
    unsubscribed: Vec<u32>,
    /// The newest message of each publisher.
    published: BTreeMap<u32, MessageId>,
}

/// One connection.
#[derive(Debug, Default)]
pub(super) struct Connection {
    /// Its number.
    pub(super) number: u32,
    /// The part of the client that acts on it.
    pub(super) part: usize,
    /// The client takes headers.
    pub(super) takes_headers: bool,
    /// The client wants its own messages back.
    pub(super) echo: bool,
    input: Vec<u8>,
    pub(super) output: Vec<u8>,
    subscribed: BTreeMap<u32, Subscribed>,
    sent: Sent,
    /// What each unanswered PING covers.
    asked: VecDeque<Sent>,
    pub(super) proxy: Option<Proxy>,
}

impl Connection {
    /// The next connection, behind the same proxy.
    pub(super) fn renewed(&mut self, number: u32, plan: &Plan) -> Connection {
        let (takes_headers, echo, proxy) = (plan.headers, plan.echo, self.proxy.take());
        Connection { number, takes_headers, echo, proxy, ..Connection::default() }
    }

    fn breaks(&self, canary: Canary) -> bool {
        self.proxy.as_ref().is_some_and(|proxy| proxy.canary == canary)
    }

    // ---- out ----

    pub(super) fn connect(&mut self, plan: &Plan) {
        let connect = Connect {
            verbose: plan.verbose,
            pedantic: false,
            user: Some(USER.to_owned()),
            pass: Some(PASSWORD.to_owned()),
            protocol: 1,
            echo: plan.echo || self.breaks(Canary::EchoForced),
            no_responders: plan.headers,
            headers: plan.headers,
            ..Connect::default()
        };
        connect.write(&mut self.output);
    }

    pub(super) fn publish(&mut self, message: MessageId, publish: &Publish<'_>) {
        let is_to_queue = publish.subject.starts_with(QUEUE_SUBJECT_PREFIX.as_bytes());
        if !(is_to_queue && self.breaks(Canary::QueueSubjectLost)) {
            publish.write(&mut self.output);
        }
        self.sent.published.insert(message.producer(), message);
    }

    /// Subscribes; returns the sid.
    pub(super) fn subscribe(
        &mut self,
        pattern: &str,
        group: Option<&str>,
        subscription: u32,
    ) -> u32 {
        let sid = self.subscribed.len() as u32 + 1;
        self.subscribed.insert(sid, Subscribed { subscription, part: self.part });
        let group = group.filter(|_| !self.breaks(Canary::GroupsIgnored)).unwrap_or_default();
        let name = sid.to_string();
        write_subscribe(&mut self.output, pattern.as_bytes(), group.as_bytes(), name.as_bytes());
        self.sent.subscribed.push(subscription);
        sid
    }

    pub(super) fn unsubscribe(&mut self, sid: u32, after: Option<u64>) {
        let lost = if after.is_none() { Canary::UnsubscribesLost } else { Canary::UntilIgnored };
        if !self.breaks(lost) {
            let after = after.map(|after| after as usize);
            write_unsubscribe(&mut self.output, sid.to_string().as_bytes(), after);
        }
        self.sent.unsubscribed.extend(self.subscribed.get(&sid).map(|it| it.subscription));
    }

    pub(super) fn ping(&mut self) {
        write_ping(&mut self.output);
        self.asked.push_back(std::mem::take(&mut self.sent));
    }

    /// Whether the broker has processed everything that was sent.
    pub(super) fn is_synced(&self) -> bool {
        self.sent == Sent::default() && self.asked.is_empty()
    }

    /// Whether a PING is unanswered.
    pub(super) fn is_asking(&self) -> bool {
        !self.asked.is_empty()
    }

    // ---- in ----

    pub(super) fn subscribed(&self, sid: u32) -> Option<Subscribed> {
        self.subscribed.get(&sid).copied()
    }

    /// Handles a PONG; returns the events that it confirms.
    pub(super) fn ponged(&mut self) -> Result<Vec<Event>, String> {
        let sent = self.asked.pop_front().ok_or("a PONG to no PING")?;
        let Sent { subscribed, unsubscribed, published } = sent;
        let subscribed = subscribed.into_iter();
        let unsubscribed = unsubscribed.into_iter();
        Ok(subscribed
            .map(|subscription| Event::Subscribed { subscription })
            .chain(unsubscribed.map(|subscription| Event::Unsubscribed { subscription }))
            .chain(published.into_values().map(|message| Event::Flushed { message }))
            .collect())
    }

    /// Takes bytes; returns what they complete. Fails if the broker breaks the protocol.
    pub(super) fn received(&mut self, bytes: &[u8]) -> Result<Vec<Incoming>, String> {
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
    let sid =
        text(message.sid).parse().map_err(|_| "a message whose subscription has no number")?;
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
    let own = own.strip_suffix(b"\r\n").expect("a block ends with an empty line");
    let follows = block.strip_prefix(own);
    let is_own = follows.is_some_and(|rest| has_missed || rest == b"\r\n");
    // Messages of other protocols carry the number as a property.
    let is_translated = headers.get("Nats-Msg-Id").as_deref() == Some(id.0.to_string().as_bytes());
    if is_own || is_translated { HeadersSeen::Own } else { HeadersSeen::Other }
}
