//! Selectors as applications write them, right and wrong, and generated ones.

mod errors;
mod evaluation;
mod form;
mod generated;
mod language;
mod random;

use super::{Selector, Value};

/// The properties of the message that the cases are about.
fn property(name: &str) -> Value<'static> {
    match name {
        "name" => Value::Text("James"),
        "colour" => Value::Text("red"),
        "empty" => Value::Text(""),
        "quote" => Value::Text("'In God We Trust'"),
        "path" => Value::Text("com.example.orders.new"),
        "percent" => Value::Text("50% off_now"),
        "greek" => Value::Text("αβγ"),
        "lines" => Value::Text("one\ntwo"),
        "digits" => Value::Text("123"),
        "JMSDeliveryMode" => Value::Text("PERSISTENT"),
        "JMSPriority" => Value::Exact(4),
        "rank" => Value::Exact(123),
        "version" => Value::Exact(2),
        "zero" => Value::Exact(0),
        "max" => Value::Exact(i64::MAX),
        "min" => Value::Exact(i64::MIN),
        "odd" => Value::Exact(9_007_199_254_740_993),
        "weight" => Value::Approximate(10.5),
        "single" => Value::Approximate(1.1_f32.into()),
        "nan" => Value::Approximate(f64::NAN),
        "yes" => Value::Bool(true),
        "no" => Value::Bool(false),
        "blob" => Value::Other,
        "order.id" | "x-order id" | "odd]name" | "größe" | "_a" | "$b" | "NULL" => {
            Value::Exact(5)
        }
        _ => Value::Null,
    }
}

const TRUE: Option<bool> = Some(true);
const FALSE: Option<bool> = Some(false);
const UNKNOWN: Option<bool> = None;

#[track_caller]
fn parse(text: &str) -> Selector {
    match Selector::parse(text) {
        Ok(selector) => selector,
        Err(error) => panic!("{text}: {error}"),
    }
}

/// Evaluates each selector, and again as it is shown.
#[track_caller]
fn check(cases: &[(&str, Option<bool>)]) {
    for (text, expected) in cases {
        let selector = parse(text);
        assert_eq!(selector.evaluate(&property), *expected, "{text}");
        assert_eq!(selector.matches(&property), *expected == TRUE, "{text}");
        let shown = selector.to_string();
        assert_eq!(parse(&shown), selector, "{text} is shown as {shown}");
        assert_eq!(parse(&shown).to_string(), shown);
    }
}
