//! A small AMQP 0-9-1 client, blocking, one channel: enough to publish and consume.

use angarium_protocol::amqp091::codec::content::write_header;
use angarium_protocol::amqp091::codec::table::{checked, put_table};
use angarium_protocol::amqp091::codec::{ContentHeader, FieldValue, Method, Properties, Table};
use angarium_protocol::amqp091::{self, frame};
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

/// An open transport.
pub(crate) trait Stream: Read + Write {
    /// How long a read may wait.
    fn limit_reads(&self, timeout: Option<Duration>) -> std::io::Result<()>;
}

/// A connection with one open channel.
pub(crate) struct Client {
    stream: Box<dyn Stream>,
    input: Vec<u8>,
    used: usize,
    out: Vec<u8>,
    frame_bytes_max: u32,
    /// The broker shows messages without a change to them.
    pub(crate) can_browse: bool,
}

/// How a client says who it is, and where it wants to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Login<'a> {
    /// The SASL mechanism.
    pub(crate) mechanism: &'a str,
    pub(crate) response: &'a [u8],
    pub(crate) vhost: &'a str,
}

/// A message that came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message {
    pub(crate) delivery_tag: u64,
    pub(crate) redelivered: bool,
    pub(crate) exchange: String,
    pub(crate) routing_key: String,
    pub(crate) properties: Vec<u8>,
    pub(crate) body: Vec<u8>,
    /// How many more are in the queue, where it was asked for one.
    pub(crate) left: Option<u32>,
}

/// What the broker says when it is not answering.
#[derive(Clone, Debug)]
pub(crate) enum Event {
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
    /// Logs in over a transport and opens a channel. A broker that does not like the login closes.
    pub(crate) fn over(stream: Box<dyn Stream>, login: &Login<'_>) -> Result<Client, String> {
        let mut client = Client {
            stream,
            input: Vec::new(),
            used: 0,
            out: frame::PROTOCOL_HEADER.to_vec(),
            frame_bytes_max: FRAME_BYTES_MAX,
            can_browse: false,
        };
        client.log_in(login)?;
        Ok(client)
    }

    fn log_in(&mut self, login: &Login<'_>) -> Result<(), String> {
        let start = self.expect("connection.start")?;
        if let Ok(Method::ConnectionStart { server_properties, .. }) = Method::decode(&start)
            && let Some(FieldValue::Table(capabilities)) = server_properties.get("capabilities")
        {
            let can_browse = capabilities.get(amqp091::BROWSE_CAPABILITY);
            self.can_browse = can_browse == Some(FieldValue::Bool(true));
        }
        let mut properties = Vec::new();
        put_table(&mut properties, |table| {
            table.table("capabilities", |table| table.bool("connection.blocked", true));
        });
        let start_ok = Method::ConnectionStartOk {
            client_properties: checked(&properties[4..]).expect("it was written here"),
            mechanism: login.mechanism,
            response: login.response,
            locale: "en_US",
        };
        self.put_on(0, &start_ok);
        let tune = self.expect("connection.tune")?;
        let Ok(Method::ConnectionTune { channel_max, frame_max, .. }) = Method::decode(&tune)
        else {
            return Err("the broker's connection.tune is malformed".into());
        };
        let frame_max =
            if frame_max == 0 { FRAME_BYTES_MAX } else { frame_max.min(FRAME_BYTES_MAX) };
        self.frame_bytes_max = frame_max;
        self.put_on(0, &Method::ConnectionTuneOk { channel_max, frame_max, heartbeat: 0 });
        let virtual_host = login.vhost;
        self.put_on(0, &Method::ConnectionOpen { virtual_host, capabilities: "", insist: false });
        self.expect("connection.open-ok")?;
        self.put(&Method::ChannelOpen { out_of_band: "" });
        self.expect("channel.open-ok")?;
        Ok(())
    }

    /// Puts a method into the output.
    pub(crate) fn put(&mut self, method: &Method<'_>) {
        self.put_on(CHANNEL, method);
    }

    fn put_on(&mut self, channel: u16, method: &Method<'_>) {
        method.write_frame(channel, &mut self.out);
    }

    /// Puts a message into the output.
    pub(crate) fn put_message(
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

    pub(crate) fn flush(&mut self) -> Result<(), String> {
        let sent = self.stream.write_all(&self.out).and_then(|()| self.stream.flush());
        self.out.clear();
        sent.map_err(|error| format!("the connection broke: {error}"))
    }

    /// Bytes that wait to be sent.
    pub(crate) fn unsent(&self) -> usize {
        self.out.len()
    }

    /// Sends the output and waits for the method of that name; what else comes is dropped.
    pub(crate) fn expect(&mut self, name: &str) -> Result<Vec<u8>, String> {
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
    pub(crate) fn next(&mut self, until: Option<Instant>) -> Result<Option<Event>, String> {
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
            Method::BasicGetOk {
                delivery_tag,
                redelivered,
                exchange,
                routing_key,
                message_count,
            } => Event::Delivered(Message {
                delivery_tag,
                redelivered,
                exchange: exchange.to_owned(),
                routing_key: routing_key.to_owned(),
                left: Some(message_count),
                ..Message::default()
            }),
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
    pub(crate) fn has_message(&self) -> bool {
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
    pub(crate) fn declare(&mut self, queue: &str) -> Result<(), String> {
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
    pub(crate) fn close(mut self) -> Result<(), String> {
        let (reply_code, reply_text, class_id, method_id) = (200, "done", 0, 0);
        self.put_on(0, &Method::ConnectionClose { reply_code, reply_text, class_id, method_id });
        self.expect("connection.close-ok").map(drop)
    }
}
