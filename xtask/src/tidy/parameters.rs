//! Tuples as parameters: they hide the number of parameters from clippy and their meaning from readers; the
//! fields of a struct have names.

use super::Tree;
use super::allow::Finding;
use super::source;

/// The rule's name in the list of known offenders.
pub(super) const RULE: &str = "tuple-parameters";

/// Every parameter that is a tuple of two or more, outside tests.
pub(super) fn find(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, text) in tree.rust().filter(|(path, _)| !source::is_test(path)) {
        let code = source::split(&source::without_tests(text)).code;
        for (at, name, parameters) in functions(&code) {
            for parameter in split_at_commas(parameters).into_iter().filter(|it| is_tuple(it)) {
                let line = code[..at].lines().count();
                let parameter = parameter.split_whitespace().collect::<Vec<_>>().join(" ");
                let text = format!("`{name}` takes a tuple, `{parameter}`: make it a struct");
                found.push(Finding::in_file(RULE, path, line, text));
            }
        }
    }
    found
}

/// Each function: the offset of its name, its name, and the text between its parentheses.
fn functions(code: &str) -> Vec<(usize, &str, &str)> {
    let mut found = Vec::new();
    for (start, _) in code.match_indices("fn ") {
        if code[..start].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let at = start + "fn ".len();
        let rest = &code[at..];
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        let Some(open) = after_generics(rest).filter(|_| !name.is_empty()) else { continue };
        let parameters = &rest[open + 1..];
        found.push((at, name, &parameters[..closing(parameters)]));
    }
    found
}

/// The offset of the parenthesis that opens the parameters.
fn after_generics(rest: &str) -> Option<usize> {
    let mut depth = 0;
    let mut before = ' ';
    for (at, c) in rest.char_indices() {
        match c {
            '<' => depth += 1,
            '>' if before != '-' => depth -= 1,
            '(' if depth == 0 => return Some(at),
            c if depth == 0 && !c.is_whitespace() => return None,
            _ => {}
        }
        before = c;
    }
    None
}

/// The offset of the parenthesis that closes the one before the text.
fn closing(text: &str) -> usize {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return at,
            ')' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

/// The parts between commas outside brackets.
fn split_at_commas(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start, mut before) = (0, 0, ' ');
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            '>' if before != '-' && before != '=' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
        before = c;
    }
    parts.push(&text[start..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// Whether a parameter's type is a tuple, perhaps borrowed.
fn is_tuple(parameter: &str) -> bool {
    let mut depth = 0;
    let colon = parameter.char_indices().find(|&(at, c)| {
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' | '>' => depth -= 1,
            _ => {}
        }
        let double = parameter[at + 1..].starts_with(':') || parameter[..at].ends_with(':');
        c == ':' && depth == 0 && !double
    });
    let Some((colon, _)) = colon else { return false };
    let mut kind = parameter[colon + 1..].trim();
    while let Some(rest) = kind.strip_prefix('&').or_else(|| kind.strip_prefix("mut ")) {
        kind = rest.trim_start();
        if kind.starts_with('\'') {
            kind = kind.split_once(' ').map_or("", |(_, rest)| rest.trim_start());
        }
    }
    let Some(inner) = kind.strip_prefix('(') else { return false };
    split_at_commas(&inner[..closing(inner)]).len() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[usize]) {
        let mut tree = Tree::default();
        tree.texts.insert("a.rs".to_string(), text.to_string());
        let found: Vec<usize> = find(&tree).into_iter().map(|it| it.line).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn tuples_are_found() {
        check("fn a(x: u8, (y, z): (u8, u8)) {}", &[1]);
        check(
            "\nfn a<T: Fn(u8) -> u8>(\n    &self,\n    x: &mut (u8, T),\n    y: &'a (u8, u8),\n);",
            &[2, 2],
        );
        check("impl A {\n    pub(crate) fn b(self, z: (Vec<u8>, [u8; 2])) {}\n}", &[2]);
    }

    #[test]
    fn other_parameters_pass() {
        check("fn a(x: (), y: (u8), z: impl Fn(u8, u8) -> (u8, u8)) -> (u8, u8) {}", &[]);
        check("fn a(x: Option<(u8, u8)>, y: &[(u8, u8)], S { a, b }: S) { f((1, 2)) }", &[]);
        check("type F = fn(u8, u8);\nlet fn_x = (a, b);", &[]);
        check("#[cfg(test)]\nfn a(x: (u8, u8)) {}\n// fn a(x: (u8, u8))", &[]);
    }
}
