//! Methods as text and back, derived from the method table: `1 queue.declare queue=q durable=true`.
//!
//! Fields that are zero, false or empty are left out. A message's properties and body follow its
//! method: `1 basic.publish routing_key=q | delivery_mode=2 "body"`. In a table, `%`
//! begins a value in octets: `%T000000006553f100` is a time.

use crate::amqp091::codec::content::{ContentHeader, write_header};
use crate::amqp091::codec::table::{TableWriter, put_table};
use crate::amqp091::codec::wire::{Reader, put_long_str, put_short_str};
use crate::amqp091::codec::{FieldValue, METHODS, MethodInfo, Properties, Table, table};
use crate::amqp091::frame;

/// Words parted by spaces, but not within quotes, braces or brackets; quotes fall away.
pub(crate) fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let (mut quoted, mut depth) = (false, 0);
    for letter in line.chars() {
        match letter {
            '"' => quoted = !quoted,
            '{' | '[' if !quoted => depth += 1,
            '}' | ']' if !quoted => depth -= 1,
            _ => {}
        }
        match letter {
            ' ' if !quoted && depth == 0 => words.push(String::new()),
            _ => words.last_mut().unwrap().push(letter),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

pub(crate) fn unquoted(text: &str) -> String {
    text.replace('"', "").replace("\\0", "\0").replace("\\r", "\r").replace("\\n", "\n")
}

/// The frames that a line stands for; bodies are split at `frame_max`.
pub(crate) fn encode(line: &str, frame_max: u32) -> Vec<u8> {
    let (method, content) = match line.split_once(" | ") {
        Some((method, content)) => (method, Some(content)),
        None => (line, None),
    };
    let words = words(method);
    let channel: u16 = words[0].parse().unwrap_or_else(|_| panic!("no channel: {line}"));
    let info = METHODS.iter().find(|info| info.name == words[1]);
    let info = info.unwrap_or_else(|| panic!("no method: {line}"));
    let mut out = Vec::new();
    let at = frame::begin(&mut out, frame::METHOD, channel);
    out.extend_from_slice(&info.class.to_be_bytes());
    out.extend_from_slice(&info.id.to_be_bytes());
    put_fields(info, &words[2..], &mut out);
    frame::end(&mut out, at);
    if let Some(content) = content {
        put_content(content, channel, frame_max, &mut out);
    }
    out
}

fn put_fields(info: &MethodInfo, words: &[String], out: &mut Vec<u8>) {
    for word in words {
        let name = word.split('=').next().unwrap();
        assert!(info.fields.iter().any(|field| field.0 == name), "{}: {word}", info.name);
    }
    let mut bits = 0;
    for &(name, kind) in info.fields {
        let given = words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        let raw = given.unwrap_or("");
        let number = || if raw.is_empty() { 0 } else { raw.parse::<u64>().unwrap() };
        if kind == "Bit" {
            if bits == 0 {
                out.push(0);
            }
            *out.last_mut().unwrap() |= u8::from(raw == "true") << bits;
            bits += 1;
            continue;
        }
        bits = 0;
        match kind {
            "Octet" => out.push(number() as u8),
            "Short" => out.extend_from_slice(&(number() as u16).to_be_bytes()),
            "Long" => out.extend_from_slice(&(number() as u32).to_be_bytes()),
            "LongLong" => out.extend_from_slice(&number().to_be_bytes()),
            "ShortStr" => put_short_str(out, &unquoted(raw)),
            "LongStr" => put_long_str(out, unquoted(raw).as_bytes()),
            "Table" => put_table(out, |table| put_entries(raw, table)),
            _ => {}
        }
    }
}

/// The parts of `{a:1,b:[x,y]}` or `[x,y]` that commas part on the outermost level.
pub(crate) fn parts(bracketed: &str) -> Vec<&str> {
    let inner = bracketed.get(1..bracketed.len().saturating_sub(1)).unwrap_or("");
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, letter) in inner.char_indices() {
        match letter {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !inner.is_empty() {
        parts.push(&inner[start..]);
    }
    parts
}

fn put_entries(text: &str, table: &mut TableWriter<'_>) {
    for part in parts(text) {
        let (name, value) = part.split_once(':').expect("name:value");
        if let Ok(number) = value.parse() {
            table.int(name, number);
        } else if value == "true" || value == "false" {
            table.bool(name, value == "true");
        } else if value.starts_with('{') {
            table.table(name, |inner| put_entries(value, inner));
        } else if value.starts_with('[') {
            table.value(name).array(&parts(value), |value, text| value.text(text));
        } else if let Some(raw) = value.strip_prefix('%') {
            put_short_str(table.out, name);
            table.out.extend_from_slice(&raw_value(raw));
        } else {
            table.text(name, &unquoted(value));
        }
    }
}

/// A value of a type that has no form of its own here: the type's letter and its bytes in hexadecimal.
fn raw_value(text: &str) -> Vec<u8> {
    let (kind, digits) = text.split_at(1);
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal digits");
    kind.bytes().chain((0..digits.len()).step_by(2).map(byte)).collect()
}

fn put_content(text: &str, channel: u16, frame_max: u32, out: &mut Vec<u8>) {
    let words = words(text);
    let body = unquoted(words.last().filter(|word| word.starts_with('"')).map_or("", |word| word));
    let mut headers = Vec::new();
    let mut given = Properties::default();
    for word in words.iter().filter(|word| !word.starts_with('"')) {
        let (name, value) = word.split_once('=').expect("property=value");
        match name {
            "content_type" => given.content_type = Some(value),
            "headers" => put_table(&mut headers, |table| put_entries(value, table)),
            "delivery_mode" => given.delivery_mode = Some(value.parse().unwrap()),
            "priority" => given.priority = Some(value.parse().unwrap()),
            "reply_to" => given.reply_to = Some(value),
            "expiration" => given.expiration = Some(value),
            "user_id" => given.user_id = Some(value),
            "content_encoding" => given.content_encoding = Some(value),
            "correlation_id" => given.correlation_id = Some(value),
            "message_id" => given.message_id = Some(value),
            "timestamp" => given.timestamp = Some(value.parse().unwrap()),
            "type" => given.kind = Some(value),
            "app_id" => given.app_id = Some(value),
            "cluster_id" => given.cluster_id = Some(value),
            _ => panic!("no property {name}"),
        }
    }
    if !headers.is_empty() {
        given.headers = Some(table::checked(&headers[4..]).unwrap());
    }
    let mut properties = Vec::new();
    given.encode(&mut properties);
    write_header(out, channel, body.len() as u64, &properties);
    frame::write_body(out, channel, body.as_bytes(), frame_max);
}

/// All frames in `bytes`, one line each; contents on the line of their method.
pub(crate) fn decode(mut bytes: &[u8], frame_max: u32) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut missing = 0;
    if let Some(rest) = bytes.strip_prefix(&frame::PROTOCOL_HEADER) {
        lines.push("AMQP 0 0 9 1".to_owned());
        bytes = rest;
    }
    while !bytes.is_empty() {
        let (frame, used) = frame::read(bytes, frame_max).unwrap().expect("whole frames only");
        bytes = &bytes[used..];
        match frame.kind {
            frame::METHOD => {
                assert_eq!(missing, 0, "a body is not complete");
                lines.push(method_text(frame.channel, frame.payload));
            }
            frame::HEADER => {
                let header = ContentHeader::decode(frame.payload).unwrap();
                missing = header.body_bytes as usize;
                let line = lines.last_mut().unwrap();
                line.push_str(" |");
                line.push_str(&properties_text(&Properties::decode(header.properties).unwrap()));
                if missing == 0 {
                    line.push_str(" \"\"");
                }
            }
            frame::BODY => {
                missing -= frame.payload.len();
                let text = String::from_utf8_lossy(frame.payload);
                lines.last_mut().unwrap().push_str(&format!(" \"{text}\""));
            }
            _ => lines.push("heartbeat".to_owned()),
        }
    }
    assert_eq!(missing, 0, "a body is not complete");
    lines
}

fn method_text(channel: u16, payload: &[u8]) -> String {
    let mut reader = Reader::new(payload);
    let ids = (reader.short().unwrap(), reader.short().unwrap());
    let info = METHODS.iter().find(|info| (info.class, info.id) == ids).unwrap();
    let mut line = format!("{channel} {}", info.name);
    for &(name, kind) in info.fields {
        let value = match kind {
            "Octet" => reader.octet().unwrap().to_string(),
            "Short" => reader.short().unwrap().to_string(),
            "Long" => reader.long().unwrap().to_string(),
            "LongLong" => reader.longlong().unwrap().to_string(),
            "Bit" => reader.bit().unwrap().to_string(),
            "ShortStr" => quoted(reader.short_str().unwrap()),
            "LongStr" => quoted(&String::from_utf8_lossy(reader.long_str().unwrap())),
            _ => table_text(Table::read(&mut reader).unwrap()),
        };
        if !matches!(value.as_str(), "0" | "false" | "" | "{}") {
            line.push_str(&format!(" {name}={value}"));
        }
    }
    reader.finish().unwrap();
    line
}

pub(crate) fn quoted(text: &str) -> String {
    if text.contains(' ') { format!("\"{text}\"") } else { text.to_owned() }
}

fn table_text(table: Table<'_>) -> String {
    let entries: Vec<_> = table
        .entries()
        .map(|entry| format!("{}:{}", entry.name, value_text(entry.value)))
        .collect();
    format!("{{{}}}", entries.join(","))
}

fn value_text(value: FieldValue<'_>) -> String {
    match value {
        FieldValue::Int(value) => value.to_string(),
        FieldValue::Bool(value) => value.to_string(),
        FieldValue::LongStr(bytes) => quoted(&String::from_utf8_lossy(bytes)),
        FieldValue::Timestamp(seconds) => format!("@{seconds}"),
        FieldValue::Table(table) => table_text(table),
        FieldValue::Array(array) => {
            let values: Vec<_> = array.values().map(value_text).collect();
            format!("[{}]", values.join(","))
        }
        other => format!("{other:?}"),
    }
}

fn properties_text(properties: &Properties<'_>) -> String {
    let mut text = String::new();
    let mut put = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            text.push_str(&format!(" {name}={value}"));
        }
    };
    put("content_type", properties.content_type.map(quoted));
    put("headers", properties.headers.map(table_text));
    put("delivery_mode", properties.delivery_mode.map(|value| value.to_string()));
    put("priority", properties.priority.map(|value| value.to_string()));
    put("reply_to", properties.reply_to.map(quoted));
    put("expiration", properties.expiration.map(quoted));
    put("user_id", properties.user_id.map(quoted));
    put("content_encoding", properties.content_encoding.map(quoted));
    put("correlation_id", properties.correlation_id.map(quoted));
    put("message_id", properties.message_id.map(quoted));
    put("timestamp", properties.timestamp.map(|value| value.to_string()));
    put("type", properties.kind.map(quoted));
    put("app_id", properties.app_id.map(quoted));
    put("cluster_id", properties.cluster_id.map(quoted));
    text
}
