//! Values of every type (part 1, 1.2 and 1.6), borrowed from the bytes that they are encoded in.
//!
//! [`read`] looks at one value and not into it; [`read_checked`] looks into it too, to its depths, and then
//! walks over what it returns never fail. No step costs more than the bytes that it reads.

use super::malformed::{Malformed, malformed};
use super::wire::{self, Reader, Width};

/// How deep lists, maps, arrays and descriptors may be nested.
pub const DEPTH_MAX: usize = 32;

/// Most elements of an array whose elements take no octets (`null`, `true`, `uint` 0, ...), which its size
/// does not bound.
pub const ZERO_WIDTH_ELEMENTS_MAX: u32 = 16;

const TOO_DEEP: Malformed = malformed!(ResourceLimitExceeded, "is nested more than 32 deep");
const TOO_MANY_ELEMENTS: Malformed =
    malformed!(ResourceLimitExceeded, "has an array of more than 16 elements that take no octets",);
const WRONG_SIZE: Malformed =
    malformed!("has a list, map or array whose size or count does not match its contents");
const ODD_MAP: Malformed = malformed!("has a map with a key and no value");
const NOT_BOOLEAN: Malformed = malformed!("has a boolean that is neither 0 nor 1");
const NOT_CHAR: Malformed = malformed!("has a char that is no Unicode scalar value");
const NOT_UTF8: Malformed = malformed!("has a string that is not UTF-8");
const NOT_ASCII: Malformed = malformed!("has a symbol that is not ASCII");
const RESERVED_DESCRIPTOR: Malformed = malformed!(
    NotImplemented,
    "has a descriptor that is neither ulong nor symbol, which the specification reserves",
);

const NESTED_DESCRIPTORS: Malformed =
    malformed!(NotImplemented, "has an array whose elements have more than one descriptor each",);

/// Text of ASCII characters that names something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Symbol<'a>(pub &'a str);

/// Milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub i64);

/// A UUID's octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Uuid(pub [u8; 16]);

/// A value. Scalars that are equal compare equal, however they are encoded; compound values compare equal if
/// their contents are encoded the same.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Value<'a> {
    Null,
    Boolean(bool),
    UByte(u8),
    UShort(u16),
    UInt(u32),
    ULong(u64),
    Byte(i8),
    Short(i16),
    Int(i32),
    Long(i64),
    Float(f32),
    Double(f64),
    /// IEEE 754-2008 decimal, in its octets.
    Decimal32([u8; 4]),
    /// IEEE 754-2008 decimal, in its octets.
    Decimal64([u8; 8]),
    /// IEEE 754-2008 decimal, in its octets.
    Decimal128([u8; 16]),
    Char(char),
    Timestamp(Timestamp),
    Uuid(Uuid),
    Binary(&'a [u8]),
    String(&'a str),
    Symbol(Symbol<'a>),
    List(List<'a>),
    Map(Map<'a>),
    Array(Array<'a>),
    Described(Described<'a>),
}

/// Values one after the other, each with its own type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct List<'a> {
    count: u32,
    items: &'a [u8],
}

/// Keys with values. A key that is there twice keeps its first value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Map<'a> {
    /// Keys and values.
    count: u32,
    items: &'a [u8],
}

/// Values of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Array<'a> {
    count: u32,
    /// A format code, perhaps with descriptors before it.
    constructor: &'a [u8],
    items: &'a [u8],
}

/// What says which type a described value is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Descriptor<'a> {
    /// By number.
    Code(u64),
    /// By name.
    Name(Symbol<'a>),
}

/// A value with a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Described<'a> {
    descriptor: Descriptor<'a>,
    /// A format code, perhaps with further descriptors before it.
    constructor: &'a [u8],
    body: &'a [u8],
}

/// Reads one value; what is inside of it is not looked at.
#[inline]
pub(super) fn read<'a>(reader: &mut Reader<'a>) -> Result<Value<'a>, Malformed> {
    if reader.next_is(wire::DESCRIBED) {
        return read_described(reader).map(Value::Described);
    }
    let code = reader.octet()?;
    read_body(code, reader)
}

/// Reads one value and checks it to its depths.
#[inline]
pub(super) fn read_checked<'a>(reader: &mut Reader<'a>) -> Result<Value<'a>, Malformed> {
    let value = read(reader)?;
    check(value, 1)?;
    Ok(value)
}

/// Reads a described value; what is inside of it is not looked at.
#[inline]
pub(super) fn read_described<'a>(reader: &mut Reader<'a>) -> Result<Described<'a>, Malformed> {
    // The form in which everybody writes composites.
    if let Some(&[wire::DESCRIBED, wire::SMALL_ULONG, number, code]) = reader.rest().first_chunk()
        && code != wire::DESCRIBED
    {
        let constructor = &reader.take(4)?[3..];
        let body = reader.take_width(code)?;
        return Ok(Described { descriptor: Descriptor::Code(number.into()), constructor, body });
    }
    read_described_in_any_form(reader)
}

#[inline(never)]
fn read_described_in_any_form<'a>(reader: &mut Reader<'a>) -> Result<Described<'a>, Malformed> {
    if reader.octet()? != wire::DESCRIBED {
        return Err(malformed!("is not a described value"));
    }
    let descriptor = read_descriptor(reader)?;
    let constructor = read_constructor(reader)?;
    let body = reader.take_width(format_code(constructor))?;
    Ok(Described { descriptor, constructor, body })
}

/// Reads a descriptor, behind the octet that announces it.
#[inline]
fn read_descriptor<'a>(reader: &mut Reader<'a>) -> Result<Descriptor<'a>, Malformed> {
    match reader.octet()? {
        wire::SMALL_ULONG => Ok(Descriptor::Code(reader.octet()?.into())),
        code @ (wire::ULONG | wire::ULONG0 | wire::SYMBOL8 | wire::SYMBOL32) => {
            match read_body(code, reader)? {
                Value::ULong(number) => Ok(Descriptor::Code(number)),
                Value::Symbol(name) => Ok(Descriptor::Name(name)),
                _ => Err(RESERVED_DESCRIPTOR),
            }
        }
        _ => Err(RESERVED_DESCRIPTOR),
    }
}

/// Skips a format code with the descriptors before it, and returns them as they are encoded.
#[inline]
fn read_constructor<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Malformed> {
    let before = reader.rest();
    let mut depth = 0;
    while reader.octet()? == wire::DESCRIBED {
        depth += 1;
        if depth > DEPTH_MAX {
            return Err(TOO_DEEP);
        }
        read_descriptor(reader)?;
    }
    Ok(&before[..before.len() - reader.rest().len()])
}

/// The format code of a constructor, which ends with it.
#[inline]
fn format_code(constructor: &[u8]) -> u8 {
    constructor.last().copied().unwrap_or(wire::NULL)
}

/// Reads a value that has this constructor.
fn read_constructed<'a>(
    constructor: &'a [u8],
    reader: &mut Reader<'a>,
) -> Result<Value<'a>, Malformed> {
    if let &[code] = constructor {
        return read_body(code, reader);
    }
    let mut head = Reader::new(constructor);
    head.octet()?;
    let descriptor = read_descriptor(&mut head)?;
    let body = reader.take_width(format_code(constructor))?;
    Ok(Value::Described(Described { descriptor, constructor: head.rest(), body }))
}

/// Reads a value that has this format code.
#[inline]
fn read_body<'a>(code: u8, reader: &mut Reader<'a>) -> Result<Value<'a>, Malformed> {
    Ok(match code {
        wire::NULL => Value::Null,
        wire::TRUE => Value::Boolean(true),
        wire::FALSE => Value::Boolean(false),
        wire::BOOLEAN => Value::Boolean(boolean(reader.octet()?)?),
        wire::UBYTE => Value::UByte(reader.octet()?),
        wire::USHORT => Value::UShort(u16::from_be_bytes(reader.chunk()?)),
        wire::UINT0 => Value::UInt(0),
        wire::SMALL_UINT => Value::UInt(reader.octet()?.into()),
        wire::UINT => Value::UInt(reader.word()?),
        wire::ULONG0 => Value::ULong(0),
        wire::SMALL_ULONG => Value::ULong(reader.octet()?.into()),
        wire::ULONG => Value::ULong(u64::from_be_bytes(reader.chunk()?)),
        wire::BYTE => Value::Byte(reader.octet()? as i8),
        wire::SHORT => Value::Short(i16::from_be_bytes(reader.chunk()?)),
        wire::SMALL_INT => Value::Int((reader.octet()? as i8).into()),
        wire::INT => Value::Int(i32::from_be_bytes(reader.chunk()?)),
        wire::SMALL_LONG => Value::Long((reader.octet()? as i8).into()),
        wire::LONG => Value::Long(i64::from_be_bytes(reader.chunk()?)),
        wire::FLOAT => Value::Float(f32::from_be_bytes(reader.chunk()?)),
        wire::DOUBLE => Value::Double(f64::from_be_bytes(reader.chunk()?)),
        wire::DECIMAL32 => Value::Decimal32(reader.chunk()?),
        wire::DECIMAL64 => Value::Decimal64(reader.chunk()?),
        wire::DECIMAL128 => Value::Decimal128(reader.chunk()?),
        wire::CHAR => Value::Char(character(reader.word()?)?),
        wire::TIMESTAMP => Value::Timestamp(Timestamp(i64::from_be_bytes(reader.chunk()?))),
        wire::UUID => Value::Uuid(Uuid(reader.chunk()?)),
        wire::BINARY8 => Value::Binary(reader.sized8()?),
        wire::BINARY32 => Value::Binary(reader.sized32()?),
        wire::STRING8 => Value::String(string(reader.sized8()?)?),
        wire::STRING32 => Value::String(string(reader.sized32()?)?),
        wire::SYMBOL8 => Value::Symbol(symbol(reader.sized8()?)?),
        wire::SYMBOL32 => Value::Symbol(symbol(reader.sized32()?)?),
        wire::LIST0 => Value::List(List::default()),
        wire::LIST8 => Value::List(list(counted8(reader)?)?),
        wire::LIST32 => Value::List(list(counted32(reader)?)?),
        wire::MAP8 => Value::Map(map(counted8(reader)?)?),
        wire::MAP32 => Value::Map(map(counted32(reader)?)?),
        wire::ARRAY8 => Value::Array(array(counted8(reader)?)?),
        wire::ARRAY32 => Value::Array(array(counted32(reader)?)?),
        _ => return Err(wire::UNKNOWN_CODE),
    })
}

pub(super) fn character(number: u32) -> Result<char, Malformed> {
    char::from_u32(number).ok_or(NOT_CHAR)
}

#[inline]
pub(super) fn boolean(octet: u8) -> Result<bool, Malformed> {
    match octet {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(NOT_BOOLEAN),
    }
}

#[inline]
pub(super) fn string(bytes: &[u8]) -> Result<&str, Malformed> {
    str::from_utf8(bytes).map_err(|_| NOT_UTF8)
}

#[inline]
pub(super) fn symbol(bytes: &[u8]) -> Result<Symbol<'_>, Malformed> {
    if !bytes.is_ascii() {
        return Err(NOT_ASCII);
    }
    string(bytes).map(Symbol)
}

/// The count of a compound value and what it counts.
struct Counted<'a> {
    count: u32,
    items: &'a [u8],
}

#[inline]
fn counted8<'a>(reader: &mut Reader<'a>) -> Result<Counted<'a>, Malformed> {
    let (&count, items) = reader.sized8()?.split_first().ok_or(WRONG_SIZE)?;
    Ok(Counted { count: count.into(), items })
}

#[inline]
fn counted32<'a>(reader: &mut Reader<'a>) -> Result<Counted<'a>, Malformed> {
    let (&count, items) = reader.sized32()?.split_first_chunk().ok_or(WRONG_SIZE)?;
    Ok(Counted { count: u32::from_be_bytes(count), items })
}

/// Every value of a list takes an octet at least.
#[inline]
fn list(Counted { count, items }: Counted<'_>) -> Result<List<'_>, Malformed> {
    if count as usize > items.len() { Err(WRONG_SIZE) } else { Ok(List { count, items }) }
}

fn map(counted: Counted<'_>) -> Result<Map<'_>, Malformed> {
    let List { count, items } = list(counted)?;
    if count % 2 == 1 { Err(ODD_MAP) } else { Ok(Map { count, items }) }
}

fn array(Counted { count, items }: Counted<'_>) -> Result<Array<'_>, Malformed> {
    if count == 0 && items.is_empty() {
        // Some peers leave out the constructor of an empty array.
        return Ok(Array::default());
    }
    let mut reader = Reader::new(items);
    let constructor = read_constructor(&mut reader)?;
    let (items, code) = (reader.rest(), format_code(constructor));
    let mut head = Reader::new(constructor);
    if head.passed(wire::DESCRIBED) {
        read_descriptor(&mut head)?;
        if head.next_is(wire::DESCRIBED) {
            return Err(NESTED_DESCRIPTORS);
        }
    }
    let fits = match wire::width(code)? {
        _ if !wire::is_known(code) => return Err(wire::UNKNOWN_CODE),
        Width::Fixed(0) if count > ZERO_WIDTH_ELEMENTS_MAX => return Err(TOO_MANY_ELEMENTS),
        Width::Fixed(bytes) => u64::from(count) * bytes as u64 == items.len() as u64,
        Width::Size8 | Width::Size32 => count as usize <= items.len(),
    };
    if fits { Ok(Array { count, constructor, items }) } else { Err(WRONG_SIZE) }
}

/// Checks what is inside of a value that is nested this deep.
pub(super) fn check(value: Value<'_>, depth: usize) -> Result<(), Malformed> {
    match value {
        Value::List(list) => check_values(list.count, list.items, depth),
        Value::Map(map) => check_values(map.count, map.items, depth),
        Value::Array(array) => array.check(depth),
        Value::Described(described) => {
            if depth > DEPTH_MAX {
                return Err(TOO_DEEP);
            }
            check(described.read_value()?, depth + 1)
        }
        _ => Ok(()),
    }
}

/// Checks that `items` is `count` values, which are inside of one that is nested this deep.
fn check_values(count: u32, items: &[u8], depth: usize) -> Result<(), Malformed> {
    if depth > DEPTH_MAX {
        return Err(TOO_DEEP);
    }
    let mut reader = Reader::new(items);
    for _ in 0..count {
        check(read(&mut reader)?, depth + 1)?;
    }
    if reader.rest().is_empty() { Ok(()) } else { Err(WRONG_SIZE) }
}

impl<'a> List<'a> {
    /// How many values it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count as usize
    }
    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
    /// Its values as they are encoded.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.items
    }
    /// Its values in their order.
    pub fn values(&self) -> impl Iterator<Item = Value<'a>> + use<'a> {
        values(self.items)
    }
}

/// The values that `items` is made of.
fn values<'a>(items: &'a [u8]) -> impl Iterator<Item = Value<'a>> + use<'a> {
    let mut reader = Reader::new(items);
    // Checked when the value was read; so `ok` never ends the walk early.
    std::iter::from_fn(move || if reader.rest().is_empty() { None } else { read(&mut reader).ok() })
}

/// The entries in the [bytes](Map::bytes) of one map or of several; they end where the bytes are damaged.
pub fn entries<'a>(bytes: &'a [u8]) -> impl Iterator<Item = (Value<'a>, Value<'a>)> + use<'a> {
    let mut values = values(bytes);
    std::iter::from_fn(move || Some((values.next()?, values.next()?)))
}

impl<'a> Map<'a> {
    /// How many entries it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count as usize / 2
    }
    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
    /// Its keys and values as they are encoded.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.items
    }
    /// Keys and values: twice as many as entries.
    pub(super) fn count(&self) -> u32 {
        self.count
    }
    /// Checks it to its depths, and that each of its entries is one of `is_entry`.
    #[inline]
    pub(super) fn check_entries(
        &self,
        is_entry: impl Fn(Value<'a>, Value<'a>) -> bool,
        otherwise: Malformed,
    ) -> Result<(), Malformed> {
        let mut reader = Reader::new(self.items);
        for _ in 0..self.count / 2 {
            let (key, value) = (read(&mut reader)?, read(&mut reader)?);
            if !is_entry(key, value) {
                return Err(otherwise);
            }
            check(key, 2)?;
            check(value, 2)?;
        }
        if reader.rest().is_empty() { Ok(()) } else { Err(WRONG_SIZE) }
    }
    /// Its keys with their values, in their order.
    pub fn entries(&self) -> impl Iterator<Item = (Value<'a>, Value<'a>)> + use<'a> {
        entries(self.items)
    }
    /// The value of the first entry whose key is that string or symbol.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Value<'a>> {
        let is_named = |key: Value<'_>| match key {
            Value::String(key) | Value::Symbol(Symbol(key)) => key == name,
            _ => false,
        };
        self.entries().find(|&(key, _)| is_named(key)).map(|(_, value)| value)
    }
}

impl Default for Array<'_> {
    fn default() -> Self {
        Array { count: 0, constructor: &[wire::NULL], items: &[] }
    }
}

impl<'a> Array<'a> {
    /// How many elements it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count as usize
    }
    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
    /// The format code of its elements, without descriptors.
    #[must_use]
    pub fn format_code(&self) -> u8 {
        format_code(self.constructor)
    }
    /// Its constructor and its elements as they are encoded.
    pub(super) fn parts(&self) -> [&'a [u8]; 2] {
        [self.constructor, self.items]
    }
    /// Its elements in their order.
    pub fn values(&self) -> impl Iterator<Item = Value<'a>> + use<'a> {
        // Checked when the value was read; so `ok` never ends the walk early.
        self.elements().into_iter().flat_map(|elements| elements.map_while(Result::ok))
    }
    fn elements(&self) -> Result<Elements<'a>, Malformed> {
        let mut constructor = Reader::new(self.constructor);
        let descriptor = match constructor.passed(wire::DESCRIBED) {
            true => Some(read_descriptor(&mut constructor)?),
            false => None,
        };
        let (reader, left) = (Reader::new(self.items), self.count);
        Ok(Elements { reader, left, descriptor, constructor: constructor.rest() })
    }
    fn check(&self, depth: usize) -> Result<(), Malformed> {
        if depth > DEPTH_MAX {
            return Err(TOO_DEEP);
        }
        let mut elements = self.elements()?;
        for element in &mut elements {
            check(element?, depth + 1)?;
        }
        if elements.reader.rest().is_empty() { Ok(()) } else { Err(WRONG_SIZE) }
    }
}

/// Reads the elements of an array. Their descriptor is read once: it may be long.
struct Elements<'a> {
    reader: Reader<'a>,
    left: u32,
    descriptor: Option<Descriptor<'a>>,
    /// Their format code.
    constructor: &'a [u8],
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<Value<'a>, Malformed>;
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let (code, constructor) = (format_code(self.constructor), self.constructor);
        Some(match self.descriptor {
            None => read_body(code, &mut self.reader),
            Some(descriptor) => self
                .reader
                .take_width(code)
                .map(|body| Value::Described(Described { descriptor, constructor, body })),
        })
    }
}

impl<'a> Described<'a> {
    /// Which type it is of.
    #[inline]
    #[must_use]
    pub fn descriptor(&self) -> Descriptor<'a> {
        self.descriptor
    }
    /// What the descriptor describes. It was checked with everything around it; a null stands for what
    /// was not.
    #[must_use]
    pub fn value(&self) -> Value<'a> {
        self.read_value().unwrap_or(Value::Null)
    }
    /// What the descriptor describes.
    #[inline]
    pub(super) fn read_value(&self) -> Result<Value<'a>, Malformed> {
        read_constructed(self.constructor, &mut Reader::new(self.body))
    }
    /// Its list.
    #[inline]
    pub(super) fn read_list(&self) -> Result<List<'a>, Malformed> {
        match *self.constructor {
            [wire::LIST8] => list(counted8(&mut Reader::new(self.body))?),
            [wire::LIST0] => Ok(List::default()),
            [wire::LIST32] => list(counted32(&mut Reader::new(self.body))?),
            _ => Err(malformed!("is not a list")),
        }
    }
    /// What is behind the descriptor, as it is encoded: the constructor and what it is followed by.
    pub(super) fn parts(&self) -> [&'a [u8]; 2] {
        [self.constructor, self.body]
    }
}
