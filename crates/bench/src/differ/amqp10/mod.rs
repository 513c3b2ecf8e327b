//! AMQP 1.0 frames as text, by a table of all types. Uses nothing of our codec, which is being tested.
//!
//! ```text
//! 1 attach name=r handle=0 role=receiver source={q($a)} target={}    a frame on channel 1 (0 by default)
//! transfer handle=0 delivery-id=0 | header durable | properties subject=s | "body"
//! transfer handle=0 delivery-id=1 state=transactional{txn-id=t0} | value declare{}
//! disposition role=receiver first=0 settled state=accepted{}
//! frame 0 0 "bytes"                                                  a frame of any type and channel
//! raw "AMQP\x00\x01\x00\x00"                                         bytes as they are
//! flow handle=0 link-credit=1 ;; close                               several of them in one write
//! ```
//! `q($a)` is the address of a queue; `t0` the id of the first transaction that the broker has declared; in a
//! receiver's dispositions 0 is the first delivery of the session. `<x*5>` stands for `xxxxx`. `value.rs` has
//! the notation of values.
//!
//! Options: `none` sends nothing by itself; `unopened` stops behind the login; `unbegun` behind the open
//! frame. Otherwise session 0 has begun.
//!
//! What brokers choose is left out: windows, how much credit, handles, tags, capabilities.

mod links;
mod schema;
mod value;

use super::connection::{Encoded, Wire, read_exact};
use super::release::Release;
use super::text::{Cursor, escape, repeated};
use links::{Sessions, without_info};
use schema::{Composite, SECTIONS};
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;
use value::{Value, put_composite, show_fields, show_value, take_field};

/// The scenarios, by file.
pub(super) const SCENARIOS: &[(&str, &str)] = &[
    ("connections", include_str!("connections.txt")),
    ("sessions", include_str!("sessions.txt")),
    ("links", include_str!("links.txt")),
    ("messages", include_str!("messages.txt")),
    ("outcomes", include_str!("outcomes.txt")),
    ("transactions", include_str!("transactions.txt")),
];

const AMQP_HEADER: &[u8] = b"AMQP\x00\x01\x00\x00";
const SASL_HEADER: &[u8] = b"AMQP\x03\x01\x00\x00";
const AMQP: u8 = 0;
const SASL: u8 = 1;
/// Fields in which brokers differ by right.
const CHOSEN: &[&str] = &[
    "handle",
    "unsettled",
    "initial-delivery-count",
    "max-message-size",
    "offered-capabilities",
    "desired-capabilities",
    "properties",
    "delivery-id",
    "delivery-tag",
    "batchable",
    "outcomes",
    "default-outcome",
    "capabilities",
    "timeout",
    "info",
];

/// A connection's frames, and what is known of its sessions.
#[derive(Debug, Default)]
pub(super) struct Frames {
    sessions: Sessions,
    /// A close frame has come.
    is_over: bool,
}

impl Wire for Frames {
    const COMPARED: Release = Release { name: "Artemis", version: "2.44.0" };
    const AT_ONCE: usize = 16;
    /// Artemis hands work to many threads.
    const ANSWER: Duration = Duration::from_secs(6);
    const SILENCE: Duration = Duration::from_millis(300);

    fn open(stream: &mut TcpStream, options: &[String]) -> Result<Frames, String> {
        let mut frames = Frames::default();
        let has = |name: &str| options.iter().any(|option| option == name);
        if let Some(other) =
            options.iter().find(|it| !["none", "unopened", "unbegun"].contains(&it.as_str()))
        {
            return Err(format!("'{other}' is no option"));
        }
        if has("none") {
            return Ok(frames);
        }
        log_in(stream)?;
        if has("unopened") {
            return Ok(frames);
        }
        open(stream, &mut frames)?;
        if has("unbegun") {
            return Ok(frames);
        }
        send(stream, &frames.encode_one("begin")?.bytes)?;
        let begun = expect(stream, "begin")?;
        frames.sessions.begun(begun.channel, &begun.fields);
        Ok(frames)
    }

    fn greeting(stream: &mut TcpStream) -> Result<String, String> {
        log_in(stream)?;
        let opened = open(stream, &mut Frames::default())?;
        Ok(show_value(&Value::List(opened.fields)))
    }

    fn encode(&mut self, step: &str) -> Result<Encoded, String> {
        let mut whole = Encoded::default();
        for part in repeated(&queues(step)?).split(" ;; ") {
            let Encoded { bytes, is_answered } = self.encode_one(part)?;
            whole.bytes.extend(bytes);
            whole.is_answered |= is_answered;
        }
        Ok(whole)
    }

    fn decode(&mut self, input: &mut Vec<u8>, lines: &mut Vec<String>) -> Vec<u8> {
        loop {
            if input.starts_with(b"AMQP") && input.len() >= 8 {
                let header: Vec<u8> = input.drain(..8).collect();
                lines.push(format!("raw {}", escape(&header)));
                continue;
            }
            let Some(frame) = take_frame(input) else { return Vec::new() };
            self.take(frame, lines);
        }
    }

    fn normalize(line: &str) -> String {
        line.to_owned()
    }

    fn is_over(&self) -> bool {
        self.is_over
    }

    /// What comes on one link and what becomes of deliveries on another is in no order.
    fn arrange(lines: &mut [String]) {
        lines.sort_by_key(|line| line.contains(" outcome "));
    }
}

/// A frame that has come.
struct Frame {
    kind: u8,
    channel: u16,
    body: Vec<u8>,
}

/// A performative that has come.
struct Came {
    channel: u16,
    composite: &'static Composite,
    fields: Vec<Value>,
}

impl Frames {
    fn take(&mut self, frame: Frame, lines: &mut Vec<String>) {
        // An empty frame says only that the peer is there.
        if frame.body.is_empty() {
            return;
        }
        let mut rest = &frame.body[..];
        let value = value::read(&mut rest);
        let Some((composite, fields)) = value.as_ref().and_then(Value::composite) else {
            let Frame { kind, channel, body } = frame;
            lines.push(format!("frame {kind} {channel} \"{}\"", escape(&body)));
            return;
        };
        let came = Came { channel: frame.channel, composite, fields: fields.to_vec() };
        self.show(&came, rest, lines);
    }

    /// Writes a performative down, without what brokers choose.
    fn show(&mut self, came: &Came, payload: &[u8], lines: &mut Vec<String>) {
        let Came { channel, composite, fields } = came;
        let name = composite.name;
        let channel = self.sessions.ours(*channel, name, fields);
        let shown = |without: &[&str]| show_fields(composite, fields, without).join(" ");
        let text = match name {
            "open" => "open".to_owned(),
            "begin" => format!("{channel} begin"),
            "sasl-mechanisms" => name.to_owned(),
            "attach" => self.sessions.attached(channel, fields, &shown(CHOSEN)),
            "flow" => match self.sessions.flow(channel, fields) {
                Some(text) => text,
                None => return,
            },
            "transfer" => match self.sessions.transfer(channel, fields, payload) {
                Some((head, message)) => format!("{head} | {}", message_text(&message)),
                None => return,
            },
            "disposition" => {
                lines.extend(self.sessions.outcomes(channel, fields));
                return;
            }
            "detach" => self.sessions.detached(channel, fields, &shown(CHOSEN)),
            "close" => {
                self.is_over = true;
                format!("close {}", shown(&[]))
            }
            "end" => format!("{channel} {name} {}", shown(&[])),
            _ => format!("{name} {}", shown(&[])),
        };
        lines.push(without_info(text.trim_end()));
    }

    /// The bytes of a performative with its message, of a frame, or as they are.
    fn encode_one(&mut self, step: &str) -> Result<Encoded, String> {
        let mut cursor = Cursor(step);
        let mut word = cursor.word();
        match word {
            "raw" => return Ok(Encoded { bytes: cursor.bytes()?, is_answered: true }),
            "frame" => {
                let (kind, channel) = (cursor.number()?, cursor.number()?);
                let bytes = frame(kind, channel, &cursor.bytes()?);
                return Ok(Encoded { bytes, is_answered: true });
            }
            _ => {}
        }
        let number = word.parse().ok();
        if number.is_some() {
            word = cursor.word();
        }
        let channel: u16 = number.unwrap_or(0);
        let composite = schema::find(word).ok_or_else(|| format!("'{word}' is no frame"))?;
        let (fields, message) = match cursor.0.split_once(" | ") {
            Some((fields, message)) => (fields, Some(message)),
            None => (cursor.0, None),
        };
        let mut cursor = Cursor(fields);
        let mut fields = Vec::new();
        while !cursor.is_at_end() {
            fields.push(take_field(&mut cursor)?);
        }
        let is_answered = is_answered(word, &fields);
        self.sessions.complete(channel, word, &mut fields);
        let mut body = Vec::new();
        put_composite(composite, &fields, &mut body)?;
        for section in message.iter().flat_map(|message| message.split(" | ")) {
            encode_section(&self.sessions.named(section), &mut body)?;
        }
        let kind = if word.starts_with("sasl") { SASL } else { AMQP };
        Ok(Encoded { bytes: frame(kind, channel, &body), is_answered })
    }
}

/// Whether the broker has to answer.
fn is_answered(word: &str, fields: &[(String, String)]) -> bool {
    let has = |name: &str| fields.iter().any(|(it, value)| it == name && value == "true");
    let is_credit = |(name, value): &(String, String)| name == "link-credit" && value != "0";
    match word {
        "transfer" => !has("settled") && !has("more") && !has("aborted"),
        // Deliveries may come.
        "flow" => has("drain") || has("echo") || fields.iter().any(is_credit),
        "disposition" => false,
        _ => true,
    }
}

/// `q(name)` written out: a queue's address.
fn queues(step: &str) -> Result<String, String> {
    let mut text = String::new();
    let mut rest = step;
    while let Some((before, behind)) = rest.split_once("q(") {
        let (name, behind) = behind.split_once(')').ok_or("q( has no end")?;
        text.push_str(&format!("{before}address={name} capabilities=queue"));
        rest = behind;
    }
    Ok(text + rest)
}

/// Takes a section of a message: a composite by name, another by name and value, or a body.
fn encode_section(text: &str, out: &mut Vec<u8>) -> Result<(), String> {
    let mut cursor = Cursor(text);
    if text.starts_with('"') {
        out.extend([0, 0x53, 0x75]);
        value::put_long(0xb0, &cursor.bytes()?, out);
        return Ok(());
    }
    let word = cursor.word();
    if word == "raw" {
        out.extend(cursor.bytes()?);
        return Ok(());
    }
    if let Some((code, _)) = SECTIONS.iter().find(|(_, name)| *name == word) {
        out.extend([0, 0x53, *code]);
        return value::encode(&mut cursor, out);
    }
    let composite = schema::find(word).ok_or_else(|| format!("'{word}' is no section"))?;
    let mut fields = Vec::new();
    while !cursor.is_at_end() {
        fields.push(take_field(&mut cursor)?);
    }
    put_composite(composite, &fields, out)
}

/// A message's sections as text; annotations are the brokers' own.
fn message_text(mut bytes: &[u8]) -> String {
    let mut sections = Vec::new();
    while !bytes.is_empty() {
        let before = bytes;
        let Some(section) = value::read(&mut bytes) else {
            sections.push(format!("malformed \"{}\"", escape(before)));
            break;
        };
        if let Some((composite, fields)) = section.composite() {
            let fields = show_fields(composite, fields, &["first-acquirer"]);
            if !fields.is_empty() {
                sections.push(format!("{} {}", composite.name, fields.join(" ")));
            }
            continue;
        }
        let Value::Described(descriptor, value) = &section else {
            sections.push(show_value(&section));
            continue;
        };
        let number = descriptor.number();
        let name = SECTIONS.iter().find(|(code, _)| number == Some(u64::from(*code)));
        match (name.map(|(_, name)| *name), &**value) {
            (Some("annotations" | "delivery-annotations"), _) => {}
            (Some("data"), Value::Binary(body)) if body.len() > 200 => {
                sections.push(format!("{} bytes", body.len()));
            }
            (Some("data"), Value::Binary(body)) => sections.push(format!("\"{}\"", escape(body))),
            (Some(name), value) => sections.push(format!("{name} {}", show_value(value))),
            (None, _) => sections.push(show_value(&section)),
        }
    }
    sections.join(" | ")
}

fn frame(kind: u8, channel: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = (body.len() as u32 + 8).to_be_bytes().to_vec();
    bytes.extend([2, kind]);
    bytes.extend(channel.to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

fn take_frame(input: &mut Vec<u8>) -> Option<Frame> {
    let head: [u8; 8] = input.get(..8)?.try_into().ok()?;
    let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
    let begin = usize::from(head[4]) * 4;
    let body = input.get(begin..length.max(begin))?.to_vec();
    input.drain(..length.max(8));
    Some(Frame { kind: head[5], channel: u16::from_be_bytes([head[6], head[7]]), body })
}

fn send(stream: &mut TcpStream, bytes: &[u8]) -> Result<(), String> {
    stream.write_all(bytes).map_err(|error| format!("while the connection was opened: {error}"))
}

fn expect_header(stream: &mut TcpStream, header: &[u8]) -> Result<(), String> {
    match read_exact(stream, 8)? {
        came if came == header => Ok(()),
        came => Err(format!("the header {} came", escape(&came))),
    }
}

fn log_in(stream: &mut TcpStream) -> Result<(), String> {
    send(stream, SASL_HEADER)?;
    expect_header(stream, SASL_HEADER)?;
    expect(stream, "sasl-mechanisms")?;
    send(stream, &Frames::default().encode_one("sasl-init mechanism=ANONYMOUS")?.bytes)?;
    expect(stream, "sasl-outcome")?;
    send(stream, AMQP_HEADER)?;
    expect_header(stream, AMQP_HEADER)
}

/// Exchanges open frames; returns the peer's.
fn open(stream: &mut TcpStream, frames: &mut Frames) -> Result<Came, String> {
    // Container ids tell connections apart.
    let port = stream.local_addr().map_or(0, |address| address.port());
    send(stream, &frames.encode_one(&format!("open container-id=differ-{port}"))?.bytes)?;
    expect(stream, "open")
}

/// Reads one frame, which has to be this performative.
fn expect(stream: &mut TcpStream, name: &str) -> Result<Came, String> {
    let mut bytes = read_exact(stream, 8)?;
    let length = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize;
    bytes.extend(read_exact(stream, length.clamp(8, 1 << 20) - 8)?);
    let frame = take_frame(&mut bytes).ok_or("half a frame came")?;
    let value = value::read(&mut &frame.body[..]).ok_or("a frame that is none came")?;
    match value.composite() {
        Some((composite, fields)) if composite.name == name => {
            Ok(Came { channel: frame.channel, composite, fields: fields.to_vec() })
        }
        _ => Err(format!("{name} was to come, not: {}", show_value(&value))),
    }
}

#[cfg(test)]
mod tests;
