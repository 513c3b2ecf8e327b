//! Options and arguments as records have them: names and values, which may hold further ones.

use crate::interface::limits::VALUE_DEPTH_MAX;
use crate::storage::codec::{Malformed, Reader, Writer};
use crate::{Arguments, OptionDefinition, Value};
use std::collections::BTreeMap;

/// Appends arguments.
pub(super) fn write_arguments(writer: &mut Writer<'_>, arguments: &Arguments) {
    writer.varint(arguments.len() as u64);
    for (name, value) in arguments {
        writer.text(name);
        write_value(writer, value);
    }
}

/// Reads what [`write_arguments`] wrote.
pub(super) fn read_arguments(reader: &mut Reader<'_>) -> Result<Arguments, Malformed> {
    read_map(reader, 0)
}

/// Appends those of the options that are not the default: how many, then number and value of each.
pub(super) fn write_options<O>(
    writer: &mut Writer<'_>,
    table: &[OptionDefinition<O>],
    options: &O,
) {
    let set = || table.iter().filter_map(|option| Some((option.code, option.get(options)?)));
    writer.varint(set().count() as u64);
    for (code, value) in set() {
        writer.u8(code);
        write_value(writer, &value);
    }
}

/// Reads what [`write_options`] wrote.
pub(super) fn read_options<O>(
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

fn write_value(writer: &mut Writer<'_>, value: &Value) {
    match value {
        Value::Null => writer.u8(0),
        Value::Bool(value) => {
            writer.u8(1);
            writer.bool(*value);
        }
        Value::Int(value) => {
            writer.u8(2);
            writer.u64(value.cast_unsigned());
        }
        Value::Float(value) => {
            writer.u8(3);
            writer.u64(value.to_bits());
        }
        Value::Text(value) => {
            writer.u8(4);
            writer.text(value);
        }
        Value::Bytes(value) => {
            writer.u8(5);
            writer.bytes(value);
        }
        Value::Timestamp(value) => {
            writer.u8(6);
            writer.u64(*value);
        }
        Value::List(values) => {
            writer.u8(7);
            writer.varint(values.len() as u64);
            for value in values {
                write_value(writer, value);
            }
        }
        Value::Map(values) => {
            writer.u8(8);
            write_arguments(writer, values);
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
        4 => Value::Text(reader.text()?.to_owned()),
        5 => Value::Bytes(reader.bytes()?.to_owned()),
        6 => Value::Timestamp(reader.u64()?),
        7 => {
            let mut values = Vec::new();
            for _ in 0..reader.count()? {
                values.push(read_value(reader, depth + 1)?);
            }
            Value::List(values)
        }
        8 => Value::Map(read_map(reader, depth + 1)?),
        other => return Err(format!("value kind {other} is unknown")),
    })
}

fn read_map(reader: &mut Reader<'_>, depth: usize) -> Result<BTreeMap<String, Value>, Malformed> {
    let mut values = BTreeMap::new();
    for _ in 0..reader.count()? {
        let name = reader.text()?.to_owned();
        values.insert(name, read_value(reader, depth)?);
    }
    Ok(values)
}
