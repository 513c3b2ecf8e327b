//! Performatives: what frames of type AMQP carry (part 2, 2.7).

use super::composite::composites;
use super::delivery_state::DeliveryState;
use super::error::Error;
use super::field::{Field, choices};
use super::malformed::{Malformed, Place, malformed};
use super::symbols::Symbols;
use super::terminus::{AnyTarget, Source};
use super::union::one_of;
use super::value::Map;
use super::wire::Reader;
use crate::amqp10::frame;

choices! {
    /// Which end of a link the sender of the frame is.
    Role is bool {
        /// The one that transfers messages.
        #[default]
        Sender = false,
        /// The one that takes them.
        Receiver = true,
    }
    /// Whether the sender settles deliveries before it knows what becomes of them.
    SenderSettleMode is u8 {
        /// None.
        Unsettled = 0u8,
        /// All.
        Settled = 1u8,
        /// Each as it likes.
        #[default]
        Mixed = 2u8,
    }
    /// When the receiver settles.
    ReceiverSettleMode is u8 {
        /// When it has dealt with a message.
        #[default]
        First = 0u8,
        /// When the sender has settled.
        Second = 1u8,
    }
}

/// Most octets of a delivery tag (2.8.7).
pub const DELIVERY_TAG_BYTES_MAX: usize = 32;

const PERFORMATIVE: Place = Place::whole("performative");
const LONG_TAG: Malformed = malformed!(InvalidField, "has more than 32 octets");

/// What identifies a delivery on its link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeliveryTag<'a>(pub &'a [u8]);

impl<'a> Field<'a> for DeliveryTag<'a> {
    #[inline]
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let tag = <&[u8]>::read(reader)?;
        if tag.len() > DELIVERY_TAG_BYTES_MAX { Err(LONG_TAG) } else { Ok(DeliveryTag(tag)) }
    }
    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
    }
}

composites! {
    /// Opens a connection.
    0x10 "amqp:open:list" "open" Open<'a> {
        "container-id" container_id: &'a str, required;
        "hostname" hostname: &'a str, optional;
        "max-frame-size" max_frame_size: u32, default u32::MAX;
        "channel-max" channel_max: u16, default u16::MAX;
        "idle-time-out" idle_time_out: u32, optional;
        "outgoing-locales" outgoing_locales: Symbols<'a>, default Symbols::NONE;
        "incoming-locales" incoming_locales: Symbols<'a>, default Symbols::NONE;
        "offered-capabilities" offered_capabilities: Symbols<'a>, default Symbols::NONE;
        "desired-capabilities" desired_capabilities: Symbols<'a>, default Symbols::NONE;
        "properties" properties: Map<'a>, optional;
    }
    /// Begins a session.
    0x11 "amqp:begin:list" "begin" Begin<'a> {
        "remote-channel" remote_channel: u16, optional;
        "next-outgoing-id" next_outgoing_id: u32, required;
        "incoming-window" incoming_window: u32, required;
        "outgoing-window" outgoing_window: u32, required;
        "handle-max" handle_max: u32, default u32::MAX;
        "offered-capabilities" offered_capabilities: Symbols<'a>, default Symbols::NONE;
        "desired-capabilities" desired_capabilities: Symbols<'a>, default Symbols::NONE;
        "properties" properties: Map<'a>, optional;
    }
    /// Attaches a link to a session.
    0x12 "amqp:attach:list" "attach" Attach<'a> {
        "name" name: &'a str, required;
        "handle" handle: u32, required;
        "role" role: Role, required;
        "snd-settle-mode" snd_settle_mode: SenderSettleMode, default SenderSettleMode::Mixed;
        "rcv-settle-mode" rcv_settle_mode: ReceiverSettleMode, default ReceiverSettleMode::First;
        "source" source: Source<'a>, optional;
        "target" target: AnyTarget<'a>, optional;
        "unsettled" unsettled: Map<'a>, optional;
        "incomplete-unsettled" incomplete_unsettled: bool, default false;
        "initial-delivery-count" initial_delivery_count: u32, optional;
        "max-message-size" max_message_size: u64, optional;
        "offered-capabilities" offered_capabilities: Symbols<'a>, default Symbols::NONE;
        "desired-capabilities" desired_capabilities: Symbols<'a>, default Symbols::NONE;
        "properties" properties: Map<'a>, optional;
    }
    /// Tells the state of a session and perhaps of a link: windows and credit.
    0x13 "amqp:flow:list" "flow" Flow<'a> {
        "next-incoming-id" next_incoming_id: u32, optional;
        "incoming-window" incoming_window: u32, required;
        "next-outgoing-id" next_outgoing_id: u32, required;
        "outgoing-window" outgoing_window: u32, required;
        "handle" handle: u32, optional;
        "delivery-count" delivery_count: u32, optional;
        "link-credit" link_credit: u32, optional;
        "available" available: u32, optional;
        "drain" drain: bool, default false;
        "echo" echo: bool, default false;
        "properties" properties: Map<'a>, optional;
    }
    /// Transfers a message, or a part of one: it is behind the performative.
    0x14 "amqp:transfer:list" "transfer" Transfer<'a> {
        "handle" handle: u32, required;
        "delivery-id" delivery_id: u32, optional;
        "delivery-tag" delivery_tag: DeliveryTag<'a>, optional;
        "message-format" message_format: u32, optional;
        "settled" settled: bool, optional;
        "more" more: bool, default false;
        "rcv-settle-mode" rcv_settle_mode: ReceiverSettleMode, optional;
        "state" state: DeliveryState<'a>, optional;
        "resume" resume: bool, default false;
        "aborted" aborted: bool, default false;
        "batchable" batchable: bool, default false;
    }
    /// Tells the state of deliveries, and settles them.
    0x15 "amqp:disposition:list" "disposition" Disposition<'a> {
        "role" role: Role, required;
        "first" first: u32, required;
        "last" last: u32, optional;
        "settled" settled: bool, default false;
        "state" state: DeliveryState<'a>, optional;
        "batchable" batchable: bool, default false;
    }
    /// Detaches a link.
    0x16 "amqp:detach:list" "detach" Detach<'a> {
        "handle" handle: u32, required;
        "closed" closed: bool, default false;
        "error" error: Error<'a>, optional;
    }
    /// Ends a session.
    0x17 "amqp:end:list" "end" End<'a> {
        "error" error: Error<'a>, optional;
    }
    /// Closes a connection.
    0x18 "amqp:close:list" "close" Close<'a> {
        "error" error: Error<'a>, optional;
    }
}

one_of! {
    /// A performative. Names of fields are those of the specification; what is not a number is borrowed.
    "performative" Performative<'a> {
        Open(Open<'a>),
        Begin(Begin<'a>),
        Attach(Attach<'a>),
        Flow(Flow<'a>),
        Transfer(Transfer<'a>),
        Disposition(Disposition<'a>),
        Detach(Detach<'a>),
        End(End<'a>),
        Close(Close<'a>),
    }
}

impl<'a> Performative<'a> {
    /// Decodes the body of a frame: the performative, and the payload behind it, which only a transfer has.
    pub fn decode_body(body: &'a [u8]) -> Result<(Performative<'a>, &'a [u8]), Malformed> {
        decode_body(body).map_err(|malformed| malformed.within(&PERFORMATIVE))
    }
    /// Appends a whole frame.
    pub fn write_frame(&self, channel: u16, payload: &[u8], out: &mut Vec<u8>) {
        write_frame(self, channel, payload, out);
    }
}

/// Decodes the body of a frame whose performative is of this type, which [`descriptor_code`] tells: faster
/// than asking for a [`Performative`], which has room for the largest of them.
///
/// [`descriptor_code`]: super::descriptor_code
#[inline]
pub fn decode_body<'a, T: Field<'a>>(body: &'a [u8]) -> Result<(T, &'a [u8]), Malformed> {
    let mut reader = Reader::new(body);
    let performative = T::read(&mut reader)?;
    Ok((performative, reader.rest()))
}

/// Appends a frame with this performative, and for a transfer the payload.
#[inline]
pub fn write_frame<'a>(
    performative: &impl Field<'a>,
    channel: u16,
    payload: &[u8],
    out: &mut Vec<u8>,
) {
    let at = frame::begin(out, frame::AMQP, channel);
    performative.write(out);
    out.extend_from_slice(payload);
    frame::end(out, at);
}
