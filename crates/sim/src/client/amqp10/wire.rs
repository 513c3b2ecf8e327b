//! The client's side of an AMQP 1.0 connection: frames in and out, by the protocol crate's codec. Channels
//! and handles are the same at both ends.

use crate::client::{PASSWORD, USER};
use crate::history::MessageId;
use crate::payload;
use angarium_protocol::amqp10::codec::{
    AnyTarget, Attach, Begin, Close, Coordinator, DeliveryState, DeliveryTag, Detach, Disposition,
    DistributionMode, Error, Field, Flow, Header, Limits, Open, Outcome, Performative, Released,
    Role, SaslCode, SaslInit, SaslPerformative, SectionKind, Sections, SenderSettleMode, Source,
    Symbol, Target, TransactionalState, Transfer, put_section, write_frame,
};
use angarium_protocol::amqp10::frame::{self, PROTOCOL_HEADER_BYTES, ProtocolHeader};
use std::collections::BTreeMap;

/// The largest frame that is accepted.
const FRAME_BYTES_MAX: u32 = 4_096;
const WINDOW: u32 = i32::MAX as u32;
const LIMITS: Limits = Limits { properties_bytes_max: 64 << 10 };
/// The node shuts down, in the words of AMQP 0-9-1.
pub(super) const FORCED: &str = "amqp:connection:forced";

/// A link: its session and its handle in that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct At {
    pub(super) channel: u16,
    pub(super) handle: u32,
}

/// What arrived.
#[derive(Clone, Debug)]
pub(super) enum Incoming {
    /// The login was accepted.
    Authenticated,
    /// A link is there.
    Attached,
    /// What the broker says of a link's credit.
    Flow { at: At, delivery_count: u32, credit: u32, drain: bool },
    /// A whole message.
    Message(Message),
    /// What became of the client's deliveries.
    Told { channel: u16, first: u32, last: u32, told: Told },
    /// A link or a session is gone, or the connection is to be.
    Gone { what: &'static str, condition: String, text: String },
}

/// What became of a delivery of the client.
#[derive(Clone, Debug)]
pub(super) enum Told {
    /// A transaction is declared; its id.
    Declared(Vec<u8>),
    Accepted,
    Refused(String),
}

/// A message with all its frames.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub(super) delivery_id: u32,
    /// The message that its body names, if the body is intact.
    pub(super) id: Option<MessageId>,
    /// It was not delivered before, as far as the broker knows.
    pub(super) is_first: bool,
    /// How many of its deliveries failed.
    pub(super) failures: u32,
    pub(super) bytes: u64,
    /// The broker does not wait for its outcome.
    pub(super) is_settled: bool,
}

/// How a message is published.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Publishing<'a> {
    pub(super) persistent: bool,
    /// The transaction that it is part of.
    pub(super) txn_id: Option<&'a Vec<u8>>,
    /// In several frames.
    pub(super) is_split: bool,
    /// Given up behind the first of them.
    pub(super) is_aborted: bool,
}

/// What comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    SaslHeader,
    Sasl,
    Header,
    Frames,
}

/// A message whose frames have not all arrived.
#[derive(Debug, Default)]
struct Partial {
    delivery_id: u32,
    is_settled: bool,
    message: Vec<u8>,
}

/// One session.
#[derive(Debug, Default)]
struct Session {
    /// The transfer-id that comes next.
    next_incoming: u32,
    /// The delivery-id and the transfer-id of the client's next message.
    next_delivery: u32,
    next_outgoing: u32,
    /// The transfer-id up to which the broker has room.
    window_end: u32,
    /// By handle: deliveries of the client, and up to which the broker has given credit.
    senders: BTreeMap<u32, Sender>,
    partials: BTreeMap<u32, Partial>,
}

/// A link on which the client sends.
#[derive(Clone, Copy, Debug, Default)]
struct Sender {
    delivery_count: u32,
    limit: u32,
}

/// One connection's bytes.
#[derive(Debug, Default)]
pub(super) struct Wire {
    stage: Stage,
    input: Vec<u8>,
    pub(super) output: Vec<u8>,
    /// By channel.
    sessions: BTreeMap<u16, Session>,
}

impl Wire {
    /// Begins a connection.
    pub(super) fn greet(&mut self) {
        self.output.extend_from_slice(&ProtocolHeader::Sasl.bytes());
        let response = format!("\0{USER}\0{PASSWORD}");
        let init = SaslInit {
            mechanism: Symbol("PLAIN"),
            initial_response: Some(response.as_bytes()),
            hostname: None,
        };
        SaslPerformative::SaslInit(init).write_frame(&mut self.output);
    }

    /// Opens the connection. Sessions and links may be asked for without waiting for the answer.
    pub(super) fn open(&mut self, container_id: &str) {
        self.output.extend_from_slice(&ProtocolHeader::Amqp.bytes());
        self.send(0, &Open { container_id, max_frame_size: FRAME_BYTES_MAX, ..Open::default() });
    }

    pub(super) fn begin(&mut self, channel: u16) {
        self.sessions.insert(channel, Session::default());
        self.send(
            channel,
            &Begin {
                incoming_window: WINDOW,
                outgoing_window: WINDOW,
                handle_max: 255,
                ..Begin::default()
            },
        );
    }

    /// Asks for a link from a queue. What a lost connection leaves unsettled is released.
    pub(super) fn attach_receiver(&mut self, at: At, name: &str, queue: &str) {
        self.attach_source(
            at,
            name,
            Source {
                address: Some(&format!("/queues/{queue}")),
                default_outcome: Some(Outcome::Released(Released {})),
                ..Source::default()
            },
            SenderSettleMode::Mixed,
        );
    }

    /// Asks for a link that browses a queue.
    pub(super) fn attach_browser(
        &mut self,
        at: At,
        queue: &str,
        mode: SenderSettleMode,
        is_copy: bool,
    ) {
        self.attach_source(
            at,
            &format!("browser.{}", at.handle),
            Source {
                address: Some(&format!("/queues/{queue}")),
                distribution_mode: is_copy.then_some(DistributionMode::Copy),
                ..Source::default()
            },
            mode,
        );
    }

    fn attach_source(&mut self, at: At, name: &str, source: Source<'_>, mode: SenderSettleMode) {
        self.send(
            at.channel,
            &Attach {
                name,
                handle: at.handle,
                role: Role::Receiver,
                snd_settle_mode: mode,
                source: Some(source),
                target: Some(AnyTarget::Target(Target::default())),
                ..Attach::default()
            },
        );
    }

    /// Asks for a link to a queue.
    pub(super) fn attach_sender(&mut self, at: At, queue: &str) {
        let address = format!("/queues/{queue}");
        let target = Target { address: Some(&address), ..Target::default() };
        self.attach_target(at, AnyTarget::Target(target));
    }

    /// Asks for a link to the coordinator of transactions.
    pub(super) fn attach_coordinator(&mut self, at: At) {
        self.attach_target(at, AnyTarget::Coordinator(Coordinator::default()));
    }

    fn attach_target(&mut self, at: At, target: AnyTarget<'_>) {
        if let Some(session) = self.sessions.get_mut(&at.channel) {
            session.senders.insert(at.handle, Sender::default());
        }
        self.send(
            at.channel,
            &Attach {
                name: &format!("{}.{}", at.channel, at.handle),
                handle: at.handle,
                role: Role::Sender,
                source: Some(Source::default()),
                target: Some(target),
                initial_delivery_count: Some(0),
                ..Attach::default()
            },
        );
    }

    /// Detaches a link for good.
    pub(super) fn detach(&mut self, at: At) {
        self.send(at.channel, &Detach { handle: at.handle, closed: true, error: None });
    }

    /// Allows deliveries beyond those that `delivery_count` counts.
    pub(super) fn flow(&mut self, at: At, delivery_count: u32, credit: u32, drain: bool) {
        let Some(session) = self.sessions.get(&at.channel) else { return };
        let flow = Flow {
            next_incoming_id: Some(session.next_incoming),
            incoming_window: WINDOW,
            next_outgoing_id: session.next_outgoing,
            outgoing_window: WINDOW,
            handle: Some(at.handle),
            delivery_count: Some(delivery_count),
            link_credit: Some(credit),
            drain,
            ..Flow::default()
        };
        self.send(at.channel, &flow);
    }

    /// Settles a range of deliveries.
    pub(super) fn settle(&mut self, channel: u16, first: u32, last: u32, state: DeliveryState<'_>) {
        let (role, last, state) = (Role::Receiver, Some(last), Some(state));
        self.send(
            channel,
            &Disposition { role, first, last, settled: true, state, batchable: false },
        );
    }

    /// Whether the broker takes that many frames on a link.
    pub(super) fn has_room(&self, at: At, frames: u32) -> bool {
        let Some(session) = self.sessions.get(&at.channel) else { return false };
        let Some(sender) = session.senders.get(&at.handle) else { return false };
        let has_credit = sender.limit.wrapping_sub(sender.delivery_count).cast_signed() >= 2;
        let window = session.window_end.wrapping_sub(session.next_outgoing).cast_signed();
        has_credit && window >= frames.cast_signed()
    }

    /// Sends a request to the coordinator if it has room; returns its delivery-id.
    pub(super) fn coordinate<'v>(&mut self, at: At, request: &impl Field<'v>) -> Option<u32> {
        if !self.has_room(at, 1) {
            return None;
        }
        let mut message = Vec::new();
        put_section(&mut message, SectionKind::Value, request);
        Some(self.transfer(at, &[&message], None, false))
    }

    /// Publishes a message; returns its delivery-id.
    pub(super) fn publish(&mut self, at: At, body: &[u8], how: &Publishing<'_>) -> u32 {
        let mut message = Vec::new();
        Header { durable: how.persistent, ..Header::default() }.write(&mut message);
        put_section(&mut message, SectionKind::Data, &body);
        let (first, rest) = message.split_at(message.len() / 3);
        let txn_id = how.txn_id.map(Vec::as_slice);
        match how.is_split {
            true => self.transfer(at, &[first, rest], txn_id, how.is_aborted),
            false => self.transfer(at, &[&message], txn_id, false),
        }
    }

    fn transfer(
        &mut self,
        at: At,
        parts: &[&[u8]],
        txn_id: Option<&[u8]>,
        is_aborted: bool,
    ) -> u32 {
        let Some(session) = self.sessions.get_mut(&at.channel) else { return 0 };
        let delivery_id = session.next_delivery;
        session.next_delivery = delivery_id.wrapping_add(1);
        session.next_outgoing = session.next_outgoing.wrapping_add(parts.len() as u32);
        if let Some(sender) = session.senders.get_mut(&at.handle) {
            sender.delivery_count = sender.delivery_count.wrapping_add(1);
        }
        let within = |txn_id| {
            DeliveryState::TransactionalState(TransactionalState { txn_id, outcome: None })
        };
        for (number, part) in parts.iter().enumerate() {
            let (is_first, is_last) = (number == 0, number + 1 == parts.len());
            let is_end = is_last && is_aborted;
            let tag = delivery_id.to_be_bytes();
            let transfer = Transfer {
                handle: at.handle,
                delivery_id: is_first.then_some(delivery_id),
                delivery_tag: is_first.then_some(DeliveryTag(&tag)),
                message_format: is_first.then_some(0),
                state: txn_id.filter(|_| is_first).map(within),
                more: !is_last,
                aborted: is_end,
                ..Transfer::default()
            };
            let payload = if is_end { &[] } else { *part };
            write_frame(&transfer, at.channel, payload, &mut self.output);
        }
        delivery_id
    }

    pub(super) fn close(&mut self) {
        self.send(0, &Close::default());
    }

    fn send<'a>(&mut self, channel: u16, performative: &impl Field<'a>) {
        write_frame(performative, channel, &[], &mut self.output);
    }

    /// Takes bytes; returns what they complete. Fails if the broker breaks the protocol.
    pub(super) fn received(&mut self, bytes: &[u8]) -> Result<Vec<Incoming>, String> {
        self.input.extend_from_slice(bytes);
        let input = std::mem::take(&mut self.input);
        let (mut rest, mut incoming) = (&input[..], Vec::new());
        loop {
            match self.stage {
                Stage::SaslHeader | Stage::Header => {
                    let Some((header, behind)) = rest.split_first_chunk::<PROTOCOL_HEADER_BYTES>()
                    else {
                        break;
                    };
                    let (expected, next) = match self.stage {
                        Stage::SaslHeader => (ProtocolHeader::Sasl, Stage::Sasl),
                        _ => (ProtocolHeader::Amqp, Stage::Frames),
                    };
                    if *header != expected.bytes() {
                        return Err(format!("the broker answers with the header {header:?}"));
                    }
                    (rest, self.stage) = (behind, next);
                }
                Stage::Sasl | Stage::Frames => {
                    let found = frame::read(rest, FRAME_BYTES_MAX);
                    let Some((frame, used)) = found.map_err(|error| error.to_string())? else {
                        break;
                    };
                    rest = &rest[used..];
                    let what = match self.stage {
                        Stage::Sasl => self.sasl(frame.body)?,
                        _ => self.frame(frame.channel, frame.body)?,
                    };
                    incoming.extend(what);
                }
            }
        }
        self.input = rest.to_vec();
        Ok(incoming)
    }

    fn sasl(&mut self, body: &[u8]) -> Result<Option<Incoming>, String> {
        match SaslPerformative::decode_body(body).map_err(|error| error.to_string())? {
            SaslPerformative::SaslOutcome(outcome) if outcome.code == SaslCode::Ok => {
                self.stage = Stage::Header;
                Ok(Some(Incoming::Authenticated))
            }
            SaslPerformative::SaslOutcome(outcome) => Err(format!("SASL: {:?}", outcome.code)),
            _ => Ok(None),
        }
    }

    fn frame(&mut self, channel: u16, body: &[u8]) -> Result<Option<Incoming>, String> {
        if body.is_empty() {
            return Ok(None);
        }
        let (performative, payload) =
            Performative::decode_body(body).map_err(|error| error.to_string())?;
        Ok(match performative {
            Performative::Begin(begin) => {
                let session = self.session(channel)?;
                session.next_incoming = begin.next_outgoing_id;
                session.window_end = begin.incoming_window;
                None
            }
            // One without its terminus is refused; a detach follows.
            Performative::Attach(attach) => {
                let is_there = match attach.role {
                    Role::Sender => attach.source.is_some(),
                    Role::Receiver => attach.target.is_some(),
                };
                is_there.then_some(Incoming::Attached)
            }
            Performative::Flow(flow) => self.flow_came(channel, &flow)?,
            Performative::Transfer(transfer) => self.transfer_came(channel, &transfer, payload)?,
            Performative::Disposition(disposition) if disposition.role == Role::Receiver => {
                let (first, last) = (disposition.first, disposition.last);
                let told = told(disposition.state);
                Some(Incoming::Told { channel, first, last: last.unwrap_or(first), told })
            }
            Performative::Detach(detach) => Some(gone("link", detach.error)),
            Performative::End(end) => Some(gone("session", end.error)),
            Performative::Close(close) => Some(gone("connection", close.error)),
            _ => None,
        })
    }

    fn session(&mut self, channel: u16) -> Result<&mut Session, String> {
        let session = self.sessions.get_mut(&channel);
        session.ok_or_else(|| format!("a frame on channel {channel}, which has no session"))
    }

    fn flow_came(&mut self, channel: u16, flow: &Flow<'_>) -> Result<Option<Incoming>, String> {
        let session = self.session(channel)?;
        let next = flow.next_incoming_id.unwrap_or(0);
        session.window_end = next.wrapping_add(flow.incoming_window);
        let Some(handle) = flow.handle else { return Ok(None) };
        let delivery_count = flow.delivery_count.unwrap_or(0);
        let credit = flow.link_credit.unwrap_or(0);
        if let Some(sender) = session.senders.get_mut(&handle) {
            sender.limit = delivery_count.wrapping_add(credit);
            return Ok(None);
        }
        let at = At { channel, handle };
        Ok(Some(Incoming::Flow { at, delivery_count, credit, drain: flow.drain }))
    }

    fn transfer_came(
        &mut self,
        channel: u16,
        transfer: &Transfer<'_>,
        payload: &[u8],
    ) -> Result<Option<Incoming>, String> {
        let session = self.session(channel)?;
        session.next_incoming = session.next_incoming.wrapping_add(1);
        let mut partial = match session.partials.remove(&transfer.handle) {
            Some(partial) => partial,
            None => Partial {
                delivery_id: transfer.delivery_id.ok_or("a transfer without a delivery-id")?,
                ..Partial::default()
            },
        };
        partial.message.extend_from_slice(payload);
        partial.is_settled |= transfer.settled == Some(true);
        if transfer.aborted {
            return Ok(None);
        }
        if transfer.more {
            session.partials.insert(transfer.handle, partial);
            return Ok(None);
        }
        let Partial { delivery_id, is_settled, message } = partial;
        let sections = Sections::walk(&message, LIMITS).map_err(|error| error.to_string())?;
        let header = match sections.header {
            Some(_) => sections.header().map_err(|error| error.to_string())?,
            None => Header::default(),
        };
        let body: Vec<u8> = sections.data().flatten().copied().collect();
        Ok(Some(Incoming::Message(Message {
            delivery_id,
            id: payload::read(&body),
            is_first: header.first_acquirer,
            failures: header.delivery_count,
            bytes: body.len() as u64,
            is_settled,
        })))
    }
}

fn told(state: Option<DeliveryState<'_>>) -> Told {
    match state {
        Some(DeliveryState::Declared(declared)) => Told::Declared(declared.txn_id.to_vec()),
        Some(DeliveryState::TransactionalState(within)) => told(within.outcome.map(Into::into)),
        Some(DeliveryState::Accepted(_)) => Told::Accepted,
        other => Told::Refused(format!("{other:?}")),
    }
}

fn gone(what: &'static str, error: Option<Error<'_>>) -> Incoming {
    let condition = error.as_ref().map_or("", |error| error.condition.0).to_owned();
    let text = error.and_then(|error| error.description).unwrap_or_default().to_owned();
    Incoming::Gone { what, condition, text }
}
