//! AMQP 1.0's values as text and as bytes. Uses nothing of our codec, which is being tested.
//!
//! ```text
//! null  true  "a string"  :symbol  :"a symbol"  x "binary"
//! ub 1  us 1  ui 1  ul 1  b -1  s -1  i -1  l -1  ts 1     numbers by type: unsigned, signed, a timestamp
//! f 1.5  d 1.5  id "16 octets"
//! [1st, 2nd]  {key: value}  @[:a, :b]                      a list, a map, an array of symbols
//! source{address=q id=(ul 5)}                              a type of the schema; brackets where blanks are
//! the :descriptor value                                    any described value
//! ```

use super::schema::{self, Composite, Kind};
use crate::differ::text::{Cursor, escape, show};

/// Moves behind a value.
pub(super) fn skip(cursor: &mut Cursor<'_>) -> Result<(), String> {
    encode(cursor, &mut Vec::new())
}

/// Takes a value and appends its bytes.
pub(super) fn encode(cursor: &mut Cursor<'_>, out: &mut Vec<u8>) -> Result<(), String> {
    cursor.0 = cursor.0.trim_start();
    match cursor.0.chars().next() {
        Some('"') => put_long(0xb1, &cursor.bytes()?, out),
        Some(':') => {
            cursor.take(':');
            put_long(0xb3, &symbol(cursor)?, out);
        }
        Some('[') => put_compound(0xd0, &items(cursor, '[', ']')?, out),
        Some('{') => put_compound(0xd1, &pairs(cursor)?, out),
        _ => encode_word(cursor, out)?,
    }
    Ok(())
}

fn encode_word(cursor: &mut Cursor<'_>, out: &mut Vec<u8>) -> Result<(), String> {
    let word = cursor.word();
    match word {
        "null" => out.push(0x40),
        "true" => out.push(0x41),
        "false" => out.push(0x42),
        "x" => put_long(0xb0, &binary(cursor)?, out),
        "ub" => put(0x50, &cursor.number::<u8>()?.to_be_bytes(), out),
        "us" => put(0x60, &cursor.number::<u16>()?.to_be_bytes(), out),
        "ui" => put(0x70, &cursor.number::<u32>()?.to_be_bytes(), out),
        "ul" => put(0x80, &cursor.number::<u64>()?.to_be_bytes(), out),
        "b" => put(0x51, &cursor.number::<i8>()?.to_be_bytes(), out),
        "s" => put(0x61, &cursor.number::<i16>()?.to_be_bytes(), out),
        "i" => put(0x71, &cursor.number::<i32>()?.to_be_bytes(), out),
        "l" => put(0x81, &cursor.number::<i64>()?.to_be_bytes(), out),
        "ts" => put(0x83, &cursor.number::<i64>()?.to_be_bytes(), out),
        "f" => put(0x72, &cursor.number::<f32>()?.to_be_bytes(), out),
        "d" => put(0x82, &cursor.number::<f64>()?.to_be_bytes(), out),
        "id" => put(0x98, &binary(cursor)?, out),
        "@" => {
            let mut elements = Vec::new();
            cursor.expect('[')?;
            while !cursor.take(']') {
                cursor.take(':');
                elements.push(symbol(cursor)?);
                cursor.take(',');
            }
            put_symbols(&elements, out);
        }
        "the" => {
            out.push(0);
            encode(cursor, out)?;
            encode(cursor, out)?;
        }
        _ => {
            let composite = schema::find(word).ok_or_else(|| format!("'{word}' is no value"))?;
            encode_braced(composite, cursor, out)?;
        }
    }
    Ok(())
}

/// Takes `{name=value ...}`, the fields of a composite, and appends it.
pub(super) fn encode_braced(
    composite: &Composite,
    cursor: &mut Cursor<'_>,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    cursor.expect('{')?;
    let mut fields = Vec::new();
    while !cursor.take('}') {
        fields.push(take_field(cursor)?);
    }
    put_composite(composite, &fields, out)
}

/// Takes `name=value`, or a name alone, which is true; both as they are written.
pub(super) fn take_field(cursor: &mut Cursor<'_>) -> Result<(String, String), String> {
    let name = cursor.word().to_owned();
    if name.is_empty() {
        return Err(format!("a name is missing at '{}'", cursor.0));
    }
    if !cursor.0.starts_with('=') {
        return Ok((name, "true".to_owned()));
    }
    cursor.0 = &cursor.0[1..];
    let before = cursor.0;
    skip_field(cursor)?;
    Ok((name, before[..before.len() - cursor.0.len()].to_owned()))
}

/// Moves behind a field's value: a word, a text, or what is between brackets.
fn skip_field(cursor: &mut Cursor<'_>) -> Result<(), String> {
    if cursor.0.starts_with(['"', ':']) {
        return skip(cursor);
    }
    if !cursor.0.starts_with('(') {
        symbol(cursor)?;
    }
    if !cursor.0.starts_with(['{', '[', '(']) {
        return Ok(());
    }
    let mut depth = 0;
    loop {
        match cursor.0.chars().next().ok_or("a bracket is not closed")? {
            '"' => {
                cursor.bytes()?;
                continue;
            }
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth -= 1,
            _ => {}
        }
        let mut letters = cursor.0.chars();
        letters.next();
        cursor.0 = letters.as_str();
        if depth == 0 {
            return Ok(());
        }
    }
}

/// Appends a composite with these fields.
pub(super) fn put_composite(
    composite: &Composite,
    fields: &[(String, String)],
    out: &mut Vec<u8>,
) -> Result<(), String> {
    for (name, _) in fields {
        if composite.fields.iter().all(|field| field.name != name) {
            return Err(format!("{} has no field '{name}'", composite.name));
        }
    }
    let given = |name: &str| fields.iter().find(|(it, _)| it == name);
    let last = composite.fields.iter().rposition(|field| given(field.name).is_some());
    let mut items = Vec::new();
    for field in &composite.fields[..last.map_or(0, |last| last + 1)] {
        let mut bytes = Vec::new();
        match given(field.name) {
            Some((_, text)) => encode_field(field.kind, text, &mut bytes)?,
            None => bytes.push(0x40),
        }
        items.push(bytes);
    }
    out.extend([0, 0x53, composite.code]);
    put_compound(0xd0, &items, out);
    Ok(())
}

fn encode_field(kind: Kind, text: &str, out: &mut Vec<u8>) -> Result<(), String> {
    let mut cursor = Cursor(text);
    if text == "null" {
        out.push(0x40);
        return Ok(());
    }
    match kind {
        Kind::Bool => out.push(if text == "true" { 0x41 } else { 0x42 }),
        Kind::Role => out.push(if text == "receiver" { 0x41 } else { 0x42 }),
        Kind::Ubyte => put(0x50, &cursor.number::<u8>()?.to_be_bytes(), out),
        Kind::Ushort => put(0x60, &cursor.number::<u16>()?.to_be_bytes(), out),
        Kind::Uint => put(0x70, &cursor.number::<u32>()?.to_be_bytes(), out),
        Kind::Ulong => put(0x80, &cursor.number::<u64>()?.to_be_bytes(), out),
        Kind::Time => put(0x83, &cursor.number::<i64>()?.to_be_bytes(), out),
        Kind::Text => put_long(0xb1, &cursor.bytes()?, out),
        Kind::Symbol => put_long(0xb3, &symbol(&mut cursor)?, out),
        Kind::Binary => put_long(0xb0, &cursor.bytes()?, out),
        Kind::Symbols => {
            let symbols: Vec<Vec<u8>> = text.split('+').map(|it| it.as_bytes().to_vec()).collect();
            put_symbols(&symbols, out);
        }
        Kind::One(name) if text.starts_with('{') => {
            let composite = schema::find(name).ok_or("the schema has no such type")?;
            encode_braced(composite, &mut cursor, out)?;
        }
        Kind::One(_) | Kind::Any => {
            let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
            encode(&mut Cursor(inner.unwrap_or(text)), out)?;
        }
    }
    Ok(())
}

/// Takes a symbol, in which colons may be; one behind which a blank comes is not its own.
fn symbol(cursor: &mut Cursor<'_>) -> Result<Vec<u8>, String> {
    let mut symbol = cursor.bytes()?;
    while let Some(rest) = cursor.0.strip_prefix(':').filter(|rest| !rest.starts_with(' ')) {
        cursor.0 = rest;
        symbol.push(b':');
        symbol.extend(cursor.word().bytes());
    }
    Ok(symbol)
}

/// A symbol as it is written in scenarios.
fn show_symbol(bytes: &[u8]) -> String {
    let parts: Vec<String> = bytes.split(|byte| *byte == b':').map(show).collect();
    match parts.iter().any(|part| part.starts_with('"')) {
        true => show(bytes),
        false => parts.join(":"),
    }
}

fn binary(cursor: &mut Cursor<'_>) -> Result<Vec<u8>, String> {
    cursor.0 = cursor.0.trim_start();
    cursor.bytes()
}

fn put(code: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(code);
    out.extend_from_slice(bytes);
}

/// Appends octets with their length, in one octet where it fits: the code of the longer form is given.
pub(super) fn put_long(code: u8, bytes: &[u8], out: &mut Vec<u8>) {
    match u8::try_from(bytes.len()) {
        Ok(length) => out.extend([code - 0x10, length]),
        Err(_) => put(code, &(bytes.len() as u32).to_be_bytes(), out),
    }
    out.extend_from_slice(bytes);
}

fn put_compound(code: u8, items: &[Vec<u8>], out: &mut Vec<u8>) {
    let bytes = items.concat();
    put(code, &(bytes.len() as u32 + 4).to_be_bytes(), out);
    out.extend((items.len() as u32).to_be_bytes());
    out.extend(bytes);
}

fn put_symbols(symbols: &[Vec<u8>], out: &mut Vec<u8>) {
    let mut bytes = (symbols.len() as u32).to_be_bytes().to_vec();
    bytes.push(0xb3);
    for symbol in symbols {
        bytes.extend((symbol.len() as u32).to_be_bytes());
        bytes.extend_from_slice(symbol);
    }
    put(0xf0, &(bytes.len() as u32).to_be_bytes(), out);
    out.extend(bytes);
}

fn items(cursor: &mut Cursor<'_>, open: char, close: char) -> Result<Vec<Vec<u8>>, String> {
    let mut items = Vec::new();
    cursor.expect(open)?;
    while !cursor.take(close) {
        let mut bytes = Vec::new();
        encode(cursor, &mut bytes)?;
        items.push(bytes);
        cursor.take(',');
    }
    Ok(items)
}

fn pairs(cursor: &mut Cursor<'_>) -> Result<Vec<Vec<u8>>, String> {
    let mut items = Vec::new();
    cursor.expect('{')?;
    while !cursor.take('}') {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        encode(cursor, &mut key)?;
        cursor.expect(':')?;
        encode(cursor, &mut value)?;
        items.extend([key, value]);
        cursor.take(',');
    }
    Ok(items)
}

/// A value that has been read.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    /// The word of its type, and the number.
    Number(&'static str, String),
    Binary(Vec<u8>),
    Uuid(Vec<u8>),
    Text(Vec<u8>),
    Symbol(Vec<u8>),
    List(Vec<Value>),
    Map(Vec<(Value, Value)>),
    Array(Vec<Value>),
    Described(Box<Value>, Box<Value>),
}

impl Value {
    /// The number, where it is one.
    pub(super) fn number(&self) -> Option<u64> {
        match self {
            Value::Number(_, text) => text.parse().ok(),
            _ => None,
        }
    }

    /// The composite of the schema that it is, and its fields.
    pub(super) fn composite(&self) -> Option<(&'static Composite, &[Value])> {
        let Value::Described(descriptor, value) = self else { return None };
        let composite = match &**descriptor {
            Value::Number(_, code) => schema::find_code(code.parse().ok()?)?,
            Value::Symbol(symbol) => schema::find_symbol(symbol)?,
            _ => return None,
        };
        match &**value {
            Value::List(fields) => Some((composite, fields)),
            _ => None,
        }
    }
}

/// Takes a value off the bytes.
pub(super) fn read(bytes: &mut &[u8]) -> Option<Value> {
    let code = *bytes.split_off_first()?;
    if code == 0 {
        let descriptor = read(bytes)?;
        return Some(Value::Described(descriptor.into(), read(bytes)?.into()));
    }
    read_of(code, bytes)
}

/// Takes a value of a type off the bytes, its constructor having been read.
fn read_of(code: u8, bytes: &mut &[u8]) -> Option<Value> {
    let width = match code >> 4 {
        0x4 => 0,
        0x5 => 1,
        0x6 => 2,
        0x7 => 4,
        0x8 => 8,
        0x9 => 16,
        0xa | 0xc | 0xe => usize::from(*bytes.split_off_first()?),
        0xb | 0xd | 0xf => u32::from_be_bytes(bytes.split_off(..4)?.try_into().ok()?) as usize,
        _ => return None,
    };
    let mut inner = bytes.split_off(..width)?;
    let unsigned = || inner.iter().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
    let signed = || {
        let shift = 64 - 8 * width as u32;
        (unsigned() << shift).cast_signed() >> shift
    };
    let number = |word, text: String| Value::Number(word, text);
    Some(match code {
        0x40 => Value::Null,
        0x41 | 0x42 => Value::Bool(code == 0x41),
        0x56 => Value::Bool(inner[0] != 0),
        0x50 => number("ub", unsigned().to_string()),
        0x60 => number("us", unsigned().to_string()),
        0x43 | 0x52 | 0x70 => number("ui", unsigned().to_string()),
        0x44 | 0x53 | 0x80 => number("ul", unsigned().to_string()),
        0x51 => number("b", signed().to_string()),
        0x61 => number("s", signed().to_string()),
        0x54 | 0x71 => number("i", signed().to_string()),
        0x55 | 0x81 => number("l", signed().to_string()),
        0x83 => number("ts", signed().to_string()),
        0x72 => number("f", f32::from_be_bytes(inner.try_into().ok()?).to_string()),
        0x82 => number("d", f64::from_be_bytes(inner.try_into().ok()?).to_string()),
        0x73 => number("c", unsigned().to_string()),
        0x98 => Value::Uuid(inner.to_vec()),
        0xa0 | 0xb0 => Value::Binary(inner.to_vec()),
        0xa1 | 0xb1 => Value::Text(inner.to_vec()),
        0xa3 | 0xb3 => Value::Symbol(inner.to_vec()),
        0x45 => Value::List(Vec::new()),
        0xc0 | 0xd0 | 0xc1 | 0xd1 => {
            let count = take_count(code, &mut inner)?;
            let values: Vec<Value> = (0..count).map_while(|_| read(&mut inner)).collect();
            if values.len() != count || !inner.is_empty() {
                return None;
            }
            if code & 1 == 0 {
                return Some(Value::List(values));
            }
            let pairs = values.chunks_exact(2);
            Value::Map(pairs.map(|pair| (pair[0].clone(), pair[1].clone())).collect())
        }
        0xe0 | 0xf0 => {
            let count = take_count(code, &mut inner)?;
            let of = *inner.split_off_first()?;
            Value::Array((0..count).map_while(|_| read_of(of, &mut inner)).collect())
        }
        _ => return None,
    })
}

fn take_count(code: u8, bytes: &mut &[u8]) -> Option<usize> {
    match code & 0x10 {
        0 => Some(usize::from(*bytes.split_off_first()?)),
        _ => Some(u32::from_be_bytes(bytes.split_off(..4)?.try_into().ok()?) as usize),
    }
}

/// A value as it is written in scenarios; maps in the order of their keys.
pub(super) fn show_value(value: &Value) -> String {
    if let Some((composite, fields)) = value.composite() {
        return format!("{}{{{}}}", composite.name, show_fields(composite, fields, &[]).join(" "));
    }
    let all = |values: &[Value]| values.iter().map(show_value).collect::<Vec<_>>().join(", ");
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(it) => it.to_string(),
        Value::Number(word, text) => format!("{word} {text}"),
        Value::Binary(bytes) => format!("x \"{}\"", escape(bytes)),
        Value::Uuid(bytes) => format!("id \"{}\"", escape(bytes)),
        Value::Text(bytes) => format!("\"{}\"", escape(bytes)),
        Value::Symbol(bytes) => format!(":{}", show_symbol(bytes)),
        Value::List(values) => format!("[{}]", all(values)),
        Value::Array(values) => format!("@[{}]", all(values)),
        Value::Map(pairs) => {
            let pair = |(key, value): &(Value, Value)| {
                format!("{}: {}", show_value(key), show_value(value))
            };
            let mut pairs: Vec<String> = pairs.iter().map(pair).collect();
            pairs.sort();
            format!("{{{}}}", pairs.join(", "))
        }
        Value::Described(descriptor, value) => {
            format!("the {} {}", show_value(descriptor), show_value(value))
        }
    }
}

/// The fields of a composite that say more than their defaults, besides those that are left out.
pub(super) fn show_fields(
    composite: &Composite,
    fields: &[Value],
    without: &[&str],
) -> Vec<String> {
    let mut shown = Vec::new();
    for (field, value) in composite.fields.iter().zip(fields) {
        let text = match value {
            Value::Null => continue,
            Value::Bool(it) if field.kind == Kind::Role => {
                if *it { "receiver" } else { "sender" }.to_owned()
            }
            Value::Number(_, text) if field.kind != Kind::Any => text.clone(),
            Value::Number(..) | Value::Uuid(_) => format!("({})", show_value(value)),
            Value::Binary(_) if field.kind == Kind::Any => format!("({})", show_value(value)),
            Value::Symbol(bytes) if field.kind != Kind::Any => show_symbol(bytes),
            Value::Text(bytes) | Value::Binary(bytes) if field.kind != Kind::Any => show(bytes),
            Value::Array(values) if field.kind == Kind::Symbols => {
                let symbol = |value: &Value| show_value(value).trim_start_matches(':').to_owned();
                values.iter().map(symbol).collect::<Vec<_>>().join("+")
            }
            other => show_value(other),
        };
        if text == field.default || without.contains(&field.name) {
            continue;
        }
        match (text.as_str(), field.kind) {
            ("true", Kind::Bool) => shown.push(field.name.to_owned()),
            _ => shown.push(format!("{}={text}", field.name)),
        }
    }
    shown
}
