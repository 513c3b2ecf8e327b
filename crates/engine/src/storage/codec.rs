//! Bytes of records and snapshots: fixed-width little-endian integers, variable-length integers and
//! length-prefixed text. Reading never panics and never trusts a length.

use crate::{ConnectionId, Format, Position, Refusal, ShardId, Shards, Time};
use std::ops::RangeInclusive;
use std::time::Duration;

/// What is wrong with stored bytes.
pub(crate) type Malformed = String;

/// What cannot be restored: the refusal's text says why.
impl From<Refusal> for Malformed {
    fn from(refusal: Refusal) -> Malformed {
        refusal.text
    }
}

/// A value with one encoding, the same wherever it is stored or sent.
pub(crate) trait Codec<'a>: Sized {
    fn encode(&self, writer: &mut Writer<'_>);
    fn decode(reader: &mut Reader<'a>) -> Result<Self, Malformed>;
}

/// A number of variable length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Varint(pub(crate) u64);

/// Encodes a value by one that stands for it: how that is made of it, and it of that.
macro_rules! codec_as {
    ($type:ty as $other:ty: $to:expr, $from:expr) => {
        impl Codec<'_> for $type {
            #[inline]
            fn encode(&self, writer: &mut Writer<'_>) {
                let to: fn(&$type) -> $other = $to;
                to(self).encode(writer);
            }
            #[inline]
            fn decode(reader: &mut Reader<'_>) -> Result<$type, Malformed> {
                let from: fn($other) -> Result<$type, Malformed> = $from;
                from(reader.get()?)
            }
        }
    };
}

pub(crate) use codec_as;

/// Encodes a value by the methods of [`Writer`] and [`Reader`] that have its name.
macro_rules! codec_by {
    (<$life:lifetime> $($type:ty: $method:ident),+) => {$(
        impl<$life> Codec<$life> for $type {
            #[inline]
            fn encode(&self, writer: &mut Writer<'_>) {
                writer.$method(*self);
            }
            #[inline]
            fn decode(reader: &mut Reader<$life>) -> Result<$type, Malformed> {
                reader.$method()
            }
        }
    )+};
}

/// Encodes a struct as these fields, one after the other. This and [`codec_enum`] are used where `Codec`,
/// `Malformed`, `Reader` and `Writer` are in scope.
macro_rules! codec_fields {
    (<$life:lifetime> $type:ty: $($field:ident),+) => {
        impl<$life> Codec<$life> for $type {
            fn encode(&self, writer: &mut Writer<'_>) {
                $(writer.put(&self.$field);)+
            }
            fn decode(reader: &mut Reader<$life>) -> Result<Self, Malformed> {
                Ok(Self { $($field: reader.get()?),+ })
            }
        }
    };
}
pub(crate) use codec_fields;

/// Declares an enum that is encoded as one byte of kind and the fields of its variant; after `;`, the field
/// that has all bytes that are left.
macro_rules! codec_enum {
    (
        $(#[$meta:meta])*
        enum $name:ident<$life:lifetime>, $kind:ident, $what:literal {
            $(
                $(#[$doc:meta])*
                $tag:literal $variant:ident
                $({ $($field:ident: $type:ty),* $(; $rest:ident)? })?
                $(($inner:ident: $inner_type:ty))?
            ),+ $(,)?
        }
    ) => {
        /// The kinds, by their number.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum $kind {
            $($variant = $tag),+
        }

        $(#[$meta])*
        pub(crate) enum $name<$life> {
            $(
                $(#[$doc])*
                $variant $({ $($field: $type,)* $($rest: &$life [u8],)? })? $(($inner_type))?
            ),+
        }

        impl<$life> Codec<$life> for $name<$life> {
            fn encode(&self, writer: &mut Writer<'_>) {
                match self {
                    $($name::$variant $({ $($field,)* $($rest,)? })? $(($inner))? => {
                        writer.u8($kind::$variant as u8);
                        $($(writer.put($field);)* $(writer.0.extend_from_slice($rest);)?)?
                        $(writer.put($inner);)?
                    })+
                }
            }
            fn decode(reader: &mut Reader<$life>) -> Result<Self, Malformed> {
                Ok(match reader.u8()? {
                    $($tag => $name::$variant
                        $({ $($field: reader.get()?,)* $($rest: reader.rest(),)? })?
                        $((reader.get::<$inner_type>()?))?,)+
                    other => return Err(format!(concat!($what, " {} is unknown"), other)),
                })
            }
        }
    };
}
pub(crate) use codec_enum;

codec_by!(<'a> u8: u8, bool: bool, u32: u32, u64: u64, &'a str: text, &'a [u8]: bytes);
codec_as!(String as &str: |text| text, |text| Ok(text.to_owned()));
codec_as!(Time as u64: |time| time.0, |micros| Ok(Time(micros)));
codec_as!(Position as u64: |position| position.0, |number| Ok(Position(number)));
codec_as!(ConnectionId as u32: |id| id.0, |number| Ok(ConnectionId(number)));
codec_as!(ShardId as u8: |id| id.0, |number| Ok(ShardId(number)));
codec_as!(Shards as u64: |shards| shards.bits(), |bits| Ok(Shards::of_bits(bits)));
codec_as!(Format as u8: |format| format.0, |number| Ok(Format(number)));
codec_as!(Duration as u64: |span| u64::try_from(span.as_micros()).unwrap_or(u64::MAX),
    |micros| Ok(Duration::from_micros(micros)));
codec_as!(RangeInclusive<u64> as (Varint, Varint):
|range| (Varint(*range.start()), Varint(range.end() - range.start())),
|(Varint(first), Varint(more))| {
    let last = first.checked_add(more).ok_or("a range beyond 64 bits")?;
    Ok(first..=last)
});

impl Codec<'_> for Varint {
    #[inline]
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.varint(self.0);
    }
    #[inline]
    fn decode(reader: &mut Reader<'_>) -> Result<Varint, Malformed> {
        reader.varint().map(Varint)
    }
}

/// A flag, and the value where there is one.
impl<'a, T: Codec<'a>> Codec<'a> for Option<T> {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.bool(self.is_some());
        self.iter().for_each(|value| value.encode(writer));
    }
    fn decode(reader: &mut Reader<'a>) -> Result<Option<T>, Malformed> {
        if reader.bool()? { reader.get().map(Some) } else { Ok(None) }
    }
}

impl<'a, T: Codec<'a>> Codec<'a> for Vec<T> {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.varint(self.len() as u64);
        self.iter().for_each(|value| value.encode(writer));
    }
    fn decode(reader: &mut Reader<'a>) -> Result<Vec<T>, Malformed> {
        (0..reader.count()?).map(|_| reader.get()).collect()
    }
}

macro_rules! codec_tuple {
    ($($part:ident),+) => {
        impl<'a, $($part: Codec<'a>),+> Codec<'a> for ($($part,)+) {
            #[inline]
            #[allow(non_snake_case, reason = "the parts are named as their types")]
            fn encode(&self, writer: &mut Writer<'_>) {
                let ($($part,)+) = self;
                $($part.encode(writer);)+
            }
            #[inline]
            fn decode(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
                Ok(($($part::decode(reader)?,)+))
            }
        }
    };
}

codec_as!(i64 as u64: |number| number.cast_unsigned(), |number| Ok(number.cast_signed()));
codec_tuple!(A, B);
codec_tuple!(A, B, C);

/// Appends values to a byte vector.
#[derive(Debug)]
pub(crate) struct Writer<'a>(pub(crate) &'a mut Vec<u8>);

impl Writer<'_> {
    pub(crate) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }
    pub(crate) fn bool(&mut self, value: bool) {
        self.0.push(u8::from(value));
    }
    pub(crate) fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }
    pub(crate) fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }
    /// Seven bits a byte, lowest first; the top bit says that more follow.
    #[inline]
    pub(crate) fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value as u8) | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
    #[inline]
    pub(crate) fn bytes(&mut self, value: &[u8]) {
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
    }
    #[inline]
    pub(crate) fn text(&mut self, value: &str) {
        self.bytes(value.as_bytes());
    }
    #[inline]
    pub(crate) fn put<'a>(&mut self, value: &impl Codec<'a>) {
        value.encode(self);
    }
    /// How many they are, and each as `write` writes it; read as a `Vec`, or by [`Reader::items`].
    pub(crate) fn each<V>(
        &mut self,
        values: impl Iterator<Item = V> + Clone,
        write: impl Fn(&mut Self, V),
    ) {
        self.varint(values.clone().count() as u64);
        values.for_each(|value| write(self, value));
    }
    /// How many they are, and what stands for each; read in the same way.
    pub(crate) fn list<'a, V, T: Codec<'a>>(
        &mut self,
        values: impl Iterator<Item = V> + Clone,
        stands_for: impl Fn(V) -> T,
    ) {
        self.each(values, |writer, value| writer.put(&stands_for(value)));
    }
}

/// Takes values off the front of bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    #[inline]
    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let Some((taken, rest)) = self.0.split_at_checked(length) else {
            return Err(self.too_short_for(length));
        };
        self.0 = rest;
        Ok(taken)
    }
    #[cold]
    fn too_short_for(&self, length: usize) -> Malformed {
        format!("{length} bytes expected, {} left", self.0.len())
    }
    #[inline]
    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.take(1)?[0])
    }
    pub(crate) fn bool(&mut self) -> Result<bool, Malformed> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(format!("{other} is no truth value")),
        }
    }
    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into().expect("four bytes were taken")))
    }
    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into().expect("eight bytes were taken")))
    }
    #[inline]
    pub(crate) fn varint(&mut self) -> Result<u64, Malformed> {
        match self.0.split_first() {
            // Most are less than 128.
            Some((byte, rest)) if *byte < 0x80 => {
                self.0 = rest;
                Ok(u64::from(*byte))
            }
            _ => self.long_varint(),
        }
    }
    fn long_varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("integer of more than 64 bits".to_owned())
    }
    /// A count of things of at least one byte each, so that it cannot exceed what is left.
    #[inline]
    pub(crate) fn count(&mut self) -> Result<usize, Malformed> {
        let count = self.varint()?;
        match usize::try_from(count) {
            Ok(count) if count <= self.0.len() => Ok(count),
            _ => Err(self.too_few_for(count)),
        }
    }
    #[cold]
    fn too_few_for(&self, count: u64) -> Malformed {
        format!("count of {count} with {} bytes left", self.0.len())
    }
    #[inline]
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.count()?;
        self.take(length)
    }
    pub(crate) fn text(&mut self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.bytes()?).map_err(|error| error.to_string())
    }
    #[inline]
    pub(crate) fn get<T: Codec<'a>>(&mut self) -> Result<T, Malformed> {
        T::decode(self)
    }
    /// The values of a list, one by one: it may be too long to be held.
    pub(crate) fn items<T: Codec<'a>>(
        &mut self,
    ) -> Result<impl Iterator<Item = Result<T, Malformed>>, Malformed> {
        Ok((0..self.count()?).map(|_| self.get()))
    }
    /// The value that is all there is.
    pub(crate) fn whole<T: Codec<'a>>(mut self) -> Result<T, Malformed> {
        let value = self.get()?;
        self.end()?;
        Ok(value)
    }
    /// All that is left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
    /// Refuses what is left over.
    pub(crate) fn end(self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(format!("{} bytes too many", self.0.len())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_comes_back() {
        for value in [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            Writer(&mut bytes).varint(value);
            let mut reader = Reader(&bytes);
            assert_eq!(reader.varint(), Ok(value));
            assert_eq!(reader.end(), Ok(()));
        }
    }

    #[test]
    fn nonsense_is_an_error() {
        assert!(Reader(&[0xff; 11]).varint().is_err());
        assert!(Reader(&[0xff, 0xff, 3]).bytes().is_err());
        assert!(Reader(&[2]).bool().is_err());
        assert!(Reader(&[1, 0xff]).text().is_err());
        assert!(Reader(&[]).u64().is_err());
    }
}
