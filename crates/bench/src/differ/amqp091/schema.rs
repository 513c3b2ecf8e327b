//! All methods and properties of AMQP 0-9-1 with RabbitMQ's extensions (specification 1.4; RabbitMQ's
//! amqp0-9-1.extended.xml), and their fields as bytes and text.

use super::table;
use crate::differ::text::{Cursor, show};

/// A field's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Bit,
    Octet,
    Short,
    Long,
    LongLong,
    ShortText,
    LongText,
    Table,
}

/// One method.
#[derive(Clone, Copy, Debug)]
pub(super) struct Method {
    pub(super) class: u16,
    pub(super) number: u16,
    /// Ends with `!` where the method has an answer.
    marked_name: &'static str,
    fields: &'static str,
}

/// All methods: number of the class, number of the method, its name, its fields with a letter for their
/// type: `b`it, `o`ctet, `s`hort, `l`ong, `q`uad, `t`ext up to 255 bytes, `T`ext, `F`ield table. A name that
/// ends with `!` has an answer.
const METHODS: &str = "\
10 10 connection.start o:version-major o:version-minor F:server-properties T:mechanisms T:locales
10 11 connection.start-ok! F:client-properties t:mechanism T:response t:locale
10 20 connection.secure T:challenge
10 21 connection.secure-ok! T:response
10 30 connection.tune s:channel-max l:frame-max s:heartbeat
10 31 connection.tune-ok s:channel-max l:frame-max s:heartbeat
10 40 connection.open! t:virtual-host t:reserved-1 b:reserved-2
10 41 connection.open-ok t:reserved-1
10 50 connection.close! s:reply-code t:reply-text s:class-id s:method-id
10 51 connection.close-ok
10 60 connection.blocked t:reason
10 61 connection.unblocked
10 70 connection.update-secret! T:new-secret t:reason
10 71 connection.update-secret-ok
20 10 channel.open! t:reserved-1
20 11 channel.open-ok T:reserved-1
20 20 channel.flow! b:active
20 21 channel.flow-ok b:active
20 40 channel.close! s:reply-code t:reply-text s:class-id s:method-id
20 41 channel.close-ok
40 10 exchange.declare! s:ticket t:exchange t:type b:passive b:durable b:auto-delete b:internal \
    b:no-wait F:arguments
40 11 exchange.declare-ok
40 20 exchange.delete! s:ticket t:exchange b:if-unused b:no-wait
40 21 exchange.delete-ok
40 30 exchange.bind! s:ticket t:destination t:source t:routing-key b:no-wait F:arguments
40 31 exchange.bind-ok
40 40 exchange.unbind! s:ticket t:destination t:source t:routing-key b:no-wait F:arguments
40 51 exchange.unbind-ok
50 10 queue.declare! s:ticket t:queue b:passive b:durable b:exclusive b:auto-delete b:no-wait F:arguments
50 11 queue.declare-ok t:queue l:message-count l:consumer-count
50 20 queue.bind! s:ticket t:queue t:exchange t:routing-key b:no-wait F:arguments
50 21 queue.bind-ok
50 30 queue.purge! s:ticket t:queue b:no-wait
50 31 queue.purge-ok l:message-count
50 40 queue.delete! s:ticket t:queue b:if-unused b:if-empty b:no-wait
50 41 queue.delete-ok l:message-count
50 50 queue.unbind! s:ticket t:queue t:exchange t:routing-key F:arguments
50 51 queue.unbind-ok
60 10 basic.qos! l:prefetch-size s:prefetch-count b:global
60 11 basic.qos-ok
60 20 basic.consume! s:ticket t:queue t:consumer-tag b:no-local b:no-ack b:exclusive b:no-wait F:arguments
60 21 basic.consume-ok t:consumer-tag
60 30 basic.cancel! t:consumer-tag b:no-wait
60 31 basic.cancel-ok t:consumer-tag
60 40 basic.publish s:ticket t:exchange t:routing-key b:mandatory b:immediate
60 50 basic.return s:reply-code t:reply-text t:exchange t:routing-key
60 60 basic.deliver t:consumer-tag q:delivery-tag b:redelivered t:exchange t:routing-key
60 70 basic.get! s:ticket t:queue b:no-ack
60 71 basic.get-ok q:delivery-tag b:redelivered t:exchange t:routing-key l:message-count
60 72 basic.get-empty t:cluster-id
60 80 basic.ack q:delivery-tag b:multiple
60 90 basic.reject q:delivery-tag b:requeue
60 100 basic.recover-async b:requeue
60 110 basic.recover! b:requeue
60 111 basic.recover-ok
60 120 basic.nack q:delivery-tag b:multiple b:requeue
85 10 confirm.select! b:no-wait
85 11 confirm.select-ok
90 10 tx.select!
90 11 tx.select-ok
90 20 tx.commit!
90 21 tx.commit-ok
90 30 tx.rollback!
90 31 tx.rollback-ok";

/// The properties of a message, by their flags from the highest bit down.
pub(super) const PROPERTIES: &[(&str, Kind)] = &[
    ("content-type", Kind::ShortText),
    ("content-encoding", Kind::ShortText),
    ("headers", Kind::Table),
    ("delivery-mode", Kind::Octet),
    ("priority", Kind::Octet),
    ("correlation-id", Kind::ShortText),
    ("reply-to", Kind::ShortText),
    ("expiration", Kind::ShortText),
    ("message-id", Kind::ShortText),
    ("timestamp", Kind::LongLong),
    ("type", Kind::ShortText),
    ("user-id", Kind::ShortText),
    ("app-id", Kind::ShortText),
    ("cluster-id", Kind::ShortText),
];

/// The method of this name.
pub(super) fn find(name: &str) -> Option<Method> {
    methods().find(|method| method.name() == name)
}

/// The method whose numbers a payload begins with.
pub(super) fn find_number(payload: &[u8]) -> Option<Method> {
    let numbers: [u8; 4] = payload.get(..4)?.try_into().ok()?;
    let [class, number] =
        [[numbers[0], numbers[1]], [numbers[2], numbers[3]]].map(u16::from_be_bytes);
    methods().find(|method| (method.class, method.number) == (class, number))
}

fn methods() -> impl Iterator<Item = Method> {
    METHODS.lines().map(|line| {
        let mut parts = line.splitn(4, ' ');
        let mut part = || parts.next().unwrap_or_default();
        let mut number = || part().parse().expect("a method begins with two numbers");
        let (class, number) = (number(), number());
        Method { class, number, marked_name: part(), fields: part() }
    })
}

impl Method {
    pub(super) fn name(self) -> &'static str {
        self.marked_name.trim_end_matches('!')
    }

    /// Names and types of its fields.
    pub(super) fn fields(&self) -> Vec<(&'static str, Kind)> {
        let field = |text: &'static str| {
            let (letter, name) = text.split_once(':').expect("a type and a name");
            let kind = match letter {
                "b" => Kind::Bit,
                "o" => Kind::Octet,
                "s" => Kind::Short,
                "l" => Kind::Long,
                "q" => Kind::LongLong,
                "t" => Kind::ShortText,
                "T" => Kind::LongText,
                _ => Kind::Table,
            };
            (name, kind)
        };
        self.fields.split_whitespace().map(field).collect()
    }

    /// Whether a header and a body follow it.
    pub(super) fn has_content(self) -> bool {
        ["basic.publish", "basic.return", "basic.deliver", "basic.get-ok"].contains(&self.name())
    }

    /// Whether the broker has to answer it.
    pub(super) fn is_answered(&self) -> bool {
        self.marked_name.ends_with('!')
    }
}

/// Appends fields in order; those that are not given are zero or empty.
pub(super) fn encode_fields(
    fields: &[(&str, Kind)],
    values: &[(String, String)],
    out: &mut Vec<u8>,
) -> Result<(), String> {
    if let Some((name, _)) = values.iter().find(|(name, _)| fields.iter().all(|(it, _)| it != name))
    {
        return Err(format!("the method has no field '{name}'"));
    }
    let mut bits = 0;
    for (name, kind) in fields {
        let value = values.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str());
        if *kind == Kind::Bit {
            if bits % 8 == 0 {
                out.push(0);
            }
            if value.is_some_and(|value| value != "false") {
                *out.last_mut().expect("a byte was pushed") |= 1 << (bits % 8);
            }
            bits += 1;
        } else {
            bits = 0;
            encode_field(*kind, value.unwrap_or_default(), out)?;
        }
    }
    Ok(())
}

/// Appends one field that is no bit.
pub(super) fn encode_field(kind: Kind, value: &str, out: &mut Vec<u8>) -> Result<(), String> {
    let mut cursor = Cursor(value);
    let number =
        |cursor: &mut Cursor<'_>| if value.is_empty() { Ok(0u64) } else { cursor.number() };
    match kind {
        Kind::Bit => {}
        Kind::Octet => out.push(number(&mut cursor)? as u8),
        Kind::Short => out.extend((number(&mut cursor)? as u16).to_be_bytes()),
        Kind::Long => out.extend((number(&mut cursor)? as u32).to_be_bytes()),
        Kind::LongLong => out.extend(number(&mut cursor)?.to_be_bytes()),
        Kind::ShortText => {
            let text = cursor.bytes()?;
            out.push(u8::try_from(text.len()).map_err(|_| "a short text has at most 255 bytes")?);
            out.extend(text);
        }
        Kind::LongText => {
            let text = cursor.bytes()?;
            out.extend((text.len() as u32).to_be_bytes());
            out.extend(text);
        }
        Kind::Table if value.is_empty() => out.extend([0; 4]),
        Kind::Table => table::encode(&mut cursor, out)?,
    }
    Ok(())
}

/// Fields as ` name=value ...`: bits only where they are set. Nothing where bytes are missing or left over.
pub(super) fn show_fields(fields: &[(&str, Kind)], mut bytes: &[u8]) -> Option<String> {
    let mut text = String::new();
    let mut bits = 0;
    let mut byte = 0;
    for (name, kind) in fields {
        if *kind == Kind::Bit {
            if bits % 8 == 0 {
                byte = *bytes.split_off_first()?;
            }
            if byte & (1 << (bits % 8)) != 0 {
                text.push_str(&format!(" {name}"));
            }
            bits += 1;
        } else {
            bits = 0;
            text.push_str(&format!(" {name}={}", show_field(*kind, &mut bytes)?));
        }
    }
    bytes.is_empty().then_some(text)
}

fn show_field(kind: Kind, bytes: &mut &[u8]) -> Option<String> {
    Some(match kind {
        Kind::Bit => return None,
        Kind::Octet => bytes.split_off_first()?.to_string(),
        Kind::Short => u16::from_be_bytes(bytes.split_off(..2)?.try_into().ok()?).to_string(),
        Kind::Long => u32::from_be_bytes(bytes.split_off(..4)?.try_into().ok()?).to_string(),
        Kind::LongLong => u64::from_be_bytes(bytes.split_off(..8)?.try_into().ok()?).to_string(),
        Kind::ShortText => {
            let length = *bytes.split_off_first()?;
            show(bytes.split_off(..length.into())?)
        }
        Kind::LongText => show(table::long_text(bytes)?),
        Kind::Table => table::show_table(bytes)?,
    })
}
