//! What properties hold, and literals.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

/// What a message has under a property's name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'m> {
    /// Nothing: the message does not have the property.
    Null,
    /// A truth value.
    Bool(bool),
    /// An integer of any width. One that does not fit is [`Value::Approximate`].
    Exact(i64),
    /// A float of any width.
    Approximate(f64),
    /// Text.
    Text(&'m str),
    /// A value that selectors cannot compare: bytes, a list, a map.
    Other,
}

impl Value<'_> {
    /// Whether both are of the same type; all numbers are of one. A missing value is of none, nor is
    /// [`Value::Other`].
    pub(super) fn is_like(self, other: Value<'_>) -> bool {
        match (self, other) {
            (Value::Bool(_), Value::Bool(_)) | (Value::Text(_), Value::Text(_)) => true,
            _ => self.number().is_some() && other.number().is_some(),
        }
    }

    /// The number as a double.
    pub(super) fn number(self) -> Option<f64> {
        match self {
            Value::Exact(number) => Some(number as f64),
            Value::Approximate(number) => Some(number),
            _ => None,
        }
    }

    /// Whether two values are equal, as `=` has it for values that are not missing.
    pub(super) fn equals(self, other: Value<'_>) -> bool {
        match (self, other) {
            (Value::Bool(left), Value::Bool(right)) => left == right,
            (Value::Text(left), Value::Text(right)) => left == right,
            _ => self.compare(other) == Some(Ordering::Equal),
        }
    }

    /// The order of two numbers.
    pub(super) fn compare(self, other: Value<'_>) -> Option<Ordering> {
        match (self, other) {
            (Value::Exact(left), Value::Exact(right)) => Some(left.cmp(&right)),
            _ => self.number()?.partial_cmp(&other.number()?),
        }
    }

    /// Hashes the value such that all that `=` says are equal hash alike: `1`, `1.0` and `1.0f`.
    pub fn hash_as_equal(self, state: &mut impl Hasher) {
        match self {
            Value::Null | Value::Other => state.write_u8(0),
            Value::Bool(truth) => state.write_u8(1 + u8::from(truth)),
            Value::Text(text) => text.hash(state),
            Value::Exact(_) | Value::Approximate(_) => {
                let number = self.number().unwrap_or_default();
                // Both zeros are equal.
                state.write_u64((number + 0.0).to_bits());
            }
        }
    }
}

/// A value in a selector's text.
#[derive(Clone, Debug)]
pub enum Literal {
    /// `TRUE` or `FALSE`.
    Bool(bool),
    /// A number without a fraction.
    Exact(i64),
    /// A number with a fraction or an exponent; always finite.
    Approximate(f64),
    /// Text.
    Text(Box<str>),
}

impl Literal {
    /// The value.
    #[must_use]
    pub fn value(&self) -> Value<'_> {
        match self {
            Literal::Bool(truth) => Value::Bool(*truth),
            Literal::Exact(number) => Value::Exact(*number),
            Literal::Approximate(number) => Value::Approximate(*number),
            Literal::Text(text) => Value::Text(text),
        }
    }

    /// Bytes beside the literal itself.
    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Literal::Text(text) => text.len(),
            _ => 0,
        }
    }
}

/// Literals are the same if they are spelled the same, which for numbers is less than being equal:
/// `1` and `1.0` differ.
impl Ord for Literal {
    fn cmp(&self, other: &Literal) -> Ordering {
        match (self, other) {
            (Literal::Bool(left), Literal::Bool(right)) => left.cmp(right),
            (Literal::Exact(left), Literal::Exact(right)) => left.cmp(right),
            (Literal::Approximate(left), Literal::Approximate(right)) => left.total_cmp(right),
            (Literal::Text(left), Literal::Text(right)) => left.cmp(right),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl Literal {
    /// The place of its type in the order of literals.
    fn rank(&self) -> u8 {
        match self {
            Literal::Bool(_) => 0,
            Literal::Exact(_) => 1,
            Literal::Approximate(_) => 2,
            Literal::Text(_) => 3,
        }
    }
}

impl PartialOrd for Literal {
    fn partial_cmp(&self, other: &Literal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Literal {
    fn eq(&self, other: &Literal) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Literal {}

impl Hash for Literal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.rank().hash(state);
        match self {
            Literal::Bool(truth) => truth.hash(state),
            Literal::Exact(number) => number.hash(state),
            Literal::Approximate(number) => number.to_bits().hash(state),
            Literal::Text(text) => text.hash(state),
        }
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Bool(true) => f.write_str("TRUE"),
            Literal::Bool(false) => f.write_str("FALSE"),
            Literal::Exact(number) => write!(f, "{number}"),
            // Always with a point or an exponent, so that it is not exact.
            Literal::Approximate(number) => write!(f, "{number:?}"),
            Literal::Text(text) => write!(f, "'{}'", text.replace('\'', "''")),
        }
    }
}
