//! Options and arguments as records have them: names and values, which may hold further ones.

use crate::interface::limits::VALUE_DEPTH_MAX;
use crate::selector::{Filter, ParseOptions};
use crate::storage::codec::{Codec, Malformed, Reader, Writer};
use crate::{
    AppliesTo, Arguments, EXCHANGE_OPTIONS, ExchangeKind, ExchangeOptions, OptionDefinition,
    QUEUE_OPTIONS, QueueOptions, Value,
};

/// Bytes of a stored filter's text, and terms: operators may have lowered limits since it was made.
const FILTER_BYTES_MAX: usize = 1 << 20;

/// Flags of a queue's options.
const AUTO_DELETE: u8 = 1;
const LOG: u8 = 2;

/// Its text, and how that was read.
impl Codec<'_> for Filter {
    fn encode(&self, writer: &mut Writer<'_>) {
        (self.has_dashes_in_names(), self.text()).encode(writer);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Filter, Malformed> {
        let (dashes_in_names, text): (bool, &str) = reader.get()?;
        let options = ParseOptions {
            text_bytes_max: FILTER_BYTES_MAX,
            terms_max: FILTER_BYTES_MAX,
            dashes_in_names,
            ..ParseOptions::default()
        };
        Filter::parse(text, &options).map_err(|error| format!("the filter '{text}': {error}"))
    }
}

impl Codec<'_> for AppliesTo {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.u8(self.number());
    }
    fn decode(reader: &mut Reader<'_>) -> Result<AppliesTo, Malformed> {
        let number = reader.u8()?;
        AppliesTo::numbered(number).ok_or_else(|| format!("policies about {number} are unknown"))
    }
}

/// Without `exclusive`: what is exclusive is never recorded.
impl Codec<'_> for QueueOptions {
    fn encode(&self, writer: &mut Writer<'_>) {
        let how = u8::from(self.auto_delete) * AUTO_DELETE + u8::from(self.is_log) * LOG;
        (self.durable, how).encode(writer);
        write_options(writer, QUEUE_OPTIONS, self);
        writer.put(&self.other);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<QueueOptions, Malformed> {
        let (durable, how) = reader.get::<(bool, u8)>()?;
        let (auto_delete, is_log) = (how & AUTO_DELETE != 0, how & LOG != 0);
        if how > AUTO_DELETE + LOG {
            return Err(format!("flags {how} of a queue are unknown"));
        }
        let mut options = QueueOptions { durable, auto_delete, is_log, ..QueueOptions::default() };
        read_options(reader, QUEUE_OPTIONS, &mut options)?;
        options.other = reader.get()?;
        Ok(options)
    }
}

impl Codec<'_> for ExchangeOptions {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.u8(self.kind.number());
        (self.delaying, self.durable).encode(writer);
        (self.auto_delete, self.internal).encode(writer);
        write_options(writer, EXCHANGE_OPTIONS, self);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<ExchangeOptions, Malformed> {
        let kind = reader.u8()?;
        let mut options = ExchangeOptions {
            kind: ExchangeKind::numbered(kind)
                .ok_or_else(|| format!("exchange kind {kind} is unknown"))?,
            delaying: reader.get()?,
            durable: reader.get()?,
            auto_delete: reader.get()?,
            internal: reader.get()?,
            alternate: None,
        };
        read_options(reader, EXCHANGE_OPTIONS, &mut options)?;
        Ok(options)
    }
}

/// Appends those of the options that are not the default: how many, then number and value of each.
fn write_options<O>(writer: &mut Writer<'_>, table: &[OptionDefinition<O>], options: &O) {
    let set = || table.iter().filter_map(|option| Some((option.code, option.get(options)?)));
    writer.varint(set().count() as u64);
    for (code, value) in set() {
        writer.u8(code);
        write_value(writer, &value);
    }
}

/// Reads what [`write_options`] wrote.
fn read_options<O>(
    reader: &mut Reader<'_>,
    table: &[OptionDefinition<O>],
    options: &mut O,
) -> Result<(), Malformed> {
    for _ in 0..reader.count()? {
        let code = reader.u8()?;
        let option = table.iter().find(|option| option.code == code);
        let option = option.ok_or_else(|| format!("option {code} is unknown"))?;
        let value = read_value(reader, 0)?;
        option.set(options, &value).map_err(|why| format!("option {}: {why}", option.name))?;
    }
    Ok(())
}

impl Codec<'_> for Arguments {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.varint(self.len() as u64);
        for (name, value) in self {
            writer.text(name);
            write_value(writer, value);
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Arguments, Malformed> {
        read_map(reader, 0)
    }
}

fn write_value(writer: &mut Writer<'_>, value: &Value) {
    match value {
        Value::Null => writer.u8(0),
        Value::Bool(value) => (1_u8, *value).encode(writer),
        Value::Int(value) => (2_u8, value.cast_unsigned()).encode(writer),
        Value::Float(value) => (3_u8, value.to_bits()).encode(writer),
        Value::Text(value) => (4_u8, value.as_str()).encode(writer),
        Value::Bytes(value) => (5_u8, value.as_slice()).encode(writer),
        Value::Timestamp(value) => (6_u8, *value).encode(writer),
        Value::List(values) => {
            writer.u8(7);
            writer.varint(values.len() as u64);
            values.iter().for_each(|value| write_value(writer, value));
        }
        Value::Map(values) => {
            writer.u8(8);
            writer.put(values);
        }
    }
}

fn read_value(reader: &mut Reader<'_>, depth: usize) -> Result<Value, Malformed> {
    if depth > VALUE_DEPTH_MAX {
        return Err(format!("values nested more than {VALUE_DEPTH_MAX} deep"));
    }
    Ok(match reader.u8()? {
        0 => Value::Null,
        1 => Value::Bool(reader.bool()?),
        2 => Value::Int(reader.u64()?.cast_signed()),
        3 => Value::Float(f64::from_bits(reader.u64()?)),
        4 => Value::Text(reader.get()?),
        5 => Value::Bytes(reader.bytes()?.to_owned()),
        6 => Value::Timestamp(reader.u64()?),
        7 => {
            let values = (0..reader.count()?).map(|_| read_value(reader, depth + 1));
            Value::List(values.collect::<Result<_, _>>()?)
        }
        8 => Value::Map(read_map(reader, depth + 1)?),
        other => return Err(format!("value kind {other} is unknown")),
    })
}

fn read_map(reader: &mut Reader<'_>, depth: usize) -> Result<Arguments, Malformed> {
    (0..reader.count()?)
        .map(|_| Ok::<_, Malformed>((reader.get()?, read_value(reader, depth)?)))
        .collect()
}
