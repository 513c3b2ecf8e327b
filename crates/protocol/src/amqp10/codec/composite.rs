//! Composite types (part 1, 1.4): described lists whose elements are fields. One table for each part of the
//! specification defines them; reading, writing and defaults are derived from it.

use super::field::Field;
use super::malformed::{Malformed, Place, malformed};
use super::value::{Described, Descriptor, List};
use super::wire::{self, Reader};
use super::write::ListWriter;

/// What a table says of one composite type.
#[derive(Clone, Copy, Debug)]
pub struct CompositeInfo {
    /// The descriptor by number.
    pub code: u64,
    /// The descriptor by name: `amqp:open:list`.
    pub symbol: &'static str,
    /// As error texts name it: `open`.
    pub name: &'static str,
    /// Its fields' names, in order.
    pub fields: &'static [&'static str],
}

impl CompositeInfo {
    /// Whether a descriptor is the one of this type.
    #[inline]
    pub(super) fn is_named(&self, descriptor: Descriptor<'_>) -> bool {
        match descriptor {
            Descriptor::Code(code) => code == self.code,
            Descriptor::Name(name) => name.0 == self.symbol,
        }
    }
}

const MISSING: Malformed = malformed!(InvalidField, "is mandatory and missing");
/// A descriptor of another type.
pub(super) const OTHER: Malformed = malformed!("has the descriptor of another type");
const TOO_MANY: Malformed = malformed!("has more fields than the specification gives it");
const WRONG_SIZE: Malformed = malformed!("has a size that does not match its fields");

/// A composite type.
pub(super) trait Composite<'a>: Sized {
    /// Where errors are that belong to no field.
    const PLACE: &'static Place;
    /// Reads the fields.
    fn from_list(list: List<'a>) -> Result<Self, Malformed>;
    /// Appends the fields.
    fn put_fields(&self, list: &mut ListWriter<'_>);
    /// Reads what a descriptor of this type describes.
    #[inline]
    fn from_described(described: Described<'a>) -> Result<Self, Malformed> {
        match described.read_list() {
            Ok(list) => Self::from_list(list),
            Err(malformed) => Err(malformed.within(Self::PLACE)),
        }
    }
}

/// Reads the fields of a composite.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    whole: &'static Place,
    reader: Reader<'a>,
    left: usize,
}

impl<'a> Fields<'a> {
    #[inline]
    pub(super) fn new(whole: &'static Place, list: List<'a>) -> Fields<'a> {
        Fields { whole, reader: Reader::new(list.bytes()), left: list.len() }
    }
    /// The next field; `None`: it is null or beyond the end of the list.
    #[inline]
    pub(super) fn optional<T: Field<'a>>(
        &mut self,
        place: &'static Place,
    ) -> Result<Option<T>, Malformed> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        if self.reader.passed(wire::NULL) {
            return Ok(None);
        }
        match T::read(&mut self.reader) {
            Ok(value) => Ok((!value.is_absent()).then_some(value)),
            Err(malformed) => Err(malformed.within(place)),
        }
    }
    /// The next field, which must be there.
    #[inline]
    pub(super) fn required<T: Field<'a>>(&mut self, place: &'static Place) -> Result<T, Malformed> {
        match self.optional(place)? {
            Some(value) => Ok(value),
            None => Err(MISSING.within(place)),
        }
    }
    /// Nothing may be left.
    #[inline]
    pub(super) fn finish(self) -> Result<(), Malformed> {
        match (self.left, self.reader.rest()) {
            (0, []) => Ok(()),
            (0, _) => Err(WRONG_SIZE.within(self.whole)),
            _ => Err(TOO_MANY.within(self.whole)),
        }
    }
}

/// The number of the descriptor that a described value begins with, where it has one in the form that
/// everybody writes: it tells performatives apart before they are decoded.
#[inline]
#[must_use]
pub fn descriptor_code(bytes: &[u8]) -> Option<u8> {
    match bytes {
        &[wire::DESCRIBED, wire::SMALL_ULONG, code, ..] => Some(code),
        _ => None,
    }
}

/// The parts of the generated code that depend on the kind of a field: its type, reading, writing, its
/// default and, for tests, a random value.
macro_rules! field {
    (type required $type:ty) => { $type };
    (type optional $type:ty) => { Option<$type> };
    (type default $type:ty) => { $type };
    (read $fields:ident $place:expr, required) => { $fields.required($place)? };
    (read $fields:ident $place:expr, optional) => { $fields.optional($place)? };
    (read $fields:ident $place:expr, default $default:expr) => {
        match $fields.optional($place)? {
            Some(value) => value,
            None => $default,
        }
    };
    (write $list:ident $value:expr, required) => { $list.put(&$value) };
    (write $list:ident $value:expr, optional) => {
        match &$value {
            Some(value) => $list.put(value),
            None => $list.put_null(),
        }
    };
    (write $list:ident $value:expr, default $default:expr) => {
        if $value == $default { $list.put_null() } else { $list.put(&$value) }
    };
    (initial required) => { Default::default() };
    (initial optional) => { None };
    (initial default $default:expr) => { $default };
    (random $random:ident $type:ty, required) => { <$type>::random($random) };
    (random $random:ident $type:ty, optional) => {
        if $random.below(2) == 0 { None } else { Some(<$type>::random($random)) }
    };
    (random $random:ident $type:ty, default $default:expr) => {
        if $random.below(2) == 0 { $default } else { <$type>::random($random) }
    };
}
pub(super) use field;

/// Defines composite types. A field is `required`, `optional` (absent: `None`) or has a `default`.
macro_rules! composites {
    ($(
        $(#[$meta:meta])*
        $code:literal $symbol:literal $name:literal $struct:ident $(<$life:lifetime>)? {
            $($text:literal $field:ident: $type:ty, $kind:ident $($default:expr)?;)*
        }
    )*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[allow(missing_docs)]
        pub struct $struct $(<$life>)? {
            $(pub $field: $crate::amqp10::codec::composite::field!(type $kind $type),)*
        }

        impl $(<$life>)? $struct $(<$life>)? {
            /// Descriptor, name and fields.
            pub const INFO: $crate::amqp10::codec::composite::CompositeInfo =
                $crate::amqp10::codec::composite::CompositeInfo {
                    code: $code,
                    symbol: $symbol,
                    name: $name,
                    fields: &[$($text),*],
                };
        }

        impl $(<$life>)? Default for $struct $(<$life>)? {
            fn default() -> Self {
                $struct {
                    $($field: $crate::amqp10::codec::composite::field!(
                        initial $kind $($default)?
                    ),)*
                }
            }
        }

        impl<'a> $crate::amqp10::codec::composite::Composite<'a> for $struct $(<$life>)? {
            const PLACE: &'static $crate::amqp10::codec::malformed::Place =
                &$crate::amqp10::codec::malformed::Place::whole($name);
            #[inline]
            fn from_list(
                list: $crate::amqp10::codec::value::List<'a>,
            ) -> Result<Self, $crate::amqp10::codec::malformed::Malformed> {
                #[allow(unused_mut)]
                let mut fields = $crate::amqp10::codec::composite::Fields::new(Self::PLACE, list);
                let composite = $struct {
                    $($field: $crate::amqp10::codec::composite::field!(
                        read fields &$crate::amqp10::codec::malformed::Place { of: $name, field: $text },
                        $kind $($default)?
                    ),)*
                };
                fields.finish()?;
                Ok(composite)
            }
            #[inline]
            fn put_fields(&self, _list: &mut $crate::amqp10::codec::write::ListWriter<'_>) {
                $($crate::amqp10::codec::composite::field!(
                    write _list self.$field, $kind $($default)?
                );)*
            }
        }

        impl<'a> $crate::amqp10::codec::field::Field<'a> for $struct $(<$life>)? {
            #[inline]
            fn read(
                reader: &mut $crate::amqp10::codec::wire::Reader<'a>,
            ) -> Result<Self, $crate::amqp10::codec::malformed::Malformed> {
                let described = $crate::amqp10::codec::value::read_described(reader)?;
                if !$struct::INFO.is_named(described.descriptor()) {
                    use $crate::amqp10::codec::composite::{Composite, OTHER};
                    return Err(OTHER.within(Self::PLACE));
                }
                $crate::amqp10::codec::composite::Composite::from_described(described)
            }
            #[inline]
            fn write(&self, out: &mut Vec<u8>) {
                $crate::amqp10::codec::put::put_described(out, $struct::INFO.code, |out| {
                    $crate::amqp10::codec::write::put_written(out, |list| {
                        $crate::amqp10::codec::composite::Composite::put_fields(self, list);
                    });
                });
            }
        }

        #[cfg(test)]
        impl $(<$life>)? $crate::amqp10::codec::tests::random::Arbitrary for $struct $(<$life>)? {
            fn random(_random: &mut $crate::tests::random::Random) -> Self {
                #[allow(unused_imports)]
                use $crate::amqp10::codec::tests::random::Arbitrary;
                $struct {
                    $($field: $crate::amqp10::codec::composite::field!(
                        random _random $type, $kind $($default)?
                    ),)*
                }
            }
        }
    )*};
}
pub(super) use composites;
