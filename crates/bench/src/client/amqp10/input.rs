//! What arrives on a connection: deliveries, dispositions, flows, the answers to requests. Independent of
//! sockets.

use super::message::{TRANSFER, begins_message};
use super::session::{End, Session};
use super::transaction::{self, Accepted, Transactions};
use crate::client::receive_buffer::{PARTIAL_BYTES_MAX, ReceiveBuffer};
use crate::client::{Confirm, Error, Head, Receiver};
use angarium_protocol::amqp10::codec::wire::{
    BINARY8, BINARY32, DESCRIBED, FALSE, LIST0, LIST8, LIST32, MAP8, MAP32, NULL, SMALL_UINT,
    SMALL_ULONG, TRUE, UINT, UINT0,
};
use angarium_protocol::amqp10::codec::{
    self, DeliveryState, Disposition, Flow, Limits, Malformed, Performative, Role, SectionKind,
    Sections, Transfer, Value, descriptor_code,
};
use angarium_protocol::amqp10::frame::{self, Frame, FrameError};

/// The largest frame that this client accepts.
pub(super) const FRAME_BYTES_MAX: u32 = PARTIAL_BYTES_MAX as u32;
/// The largest message that is taken, a body and what is around it.
const MESSAGE_BYTES_MAX: usize = (128 << 20) + 64 * 1024;
const LIMITS: Limits = Limits { properties_bytes_max: 64 * 1024 };
const DISPOSITION: u8 = Disposition::INFO.code as u8;

impl From<FrameError> for Error {
    fn from(error: FrameError) -> Error {
        Error::Invalid(format!("an invalid frame: {error}"))
    }
}

impl From<Malformed> for Error {
    fn from(error: Malformed) -> Error {
        Error::Invalid(format!("a malformed frame: {error}"))
    }
}

/// Fields of a header up to the one that says how often its message was delivered.
const HEADER_FIELDS_QUICK: u8 = 4;
/// Stands for no session in [`Input::by_remote`].
const NO_SESSION: usize = usize::MAX;

/// Returns the next whole frame, if there is one.
#[inline]
pub(super) fn next_frame(incoming: &mut ReceiveBuffer) -> Result<Option<Frame<'_>>, FrameError> {
    incoming.take(|bytes| frame::read(bytes, FRAME_BYTES_MAX))
}

/// The sessions of a connection, and what they are in the middle of.
#[derive(Debug, Default)]
pub(super) struct Input {
    /// By our channel.
    pub(super) sessions: Vec<Option<Session>>,
    pub(super) transactions: Transactions,
    /// Frames to send before the next read.
    pub(super) pending: Vec<u8>,
    /// Once the end was asked for, links whose detach is not answered.
    pub(super) ending: Option<usize>,
    /// By the broker's channel, the index of the session.
    by_remote: Vec<usize>,
    /// The message whose frames are arriving, if it has several.
    partial: Partial,
}

/// A message of several frames.
#[derive(Debug, Default)]
struct Partial {
    is_open: bool,
    delivery_id: u32,
    message: Vec<u8>,
}

/// Deliveries to accept, and how many.
#[derive(Debug)]
pub(super) struct Acceptance {
    pub(super) accepted: Accepted,
    pub(super) count: u32,
}

/// The fields of a transfer that a load needs.
#[derive(Debug, PartialEq)]
pub(super) struct Part {
    /// `None` in a frame that continues a message.
    pub(super) delivery_id: Option<u32>,
    pub(super) more: bool,
    pub(super) aborted: bool,
}

impl Input {
    /// Takes the next frame.
    #[inline]
    pub(super) fn frame(
        &mut self,
        frame: &Frame<'_>,
        receiver: &mut impl Receiver,
    ) -> Result<(), Error> {
        match descriptor_code(frame.body) {
            Some(TRANSFER) => self.transfer(frame, receiver),
            Some(DISPOSITION) => {
                let (disposition, _) = codec::decode_body::<Disposition<'_>>(frame.body)?;
                self.disposition(frame.channel, &disposition, receiver)
            }
            _ if frame.body.is_empty() => Ok(()),
            _ => {
                let performative = Performative::decode_body(frame.body)?.0;
                self.answer(frame.channel, &performative)
            }
        }
    }

    /// The session of the broker's channel, by its index.
    #[inline]
    fn session(&self, remote: u16) -> Result<usize, Error> {
        let found = self.by_remote.get(usize::from(remote)).filter(|index| **index != NO_SESSION);
        found.copied().ok_or_else(|| Error::invalid("a frame for a session that was not begun"))
    }

    #[inline]
    fn transfer(&mut self, frame: &Frame<'_>, receiver: &mut impl Receiver) -> Result<(), Error> {
        let (part, payload) = match quick_transfer(frame.body) {
            Some(found) => found,
            None => general_transfer(frame.body)?,
        };
        let index = self.session(frame.channel)?;
        let Some(session) = &mut self.sessions[index] else { return Ok(()) };
        session.received();
        let End::Receiver(end) = &mut session.end else {
            return Err(Error::invalid("a message over a link that only sends"));
        };
        if let Some(delivery_id) = part.delivery_id.filter(|_| !self.partial.is_open) {
            end.begins(delivery_id);
            if !part.more && !part.aborted {
                return deliver(delivery_id, payload, receiver);
            }
            self.partial.delivery_id = delivery_id;
        } else if !self.partial.is_open {
            return Err(Error::invalid("a transfer without a delivery-id"));
        }
        self.partial.take(&part, payload, receiver)
    }

    #[inline]
    fn disposition(
        &mut self,
        channel: u16,
        disposition: &Disposition<'_>,
        receiver: &mut impl Receiver,
    ) -> Result<(), Error> {
        // Those of a sender settle what was settled here before.
        if disposition.role == Role::Sender {
            return Ok(());
        }
        let index = self.session(channel)?;
        let (first, last) = (disposition.first, disposition.last.unwrap_or(disposition.first));
        if index == usize::from(transaction::CHANNEL) {
            return self.coordinated(first, last, disposition.state, receiver);
        }
        let Some(Session { end: End::Sender(sender), .. }) = &mut self.sessions[index] else {
            return Ok(());
        };
        let is_refused = match disposition.state {
            Some(DeliveryState::Received(_)) => return Ok(()),
            None if !disposition.settled => return Ok(()),
            None | Some(DeliveryState::Accepted(_)) => false,
            Some(DeliveryState::TransactionalState(state)) => {
                use codec::Outcome::Accepted;
                !matches!(state.outcome, None | Some(Accepted(_)))
            }
            Some(_) => true,
        };
        if !disposition.settled {
            let settled = Disposition { role: Role::Sender, settled: true, ..*disposition };
            codec::write_frame(&settled, index as u16, &[], &mut self.pending);
        }
        let (first, last) = (sender.tag(first), sender.tag(last));
        if first <= sender.confirmed + 1 {
            sender.confirmed = sender.confirmed.max(last);
            return receiver.confirm(Confirm { tag: last, multiple: true, refused: is_refused });
        }
        for tag in first..=last {
            receiver.confirm(Confirm { tag, multiple: false, refused: is_refused })?;
        }
        Ok(())
    }

    /// Takes an answer of the coordinator.
    fn coordinated(
        &mut self,
        first: u32,
        last: u32,
        state: Option<DeliveryState<'_>>,
        receiver: &mut impl Receiver,
    ) -> Result<(), Error> {
        match state {
            Some(DeliveryState::Declared(declared)) => {
                if declared.txn_id.is_empty() || declared.txn_id.len() > transaction::ID_BYTES_MAX {
                    return Err(Error::invalid("a transaction's id that is empty or too long"));
                }
                self.transactions.declared(declared.txn_id);
            }
            Some(DeliveryState::Rejected(rejected)) => {
                let why = rejected.error.as_ref().map_or(String::new(), told);
                return Err(Error::Closed(format!("a transaction was refused: {why}")));
            }
            _ => self.transactions.accepted(first, last),
        }
        if !self.transactions.is_busy() {
            receiver.committed();
            self.transactions.go_on(&mut self.pending);
        }
        Ok(())
    }

    /// Takes an answer to a request, or what the broker tells of its own accord.
    pub(super) fn answer(
        &mut self,
        channel: u16,
        performative: &Performative<'_>,
    ) -> Result<(), Error> {
        match performative {
            Performative::Begin(begin) => {
                let ours = begin.remote_channel.and_then(|it| self.sessions.get_mut(it as usize));
                let Some(Some(session)) = ours else {
                    return Err(Error::invalid("a session that was not asked for"));
                };
                session.begun(channel, begin);
                let (remote, index) = (usize::from(channel), begin.remote_channel.unwrap_or(0));
                if self.by_remote.len() <= remote {
                    self.by_remote.resize(remote + 1, NO_SESSION);
                }
                self.by_remote[remote] = index.into();
            }
            Performative::Attach(attach) => {
                let index = self.session(channel)?;
                if let Some(Session { end: End::Receiver(receiver), .. }) =
                    &mut self.sessions[index]
                {
                    receiver.attached(attach.initial_delivery_count.unwrap_or(0));
                }
            }
            Performative::Flow(flow) => {
                let index = self.session(channel)?;
                if let Some(session) = &mut self.sessions[index]
                    && session.flow(flow)
                {
                    codec::write_frame(&session.state(), index as u16, &[], &mut self.pending);
                }
            }
            Performative::Detach(detach) => self.detached(channel, detach.error.as_ref())?,
            Performative::End(end) => return Err(closed("the session", end.error.as_ref())),
            Performative::Close(close) => {
                return Err(closed("the connection", close.error.as_ref()));
            }
            _ => {}
        }
        Ok(())
    }

    fn detached(&mut self, channel: u16, error: Option<&codec::Error<'_>>) -> Result<(), Error> {
        let index = self.session(channel)?;
        match (&mut self.ending, error) {
            (Some(left), None) => {
                *left = left.saturating_sub(1);
                self.sessions[index] = None;
                Ok(())
            }
            _ => Err(closed("the link", error)),
        }
    }
}

impl Partial {
    /// Takes a frame of the message.
    fn take(
        &mut self,
        part: &Part,
        payload: &[u8],
        receiver: &mut impl Receiver,
    ) -> Result<(), Error> {
        self.is_open = part.more && !part.aborted;
        if self.message.len() + payload.len() > MESSAGE_BYTES_MAX {
            return Err(Error::invalid("a message that is too long"));
        }
        self.message.extend_from_slice(payload);
        if self.is_open {
            return Ok(());
        }
        if !part.aborted {
            deliver(self.delivery_id, &self.message, receiver)?;
        }
        self.message.clear();
        Ok(())
    }
}

/// Hands a whole message on.
#[inline]
fn deliver(delivery_id: u32, message: &[u8], receiver: &mut impl Receiver) -> Result<(), Error> {
    let Some(body) = quick_body(message) else {
        return deliver_any(delivery_id, message, receiver);
    };
    let size = body.len() as u64;
    receiver.begin(Head { tag: delivery_id.into(), redelivered: false, size });
    if !body.is_empty() {
        receiver.body(body);
    }
    receiver.complete();
    Ok(())
}

/// The body of a message that ends with one section of data and was not delivered before; `None`: it is of
/// another shape.
#[inline]
pub(super) fn quick_body(mut message: &[u8]) -> Option<&[u8]> {
    const HEADER: u8 = SectionKind::Header as u8;
    const BEFORE: u8 = SectionKind::DeliveryAnnotations as u8;
    const LAST: u8 = SectionKind::ApplicationProperties as u8;
    const DATA: u8 = SectionKind::Data as u8;
    loop {
        let [DESCRIBED, SMALL_ULONG, kind, rest @ ..] = message else { return None };
        message = match (kind, rest) {
            (&DATA, [BINARY8, size, body @ ..]) => {
                return (usize::from(*size) == body.len()).then_some(body);
            }
            (&DATA, [BINARY32, a, b, c, d, body @ ..]) => {
                let size = u32::from_be_bytes([*a, *b, *c, *d]);
                return (size as usize == body.len()).then_some(body);
            }
            // The fifth field says how often it was delivered.
            (&HEADER, [LIST8, size, count, ..]) if *count <= HEADER_FIELDS_QUICK => {
                rest.get(2 + usize::from(*size)..)?
            }
            (&HEADER, [LIST0, rest @ ..]) => rest,
            (BEFORE..=LAST, [LIST8 | MAP8, size, rest @ ..]) => rest.get(usize::from(*size)..)?,
            (BEFORE..=LAST, [LIST32 | MAP32, a, b, c, d, rest @ ..]) => {
                rest.get(u32::from_be_bytes([*a, *b, *c, *d]) as usize..)?
            }
            _ => return None,
        };
    }
}

/// Hands any whole message on. Bodies that are no data, as other programs may send, are strings and binaries.
#[inline(never)]
fn deliver_any(
    delivery_id: u32,
    message: &[u8],
    receiver: &mut impl Receiver,
) -> Result<(), Error> {
    let sections = Sections::walk(message, LIMITS)?;
    let redelivered = sections.header.is_some() && sections.header()?.delivery_count > 0;
    let value = match sections.amqp_value()? {
        Some(Value::String(text)) => text.as_bytes(),
        Some(Value::Binary(octets)) => octets,
        _ => &[],
    };
    let size = sections.data().map(<[u8]>::len).sum::<usize>() + value.len();
    receiver.begin(Head { tag: delivery_id.into(), redelivered, size: size as u64 });
    sections.data().chain(Some(value)).filter(|it| !it.is_empty()).for_each(|it| receiver.body(it));
    receiver.complete();
    Ok(())
}

/// Reads a transfer of the shape that brokers write; `None`: it has another one.
#[inline]
pub(super) fn quick_transfer(body: &[u8]) -> Option<(Part, &[u8])> {
    let [DESCRIBED, SMALL_ULONG, TRANSFER, LIST8, size, _, rest @ ..] = body else { return None };
    let (fields, payload) = rest.split_at_checked(usize::from(*size).checked_sub(1)?)?;
    let fields = match fields {
        [UINT0, rest @ ..] | [SMALL_UINT, _, rest @ ..] => rest,
        _ => return None,
    };
    let (delivery_id, fields) = match fields {
        [UINT, a, b, c, d, rest @ ..] => (u32::from_be_bytes([*a, *b, *c, *d]), rest),
        [SMALL_UINT, id, rest @ ..] => (u32::from(*id), rest),
        [UINT0, rest @ ..] => (0, rest),
        _ => return None,
    };
    let [BINARY8, tag_bytes, fields @ ..] = fields else { return None };
    let fields = match fields.get(usize::from(*tag_bytes)..)? {
        [UINT0, rest @ ..] | [SMALL_UINT, _, rest @ ..] | [NULL, rest @ ..] => rest,
        [] => &[],
        _ => return None,
    };
    // Whether it is settled is known from the attach; then there is whether more follows, and nothing else.
    let more = match fields {
        [] | [TRUE | FALSE | NULL] | [TRUE | FALSE | NULL, FALSE | NULL] => false,
        [TRUE | FALSE | NULL, TRUE] => true,
        _ => return None,
    };
    Some((Part { delivery_id: Some(delivery_id), more, aborted: false }, payload))
}

/// Reads any transfer.
#[inline(never)]
pub(super) fn general_transfer(body: &[u8]) -> Result<(Part, &[u8]), Error> {
    let (transfer, payload) = codec::decode_body::<Transfer<'_>>(body)?;
    let Transfer { delivery_id, more, aborted, .. } = transfer;
    Ok((Part { delivery_id, more, aborted }, payload))
}

/// Turns what the broker closed into an error.
pub(super) fn closed(what: &str, error: Option<&codec::Error<'_>>) -> Error {
    Error::Closed(match error {
        Some(error) => format!("{what}: {}", told(error)),
        None => format!("{what}, without a reason"),
    })
}

/// An error in the broker's words.
fn told(error: &codec::Error<'_>) -> String {
    match error.description {
        Some(description) => format!("{}: {description}", error.condition.0),
        None => error.condition.0.to_owned(),
    }
}

/// What links do with what arrived.
impl Input {
    /// Appends the state of a session, with the credit of its receiver topped up.
    pub(super) fn top_up(&mut self, index: usize, out: &mut Vec<u8>) {
        if let Some(Some(session)) = self.sessions.get_mut(index) {
            codec::write_frame(&session.state(), index as u16, &[], out);
        }
    }

    /// The credit for one answer on a session for requests, after this many answers.
    pub(super) fn answer_credit(&self, index: usize, answers: u32) -> Flow<'static> {
        let session = self.sessions.get(index).and_then(Option::as_ref);
        session.map_or_else(Flow::default, |session| session.answer_credit(answers))
    }

    /// Tops up the credit of receivers that have used half of it.
    #[inline]
    pub(super) fn top_up_all(&mut self) {
        for (index, session) in self.sessions.iter_mut().enumerate() {
            if let Some(session) = session
                && matches!(&session.end, End::Receiver(receiver) if receiver.is_due())
            {
                codec::write_frame(&session.state(), index as u16, &[], &mut self.pending);
            }
        }
    }

    /// The receiver of the connection; loads have one at most.
    fn receiver(&mut self) -> Option<(usize, &mut super::session::Receiver)> {
        self.sessions.iter_mut().enumerate().find_map(|(index, session)| match session {
            Some(Session { end: End::Receiver(receiver), .. }) => Some((index, receiver)),
            _ => None,
        })
    }

    /// Notes that a delivery is settled; with `multiple`, all up to it.
    #[inline]
    pub(super) fn accept(&mut self, last: u32, multiple: bool) -> Option<Acceptance> {
        let (index, receiver) = self.receiver()?;
        let first = match receiver.unsettled_from {
            Some(first) if multiple => first,
            _ => last,
        };
        receiver.unsettled_from = Some(last.wrapping_add(1));
        let accepted = Accepted { channel: index as u16, first, last };
        Some(Acceptance { accepted, count: last.wrapping_sub(first).wrapping_add(1) })
    }

    /// Counts settled deliveries, and tops up the credit if half of it is used up.
    #[inline]
    pub(super) fn settled(&mut self, index: usize, count: u32, out: &mut Vec<u8>) {
        let Some(Some(Session { end: End::Receiver(receiver), .. })) = self.sessions.get_mut(index)
        else {
            return;
        };
        receiver.settle(count);
        if receiver.is_due() {
            self.top_up(index, out);
        }
    }

    /// Octets of `bytes`, our frames, that the broker takes now; counts the messages among them.
    #[inline]
    pub(super) fn admit(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while let Some(&[a, b, c, d, _, _, high, low]) = bytes[at..].first_chunk() {
            let size = u32::from_be_bytes([a, b, c, d]) as usize;
            if let Some(is_first) = begins_message(&bytes[at..]) {
                let channel = usize::from(u16::from_be_bytes([high, low]));
                if let Some(Some(session)) = self.sessions.get_mut(channel)
                    && !session.admit(is_first)
                {
                    return at;
                }
            }
            at += size;
        }
        bytes.len()
    }
}
