//! One connection with one channel: handshake, topology, and the socket itself for the hot loops.

use super::wire::{self, Envelope, Field, Frame, Malformed, method};
use super::{Incoming, Uri};
use std::io::{self, Write};
use std::net::TcpStream;
use std::time::Duration;

/// The only channel a load uses.
pub const CHANNEL: u16 = 1;

/// Why a connection is of no use any more.
#[derive(Debug)]
pub enum Error {
    /// The socket failed or the broker hung up.
    Io(io::Error),
    /// Bytes that are no AMQP 0-9-1.
    Malformed(Malformed),
    /// The broker closed the channel or the connection and said why.
    Closed {
        /// The reply code.
        code: u16,
        /// The reply text.
        text: String,
    },
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Io(error) => write!(f, "{error}"),
            Error::Malformed(malformed) => write!(f, "{malformed}"),
            Error::Closed { code, text } => write!(f, "the broker closed it: {code} {text}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::Io(error)
    }
}

impl From<Malformed> for Error {
    fn from(malformed: Malformed) -> Error {
        Error::Malformed(malformed)
    }
}

/// An open connection with channel 1 open.
#[derive(Debug)]
pub struct Connection {
    /// The socket, for the hot loops.
    pub stream: TcpStream,
    /// What came and is not parsed.
    pub incoming: Incoming,
    /// The negotiated largest frame.
    pub frame_bytes_max: usize,
}

impl Connection {
    /// Connects, authenticates by PLAIN, opens the virtual host and channel 1. Asks for no heartbeats.
    pub fn open(uri: &Uri) -> Result<Connection, Error> {
        let stream = TcpStream::connect((uri.host.as_str(), uri.port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let mut connection =
            Connection { stream, incoming: Incoming::default(), frame_bytes_max: 4096 };
        connection.stream.write_all(b"AMQP\x00\x00\x09\x01")?;
        connection.expect(0, method::CONNECTION_START)?;
        connection.send(0, method::CONNECTION_START_OK, |out| {
            let capability = |name: &str| (name.to_owned(), Field::Boolean(true));
            let capabilities = vec![
                capability("publisher_confirms"),
                capability("basic.nack"),
                capability("connection.blocked"),
                capability("consumer_cancel_notify"),
                capability("authentication_failure_close"),
            ];
            let properties = [
                ("product".to_owned(), Field::Text("angarium-bench".to_owned())),
                ("capabilities".to_owned(), Field::Table(capabilities)),
            ];
            wire::write_table(out, &properties);
            wire::write_short_string(out, "PLAIN");
            wire::write_long_string(out, format!("\0{}\0{}", uri.user, uri.password).as_bytes());
            wire::write_short_string(out, "en_US");
        })?;
        connection.tune()?;
        connection.call(
            0,
            method::CONNECTION_OPEN,
            |out| {
                wire::write_short_string(out, &uri.virtual_host);
                out.extend_from_slice(&[0, 0]);
            },
            method::CONNECTION_OPEN_OK,
        )?;
        connection.call(
            CHANNEL,
            method::CHANNEL_OPEN,
            |out| out.push(0),
            method::CHANNEL_OPEN_OK,
        )?;
        Ok(connection)
    }

    fn tune(&mut self) -> Result<(), Error> {
        let mut frame_bytes_max = 0;
        let mut channel_max = 0;
        self.expect_with(0, method::CONNECTION_TUNE, |frame| {
            let mut arguments = frame.arguments();
            channel_max = arguments.short()?;
            frame_bytes_max = arguments.long()? as usize;
            Ok(())
        })?;
        // Zero means no limit (1.4.2.6); ours is what the receive buffer takes.
        self.frame_bytes_max = match frame_bytes_max {
            0 => wire::FRAME_BYTES_MAX,
            peer => peer.min(wire::FRAME_BYTES_MAX),
        };
        let frame_bytes_max = self.frame_bytes_max as u32;
        self.send(0, method::CONNECTION_TUNE_OK, |out| {
            out.extend_from_slice(&channel_max.to_be_bytes());
            out.extend_from_slice(&frame_bytes_max.to_be_bytes());
            out.extend_from_slice(&0u16.to_be_bytes());
        })
    }

    /// Declares a queue; `durable` also means that it outlives a restart.
    pub fn declare_queue(
        &mut self,
        name: &str,
        durable: bool,
        arguments: &[(String, Field)],
    ) -> Result<(), Error> {
        self.call(
            CHANNEL,
            method::QUEUE_DECLARE,
            |out| {
                out.extend_from_slice(&[0, 0]);
                wire::write_short_string(out, name);
                out.push(u8::from(durable) << 1);
                wire::write_table(out, arguments);
            },
            method::QUEUE_DECLARE_OK,
        )
    }

    /// Declares an exchange of the given type.
    pub fn declare_exchange(&mut self, name: &str, kind: &str) -> Result<(), Error> {
        self.call(
            CHANNEL,
            method::EXCHANGE_DECLARE,
            |out| {
                out.extend_from_slice(&[0, 0]);
                wire::write_short_string(out, name);
                wire::write_short_string(out, kind);
                out.push(0);
                wire::write_table(out, &[]);
            },
            method::EXCHANGE_DECLARE_OK,
        )
    }

    /// Binds a queue to an exchange.
    pub fn bind_queue(&mut self, queue: &str, exchange: &str, key: &str) -> Result<(), Error> {
        self.call(
            CHANNEL,
            method::QUEUE_BIND,
            |out| {
                out.extend_from_slice(&[0, 0]);
                for text in [queue, exchange, key] {
                    wire::write_short_string(out, text);
                }
                out.push(0);
                wire::write_table(out, &[]);
            },
            method::QUEUE_BIND_OK,
        )
    }

    /// Deletes a queue with what is in it.
    pub fn delete_queue(&mut self, name: &str) -> Result<(), Error> {
        self.call(
            CHANNEL,
            method::QUEUE_DELETE,
            |out| {
                out.extend_from_slice(&[0, 0]);
                wire::write_short_string(out, name);
                out.push(0);
            },
            method::QUEUE_DELETE_OK,
        )
    }

    /// Deletes an exchange.
    pub fn delete_exchange(&mut self, name: &str) -> Result<(), Error> {
        self.call(
            CHANNEL,
            method::EXCHANGE_DELETE,
            |out| {
                out.extend_from_slice(&[0, 0]);
                wire::write_short_string(out, name);
                out.push(0);
            },
            method::EXCHANGE_DELETE_OK,
        )
    }

    /// Turns publisher confirms on.
    pub fn select_confirms(&mut self) -> Result<(), Error> {
        self.call(CHANNEL, method::CONFIRM_SELECT, |out| out.push(0), method::CONFIRM_SELECT_OK)
    }

    /// Limits the unacknowledged deliveries of the consumers that follow; 0 is no limit.
    pub fn set_prefetch(&mut self, count: u16) -> Result<(), Error> {
        self.call(
            CHANNEL,
            method::BASIC_QOS,
            |out| {
                out.extend_from_slice(&0u32.to_be_bytes());
                out.extend_from_slice(&count.to_be_bytes());
                out.push(0);
            },
            method::BASIC_QOS_OK,
        )
    }

    /// Starts a consumer. Deliveries may follow at once.
    pub fn consume(&mut self, queue: &str, auto_ack: bool) -> Result<(), Error> {
        self.call(
            CHANNEL,
            method::BASIC_CONSUME,
            |out| {
                out.extend_from_slice(&[0, 0]);
                wire::write_short_string(out, queue);
                wire::write_short_string(out, "");
                out.push(u8::from(auto_ack) << 1);
                wire::write_table(out, &[]);
            },
            method::BASIC_CONSUME_OK,
        )
    }

    /// Publishes one message.
    pub fn publish(&mut self, envelope: &Envelope<'_>, body: &[u8]) -> Result<(), Error> {
        let mut out = Vec::new();
        wire::write_publish(&mut out, envelope, body, self.frame_bytes_max);
        Ok(self.stream.write_all(&out)?)
    }

    /// Asks for the end of the connection without waiting for the answer, which a reader takes.
    pub fn send_close(&mut self) -> Result<(), Error> {
        self.send(0, method::CONNECTION_CLOSE, write_farewell)
    }

    /// Asks for the end of the channel without waiting for the answer. All that was sent on it before is
    /// processed before the broker answers.
    pub fn send_channel_close(&mut self) -> Result<(), Error> {
        self.send(CHANNEL, method::CHANNEL_CLOSE, write_farewell)
    }

    /// Ends the connection as the specification asks. Frames still on their way are dropped.
    pub fn close(mut self) -> Result<(), Error> {
        self.call(0, method::CONNECTION_CLOSE, write_farewell, method::CONNECTION_CLOSE_OK)
    }

    /// Waits until `number` arrives on `channel`; other frames before it are dropped.
    pub fn expect(&mut self, channel: u16, number: u32) -> Result<(), Error> {
        self.expect_with(channel, number, |_| Ok(()))
    }

    fn expect_with(
        &mut self,
        channel: u16,
        number: u32,
        read: impl FnOnce(&Frame<'_>) -> Result<(), Malformed>,
    ) -> Result<(), Error> {
        loop {
            while let Some(frame) = self.incoming.next_frame()? {
                if frame.channel == channel && frame.method() == number {
                    return Ok(read(&frame)?);
                }
                refusal(&frame)?;
            }
            if self.incoming.fill(&mut self.stream)? == 0 {
                return Err(hung_up());
            }
        }
    }

    fn send(
        &mut self,
        channel: u16,
        number: u32,
        arguments: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), Error> {
        let mut out = Vec::with_capacity(256);
        wire::write_method(&mut out, channel, number, arguments);
        Ok(self.stream.write_all(&out)?)
    }

    fn call(
        &mut self,
        channel: u16,
        number: u32,
        arguments: impl FnOnce(&mut Vec<u8>),
        answer: u32,
    ) -> Result<(), Error> {
        self.send(channel, number, arguments)?;
        self.expect(channel, answer)
    }
}

/// The error that a hung-up peer is.
pub fn hung_up() -> Error {
    Error::Io(io::Error::new(io::ErrorKind::UnexpectedEof, "the broker hung up"))
}

/// Turns `channel.close` and `connection.close` into the error they are.
pub fn refusal(frame: &Frame<'_>) -> Result<(), Error> {
    if !matches!(frame.method(), method::CHANNEL_CLOSE | method::CONNECTION_CLOSE) {
        return Ok(());
    }
    let mut arguments = frame.arguments();
    let code = arguments.short()?;
    let text = String::from_utf8_lossy(arguments.short_string()?).into_owned();
    Err(Error::Closed { code, text })
}

/// Reply code 200 and no failing method.
fn write_farewell(out: &mut Vec<u8>) {
    out.extend_from_slice(&200u16.to_be_bytes());
    wire::write_short_string(out, "done");
    out.extend_from_slice(&[0; 4]);
}
