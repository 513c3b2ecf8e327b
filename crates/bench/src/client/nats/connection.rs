//! A NATS connection: handshake, subscriptions, and parsing of the input.

use super::{Login, Uri};
use crate::client::{Error, Head, ReceiveBuffer, Receiver, dial};
use angarium_protocol::nats::codec::server::MessageRow;
use angarium_protocol::nats::codec::{Connect, Info, Malformed, Message, ServerOp, client};
use std::io::Write;
use std::net::TcpStream;

/// The largest accepted payload, whatever the broker allows; nats-server advises against more than 8
/// MiB.
const PAYLOAD_BYTES_MAX: usize = 64 << 20;
/// Subscriptions are written in pieces of this many bytes.
const WRITE_BYTES: usize = 64 * 1024;
/// Room in the receive buffer for a message's protocol line.
const LINE_BYTES: usize = 16 * 1024;

/// An open connection.
#[derive(Debug)]
pub struct Connection {
    /// The socket, for the hot loops.
    pub stream: TcpStream,
    /// The largest payload that the broker accepts.
    pub payload_bytes_max: usize,
    pub(in crate::client) incoming: ReceiveBuffer,
    row: MessageRow,
    subscriptions: u64,
}

impl Connection {
    /// Connects, authenticates, and waits for the broker's PONG.
    pub fn open(uri: &Uri) -> Result<Connection, Error> {
        let stream = dial(&uri.host, uri.port)?;
        let mut connection = Connection {
            stream,
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            incoming: ReceiveBuffer::default(),
            row: MessageRow::default(),
            subscriptions: 0,
        };
        let mut info = None;
        connection.expect(|op| {
            let ServerOp::Info(text) = op else { return false };
            info = Info::decode(text).ok();
            true
        })?;
        let info = info.ok_or_else(|| Error::invalid("an INFO that is no JSON"))?;
        connection.payload_bytes_max = info.max_payload.min(PAYLOAD_BYTES_MAX);
        connection.incoming.reserve(connection.payload_bytes_max + LINE_BYTES);
        let mut out = Vec::new();
        greeting(&uri.login).write(&mut out);
        client::write_ping(&mut out);
        connection.stream.write_all(&out)?;
        connection.expect(|op| matches!(op, ServerOp::Pong))?;
        Ok(connection)
    }

    /// Subscribes and waits for PONG. Messages published before may be missed.
    pub fn subscribe(&mut self, subject: &str, group: Option<&str>) -> Result<(), Error> {
        self.subscribe_many([subject], group)
    }

    /// Subscribes to all of them and waits for PONG.
    pub fn subscribe_many(
        &mut self,
        subjects: impl IntoIterator<Item = impl AsRef<str>>,
        group: Option<&str>,
    ) -> Result<(), Error> {
        let mut out = Vec::new();
        for subject in subjects {
            self.subscriptions += 1;
            let (subject, group) = (subject.as_ref().as_bytes(), group.unwrap_or("").as_bytes());
            let sid = self.subscriptions.to_string();
            client::write_subscribe(&mut out, subject, group, sid.as_bytes());
            if out.len() >= WRITE_BYTES {
                self.stream.write_all(&out)?;
                out.clear();
            }
        }
        client::write_ping(&mut out);
        self.stream.write_all(&out)?;
        self.expect(|op| matches!(op, ServerOp::Pong))
    }

    /// Ends all subscriptions and asks for a PONG after that.
    pub(in crate::client) fn send_end(&mut self) -> Result<(), Error> {
        let mut out = Vec::new();
        for sid in 1..=self.subscriptions {
            client::write_unsubscribe(&mut out, sid.to_string().as_bytes(), None);
        }
        self.subscriptions = 0;
        client::write_ping(&mut out);
        Ok(self.stream.write_all(&out)?)
    }

    /// Hands everything received to `receiver`, and answers the broker's pings.
    #[inline]
    pub(in crate::client) fn parse(&mut self, receiver: &mut impl Receiver) -> Result<(), Error> {
        self.parse_each(receiver, |receiver, message| {
            receiver.begin(Head { size: message.body.len() as u64, ..Head::default() });
            receiver.body(message.body);
            receiver.complete();
            Ok(())
        })
    }

    /// Calls `take` with `receiver` for every received message.
    #[inline]
    pub(super) fn parse_each<R: Receiver>(
        &mut self,
        receiver: &mut R,
        mut take: impl FnMut(&mut R, Message<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let payload_bytes_max = self.payload_bytes_max;
        while let Some(op) =
            self.incoming.take(|bytes| self.row.decode(bytes, payload_bytes_max))?
        {
            match op {
                ServerOp::Message(message) => take(receiver, message)?,
                ServerOp::Ping => self.stream.write_all(b"PONG\r\n")?,
                ServerOp::Pong => receiver.ended(),
                // A broker may send INFO at any time: its cluster changed, or it shuts down.
                ServerOp::Info(_) | ServerOp::Ok => {}
                ServerOp::Error(text) => return Err(refused(text)),
            }
        }
        Ok(())
    }

    /// Waits for the operation that `wanted` accepts; drops others before it.
    pub(super) fn expect(
        &mut self,
        mut wanted: impl FnMut(&ServerOp<'_>) -> bool,
    ) -> Result<(), Error> {
        let payload_bytes_max = self.payload_bytes_max;
        loop {
            while let Some(op) =
                self.incoming.take(|bytes| ServerOp::decode(bytes, payload_bytes_max))?
            {
                match op {
                    ServerOp::Error(text) => return Err(refused(text)),
                    ServerOp::Ping => self.stream.write_all(b"PONG\r\n")?,
                    _ => {}
                }
                if wanted(&op) {
                    return Ok(());
                }
            }
            self.incoming.fill_some(&mut self.stream)?;
        }
    }
}

fn greeting(login: &Login) -> Connect {
    let mut connect = Connect {
        verbose: false,
        pedantic: false,
        name: Some("angarium-bench".to_owned()),
        lang: Some("rust".to_owned()),
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        protocol: 1,
        no_responders: true,
        headers: true,
        ..Connect::default()
    };
    match login {
        Login::None => {}
        Login::Token(token) => connect.auth_token = Some(token.clone()),
        Login::User(user, password) => {
            connect.user = Some(user.clone());
            connect.pass = Some(password.clone());
        }
    }
    connect
}

fn refused(text: &[u8]) -> Error {
    Error::Closed(String::from_utf8_lossy(text).into_owned())
}

impl From<Malformed> for Error {
    fn from(error: Malformed) -> Error {
        Error::Invalid(format!("an invalid operation: {error:?}"))
    }
}
