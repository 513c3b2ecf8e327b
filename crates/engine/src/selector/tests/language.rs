//! Literals, names and precedence.

use super::{FALSE, TRUE, UNKNOWN, check};

#[test]
fn texts_are_in_single_quotes() {
    check(&[
        ("name = 'James'", TRUE),
        ("name='James'", TRUE),
        ("name = 'james'", FALSE),
        ("quote = '''In God We Trust'''", TRUE),
        ("empty = ''", TRUE),
        ("name = ''", FALSE),
        ("'''' = ''''", TRUE),
        ("greek = 'αβγ'", TRUE),
        ("lines = 'one\ntwo'", TRUE),
    ]);
}

#[test]
fn exact_numbers_are_those_of_java() {
    check(&[
        ("rank = 123", TRUE),
        ("rank = +123", TRUE),
        ("rank = -123", FALSE),
        ("rank = - 123", FALSE),
        ("rank = --123", TRUE),
        ("rank = - -123", TRUE),
        ("rank = 123L", TRUE),
        ("rank = 123l", TRUE),
        ("rank = 0x7B", TRUE),
        ("rank = 0X7b", TRUE),
        ("rank = 0x7BL", TRUE),
        ("rank = 0173", TRUE),
        ("rank = 0b1111011", TRUE),
        ("rank = 0B1111011L", TRUE),
        ("zero = 0", TRUE),
        ("zero = -0", TRUE),
        ("zero = 00", TRUE),
        ("max = 9223372036854775807", TRUE),
        ("min = -9223372036854775808", TRUE),
        ("min = - 9223372036854775808L", TRUE),
        ("min IN (-9223372036854775808)", TRUE),
        ("min = 0x8000000000000000", TRUE),
        ("0xFFFFFFFFFFFFFFFF = -1", TRUE),
        ("01777777777777777777777 = -1", TRUE),
    ]);
}

#[test]
fn approximate_numbers_are_those_of_java() {
    check(&[
        ("weight = 10.5", TRUE),
        ("weight = 10.50", TRUE),
        ("weight = 1.05E1", TRUE),
        ("weight = 105e-1", TRUE),
        ("weight = .105E+2", TRUE),
        ("weight = 10.5d", TRUE),
        ("weight = 10.5F", TRUE),
        ("rank = 123.", TRUE),
        ("rank = 123.0", TRUE),
        ("rank = 123f", TRUE),
        ("rank = 123D", TRUE),
        ("rank = 1.23e2", TRUE),
        ("rank = 12300.E-2", TRUE),
        ("rank = 0123.", TRUE),
        ("rank = 0123d", TRUE),
        ("7. = 7", TRUE),
        (".5E3 = 500", TRUE),
        ("-.5 < .1", TRUE),
        ("-1.1E1 < 1.E1", TRUE),
        ("4E-10 < 5E-10", TRUE),
        ("single = 1.1f", TRUE),
        ("single = 1.1", FALSE),
        ("1e-999 = 0", TRUE),
        ("1.7976931348623157e308 > 0", TRUE),
        ("zero = -0.0", TRUE),
    ]);
}

#[test]
fn booleans_and_keywords_are_of_any_case() {
    check(&[
        ("TRUE", TRUE),
        ("true", TRUE),
        ("False", FALSE),
        ("yes = True", TRUE),
        ("yes = fAlSe", FALSE),
        ("name is null or not rank between 1 and 5", TRUE),
        ("name Like 'J%' aNd colour iN ('red')", TRUE),
        ("missing Is Null", TRUE),
        ("name lIkE 'J!%' escape '!'", FALSE),
    ]);
}

#[test]
fn names_are_java_identifiers_or_in_brackets() {
    check(&[
        ("größe = 5", TRUE),
        ("_a = 5", TRUE),
        ("$b = 5", TRUE),
        ("order.id = 5", TRUE),
        ("[order.id] = 5", TRUE),
        ("[x-order id] = 5", TRUE),
        ("[odd]]name] = 5", TRUE),
        ("[NULL] = 5", TRUE),
        ("[rank] = 123", TRUE),
        ("Rank = 123", UNKNOWN),
        ("RANK IS NULL", TRUE),
        ("nullable IS NULL", TRUE),
        ("android = 5", UNKNOWN),
        ("rank-version = 121", TRUE),
        ("JMSDeliveryMode = 'PERSISTENT' AND JMSPriority > 3", TRUE),
        ("e1 IS NULL AND x0 IS NULL AND L IS NULL", TRUE),
    ]);
}

#[test]
fn spaces_are_those_of_the_specification() {
    check(&[
        (" \t\r\n\x0crank\t=\n123 ", TRUE),
        ("(rank=123)AND(version=2)", TRUE),
        ("name='James'AND colour='red'OR FALSE", TRUE),
        ("name IN('James')", TRUE),
        ("", TRUE),
        (" \n ", TRUE),
    ]);
}

#[test]
fn operators_bind_as_in_sql() {
    check(&[
        ("NOT rank = 5", TRUE),
        ("NOT (rank = 5)", TRUE),
        ("NOT yes OR yes", TRUE),
        ("NOT (yes OR yes)", FALSE),
        ("NOT no AND no", FALSE),
        ("NOT (no AND no)", TRUE),
        ("NOT NOT yes", TRUE),
        ("NOT NOT NOT yes", FALSE),
        ("yes OR yes AND no", TRUE),
        ("(yes OR yes) AND no", FALSE),
        ("no AND no OR yes", TRUE),
        ("no AND (no OR yes)", FALSE),
        ("yes OR no AND NOT yes", TRUE),
        ("rank = 120 + 3", TRUE),
        ("rank = 1 + 61 * 2", TRUE),
        ("(1 + 60) * 2 = 122", TRUE),
        ("10 - 3 - 2 = 5", TRUE),
        ("10 - (3 - 2) = 9", TRUE),
        ("16 / 4 / 2 = 2", TRUE),
        ("16 / (4 / 2) = 8", TRUE),
        ("2 * 7 % 4 = 2", TRUE),
        ("2 * (7 % 4) = 6", TRUE),
        ("-2 * -3 = 6", TRUE),
        ("- version + 3 = 1", TRUE),
        ("-(version + 3) = -5", TRUE),
        ("5 - -version = 7", TRUE),
        ("5 - +version = 3", TRUE),
        ("rank BETWEEN 100 AND 150 AND no", FALSE),
        ("rank BETWEEN 100 + 20 AND 100 * 2 OR no", TRUE),
        ("rank NOT BETWEEN 1 AND 5 AND name NOT IN ('x') AND name NOT LIKE 'x'", TRUE),
        ("((((rank))) = ((123)))", TRUE),
    ]);
}
