//! One NATS connection from the client's side: operations out and in, by the protocol crate's codec, its
//! subscriptions, and what each PONG says about what was sent before its PING.

use crate::canary::Proxy;
use crate::client::{PASSWORD, USER};
use crate::history::{Event, HeadersSeen, MessageId};
use crate::payload;
use crate::plan::nats::Nats;
use angarium_protocol::nats::codec::client::{Publish, write_unsubscribe};
use angarium_protocol::nats::codec::client::{write_ping, write_pong, write_subscribe};
use angarium_protocol::nats::codec::{Connect, Headers, Info, Message, ServerOp};
use std::collections::{BTreeMap, VecDeque};

/// Longest payload that is taken.
const PAYLOAD_MAX: usize = 1 << 20;
/// The header that tells how many messages were missed.
const MISSED: &str = "Angarium-Missed";

/// What arrived.
#[derive(Clone, Debug)]
pub(crate) enum Incoming {
    /// INFO, and whether the broker is about to go.
    Info { lame_duck: bool },
    /// MSG or HMSG.
    Message(Arrived),
    /// PING.
    Ping,
    /// PONG.
    Pong,
    /// +OK.
    Done,
    /// -ERR.
    Error(String),
}

/// A message as it arrived.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrived {
    pub(crate) sid: u32,
    pub(crate) subject: String,
    pub(crate) reply: Option<String>,
    /// Which message it is, if the body is sound.
    pub(crate) id: Option<MessageId>,
    pub(crate) headers: HeadersSeen,
    pub(crate) missed: u64,
    /// Nobody takes the request that was sent to this subject.
    pub(crate) unheard: Option<String>,
}

/// A subscription of the connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subscribed {
    pub(crate) listener: u32,
    /// The part of the client whose it is.
    pub(crate) part: usize,
}

/// What the next PONG will say of what was sent before its PING.
#[derive(Debug, Default)]
struct Sent {
    listens: Vec<u32>,
    unlistened: Vec<u32>,
    /// The newest message of each publisher.
    published: BTreeMap<u32, MessageId>,
}

/// One connection.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// Its number.
    pub(crate) connection: u32,
    input: Vec<u8>,
    pub(crate) output: Vec<u8>,
    subscribed: BTreeMap<u32, Subscribed>,
    sent: Sent,
    /// For each PING that was not answered.
    asked: VecDeque<Sent>,
    proxy: Option<Proxy>,
}

impl Line {
    /// A connection behind a proxy.
    pub(crate) fn behind(proxy: Option<Proxy>) -> Line {
        Line { proxy, ..Line::default() }
    }

    /// The next connection, behind the same proxy.
    pub(crate) fn renewed(&mut self, connection: u32) -> Line {
        Line { connection, ..Line::behind(self.proxy.take()) }
    }

    // ---- out ----

    /// Says who it is and what it wants.
    pub(crate) fn connect(&mut self, plan: &Nats) {
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

    /// Subscribes; returns the subscription's name.
    pub(crate) fn subscribe(
        &mut self,
        pattern: &str,
        group: Option<&str>,
        listener: u32,
        part: usize,
    ) -> u32 {
        let sid = u32::try_from(self.subscribed.len() + 1).expect("runs are short");
        self.subscribed.insert(sid, Subscribed { listener, part });
        let group = group.filter(|_| !self.proxy.as_ref().is_some_and(Proxy::ignores_groups));
        let name = sid.to_string();
        let group = group.unwrap_or_default().as_bytes();
        write_subscribe(&mut self.output, pattern.as_bytes(), group, name.as_bytes());
        self.sent.listens.push(listener);
        sid
    }

    pub(crate) fn unsubscribe(&mut self, sid: u32, after: Option<u64>) {
        let after = after.map(|after| usize::try_from(after).expect("limits are small"));
        if !self.proxy.as_ref().is_some_and(|proxy| proxy.swallows_unsubscribe(after)) {
            write_unsubscribe(&mut self.output, sid.to_string().as_bytes(), after);
        }
        self.sent.unlistened.extend(self.subscribed.get(&sid).map(|it| it.listener));
    }

    pub(crate) fn ping(&mut self) {
        write_ping(&mut self.output);
        self.asked.push_back(std::mem::take(&mut self.sent));
    }

    pub(crate) fn pong(&mut self) {
        write_pong(&mut self.output);
    }

    /// The broker has processed all that was sent.
    pub(crate) fn is_synced(&self) -> bool {
        let Sent { listens, unlistened, published } = &self.sent;
        let is_all_asked = listens.is_empty() && unlistened.is_empty() && published.is_empty();
        is_all_asked && self.asked.is_empty()
    }

    /// A PING is out.
    pub(crate) fn is_asking(&self) -> bool {
        !self.asked.is_empty()
    }

    // ---- in ----

    pub(crate) fn subscribed(&self, sid: u32) -> Option<Subscribed> {
        self.subscribed.get(&sid).copied()
    }

    /// A PONG came: what is known by it.
    pub(crate) fn ponged(&mut self) -> Result<Vec<Event>, String> {
        let sent = self.asked.pop_front().ok_or("a PONG to no PING")?;
        let listens = sent.listens.into_iter().map(|listener| Event::Listens { listener });
        let unlistened = sent.unlistened.into_iter();
        let unlistened = unlistened.map(|listener| Event::Unlistened { listener });
        let flushed = sent.published.into_values().map(|message| Event::Flushed { message });
        Ok(listens.chain(unlistened).chain(flushed).collect())
    }

    /// Takes bytes; returns what they complete. An error is a broken promise of the broker.
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
    let unheard = headers.status().filter(|(code, _)| code == b"503");
    let id = payload::read(message.body);
    let missed = headers.get(MISSED);
    Ok(Arrived {
        sid,
        subject: text(message.subject),
        reply: Some(text(message.reply)).filter(|reply| !reply.is_empty()),
        id,
        headers: seen(message.headers, missed.is_some(), id),
        missed: missed.and_then(|count| text(&count).parse().ok()).unwrap_or(0),
        unheard: unheard.map(|_| text(&headers.get("Nats-Subject").unwrap_or_default())),
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
    // From another protocol the number comes as a property.
    let is_translated = headers.get("Nats-Msg-Id").as_deref() == Some(id.0.to_string().as_bytes());
    if is_own || is_translated { HeadersSeen::Own } else { HeadersSeen::Other }
}
