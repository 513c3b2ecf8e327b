//! Parts of a Rust source: code, comments, and what is compiled only for tests. Relies on rustfmt's
//! layout (an item closes at its own indentation).

/// Folders and files that hold only tests or programs beside the crate.
const TEST_PARTS: &[&str] = &["tests", "tests.rs", "examples", "benches", "fuzz"];

/// Whether a file is compiled only for tests, by its path.
pub(super) fn is_test(path: &str) -> bool {
    path.split('/').any(|part| TEST_PARTS.contains(&part))
}

/// The text with every test item blanked. Lines keep their numbers.
pub(super) fn without_tests(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut kept = String::with_capacity(text.len());
    let mut index = 0;
    while index < lines.len() {
        let end = if opens_test(lines[index]) { item_end(&lines, index) } else { index };
        if !opens_test(lines[index]) {
            kept += lines[index];
        }
        for _ in index..=end {
            kept.push('\n');
        }
        index = end + 1;
    }
    kept
}

fn opens_test(line: &str) -> bool {
    let line = line.trim_start();
    ["#[cfg(test)]", "#[cfg(any(test", "#[cfg(all(test", "#[test]"]
        .iter()
        .any(|attribute| line.starts_with(attribute))
}

/// The last line of the item whose attribute is at `start`.
fn item_end(lines: &[&str], start: usize) -> usize {
    let indent = indentation(lines[start]);
    for (index, line) in lines.iter().enumerate().skip(start) {
        let rest = line.trim();
        if rest.is_empty() || indentation(line) > indent || is_attribute(rest) {
            continue;
        }
        if indentation(line) < indent {
            return index - 1;
        }
        if rest.ends_with([';', ',', '}']) {
            return index;
        }
    }
    lines.len() - 1
}

fn is_attribute(line: &str) -> bool {
    line.starts_with("#[") && line.ends_with(']') || line.starts_with("//")
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// A text taken apart. Both parts have the lines of the whole; what belongs to the other one is
/// blank. Contents of strings and characters are in neither.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// Code.
    pub(super) code: String,
    /// Comments, with their slashes.
    pub(super) comments: String,
}

/// Takes a text apart.
pub(super) fn split(text: &str) -> Parts {
    let mut parts = Parts::default();
    let mut rest = text;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let (length, is_comment, is_code) = piece(rest, before);
        let (piece, after) = rest.split_at(length);
        for c in piece.chars() {
            let blank = if c == '\n' { '\n' } else { ' ' };
            parts.code.push(if is_code { c } else { blank });
            parts.comments.push(if is_comment { c } else { blank });
        }
        before = first;
        rest = after;
    }
    parts
}

/// Bytes of the piece that `rest` begins with, whether it is a comment, and whether it is code.
fn piece(rest: &str, before: char) -> (usize, bool, bool) {
    let first = rest.chars().next().map_or(1, char::len_utf8);
    if rest.starts_with("//") {
        return (rest.find('\n').unwrap_or(rest.len()), true, false);
    }
    if rest.starts_with("/*") {
        return (rest.find("*/").map_or(rest.len(), |end| end + 2), true, false);
    }
    let in_word = before.is_alphanumeric() || before == '_';
    if let Some(length) = raw_string(rest).filter(|_| !in_word || before == 'b') {
        return (length, false, false);
    }
    if let Some(inner) = rest.strip_prefix('"') {
        return (1 + quoted_length(inner, '"'), false, false);
    }
    if let Some(inner) = rest.strip_prefix('\'') {
        let mut chars = inner.chars();
        let (one, two) = (chars.next(), chars.next());
        if one == Some('\\') || two == Some('\'') {
            return (1 + quoted_length(inner, '\''), false, false);
        }
    }
    (first, false, true)
}

/// Bytes up to and with the closing quote.
fn quoted_length(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Bytes of a raw string: `r"..."`, `r#"..."#`.
fn raw_string(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix('r')?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let inner = after[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let opened = 1 + hashes + 1;
    Some(inner.find(&close).map_or(rest.len(), |end| opened + end + close.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_items_are_blanked_and_lines_stay() {
        let text = "fn a() {}\n#[cfg(test)]\n#[derive(Debug)]\nstruct T {\n    x: u8,\n}\nfn b() {}\n\
                    #[cfg(test)]\nmod tests;\nstruct S {\n    #[cfg(test)]\n    count: u8,\n    y: u8,\n}\n";
        let kept = without_tests(text);
        assert_eq!(kept.lines().count(), text.lines().count());
        let words: Vec<&str> = kept.split_whitespace().collect();
        assert_eq!(words.join(" "), "fn a() {} fn b() {} struct S { y: u8, }");
        assert_eq!(kept.lines().nth(6), Some("fn b() {}"));
    }

    #[test]
    fn a_test_module_ends_where_it_closes() {
        let text = "#[cfg(test)]\nmod tests {\n    fn a() {\n    }\n}\nfn b() {}";
        assert_eq!(without_tests(text).trim(), "fn b() {}");
        assert!(is_test("crates/a/src/tests/b.rs") && is_test("crates/a/src/tests.rs"));
        assert!(!is_test("crates/a/src/attests.rs"));
    }

    #[track_caller]
    fn check(text: &str, code: &str, comments: &str) {
        let parts = split(text);
        assert_eq!(parts.code.trim_end(), code);
        assert_eq!(parts.comments.trim(), comments);
    }

    #[test]
    fn code_and_comments_come_apart() {
        check("a // b \"c\"\n", "a", "// b \"c\"");
        check("f(\"// no\", 1)", "f(       , 1)", "");
        check("f(r#\"a \" // b\"#) /* c */", "f(             )", "/* c */");
        check("let x: &'a str = '\"'; // d", "let x: &'a str =    ;", "// d");
        check("'\\'' + b'x' // e", "     + b", "// e");
        check("\"ä\\\"\" ö // ü", "      ö", "// ü");
    }
}
