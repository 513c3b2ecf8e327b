//! Tuples as parameters: they hide the number of parameters from clippy and their meaning from readers; the
//! fields of a struct have names.

use super::Tree;
use super::allow::Finding;
use super::paths::{Token, is_name, tokens};
use super::source;

/// The rule's name in the list of known offenders.
pub(super) const RULE: &str = "tuple-parameters";

/// Every parameter that is a tuple of two or more, outside tests.
pub(super) fn find(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, text) in tree.rust().filter(|(path, _)| !source::is_test(path)) {
        let code = source::split(&source::without_tests(text)).code;
        let tokens = tokens(&code);
        for (at, pair) in tokens.windows(2).enumerate() {
            if pair[0].text != "fn" || !is_name(pair[1].text) {
                continue;
            }
            let Token { text: name, line } = pair[1];
            let parameters = opening(&tokens[at + 2..]).map_or(Vec::new(), parts);
            for parameter in parameters.into_iter().filter(|it| is_tuple(it)) {
                let shown: Vec<&str> = parameter.iter().map(|token| token.text).collect();
                let shown = shown.join(" ");
                let text = format!("`{name}` takes a tuple, `{shown}`: make it a struct");
                found.push(Finding::in_file(RULE, path, line, text));
            }
        }
    }
    found
}

/// What follows the parenthesis that opens the parameters.
fn opening<'a, 'b>(tokens: &'b [Token<'a>]) -> Option<&'b [Token<'a>]> {
    let mut depth = 0;
    let at = tokens.iter().position(|token| {
        match token.text {
            "<" => depth += 1,
            ">" => depth -= 1,
            _ => {}
        }
        depth == 0 && token.text != ">"
    })?;
    (tokens[at].text == "(").then(|| &tokens[at + 1..])
}

/// The parts between commas up to the closing parenthesis.
fn parts<'a, 'b>(tokens: &'b [Token<'a>]) -> Vec<&'b [Token<'a>]> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            ")" if depth == 0 => {
                parts.push(&tokens[start..at]);
                break;
            }
            "," if depth == 0 => {
                parts.push(&tokens[start..at]);
                start = at + 1;
            }
            "(" | "[" | "{" | "<" => depth += 1,
            ")" | "]" | "}" | ">" => depth -= 1,
            _ => {}
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Whether a parameter's type is a tuple, perhaps borrowed.
fn is_tuple(parameter: &[Token<'_>]) -> bool {
    let mut depth = 0;
    let colon = parameter.iter().position(|token| {
        match token.text {
            "(" | "[" | "{" | "<" => depth += 1,
            ")" | "]" | "}" | ">" => depth -= 1,
            _ => {}
        }
        depth == 0 && token.text == ":"
    });
    let Some(colon) = colon else { return false };
    let mut kind = &parameter[colon + 1..];
    loop {
        kind = match kind {
            [first, rest @ ..] if ["&", "mut"].contains(&first.text) => rest,
            [quote, _, rest @ ..] if quote.text == "'" => rest,
            [open, rest @ ..] => return open.text == "(" && parts(rest).len() > 1,
            [] => return false,
        };
    }
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
