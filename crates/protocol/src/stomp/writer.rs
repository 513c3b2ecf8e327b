//! What the engine sends to a connection, written as frames straight into its output.

use super::codec::FrameWriter;
use super::destination;
use super::fault::{self, Fault};
use super::frame::{Version, put_value};
use super::shown::put_headers;
use super::unconfirmed::{Ring, Waiting};
use crate::output::{Output, ProtocolWriter};
use crate::shared_body::SharedBody;
use crate::translation::with_payload;
use angarium_engine::{
    CancelReason, ChannelId, Confirm, Delivery, DirectMessage, MessageView, RefusalKind, Subscribe,
};
use std::borrow::Cow;
use std::io::Write as _;

/// What STOMP needs to write to a connection.
#[derive(Debug, Default)]
pub struct Writer {
    pub(super) version: Version,
    /// What all message ids of the connection begin with.
    pub(super) session: Box<str>,
    /// By the number of the channel, from 1.
    shown: Vec<Option<Box<Shown>>>,
    pub(super) unconfirmed: Ring,
    /// It has had subscriptions whose messages wait in no queue.
    pub(super) has_direct: bool,
    /// The receipt of DISCONNECT, until all publishes are confirmed.
    farewell: Option<Box<str>>,
    /// The handler reads on once there is room for more publishes that wait.
    pub(super) awaits_room: bool,
    /// An ERROR frame was written: nothing comes behind it.
    pub(super) failed: Option<Box<str>>,
}

/// A subscription, as its messages show it.
#[derive(Debug)]
pub(super) struct Shown {
    /// MESSAGE, and the subscription's id if it has one.
    pub(super) head: Vec<u8>,
    /// What its message ids have before the tag.
    pub(super) id: Vec<u8>,
    pub(super) destination: ShownDestination,
    /// Its messages are to be acknowledged.
    pub(super) is_acknowledged: bool,
    /// The last tag that was delivered.
    pub(super) last_tag: u64,
}

/// The destination in a subscription's messages.
#[derive(Debug)]
pub(super) enum ShownDestination {
    /// Where the message was published.
    Origin,
    /// This, as it was asked for.
    Asked(Box<str>),
    /// The subject behind these words.
    Subject(&'static str),
}

impl Writer {
    /// Keeps how messages of a subscription are shown.
    pub(super) fn show(&mut self, channel: u16, shown: Shown) {
        let index = usize::from(channel) - 1;
        if self.shown.len() <= index {
            self.shown.resize_with(index + 1, || None);
        }
        self.shown[index] = Some(shown.into());
    }

    /// A subscription has ended.
    pub(super) fn forget(&mut self, channel: u16) {
        self.shown[usize::from(channel) - 1] = None;
    }

    /// The last tag that was delivered to a subscription.
    pub(super) fn last_tag(&self, channel: u16) -> u64 {
        let shown = self.shown.get(usize::from(channel) - 1);
        shown.and_then(|shown| shown.as_ref()).map_or(0, |shown| shown.last_tag)
    }

    /// Writes RECEIPT.
    pub(super) fn put_receipt(&self, out: &mut Output, receipt: &str) {
        let frame = FrameWriter::new(&mut out.bytes, "RECEIPT", self.version);
        frame.header("receipt-id", receipt).end();
    }

    /// Whether the receipt of DISCONNECT has still to come.
    pub(super) fn owes_farewell(&self) -> bool {
        self.farewell.is_some() && self.failed.is_none()
    }

    /// Writes the receipt of DISCONNECT once all publishes are confirmed.
    pub(super) fn farewell(&mut self, out: &mut Output, receipt: &str) {
        if self.unconfirmed.is_empty() {
            self.put_receipt(out, receipt);
        } else {
            self.farewell = Some(receipt.into());
        }
    }

    /// Writes ERROR, behind which nothing comes; the handler ends the connection.
    pub(super) fn fail(&mut self, out: &mut Output, fault: &Fault, receipt: Option<&str>) {
        if self.failed.is_some() {
            return;
        }
        put_error(&mut out.bytes, self.version, fault, receipt);
        out.calls_handler = true;
        self.failed = Some(format!("{}: {}", fault.message, fault.text).into());
    }

    fn message(
        &mut self,
        out: &mut Output,
        channel: ChannelId,
        tag: u64,
        redelivered: bool,
        message: &MessageView<'_>,
    ) {
        let index = usize::from(channel.number).wrapping_sub(1);
        let Some(Some(shown)) = self.shown.get_mut(index) else { return };
        shown.last_tag = tag;
        let mut body = Cow::Borrowed(message.body);
        let content = with_payload(message, &mut body);
        let bytes = &mut out.bytes;
        if content.shared.is_none() {
            bytes.reserve(256 + message.properties.len() + content.body.len());
        }
        bytes.extend_from_slice(&shown.head);
        shown.put_destination(bytes, message, self.version);
        bytes.extend_from_slice(b"message-id:");
        bytes.extend_from_slice(&shown.id);
        put_number(bytes, tag);
        if shown.is_acknowledged && self.version == Version::V1_2 {
            bytes.extend_from_slice(b"\nack:");
            bytes.extend_from_slice(&shown.id);
            put_number(bytes, tag);
        }
        bytes.extend_from_slice(match redelivered {
            true => b"\nredelivered:true\n",
            false => b"\nredelivered:false\n",
        });
        bytes.extend_from_slice(b"content-length:");
        put_number(bytes, content.body.len() as u64);
        bytes.push(b'\n');
        put_headers(bytes, message, self.version);
        bytes.push(b'\n');
        match content.shared {
            Some(body) => out.shared_body = Some(SharedBody::plain(body, b"\0").into()),
            None => {
                bytes.extend_from_slice(content.body);
                bytes.push(0);
            }
        }
    }
}

impl Shown {
    fn put_destination(&self, out: &mut Vec<u8>, message: &MessageView<'_>, version: Version) {
        out.extend_from_slice(b"destination:");
        let (exchange, key) = (message.exchange, message.routing_key);
        match &self.destination {
            ShownDestination::Asked(asked) => put_value(out, asked, version),
            ShownDestination::Subject(before) if exchange == crate::SUBJECT_EXCHANGE => {
                put_value(out, &format!("{before}{key}"), version);
            }
            _ if exchange.is_empty() && !key.contains(['/', '%']) => {
                out.extend_from_slice(b"/queue/");
                put_value(out, key, version);
            }
            _ => put_value(out, &destination::of_message(exchange, key), version),
        }
        out.push(b'\n');
    }
}

impl ProtocolWriter for Writer {
    /// Writes MESSAGE.
    #[inline]
    fn deliver(&mut self, out: &mut Output, delivery: &Delivery<'_>) {
        let Delivery { channel, tag, redelivered, message, .. } = *delivery;
        if self.failed.is_none() {
            self.message(out, channel, tag, redelivered, message);
        }
    }

    fn send_direct(&mut self, out: &mut Output, direct: &DirectMessage<'_>) {
        if self.failed.is_none() {
            self.message(out, direct.channel, direct.emission, false, &direct.message);
        }
    }

    fn send_direct_batch(
        &mut self,
        out: &mut Output,
        direct: &DirectMessage<'_>,
        bodies: &[&[u8]],
    ) {
        for (emission, body) in (direct.emission..).zip(bodies) {
            let message = MessageView { body, ..direct.message };
            self.send_direct(out, &DirectMessage { message, emission, ..*direct });
        }
    }

    /// Writes the receipts of publishes, or ERROR for one that was refused.
    fn confirm(&mut self, out: &mut Output, _: ChannelId, confirm: Confirm<'_>) {
        if let Some(refused) = confirm.refused {
            let receipt = match self.unconfirmed.take_one(confirm.number) {
                Some(Waiting::Receipt(receipt)) => Some(receipt),
                _ => None,
            };
            let fault = match refused.kind {
                RefusalKind::Unroutable => fault::refused(RefusalKind::NotFound, refused.text),
                kind => fault::refused(kind, refused.text),
            };
            return self.fail(out, &fault, receipt.as_deref());
        }
        if self.failed.is_some() {
            return;
        }
        if confirm.multiple {
            while let Some(waiting) = self.unconfirmed.take_first_of(confirm.number) {
                if let Waiting::Receipt(receipt) = waiting {
                    self.put_receipt(out, &receipt);
                }
            }
        } else if let Some(Waiting::Receipt(receipt)) = self.unconfirmed.take_one(confirm.number) {
            self.put_receipt(out, &receipt);
        }
        if self.unconfirmed.is_empty()
            && let Some(receipt) = self.farewell.take()
        {
            self.put_receipt(out, &receipt);
        }
        if self.awaits_room && self.unconfirmed.has_room() {
            self.awaits_room = false;
            out.calls_handler = true;
        }
    }

    /// Writes ERROR: STOMP has no other word for it.
    fn consumer_cancelled(&mut self, out: &mut Output, _: ChannelId, _: &str, why: CancelReason) {
        let text = match why {
            CancelReason::QueueDeleted => "the queue of a subscription was deleted",
            CancelReason::QueueFailed => {
                "the queue of a subscription has stopped at a message that cannot be read back"
            }
            CancelReason::Forbidden => "the user may not read from a subscription's queue any more",
            CancelReason::TakenOver => "another connection of the client has a subscription now",
        };
        self.fail(out, &Fault::new("Server cancelled subscription", text), None);
    }

    /// Writes ERROR: the user has lost the right to a subscription.
    fn subscription_revoked(&mut self, out: &mut Output, subscribed: &Subscribe<'_>) {
        let text = format!("the user may not subscribe to '{}' any more", subscribed.subject);
        self.fail(out, &Fault::new("Server cancelled subscription", text), None);
    }

    fn has_subscribers(&self) -> bool {
        self.has_direct
    }

    fn held_bytes(&self) -> usize {
        let shown = self.shown.iter().flatten();
        let bytes = |it: &Shown| {
            let asked = match &it.destination {
                ShownDestination::Asked(asked) => asked.len(),
                ShownDestination::Origin | ShownDestination::Subject(_) => 0,
            };
            size_of::<Shown>() + it.head.capacity() + it.id.capacity() + asked
        };
        self.unconfirmed.held_bytes() + shown.map(|shown| bytes(shown)).sum::<usize>()
    }
}

/// Writes ERROR.
pub(super) fn put_error(out: &mut Vec<u8>, version: Version, fault: &Fault, receipt: Option<&str>) {
    let mut frame = FrameWriter::new(out, "ERROR", version).header("message", &fault.message);
    if let Some(receipt) = receipt {
        frame = frame.header("receipt-id", receipt);
    }
    frame = frame.header("content-type", "text/plain").header("version", "1.0,1.1,1.2");
    frame.body(format!("{}\n", fault.text).as_bytes());
}

fn put_number(out: &mut Vec<u8>, number: u64) {
    write!(out, "{number}").expect("a vector takes every byte");
}
