//! An AMQP connection with one channel: handshake, topology, and the socket for the hot loops.

use super::delivery::{Content, refusal};
use super::message::{Argument, write_arguments};
use super::next_frame::{FRAME_BYTES_MAX, next_frame};
use crate::client::{Error, ReceiveBuffer, Receiver, VhostUri, dial};
use angarium_protocol::amqp091::codec::method::DecodeError;
use angarium_protocol::amqp091::codec::table;
use angarium_protocol::amqp091::codec::{Malformed, Method, Table, put_table};
use angarium_protocol::amqp091::frame::{self, FrameError, PROTOCOL_HEADER};
use std::io::Write;
use std::net::TcpStream;

/// The only channel a load uses.
pub const CHANNEL: u16 = 1;

impl From<FrameError> for Error {
    fn from(error: FrameError) -> Error {
        Error::Invalid(format!("an invalid frame: {error:?}"))
    }
}

impl From<DecodeError> for Error {
    fn from(error: DecodeError) -> Error {
        Error::Invalid(format!("an invalid method: {error:?}"))
    }
}

impl From<Malformed> for Error {
    fn from(error: Malformed) -> Error {
        Error::Invalid(format!("a malformed frame: {}", error.0))
    }
}

/// An open connection with channel 1 open.
#[derive(Debug)]
pub struct Connection {
    /// The socket, for the hot loops.
    pub stream: TcpStream,
    /// Received bytes that are not parsed yet.
    pub(in crate::client) incoming: ReceiveBuffer,
    content: Content,
    /// The largest frame, as negotiated.
    pub frame_bytes_max: u32,
}

impl Connection {
    /// Connects, authenticates by PLAIN, opens the virtual host and channel 1. Asks for no
    /// heartbeats.
    pub fn open(uri: &VhostUri) -> Result<Connection, Error> {
        let stream = dial(&uri.host, uri.port)?;
        let mut connection = Connection {
            stream,
            incoming: ReceiveBuffer::default(),
            content: Content::default(),
            frame_bytes_max: 4096,
        };
        connection.stream.write_all(&PROTOCOL_HEADER)?;
        connection.authenticate(uri)?;
        connection.tune()?;
        let open = Method::ConnectionOpen {
            virtual_host: &uri.virtual_host,
            capabilities: "",
            insist: false,
        };
        connection.call(0, &open, |answer| matches!(answer, Method::ConnectionOpenOk { .. }))?;
        let open = Method::ChannelOpen { out_of_band: "" };
        connection.call(CHANNEL, &open, |answer| matches!(answer, Method::ChannelOpenOk { .. }))?;
        Ok(connection)
    }

    fn authenticate(&mut self, uri: &VhostUri) -> Result<(), Error> {
        self.expect(0, |method| matches!(method, Method::ConnectionStart { .. }))?;
        let mut properties = Vec::new();
        put_table(&mut properties, |table| {
            table.text("product", "angarium-bench");
            table.table("capabilities", |table| {
                table.bool("publisher_confirms", true);
                table.bool("basic.nack", true);
                table.bool("connection.blocked", true);
                table.bool("consumer_cancel_notify", true);
                table.bool("authentication_failure_close", true);
            });
        });
        let response = format!("\0{}\0{}", uri.user, uri.password);
        let start_ok = Method::ConnectionStartOk {
            client_properties: table::checked(&properties[4..])?,
            mechanism: "PLAIN",
            response: response.as_bytes(),
            locale: "en_US",
        };
        self.send(0, &start_ok)
    }

    fn tune(&mut self) -> Result<(), Error> {
        let (mut channel_max, mut frame_max) = (0, 0);
        self.expect(0, |method| {
            let Method::ConnectionTune { channel_max: channels, frame_max: octets, .. } = method
            else {
                return false;
            };
            (channel_max, frame_max) = (*channels, *octets);
            true
        })?;
        // Zero means no limit (1.4.2.6); this client's limit is what the receive buffer holds.
        self.frame_bytes_max = match frame_max {
            0 => FRAME_BYTES_MAX as u32,
            octets => octets.min(FRAME_BYTES_MAX as u32),
        };
        let frame_max = self.frame_bytes_max;
        self.send(0, &Method::ConnectionTuneOk { channel_max, frame_max, heartbeat: 0 })
    }

    /// Declares a queue; `durable` also means that it outlives a restart.
    pub fn declare_queue(
        &mut self,
        queue: &str,
        durable: bool,
        arguments: &[(String, Argument)],
    ) -> Result<(), Error> {
        let mut table = Vec::new();
        write_arguments(&mut table, arguments);
        let declare = Method::QueueDeclare {
            ticket: 0,
            queue,
            passive: false,
            durable,
            exclusive: false,
            auto_delete: false,
            no_wait: false,
            arguments: table::checked(&table[4..])?,
        };
        self.call(CHANNEL, &declare, |answer| matches!(answer, Method::QueueDeclareOk { .. }))
    }

    /// Declares an exchange of the given type.
    pub fn declare_exchange(&mut self, exchange: &str, kind: &str) -> Result<(), Error> {
        let declare = Method::ExchangeDeclare {
            ticket: 0,
            exchange,
            kind,
            passive: false,
            durable: false,
            auto_delete: false,
            internal: false,
            no_wait: false,
            arguments: Table::default(),
        };
        self.call(CHANNEL, &declare, |answer| matches!(answer, Method::ExchangeDeclareOk {}))
    }

    /// Binds a queue to an exchange.
    pub fn bind_queue(
        &mut self,
        queue: &str,
        exchange: &str,
        routing_key: &str,
    ) -> Result<(), Error> {
        let arguments = Table::default();
        let bind = Method::QueueBind {
            ticket: 0,
            queue,
            exchange,
            routing_key,
            no_wait: false,
            arguments,
        };
        self.call(CHANNEL, &bind, |answer| matches!(answer, Method::QueueBindOk {}))
    }

    /// Deletes a queue and its messages.
    pub fn delete_queue(&mut self, queue: &str) -> Result<(), Error> {
        let delete = Method::QueueDelete {
            ticket: 0,
            queue,
            if_unused: false,
            if_empty: false,
            no_wait: false,
        };
        self.call(CHANNEL, &delete, |answer| matches!(answer, Method::QueueDeleteOk { .. }))
    }

    /// Deletes an exchange.
    pub fn delete_exchange(&mut self, exchange: &str) -> Result<(), Error> {
        let delete =
            Method::ExchangeDelete { ticket: 0, exchange, if_unused: false, no_wait: false };
        self.call(CHANNEL, &delete, |answer| matches!(answer, Method::ExchangeDeleteOk {}))
    }

    /// Turns publisher confirms on.
    pub fn select_confirms(&mut self) -> Result<(), Error> {
        let select = Method::ConfirmSelect { no_wait: false };
        self.call(CHANNEL, &select, |answer| matches!(answer, Method::ConfirmSelectOk {}))
    }

    /// Turns transactions on.
    pub fn select_transactions(&mut self) -> Result<(), Error> {
        self.call(CHANNEL, &Method::TxSelect {}, |answer| matches!(answer, Method::TxSelectOk {}))
    }

    /// Limits the unacknowledged deliveries of the consumers that follow; 0 is no limit.
    pub fn set_prefetch(&mut self, prefetch_count: u16) -> Result<(), Error> {
        let qos = Method::BasicQos { prefetch_size: 0, prefetch_count, global: false };
        self.call(CHANNEL, &qos, |answer| matches!(answer, Method::BasicQosOk {}))
    }

    /// Starts a consumer. Deliveries may follow at once.
    pub fn consume(&mut self, queue: &str, auto_ack: bool) -> Result<(), Error> {
        let consume = Method::BasicConsume {
            ticket: 0,
            queue,
            consumer_tag: "",
            no_local: false,
            no_ack: auto_ack,
            exclusive: false,
            no_wait: false,
            arguments: Table::default(),
        };
        self.call(CHANNEL, &consume, |answer| matches!(answer, Method::BasicConsumeOk { .. }))
    }

    /// Hands all received frames to `receiver`.
    #[inline]
    pub(in crate::client) fn parse(&mut self, receiver: &mut impl Receiver) -> Result<(), Error> {
        while let Some(frame) = next_frame(&mut self.incoming)? {
            self.content.frame(&frame, receiver)?;
        }
        Ok(())
    }

    /// Sends channel.close without waiting for the answer. The broker processes everything sent on the
    /// channel before it answers.
    pub fn send_channel_close(&mut self) -> Result<(), Error> {
        let reply_text = "done";
        let close = Method::ChannelClose { reply_code: 200, reply_text, class_id: 0, method_id: 0 };
        self.send(CHANNEL, &close)
    }

    /// Ends the connection as the specification asks. Frames still on their way are dropped.
    pub fn close(mut self) -> Result<(), Error> {
        let reply_text = "done";
        let close =
            Method::ConnectionClose { reply_code: 200, reply_text, class_id: 0, method_id: 0 };
        self.call(0, &close, |answer| matches!(answer, Method::ConnectionCloseOk {}))
    }

    /// Waits for the method on `channel` that `wanted` takes; other frames before it are dropped.
    fn expect(
        &mut self,
        channel: u16,
        mut wanted: impl FnMut(&Method<'_>) -> bool,
    ) -> Result<(), Error> {
        loop {
            while let Some(frame) = next_frame(&mut self.incoming)? {
                if frame.kind == frame::METHOD && frame.channel == channel {
                    refusal(&frame)?;
                    if wanted(&Method::decode(frame.payload)?) {
                        return Ok(());
                    }
                } else {
                    refusal(&frame)?;
                }
            }
            self.incoming.fill_some(&mut self.stream)?;
        }
    }

    fn send(&mut self, channel: u16, method: &Method<'_>) -> Result<(), Error> {
        let mut out = Vec::with_capacity(256);
        method.write_frame(channel, &mut out);
        Ok(self.stream.write_all(&out)?)
    }

    fn call(
        &mut self,
        channel: u16,
        method: &Method<'_>,
        answer: impl FnMut(&Method<'_>) -> bool,
    ) -> Result<(), Error> {
        self.send(channel, method)?;
        self.expect(channel, answer)
    }
}
