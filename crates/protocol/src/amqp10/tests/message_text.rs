//! Messages of AMQP 1.0 as text and back: `durable ttl=500 @x-team=red subject=order .colour=blue "body"`.
//!
//! In front the header's fields, then annotations (`@`), properties, application properties (`.`), and the
//! body: text in quotes for each data section, `value=` for an amqp-value, `sequence=` for a sequence.
//! Values are strings unless their type is in front: `int:5`, `null:`, `list:[a,long:1]`, `map:{a=true:}`.

use crate::amqp10::codec::{
    Field, Header, Limits, Map, MessageId, OwnedValue, Properties, SectionKind, Sections, Symbol,
    Timestamp, Uuid, Value, put_list, put_map_section, put_section,
};
use crate::amqp091::tests::script::{parts, unquoted, words};

/// The message that a line stands for.
pub(crate) fn encode(line: &str) -> Vec<u8> {
    let words = words(line);
    let mut message = Vec::new();
    put_header(&words, &mut message);
    put_entries(&words, '@', SectionKind::MessageAnnotations, &mut message);
    put_properties(&words, &mut message);
    put_entries(&words, '.', SectionKind::ApplicationProperties, &mut message);
    for word in &words {
        if word.starts_with('"') {
            put_section(&mut message, SectionKind::Data, &unquoted(word).as_bytes());
        } else if let Some(text) = word.strip_prefix("value=") {
            put_section(&mut message, SectionKind::Value, &value(text).value());
        } else if let Some(text) = word.strip_prefix("sequence=") {
            put_section(&mut message, SectionKind::Sequence, &value(text).value());
        }
    }
    message
}

/// What follows a name and `=`.
fn field<'w>(words: &'w [String], name: &str) -> Option<&'w str> {
    words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("{text} is no number of that type"))
}

fn put_header(words: &[String], message: &mut Vec<u8>) {
    let header = Header {
        durable: words.iter().any(|word| word == "durable"),
        priority: field(words, "priority").map_or(4, number),
        ttl: field(words, "ttl").map(number),
        ..Header::default()
    };
    if header != Header::default() {
        header.write(message);
    }
}

fn put_entries(words: &[String], mark: char, kind: SectionKind, message: &mut Vec<u8>) {
    let entries: Vec<_> = words.iter().filter_map(|word| word.strip_prefix(mark)).collect();
    if entries.is_empty() {
        return;
    }
    put_map_section(message, kind, |map| {
        for (name, text) in entries.iter().filter_map(|entry| entry.split_once('=')) {
            match kind {
                SectionKind::MessageAnnotations => map.put(&Symbol(name), &value(text).value()),
                _ => map.put(&name, &value(text).value()),
            }
        }
    });
}

fn put_properties(words: &[String], message: &mut Vec<u8>) {
    let [id, correlation] =
        ["message-id", "correlation-id"].map(|name| field(words, name).map(value));
    let texts = [
        "user-id",
        "to",
        "subject",
        "reply-to",
        "content-type",
        "content-encoding",
        "group-id",
        "reply-to-group-id",
    ];
    let texts = texts.map(|name| field(words, name).map(unquoted));
    let [user, to, subject, reply_to, content, encoding, group, reply_group] =
        texts.each_ref().map(Option::as_deref);
    let properties = Properties {
        message_id: id.as_ref().map(message_id),
        user_id: user.map(str::as_bytes),
        to,
        subject,
        reply_to,
        correlation_id: correlation.as_ref().map(message_id),
        content_type: content.map(Symbol),
        content_encoding: encoding.map(Symbol),
        absolute_expiry_time: field(words, "absolute-expiry-time").map(number).map(Timestamp),
        creation_time: field(words, "creation-time").map(number).map(Timestamp),
        group_id: group,
        group_sequence: field(words, "group-sequence").map(number),
        reply_to_group_id: reply_group,
    };
    if properties != Properties::default() {
        properties.write(message);
    }
}

fn message_id(value: &OwnedValue) -> MessageId<'_> {
    match value.value() {
        Value::ULong(id) => MessageId::ULong(id),
        Value::Uuid(id) => MessageId::Uuid(id),
        Value::Binary(id) => MessageId::Binary(id),
        Value::String(id) => MessageId::String(id),
        other => panic!("{other:?} is no id"),
    }
}

/// The value that a word stands for.
fn value(text: &str) -> OwnedValue {
    let (kind, rest) =
        text.split_once(':').filter(|_| !text.starts_with('"')).unwrap_or(("", text));
    match kind {
        "null" => OwnedValue::new(&Value::Null),
        "true" | "false" => OwnedValue::new(&(kind == "true")),
        "ubyte" => OwnedValue::new(&number::<u8>(rest)),
        "byte" => OwnedValue::new(&number::<i8>(rest)),
        "short" => OwnedValue::new(&number::<i16>(rest)),
        "uint" => OwnedValue::new(&number::<u32>(rest)),
        "int" => OwnedValue::new(&number::<i32>(rest)),
        "ulong" => OwnedValue::new(&number::<u64>(rest)),
        "long" => OwnedValue::new(&number::<i64>(rest)),
        "float" => OwnedValue::new(&number::<f32>(rest)),
        "double" => OwnedValue::new(&number::<f64>(rest)),
        "time" => OwnedValue::new(&Timestamp(number(rest))),
        "char" => OwnedValue::new(&number::<char>(rest)),
        "uuid" => OwnedValue::new(&Uuid(octets(rest).try_into().expect("16 octets"))),
        "binary" => OwnedValue::new(&octets(rest).as_slice()),
        "symbol" => OwnedValue::new(&Symbol(rest)),
        "list" => {
            let mut list = Vec::new();
            put_list(&mut list, |list| {
                parts(rest).into_iter().for_each(|part| list.put(&value(part).value()));
            });
            OwnedValue::decode(&list).expect("a list")
        }
        "map" => OwnedValue::map(|map| {
            for (name, text) in parts(rest).into_iter().filter_map(|part| part.split_once('=')) {
                map.put(&name, &value(text).value());
            }
        }),
        _ => OwnedValue::new(&unquoted(text).as_str()),
    }
}

fn octets(digits: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal digits");
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// The line that stands for a message. The delivery count is `count`.
pub(crate) fn decode(message: &[u8]) -> String {
    let limits = Limits { properties_bytes_max: usize::MAX };
    let sections = Sections::walk(message, limits).unwrap();
    let mut words = Vec::new();
    let header = sections.header().unwrap();
    if header.durable {
        words.push("durable".to_owned());
    }
    let mut field = |name: &str, value: Option<String>| {
        words.extend(value.map(|value| format!("{name}={value}")));
    };
    field("priority", (header.priority != 4).then(|| header.priority.to_string()));
    field("ttl", header.ttl.map(|ttl| ttl.to_string()));
    field("count", (header.delivery_count > 0).then(|| header.delivery_count.to_string()));
    words.extend(entries("@", sections.message_annotations().unwrap()));
    words.extend(properties_text(&sections.properties().unwrap()));
    words.extend(entries(".", sections.application_properties().unwrap()));
    words.extend(sections.data().map(|data| format!("\"{}\"", String::from_utf8_lossy(data))));
    words.extend(
        sections
            .sequences()
            .map(|list| format!("sequence={}", value_text(Value::List(list.unwrap())))),
    );
    words.extend(sections.amqp_value().unwrap().map(|it| format!("value={}", value_text(it))));
    words.join(" ")
}

fn entries(mark: &str, map: Map<'_>) -> Vec<String> {
    let entry = |(key, value)| format!("{mark}{}={}", key_text(key), value_text(value));
    map.entries().map(entry).collect()
}

fn key_text(key: Value<'_>) -> String {
    match key {
        Value::Symbol(Symbol(name)) => name.to_owned(),
        other => value_text(other),
    }
}

fn properties_text(properties: &Properties<'_>) -> Vec<String> {
    let mut words = Vec::new();
    let mut field = |name: &str, value: Option<Value<'_>>| {
        words.extend(value.map(|value| format!("{name}={}", value_text(value))));
    };
    let id = |id| match id {
        MessageId::ULong(id) => Value::ULong(id),
        MessageId::Uuid(id) => Value::Uuid(id),
        MessageId::Binary(id) => Value::Binary(id),
        MessageId::String(id) => Value::String(id),
    };
    field("message-id", properties.message_id.map(id));
    let user = properties.user_id.map(|user| str::from_utf8(user).expect("a text"));
    field("user-id", user.map(Value::String));
    field("to", properties.to.map(Value::String));
    field("subject", properties.subject.map(Value::String));
    field("reply-to", properties.reply_to.map(Value::String));
    field("correlation-id", properties.correlation_id.map(id));
    field("content-type", properties.content_type.map(|it| Value::String(it.0)));
    field("content-encoding", properties.content_encoding.map(|it| Value::String(it.0)));
    let mut number = |name: &str, value: Option<i64>| {
        words.extend(value.map(|value| format!("{name}={value}")));
    };
    number("absolute-expiry-time", properties.absolute_expiry_time.map(|time| time.0));
    number("creation-time", properties.creation_time.map(|time| time.0));
    words.extend(properties.group_id.map(|group| format!("group-id={group}")));
    words.extend(properties.group_sequence.map(|it| format!("group-sequence={it}")));
    words.extend(properties.reply_to_group_id.map(|it| format!("reply-to-group-id={it}")));
    words
}

fn value_text(value: Value<'_>) -> String {
    let hexadecimal =
        |octets: &[u8]| -> String { octets.iter().map(|octet| format!("{octet:02x}")).collect() };
    match value {
        Value::Null => "null:".to_owned(),
        Value::Boolean(value) => format!("{value}:"),
        Value::UByte(value) => format!("ubyte:{value}"),
        Value::Byte(value) => format!("byte:{value}"),
        Value::Short(value) => format!("short:{value}"),
        Value::UInt(value) => format!("uint:{value}"),
        Value::Int(value) => format!("int:{value}"),
        Value::ULong(value) => format!("ulong:{value}"),
        Value::Long(value) => format!("long:{value}"),
        Value::Float(value) => format!("float:{value}"),
        Value::Double(value) => format!("double:{value}"),
        Value::Timestamp(Timestamp(millis)) => format!("time:{millis}"),
        Value::Char(letter) => format!("char:{letter}"),
        Value::Uuid(Uuid(octets)) => format!("uuid:{}", hexadecimal(&octets)),
        Value::Binary(octets) => format!("binary:{}", hexadecimal(octets)),
        Value::Symbol(Symbol(name)) => format!("symbol:{name}"),
        Value::String(text) if text.is_empty() || text.contains([' ', ':', ',', '"']) => {
            format!("\"{text}\"")
        }
        Value::String(text) => text.to_owned(),
        Value::List(list) => {
            let values: Vec<_> = list.values().map(value_text).collect();
            format!("list:[{}]", values.join(","))
        }
        Value::Map(map) => format!("map:{{{}}}", entries("", map).join(",")),
        other => format!("{other:?}"),
    }
}
