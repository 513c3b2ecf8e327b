//! Writing lists, maps and arrays, value by value.

use super::field::Field;
use super::put::{ARRAY, BINARY, LIST, MAP, STRING, SYMBOL, number, put_counted};
use super::value::{Symbol, Timestamp, Uuid};
use super::wire;

/// Appends values to a list.
#[derive(Debug)]
pub struct ListWriter<'o> {
    out: &'o mut Vec<u8>,
    count: u32,
    /// How many of them are left without the nulls at the end.
    kept: u32,
    /// Where they end.
    end: usize,
}

impl ListWriter<'_> {
    /// A value.
    #[inline]
    pub fn put<'a>(&mut self, value: &impl Field<'a>) {
        value.write(self.out);
        self.count += 1;
        (self.kept, self.end) = (self.count, self.out.len());
    }
    /// A null.
    #[inline]
    pub fn put_null(&mut self) {
        self.out.push(wire::NULL);
        self.count += 1;
    }
}

/// Appends a list; `fill` writes its values.
#[inline]
pub fn put_list(out: &mut Vec<u8>, fill: impl FnOnce(&mut ListWriter<'_>)) {
    put_written(out, |list| {
        fill(list);
        (list.kept, list.end) = (list.count, list.out.len());
    });
}

/// Appends the list of a composite type: nulls at its end are left out.
#[inline]
pub(super) fn put_written(out: &mut Vec<u8>, fill: impl FnOnce(&mut ListWriter<'_>)) {
    let at = out.len();
    let mut kept = 0;
    put_counted(out, LIST, |out| {
        let end = out.len();
        let mut list = ListWriter { out, count: 0, kept: 0, end };
        fill(&mut list);
        kept = list.kept;
        let end = list.end;
        out.truncate(end);
        kept
    });
    if kept == 0 {
        out.truncate(at);
        out.push(wire::LIST0);
    }
}

/// Appends entries to a map.
#[derive(Debug)]
pub struct MapWriter<'o> {
    out: &'o mut Vec<u8>,
    count: u32,
}

impl MapWriter<'_> {
    /// An entry.
    pub fn put<'a, 'b>(&mut self, key: &impl Field<'a>, value: &impl Field<'b>) {
        key.write(self.out);
        value.write(self.out);
        self.count += 2;
    }
}

/// Appends a map; `fill` writes its entries.
pub fn put_map(out: &mut Vec<u8>, fill: impl FnOnce(&mut MapWriter<'_>)) {
    put_counted(out, MAP, |out| {
        let mut map = MapWriter { out, count: 0 };
        fill(&mut map);
        map.count
    });
}

/// A type whose values can be the elements of an array.
pub trait ArrayItem<'a>: Field<'a> {
    /// The smallest format code that fits every one of these.
    fn format_code(items: &[Self]) -> u8;
    /// Appends the value without its format code, which is this one.
    fn put_body(&self, format_code: u8, out: &mut Vec<u8>);
}

/// Appends an array of these.
pub fn put_array<'a, T: ArrayItem<'a>>(out: &mut Vec<u8>, items: &[T]) {
    put_counted(out, ARRAY, |out| {
        let code = T::format_code(items);
        out.push(code);
        items.iter().for_each(|item| item.put_body(code, out));
        number(items.len())
    });
}

macro_rules! sized_items {
    ($($type:ty = $forms:ident $item:ident $bytes:expr;)*) => {$(
        impl<'a> ArrayItem<'a> for $type {
            fn format_code(items: &[Self]) -> u8 {
                let is_short = items.iter().all(|$item| $bytes.len() <= u8::MAX.into());
                if is_short { $forms.short } else { $forms.long }
            }
            fn put_body(&self, format_code: u8, out: &mut Vec<u8>) {
                let $item = self;
                if format_code == $forms.short {
                    out.push($bytes.len() as u8);
                } else {
                    out.extend_from_slice(&number($bytes.len()).to_be_bytes());
                }
                out.extend_from_slice($bytes);
            }
        }
    )*};
}

sized_items! {
    &'a [u8] = BINARY item item;
    &'a str = STRING item item.as_bytes();
    Symbol<'a> = SYMBOL item item.0.as_bytes();
}

macro_rules! fixed_items {
    ($($type:ty = $code:ident $item:ident $bytes:expr;)*) => {$(
        impl ArrayItem<'_> for $type {
            fn format_code(_: &[Self]) -> u8 {
                wire::$code
            }
            fn put_body(&self, _: u8, out: &mut Vec<u8>) {
                let $item = *self;
                out.extend_from_slice(&$bytes);
            }
        }
    )*};
}

fixed_items! {
    bool = BOOLEAN item [u8::from(item)];
    u8 = UBYTE item [item];
    u16 = USHORT item item.to_be_bytes();
    u32 = UINT item item.to_be_bytes();
    u64 = ULONG item item.to_be_bytes();
    i8 = BYTE item item.to_be_bytes();
    i16 = SHORT item item.to_be_bytes();
    i32 = INT item item.to_be_bytes();
    i64 = LONG item item.to_be_bytes();
    f32 = FLOAT item item.to_be_bytes();
    f64 = DOUBLE item item.to_be_bytes();
    char = CHAR item u32::from(item).to_be_bytes();
    Timestamp = TIMESTAMP item item.0.to_be_bytes();
    Uuid = UUID item item.0;
}
