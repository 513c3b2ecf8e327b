//! A small AMQP 0-9-1 client, blocking, one channel: enough to publish and consume from a shell.

use super::transport::{self, Stream};
use angarium_bench::secrets;
use angarium_protocol::amqp091::codec::content::write_header;
use angarium_protocol::amqp091::codec::table::{checked, put_table};
use angarium_protocol::amqp091::codec::{ContentHeader, FieldValue, Method, Properties, Table};
use angarium_protocol::amqp091::{self, frame};
use clap::Args;
use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

/// How long the broker may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Channel that everything goes over.
const CHANNEL: u16 = 1;
/// Largest frame we take.
const FRAME_BYTES_MAX: u32 = 131_072;
/// Largest message we take.
const BODY_BYTES_MAX: u64 = 1 << 30;
const DEFAULT_URI: &str = "amqp://guest:guest@127.0.0.1:5672/";

/// Which broker to talk to.
#[derive(Args, Clone, Debug)]
pub(super) struct Target {
    /// The broker: amqp://USER@HOST:PORT/VHOST, or amqps:// for TLS
    #[arg(long, value_name = "URI", default_value = DEFAULT_URI)]
    #[arg(env = "ANGARIUM_URI", hide_env_values = true)]
    pub(super) uri: String,
    /// Has the user's password in its first line; else ANGARIUM_PASSWORD
    #[arg(long, value_name = "FILE")]
    pub(super) password_file: Option<std::path::PathBuf>,
    /// Its Unix socket, instead of host and port
    #[arg(long, value_name = "PATH")]
    pub(super) socket: Option<std::path::PathBuf>,
    /// For amqps: certificates of the authorities to trust (PEM), instead of the system's
    #[arg(long, value_name = "FILE", env = "ANGARIUM_AUTHORITIES")]
    pub(super) authorities: Option<std::path::PathBuf>,
}

/// The parts of an AMQP URI.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Uri {
    pub(super) tls: bool,
    pub(super) address: String,
    pub(super) user: String,
    /// None: it is to be had elsewhere.
    pub(super) password: Option<String>,
    pub(super) vhost: String,
}

impl Uri {
    /// Reads `amqp://user:password@host:port/vhost`; every part but the scheme may be missing. An
    /// empty virtual host is the default one, although in RabbitMQ's URI specification `amqp://host/` names
    /// the virtual host "".
    pub(super) fn parse(text: &str) -> Result<Uri, String> {
        let (tls, rest) = match (text.strip_prefix("amqp://"), text.strip_prefix("amqps://")) {
            (Some(rest), _) => (false, rest),
            (None, Some(rest)) => (true, rest),
            (None, None) => {
                let form = "amqp://USER:PASSWORD@HOST:PORT/VHOST (or amqps://)";
                return Err(format!("expected {form}, not '{text}'"));
            }
        };
        let port = if tls { 5671 } else { 5672 };
        let (authority, path) = rest.split_once('/').map_or((rest, None), |(a, p)| (a, Some(p)));
        let (login, host) = authority.rsplit_once('@').unwrap_or(("guest:guest", authority));
        let (user, password) =
            login.split_once(':').map_or((login, None), |(user, it)| (user, Some(it)));
        let host = if host.is_empty() { "127.0.0.1" } else { host };
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        Ok(Uri {
            tls,
            address: if has_port { host.to_owned() } else { format!("{host}:{port}") },
            user: unescaped(user)?,
            password: password.map(unescaped).transpose()?,
            vhost: match path {
                None | Some("") => "/".to_owned(),
                Some(path) => unescaped(path)?,
            },
        })
    }
}

/// Undoes percent-encoding (RFC 3986 2.1).
fn unescaped(text: &str) -> Result<String, String> {
    let wrong = || format!("'{text}': wrong percent-encoding");
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2).ok_or_else(wrong)?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| wrong())?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

/// A connection with one open channel.
pub(super) struct Client {
    stream: Box<dyn Stream>,
    input: Vec<u8>,
    used: usize,
    out: Vec<u8>,
    frame_bytes_max: u32,
    /// The broker shows messages without a change to them.
    pub(super) can_browse: bool,
}

/// A message that came.
#[derive(Clone, Debug, Default)]
pub(super) struct Message {
    pub(super) delivery_tag: u64,
    pub(super) redelivered: bool,
    pub(super) exchange: String,
    pub(super) routing_key: String,
    pub(super) properties: Vec<u8>,
    pub(super) body: Vec<u8>,
}

/// What the broker says when it is not answering.
#[derive(Clone, Debug)]
pub(super) enum Event {
    /// A message for our consumer.
    Delivered(Message),
    /// Published messages up to this number are safe, or (second) this one alone.
    Confirmed { number: u64, multiple: bool, accepted: bool },
    /// A message that no queue takes.
    Returned { code: u16, text: String },
    /// The queue is gone.
    Cancelled,
    /// The broker takes no messages for that reason; none: it takes them again.
    Blocked(Option<String>),
    /// Any other method, by name.
    Answer(&'static str, Vec<u8>),
}

impl Client {
    /// Connects, logs in and opens a channel.
    pub(super) fn connect(target: &Target) -> Result<Client, String> {
        let uri = Uri::parse(&target.uri)?;
        let password = match (&target.password_file, &uri.password) {
            (None, Some(password)) => password.clone(),
            (file, _) => secrets::password(file.as_deref())?.unwrap_or_default(),
        };
        let stream: Box<dyn Stream> = match &target.socket {
            Some(path) => transport::unix(path)?,
            None if uri.tls => transport::tls(&uri.address, target.authorities.as_deref())?,
            None => Box::new(transport::tcp(&uri.address)?),
        };
        let mut client = Client {
            stream,
            input: Vec::new(),
            used: 0,
            out: frame::PROTOCOL_HEADER.to_vec(),
            frame_bytes_max: FRAME_BYTES_MAX,
            can_browse: false,
        };
        client.log_in(&uri, &password)?;
        Ok(client)
    }

    fn log_in(&mut self, uri: &Uri, password: &str) -> Result<(), String> {
        let start = self.expect("connection.start")?;
        if let Ok(Method::ConnectionStart { server_properties, .. }) = Method::decode(&start)
            && let Some(FieldValue::Table(capabilities)) = server_properties.get("capabilities")
        {
            let can_browse = capabilities.get(amqp091::BROWSE_CAPABILITY);
            self.can_browse = can_browse == Some(FieldValue::Bool(true));
        }
        let response = format!("\0{}\0{password}", uri.user);
        let mut properties = Vec::new();
        put_table(&mut properties, |table| {
            table.table("capabilities", |table| table.bool("connection.blocked", true));
        });
        let start_ok = Method::ConnectionStartOk {
            client_properties: checked(&properties[4..]).expect("it was written here"),
            mechanism: "PLAIN",
            response: response.as_bytes(),
            locale: "en_US",
        };
        self.put_on(0, &start_ok);
        let tune = self.expect("connection.tune").map_err(|error| match &*uri.user {
            _ if !error.starts_with("the broker closed") => error,
            "guest" => {
                "cannot log in as 'guest': wrong name or password, or from another host than \
                        the broker's?"
                    .to_owned()
            }
            user => format!("cannot log in as '{user}': wrong name or password?"),
        })?;
        let Ok(Method::ConnectionTune { channel_max, frame_max, .. }) = Method::decode(&tune)
        else {
            return Err("the broker's connection.tune is malformed".into());
        };
        let frame_max =
            if frame_max == 0 { FRAME_BYTES_MAX } else { frame_max.min(FRAME_BYTES_MAX) };
        self.frame_bytes_max = frame_max;
        self.put_on(0, &Method::ConnectionTuneOk { channel_max, frame_max, heartbeat: 0 });
        let virtual_host = uri.vhost.as_str();
        self.put_on(0, &Method::ConnectionOpen { virtual_host, capabilities: "", insist: false });
        self.expect("connection.open-ok")?;
        self.put(&Method::ChannelOpen { out_of_band: "" });
        self.expect("channel.open-ok")?;
        Ok(())
    }

    /// Puts a method into the output.
    pub(super) fn put(&mut self, method: &Method<'_>) {
        self.put_on(CHANNEL, method);
    }

    fn put_on(&mut self, channel: u16, method: &Method<'_>) {
        method.write_frame(channel, &mut self.out);
    }

    /// Puts a message into the output.
    pub(super) fn put_message(
        &mut self,
        exchange: &str,
        routing_key: &str,
        properties: &Properties<'_>,
        body: &[u8],
    ) {
        self.put(&Method::BasicPublish {
            ticket: 0,
            exchange,
            routing_key,
            mandatory: true,
            immediate: false,
        });
        let mut encoded = Vec::new();
        properties.encode(&mut encoded);
        write_header(&mut self.out, CHANNEL, body.len() as u64, &encoded);
        let piece = self.frame_bytes_max as usize - frame::OVERHEAD_BYTES;
        for part in body.chunks(piece) {
            let at = frame::begin(&mut self.out, frame::BODY, CHANNEL);
            self.out.extend_from_slice(part);
            frame::end(&mut self.out, at);
        }
    }

    pub(super) fn flush(&mut self) -> Result<(), String> {
        let sent = self.stream.write_all(&self.out).and_then(|()| self.stream.flush());
        self.out.clear();
        sent.map_err(|error| format!("the connection broke: {error}"))
    }

    /// Bytes that wait to be sent.
    pub(super) fn unsent(&self) -> usize {
        self.out.len()
    }

    /// Sends the output and waits for the method of that name; what else comes is dropped.
    pub(super) fn expect(&mut self, name: &str) -> Result<Vec<u8>, String> {
        self.flush()?;
        let until = Instant::now() + ANSWER_TIMEOUT;
        loop {
            match self.next(Some(until))? {
                Some(Event::Answer(method, payload)) if method == name => return Ok(payload),
                Some(_) => {}
                None => return Err(format!("the broker does not answer with {name}")),
            }
        }
    }

    /// The next event; `None`: none came until then.
    pub(super) fn next(&mut self, until: Option<Instant>) -> Result<Option<Event>, String> {
        let mut message: Option<(Event, Option<u64>)> = None;
        loop {
            let Some((kind, payload)) = self.frame(until)? else { return Ok(None) };
            match (kind, &mut message) {
                (frame::METHOD, _) => match self.method(&payload)? {
                    event @ (Event::Delivered(_) | Event::Returned { .. }) => {
                        message = Some((event, None));
                    }
                    event => return Ok(Some(event)),
                },
                (frame::HEADER, Some((event, left))) => {
                    let header = ContentHeader::decode(&payload).map_err(|e| e.0.to_owned())?;
                    let bytes = header.body_bytes;
                    if bytes > BODY_BYTES_MAX {
                        return Err(format!("a message of {bytes} bytes is too large"));
                    }
                    *left = Some(bytes);
                    if let Event::Delivered(message) = event {
                        message.properties = header.properties.to_vec();
                    }
                }
                (frame::BODY, Some((event, Some(left)))) => {
                    *left = left.saturating_sub(payload.len() as u64);
                    if let Event::Delivered(message) = event {
                        message.body.extend_from_slice(&payload);
                    }
                }
                _ => {}
            }
            if let Some((event, Some(0))) = message {
                return Ok(Some(event));
            }
        }
    }

    fn method(&mut self, payload: &[u8]) -> Result<Event, String> {
        let method = Method::decode(payload)
            .map_err(|error| format!("the broker sent a malformed method: {error}"))?;
        let name = method.name();
        Ok(match method {
            Method::ConnectionClose { reply_code, reply_text, .. }
            | Method::ChannelClose { reply_code, reply_text, .. } => {
                return Err(format!("the broker refuses: {reply_code} {reply_text}"));
            }
            Method::BasicDeliver { delivery_tag, redelivered, exchange, routing_key, .. } => {
                Event::Delivered(Message {
                    delivery_tag,
                    redelivered,
                    exchange: exchange.to_owned(),
                    routing_key: routing_key.to_owned(),
                    ..Message::default()
                })
            }
            Method::BasicReturn { reply_code, reply_text, .. } => {
                Event::Returned { code: reply_code, text: reply_text.to_owned() }
            }
            Method::BasicAck { delivery_tag, multiple } => {
                Event::Confirmed { number: delivery_tag, multiple, accepted: true }
            }
            Method::BasicNack { delivery_tag, multiple, .. } => {
                Event::Confirmed { number: delivery_tag, multiple, accepted: false }
            }
            Method::BasicCancel { .. } => Event::Cancelled,
            Method::ConnectionBlocked { reason } => Event::Blocked(Some(reason.to_owned())),
            Method::ConnectionUnblocked {} => Event::Blocked(None),
            _ => Event::Answer(name, payload.to_vec()),
        })
    }

    /// The next frame that is no heartbeat.
    fn frame(&mut self, until: Option<Instant>) -> Result<Option<(u8, Vec<u8>)>, String> {
        loop {
            let read = frame::read(&self.input[self.used..], self.frame_bytes_max);
            if let Some((frame, bytes)) = read.map_err(|error| error.to_string())? {
                let taken = (frame.kind, frame.payload.to_vec());
                self.used += bytes;
                if taken.0 != frame::HEARTBEAT {
                    return Ok(Some(taken));
                }
                continue;
            }
            self.input.drain(..self.used);
            self.used = 0;
            if !self.fill(until)? {
                return Ok(None);
            }
        }
    }

    /// Whether the next message is here already, as a whole.
    pub(super) fn has_message(&self) -> bool {
        let mut rest = &self.input[self.used..];
        let mut left = u64::MAX;
        while let Ok(Some((frame, bytes))) = frame::read(rest, self.frame_bytes_max) {
            match frame.kind {
                frame::HEADER => {
                    left = ContentHeader::decode(frame.payload).map_or(0, |it| it.body_bytes);
                }
                frame::BODY => left = left.saturating_sub(frame.payload.len() as u64),
                _ => {}
            }
            if left == 0 {
                return true;
            }
            rest = &rest[bytes..];
        }
        false
    }

    /// Reads once; `false`: nothing came until then.
    fn fill(&mut self, until: Option<Instant>) -> Result<bool, String> {
        let broken = |error: std::io::Error| format!("the connection broke: {error}");
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        // A timeout of zero would mean none at all.
        let left = left.map(|left| left.max(Duration::from_micros(1)));
        self.stream.limit_reads(left).map_err(broken)?;
        let mut block = [0; 64 << 10];
        match self.stream.read(&mut block) {
            Ok(0) => Err("the broker closed the connection".into()),
            Ok(count) => {
                self.input.extend_from_slice(&block[..count]);
                Ok(true)
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => Ok(false),
                ErrorKind::Interrupted => Ok(true),
                _ => Err(broken(error)),
            },
        }
    }

    /// Declares a durable queue, where asked to.
    pub(super) fn declare(&mut self, queue: &str) -> Result<(), String> {
        self.put(&Method::QueueDeclare {
            ticket: 0,
            queue,
            passive: false,
            durable: true,
            exclusive: false,
            auto_delete: false,
            no_wait: false,
            arguments: Table::default(),
        });
        self.expect("queue.declare-ok").map(drop)
    }

    /// Ends in order.
    pub(super) fn close(mut self) -> Result<(), String> {
        let (reply_code, reply_text, class_id, method_id) = (200, "done", 0, 0);
        self.put_on(0, &Method::ConnectionClose { reply_code, reply_text, class_id, method_id });
        self.expect("connection.close-ok").map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_have_defaults_for_every_part() {
        let uri = |text: &str| {
            let uri = Uri::parse(text).unwrap();
            [uri.address, uri.user, uri.password.unwrap_or_default(), uri.vhost]
        };
        assert_eq!(uri("amqp://"), ["127.0.0.1:5672", "guest", "guest", "/"]);
        assert_eq!(uri("amqp://h/%2Fv"), ["h:5672", "guest", "guest", "/v"]);
        assert_eq!(uri("amqp://u:p%40@h:1/v"), ["h:1", "u", "p@", "v"]);
        assert_eq!(uri("amqp://h/"), ["h:5672", "guest", "guest", "/"]);
        assert_eq!(uri("amqps://h/"), ["h:5671", "guest", "guest", "/"]);
        assert!(Uri::parse("amqps://h").unwrap().tls && !Uri::parse("amqp://h").unwrap().tls);
        for wrong in ["http://h", "amqp://u:%zz@h", "amqp://h/%f"] {
            assert!(Uri::parse(wrong).is_err(), "{wrong}");
        }
    }
}
