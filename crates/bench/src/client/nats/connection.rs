//! One connection: handshake, subscriptions, and the parsing of what comes.

use super::Uri;
use super::uri::Login;
use super::wire::{self, Line};
use crate::client::{Error, Head, Incoming, Receiver};
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The message whose octets are arriving.
#[derive(Debug, Default)]
struct Arriving {
    headers_left: u64,
    body_left: u64,
    /// Octets of the line end after the body that are still to come.
    end_left: u64,
}

impl Arriving {
    fn is_over(&self) -> bool {
        self.headers_left + self.body_left + self.end_left == 0
    }
}

/// An open connection.
#[derive(Debug)]
pub struct Connection {
    /// The socket, for the hot loops.
    pub stream: TcpStream,
    pub(in crate::client) incoming: Incoming,
    arriving: Arriving,
    subscriptions: u64,
}

impl Connection {
    /// Connects, authenticates, and waits until the broker took it.
    pub fn open(uri: &Uri) -> Result<Connection, Error> {
        let stream = TcpStream::connect((uri.host.as_str(), uri.port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let (incoming, arriving) = (Incoming::default(), Arriving::default());
        let mut connection = Connection { stream, incoming, arriving, subscriptions: 0 };
        connection.expect(|event| matches!(event, Line::Info(_)))?;
        let login = match &uri.login {
            Login::None => String::new(),
            Login::Token(token) => format!(",\"auth_token\":{}", json(token)),
            Login::User(user, password) => {
                format!(",\"user\":{},\"pass\":{}", json(user), json(password))
            }
        };
        let mut out = Vec::new();
        wire::write_connect(&mut out, &login);
        out.extend_from_slice(b"PING\r\n");
        connection.stream.write_all(&out)?;
        connection.expect(|event| matches!(event, Line::Pong))?;
        Ok(connection)
    }

    /// Subscribes and waits until the broker took it. What is published before that may not come.
    pub fn subscribe(&mut self, subject: &str, group: Option<&str>) -> Result<(), Error> {
        self.subscribe_many(&[subject.to_owned()], group)
    }

    /// Subscribes to all of them by one connection, and waits until the broker took them.
    pub fn subscribe_many(
        &mut self,
        subjects: &[String],
        group: Option<&str>,
    ) -> Result<(), Error> {
        let mut out = Vec::new();
        for subject in subjects {
            self.subscriptions += 1;
            wire::write_subscribe(&mut out, subject, group, self.subscriptions);
        }
        out.extend_from_slice(b"PING\r\n");
        self.stream.write_all(&out)?;
        self.expect(|event| matches!(event, Line::Pong))
    }

    /// Ends all subscriptions and asks for an answer when that is done.
    pub(in crate::client) fn send_end(&mut self) -> Result<(), Error> {
        let mut out = Vec::new();
        for id in 1..=self.subscriptions {
            write!(out, "UNSUB {id}\r\n").expect("a Vec takes everything");
        }
        self.subscriptions = 0;
        out.extend_from_slice(b"PING\r\n");
        Ok(self.stream.write_all(&out)?)
    }

    /// Hands all that came to `receiver`, and answers the broker's pings.
    #[inline]
    pub(in crate::client) fn parse(&mut self, receiver: &mut impl Receiver) -> Result<(), Error> {
        loop {
            if !self.arriving.is_over() && !self.take_message(receiver)? {
                return Ok(());
            }
            let Some((line, used)) = wire::read_line(self.incoming.unparsed())? else {
                return Ok(());
            };
            match line {
                Line::Message { headers, body } => {
                    self.arriving =
                        Arriving { headers_left: headers, body_left: body, end_left: 2 };
                    receiver.begin(Head { tag: 0, redelivered: false, size: body });
                }
                Line::Ping => self.stream.write_all(b"PONG\r\n")?,
                Line::Pong => receiver.ended(),
                // A broker may send INFO at any time, when its cluster changes or it shuts down.
                Line::Info(_) | Line::Ok => {}
                Line::Refusal(text) => return Err(refused(text)),
            }
            self.incoming.consume(used);
        }
    }

    /// Takes what is there of the arriving message. `true` if that was the rest of it.
    #[inline]
    fn take_message(&mut self, receiver: &mut impl Receiver) -> Result<bool, Error> {
        let Arriving { headers_left, body_left, end_left } = &mut self.arriving;
        if *headers_left > 0 {
            let taken = (self.incoming.unparsed().len() as u64).min(*headers_left);
            self.incoming.consume(taken as usize);
            *headers_left -= taken;
            if *headers_left > 0 {
                return Ok(false);
            }
        }
        let bytes = self.incoming.unparsed();
        let taken = (bytes.len() as u64).min(*body_left);
        let (body, rest) = bytes.split_at(taken as usize);
        if taken > 0 {
            receiver.body(body);
        }
        *body_left -= taken;
        let ended = if *body_left == 0 { rest.len().min(*end_left as usize) } else { 0 };
        if rest[..ended] != b"\r\n"[2 - *end_left as usize..][..ended] {
            return Err(Error::Nonsense("a body longer than its line said".to_owned()));
        }
        *end_left -= ended as u64;
        let is_over = *body_left == 0 && *end_left == 0;
        self.incoming.consume(taken as usize + ended);
        if is_over {
            receiver.complete();
        }
        Ok(is_over)
    }

    /// Waits for the line that `wanted` takes; others before it are dropped.
    fn expect(&mut self, wanted: impl Fn(&Line<'_>) -> bool) -> Result<(), Error> {
        loop {
            while self.arriving.is_over() || self.take_message(&mut ())? {
                let Some((line, used)) = wire::read_line(self.incoming.unparsed())? else { break };
                match line {
                    Line::Refusal(text) => return Err(refused(text)),
                    Line::Ping => self.stream.write_all(b"PONG\r\n")?,
                    Line::Message { headers, body } => {
                        self.arriving =
                            Arriving { headers_left: headers, body_left: body, end_left: 2 };
                    }
                    _ => {}
                }
                let found = wanted(&line);
                self.incoming.consume(used);
                if found {
                    return Ok(());
                }
            }
            if self.incoming.fill(&mut self.stream)? == 0 {
                return Err(Error::hung_up());
            }
        }
    }
}

fn refused(text: &[u8]) -> Error {
    Error::Closed(String::from_utf8_lossy(text).into_owned())
}

/// Text as JSON has it.
fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
