//! A NATS connection: handshake, subscriptions, and parsing of the input.

use crate::client::{Encoded, Error, Head, Receiver, Route, Source, Target, Wire};
use angarium_protocol::nats::codec::server::RepeatedMessage;
use angarium_protocol::nats::codec::{
    Connect, Info, Malformed, Message, Publish, ServerOp, client,
};
use angarium_protocol::nats::frame;

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
    pub(crate) wire: Wire,
    /// The largest payload that the broker accepts.
    payload_bytes_max: usize,
    repeated: RepeatedMessage,
    subscriptions: u64,
}

impl Connection {
    /// Connects, authenticates, and waits for the broker's PONG.
    pub(crate) fn open(target: &Target) -> Result<Connection, Error> {
        let mut connection = Connection {
            wire: Wire::open(target)?,
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            repeated: RepeatedMessage::default(),
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
        connection.wire.incoming.reserve(connection.payload_bytes_max + LINE_BYTES);
        let mut out = Vec::new();
        greeting(target).write(&mut out);
        client::write_ping(&mut out);
        connection.wire.send(&out)?;
        connection.expect_pong()?;
        Ok(connection)
    }

    pub(crate) fn select_confirms(&mut self) -> Result<(), Error> {
        Err(Error::Closed("NATS has no publisher confirms".to_owned()))
    }

    /// Subscribes and waits for PONG. Messages published before may be missed.
    pub(crate) fn subscribe(&mut self, source: &Source<'_>, _: u16) -> Result<(), Error> {
        self.subscribe_many([source.name], source.group)
    }

    /// Subscribes to all of them and waits for PONG.
    pub(crate) fn subscribe_many(
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
                self.wire.send(&out)?;
                out.clear();
            }
        }
        client::write_ping(&mut out);
        self.wire.send(&out)?;
        self.expect_pong()
    }

    /// Ends all subscriptions and asks for a PONG after that.
    pub(crate) fn send_end(&mut self) -> Result<(), Error> {
        let mut out = Vec::new();
        for sid in 1..=self.subscriptions {
            client::write_unsubscribe(&mut out, sid.to_string().as_bytes(), None);
        }
        self.subscriptions = 0;
        client::write_ping(&mut out);
        self.wire.send(&out)
    }

    /// Appends a message.
    pub(crate) fn encode(&self, route: &Route<'_>, body: &[u8], out: &mut Vec<u8>) -> Encoded {
        Publish { subject: route.key.as_bytes(), body, ..Publish::default() }.write(out);
        Encoded::body_at(out.len() - body.len() - frame::END.len())
    }

    pub(crate) fn encode_ack(&mut self, _: &mut Vec<u8>, _: u64, _: bool) {}

    /// Hands everything received to `receiver`, and answers the broker's pings.
    #[inline]
    pub(crate) fn parse(&mut self, receiver: &mut impl Receiver) -> Result<(), Error> {
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
            self.wire.incoming.take(|bytes| self.repeated.decode(bytes, payload_bytes_max))?
        {
            match op {
                ServerOp::Message(message) => take(receiver, message)?,
                ServerOp::Ping => self.wire.send(b"PONG\r\n")?,
                ServerOp::Pong => receiver.ended(),
                // A broker may send INFO at any time: its cluster changed, or it shuts down.
                ServerOp::Info(_) | ServerOp::Ok => {}
                ServerOp::Error(text) => return Err(refused(text)),
            }
        }
        Ok(())
    }

    /// Waits for the operation that `wanted` accepts; drops others before it, and answers pings.
    pub(super) fn expect(
        &mut self,
        mut wanted: impl FnMut(&ServerOp<'_>) -> bool,
    ) -> Result<(), Error> {
        let payload_bytes_max = self.payload_bytes_max;
        loop {
            let is_ping = self.wire.expect(|bytes| {
                let Some((op, octets)) = ServerOp::decode(bytes, payload_bytes_max)? else {
                    return Ok(None);
                };
                let is_ping = match op {
                    ServerOp::Error(text) => return Err(refused(text)),
                    ServerOp::Ping => Some(true),
                    _ => wanted(&op).then_some(false),
                };
                Ok(Some((is_ping, octets)))
            })?;
            if !is_ping {
                return Ok(());
            }
            self.wire.send(b"PONG\r\n")?;
        }
    }

    pub(super) fn expect_pong(&mut self) -> Result<(), Error> {
        self.expect(|op| matches!(op, ServerOp::Pong))
    }
}

fn greeting(target: &Target) -> Connect {
    let connect = Connect {
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
    let Some(login) = target.login.clone() else { return connect };
    match login.password {
        None => Connect { auth_token: Some(login.user), ..connect },
        pass => Connect { user: Some(login.user), pass, ..connect },
    }
}

fn refused(text: &[u8]) -> Error {
    Error::Closed(String::from_utf8_lossy(text).into_owned())
}

impl From<Malformed> for Error {
    fn from(error: Malformed) -> Error {
        Error::Invalid(format!("an invalid operation: {error:?}"))
    }
}
