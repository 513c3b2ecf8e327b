//! Generated selectors: what is shown parses to the same, evaluation agrees with a second, plain one, and
//! no text makes parsing panic.

use super::super::{ParseOptions, Value};
use super::random::Random;
use super::{Selector, parse, property};

/// A selector as a test builds it: its text and what it comes to by the specification's words.
struct Generated {
    text: String,
    value: Value<'static>,
}

fn generated(text: String, value: Value<'static>) -> Generated {
    Generated { text, value }
}

/// Numbers, or names of properties that may hold anything.
fn number(random: &mut Random, depth: usize) -> Generated {
    if depth == 0 || random.below(3) == 0 {
        let name =
            random.of(&["rank", "version", "zero", "max", "weight", "name", "missing", "yes"]);
        return match random.below(5) {
            0 => generated("2".into(), Value::Exact(2)),
            1 => generated("-7".into(), Value::Exact(-7)),
            2 => generated("1.5e1".into(), Value::Approximate(15.0)),
            _ => generated(name.into(), property(name)),
        };
    }
    if random.below(6) == 0 {
        let inner = number(random, depth - 1);
        let value = match inner.value {
            Value::Exact(number) => Value::Exact(0_i64.wrapping_sub(number)),
            Value::Approximate(number) => Value::Approximate(-number),
            _ => Value::Null,
        };
        return generated(format!("-({})", inner.text), value);
    }
    let (left, right) = (number(random, depth - 1), number(random, depth - 1));
    let operator = random.of(&["+", "-", "*", "/"]);
    let double = |value| match value {
        Value::Exact(number) => Some(number as f64),
        Value::Approximate(number) => Some(number),
        _ => None,
    };
    let value = match (left.value, right.value, operator) {
        (Value::Exact(a), Value::Exact(b), "+") => Value::Exact(a.wrapping_add(b)),
        (Value::Exact(a), Value::Exact(b), "-") => Value::Exact(a.wrapping_sub(b)),
        (Value::Exact(a), Value::Exact(b), "*") => Value::Exact(a.wrapping_mul(b)),
        (a, b, _) => match (double(a), double(b)) {
            (Some(a), Some(b)) => Value::Approximate(match operator {
                "+" => a + b,
                "-" => a - b,
                "*" => a * b,
                _ => a / b,
            }),
            _ => Value::Null,
        },
    };
    generated(format!("({}) {operator} ({})", left.text, right.text), value)
}

fn compared(operator: &str, left: Value<'_>, right: Value<'_>) -> Option<bool> {
    let order = match (left, right) {
        (Value::Null, _) | (_, Value::Null) => return None,
        (Value::Exact(a), Value::Exact(b)) => a.partial_cmp(&b),
        (Value::Exact(a), Value::Approximate(b)) => (a as f64).partial_cmp(&b),
        (Value::Approximate(a), Value::Exact(b)) => a.partial_cmp(&(b as f64)),
        (Value::Approximate(a), Value::Approximate(b)) => a.partial_cmp(&b),
        (Value::Text(a), Value::Text(b)) => {
            return Some(operator == "=" && a == b || operator == "<>" && a != b);
        }
        (Value::Bool(a), Value::Bool(b)) => {
            return Some(operator == "=" && a == b || operator == "<>" && a != b);
        }
        _ => return Some(false),
    };
    let Some(order) = order else { return Some(operator == "<>") };
    Some(match operator {
        "=" => order.is_eq(),
        "<>" => order.is_ne(),
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        _ => order.is_ge(),
    })
}

fn truth(value: Value<'_>) -> Option<bool> {
    match value {
        Value::Bool(truth) => Some(truth),
        _ => None,
    }
}

fn of_truth(truth: Option<bool>) -> Value<'static> {
    truth.map_or(Value::Null, Value::Bool)
}

fn and(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    match (left, right) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn not(truth: Option<bool>) -> Option<bool> {
    truth.map(|it| !it)
}

fn condition(random: &mut Random, depth: usize) -> Generated {
    if depth == 0 || random.below(4) == 0 {
        return predicate(random);
    }
    if random.below(4) == 0 {
        let inner = condition(random, depth - 1);
        return generated(format!("NOT ({})", inner.text), of_truth(not(truth(inner.value))));
    }
    let (left, right) = (condition(random, depth - 1), condition(random, depth - 1));
    let (a, b) = (truth(left.value), truth(right.value));
    let (operator, value) = match random.below(2) {
        0 => ("AND", and(a, b)),
        _ => ("OR", not(and(not(a), not(b)))),
    };
    // Without parentheses where precedence makes them needless.
    let bare = |of: &Generated| !of.text.contains(" OR ") && !of.text.contains(" AND ");
    let side = |of: &Generated| if bare(of) { of.text.clone() } else { format!("({})", of.text) };
    generated(format!("{} {operator} {}", side(&left), side(&right)), of_truth(value))
}

fn predicate(random: &mut Random) -> Generated {
    let left = number(random, 2);
    let (text, value) = (left.text, left.value);
    match random.below(7) {
        0 => generated(format!("{text} IS NULL"), Value::Bool(value == Value::Null)),
        1 => generated(format!("{text} IS NOT NULL"), Value::Bool(value != Value::Null)),
        2 => {
            let (low, high) = (number(random, 1), number(random, 1));
            let inside = and(compared(">=", value, low.value), compared("<=", value, high.value));
            let text = format!("{text} BETWEEN {} AND {}", low.text, high.text);
            generated(text, of_truth(inside))
        }
        3 => {
            let name = random.of(&["name", "colour", "empty", "rank", "missing", "greek"]);
            let list = random.of(&["'James', 'Bob'", "'red'", "''", "'αβγ','x'"]);
            let found = match property(name) {
                Value::Text(text) => Some(list.contains(&format!("'{text}'"))),
                _ => None,
            };
            let is_negated = random.below(2) == 0;
            let found = if is_negated { not(found) } else { found };
            let is_in = if is_negated { "NOT IN" } else { "IN" };
            generated(format!("{name} {is_in} ({list})"), of_truth(found))
        }
        4 => {
            let name = random.of(&["yes", "no", "missing", "rank"]);
            generated(name.into(), of_truth(truth(property(name))))
        }
        _ => {
            let right = number(random, 2);
            let operator = random.of(&["=", "<>", "<", "<=", ">", ">="]);
            let value = of_truth(compared(operator, value, right.value));
            generated(format!("{text} {operator} {}", right.text), value)
        }
    }
}

#[test]
fn evaluation_agrees_with_the_specification() {
    let mut random = Random::new(1);
    for _ in 0..2000 {
        let depth = random.below(5);
        let Generated { text, value } = condition(&mut random, depth);
        let selector = parse(&text);
        assert_eq!(selector.evaluate(&property), truth(value), "{text}");
        let shown = selector.to_string();
        assert_eq!(parse(&shown), selector, "{text} is shown as {shown}");
    }
}

/// Whether a text has a pattern, by trying everything.
fn has_pattern(text: &[char], pattern: &[char]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some(('%', rest)) => (0..=text.len()).any(|skipped| has_pattern(&text[skipped..], rest)),
        Some((wanted, rest)) => text.split_first().is_some_and(|(first, text)| {
            (*wanted == '_' || wanted == first) && has_pattern(text, rest)
        }),
    }
}

#[test]
fn patterns_agree_with_trying_everything() {
    let mut random = Random::new(2);
    for _ in 0..6000 {
        let mut letters = |of: &[&str], most: usize| -> String {
            (0..random.below(most + 1)).map(|_| random.of(of)).collect()
        };
        let text = letters(&["a", "b", "é"], 8);
        let pattern = letters(&["a", "b", "é", "%", "_"], 6);
        let selector = parse(&format!("x LIKE '{pattern}'"));
        let chars = |of: &str| of.chars().collect::<Vec<char>>();
        let expected = has_pattern(&chars(&text), &chars(&pattern));
        assert_eq!(selector.matches(&|_: &str| Value::Text(&text)), expected, "{text} {pattern}");
        assert_eq!(parse(&selector.to_string()), selector, "{pattern}");
        let escape = ["a", "é", "%", "_"][random.below(4)];
        let selector = parse(&format!("x LIKE '{pattern}' ESCAPE '{escape}'"));
        assert_eq!(parse(&selector.to_string()), selector, "{pattern} ESCAPE {escape}");
    }
}

const PIECES: &[&str] = &[
    "a",
    "rank",
    "name",
    "[x y]",
    "'x'",
    "'%_'",
    "''",
    "'",
    "5",
    "-",
    "+",
    "*",
    "/",
    "%",
    "1.5",
    "0x1f",
    "017",
    "9223372036854775808",
    "1e",
    ".",
    ".5",
    "(",
    ")",
    "(",
    ")",
    ",",
    "=",
    "<>",
    "<",
    ">=",
    "!",
    "AND",
    "OR",
    "NOT",
    "IN",
    "IN ('a', 1)",
    "LIKE",
    "LIKE 'a_%b'",
    "ESCAPE",
    "ESCAPE '!'",
    "IS",
    "IS NULL",
    "NULL",
    "BETWEEN",
    "BETWEEN 1 AND 2",
    "TRUE",
    "[",
    "]",
    "\"",
    "\u{0}",
    "é",
    "\u{300}",
    "\u{1f600}",
    "\n",
    "a=1 AND b=2",
];

#[test]
fn no_text_makes_parsing_panic() {
    let parsed = texts(3, 20_000);
    assert!(parsed > 500, "{parsed}");
}

#[test]
#[ignore = "runs for minutes; cargo test --release -- --ignored fuzz_long"]
fn fuzz_long() {
    use std::io::Write as _;
    for seed in 0..=255 {
        let parsed = texts(seed, 10_000);
        let texts = (u64::from(seed) + 1) * 10_000;
        let _ = writeln!(std::io::stderr(), "{texts} texts, {parsed} selectors in the last");
    }
}

/// Random pieces, of which few are selectors: an error has a place in the text, a selector shows and
/// evaluates. Returns how many are selectors.
fn texts(seed: u8, count: usize) -> usize {
    let mut random = Random::new(seed);
    let options = ParseOptions { depth_max: 8, terms_max: 40, ..ParseOptions::default() };
    let mut parsed = 0;
    for _ in 0..count {
        let mut text = String::new();
        for _ in 0..random.below(12) {
            text += random.of(PIECES);
            text += random.of(&["", " ", " "]);
        }
        match Selector::parse_with(&text, &options) {
            Ok(selector) => {
                parsed += 1;
                selector.evaluate(&property);
                assert_eq!(parse(&selector.to_string()), selector, "{text}");
            }
            Err(error) => {
                assert!(text.is_char_boundary(error.offset()), "{text}: {error}");
                assert!(!error.problem().is_empty() && error.problem().len() < 300);
            }
        }
    }
    parsed
}
