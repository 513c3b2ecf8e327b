//! Selectors: conditions on a message's properties, by which a consumer chooses the messages that it gets.
//!
//! The language is that of Jakarta Messaging 3.1, section 3.8.1, a part of SQL-92:
//! `colour IN ('red', 'blue') AND weight * 2 > 10.5`. A [`Selector`] is parsed once per text and evaluated
//! per message, without allocation, against a function that gives a property by its name.
//!
//! **Truth.** Conditions are true, false or unknown, and only those that are true select a message.
//!
//! - A property that is missing makes comparisons, arithmetic, `LIKE` and `IN` unknown.
//! - A comparison of values of different types is false, `<>` included; so is `<` of texts or booleans, which
//!   know only `=` and `<>`. `BETWEEN` is two comparisons with `AND`, `NOT BETWEEN` two with `OR`.
//! - Another property of the wrong type makes its condition unknown: a number before `LIKE`, text in
//!   arithmetic, a number before `IN ('a', 'b')`, anything but a boolean as a condition of its own.
//!
//! **Numbers** are exact (64 bits) or approximate (a double). An operation with one of each is approximate.
//! Exact `+`, `-` and `*` wrap around. `/` is always approximate: `7 / 2` is `3.5`, `1 / 0` is infinite and
//! `0 / 0` is not a number, which equals nothing. Literals are Java's: `0x1F`, `017` (octal), `0b101`, `5L`,
//! `7.`, `.5E3`, `1.5f` (the nearest of 32 bits, which is what such a property holds), `2d`.
//!
//! **Patterns** of `LIKE` consist of characters, not bytes. The `ESCAPE` character before anything but `_`,
//! `%` and itself is a character like others.
//!
//! **Accepted beyond the specification**, as other brokers do:
//!
//! - `!=` for `<>`, `%` for the remainder of a division (exact if both numbers are).
//! - Names with a dot (`order.id`), and any other name in brackets: `[x-order id]`, `]]` standing for `]`.
//!   Double quotes are refused: most often they surround what should be text, and then the selector would be
//!   valid and select nothing. Names with dashes without brackets: [`ParseOptions::dashes_in_names`].
//! - Numbers and booleans in the list of `IN`; operations where a name is called for (`a + b IS NULL`).
//!
//! **Limits.** [`ParseOptions`] has those of the text. They bound the depth of recursion, the memory of a
//! selector and, with the length of the properties, the work of an evaluation ([`Selector::terms`]).

mod error;
mod evaluate;
mod expression;
mod filter;
pub(crate) mod filter_set;
mod lexer;
mod number;
mod parser;
mod pattern;
mod print;
mod value;

#[cfg(test)]
mod tests;

pub use error::SelectorError;
pub use filter::Filter;
pub use parser::ParseOptions;
pub use value::{Literal, Value};

use expression::{Comparison, Expression};
use std::fmt;

/// A condition on a message's properties. Selectors that differ only in spaces, parentheses without effect
/// or the spelling of keywords, operators and numbers are equal. Shown as text, it is in the one spelling
/// that all equal selectors share, and parses to an equal one if it is not longer than allowed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Selector {
    condition: Expression,
    terms: usize,
}

impl Selector {
    /// Parses a selector within the usual limits. Text that is empty or blank selects every message.
    ///
    /// # Errors
    /// The first place at which the text is not a selector, and why.
    pub fn parse(text: &str) -> Result<Selector, SelectorError> {
        Selector::parse_with(text, &ParseOptions::default())
    }

    /// Parses a selector within the limits given.
    ///
    /// # Errors
    /// The first place at which the text is not a selector, and why.
    pub fn parse_with(text: &str, options: &ParseOptions) -> Result<Selector, SelectorError> {
        let (condition, terms) = parser::parse(text, options)?;
        Ok(Selector { condition, terms })
    }

    /// Whether the message is selected whose properties `property` gives by name.
    pub fn matches<'m>(&self, property: &impl Fn(&str) -> Value<'m>) -> bool {
        self.evaluate(property) == Some(true)
    }

    /// Whether the condition is true or false; `None` if unknown.
    pub fn evaluate<'m>(&self, property: &impl Fn(&str) -> Value<'m>) -> Option<bool> {
        evaluate::truth(&self.condition, property)
    }

    /// Whether every message is selected because the selector is blank or `TRUE`.
    #[must_use]
    pub fn selects_all(&self) -> bool {
        self.condition == Expression::Literal(Literal::Bool(true))
    }

    /// A property and the value that it has in every selected message, if one of the conditions that all
    /// have to be true says so: `id = 'a' AND size > 5` selects nothing whose `id` is not `'a'`. Consumers
    /// with such selectors can be found by the hash of the property's value ([`Value::hash_as_equal`]).
    #[must_use]
    pub fn equality(&self) -> Option<(&str, &Literal)> {
        match &self.condition {
            Expression::And(conditions) => conditions.iter().find_map(equality),
            condition => equality(condition),
        }
    }

    /// Whether a message is selected whose property that [`Selector::equality`] names has this value, where
    /// nothing else matters.
    #[inline]
    pub(crate) fn selects_by_value(&self, value: Value<'_>) -> Option<bool> {
        let (_, literal) = equality(&self.condition)?;
        Some(value != Value::Null && value.equals(literal.value()))
    }

    /// Bounds the work of one evaluation: about as many steps as terms, each of at most as many steps as the
    /// longest text among the properties has bytes. Each value, each operator and each entry of `IN` is a
    /// term; a `LIKE` is as many as its longest part between two `%` has characters if one of them is `_`.
    #[must_use]
    pub fn terms(&self) -> usize {
        self.terms
    }

    /// About how much memory the selector takes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Selector>() + self.condition.heap_bytes()
    }
}

/// The property and the literal that a condition says are equal.
fn equality(condition: &Expression) -> Option<(&str, &Literal)> {
    match condition {
        Expression::Compare { comparison: Comparison::Equal, left, right } => {
            match (&**left, &**right) {
                (Expression::Property(name), Expression::Literal(literal)) => Some((name, literal)),
                _ => None,
            }
        }
        _ => None,
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt(f)
    }
}
