//! Field tables and arrays (spec 4.2.5.5, with the type letters that RabbitMQ gives them).
//!
//! A table is checked once, whole; then it is walked where it lies, without building anything.

use super::wire::{Field, Malformed, Reader, Writer, put_long_str, put_short_str};

/// How deep tables and arrays may be nested.
pub const DEPTH_MAX: usize = 32;

/// A field table: its entries, checked, without the length in front of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Table<'a>(&'a [u8]);

/// A field array: its values, checked, without the length in front of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Array<'a>(&'a [u8]);

/// A value in a table or array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FieldValue<'a> {
    /// `V`
    Void,
    /// `t`
    Bool(bool),
    /// `b` `B` `s` `u` `I` `i` `l` `L`: all integers; an `L` beyond `i64` is held at its maximum.
    Int(i64),
    /// `f` `d`
    Float(f64),
    /// `D`: `value` divided by ten to the power of `scale`.
    Decimal {
        /// Digits behind the point.
        scale: u8,
        /// All digits.
        value: i32,
    },
    /// `S`: usually text.
    LongStr(&'a [u8]),
    /// `x`
    Bytes(&'a [u8]),
    /// `T`: seconds since the Unix epoch.
    Timestamp(u64),
    /// `A`
    Array(Array<'a>),
    /// `F`
    Table(Table<'a>),
}

/// One entry of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry<'a> {
    /// Its name; empty if it is no UTF-8, as in the headers of some old clients.
    pub name: &'a str,
    /// Its value.
    pub value: FieldValue<'a>,
    /// The whole entry as it is encoded.
    pub raw: &'a [u8],
}

/// Checks the entries of a table.
pub fn checked(bytes: &[u8]) -> Result<Table<'_>, Malformed> {
    Check { takes_any_name: false }.entries(bytes, 1)?;
    Ok(Table(bytes))
}

/// Checks a message's headers, which are handed on as they are: their names may have any bytes.
pub fn checked_headers(bytes: &[u8]) -> Result<Table<'_>, Malformed> {
    checked_headers_with(bytes, |_, _| {})
}

/// The same; `see` gets the name and the value of each header.
#[inline]
pub(super) fn checked_headers_with<'a>(
    bytes: &'a [u8],
    mut see: impl FnMut(&'a [u8], FieldValue<'a>),
) -> Result<Table<'a>, Malformed> {
    let check = Check { takes_any_name: true };
    let mut reader = Reader::new(bytes);
    while !reader.rest().is_empty() {
        let name = reader.short_bytes().map_err(|_| BAD_NAME)?;
        see(name, check.value(&mut reader, 1)?);
    }
    Ok(Table(bytes))
}

/// The value of the first entry of that name, in the entries of a table that was checked before.
pub(super) fn value_named<'a>(entries: &'a [u8], name: &str) -> Option<FieldValue<'a>> {
    let mut reader = Reader::new(entries);
    loop {
        let is_it = reader.short_bytes().ok()? == name.as_bytes();
        let value = read_value(&mut reader).ok()?;
        if is_it {
            return Some(value);
        }
    }
}

const BAD_NAME: Malformed = Malformed("table has a malformed field name");

/// The check of a table to its depths.
#[derive(Clone, Copy)]
struct Check {
    takes_any_name: bool,
}

impl Check {
    fn entries(self, bytes: &[u8], depth: usize) -> Result<(), Malformed> {
        let mut reader = Reader::new(bytes);
        while !reader.rest().is_empty() {
            let name = reader.short_bytes();
            let is_name =
                name.is_ok_and(|name| self.takes_any_name || str::from_utf8(name).is_ok());
            if !is_name {
                return Err(BAD_NAME);
            }
            self.value(&mut reader, depth)?;
        }
        Ok(())
    }

    fn values(self, bytes: &[u8], depth: usize) -> Result<(), Malformed> {
        let mut reader = Reader::new(bytes);
        while !reader.rest().is_empty() {
            self.value(&mut reader, depth)?;
        }
        Ok(())
    }

    /// A value of the table or array at this depth.
    fn value<'a>(self, reader: &mut Reader<'a>, depth: usize) -> Result<FieldValue<'a>, Malformed> {
        let value = read_value(reader)?;
        if depth == DEPTH_MAX && matches!(value, FieldValue::Table(_) | FieldValue::Array(_)) {
            return Err(Malformed("tables are nested more than 32 deep"));
        }
        match value {
            FieldValue::Table(table) => self.entries(table.0, depth + 1)?,
            FieldValue::Array(array) => self.values(array.0, depth + 1)?,
            _ => {}
        }
        Ok(value)
    }
}

/// Reads one value; what is inside of tables and arrays is not looked at.
#[inline]
fn read_value<'a>(reader: &mut Reader<'a>) -> Result<FieldValue<'a>, Malformed> {
    Ok(match reader.octet()? {
        b'S' => FieldValue::LongStr(reader.long_str()?),
        b't' => FieldValue::Bool(reader.octet()? != 0),
        b'b' => FieldValue::Int((reader.octet()? as i8).into()),
        b'B' => FieldValue::Int(reader.octet()?.into()),
        b's' => FieldValue::Int((reader.short()? as i16).into()),
        b'u' => FieldValue::Int(reader.short()?.into()),
        b'I' => FieldValue::Int((reader.long()? as i32).into()),
        b'i' => FieldValue::Int(reader.long()?.into()),
        b'l' => FieldValue::Int(reader.longlong()? as i64),
        b'L' => FieldValue::Int(i64::try_from(reader.longlong()?).unwrap_or(i64::MAX)),
        b'f' => FieldValue::Float(f32::from_bits(reader.long()?).into()),
        b'd' => FieldValue::Float(f64::from_bits(reader.longlong()?)),
        b'D' => FieldValue::Decimal { scale: reader.octet()?, value: reader.long()? as i32 },
        b'T' => FieldValue::Timestamp(reader.longlong()?),
        b'x' => FieldValue::Bytes(reader.long_str()?),
        b'A' => FieldValue::Array(Array(reader.long_str()?)),
        b'F' => FieldValue::Table(Table(reader.long_str()?)),
        b'V' => FieldValue::Void,
        _ => return Err(Malformed("table has a value of unknown type")),
    })
}

impl<'a> Table<'a> {
    /// Reads a table with its length in front, and checks it to its depths.
    #[inline]
    pub fn read(reader: &mut Reader<'a>) -> Result<Table<'a>, Malformed> {
        checked(reader.long_str()?)
    }
    /// Its entries as they are encoded.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.0
    }
    /// Whether it has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Its entries in their order.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'a>> + use<'a> {
        let mut reader = Reader::new(self.0);
        std::iter::from_fn(move || {
            let before = reader.rest();
            if before.is_empty() {
                return None;
            }
            // Checked when the table was made; so `ok` never ends the walk early.
            let name = str::from_utf8(reader.short_bytes().ok()?).unwrap_or_default();
            let value = read_value(&mut reader).ok()?;
            let raw = &before[..before.len() - reader.rest().len()];
            Some(Entry { name, value, raw })
        })
    }
    /// The value of the first entry of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<FieldValue<'a>> {
        self.entries().find(|entry| entry.name == name).map(|entry| entry.value)
    }
    /// The text of the first entry of that name, if text is what it has.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&'a str> {
        match self.get(name)? {
            FieldValue::LongStr(bytes) => str::from_utf8(bytes).ok(),
            _ => None,
        }
    }
}

impl<'a> Field<'a> for Table<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Table<'a>, Malformed> {
        Table::read(reader)
    }
    fn write(&self, writer: &mut Writer<'_>) {
        writer.long_str(self.0);
    }
}

impl<'a> Array<'a> {
    /// Its values in their order.
    pub fn values(&self) -> impl Iterator<Item = FieldValue<'a>> + use<'a> {
        let mut reader = Reader::new(self.0);
        std::iter::from_fn(move || {
            if reader.rest().is_empty() { None } else { read_value(&mut reader).ok() }
        })
    }
}

/// Appends entries of a table to a buffer.
#[derive(Debug)]
pub struct TableWriter<'o> {
    /// Where the entries go.
    pub out: &'o mut Vec<u8>,
}

/// Appends a table with its length in front; `fill` writes its entries.
pub fn put_table(out: &mut Vec<u8>, fill: impl FnOnce(&mut TableWriter<'_>)) {
    put_sized(out, |out| fill(&mut TableWriter { out }));
}

fn put_sized(out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    fill(out);
    let length = u32::try_from(out.len() - at - 4).expect("a table we write is below 4 GiB");
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

impl TableWriter<'_> {
    /// The name of an entry; its value is to follow.
    pub fn value(&mut self, name: &str) -> ValueWriter<'_> {
        put_short_str(self.out, name);
        ValueWriter { out: self.out }
    }
    /// A text.
    pub fn text(&mut self, name: &str, text: &str) {
        self.value(name).text(text);
    }
    /// A truth value.
    pub fn bool(&mut self, name: &str, value: bool) {
        self.value(name).bool(value);
    }
    /// A 64-bit integer.
    pub fn int(&mut self, name: &str, value: i64) {
        self.value(name).int(value);
    }
    /// A table.
    pub fn table(&mut self, name: &str, fill: impl FnOnce(&mut TableWriter<'_>)) {
        self.value(name).table(fill);
    }
}

/// Appends one value, of a table or an array.
#[derive(Debug)]
pub struct ValueWriter<'o> {
    out: &'o mut Vec<u8>,
}

impl ValueWriter<'_> {
    fn put(self, kind: u8, bytes: &[u8]) {
        self.out.push(kind);
        self.out.extend_from_slice(bytes);
    }
    /// A text.
    pub fn text(self, text: &str) {
        self.out.push(b'S');
        put_long_str(self.out, text.as_bytes());
    }
    /// Bytes that are no text.
    pub fn bytes(self, bytes: &[u8]) {
        self.out.push(b'x');
        put_long_str(self.out, bytes);
    }
    /// A truth value.
    pub fn bool(self, value: bool) {
        self.put(b't', &[value.into()]);
    }
    /// A 32-bit integer.
    pub fn short_int(self, value: i32) {
        self.put(b'I', &value.to_be_bytes());
    }
    /// A 64-bit integer.
    pub fn int(self, value: i64) {
        self.put(b'l', &value.to_be_bytes());
    }
    /// A 64-bit floating-point number.
    pub fn float(self, value: f64) {
        self.put(b'd', &value.to_be_bytes());
    }
    /// Nothing.
    pub fn void(self) {
        self.out.push(b'V');
    }
    /// A time in seconds since the Unix epoch.
    pub fn timestamp(self, seconds: u64) {
        self.put(b'T', &seconds.to_be_bytes());
    }
    /// A table.
    pub fn table(self, fill: impl FnOnce(&mut TableWriter<'_>)) {
        self.out.push(b'F');
        put_table(self.out, fill);
    }
    /// An array; `put` writes the value that each of `items` is.
    pub fn array<T>(self, items: &[T], put: impl Fn(ValueWriter<'_>, &T)) {
        self.out.push(b'A');
        put_sized(self.out, |out| items.iter().for_each(|item| put(ValueWriter { out }, item)));
    }
}
