//! Fields that can be of several composite types: the descriptor says which.

use super::composite::CompositeInfo;
use super::field::Field;
use super::malformed::{Malformed, malformed};
use super::value::{Described, Descriptor};

/// One of several composite types.
pub trait Union<'a>: Field<'a> {
    /// The types: descriptors, names and fields.
    const ALL: &'static [CompositeInfo];
    /// The type that this is of.
    fn info(&self) -> CompositeInfo;
    /// Reads a described value as one of the types.
    fn from_described(described: Described<'a>) -> Result<Self, Malformed>;
}

/// A descriptor of no type that has a place here.
pub(super) const UNKNOWN: Malformed =
    malformed!(NotImplemented, "has a descriptor of no type that is known there");

/// The number that a descriptor is, or stands for as one of these types' names.
#[inline]
pub(super) fn number(descriptor: Descriptor<'_>, all: &[CompositeInfo]) -> Option<u64> {
    match descriptor {
        Descriptor::Code(code) => Some(code),
        Descriptor::Name(_) => {
            all.iter().find(|info| info.is_named(descriptor)).map(|info| info.code)
        }
    }
}

/// Defines an enum of composite types, each of which has a variant of its own name.
macro_rules! one_of {
    ($(
        $(#[$meta:meta])*
        $name:literal $enum:ident $(<$life:lifetime>)? {
            $($variant:ident($type:ty),)*
        }
    )*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[allow(missing_docs, clippy::large_enum_variant)]
        pub enum $enum $(<$life>)? {
            $($variant($type),)*
        }

        impl<'a> $crate::amqp10::codec::union::Union<'a> for $enum $(<$life>)? {
            const ALL: &'static [$crate::amqp10::codec::composite::CompositeInfo] =
                &[$($variant::INFO,)*];
            fn info(&self) -> $crate::amqp10::codec::composite::CompositeInfo {
                match self { $($enum::$variant(_) => $variant::INFO,)* }
            }
            #[inline]
            fn from_described(
                described: $crate::amqp10::codec::value::Described<'a>,
            ) -> Result<Self, $crate::amqp10::codec::malformed::Malformed> {
                use $crate::amqp10::codec::{composite::Composite, union::{UNKNOWN, number}};
                const PLACE: &$crate::amqp10::codec::malformed::Place =
                    &$crate::amqp10::codec::malformed::Place::whole($name);
                let code = number(described.descriptor(), Self::ALL);
                $(if code == Some($variant::INFO.code) {
                    return Composite::from_described(described).map($enum::$variant);
                })*
                Err(UNKNOWN.within(PLACE))
            }
        }

        impl<'a> $crate::amqp10::codec::field::Field<'a> for $enum $(<$life>)? {
            #[inline]
            fn read(
                reader: &mut $crate::amqp10::codec::wire::Reader<'a>,
            ) -> Result<Self, $crate::amqp10::codec::malformed::Malformed> {
                let described = $crate::amqp10::codec::value::read_described(reader)?;
                $crate::amqp10::codec::union::Union::from_described(described)
            }
            #[inline]
            fn write(&self, out: &mut Vec<u8>) {
                match self {
                    $($enum::$variant(it) => $crate::amqp10::codec::field::Field::write(it, out),)*
                }
            }
        }

        #[cfg(test)]
        impl $(<$life>)? $crate::amqp10::codec::tests::random::Arbitrary for $enum $(<$life>)? {
            fn random(random: &mut $crate::tests::random::Random) -> Self {
                use $crate::amqp10::codec::tests::random::Arbitrary;
                let all: &[fn(&mut $crate::tests::random::Random) -> Self] =
                    &[$(|random| $enum::$variant(Arbitrary::random(random)),)*];
                all[random.below(all.len())](random)
            }
        }
    )*};
}
pub(super) use one_of;
