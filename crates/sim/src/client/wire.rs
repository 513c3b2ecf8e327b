//! The client's side of the wire: frames that came are turned into what a client makes of them, and
//! methods into frames. By the protocol crate's codec, so that both directions of it are exercised.

use crate::canary::Proxy;
use crate::history::MessageId;
use crate::payload;
use angarium_protocol::amqp091::codec::table::{self, TableWriter};
use angarium_protocol::amqp091::codec::{
    ContentHeader, FieldValue, Method, Properties, Table, content, put_table,
};
use angarium_protocol::amqp091::frame;

/// The channel that every client works on.
pub const CHANNEL: u16 = 1;

/// What arrived, as a client sees it.
#[allow(missing_docs)]
#[derive(Clone, Debug)]
pub enum Incoming {
    /// connection.start.
    Start,
    /// connection.tune with frame-max and heartbeat.
    Tune { frame_max: u32, heartbeat: u16 },
    /// connection.open-ok.
    Opened,
    /// The answer to the oldest request on the channel, with the count that some answers have.
    Answer { messages: u32 },
    /// A whole message.
    Message(Message),
    /// basic.ack or basic.nack.
    Confirm { tag: u64, multiple: bool, accepted: bool },
    /// basic.cancel: the broker ended a subscription.
    Cancelled { consumer: String },
    /// channel.close.
    ChannelClosed { code: u16, text: String },
    /// connection.close.
    ConnectionClosed { code: u16, text: String },
    /// connection.close-ok.
    Goodbye,
    /// A heartbeat, or a notice that changes nothing for these clients (connection.blocked).
    Notice,
}

/// How a message arrived.
#[allow(missing_docs)]
#[derive(Clone, Debug)]
pub enum Way {
    /// basic.deliver.
    Delivered { consumer: String },
    /// basic.get-ok.
    Got,
    /// basic.return.
    Returned,
}

/// A message with all its frames.
#[derive(Clone, Debug)]
pub struct Message {
    /// How it arrived.
    pub way: Way,
    /// Its delivery tag.
    pub tag: u64,
    /// As marked.
    pub redelivered: bool,
    /// Which message it is, if the body is sound.
    pub id: Option<MessageId>,
    /// Bytes of its body.
    pub bytes: u64,
    /// The header `x-delivery-count`, 0 where there is none.
    pub requeues: u64,
}

/// A message of which not all frames have come.
#[derive(Debug)]
struct Partial {
    message: Message,
    /// `None` before the content header.
    expects: Option<u64>,
    body: Vec<u8>,
}

/// One connection's bytes.
#[derive(Debug, Default)]
pub struct Wire {
    input: Vec<u8>,
    /// Bytes to be sent.
    pub output: Vec<u8>,
    partial: Option<Partial>,
    /// As tuned; 0 before.
    pub frame_max: u32,
    proxy: Option<Proxy>,
}

impl Wire {
    /// A connection behind a proxy.
    #[must_use]
    pub fn behind(proxy: Option<Proxy>) -> Wire {
        Wire { proxy, ..Wire::default() }
    }

    /// The next connection, behind the same proxy.
    #[must_use]
    pub fn renewed(&mut self) -> Wire {
        Wire::behind(self.proxy.take())
    }

    /// Takes bytes; appends what they complete to `into`. An error is a broken promise of the broker.
    pub fn received(&mut self, bytes: &[u8], into: &mut Vec<Incoming>) -> Result<(), String> {
        self.input.extend_from_slice(bytes);
        let input = std::mem::take(&mut self.input);
        let mut used = 0;
        let limit = if self.frame_max == 0 { 128 << 10 } else { self.frame_max };
        while let Some((frame, length)) =
            frame::read(&input[used..], limit).map_err(|error| error.to_string())?
        {
            used += length;
            self.frame(frame, into)?;
        }
        self.input = input;
        self.input.drain(..used);
        if let Some(proxy) = &mut self.proxy {
            proxy.alter(into);
        }
        Ok(())
    }

    fn frame(&mut self, frame: frame::Frame<'_>, into: &mut Vec<Incoming>) -> Result<(), String> {
        match frame.kind {
            frame::HEARTBEAT => into.push(Incoming::Notice),
            frame::METHOD if self.partial.is_some() => {
                return Err("a method came between a message's frames".to_owned());
            }
            frame::METHOD => {
                let method = Method::decode(frame.payload)
                    .map_err(|error| format!("the broker sent no method: {error:?}"))?;
                self.method(&method, into)?;
            }
            frame::HEADER => {
                let partial = self.partial.as_mut().ok_or("a content header without a method")?;
                let header = ContentHeader::decode(frame.payload)
                    .map_err(|error| format!("content header {error}"))?;
                let properties = Properties::decode(header.properties)
                    .map_err(|error| format!("properties: {error}"))?;
                partial.message.requeues = requeues(&properties);
                partial.expects = Some(header.body_bytes);
                self.complete(into)?;
            }
            _ => {
                let partial = self.partial.as_mut().ok_or("a body frame without a method")?;
                partial.body.extend_from_slice(frame.payload);
                self.complete(into)?;
            }
        }
        Ok(())
    }

    fn complete(&mut self, into: &mut Vec<Incoming>) -> Result<(), String> {
        let Some(partial) = self.partial.as_ref() else { return Ok(()) };
        let expects = partial.expects.ok_or("a body frame before its content header")?;
        let length = partial.body.len() as u64;
        if length > expects {
            return Err(format!("a body of {length} bytes where {expects} were announced"));
        }
        if length == expects {
            let Partial { mut message, body, .. } = self.partial.take().expect("just looked at");
            message.id = payload::read(&body);
            message.bytes = length;
            into.push(Incoming::Message(message));
        }
        Ok(())
    }

    fn method(&mut self, method: &Method<'_>, into: &mut Vec<Incoming>) -> Result<(), String> {
        use Method as M;
        into.push(match *method {
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
            M::BasicCancel { consumer_tag, .. } => {
                Incoming::Cancelled { consumer: consumer_tag.to_owned() }
            }
            M::BasicDeliver { consumer_tag, delivery_tag, redelivered, .. } => {
                let way = Way::Delivered { consumer: consumer_tag.to_owned() };
                return self.begin(way, delivery_tag, redelivered);
            }
            M::BasicGetOk { delivery_tag, redelivered, .. } => {
                return self.begin(Way::Got, delivery_tag, redelivered);
            }
            M::BasicReturn { .. } => return self.begin(Way::Returned, 0, false),
            M::QueueDeclareOk { message_count, .. }
            | M::QueuePurgeOk { message_count }
            | M::QueueDeleteOk { message_count } => Incoming::Answer { messages: message_count },
            M::ChannelOpenOk { .. }
            | M::ExchangeDeclareOk {}
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
        });
        Ok(())
    }

    fn begin(&mut self, way: Way, tag: u64, redelivered: bool) -> Result<(), String> {
        let message = Message { way, tag, redelivered, id: None, bytes: 0, requeues: 0 };
        self.partial = Some(Partial { message, expects: None, body: Vec::new() });
        Ok(())
    }

    /// Writes a method.
    pub fn send(&mut self, method: &Method<'_>) {
        let passed = match &mut self.proxy {
            Some(proxy) => proxy.pass(method),
            None => Some(*method),
        };
        if let Some(method) = passed {
            method.write_frame(CHANNEL, &mut self.output);
        }
    }

    /// Writes a method of the connection itself.
    pub fn send_connection(&mut self, method: &Method<'_>) {
        method.write_frame(0, &mut self.output);
    }

    /// Writes a message.
    pub fn publish(
        &mut self,
        exchange: &str,
        routing_key: &str,
        mandatory: bool,
        properties: &Properties<'_>,
        body: &[u8],
    ) {
        if self.proxy.as_mut().is_some_and(Proxy::swallows) {
            return;
        }
        let method = content::PublishMethod { exchange, routing_key, mandatory, immediate: false };
        method.write_frame(CHANNEL, &mut self.output);
        let mut encoded = Vec::new();
        properties.encode(&mut encoded);
        content::write_header(&mut self.output, CHANNEL, body.len() as u64, &encoded);
        frame::write_body(&mut self.output, CHANNEL, body, self.frame_max);
    }
}

fn requeues(properties: &Properties<'_>) -> u64 {
    match properties.headers.and_then(|headers| headers.get("x-delivery-count")) {
        Some(FieldValue::Int(count)) => u64::try_from(count).unwrap_or(0),
        _ => 0,
    }
}

/// Calls `then` with a table of the entries that `fill` writes.
pub fn with_table<T>(
    fill: impl FnOnce(&mut TableWriter<'_>),
    then: impl FnOnce(Table<'_>) -> T,
) -> T {
    let mut bytes = Vec::new();
    put_table(&mut bytes, fill);
    // The first four octets are the length, which the reader of a field takes off.
    then(table::checked(&bytes[4..]).expect("the table was just written"))
}
