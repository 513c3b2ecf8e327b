//! Equal selectors, their one spelling, and what an index of selectors asks.

use super::super::{Literal, Value};
use super::{Selector, parse};
use std::hash::{DefaultHasher, Hash, Hasher};

#[track_caller]
fn hash(value: impl FnOnce(&mut DefaultHasher)) -> u64 {
    let mut state = DefaultHasher::new();
    value(&mut state);
    state.finish()
}

#[test]
fn spelling_makes_no_difference() {
    let same = [
        ("a=1 and b=2", "a = 1 AND b = 2"),
        ("((a = 1) AND (b = 2))", "a = 1 AND b = 2"),
        ("a AND (b AND c) AND d", "a AND b AND c AND d"),
        ("(a OR b) OR (c OR d)", "a OR b OR c OR d"),
        ("(a AND b) OR (c AND d)", "a AND b OR c AND d"),
        ("(a OR b) AND (c OR d)", "(a OR b) AND (c OR d)"),
        ("NOT (a)", "NOT a"),
        ("NOT (a = 1)", "NOT a = 1"),
        ("(NOT a) = b", "(NOT a) = b"),
        ("not (a or b)", "NOT (a OR b)"),
        ("1 = a", "a = 1"),
        ("1 < a", "a > 1"),
        ("1 >= a", "a <= 1"),
        ("1 <> 2", "1 <> 2"),
        ("a != 1", "a <> 1"),
        ("a = 0x10", "a = 16"),
        ("a = +5L", "a = 5"),
        ("a = - 5", "a = -5"),
        ("a = -(5)", "a = -5"),
        ("a = 1.50", "a = 1.5"),
        ("a = 7.", "a = 7.0"),
        ("a = 1e2", "a = 100.0"),
        ("a = 1e21", "a = 1e21"),
        ("a = .0000001", "a = 1e-7"),
        ("a = 1.1f", "a = 1.100000023841858"),
        ("a = -9223372036854775808", "a = -9223372036854775808"),
        ("a IN ('z', 'b', 'z', 2, TRUE)", "a IN (TRUE, 2, 'b', 'z')"),
        ("a not in ('it''s')", "a NOT IN ('it''s')"),
        ("a like 'x!%%' escape '!'", "a LIKE 'x\\%%' ESCAPE '\\'"),
        ("a like 'x%%%y' escape '!'", "a LIKE 'x%y'"),
        ("a like '!\\_' escape '!'", "a LIKE '!\\_'"),
        ("a like '!_\\' escape '!'", "a LIKE '\\_\\\\' ESCAPE '\\'"),
        ("(a + b) + c = 1", "a + b + c = 1"),
        ("a + (b + c) = 1", "a + (b + c) = 1"),
        ("(a * b) / c = 1", "a * b / c = 1"),
        ("a * (b + c) = 1", "a * (b + c) = 1"),
        ("(a * b) + c = 1", "a * b + c = 1"),
        ("-(a + b) = - -a", "-(a + b) = --a"),
        ("[a] = [b c]", "a = [b c]"),
        ("[a]]b] = [and]", "[a]]b] = [and]"),
        ("(a between 1 and 2)", "a BETWEEN 1 AND 2"),
        ("(a = 1) IS not null", "(a = 1) IS NOT NULL"),
        ("", "TRUE"),
    ];
    for (text, shown) in same {
        let selector = parse(text);
        assert_eq!(selector.to_string(), shown);
        assert_eq!(parse(shown), selector, "{text}");
        let again = parse(shown);
        assert_eq!(hash(|it| again.hash(it)), hash(|it| selector.hash(it)), "{text}");
    }
}

#[test]
fn what_differs_is_not_equal() {
    let different = [
        ("a = 1", "a = 1.0"),
        ("a = 1", "a = '1'"),
        ("a = 1", "A = 1"),
        ("a = 1", "a <> 1"),
        ("a < 1", "a <= 1"),
        ("a AND b", "a OR b"),
        ("a + b + c = 1", "a + (b + c) = 1"),
        ("a LIKE 'x_'", "a LIKE 'x\\_' ESCAPE '\\'"),
        ("a LIKE 'x%'", "a LIKE '%x'"),
        ("a IN ('x')", "a NOT IN ('x')"),
        ("+a = 1", "a = 1"),
    ];
    for (left, right) in different {
        assert_ne!(parse(left), parse(right), "{left}, {right}");
    }
}

#[test]
fn an_index_finds_the_equality() {
    let text = Literal::Text("x".into());
    let number = Literal::Exact(5);
    let cases = [
        ("a = 'x'", Some(("a", &text))),
        ("'x' = a", Some(("a", &text))),
        ("(a = 'x')", Some(("a", &text))),
        ("a = 5 AND b > 2", Some(("a", &number))),
        ("b > 2 AND (c OR d) AND a = 5", Some(("a", &number))),
        ("a = 5 AND b = 'x'", Some(("a", &number))),
        ("a = 5 OR b = 'x'", None),
        ("(a = 5 OR b = 1) AND c", None),
        ("a <> 5", None),
        ("NOT a = 5", None),
        ("a = b", None),
        ("5 = 5", None),
        ("a + 0 = 5", None),
        ("a IN ('x')", None),
        ("TRUE", None),
    ];
    for (selector, expected) in cases {
        assert_eq!(parse(selector).equality(), expected, "{selector}");
    }
}

/// If a value is equal to a literal, they hash alike.
#[test]
fn equal_values_hash_alike() {
    let values = [
        Value::Exact(0),
        Value::Approximate(0.0),
        Value::Approximate(-0.0),
        Value::Exact(1),
        Value::Approximate(1.0),
        Value::Exact(9_007_199_254_740_993),
        Value::Approximate(9_007_199_254_740_992.0),
        Value::Exact(i64::MIN),
        Value::Approximate(-9_223_372_036_854_775_808.0),
        Value::Text("1"),
        Value::Text(""),
        Value::Bool(true),
        Value::Bool(false),
        Value::Null,
        Value::Other,
    ];
    let equal = parse("a = b");
    for left in values {
        for right in values {
            let property = |name: &str| if name == "a" { left } else { right };
            if equal.matches(&property) {
                let hashes = [left, right].map(|value| hash(|it| value.hash_as_equal(it)));
                assert_eq!(hashes[0], hashes[1], "{left:?} {right:?}");
            }
        }
    }
    let hashes = [Value::Exact(1), Value::Exact(2), Value::Text("1"), Value::Text("2")]
        .map(|value| hash(|it| value.hash_as_equal(it)));
    assert!(hashes.iter().all(|it| hashes.iter().filter(|other| *other == it).count() == 1));
}

#[test]
fn blank_and_true_select_all() {
    assert!(["", "  ", "TRUE", "(true)"].iter().all(|text| parse(text).selects_all()));
    assert!(["FALSE", "a", "a = a", "TRUE AND TRUE"].iter().all(|it| !parse(it).selects_all()));
}

/// A selector takes memory in proportion to its text.
#[test]
fn memory_is_bounded_by_the_text() {
    let texts = [
        format!("{}a", "a OR ".repeat(450)),
        format!("a IN ({}'a')", "'a',".repeat(990)),
        format!("{}a{} = 1", "(".repeat(64), ")".repeat(64)),
        format!("a LIKE '{}'", "%_".repeat(8000)),
        format!("a LIKE '{}'", "_".repeat(16_000)),
        format!("{}1 = 1", "1+".repeat(400)),
        "a=1".to_owned(),
    ];
    for text in texts {
        let bytes = parse(&text).memory_bytes();
        let most = 128 + 32 * text.len() + size_of::<Selector>();
        assert!(bytes >= size_of::<Selector>() && bytes <= most, "{} {bytes}", text.len());
    }
}

/// Patterns that make others backtrack for hours end at once.
#[test]
fn patterns_take_linear_time() {
    let text = "a".repeat(100_000);
    let property = |_: &str| Value::Text(&text);
    for pattern in ["%a".repeat(2000) + "b", "%a".repeat(2000) + "%b%", "%_".repeat(2000) + "b"] {
        let selector = parse(&format!("x LIKE '{pattern}'"));
        assert!(!selector.matches(&property));
    }
    // The product of both lengths is what terms count.
    let selector = parse(&format!("x LIKE '%{}_b%'", "a".repeat(900)));
    assert!(selector.terms() > 900);
    assert!(Selector::parse(&format!("x LIKE '%{}_b%'", "a".repeat(1000))).is_err());
}
