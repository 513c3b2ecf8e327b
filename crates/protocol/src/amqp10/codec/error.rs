//! Errors that peers tell each other of (part 2, 2.8.14).

use super::composite::composites;
use super::conditions::Condition;
use super::value::{Map, Symbol};

composites! {
    /// What went wrong.
    0x1d "amqp:error:list" "error" Error<'a> {
        "condition" condition: Symbol<'a>, required;
        "description" description: &'a str, optional;
        "info" info: Map<'a>, optional;
    }
}

impl<'a> Error<'a> {
    /// An error with a text for people.
    #[must_use]
    pub fn new(condition: Condition, description: &'a str) -> Error<'a> {
        let description = Some(description);
        Error { condition: Symbol(condition.symbol()), description, info: None }
    }
    /// Its condition, where it is one of the specification's.
    #[must_use]
    pub fn known_condition(&self) -> Option<Condition> {
        Condition::of_symbol(self.condition.0)
    }
}
