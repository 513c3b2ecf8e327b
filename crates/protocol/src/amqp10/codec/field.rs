//! Types that fields of composites have: each reads all of its encodings and writes the smallest.

use super::malformed::{Malformed, malformed};
use super::put;
use super::value::{self, List, Map, Symbol, Timestamp, Uuid, Value};
use super::wire::{self, Reader};

/// A type that is read from a value and written as one.
pub trait Field<'a>: Sized {
    /// Reads a value of this type; it is checked to its depths.
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed>;
    /// Appends the value.
    fn write(&self, out: &mut Vec<u8>);
    /// Whether the value stands for the absence of one, as null does.
    #[inline]
    fn is_absent(&self) -> bool {
        false
    }
    /// Decodes the one value that `bytes` is.
    fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let value = Self::read(&mut reader)?;
        if reader.rest().is_empty() {
            Ok(value)
        } else {
            Err(malformed!("is followed by octets that belong to nothing"))
        }
    }
}

/// Implements [`Field`]: `codes` map format codes to what is read of `reader`; `put` writes `value` to `out`.
macro_rules! fields {
    ($(
        $name:literal $type:ty [$($lifetime:lifetime)?]
        codes |$reader:ident| { $($code:ident => $read:expr,)* }
        put |$value:ident, $out:ident| $write:expr;
    )*) => {$(
        impl<'a> Field<'a> for $type {
            #[inline]
            fn read($reader: &mut Reader<'a>) -> Result<Self, Malformed> {
                Ok(match $reader.octet()? {
                    $(wire::$code => $read,)*
                    _ => return Err(malformed!(concat!("is not of type ", $name))),
                })
            }
            #[inline]
            fn write(&self, $out: &mut Vec<u8>) {
                let $value = *self;
                $write
            }
        }
    )*};
}

fields! {
    "boolean" bool []
    codes |reader| {
        TRUE => true,
        FALSE => false,
        BOOLEAN => value::boolean(reader.octet()?)?,
    }
    put |value, out| out.push(if value { wire::TRUE } else { wire::FALSE });

    "ubyte" u8 []
    codes |reader| { UBYTE => reader.octet()?, }
    put |value, out| out.extend_from_slice(&[wire::UBYTE, value]);

    "ushort" u16 []
    codes |reader| { USHORT => u16::from_be_bytes(reader.chunk()?), }
    put |value, out| put::put_wide(out, wire::USHORT, value.to_be_bytes());

    "uint" u32 []
    codes |reader| {
        SMALL_UINT => reader.octet()?.into(),
        UINT => reader.word()?,
        UINT0 => 0,
    }
    put |value, out| match u8::try_from(value) {
        Ok(0) => out.push(wire::UINT0),
        Ok(small) => out.extend_from_slice(&[wire::SMALL_UINT, small]),
        Err(_) => put::put_wide(out, wire::UINT, value.to_be_bytes()),
    };

    "ulong" u64 []
    codes |reader| {
        SMALL_ULONG => reader.octet()?.into(),
        ULONG => u64::from_be_bytes(reader.chunk()?),
        ULONG0 => 0,
    }
    put |value, out| put::put_ulong(out, value);

    "byte" i8 []
    codes |reader| { BYTE => reader.octet()? as i8, }
    put |value, out| out.extend_from_slice(&[wire::BYTE, value as u8]);

    "short" i16 []
    codes |reader| { SHORT => i16::from_be_bytes(reader.chunk()?), }
    put |value, out| put::put_wide(out, wire::SHORT, value.to_be_bytes());

    "int" i32 []
    codes |reader| {
        SMALL_INT => (reader.octet()? as i8).into(),
        INT => i32::from_be_bytes(reader.chunk()?),
    }
    put |value, out| match i8::try_from(value) {
        Ok(small) => out.extend_from_slice(&[wire::SMALL_INT, small as u8]),
        Err(_) => put::put_wide(out, wire::INT, value.to_be_bytes()),
    };

    "long" i64 []
    codes |reader| {
        SMALL_LONG => (reader.octet()? as i8).into(),
        LONG => i64::from_be_bytes(reader.chunk()?),
    }
    put |value, out| match i8::try_from(value) {
        Ok(small) => out.extend_from_slice(&[wire::SMALL_LONG, small as u8]),
        Err(_) => put::put_wide(out, wire::LONG, value.to_be_bytes()),
    };

    "float" f32 []
    codes |reader| { FLOAT => f32::from_be_bytes(reader.chunk()?), }
    put |value, out| put::put_wide(out, wire::FLOAT, value.to_be_bytes());

    "double" f64 []
    codes |reader| { DOUBLE => f64::from_be_bytes(reader.chunk()?), }
    put |value, out| put::put_wide(out, wire::DOUBLE, value.to_be_bytes());

    "char" char []
    codes |reader| { CHAR => value::character(reader.word()?)?, }
    put |value, out| put::put_wide(out, wire::CHAR, u32::from(value).to_be_bytes());

    "timestamp" Timestamp []
    codes |reader| { TIMESTAMP => Timestamp(i64::from_be_bytes(reader.chunk()?)), }
    put |value, out| put::put_wide(out, wire::TIMESTAMP, value.0.to_be_bytes());

    "uuid" Uuid []
    codes |reader| { UUID => Uuid(reader.chunk()?), }
    put |value, out| put::put_wide(out, wire::UUID, value.0);

    "binary" &'a [u8] ['a]
    codes |reader| {
        BINARY8 => reader.sized8()?,
        BINARY32 => reader.sized32()?,
    }
    put |value, out| put::put_bytes(out, put::BINARY, value);

    "string" &'a str ['a]
    codes |reader| {
        STRING8 => value::string(reader.sized8()?)?,
        STRING32 => value::string(reader.sized32()?)?,
    }
    put |value, out| put::put_bytes(out, put::STRING, value.as_bytes());

    "symbol" Symbol<'a> ['a]
    codes |reader| {
        SYMBOL8 => value::symbol(reader.sized8()?)?,
        SYMBOL32 => value::symbol(reader.sized32()?)?,
    }
    put |value, out| put::put_bytes(out, put::SYMBOL, value.0.as_bytes());
}

impl<'a> Field<'a> for Value<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        value::read_checked(reader)
    }
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Value::Null => out.push(wire::NULL),
            Value::Boolean(value) => value.write(out),
            Value::UByte(value) => value.write(out),
            Value::UShort(value) => value.write(out),
            Value::UInt(value) => value.write(out),
            Value::ULong(value) => value.write(out),
            Value::Byte(value) => value.write(out),
            Value::Short(value) => value.write(out),
            Value::Int(value) => value.write(out),
            Value::Long(value) => value.write(out),
            Value::Float(value) => value.write(out),
            Value::Double(value) => value.write(out),
            Value::Decimal32(octets) => put::put_wide(out, wire::DECIMAL32, *octets),
            Value::Decimal64(octets) => put::put_wide(out, wire::DECIMAL64, *octets),
            Value::Decimal128(octets) => put::put_wide(out, wire::DECIMAL128, *octets),
            Value::Char(value) => value.write(out),
            Value::Timestamp(value) => value.write(out),
            Value::Uuid(value) => value.write(out),
            Value::Binary(value) => value.write(out),
            Value::String(value) => value.write(out),
            Value::Symbol(value) => value.write(out),
            Value::List(list) => put::put_list_as_is(out, *list),
            Value::Map(map) => put::put_map_as_is(out, *map),
            Value::Array(array) => put::put_array_as_is(out, *array),
            Value::Described(described) => put::put_described_as_is(out, *described),
        }
    }
}

impl<'a> Field<'a> for Map<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        match value::read_checked(reader)? {
            Value::Map(map) => Ok(map),
            _ => Err(malformed!("is not of type map")),
        }
    }
    fn write(&self, out: &mut Vec<u8>) {
        put::put_map_as_is(out, *self);
    }
}

impl<'a> Field<'a> for List<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        match value::read_checked(reader)? {
            Value::List(list) => Ok(list),
            _ => Err(malformed!("is not of type list")),
        }
    }
    fn write(&self, out: &mut Vec<u8>) {
        put::put_list_as_is(out, *self);
    }
}

/// Defines an enum that restricts the values of a primitive type.
macro_rules! choices {
    ($(
        $(#[$meta:meta])*
        $name:ident is $type:ty { $($(#[$choice_meta:meta])* $choice:ident = $value:expr,)* }
    )*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum $name { $($(#[$choice_meta])* $choice,)* }

        impl $name {
            /// All choices.
            pub const ALL: &[$name] = &[$($name::$choice,)*];
        }

        impl<'a> $crate::amqp10::codec::field::Field<'a> for $name {
            #[inline]
            fn read(
                reader: &mut $crate::amqp10::codec::wire::Reader<'a>,
            ) -> Result<Self, $crate::amqp10::codec::malformed::Malformed> {
                let value = <$type as $crate::amqp10::codec::field::Field<'a>>::read(reader)?;
                $(if value == $value {
                    return Ok($name::$choice);
                })*
                Err($crate::amqp10::codec::field::NO_CHOICE)
            }
            #[inline]
            fn write(&self, out: &mut Vec<u8>) {
                match self { $($name::$choice => $crate::amqp10::codec::field::Field::write(&$value, out),)* }
            }
        }
    )*};
}
pub(super) use choices;

/// A value of the right type that the specification gives no meaning.
pub(super) const NO_CHOICE: Malformed =
    malformed!(InvalidField, "has a value that is none of those allowed for it");
