//! A NATS connection with JetStream: API requests, publishes with acknowledgements, and a pull consumer.

use super::api::{self, Answer, PublishAcks};
use super::pull_consumer::PullConsumer;
use crate::client::nats;
use crate::client::{Confirm, Encoded, Error, Receiver, Route, Session, Source, Target};
use angarium_protocol::nats::codec::{Message, Publish, ServerOp};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// Digits of a message's number at the end of its reply subject.
const NUMBER_DIGITS: usize = 12;

/// Counter for inboxes.
static CONNECTIONS: AtomicU64 = AtomicU64::new(0);

/// An open connection.
#[derive(Debug)]
pub struct Connection {
    pub(crate) core: nats::Connection,
    target: Target,
    /// Prefix of this connection's own reply subjects.
    inbox: String,
    /// The inbox is subscribed to.
    has_inbox: bool,
    /// Bytes to send before the next read.
    requests: Vec<u8>,
    role: Role,
}

/// What the connection is used for.
#[derive(Debug)]
enum Role {
    /// Core NATS subjects.
    Direct,
    /// Publishes with acknowledgements.
    Confirmed(Confirmed),
    /// Consuming a stream.
    Consuming(Box<PullConsumer>),
}

/// Which messages are acknowledged.
#[derive(Debug, Default)]
struct Confirmed {
    acks: PublishAcks,
    /// All tags up to this one are.
    up_to: u64,
}

impl Connection {
    /// Connects, authenticates, and waits for the server's PONG.
    pub(crate) fn open(target: &Target) -> Result<Connection, Error> {
        Ok(Connection {
            core: nats::Connection::open(target)?,
            target: target.clone(),
            inbox: inbox(),
            has_inbox: false,
            requests: Vec::new(),
            role: Role::Direct,
        })
    }

    /// Subscribes to this connection's inbox.
    fn subscribe_inbox(&mut self) -> Result<(), Error> {
        if !self.has_inbox {
            self.core.subscribe_many([format!("{}*", self.inbox)], None)?;
            self.has_inbox = true;
        }
        Ok(())
    }

    /// Sends an API request and waits for its answer.
    fn ask(&mut self, subject: &str, body: &str) -> Result<Answer, Error> {
        self.subscribe_inbox()?;
        let reply = format!("{}asked", self.inbox);
        let mut out = Vec::new();
        let (subject, body) = (subject.as_bytes(), body.as_bytes());
        Publish { subject, reply: reply.as_bytes(), body, ..Publish::default() }.write(&mut out);
        self.core.wire.send(&out)?;
        let mut answer = None;
        self.core.expect(|op| match op {
            ServerOp::Message(message) if message.subject == reply.as_bytes() => {
                answer = Some(Answer::read(message));
                true
            }
            _ => false,
        })?;
        answer.expect("what is waited for has come")
    }

    /// Creates the stream of a session's subject, unless it exists, and the session's consumer.
    pub(crate) fn declare_session(&mut self, session: &Session<'_>) -> Result<(), Error> {
        for (subject, body) in [api::create_stream(session), api::create_consumer(session)] {
            self.ask(&subject, &body)?.done()?;
        }
        Ok(())
    }

    /// Deletes the stream of a subject and its consumers, if it exists.
    pub(crate) fn delete(&mut self, subject: &str) -> Result<(), Error> {
        if subject.is_empty() {
            return Ok(());
        }
        let request = format!("$JS.API.STREAM.DELETE.{}", api::stream_of(subject));
        let answer = match self.ask(&request, "") {
            // A server drops clients that do not answer its pings; the owner of a long run reads nothing
            // between declaring and deleting.
            Err(Error::Io(_)) => {
                *self = Connection::open(&self.target)?;
                self.ask(&request, "")
            }
            answer => answer,
        };
        answer?.deleted()
    }

    /// Asks for an acknowledgement of every message published from now on.
    pub(crate) fn select_confirms(&mut self) -> Result<(), Error> {
        self.subscribe_inbox()?;
        self.role = Role::Confirmed(Confirmed::default());
        Ok(())
    }

    /// Subscribes to a subject of core NATS, or starts to pull the subject's stream through a consumer.
    pub(crate) fn subscribe(&mut self, source: &Source<'_>, prefetch: u16) -> Result<(), Error> {
        let Some(consumer) = source.session else { return self.core.subscribe(source, prefetch) };
        let stream = api::stream_of(source.name);
        let info = self.ask(&format!("$JS.API.CONSUMER.INFO.{stream}.{consumer}"), "")?;
        let inbox = format!("{}pulled", self.inbox);
        let deliveries = PullConsumer::new(&stream, consumer, inbox, info.acks()?, prefetch);
        self.role = Role::Consuming(Box::new(deliveries));
        Ok(())
    }

    /// Appends a message. The number at the end of its reply subject, which its acknowledgement will
    /// name, is the tag.
    pub(crate) fn encode(&self, route: &Route<'_>, body: &[u8], out: &mut Vec<u8>) -> Encoded {
        let Role::Confirmed(_) = self.role else { return self.core.encode(route, body, out) };
        let reply = format!("{}{:0width$}", self.inbox, 0, width = NUMBER_DIGITS);
        let reply_at = out.len() + "PUB ".len() + route.key.len() + " ".len();
        let (subject, reply) = (route.key.as_bytes(), reply.as_bytes());
        Publish { subject, reply, body, ..Publish::default() }.write(out);
        let body_at = out.len() - body.len() - b"\r\n".len();
        Encoded::body_at(body_at).with_digits(Some(reply_at + self.inbox.len()), NUMBER_DIGITS)
    }

    /// Acknowledges a delivery; with `multiple`, all up to it. Sent before the next read.
    pub(crate) fn encode_ack(&mut self, _: &mut Vec<u8>, tag: u64, multiple: bool) {
        let Role::Consuming(deliveries) = &mut self.role else { return };
        deliveries.acknowledge(tag, multiple, &mut self.requests);
    }

    /// Sends pending requests and the next pull request, and reads once.
    #[inline]
    pub(crate) fn fill(&mut self) -> io::Result<usize> {
        if let Role::Consuming(deliveries) = &mut self.role {
            deliveries.pull(&mut self.requests);
        }
        self.core.wire.flush(&mut self.requests)?;
        self.core.wire.fill()
    }

    /// Ends all subscriptions and asks for a PONG after that.
    pub(crate) fn send_end(&mut self) -> Result<(), Error> {
        if let Role::Consuming(deliveries) = &mut self.role {
            deliveries.ending = true;
        }
        self.core.wire.flush(&mut self.requests)?;
        self.has_inbox = false;
        self.core.send_end()
    }

    /// Closes the connection once the last acknowledgements are processed.
    pub(crate) fn close(mut self) -> Result<(), Error> {
        if self.requests.is_empty() {
            return Ok(());
        }
        self.send_end()?;
        self.core.expect_pong()
    }

    /// Hands everything received to `receiver`.
    #[inline]
    pub(crate) fn parse(&mut self, receiver: &mut impl Receiver) -> Result<(), Error> {
        match &mut self.role {
            Role::Direct => self.core.parse(receiver),
            Role::Consuming(deliveries) => self
                .core
                .parse_each(receiver, |receiver, message| deliveries.take(receiver, &message)),
            Role::Confirmed(confirmed) => {
                let (inbox, before) = (self.inbox.as_bytes(), confirmed.up_to);
                let parsed = self.core.parse_each(receiver, |receiver, message| {
                    confirmed.take(receiver, inbox, &message)
                });
                let tag = confirmed.up_to;
                if tag > before {
                    receiver.confirm(Confirm { tag, multiple: true, refused: false })?;
                }
                parsed
            }
        }
    }
}

impl Confirmed {
    #[inline]
    fn take(
        &mut self,
        receiver: &mut impl Receiver,
        inbox: &[u8],
        message: &Message<'_>,
    ) -> Result<(), Error> {
        let tag = message.subject.strip_prefix(inbox).and_then(number);
        let tag = tag.ok_or_else(|| Error::invalid("a message to an unknown reply subject"))?;
        self.acks.read(message)?;
        // A stream acknowledges messages in order.
        if tag == self.up_to + 1 {
            self.up_to = tag;
            return Ok(());
        }
        receiver.confirm(Confirm { tag, multiple: false, refused: false })
    }
}

/// Decodes the number of a message, which counts from 1.
#[inline]
pub(super) fn number(digits: &[u8]) -> Option<u64> {
    let digits: &[u8; NUMBER_DIGITS] = digits.try_into().ok()?;
    let mut number = 0;
    for digit in digits {
        let value = digit.wrapping_sub(b'0');
        if value > 9 {
            return None;
        }
        number = number * 10 + u64::from(value);
    }
    (number > 0).then_some(number)
}

/// A unique reply subject prefix.
fn inbox() -> String {
    let number = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let nanos = since_epoch.map_or(0, |elapsed| elapsed.as_nanos() as u64);
    format!("_INBOX.{:x}-{nanos:x}-{number:x}.", std::process::id())
}
