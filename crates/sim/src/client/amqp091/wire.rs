//! The client's side of an AMQP 0-9-1 connection: frames in and out, by the protocol crate's codec.

use super::incoming::{Incoming, Message, Way};
use super::proxy::Proxy;
use crate::payload;
use angarium_protocol::amqp091::codec::content::{self, PublishMethod};
use angarium_protocol::amqp091::codec::table::{self, TableWriter};
use angarium_protocol::amqp091::codec::{
    ContentHeader, FieldValue, Method, Properties, Table, put_table,
};
use angarium_protocol::amqp091::frame;
use std::collections::BTreeMap;

/// A message whose frames have not all arrived.
#[derive(Debug)]
struct Partial {
    message: Message,
    /// `None` before the content header.
    expects: Option<u64>,
    body: Vec<u8>,
}

/// One connection's bytes.
#[derive(Debug, Default)]
pub(super) struct Wire {
    input: Vec<u8>,
    pub(super) output: Vec<u8>,
    partials: BTreeMap<u16, Partial>,
    /// As negotiated by connection.tune; 0 before.
    pub(super) frame_max: u32,
    pub(super) proxy: Option<Proxy>,
}

impl Wire {
    /// The next connection, behind the same proxy.
    pub(super) fn renewed(&mut self) -> Wire {
        Wire { proxy: self.proxy.take(), ..Wire::default() }
    }

    /// Takes bytes; returns what they complete, each with its channel. Fails if the broker breaks
    /// the protocol.
    pub(super) fn received(&mut self, bytes: &[u8]) -> Result<Vec<(u16, Incoming)>, String> {
        self.input.extend_from_slice(bytes);
        let mut incoming = Vec::new();
        let input = std::mem::take(&mut self.input);
        let mut used = 0;
        let limit = if self.frame_max == 0 { 128 << 10 } else { self.frame_max };
        while let Some((frame, length)) =
            frame::read(&input[used..], limit).map_err(|error| error.to_string())?
        {
            used += length;
            let what = self.frame(&frame)?;
            incoming.extend(what.map(|what| (frame.channel, what)));
        }
        self.input = input;
        self.input.drain(..used);
        if let Some(proxy) = &mut self.proxy {
            proxy.alter(&mut incoming);
        }
        Ok(incoming)
    }

    fn frame(&mut self, frame: &frame::Frame<'_>) -> Result<Option<Incoming>, String> {
        let channel = frame.channel;
        match frame.kind {
            frame::HEARTBEAT => Ok(Some(Incoming::Notice)),
            frame::METHOD if self.partials.contains_key(&channel) => {
                Err("a method came between a message's frames".to_owned())
            }
            frame::METHOD => {
                let method = Method::decode(frame.payload)
                    .map_err(|error| format!("the broker sent no method: {error:?}"))?;
                self.method(channel, &method)
            }
            frame::HEADER => {
                let partial =
                    self.partials.get_mut(&channel).ok_or("a content header without a method")?;
                let header = ContentHeader::decode(frame.payload)
                    .map_err(|error| format!("content header {error}"))?;
                let properties = Properties::decode(header.properties)
                    .map_err(|error| format!("properties: {error}"))?;
                partial.message.requeues = requeues(&properties);
                partial.message.reply_to = reply_to(&properties);
                partial.expects = Some(header.body_bytes);
                self.complete(channel)
            }
            _ => {
                let partial =
                    self.partials.get_mut(&channel).ok_or("a body frame without a method")?;
                partial.body.extend_from_slice(frame.payload);
                self.complete(channel)
            }
        }
    }

    fn complete(&mut self, channel: u16) -> Result<Option<Incoming>, String> {
        let Some(partial) = self.partials.get(&channel) else { return Ok(None) };
        let expects = partial.expects.ok_or("a body frame before its content header")?;
        let length = partial.body.len() as u64;
        if length > expects {
            return Err(format!("a body of {length} bytes where {expects} were announced"));
        }
        if length < expects {
            return Ok(None);
        }
        let Partial { mut message, body, .. } =
            self.partials.remove(&channel).expect("just looked at");
        message.id = payload::read(&body);
        message.bytes = length;
        Ok(Some(Incoming::Message(message)))
    }

    /// What a method means; `None` if a message's content follows it.
    fn method(&mut self, channel: u16, method: &Method<'_>) -> Result<Option<Incoming>, String> {
        use Method as M;
        Ok(Some(match *method {
            M::ConnectionStart { .. } => Incoming::Start,
            M::ConnectionTune { frame_max, heartbeat, .. } => {
                Incoming::Tune { frame_max, heartbeat }
            }
            M::ConnectionOpenOk { .. } => Incoming::Opened,
            M::ConnectionClose { reply_code, reply_text, .. } => {
                Incoming::ConnectionClosed { code: reply_code, text: reply_text.to_owned() }
            }
            M::ConnectionCloseOk {} => Incoming::Goodbye,
            M::ConnectionBlocked { .. } | M::ConnectionUnblocked {} => Incoming::Notice,
            M::ChannelClose { reply_code, reply_text, .. } => {
                Incoming::ChannelClosed { code: reply_code, text: reply_text.to_owned() }
            }
            M::BasicAck { delivery_tag, multiple } => {
                Incoming::Confirm { tag: delivery_tag, multiple, accepted: true }
            }
            M::BasicNack { delivery_tag, multiple, .. } => {
                Incoming::Confirm { tag: delivery_tag, multiple, accepted: false }
            }
            M::BasicCancel { .. } => Incoming::Cancelled,
            M::BasicDeliver { consumer_tag, delivery_tag, redelivered, .. } => {
                let way = Way::Delivered { consumer: consumer_tag.to_owned() };
                return Ok(self.begin(channel, way, delivery_tag, redelivered));
            }
            M::BasicGetOk { delivery_tag, redelivered, .. } => {
                return Ok(self.begin(channel, Way::Got, delivery_tag, redelivered));
            }
            M::BasicReturn { .. } => return Ok(self.begin(channel, Way::Returned, 0, false)),
            M::QueueDeclareOk { message_count, .. }
            | M::QueuePurgeOk { message_count }
            | M::QueueDeleteOk { message_count } => Incoming::Answer { messages: message_count },
            M::ChannelOpenOk { .. }
            | M::ExchangeDeclareOk {}
            | M::ExchangeBindOk {}
            | M::QueueBindOk {}
            | M::BasicQosOk {}
            | M::BasicConsumeOk { .. }
            | M::BasicCancelOk { .. }
            | M::BasicGetEmpty { .. }
            | M::BasicRecoverOk {}
            | M::ConfirmSelectOk {}
            | M::TxSelectOk {}
            | M::TxCommitOk {}
            | M::TxRollbackOk {} => Incoming::Answer { messages: 0 },
            _ => return Err(format!("the broker sent {}", method.name())),
        }))
    }

    fn begin(&mut self, channel: u16, way: Way, tag: u64, redelivered: bool) -> Option<Incoming> {
        let message =
            Message { way, tag, redelivered, id: None, bytes: 0, requeues: 0, reply_to: None };
        let partial = Partial { message, expects: None, body: Vec::new() };
        self.partials.insert(channel, partial);
        None
    }

    /// Writes a method of the connection itself.
    pub(super) fn send(&mut self, method: &Method<'_>) {
        method.write_frame(0, &mut self.output);
    }

    /// Writes a method of a channel.
    pub(super) fn send_on(&mut self, channel: u16, method: &Method<'_>) {
        let passed = match &mut self.proxy {
            Some(proxy) => proxy.pass(channel, method),
            None => Some(*method),
        };
        if let Some(method) = passed {
            method.write_frame(channel, &mut self.output);
        }
    }

    /// Writes a message.
    pub(super) fn publish(
        &mut self,
        channel: u16,
        method: &PublishMethod<'_>,
        properties: &Properties<'_>,
        body: &[u8],
    ) {
        if self.proxy.as_mut().is_some_and(|proxy| proxy.swallows(channel)) {
            return;
        }
        let passed = self.proxy.as_ref().map(|proxy| proxy.pass_properties(properties));
        let properties = passed.as_ref().unwrap_or(properties);
        method.write_frame(channel, &mut self.output);
        let mut encoded = Vec::new();
        properties.encode(&mut encoded);
        content::write_header(&mut self.output, channel, body.len() as u64, &encoded);
        frame::write_body(&mut self.output, channel, body, self.frame_max);
    }
}

fn requeues(properties: &Properties<'_>) -> u64 {
    match properties.headers.and_then(|headers| headers.get("x-delivery-count")) {
        Some(FieldValue::Int(count)) => u64::try_from(count).unwrap_or(0),
        _ => 0,
    }
}

fn reply_to(properties: &Properties<'_>) -> Option<(String, u32)> {
    Some((properties.reply_to?.to_owned(), properties.correlation_id?.parse().ok()?))
}

/// Calls `then` with a table of the entries that `fill` writes.
pub(super) fn with_table<T>(
    fill: impl FnOnce(&mut TableWriter<'_>),
    then: impl FnOnce(Table<'_>) -> T,
) -> T {
    let mut bytes = Vec::new();
    put_table(&mut bytes, fill);
    // The first four octets are the length, which `checked` does not expect.
    then(table::checked(&bytes[4..]).expect("the table was just written"))
}
