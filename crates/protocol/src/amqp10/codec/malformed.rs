//! Why bytes are not what the grammar asks for, where, and which error condition that is.

use super::conditions::Condition;

/// Where in a composite something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The composite's name: `attach`.
    pub of: &'static str,
    /// The field's name; empty: the composite as a whole.
    pub field: &'static str,
}

impl Place {
    /// A composite as a whole.
    pub(super) const fn whole(of: &'static str) -> Place {
        Place { of, field: "" }
    }
}

/// What is wrong.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) condition: Condition,
    pub(super) why: &'static str,
}

/// Why bytes are not what the grammar asks for. Two words, because every step of decoding returns it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Malformed {
    fault: &'static Fault,
    place: Option<&'static Place>,
}

impl Malformed {
    pub(super) const fn new(fault: &'static Fault) -> Malformed {
        Malformed { fault, place: None }
    }
    /// The same in this place, unless its place is known already.
    #[cold]
    pub(super) fn within(self, place: &'static Place) -> Malformed {
        Malformed { place: self.place.or(Some(place)), ..self }
    }
    /// The condition that an error to the peer has.
    #[must_use]
    pub fn condition(&self) -> Condition {
        self.fault.condition
    }
    /// What is wrong: a phrase that follows the name of the place.
    #[must_use]
    pub fn why(&self) -> &'static str {
        self.fault.why
    }
    /// The innermost composite that it is in; `None`: in none, or in one that has no name here.
    #[must_use]
    pub fn place(&self) -> Option<Place> {
        self.place.copied()
    }
}

/// Bytes that cannot be decoded, or with a condition what is wrong with them otherwise.
macro_rules! malformed {
    ($why:expr $(,)?) => {
        $crate::amqp10::codec::malformed::malformed!(DecodeError, $why)
    };
    ($condition:ident, $why:expr $(,)?) => {{
        const FAULT: &$crate::amqp10::codec::malformed::Fault =
            &$crate::amqp10::codec::malformed::Fault {
                condition: $crate::amqp10::codec::conditions::Condition::$condition,
                why: $why,
            };
        $crate::amqp10::codec::malformed::Malformed::new(FAULT)
    }};
}
pub(super) use malformed;

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let why = self.fault.why;
        match self.place {
            None => write!(f, "a value {why}"),
            Some(Place { of, field: "" }) => write!(f, "{of} {why}"),
            Some(Place { of, field }) => write!(f, "field '{field}' of {of} {why}"),
        }
    }
}

impl std::fmt::Debug for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self} ({})", self.fault.condition)
    }
}

impl std::error::Error for Malformed {}
