//! What the engine sends to a connection, written in AMQP 0-9-1 straight into its outlet.

use super::codec::Method;
use super::codec::content::{ACK, Deliver, NACK, Tagged, write_header};
use super::codec::properties::{self, Edit};
use super::codec::table::TableWriter;
use super::codec::wire::truncated;
use super::translate::translated;
use super::{frame, mapping};
use crate::Outlet;
use angarium_engine::{
    Annotations, Confirm, Death, DeathReason, Delivery, Format, MessageView, Returned, SessionId,
};

/// What a delivery takes beyond its strings, properties and body, unless the body is split.
const DELIVERY_FIXED_BYTES: usize = 72;

/// Headers that the broker sets, and that replace what a publisher put there.
const BROKER_HEADERS: &[&str] = &[
    "x-death",
    "x-first-death-reason",
    "x-first-death-queue",
    "x-first-death-exchange",
    "x-last-death-reason",
    "x-last-death-queue",
    "x-last-death-exchange",
    "x-delivery-count",
];

/// Writes basic.deliver, or basic.get-ok where the delivery answers a get.
#[inline]
pub(crate) fn write_delivery(outlet: &mut Outlet, delivery: &Delivery<'_>) {
    let message = &delivery.message;
    let channel = delivery.session.number;
    let out = &mut outlet.bytes;
    let strings = delivery.subscription.len() + message.exchange.len() + message.routing_key.len();
    out.reserve(DELIVERY_FIXED_BYTES + strings + message.properties.len() + message.body.len());
    if delivery.subscription.is_empty() {
        write_get_ok(out, delivery);
    } else {
        let deliver = Deliver {
            consumer_tag: delivery.subscription,
            delivery_tag: delivery.tag,
            redelivered: delivery.redelivered,
            exchange: message.exchange,
            routing_key: message.routing_key,
        };
        deliver.write_frame(channel, out);
    }
    write_content(outlet, channel, message);
}

#[cold]
fn write_get_ok(out: &mut Vec<u8>, delivery: &Delivery<'_>) {
    let method = Method::BasicGetOk {
        delivery_tag: delivery.tag,
        redelivered: delivery.redelivered,
        exchange: delivery.message.exchange,
        routing_key: delivery.message.routing_key,
        message_count: u32::try_from(delivery.messages_left).unwrap_or(u32::MAX),
    };
    method.write_frame(delivery.session.number, out);
}

/// Writes basic.return: the only reason for it is that no queue took the message.
pub(crate) fn write_returned(outlet: &mut Outlet, session: SessionId, returned: &Returned<'_>) {
    let message = &returned.message;
    let method = Method::BasicReturn {
        reply_code: 312,
        reply_text: "NO_ROUTE",
        exchange: message.exchange,
        routing_key: message.routing_key,
    };
    method.write_frame(session.number, &mut outlet.bytes);
    write_content(outlet, session.number, message);
}

/// Writes basic.ack or basic.nack to a publisher.
#[inline]
pub(crate) fn write_confirm(outlet: &mut Outlet, session: SessionId, confirm: Confirm) {
    let method = if confirm.accepted { ACK } else { NACK };
    let tagged = Tagged { delivery_tag: confirm.number, bits: confirm.multiple.into() };
    tagged.write_frame(method, session.number, &mut outlet.bytes);
}

/// Writes basic.cancel to clients that said they understand it.
pub(crate) fn write_cancelled(outlet: &mut Outlet, session: SessionId, subscription: &str) {
    if outlet.takes_cancels {
        let method = Method::BasicCancel { consumer_tag: subscription, no_wait: true };
        method.write_frame(session.number, &mut outlet.bytes);
    }
}

#[inline]
fn write_content(outlet: &mut Outlet, channel: u16, message: &MessageView<'_>) {
    let out = &mut outlet.bytes;
    let body_bytes = message.body.len() as u64;
    if message.format == Format::Amqp091 && is_plain(message.annotations) {
        write_header(out, channel, body_bytes, message.properties);
    } else {
        let properties = shown(message, outlet.frame_bytes_max);
        write_header(out, channel, body_bytes, &properties);
    }
    frame::write_body(out, channel, message.body, outlet.frame_bytes_max);
}

#[inline]
fn is_plain(annotations: &Annotations) -> bool {
    annotations.delivery_count == 0
        && annotations.deaths.is_empty()
        && !annotations.ttl_removed
        && !annotations.further_keys_removed
        && !annotations.delayed
}

/// Properties that are not as they were published.
#[cold]
fn shown(message: &MessageView<'_>, frame_bytes_max: u32) -> Vec<u8> {
    if message.format == Format::Amqp091 {
        return annotated(message.properties, message.annotations);
    }
    // Half of a frame is left for what the broker adds.
    let bytes_max = if frame_bytes_max == 0 { u32::MAX } else { frame_bytes_max } / 2;
    let properties = translated(message, bytes_max as usize);
    if is_plain(message.annotations) {
        return properties;
    }
    annotated(&properties, message.annotations)
}

/// Properties with what the broker knows put among the headers.
fn annotated(raw: &[u8], annotations: &Annotations) -> Vec<u8> {
    let mut entries = Vec::new();
    let mut headers = TableWriter { out: &mut entries };
    if annotations.delivery_count > 0 {
        headers.int("x-delivery-count", annotations.delivery_count.into());
    }
    if let Some(last) = annotations.deaths.first() {
        headers.value("x-death").array(&annotations.deaths, |value, death| {
            value.table(|table| write_death(table, death));
        });
        // The list is most recent first, and a queue that a message dies in again moves to its
        // front: the first death is the one with the earliest time.
        let first = annotations.deaths.iter().rev().min_by_key(|death| death.time).unwrap_or(last);
        headers.text("x-first-death-reason", reason(first.reason));
        headers.text("x-first-death-queue", &first.queue);
        headers.text("x-first-death-exchange", &first.exchange);
        headers.text("x-last-death-reason", reason(last.reason));
        headers.text("x-last-death-queue", &last.queue);
        headers.text("x-last-death-exchange", &last.exchange);
    }
    // A publisher's own x-death stays where the broker has nothing to say instead.
    let mut drop_headers = if annotations.deaths.is_empty() {
        BROKER_HEADERS[BROKER_HEADERS.len() - 1..].to_vec()
    } else {
        BROKER_HEADERS.to_vec()
    };
    if annotations.further_keys_removed {
        drop_headers.push("CC");
    }
    if annotations.delayed
        && let Some(millis) = properties::headers(raw)
            .and_then(|headers| headers.get(mapping::DELAY_HEADER))
            .and_then(mapping::delay_millis)
    {
        // Negative, as the plugin for RabbitMQ has it: the next delayed exchange takes it for passed.
        drop_headers.push(mapping::DELAY_HEADER);
        match i32::try_from(millis.saturating_neg()) {
            Ok(millis) => headers.value(mapping::DELAY_HEADER).short_int(millis),
            Err(_) => headers.int(mapping::DELAY_HEADER, millis.saturating_neg()),
        }
    }
    let edit = Edit {
        drop_expiration: annotations.ttl_removed,
        drop_headers: &drop_headers,
        add_headers: &entries,
        ..Edit::default()
    };
    let mut properties = Vec::with_capacity(raw.len() + entries.len() + 4);
    properties::rewrite(raw, &edit, &mut properties)
        .expect("properties were checked when the message was taken");
    properties
}

fn write_death(table: &mut TableWriter<'_>, death: &Death) {
    table.int("count", i64::try_from(death.count).unwrap_or(i64::MAX));
    table.text("reason", reason(death.reason));
    table.text("queue", &death.queue);
    table.timestamp("time", death.time.seconds());
    table.text("exchange", &death.exchange);
    table.texts("routing-keys", &death.routing_keys);
    if let Some(ttl) = death.original_ttl {
        table.text("original-expiration", truncated(&ttl.as_millis().to_string()));
    }
}

fn reason(reason: DeathReason) -> &'static str {
    match reason {
        DeathReason::Rejected => "rejected",
        DeathReason::Expired => "expired",
        DeathReason::MaxLength => "maxlen",
        DeathReason::DeliveryLimit => "delivery_limit",
    }
}
