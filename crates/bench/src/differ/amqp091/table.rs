//! Field tables as text: `{name: LETTER value, ...}` with the letters of the wire (RabbitMQ's errata).
//!
//! Tables nest by `F {...}`, arrays by `A [LETTER value, ...]`; `V` has no value.

use crate::differ::text::{Cursor, escape, show};

/// Moves behind a table.
pub(super) fn skip(cursor: &mut Cursor<'_>) -> Result<(), String> {
    encode(cursor, &mut Vec::new())
}

/// Takes a table and appends its bytes.
pub(super) fn encode(cursor: &mut Cursor<'_>, out: &mut Vec<u8>) -> Result<(), String> {
    cursor.expect('{')?;
    let mut bytes = Vec::new();
    while !cursor.take('}') {
        let name = cursor.bytes()?;
        bytes.push(u8::try_from(name.len()).map_err(|_| "a name has at most 255 bytes")?);
        bytes.extend(name);
        cursor.expect(':')?;
        encode_value(cursor, &mut bytes)?;
        cursor.take(',');
    }
    put_long(&bytes, out);
    Ok(())
}

fn put_long(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend((bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
}

fn encode_value(cursor: &mut Cursor<'_>, out: &mut Vec<u8>) -> Result<(), String> {
    let letter = cursor.word();
    out.extend_from_slice(letter.as_bytes());
    match letter {
        "t" => out.push(u8::from(cursor.word() == "true")),
        "b" => out.extend(cursor.number::<i8>()?.to_be_bytes()),
        "B" => out.push(cursor.number()?),
        "s" => out.extend(cursor.number::<i16>()?.to_be_bytes()),
        "u" => out.extend(cursor.number::<u16>()?.to_be_bytes()),
        "I" => out.extend(cursor.number::<i32>()?.to_be_bytes()),
        "i" => out.extend(cursor.number::<u32>()?.to_be_bytes()),
        "l" => out.extend(cursor.number::<i64>()?.to_be_bytes()),
        "T" => out.extend(cursor.number::<u64>()?.to_be_bytes()),
        "f" => out.extend(cursor.number::<f32>()?.to_be_bytes()),
        "d" => out.extend(cursor.number::<f64>()?.to_be_bytes()),
        // Scale and value.
        "D" => {
            out.push(cursor.number()?);
            out.extend(cursor.number::<u32>()?.to_be_bytes());
        }
        "S" | "x" => put_long(&cursor.bytes()?, out),
        "F" => encode(cursor, out)?,
        "A" => {
            cursor.expect('[')?;
            let mut bytes = Vec::new();
            while !cursor.take(']') {
                encode_value(cursor, &mut bytes)?;
                cursor.take(',');
            }
            put_long(&bytes, out);
        }
        // A type that there is not, for instance.
        _ => {}
    }
    Ok(())
}

/// Takes a text with a length of four bytes.
pub(super) fn long_text<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = u32::from_be_bytes(bytes.split_off(..4)?.try_into().ok()?);
    bytes.split_off(..length as usize)
}

/// Takes a table; its fields in the order of their names.
pub(super) fn show_table(bytes: &mut &[u8]) -> Option<String> {
    let mut table = long_text(bytes)?;
    let mut fields = Vec::new();
    while !table.is_empty() {
        let length = *table.split_off_first()?;
        let name = show(table.split_off(..length.into())?);
        fields.push(format!("{name}: {}", show_value(&mut table)?));
    }
    fields.sort();
    Some(format!("{{{}}}", fields.join(", ")))
}

fn show_value(bytes: &mut &[u8]) -> Option<String> {
    let letter = char::from(*bytes.split_off_first()?);
    let mut array = |count: usize| bytes.split_off(..count);
    let value = match letter {
        't' => (array(1)?[0] != 0).to_string(),
        'b' => i8::from_be_bytes(array(1)?.try_into().ok()?).to_string(),
        'B' => array(1)?[0].to_string(),
        's' => i16::from_be_bytes(array(2)?.try_into().ok()?).to_string(),
        'u' => u16::from_be_bytes(array(2)?.try_into().ok()?).to_string(),
        'I' => i32::from_be_bytes(array(4)?.try_into().ok()?).to_string(),
        'i' => u32::from_be_bytes(array(4)?.try_into().ok()?).to_string(),
        'l' => i64::from_be_bytes(array(8)?.try_into().ok()?).to_string(),
        'T' => u64::from_be_bytes(array(8)?.try_into().ok()?).to_string(),
        'f' => f32::from_be_bytes(array(4)?.try_into().ok()?).to_string(),
        'd' => f64::from_be_bytes(array(8)?.try_into().ok()?).to_string(),
        'D' => {
            let scale = array(1)?[0];
            format!("{scale} {}", u32::from_be_bytes(array(4)?.try_into().ok()?))
        }
        'S' => show(long_text(bytes)?),
        'x' => format!("\"{}\"", escape(long_text(bytes)?)),
        'F' => show_table(bytes)?,
        'A' => {
            let mut values = long_text(bytes)?;
            let mut texts = Vec::new();
            while !values.is_empty() {
                texts.push(show_value(&mut values)?);
            }
            format!("[{}]", texts.join(", "))
        }
        'V' => return Some("V".to_owned()),
        _ => return None,
    };
    Some(format!("{letter} {value}"))
}
