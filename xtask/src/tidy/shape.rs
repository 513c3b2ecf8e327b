//! Lengths of lines, functions and files, and the first sentence of each file. Relies on rustfmt's layout (a
//! function closes at its own indentation), so it runs after the format check.

use super::allow::Excess;
use super::{Tree, Violation};

/// Characters of a line.
pub(super) const LINE_CHARS_MAX: usize = 110;
/// Lines of a function, from `fn` to its closing brace.
pub(super) const FUNCTION_LINES_MAX: usize = 70;
/// Lines of a file.
pub(super) const FILE_LINES_MAX: usize = 600;

/// Languages whose lines are measured.
const MEASURED: &[&str] = &[".rs", ".py", ".js", ".go", ".java", ".sh"];

/// Whether this is a library as others publish it, minified: its shape is not ours to choose.
fn is_vendored(path: &str) -> bool {
    path.contains("/assets/") && path.ends_with(".min.js")
}

/// Every length above its limit.
pub(super) fn measure(tree: &Tree) -> Vec<Excess> {
    let mut found = Vec::new();
    for (path, text) in &tree.texts {
        if MEASURED.iter().any(|end| path.ends_with(end)) && !is_vendored(path) {
            found.extend(measure_lines(path, text));
        }
        if path.ends_with(".rs") {
            found.extend(measure_functions(path, text));
        }
    }
    found
}

fn measure_lines(path: &str, text: &str) -> Vec<Excess> {
    let mut found = Vec::new();
    let lines = text.lines().count();
    if lines > FILE_LINES_MAX {
        found.push(Excess::new(path, 1, "file-lines", lines, FILE_LINES_MAX));
    }
    let long = |(_, line): &(usize, &str)| line.chars().count() > LINE_CHARS_MAX;
    let long: Vec<usize> =
        text.lines().enumerate().filter(long).map(|(index, _)| index + 1).collect();
    if let Some(first) = long.first() {
        found.push(Excess::new(path, *first, "long-lines", long.len(), 0));
    }
    found
}

fn measure_functions(path: &str, text: &str) -> Vec<Excess> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let indent = &line[..line.len() - line.trim_start().len()];
        let Some(length) = function_length(&lines[index..], indent) else { continue };
        if length > FUNCTION_LINES_MAX {
            let rule = format!("function-lines:{name}");
            found.push(Excess::new(path, index + 1, &rule, length, FUNCTION_LINES_MAX));
        }
    }
    found
}

/// The name of the function that a line opens.
fn function_name(line: &str) -> Option<&str> {
    let mut rest = line.trim_start();
    while !rest.starts_with("fn ") {
        let (word, after) = rest.split_once(' ')?;
        let qualifier = word.starts_with("pub") || word == "in" || word.ends_with(')');
        let qualifier =
            qualifier || ["const", "async", "unsafe", "extern", "\"C\""].contains(&word);
        if !qualifier {
            return None;
        }
        rest = after;
    }
    rest[3..].split(|c: char| !(c.is_alphanumeric() || c == '_')).next()
}

/// Lines up to the closing brace at the same indentation; `None` for a declaration without a body.
fn function_length(lines: &[&str], indent: &str) -> Option<usize> {
    for (index, line) in lines.iter().enumerate() {
        let at_level = line.strip_prefix(indent).is_some_and(|rest| !rest.starts_with(' '));
        if index == 0 && line.ends_with('}') || at_level && index > 0 && line.trim() == "}" {
            return Some(index + 1);
        }
        if at_level && line.ends_with(';') {
            return None;
        }
    }
    None
}

/// Rust files that do not begin with a `//!` sentence, which says what the file is for.
pub(super) fn check_openings(tree: &Tree) -> Vec<Violation> {
    let bare = tree.rust().filter(|(_, text)| !text.starts_with("//! "));
    bare.map(|(path, _)| Violation::new(path, 1, "does not open with a `//!` sentence")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, text: &str, expected: &[(&str, usize, usize)]) {
        let mut tree = Tree::default();
        tree.texts.insert(path.to_string(), text.to_string());
        let found = measure(&tree);
        let found: Vec<_> = found.iter().map(|e| (e.rule.as_str(), e.line, e.found)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn lines_are_measured_at_and_above_the_limit() {
        check("a.rs", &"x".repeat(LINE_CHARS_MAX), &[]);
        check("a.py", &format!("a\n{}\n", "ä".repeat(LINE_CHARS_MAX + 1)), &[("long-lines", 2, 1)]);
        check("a.md", &"x".repeat(LINE_CHARS_MAX + 1), &[]);
        check("a/assets/b.min.js", &"x".repeat(LINE_CHARS_MAX + 1), &[]);
        check("a/assets/b.js", &"x".repeat(LINE_CHARS_MAX + 1), &[("long-lines", 1, 1)]);
    }

    #[test]
    fn files_are_measured_at_and_above_the_limit() {
        check("a.rs", &"x\n".repeat(FILE_LINES_MAX), &[]);
        check("a.rs", &"x\n".repeat(FILE_LINES_MAX + 1), &[("file-lines", 1, FILE_LINES_MAX + 1)]);
    }

    #[test]
    fn functions_are_measured_at_and_above_the_limit() {
        let of = |lines: usize| {
            let body = "        step();\n".repeat(lines - 2);
            format!("impl X {{\n    pub(crate) async fn long<T>(self) {{\n{body}    }}\n}}\n")
        };
        check("a.rs", &of(FUNCTION_LINES_MAX), &[]);
        check(
            "a.rs",
            &of(FUNCTION_LINES_MAX + 1),
            &[("function-lines:long", 2, FUNCTION_LINES_MAX + 1)],
        );
    }

    #[test]
    fn declarations_and_one_line_functions_end_where_they_end() {
        let gap = "const X: u8 = 1;\n".repeat(FUNCTION_LINES_MAX);
        let text = format!(
            "fn short() {{}}\ntrait T {{\n    fn named(\n        &self,\n    ) -> u8;\n}}\n{gap}"
        );
        check("a.rs", &text, &[]);
        assert_eq!(function_name("    pub(super) const fn name(x: u8) {"), Some("name"));
        assert_eq!(function_name("    let f = fn_pointer;"), None);
        assert_eq!(function_name("// a fn in a comment"), None);
    }

    #[test]
    fn a_file_without_its_sentence_is_found() {
        let mut tree = Tree::default();
        tree.texts.insert("good.rs".to_string(), "//! One subject.\n".to_string());
        tree.texts.insert("bad.rs".to_string(), "use std::fmt;\n".to_string());
        let found: Vec<String> = check_openings(&tree).into_iter().map(|v| v.path).collect();
        assert_eq!(found, ["bad.rs"]);
    }
}
