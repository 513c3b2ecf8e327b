//! Values that are kept beyond the bytes that they were read from.

use super::field::Field;
use super::malformed::Malformed;
use super::value::{self, Map, Value};
use super::wire::Reader;
use super::write::{self, MapWriter};

/// A value and nothing behind it, as it is encoded: it takes one allocation of as many octets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OwnedValue(Box<[u8]>);

impl OwnedValue {
    /// Keeps a value.
    #[must_use]
    pub fn new<'a>(value: &impl Field<'a>) -> OwnedValue {
        let mut bytes = Vec::new();
        value.write(&mut bytes);
        OwnedValue(bytes.into())
    }
    /// A map; `fill` writes its entries.
    #[must_use]
    pub fn map(fill: impl FnOnce(&mut MapWriter<'_>)) -> OwnedValue {
        let mut bytes = Vec::new();
        write::put_map(&mut bytes, fill);
        OwnedValue(bytes.into())
    }
    /// Checks the encoding of one value and keeps it.
    pub fn decode(bytes: &[u8]) -> Result<OwnedValue, Malformed> {
        Value::decode(bytes)?;
        Ok(OwnedValue(bytes.into()))
    }
    /// The value.
    #[must_use]
    pub fn value(&self) -> Value<'_> {
        // Checked when it was made; so there is no null that stands for something else.
        value::read(&mut Reader::new(&self.0)).unwrap_or(Value::Null)
    }
    /// The map that it is; empty: it is something else.
    #[must_use]
    pub fn as_map(&self) -> Map<'_> {
        if let Value::Map(map) = self.value() { map } else { Map::default() }
    }
    /// Its encoding.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}
