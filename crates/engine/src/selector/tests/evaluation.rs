//! True, false and unknown.

use super::{FALSE, TRUE, UNKNOWN, check};

#[test]
fn numbers_compare_across_their_types() {
    check(&[
        ("rank > 100", TRUE),
        ("rank >= 123", TRUE),
        ("rank >= 124", FALSE),
        ("rank < 123", FALSE),
        ("rank <= 123", TRUE),
        ("rank <> 123", FALSE),
        ("rank != 124", TRUE),
        ("100 < rank", TRUE),
        ("124 <= rank", FALSE),
        ("weight > 10", TRUE),
        ("weight < 10.6", TRUE),
        ("rank = weight", FALSE),
        ("rank > weight", TRUE),
        ("max > min", TRUE),
        ("odd = 9007199254740992", FALSE),
        ("odd = 9007199254740992.0", TRUE),
        ("nan = nan", FALSE),
        ("nan <> nan", TRUE),
        ("nan < 1 OR nan >= 1", FALSE),
    ]);
}

#[test]
fn texts_and_booleans_are_equal_or_not() {
    check(&[
        ("name = 'James' AND name <> 'Bob'", TRUE),
        ("name <> 'James'", FALSE),
        ("'James' = name", TRUE),
        ("name = colour", FALSE),
        ("name < colour", FALSE),
        ("name > colour", FALSE),
        ("name <= name", FALSE),
        ("yes = TRUE", TRUE),
        ("yes <> FALSE", TRUE),
        ("yes = no", FALSE),
        ("yes <= yes", FALSE),
        ("yes", TRUE),
        ("no", FALSE),
        ("NOT no", TRUE),
        ("(rank > 100) = yes", TRUE),
        ("(rank > 100) <> (version > 100)", TRUE),
    ]);
}

#[test]
fn values_of_different_types_compare_false() {
    check(&[
        ("rank = '123'", FALSE),
        ("rank <> '123'", FALSE),
        ("digits = 123", FALSE),
        ("digits <> 123", FALSE),
        ("digits > 5", FALSE),
        ("digits < 500", FALSE),
        ("NOT digits = 123", TRUE),
        ("yes = 'true'", FALSE),
        ("yes = 1", FALSE),
        ("yes <> 1", FALSE),
        ("'a' = 1", FALSE),
        ("TRUE <> 0", FALSE),
        ("blob = 'x'", FALSE),
        ("blob <> 'x'", FALSE),
        ("blob = blob", FALSE),
        ("name BETWEEN 1 AND 5", FALSE),
        ("name NOT BETWEEN 1 AND 5", FALSE),
        ("rank BETWEEN name AND 500", FALSE),
    ]);
}

#[test]
fn what_is_missing_is_unknown() {
    check(&[
        ("missing = 1", UNKNOWN),
        ("missing <> 1", UNKNOWN),
        ("missing < 1", UNKNOWN),
        ("missing = missing", UNKNOWN),
        ("missing = 'x'", UNKNOWN),
        ("NOT missing = 1", UNKNOWN),
        ("missing", UNKNOWN),
        ("NOT missing", UNKNOWN),
        ("missing + 1 = 2", UNKNOWN),
        ("-missing = 2", UNKNOWN),
        ("+missing = 2", UNKNOWN),
        ("missing LIKE '%'", UNKNOWN),
        ("missing NOT LIKE '%'", UNKNOWN),
        ("missing IN ('a')", UNKNOWN),
        ("missing NOT IN ('a')", UNKNOWN),
        ("missing BETWEEN 1 AND 2", UNKNOWN),
        ("missing NOT BETWEEN 1 AND 2", UNKNOWN),
        ("rank BETWEEN missing AND 500", UNKNOWN),
        ("rank BETWEEN missing AND 5", FALSE),
        ("rank NOT BETWEEN missing AND 5", TRUE),
        ("rank NOT BETWEEN missing AND 500", UNKNOWN),
        ("missing IS NULL", TRUE),
        ("missing IS NOT NULL", FALSE),
        ("rank IS NULL", FALSE),
        ("rank IS NOT NULL", TRUE),
        ("blob IS NULL", FALSE),
        ("missing + 1 IS NULL", TRUE),
        ("(missing = 1) IS NULL", TRUE),
    ]);
}

#[test]
fn logic_has_three_values() {
    check(&[
        ("missing AND yes", UNKNOWN),
        ("yes AND missing", UNKNOWN),
        ("missing AND no", FALSE),
        ("no AND missing", FALSE),
        ("missing AND missing", UNKNOWN),
        ("missing OR yes", TRUE),
        ("yes OR missing", TRUE),
        ("missing OR no", UNKNOWN),
        ("no OR missing", UNKNOWN),
        ("missing OR missing", UNKNOWN),
        ("yes AND yes AND missing AND no", FALSE),
        ("no OR missing OR no OR yes", TRUE),
        ("NOT (missing AND no)", TRUE),
        ("NOT (missing OR no)", UNKNOWN),
    ]);
}

#[test]
fn conditions_on_the_wrong_type_are_unknown() {
    check(&[
        ("name + 1 = 2", UNKNOWN),
        ("-name = 2", UNKNOWN),
        ("+name = 'James'", UNKNOWN),
        ("yes * 2 = 2", UNKNOWN),
        ("blob / 2 = 2", UNKNOWN),
        ("rank", UNKNOWN),
        ("NOT name", UNKNOWN),
        ("blob OR no", UNKNOWN),
        ("rank LIKE '1%'", UNKNOWN),
        ("rank NOT LIKE '1%'", UNKNOWN),
        ("rank IN ('123')", UNKNOWN),
        ("rank NOT IN ('123')", UNKNOWN),
        ("yes NOT IN ('true')", UNKNOWN),
        ("blob NOT IN ('a', 1)", UNKNOWN),
        ("name NOT IN (1, TRUE)", UNKNOWN),
    ]);
}

#[test]
fn arithmetic_never_fails() {
    check(&[
        ("rank + 2 = 125", TRUE),
        ("rank - version = 121", TRUE),
        ("rank * version = 246", TRUE),
        ("rank / version = 61.5", TRUE),
        ("version / 2 = 1", TRUE),
        ("rank / 3 = 41", TRUE),
        ("7 / 2 = 3", FALSE),
        ("rank % 10 = 3", TRUE),
        ("-7 % 4 = -3", TRUE),
        ("weight % 4 = 2.5", TRUE),
        ("rank + 0.5 = 123.5", TRUE),
        ("odd + 0.0 = 9007199254740992", TRUE),
        ("max + 1 = min", TRUE),
        ("min - 1 = max", TRUE),
        ("max * 2 = -2", TRUE),
        ("-min = min", TRUE),
        ("min % -1 = 0", TRUE),
        ("min / -1 > max", FALSE),
        ("rank / zero > max", TRUE),
        ("-rank / zero < min", TRUE),
        ("zero / zero = zero / zero", FALSE),
        ("rank % zero = 0", FALSE),
        ("rank / 0.0 > 1e308", TRUE),
        ("rank / 0 > 5 AND rank / 0 < 5", FALSE),
    ]);
}

#[test]
fn lists_and_ranges() {
    check(&[
        ("name IN ('James', 'Bob', 'Gromit')", TRUE),
        ("name IN ('Gromit', 'Bob', 'James', 'Bob')", TRUE),
        ("name IN ('Gromit', 'Bob')", FALSE),
        ("name NOT IN ('Gromit', 'Bob')", TRUE),
        ("name NOT IN ('Gromit', 'James')", FALSE),
        ("'red' IN ('red')", TRUE),
        ("rank IN (1, 123)", TRUE),
        ("rank IN (1, 123.0)", TRUE),
        ("weight IN (1, 10.5)", TRUE),
        ("rank IN (-123, +5)", FALSE),
        ("rank NOT IN (-123, 'a')", TRUE),
        ("yes IN (FALSE, 'x', TRUE)", TRUE),
        ("rank + 1 IN (124)", TRUE),
        ("nan NOT IN (1)", TRUE),
        ("rank BETWEEN 100 AND 150", TRUE),
        ("rank BETWEEN 123 AND 123", TRUE),
        ("rank BETWEEN 150 AND 100", FALSE),
        ("rank BETWEEN 10 AND 120", FALSE),
        ("rank NOT BETWEEN 10 AND 120", TRUE),
        ("weight BETWEEN 10 AND 11", TRUE),
        ("5 BETWEEN version AND rank", TRUE),
        ("nan BETWEEN 1 AND 2", FALSE),
    ]);
}

#[test]
fn patterns() {
    check(&[
        ("name LIKE 'James'", TRUE),
        ("name LIKE 'Jame'", FALSE),
        ("name LIKE 'J%'", TRUE),
        ("name LIKE '%s'", TRUE),
        ("name LIKE '%am%'", TRUE),
        ("name LIKE '%mes%mes'", FALSE),
        ("name LIKE 'James%James'", FALSE),
        ("name LIKE 'J%m%s'", TRUE),
        ("name LIKE 'J%s%m'", FALSE),
        ("name LIKE '%'", TRUE),
        ("name LIKE '%%'", TRUE),
        ("name LIKE ''", FALSE),
        ("empty LIKE ''", TRUE),
        ("empty LIKE '%'", TRUE),
        ("empty LIKE '_'", FALSE),
        ("name LIKE '_____'", TRUE),
        ("name LIKE '____'", FALSE),
        ("name LIKE '______'", FALSE),
        ("name LIKE '_____%'", TRUE),
        ("name LIKE '%______%'", FALSE),
        ("name LIKE '%_m_s'", TRUE),
        ("name LIKE '%_e%'", TRUE),
        ("name LIKE '%a_e%'", TRUE),
        ("name LIKE '%a_s%'", FALSE),
        ("name LIKE '%J_%_s%'", TRUE),
        ("name NOT LIKE 'J%'", FALSE),
        ("name NOT LIKE 'B%'", TRUE),
        ("quote LIKE '''In G_d We Trust'''", TRUE),
        ("path LIKE 'com.example.%.new'", TRUE),
        ("path LIKE 'com_example_orders_new'", TRUE),
        ("greek LIKE '___'", TRUE),
        ("greek LIKE '%_'", TRUE),
        ("greek LIKE '_β_'", TRUE),
        ("greek LIKE '%β%'", TRUE),
        ("lines LIKE 'one%two'", TRUE),
        ("lines LIKE 'one_two'", TRUE),
        ("percent LIKE '50!%%' ESCAPE '!'", TRUE),
        ("percent LIKE '50!%' ESCAPE '!'", FALSE),
        ("name LIKE '50!%%' ESCAPE '!'", FALSE),
        ("percent LIKE '%!_now' ESCAPE '!'", TRUE),
        ("percent LIKE '%\\_n%' ESCAPE '\\'", TRUE),
        ("percent LIKE '%off__%' ESCAPE '_'", TRUE),
        ("percent LIKE '50%%%%' ESCAPE '%'", FALSE),
        ("percent LIKE '50%% off%_now' ESCAPE '%'", TRUE),
        ("quote LIKE '''''%' ESCAPE ''''", TRUE),
        ("name LIKE 'J!a%' ESCAPE '!'", FALSE),
        ("'50!a%' LIKE '50!a!%' ESCAPE '!'", TRUE),
        ("'x!' LIKE 'x!' ESCAPE '!'", TRUE),
        ("'x!' LIKE 'x!!' ESCAPE '!'", TRUE),
        ("name LIKE 'Ja_es' ESCAPE '_'", TRUE),
        ("name LIKE '%s' ESCAPE '%'", TRUE),
        ("'a\\b' LIKE 'a\\b'", TRUE),
    ]);
}
