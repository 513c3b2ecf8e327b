//! What the engine sends to a connection, written in AMQP 0-9-1 straight into its output.

use super::codec::Method;
use super::codec::content::{ACK, Deliver, NACK, Tagged, write_header};
use super::codec::properties::{self, Edit};
use super::codec::table::TableWriter;
use super::codec::wire::truncated;
use super::translate::translated;
use super::{frame, mapping};
use crate::output::{Output, ProtocolWriter};
use crate::properties::{
    DELAY_HEADER, DELIVERY_COUNT_HEADER, DROPPED_HEADER, is_plain, reason_name, withdrawn,
};
use crate::shared_body::SharedBody;
use crate::translation::with_payload;
use angarium_engine::{
    Annotations, Bytes, CancelReason, ChannelId, Confirm, Death, Delivery, DirectMessage,
    GetAnswer, MessageView,
};
use std::borrow::Cow;

/// What a delivery takes beyond its strings, properties and body, unless the body is split.
const DELIVERY_FIXED_BYTES: usize = 72;

/// What AMQP 0-9-1 needs to write to a connection.
#[derive(Debug, Default)]
pub struct Writer {
    /// Largest frame the peer takes, in bytes, as negotiated; 0: no limit.
    frame_bytes_max: u32,
    /// The client understands basic.cancel.
    takes_cancels: bool,
}

impl Writer {
    /// The writer for a client that takes frames up to `frame_bytes_max` bytes (0: any) and, where it says
    /// so, basic.cancel.
    #[must_use]
    pub fn new(frame_bytes_max: u32, takes_cancels: bool) -> Writer {
        Writer { frame_bytes_max, takes_cancels }
    }

    #[inline]
    fn write_content(&self, out: &mut Output, channel: u16, message: &MessageView<'_>) {
        if message.format == crate::format::AMQP091 && is_plain(message.annotations) {
            self.write_content_as(out, channel, message, message.properties);
        } else {
            self.write_reworded(out, channel, message);
        }
    }

    /// Writes properties that are not as they were published, and a body that may not be so either.
    #[cold]
    fn write_reworded(&self, out: &mut Output, channel: u16, message: &MessageView<'_>) {
        let properties = shown(message, self.frame_bytes_max);
        let mut body = Cow::Borrowed(message.body);
        let message = with_payload(message, &mut body);
        self.write_content_as(out, channel, &message, &properties);
    }

    #[inline(always)]
    fn write_content_as(
        &self,
        out: &mut Output,
        channel: u16,
        message: &MessageView<'_>,
        properties: &[u8],
    ) {
        let bytes = &mut out.bytes;
        write_header(bytes, channel, message.body.len() as u64, properties);
        match message.shared {
            None => frame::write_body(bytes, channel, message.body, self.frame_bytes_max),
            Some(body) => self.leave_body(out, channel, body),
        }
    }

    /// Leaves a large body to the host, which sends it in parts.
    #[cold]
    fn leave_body(&self, out: &mut Output, channel: u16, body: &Bytes) {
        let [c0, c1] = channel.to_be_bytes();
        let (kind, bytes_max) = ([frame::BODY, c0, c1], frame::payload_max(self.frame_bytes_max));
        let body = SharedBody::in_frames(body, kind, frame::END, bytes_max, &mut out.bytes);
        out.shared_body = Some(body.into());
    }
}

impl ProtocolWriter for Writer {
    /// Writes basic.deliver.
    #[inline]
    fn deliver(&mut self, out: &mut Output, delivery: &Delivery<'_>) {
        let message = delivery.message;
        let channel = delivery.channel.number;
        let routing_key = truncated(message.routing_key);
        let strings = delivery.consumer.len() + message.exchange.len() + routing_key.len();
        if message.shared.is_none() {
            let content = message.properties.len() + message.body.len();
            out.bytes.reserve(DELIVERY_FIXED_BYTES + strings + content);
        }
        let deliver = Deliver {
            consumer_tag: delivery.consumer,
            delivery_tag: delivery.tag,
            redelivered: delivery.redelivered,
            exchange: message.exchange,
            routing_key,
        };
        deliver.write_frame(channel, &mut out.bytes);
        self.write_content(out, channel, message);
    }

    /// Writes basic.get-ok.
    fn answer_get(&mut self, out: &mut Output, answer: &GetAnswer<'_>) {
        let channel = answer.channel.number;
        let method = Method::BasicGetOk {
            delivery_tag: answer.tag,
            redelivered: answer.redelivered,
            exchange: answer.message.exchange,
            routing_key: truncated(answer.message.routing_key),
            message_count: u32::try_from(answer.messages_left).unwrap_or(u32::MAX),
        };
        method.write_frame(channel, &mut out.bytes);
        self.write_content(out, channel, &answer.message);
    }

    /// Writes basic.deliver: a reply to the consumer of amq.rabbitmq.reply-to.
    fn send_direct(&mut self, out: &mut Output, direct: &DirectMessage<'_>) {
        let DirectMessage { channel, subscription: consumer, tag, message, .. } = *direct;
        let message = &message;
        let (place, redelivered) = (0, false);
        let group = None;
        self.deliver(out, &Delivery { channel, consumer, tag, place, redelivered, group, message });
    }

    fn send_direct_batch(
        &mut self,
        out: &mut Output,
        direct: &DirectMessage<'_>,
        bodies: &[&[u8]],
    ) {
        for body in bodies {
            let message = MessageView { body, ..direct.message };
            self.send_direct(out, &DirectMessage { message, ..*direct });
        }
    }

    /// Writes basic.ack or basic.nack.
    #[inline]
    fn confirm(&mut self, out: &mut Output, channel: ChannelId, confirm: Confirm<'_>) {
        let method = if confirm.refused.is_none() { ACK } else { NACK };
        let tagged = Tagged { delivery_tag: confirm.number, bits: confirm.multiple.into() };
        tagged.write_frame(method, channel.number, &mut out.bytes);
    }

    /// Writes basic.return: the only reason for it is that no queue took the message.
    fn return_unroutable(
        &mut self,
        out: &mut Output,
        channel: ChannelId,
        message: &MessageView<'_>,
    ) {
        let method = Method::BasicReturn {
            reply_code: 312,
            reply_text: "NO_ROUTE",
            exchange: message.exchange,
            routing_key: truncated(message.routing_key),
        };
        method.write_frame(channel.number, &mut out.bytes);
        self.write_content(out, channel.number, message);
    }

    /// Writes basic.cancel to clients that understand it.
    fn consumer_cancelled(
        &mut self,
        out: &mut Output,
        channel: ChannelId,
        consumer: &str,
        _: CancelReason,
    ) {
        if self.takes_cancels {
            let method = Method::BasicCancel { consumer_tag: consumer, no_wait: true };
            method.write_frame(channel.number, &mut out.bytes);
        }
    }
}

/// Properties that are not as they were published.
#[cold]
fn shown(message: &MessageView<'_>, frame_bytes_max: u32) -> Vec<u8> {
    let mut own = Vec::new();
    put_own_headers(&mut TableWriter { out: &mut own }, message.annotations);
    if message.format == crate::format::AMQP091 {
        return amended(message.properties, message.annotations, own);
    }
    // Half of a frame is left for what the broker adds.
    let bytes_max = if frame_bytes_max == 0 { u32::MAX } else { frame_bytes_max } / 2;
    translated(message, bytes_max as usize, &own)
}

/// The headers in which the broker says what it knows of a message.
fn put_own_headers(headers: &mut TableWriter<'_>, annotations: &Annotations) {
    if annotations.delivery_count > 0 {
        headers.int(DELIVERY_COUNT_HEADER, annotations.delivery_count.into());
    }
    if annotations.dropped > 0 {
        headers.int(DROPPED_HEADER, i64::try_from(annotations.dropped).unwrap_or(i64::MAX));
    }
    if let Some(last) = annotations.deaths.first() {
        headers.value("x-death").array(&annotations.deaths, |value, death| {
            value.table(|table| write_death(table, death));
        });
        // The list is most recent first, and a queue that a message dies in again moves to its
        // front: the first death is the one with the earliest time.
        let first = annotations.deaths.iter().rev().min_by_key(|death| death.time).unwrap_or(last);
        headers.text("x-first-death-reason", reason_name(first.reason));
        headers.text("x-first-death-queue", &first.queue);
        headers.text("x-first-death-exchange", &first.exchange);
        headers.text("x-last-death-reason", reason_name(last.reason));
        headers.text("x-last-death-queue", &last.queue);
        headers.text("x-last-death-exchange", &last.exchange);
    }
}

/// Properties as the broker has changed them since they were published, and with its `own` headers.
pub(crate) fn amended(raw: &[u8], annotations: &Annotations, mut own: Vec<u8>) -> Vec<u8> {
    if annotations.delayed
        && let Some(millis) = properties::headers(raw)
            .and_then(|headers| headers.get(DELAY_HEADER))
            .and_then(mapping::delay_millis)
    {
        // Negative, as the plugin for RabbitMQ has it: the next delayed exchange takes it for passed.
        let millis = millis.saturating_neg();
        let mut headers = TableWriter { out: &mut own };
        match i32::try_from(millis) {
            Ok(millis) => headers.value(DELAY_HEADER).short_int(millis),
            Err(_) => headers.int(DELAY_HEADER, millis),
        }
    }
    let edit = Edit {
        drop_expiration: annotations.ttl_removed,
        drop_headers: &withdrawn(annotations),
        add_headers: &own,
        ..Edit::default()
    };
    let mut properties = Vec::with_capacity(raw.len() + own.len() + 4);
    properties::rewrite(raw, &edit, &mut properties)
        .expect("properties were checked when the message was taken");
    properties
}

fn write_death(table: &mut TableWriter<'_>, death: &Death) {
    table.int("count", i64::try_from(death.count).unwrap_or(i64::MAX));
    table.text("reason", reason_name(death.reason));
    table.text("queue", &death.queue);
    table.value("time").timestamp(death.time.seconds());
    table.text("exchange", &death.exchange);
    table.value("routing-keys").array(&death.routing_keys, |value, key| value.text(key));
    if let Some(ttl) = death.original_ttl {
        table.text("original-expiration", truncated(&ttl.as_millis().to_string()));
    }
}
