//! An AMQP connection with one channel: handshake, topology, and the hot loops' encoding and parsing.

use super::delivery::{Content, FRAME_BYTES_MAX, next_frame, refusal};
use super::message::{self, Argument, CHANNEL};
use crate::client::{Encoded, Error, Receiver, Route, Source, Target, Wire};
use angarium_protocol::amqp091::codec::method::DecodeError;
use angarium_protocol::amqp091::codec::table;
use angarium_protocol::amqp091::codec::{Malformed, Method, Table, put_table};
use angarium_protocol::amqp091::frame::{self, FrameError, HEAD_BYTES, PROTOCOL_HEADER};

/// The first octets of a connection.start method.
const CONNECTION_START: [u8; 4] = [0, 10, 0, 10];

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
    pub(crate) wire: Wire,
    content: Content,
    /// The largest frame, as negotiated.
    frame_bytes_max: u32,
}

/// The version of the broker there, if it tells one.
pub(crate) fn server_version(target: &Target) -> Option<String> {
    Connection::version(target).ok().flatten()
}

impl Connection {
    /// Connects, authenticates by PLAIN, opens the virtual host and channel 1. Asks for no
    /// heartbeats.
    pub(crate) fn open(target: &Target) -> Result<Connection, Error> {
        let (wire, content) = (Wire::open(target)?, Content::default());
        let mut connection = Connection { wire, content, frame_bytes_max: 4096 };
        connection.wire.send(&PROTOCOL_HEADER)?;
        connection.authenticate(target)?;
        connection.tune()?;
        let virtual_host = &target.virtual_host;
        let open = Method::ConnectionOpen { virtual_host, capabilities: "", insist: false };
        connection.call(0, &open)?;
        connection.call(CHANNEL, &Method::ChannelOpen { out_of_band: "" })?;
        Ok(connection)
    }

    /// Asks a broker for its version, which it tells before the login.
    fn version(target: &Target) -> Result<Option<String>, Error> {
        let (wire, content) = (Wire::open(target)?, Content::default());
        let mut connection = Connection { wire, content, frame_bytes_max: 4096 };
        connection.wire.send(&PROTOCOL_HEADER)?;
        connection.expect(0, |method| match Method::decode(method)? {
            Method::ConnectionStart { server_properties, .. } => {
                Ok(Some(server_properties.text("version").map(str::to_owned)))
            }
            _ => Ok(None),
        })
    }

    fn authenticate(&mut self, target: &Target) -> Result<(), Error> {
        self.expect(0, |method| Ok(method.starts_with(&CONNECTION_START).then_some(())))?;
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
        let login = target.login_or_guest();
        let response = format!("\0{}\0{}", login.user, login.password());
        let start_ok = Method::ConnectionStartOk {
            client_properties: table::checked(&properties[4..])?,
            mechanism: "PLAIN",
            response: response.as_bytes(),
            locale: "en_US",
        };
        self.send(0, &start_ok)
    }

    fn tune(&mut self) -> Result<(), Error> {
        let (channel_max, frame_max) = self.expect(0, |method| match Method::decode(method)? {
            Method::ConnectionTune { channel_max, frame_max, .. } => {
                Ok(Some((channel_max, frame_max)))
            }
            _ => Ok(None),
        })?;
        // Zero means no limit (1.4.2.6); this client's limit is what the receive buffer holds.
        self.frame_bytes_max = match frame_max {
            0 => FRAME_BYTES_MAX,
            octets => octets.min(FRAME_BYTES_MAX),
        };
        let frame_max = self.frame_bytes_max;
        self.send(0, &Method::ConnectionTuneOk { channel_max, frame_max, heartbeat: 0 })
    }

    /// Declares a queue; `durable` also means that it outlives a restart.
    pub(crate) fn declare_queue(
        &mut self,
        queue: &str,
        durable: bool,
        arguments: &[(String, Argument)],
    ) -> Result<(), Error> {
        let mut table = Vec::new();
        message::write_arguments(&mut table, arguments);
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
        self.call(CHANNEL, &declare)
    }

    /// Declares an exchange of the given type.
    pub(crate) fn declare_exchange(&mut self, exchange: &str, kind: &str) -> Result<(), Error> {
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
        self.call(CHANNEL, &declare)
    }

    /// Binds a queue to an exchange.
    pub(crate) fn bind_queue(
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
        self.call(CHANNEL, &bind)
    }

    /// Deletes a queue and its messages.
    pub(crate) fn delete_queue(&mut self, queue: &str) -> Result<(), Error> {
        let delete = Method::QueueDelete {
            ticket: 0,
            queue,
            if_unused: false,
            if_empty: false,
            no_wait: false,
        };
        self.call(CHANNEL, &delete)
    }

    /// Deletes an exchange.
    pub(crate) fn delete_exchange(&mut self, exchange: &str) -> Result<(), Error> {
        let delete =
            Method::ExchangeDelete { ticket: 0, exchange, if_unused: false, no_wait: false };
        self.call(CHANNEL, &delete)
    }

    /// Turns publisher confirms on.
    pub(crate) fn select_confirms(&mut self) -> Result<(), Error> {
        let select = Method::ConfirmSelect { no_wait: false };
        self.call(CHANNEL, &select)
    }

    /// Turns transactions on.
    pub(crate) fn select_transactions(&mut self) -> Result<(), Error> {
        self.call(CHANNEL, &Method::TxSelect {})
    }

    /// Appends a commit.
    pub(crate) fn encode_commit(&self, out: &mut Vec<u8>) {
        Method::TxCommit {}.write_frame(CHANNEL, out);
    }

    /// Starts a consumer with at most `prefetch_count` unacknowledged deliveries; 0 is no limit. Deliveries
    /// may follow immediately.
    pub(crate) fn subscribe(
        &mut self,
        source: &Source<'_>,
        prefetch_count: u16,
    ) -> Result<(), Error> {
        if prefetch_count > 0 {
            let qos = Method::BasicQos { prefetch_size: 0, prefetch_count, global: false };
            self.call(CHANNEL, &qos)?;
        }
        let consume = Method::BasicConsume {
            ticket: 0,
            queue: source.name,
            consumer_tag: "",
            no_local: false,
            no_ack: source.auto_ack,
            exclusive: false,
            no_wait: false,
            arguments: Table::default(),
        };
        self.call(CHANNEL, &consume)
    }

    /// Appends a message.
    pub(crate) fn encode(&self, route: &Route<'_>, body: &[u8], out: &mut Vec<u8>) -> Encoded {
        message::write_publish(out, route, body, self.frame_bytes_max)
    }

    /// Appends an acknowledgement of a delivery; with `multiple`, of all up to it.
    #[inline]
    pub(crate) fn encode_ack(&mut self, out: &mut Vec<u8>, tag: u64, multiple: bool) {
        message::write_ack(out, tag, multiple);
    }

    /// Hands all received frames to `receiver`.
    #[inline]
    pub(crate) fn parse(&mut self, receiver: &mut impl Receiver) -> Result<(), Error> {
        while let Some(frame) = next_frame(&mut self.wire.incoming)? {
            self.content.frame(&frame, receiver)?;
        }
        Ok(())
    }

    /// Sends channel.close without waiting for the answer. The broker processes everything sent on the
    /// channel before it answers.
    pub(crate) fn send_end(&mut self) -> Result<(), Error> {
        let reply_text = "done";
        let close = Method::ChannelClose { reply_code: 200, reply_text, class_id: 0, method_id: 0 };
        self.send(CHANNEL, &close)
    }

    /// Ends the connection as the specification asks. Frames still on their way are dropped.
    pub(crate) fn close(mut self) -> Result<(), Error> {
        let reply_text = "done";
        let close =
            Method::ConnectionClose { reply_code: 200, reply_text, class_id: 0, method_id: 0 };
        self.call(0, &close)
    }

    /// Waits for the method on `channel` that `wanted` takes; other frames before it are dropped.
    fn expect<T>(
        &mut self,
        channel: u16,
        mut wanted: impl FnMut(&[u8]) -> Result<Option<T>, Error>,
    ) -> Result<T, Error> {
        self.wire.expect(|bytes| {
            let Some((frame, octets)) = frame::read(bytes, FRAME_BYTES_MAX)? else {
                return Ok(None);
            };
            refusal(&frame)?;
            let is_candidate = frame.kind == frame::METHOD && frame.channel == channel;
            let found = if is_candidate { wanted(frame.payload)? } else { None };
            Ok(Some((found, octets)))
        })
    }

    fn send(&mut self, channel: u16, method: &Method<'_>) -> Result<(), Error> {
        let mut out = Vec::with_capacity(256);
        method.write_frame(channel, &mut out);
        self.wire.send(&out)
    }

    /// Sends a request and waits for its answer, whose method number is the next one.
    fn call(&mut self, channel: u16, method: &Method<'_>) -> Result<(), Error> {
        let mut out = Vec::with_capacity(256);
        method.write_frame(channel, &mut out);
        self.wire.send(&out)?;
        let mut answer = out[HEAD_BYTES..HEAD_BYTES + 4].to_vec();
        answer[3] += 1;
        self.expect(channel, |method| Ok(method.starts_with(&answer).then_some(())))
    }
}
