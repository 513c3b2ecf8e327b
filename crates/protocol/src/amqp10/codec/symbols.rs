//! Several symbols in one field, which the specification calls `multiple`: a symbol, or an array of them.

use super::field::Field;
use super::malformed::{Malformed, malformed};
use super::put;
use super::value::{self, Array, Symbol, Value};
use super::wire::Reader;
use super::write;

/// Symbols, in their order. Two are equal if they have the same symbols, however they are encoded.
#[derive(Clone, Copy, Debug)]
pub struct Symbols<'a>(Form<'a>);

#[derive(Clone, Copy, Debug)]
enum Form<'a> {
    Slice(&'a [Symbol<'a>]),
    One(Symbol<'a>),
    Array(Array<'a>),
}

const NOT_SYMBOLS: Malformed = malformed!("is neither a symbol nor an array of symbols");

impl<'a> Symbols<'a> {
    /// No symbols.
    pub const NONE: Symbols<'static> = Symbols::new(&[]);
    /// These symbols.
    #[must_use]
    pub const fn new(symbols: &'a [Symbol<'a>]) -> Symbols<'a> {
        Symbols(Form::Slice(symbols))
    }
    /// Its symbols.
    pub fn iter(&self) -> impl Iterator<Item = Symbol<'a>> + use<'a> {
        let (slice, one, array) = match self.0 {
            Form::Slice(slice) => (slice, None, None),
            Form::One(symbol) => (&[][..], Some(symbol), None),
            Form::Array(array) => (&[][..], None, Some(array)),
        };
        let elements = array.into_iter().flat_map(|array| array.values());
        let symbols = elements.filter_map(|value| match value {
            Value::Symbol(symbol) => Some(symbol),
            _ => None,
        });
        slice.iter().copied().chain(one).chain(symbols)
    }
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
    /// Whether this is one of them.
    #[must_use]
    pub fn contains(&self, symbol: &str) -> bool {
        self.iter().any(|it| it.0 == symbol)
    }
}

impl Default for Symbols<'_> {
    fn default() -> Self {
        Symbols::NONE
    }
}

impl PartialEq for Symbols<'_> {
    fn eq(&self, other: &Symbols<'_>) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<'a> Field<'a> for Symbols<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        match value::read_checked(reader)? {
            Value::Symbol(symbol) => Ok(Symbols(Form::One(symbol))),
            Value::Array(array) => {
                // A descriptor before the code is no symbol either, though the code is one's.
                let is_symbol = |value| matches!(value, Value::Symbol(_));
                if array.values().all(is_symbol) {
                    Ok(Symbols(Form::Array(array)))
                } else {
                    Err(NOT_SYMBOLS)
                }
            }
            _ => Err(NOT_SYMBOLS),
        }
    }
    /// An array without elements is the same as null (part 1, 1.4).
    fn is_absent(&self) -> bool {
        self.is_empty()
    }
    fn write(&self, out: &mut Vec<u8>) {
        match self.0 {
            Form::Slice(symbols) => write::put_array(out, symbols),
            Form::One(symbol) => symbol.write(out),
            Form::Array(array) if array.is_empty() => write::put_array::<Symbol<'_>>(out, &[]),
            Form::Array(array) => put::put_array_as_is(out, array),
        }
    }
}
