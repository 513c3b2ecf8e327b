//! AMQP 0-9-1 frames as text, by a table of all methods. Uses nothing of our codec, which is being tested.
//!
//! ```text
//! 2 queue.declare queue=$q durable arguments={a: I 5}    a method on channel 2 (1 by default)
//! basic.publish routing-key=$q | delivery-mode=2 headers={a: S b} | body
//! frame 3 1 "bytes"                                                  a frame of any type and channel
//! raw "AMQP\x00\x00\x09\x01"                                         bytes as they are
//! channel.close ;; channel.open                                      several of them in one write
//! ```
//! `<x*5>` stands for `xxxxx`.
//!
//! Options: `none` sends nothing by itself; `bare` offers no capabilities; `user NAME PASSWORD`;
//! `vhost NAME`. Channel 1 is open.

mod schema;
mod table;

use super::connection::{Encoded, Wire, read_exact};
use super::release::Release;
use super::text::{Cursor, escape, repeated, show};
use schema::{Kind, Method, PROPERTIES};
use std::io::Write;
use std::net::TcpStream;

/// The scenarios, by file.
pub(super) const SCENARIOS: &[(&str, &str)] = &[
    ("queues", include_str!("queues.txt")),
    ("arguments", include_str!("arguments.txt")),
    ("exchanges", include_str!("exchanges.txt")),
    ("headers", include_str!("headers.txt")),
    ("messages", include_str!("messages.txt")),
    ("dead letters", include_str!("dead-letters.txt")),
    ("consumers", include_str!("consumers.txt")),
    ("channels", include_str!("channels.txt")),
    ("order", include_str!("order.txt")),
    ("names", include_str!("names.txt")),
    ("connections", include_str!("connections.txt")),
];

const PROTOCOL_HEADER: &[u8] = b"AMQP\x00\x00\x09\x01";
const FRAME_END: u8 = 0xce;
const METHOD: u8 = 1;
const HEADER: u8 = 2;
const BODY: u8 = 3;
const HEARTBEAT: u8 = 8;
/// What a client offers unless the scenario says `bare`.
const CLIENT_PROPERTIES: &str = "{capabilities: F {publisher_confirms: t true, basic.nack: t true, \
    consumer_cancel_notify: t true, exchange_exchange_bindings: t true, connection.blocked: t true, \
    authentication_failure_close: t true}}";

/// A connection's frames, and the content that is under way.
#[derive(Debug, Default)]
pub(super) struct Frames {
    content: Option<Content>,
}

/// A message of which not all frames have come.
#[derive(Debug)]
struct Content {
    channel: u16,
    method: String,
    properties: String,
    body: Vec<u8>,
    /// Of the whole body, once the header has come.
    size: Option<u64>,
}

impl Content {
    fn show(&self) -> String {
        let Content { channel, method, properties, body, .. } = self;
        let body = match body.len() {
            0..=200 => show(body),
            length => format!("{length} bytes"),
        };
        format!("{channel} {method} | {properties} | {body}")
    }
}

impl Wire for Frames {
    const COMPARED: Release = Release { name: "RabbitMQ", version: "4.3.6" };
    const AT_ONCE: usize = 32;

    fn open(stream: &mut TcpStream, options: &[String]) -> Result<Frames, String> {
        let mut properties = CLIENT_PROPERTIES;
        let (mut user, mut password, mut vhost) = ("guest", "guest", "/");
        for option in options {
            let words: Vec<&str> = option.split(' ').collect();
            match words[..] {
                ["none"] => return Ok(Frames::default()),
                ["bare"] => properties = "{}",
                ["user", name, secret] => (user, password) = (name, secret),
                ["vhost", name] => vhost = name,
                _ => return Err(format!("'{option}' is no option")),
            }
        }
        let start_ok = format!(
            "0 connection.start-ok client-properties={properties} mechanism=PLAIN locale=en_US \
             response=\"\\x00{user}\\x00{password}\""
        );
        send(stream, PROTOCOL_HEADER)?;
        expect(stream, "connection.start")?;
        send(stream, &encode(&start_ok)?.bytes)?;
        expect(stream, "connection.tune")?;
        let tune_ok = "0 connection.tune-ok channel-max=2047 frame-max=131072 heartbeat=0";
        send(stream, &encode(tune_ok)?.bytes)?;
        send(stream, &encode(&format!("0 connection.open virtual-host=\"{vhost}\""))?.bytes)?;
        expect(stream, "connection.open-ok")?;
        send(stream, &encode("channel.open")?.bytes)?;
        expect(stream, "channel.open-ok")?;
        Ok(Frames::default())
    }

    fn greeting(stream: &mut TcpStream) -> Result<String, String> {
        send(stream, PROTOCOL_HEADER)?;
        expect(stream, "connection.start")
    }

    fn encode(&mut self, step: &str) -> Result<Encoded, String> {
        encode(step)
    }

    fn decode(&mut self, input: &mut Vec<u8>, lines: &mut Vec<String>) -> Vec<u8> {
        let mut reply = Vec::new();
        loop {
            if input.starts_with(b"AMQP") && input.len() >= 8 {
                let header: Vec<u8> = input.drain(..8).collect();
                lines.push(format!("raw {}", escape(&header)));
                continue;
            }
            let Some((kind, channel, payload)) = take_frame(input) else { return reply };
            self.take(kind, channel, &payload, lines);
            if (kind, channel, &payload[..]) == (METHOD, 0, &[0, 10, 0, 50]) {
                reply.extend(frame(METHOD, 0, &[0, 10, 0, 51]));
            }
        }
    }

    fn normalize(line: &str) -> String {
        // Which product it is differs, and with it the order of mechanisms.
        if let Some((before, _)) = line.split_once("connection.start ") {
            return format!("{before}connection.start *");
        }
        let mut text = line.to_owned();
        for prefix in ["amq.gen-", "amq.ctag-", "amq_"] {
            text = blank(&text, prefix);
        }
        blank_timestamps(&text)
    }
}

impl Frames {
    fn take(&mut self, kind: u8, channel: u16, payload: &[u8], lines: &mut Vec<String>) {
        match (kind, &mut self.content) {
            (HEARTBEAT, _) => {}
            (METHOD, _) => {
                let method = method_text(payload);
                let carries_content = schema::find_number(payload).is_some_and(Method::has_content);
                if !carries_content {
                    lines.push(format!("{channel} {method}"));
                    return;
                }
                let (properties, body) = (String::new(), Vec::new());
                self.content = Some(Content { channel, method, properties, body, size: None });
            }
            (HEADER, Some(content)) if payload.len() >= 14 => {
                let size = payload[4..12].try_into().map_or(0, u64::from_be_bytes);
                content.size = Some(size);
                content.properties = properties_text(&payload[12..]);
            }
            (BODY, Some(content)) => content.body.extend_from_slice(payload),
            _ => lines.push(format!("frame {kind} {channel} \"{}\"", escape(payload))),
        }
        let is_whole = |content: &mut Content| content.size == Some(content.body.len() as u64);
        if let Some(content) = self.content.take_if(is_whole) {
            lines.push(content.show());
        }
    }
}

fn send(stream: &mut TcpStream, bytes: &[u8]) -> Result<(), String> {
    stream.write_all(bytes).map_err(|error| format!("while the connection was opened: {error}"))
}

/// Reads one frame, which has to be this method.
fn expect(stream: &mut TcpStream, name: &str) -> Result<String, String> {
    let head = read_exact(stream, 7)?;
    let length = u32::from_be_bytes([head[3], head[4], head[5], head[6]]) as usize;
    let rest = read_exact(stream, length.min(1 << 20) + 1)?;
    let text = method_text(&rest[..rest.len() - 1]);
    match text.split(' ').next() {
        Some(came) if came == name => Ok(text),
        _ => Err(format!("{name} was to come, not: {text}")),
    }
}

fn take_frame(input: &mut Vec<u8>) -> Option<(u8, u16, Vec<u8>)> {
    let head: [u8; 7] = input.get(..7)?.try_into().ok()?;
    let length = u32::from_be_bytes([head[3], head[4], head[5], head[6]]) as usize;
    let payload = input.get(7..7 + length)?.to_vec();
    input.get(7 + length)?;
    input.drain(..length + 8);
    Some((head[0], u16::from_be_bytes([head[1], head[2]]), payload))
}

fn frame(kind: u8, channel: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend(channel.to_be_bytes());
    bytes.extend((payload.len() as u32).to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes.push(FRAME_END);
    bytes
}

/// The bytes of a step.
fn encode(step: &str) -> Result<Encoded, String> {
    let mut whole = Encoded::default();
    for part in repeated(step).split(" ;; ") {
        let Encoded { bytes, is_answered } = encode_one(part)?;
        whole.bytes.extend(bytes);
        whole.is_answered |= is_answered;
    }
    Ok(whole)
}

/// The bytes of a method with its content, of a frame, or as they are.
fn encode_one(step: &str) -> Result<Encoded, String> {
    let mut cursor = Cursor(step);
    let mut word = cursor.word();
    match word {
        "raw" => return Ok(Encoded { bytes: cursor.bytes()?, is_answered: true }),
        "frame" => {
            let (kind, channel) = (cursor.number()?, cursor.number()?);
            let bytes = frame(kind, channel, &cursor.bytes()?);
            return Ok(Encoded { bytes, is_answered: false });
        }
        _ => {}
    }
    let channel = word.parse().ok();
    if channel.is_some() {
        word = cursor.word();
    }
    let channel: u16 = channel.unwrap_or(1);
    let method = schema::find(word).ok_or_else(|| format!("'{word}' is no method"))?;
    let (fields, content) = match cursor.0.split_once(" | ") {
        Some((fields, content)) => (fields, Some(content)),
        None => (cursor.0, None),
    };
    let values = named_values(fields)?;
    let mut payload = Vec::new();
    payload.extend(method.class.to_be_bytes());
    payload.extend(method.number.to_be_bytes());
    schema::encode_fields(&method.fields(), &values, &mut payload)?;
    let mut bytes = frame(METHOD, channel, &payload);
    if let Some(content) = content {
        bytes.extend(encode_content(channel, content)?);
    }
    let no_wait = values.iter().any(|(name, _)| name == "no-wait");
    Ok(Encoded { bytes, is_answered: method.is_answered() && !no_wait })
}

/// `properties | body`: a content header and body frames.
fn encode_content(channel: u16, content: &str) -> Result<Vec<u8>, String> {
    let (properties, body) = content.split_once('|').ok_or("a body belongs behind '|'")?;
    let body = body_bytes(body.trim())?;
    let values = named_values(properties)?;
    let mut payload = vec![0, 60, 0, 0];
    payload.extend((body.len() as u64).to_be_bytes());
    let mut flags = 0u16;
    let mut list = Vec::new();
    for (at, (name, kind)) in PROPERTIES.iter().enumerate() {
        if let Some((_, value)) = values.iter().find(|(given, _)| given == name) {
            flags |= 1 << (15 - at);
            schema::encode_field(*kind, value, &mut list)?;
        }
    }
    if let Some((name, _)) =
        values.iter().find(|(name, _)| PROPERTIES.iter().all(|(it, _)| it != name))
    {
        return Err(format!("'{name}' is no property"));
    }
    payload.extend(flags.to_be_bytes());
    payload.extend(list);
    let mut bytes = frame(HEADER, channel, &payload);
    for part in body.chunks(131_064) {
        bytes.extend(frame(BODY, channel, part));
    }
    Ok(bytes)
}

/// A body as text, or `LETTER * COUNT`.
fn body_bytes(text: &str) -> Result<Vec<u8>, String> {
    if let Some((letter, count)) = text.split_once(" * ") {
        let count: usize = count.parse().map_err(|_| format!("'{count}' is no count"))?;
        return Ok(letter.repeat(count).into_bytes());
    }
    Cursor(text).bytes()
}

/// `name=value name ...` as pairs; a name alone is a bit that is set.
fn named_values(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut cursor = Cursor(text);
    let mut values = Vec::new();
    while !cursor.is_at_end() {
        let name = cursor.word().to_owned();
        if name.is_empty() {
            return Err(format!("a name is missing at '{}'", cursor.0));
        }
        let mut value = "true".to_owned();
        if cursor.0.starts_with('=') {
            cursor.0 = &cursor.0[1..];
            let before = cursor.0;
            if cursor.0.starts_with('{') {
                table::skip(&mut cursor)?;
            } else if !cursor.0.starts_with(' ') {
                cursor.bytes()?;
            }
            value = before[..before.len() - cursor.0.len()].to_owned();
        }
        values.push((name, value));
    }
    Ok(values)
}

fn method_text(payload: &[u8]) -> String {
    let Some(method) = schema::find_number(payload) else {
        return format!("method \"{}\"", escape(payload));
    };
    let mut text = method.name().to_owned();
    match schema::show_fields(&method.fields(), &payload[4..]) {
        Some(fields) => text.push_str(&fields),
        None => text.push_str(&format!(" malformed \"{}\"", escape(&payload[4..]))),
    }
    text
}

/// Flags and property list as `name=value ...`.
fn properties_text(bytes: &[u8]) -> String {
    let flags = u16::from_be_bytes([bytes[0], bytes[1]]);
    let present = PROPERTIES.iter().enumerate().filter(|(at, _)| flags & (1 << (15 - at)) != 0);
    let fields: Vec<(&str, Kind)> = present.map(|(_, field)| *field).collect();
    let text = schema::show_fields(&fields, &bytes[2..]);
    text.map_or_else(
        || format!("malformed \"{}\"", escape(bytes)),
        |text| text.trim_start().to_owned(),
    )
}

/// What follows this prefix in a word, as one star.
fn blank(text: &str, prefix: &str) -> String {
    let mut parts = text.split(prefix);
    let mut blanked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find([' ', '"', '\'', ',', '}']).unwrap_or(part.len());
        blanked.push_str(prefix);
        blanked.push('*');
        blanked.push_str(&part[end..]);
    }
    blanked
}

/// Times of now as one star: `T 1764300000`.
fn blank_timestamps(text: &str) -> String {
    let mut parts = text.split("T 17");
    let mut blanked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(part.len());
        blanked.push_str("T *");
        blanked.push_str(&part[end..]);
    }
    blanked
}

#[cfg(test)]
mod tests;
