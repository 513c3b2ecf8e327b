//! Evaluates an expression against a message's properties: `None` is unknown.

use super::expression::{Between, Comparison, Expression, In, Operator};
use super::value::Value;
use std::cmp::Ordering;

/// Whether a condition is true.
pub(super) fn truth<'m>(
    condition: &Expression,
    property: &impl Fn(&str) -> Value<'m>,
) -> Option<bool> {
    match condition {
        Expression::And(conditions) => all(conditions.iter().map(|it| truth(it, property))),
        Expression::Or(conditions) => any(conditions.iter().map(|it| truth(it, property))),
        Expression::Not(condition) => truth(condition, property).map(|it| !it),
        Expression::Compare { comparison, left, right } => {
            compare(*comparison, value(left, property), value(right, property))
        }
        Expression::Between(it) => between(it, property),
        Expression::In(it) => is_in(it, value(&it.operand, property)),
        Expression::Like { operand, pattern, is_negated } => match value(operand, property) {
            Value::Text(text) => Some(pattern.matches(text) != *is_negated),
            _ => None,
        },
        Expression::IsNull { operand, is_negated } => {
            Some((value(operand, property) == Value::Null) != *is_negated)
        }
        Expression::Literal(_)
        | Expression::Property(_)
        | Expression::Sign { .. }
        | Expression::Arithmetic { .. } => match value(condition, property) {
            Value::Bool(truth) => Some(truth),
            _ => None,
        },
    }
}

/// What an expression comes to.
fn value<'a, 'm: 'a>(
    expression: &'a Expression,
    property: &impl Fn(&str) -> Value<'m>,
) -> Value<'a> {
    match expression {
        Expression::Literal(literal) => literal.value(),
        Expression::Property(name) => property(name),
        Expression::Sign { is_minus, operand } => match value(operand, property) {
            Value::Exact(number) if *is_minus => Value::Exact(number.wrapping_neg()),
            Value::Approximate(number) if *is_minus => Value::Approximate(-number),
            number @ (Value::Exact(_) | Value::Approximate(_)) => number,
            _ => Value::Null,
        },
        Expression::Arithmetic { first, steps } => {
            steps.iter().fold(value(first, property), |so_far, step| {
                calculate(step.operator, so_far, value(&step.operand, property))
            })
        }
        condition => truth(condition, property).map_or(Value::Null, Value::Bool),
    }
}

fn calculate<'a>(operator: Operator, left: Value<'_>, right: Value<'_>) -> Value<'a> {
    if let (Value::Exact(left), Value::Exact(right)) = (left, right) {
        match operator {
            Operator::Add => return Value::Exact(left.wrapping_add(right)),
            Operator::Subtract => return Value::Exact(left.wrapping_sub(right)),
            Operator::Multiply => return Value::Exact(left.wrapping_mul(right)),
            Operator::Remainder if right != 0 => return Value::Exact(left.wrapping_rem(right)),
            Operator::Divide | Operator::Remainder => {}
        }
    }
    let (Some(left), Some(right)) = (left.number(), right.number()) else { return Value::Null };
    Value::Approximate(match operator {
        Operator::Add => left + right,
        Operator::Subtract => left - right,
        Operator::Multiply => left * right,
        Operator::Divide => left / right,
        Operator::Remainder => left % right,
    })
}

fn compare(comparison: Comparison, left: Value<'_>, right: Value<'_>) -> Option<bool> {
    if left == Value::Null || right == Value::Null {
        return None;
    }
    Some(match comparison {
        Comparison::Equal => left.equals(right),
        Comparison::NotEqual => left.is_like(right) && !left.equals(right),
        Comparison::Less => left.compare(right) == Some(Ordering::Less),
        Comparison::Greater => left.compare(right) == Some(Ordering::Greater),
        Comparison::LessOrEqual => left.compare(right).is_some_and(Ordering::is_le),
        Comparison::GreaterOrEqual => left.compare(right).is_some_and(Ordering::is_ge),
    })
}

fn between<'m>(it: &Between, property: &impl Fn(&str) -> Value<'m>) -> Option<bool> {
    let number = value(&it.operand, property);
    let (low, high) = (value(&it.low, property), value(&it.high, property));
    if it.is_negated {
        let outside =
            [compare(Comparison::Less, number, low), compare(Comparison::Greater, number, high)];
        return any(outside.into_iter());
    }
    let inside = [
        compare(Comparison::GreaterOrEqual, number, low),
        compare(Comparison::LessOrEqual, number, high),
    ];
    all(inside.into_iter())
}

/// Whether the value is in the list. Unknown if nothing in the list is of its type.
fn is_in(it: &In, value: Value<'_>) -> Option<bool> {
    let found = if let Value::Text(text) = value {
        (!it.texts.is_empty())
            .then(|| it.texts.binary_search_by(|entry| (**entry).cmp(text)).is_ok())
    } else {
        let mut like = it.others.iter().filter(|entry| entry.value().is_like(value)).peekable();
        like.peek()?;
        Some(like.any(|entry| entry.value().equals(value)))
    };
    found.map(|found| found != it.is_negated)
}

/// False if one is false, else unknown if one is unknown.
fn all(conditions: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut result = Some(true);
    for condition in conditions {
        match condition {
            Some(true) => {}
            Some(false) => return Some(false),
            None => result = None,
        }
    }
    result
}

/// True if one is true, else unknown if one is unknown.
fn any(conditions: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    all(conditions.map(|it| it.map(|it| !it))).map(|it| !it)
}
