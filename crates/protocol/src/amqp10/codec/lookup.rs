//! Finds one value where it lies, in what was checked when it came: everything before it is passed by its
//! width. In what was not checked, finds what can be found.

use super::sections::SectionKind;
use super::value::{self, Value};
use super::wire::{self, Reader};

/// The value of the first section of this kind, as it is encoded.
#[inline]
#[must_use]
pub fn section_value(sections: &[u8], kind: SectionKind) -> Option<&[u8]> {
    let mut reader = Reader::new(sections);
    loop {
        let described = value::read_described(&mut reader).ok()?;
        if SectionKind::of(described.descriptor()) == Some(kind) {
            let [constructor, body] = described.parts();
            let end = sections.len() - reader.rest().len();
            return sections.get(end - body.len() - constructor.len()..end);
        }
    }
}

/// The value of the first entry of an encoded map whose key is that string or symbol.
#[inline]
#[must_use]
pub fn entry_named<'a>(map: &'a [u8], name: &str) -> Option<Value<'a>> {
    let Value::Map(map) = value::read(&mut Reader::new(map)).ok()? else { return None };
    let mut reader = Reader::new(map.bytes());
    while !is_named(&mut reader, name)? {
        pass(&mut reader)?;
    }
    value::read(&mut reader).ok()
}

/// Passes a key, and says whether it is that string or symbol.
#[inline]
fn is_named(reader: &mut Reader<'_>, name: &str) -> Option<bool> {
    let code = *reader.rest().first()?;
    let key = match code {
        wire::STRING8 | wire::SYMBOL8 => {
            reader.octet().ok()?;
            reader.sized8()
        }
        wire::STRING32 | wire::SYMBOL32 => {
            reader.octet().ok()?;
            reader.sized32()
        }
        _ => return pass(reader).map(|()| false),
    };
    Some(key.ok()? == name.as_bytes())
}

/// The element of an encoded list with that number, from 0.
#[inline]
#[must_use]
pub fn element(list: &[u8], number: usize) -> Option<Value<'_>> {
    let Value::List(list) = value::read(&mut Reader::new(list)).ok()? else { return None };
    let mut reader = Reader::new(list.bytes());
    for _ in 0..number {
        pass(&mut reader)?;
    }
    value::read(&mut reader).ok()
}

/// Passes a value.
#[inline]
fn pass(reader: &mut Reader<'_>) -> Option<()> {
    if reader.next_is(wire::DESCRIBED) {
        return value::read_described(reader).ok().map(|_| ());
    }
    let code = reader.octet().ok()?;
    reader.take_width(code).ok().map(|_| ())
}
