//! The client's side of an AMQP 1.0 connection with one link that receives: frames in and out, by the
//! protocol crate's codec.

use crate::client::{PASSWORD, USER};
use crate::history::MessageId;
use crate::payload;
use angarium_protocol::amqp10::codec::{AnyTarget, DeliveryState};
use angarium_protocol::amqp10::codec::{
    Attach, Begin, Close, Disposition, Error, Flow, Limits, Open, Outcome, Performative, RELEASED,
    Released, Role, SaslCode, SaslInit, SaslPerformative, Sections, Source, Symbol, Target,
    Transfer, write_frame,
};
use angarium_protocol::amqp10::frame::{self, PROTOCOL_HEADER_BYTES, ProtocolHeader};

/// The largest frame that is accepted.
const FRAME_BYTES_MAX: u32 = 4_096;
const WINDOW: u32 = i32::MAX as u32;
const LIMITS: Limits = Limits { properties_bytes_max: 64 << 10 };
/// The node shuts down, in the words of AMQP 0-9-1.
pub(super) const FORCED: &str = "amqp:connection:forced";

/// What arrived.
#[derive(Clone, Debug)]
pub(super) enum Incoming {
    /// The login was accepted.
    Authenticated,
    /// The link is there.
    Attached,
    /// What the broker says of the link's credit.
    Flow { delivery_count: u32, credit: u32, drain: bool },
    /// A whole message.
    Message(Message),
    /// The link or the session is gone, or the connection is to be.
    Gone { what: &'static str, condition: String, text: String },
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

/// One connection's bytes.
#[derive(Debug, Default)]
pub(super) struct Wire {
    stage: Stage,
    input: Vec<u8>,
    pub(super) output: Vec<u8>,
    /// The transfer-id that comes next.
    next_incoming: u32,
    /// A message whose frames have not all arrived.
    partial: Option<(u32, Vec<u8>)>,
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

    /// Opens the connection, and asks for a link from a queue, all at once. What a lost connection leaves
    /// unsettled is released.
    pub(super) fn attach(&mut self, container_id: &str, queue: &str) {
        let address = format!("/queues/{queue}");
        self.output.extend_from_slice(&ProtocolHeader::Amqp.bytes());
        self.send(&Open { container_id, max_frame_size: FRAME_BYTES_MAX, ..Open::default() });
        self.send(&Begin {
            incoming_window: WINDOW,
            outgoing_window: WINDOW,
            handle_max: 0,
            ..Begin::default()
        });
        self.send(&Attach {
            name: "taker",
            role: Role::Receiver,
            source: Some(Source {
                address: Some(&address),
                default_outcome: Some(Outcome::Released(Released {})),
                ..Source::default()
            }),
            target: Some(AnyTarget::Target(Target::default())),
            ..Attach::default()
        });
    }

    /// Allows deliveries beyond those that `delivery_count` counts.
    pub(super) fn flow(&mut self, delivery_count: u32, credit: u32, drain: bool) {
        self.send(&Flow {
            next_incoming_id: Some(self.next_incoming),
            incoming_window: WINDOW,
            outgoing_window: WINDOW,
            handle: Some(0),
            delivery_count: Some(delivery_count),
            link_credit: Some(credit),
            drain,
            ..Flow::default()
        });
    }

    /// Settles a range of deliveries.
    pub(super) fn settle(&mut self, first: u32, last: u32, state: DeliveryState<'_>) {
        let (role, last, state) = (Role::Receiver, Some(last), Some(state));
        self.send(&Disposition { role, first, last, settled: true, state, batchable: false });
    }

    pub(super) fn close(&mut self) {
        self.send(&Close::default());
    }

    fn send<'a>(&mut self, performative: &impl angarium_protocol::amqp10::codec::Field<'a>) {
        write_frame(performative, 0, &[], &mut self.output);
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
                        _ => self.frame(frame.body)?,
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

    fn frame(&mut self, body: &[u8]) -> Result<Option<Incoming>, String> {
        if body.is_empty() {
            return Ok(None);
        }
        let (performative, payload) =
            Performative::decode_body(body).map_err(|error| error.to_string())?;
        Ok(match performative {
            Performative::Begin(begin) => {
                self.next_incoming = begin.next_outgoing_id;
                None
            }
            Performative::Attach(attach) => attach.source.map(|_| Incoming::Attached),
            Performative::Flow(flow) if flow.handle.is_some() => Some(Incoming::Flow {
                delivery_count: flow.delivery_count.unwrap_or(0),
                credit: flow.link_credit.unwrap_or(0),
                drain: flow.drain,
            }),
            Performative::Transfer(transfer) => self.transfer(&transfer, payload)?,
            Performative::Detach(detach) => Some(gone("link", detach.error)),
            Performative::End(end) => Some(gone("session", end.error)),
            Performative::Close(close) => Some(gone("connection", close.error)),
            _ => None,
        })
    }

    fn transfer(
        &mut self,
        transfer: &Transfer<'_>,
        payload: &[u8],
    ) -> Result<Option<Incoming>, String> {
        self.next_incoming = self.next_incoming.wrapping_add(1);
        let (delivery_id, mut message) = match self.partial.take() {
            Some(partial) => partial,
            None => {
                let id = transfer.delivery_id.ok_or("a transfer without a delivery-id")?;
                (id, Vec::new())
            }
        };
        message.extend_from_slice(payload);
        if transfer.aborted {
            return Ok(None);
        }
        if transfer.more {
            self.partial = Some((delivery_id, message));
            return Ok(None);
        }
        let sections = Sections::walk(&message, LIMITS).map_err(|error| error.to_string())?;
        let header = match sections.header {
            Some(_) => sections.header().map_err(|error| error.to_string())?,
            None => Default::default(),
        };
        let body: Vec<u8> = sections.data().flatten().copied().collect();
        Ok(Some(Incoming::Message(Message {
            delivery_id,
            id: payload::read(&body),
            is_first: header.first_acquirer,
            failures: header.delivery_count,
            bytes: body.len() as u64,
        })))
    }
}

fn gone(what: &'static str, error: Option<Error<'_>>) -> Incoming {
    let condition = error.as_ref().map_or("", |error| error.condition.0).to_owned();
    let text = error.and_then(|error| error.description).unwrap_or_default().to_owned();
    Incoming::Gone { what, condition, text }
}

/// The state that releases.
pub(super) fn released() -> DeliveryState<'static> {
    RELEASED
}
