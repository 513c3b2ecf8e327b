//! What is refused, at which byte, and why.

use super::super::{ParseOptions, SelectorError};
use super::{Selector, TRUE, property};

#[track_caller]
fn error(text: &str) -> SelectorError {
    match Selector::parse(text) {
        Ok(selector) => panic!("{text} is parsed as {selector}"),
        Err(error) => error,
    }
}

/// Each text, the byte of its error, and a part of what the error says.
#[track_caller]
fn check(cases: &[(&str, usize, &str)]) {
    for (text, offset, problem) in cases {
        let error = error(text);
        assert_eq!(error.offset(), *offset, "{text}: {error}");
        assert!(error.problem().contains(problem), "{text}: {error}");
    }
}

#[test]
fn an_error_is_one_sentence_with_its_place() {
    let said = error("a = 1 AND AND b = 2").to_string();
    assert_eq!(said, "invalid selector at byte 10: expected a value, but found `AND`");
    let said = error("name = 'x").to_string();
    assert_eq!(
        said,
        "invalid selector at byte 7: the text that begins here has no closing quote (')"
    );
    let long = format!("a = 1 {}\n", "b".repeat(100));
    let said = error(&long).to_string();
    let quoted = "b".repeat(30);
    assert_eq!(
        said,
        format!("invalid selector at byte 6: expected AND, OR or the end, but found `{quoted}…`")
    );
}

#[test]
fn what_is_missing_or_too_much() {
    check(&[
        ("a =", 3, "expected a value, but found the end"),
        ("= TRUE", 0, "expected a value, but found `=`"),
        ("a = = b", 4, "expected a value"),
        ("a == b", 3, "expected a value"),
        ("a = 1 AND", 9, "expected a value, but found the end"),
        ("OR a = 1", 0, "expected a value"),
        ("a = 1 b = 2", 6, "expected AND, OR or the end, but found `b`"),
        ("a b", 2, "expected AND, OR or the end"),
        ("NOT", 3, "expected a value"),
        ("a NOT", 5, "expected IN, LIKE or BETWEEN"),
        ("a NOT = 1", 6, "expected IN, LIKE or BETWEEN, but found `=`"),
        ("a = 1 NOT b", 6, "expected AND, OR or the end"),
        ("(a = 1", 0, "no closing parenthesis"),
        ("(a = 1 AND (b = 2)", 0, "no closing parenthesis"),
        ("(a = 1, b = 2)", 6, "expected AND, OR or )"),
        ("a = 1)", 5, "closes no parenthesis"),
        ("()", 1, "expected a value, but found `)`"),
        ("a IS", 4, "expected NULL or NOT NULL, but found the end"),
        ("a IS TRUE", 5, "expected NULL or NOT NULL, but found `TRUE`"),
        ("a IS NOT 5", 9, "expected NULL"),
        ("a IN", 4, "expected ( and the list"),
        ("a IN 'x'", 5, "expected ( and the list"),
        ("a IN ()", 6, "expected text, a number, TRUE or FALSE"),
        ("a IN ('x',)", 10, "expected text, a number"),
        ("a IN ('x' 'y')", 10, "expected a comma or )"),
        ("a IN (b)", 6, "expected text, a number"),
        ("a IN (-'x')", 7, "expected a number"),
        ("a IN (NULL)", 6, "expected text"),
        ("a BETWEEN 1", 11, "expected AND and the upper bound"),
        ("a BETWEEN 1 OR 2", 12, "expected AND and the upper bound"),
        ("a BETWEEN 1 AND", 15, "expected a value"),
        ("a LIKE", 6, "expected a pattern in single quotes"),
        ("a LIKE b", 7, "expected a pattern"),
        ("a LIKE 5", 7, "expected a pattern"),
        ("a LIKE 'x' ESCAPE", 17, "expected one character"),
        ("a LIKE 'x' ESCAPE ''", 18, "expected one character"),
        ("a LIKE 'x' ESCAPE '!!'", 18, "expected one character"),
        ("a ESCAPE '!'", 2, "expected AND, OR or the end"),
        ("a = 1 = b", 6, "without parentheses"),
        ("a < b < c", 6, "without parentheses"),
        ("a = NULL", 4, "write IS NULL"),
        ("NULL IS NULL", 0, "write IS NULL"),
        ("IN = 1", 0, "expected a value, but found `IN`"),
        ("between = 1", 0, "expected a value"),
        ("escape = 1", 0, "expected a value"),
        ("größe = 1 AND like = 2", 16, "expected a value, but found `like`"),
    ]);
}

#[test]
fn what_can_never_be_true_or_false() {
    check(&[
        ("5", 0, "expected a condition, such as a = 1, but this is a number"),
        ("3 + 5", 0, "this is a number"),
        ("'x'", 0, "this is text"),
        ("a = 1 AND 3 + 5", 10, "this is a number"),
        ("a OR 'x'", 5, "this is text"),
        ("NOT 5", 4, "this is a number"),
        ("NOT -a", 4, "this is a number"),
        ("(5) AND a", 0, "this is a number"),
        ("a < 'x'", 4, "only numbers have an order, but this is text"),
        ("'x' >= a", 0, "only numbers have an order"),
        ("a > TRUE", 4, "this is a condition"),
        ("a > (b = 1)", 4, "this is a condition"),
        ("a BETWEEN 'a' AND 'b'", 10, "this is text"),
        ("TRUE BETWEEN 1 AND 2", 0, "this is a condition"),
        ("a + 'x' = 1", 4, "expected a number or a property, but this is text"),
        ("'x' + a = 1", 0, "this is text"),
        ("a * TRUE = 1", 4, "this is a condition"),
        ("-'x' = a", 1, "this is text"),
        ("-(a = 1) = b", 1, "this is a condition"),
        ("5 LIKE 'x'", 0, "LIKE compares text, but this is a number"),
        ("a + 1 LIKE 'x'", 0, "LIKE compares text"),
    ]);
}

#[test]
fn numbers_and_characters() {
    check(&[
        ("a = 9223372036854775808", 4, "needs a minus directly before it"),
        ("a = -(9223372036854775808)", 6, "needs a minus directly before it"),
        ("a = +9223372036854775808", 5, "needs a minus"),
        ("a IN (9223372036854775808)", 6, "needs a minus"),
        ("a = -9223372036854775809", 5, "outside -9223372036854775808 to"),
        ("a = 99999999999999999999", 4, "outside"),
        ("a = 0x1FFFFFFFFFFFFFFFF", 4, "more than 64 bits"),
        ("a = 0x", 4, "0x needs hexadecimal digits"),
        ("a = 0xG", 4, "0x needs"),
        ("a = 0b2", 4, "0b binary"),
        ("a = 0b12", 4, "followed by letters"),
        ("a = 08", 4, "octal"),
        ("a = 1e", 4, "digits behind its E"),
        ("a = 1e+", 4, "digits behind its E"),
        ("a = 1e999", 4, "too large"),
        ("a = 1e39f", 4, "too large"),
        ("a = 1.5L", 4, "followed by letters"),
        ("a = 1_000", 4, "followed by letters"),
        ("a = 5AND b = 1", 4, "followed by letters"),
        ("1a = 5", 0, "nor does a name begin with a digit"),
        ("a = 1.2.3", 4, "followed by letters"),
        ("a = .", 4, ". begins neither"),
        ("a = 'it's'", 8, "expected AND, OR or the end, but found `s`"),
        ("a = 'x", 4, "no closing quote"),
        ("a = '", 4, "no closing quote"),
        ("a = 'x''", 4, "no closing quote"),
        ("a = \"x\"", 4, "text is in '…'"),
        ("a = ‘x’", 4, "text is in '…'"),
        ("[a = 1", 0, "no closing bracket"),
        ("[] = 1", 0, "no name between"),
        ("a = 1 && b = 2", 6, "write AND"),
        ("a = 1 || b = 2", 6, "write OR"),
        ("!a", 0, "write NOT"),
        ("a = 1;", 5, "';' means nothing"),
        ("a = {1}", 4, "means nothing"),
        ("a = b\u{a0}", 5, "means nothing"),
        ("a = @b", 4, "means nothing"),
        ("a-", 2, "expected a value"),
        ("a /* no */ = 1", 3, "expected a value"),
        ("\u{0}", 0, "means nothing"),
    ]);
}

#[test]
fn limits() {
    let options = ParseOptions { text_bytes_max: 12, ..ParseOptions::default() };
    assert!(Selector::parse_with("abc = 12 + 1", &options).is_ok());
    let error = Selector::parse_with("abc = 12 + 12", &options).unwrap_err();
    assert_eq!(error.offset(), 12);
    assert_eq!(error.problem(), "the selector has 13 bytes, at most 12 are allowed");

    // Three values, one comparison, one sum.
    let options = ParseOptions { terms_max: 5, ..ParseOptions::default() };
    assert_eq!(Selector::parse_with("abc = 12 + 1", &options).unwrap().terms(), 5);
    let error = Selector::parse_with("abc = 12 + -b", &options).unwrap_err();
    assert!(error.problem().contains("more than 5 terms"), "{error}");

    let options = ParseOptions { depth_max: 2, ..ParseOptions::default() };
    assert!(
        Selector::parse_with("((a)) OR ((b)) OR NOT (c) OR -(b) = 1 OR --b = 1", &options).is_ok()
    );
    for (text, offset) in [("(((a)))", 2), ("NOT NOT NOT a", 8), ("a = -(- -b)", 6)] {
        let error = Selector::parse_with(text, &options).unwrap_err();
        assert_eq!(error.offset(), offset, "{text}");
        assert!(error.problem().contains("more than 2 levels"), "{error}");
    }
}

/// Long and deep texts end in an error or a result, whatever the caller allows.
#[test]
fn no_limit_is_no_danger() {
    let options = ParseOptions {
        text_bytes_max: usize::MAX,
        terms_max: usize::MAX,
        depth_max: usize::MAX,
        dashes_in_names: false,
    };
    for (open, close) in [("(", ")"), ("NOT ", ""), ("-", ""), ("(NOT -", ")"), ("NOT (", ")")] {
        for depth in [100_000, 64, 31] {
            let text = format!("{}a{} = 1", open.repeat(depth), close.repeat(depth));
            if let Ok(selector) = Selector::parse_with(&text, &options) {
                assert_eq!(selector.evaluate(&property), None, "{text}");
                let shown = selector.to_string();
                assert_eq!(Selector::parse_with(&shown, &options), Ok(selector));
            }
        }
    }
    for (piece, last) in [("rank = 123 AND ", "yes"), ("no OR ", "yes"), ("", "yes")] {
        let text = format!("{}{last}", piece.repeat(20_000));
        let selector = Selector::parse_with(&text, &options).unwrap();
        assert_eq!(selector.evaluate(&property), TRUE);
    }
    let sum = format!("{}1 = 20001", "1 + ".repeat(20_000));
    assert_eq!(Selector::parse_with(&sum, &options).unwrap().evaluate(&property), TRUE);
}

#[test]
fn names_may_have_dashes_where_the_caller_says_so() {
    let options = ParseOptions { dashes_in_names: true, ..ParseOptions::default() };
    let parse = |text| Selector::parse_with(text, &options).unwrap();
    let selector = parse("properties.group-id = 'x'");
    assert_eq!(selector, Selector::parse("[properties.group-id] = 'x'").unwrap());
    assert_eq!(selector.to_string(), "[properties.group-id] = 'x'");
    assert_eq!(parse("rank - version = 121").evaluate(&property), TRUE);
    assert_eq!(parse("rank -version = 121").evaluate(&property), TRUE);
}
