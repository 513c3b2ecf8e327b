//! Names in a source: its imports, the paths in its code, and the items that it defines.

/// A path and the line that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    /// Its parts, as written: `crate`, `super`, `self`, names.
    pub(super) path: Vec<String>,
    /// Counted from 1.
    pub(super) line: usize,
}

/// One name that a `use` brings in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Import {
    /// The name here; `*` for all of a module.
    pub(super) name: String,
    /// What is imported; without the `*`.
    pub(super) target: Named,
    /// Whether others can import it from here.
    pub(super) is_public: bool,
}

/// All names of a source.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// What `use` brings in.
    pub(super) imports: Vec<Import>,
    /// Paths of two parts or more outside `use`.
    pub(super) paths: Vec<Named>,
    /// Names of items.
    pub(super) items: Vec<String>,
}

/// Keywords before the name of an item.
const ITEM_KEYWORDS: &[&str] =
    &["fn", "struct", "enum", "trait", "type", "const", "static", "union"];

/// A word, `::`, `->`, `=>`, or any other sign by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) text: &'a str,
    /// Counted from 1.
    pub(super) line: usize,
}

/// Reads code without comments and strings.
pub(super) fn read(code: &str) -> Names {
    let tokens = tokens(code);
    let mut names = Names::default();
    let mut at = 0;
    while at < tokens.len() {
        let token = tokens[at];
        let before = if at > 0 { tokens[at - 1].text } else { "" };
        let next = tokens.get(at + 1).map_or("", |it| it.text);
        if token.text == "use" && (is_name(next) || next == "{") {
            let mut reader =
                UseReader { tokens: &tokens, at: at + 1, is_public: is_public(&tokens, at) };
            reader.tree(&mut Vec::new(), &mut names.imports);
            at = reader.at;
        } else if ITEM_KEYWORDS.contains(&token.text) && is_name(next) {
            names.items.push(next.to_string());
            at += 2;
        } else if is_name(token.text) && next == "::" && before != "::" {
            let (path, end) = path(&tokens, at);
            if path.len() > 1 {
                names.paths.push(Named { path, line: token.line });
            }
            at = end;
        } else {
            at += 1;
        }
    }
    names
}

/// Whether the token at `at` follows `pub` or `pub(..)`.
fn is_public(tokens: &[Token<'_>], at: usize) -> bool {
    let before = &tokens[..at];
    match before.last().map(|it| it.text) {
        Some("pub") => true,
        Some(")") => {
            let open = before.iter().rposition(|it| it.text == "(").unwrap_or_default();
            open > 0 && before[open - 1].text == "pub"
        }
        _ => false,
    }
}

/// The names joined by `::` from `at` on, and what follows them.
fn path(tokens: &[Token<'_>], mut at: usize) -> (Vec<String>, usize) {
    let mut path = vec![tokens[at].text.to_string()];
    at += 1;
    while let [separator, name, ..] = &tokens[at.min(tokens.len())..]
        && separator.text == "::"
        && is_name(name.text)
    {
        path.push(name.text.to_string());
        at += 2;
    }
    (path, at)
}

pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Reads one tree of a `use`.
struct UseReader<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
    is_public: bool,
}

impl UseReader<'_> {
    fn peek(&self) -> &str {
        self.tokens.get(self.at).map_or("", |it| it.text)
    }

    /// A path with a group, `*` or an alias at its end; leaves what follows it.
    fn tree(&mut self, prefix: &mut Vec<String>, imports: &mut Vec<Import>) {
        let depth = prefix.len();
        let line = self.tokens.get(self.at).map_or(0, |it| it.line);
        let mut alias = None;
        loop {
            match self.peek() {
                "{" => {
                    self.group(prefix, imports);
                    prefix.truncate(depth);
                    return;
                }
                "*" => {
                    self.at += 1;
                    alias = Some("*".to_string());
                    break;
                }
                "::" => self.at += 1,
                "as" => {
                    self.at += 1;
                    alias = Some(self.peek().to_string());
                    self.at += 1;
                    break;
                }
                name if is_name(name) => {
                    prefix.push(name.to_string());
                    self.at += 1;
                }
                _ => break,
            }
        }
        let mut path = prefix.clone();
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let name = alias.or_else(|| path.last().cloned());
        if let Some(name) = name {
            let target = Named { path, line };
            imports.push(Import { name, target, is_public: self.is_public });
        }
        prefix.truncate(depth);
    }

    /// The trees between braces.
    fn group(&mut self, prefix: &mut Vec<String>, imports: &mut Vec<Import>) {
        self.at += 1;
        while !["}", ""].contains(&self.peek()) {
            let before = self.at;
            self.tree(prefix, imports);
            if self.peek() == "," || self.at == before {
                self.at += 1;
            }
        }
        self.at += 1;
    }
}

/// The tokens of code without comments and strings.
pub(super) fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    for (index, text) in code.lines().enumerate() {
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            let length = if is_word(first) {
                rest.find(|c: char| !is_word(c)).unwrap_or(rest.len())
            } else if ["::", "->", "=>"].iter().any(|sign| rest.starts_with(sign)) {
                2
            } else {
                first.len_utf8()
            };
            let (token, after) = rest.split_at(length);
            if !first.is_whitespace() {
                tokens.push(Token { text: token, line: index + 1 });
            }
            rest = after;
        }
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports(code: &str) -> Vec<String> {
        let imports = read(code).imports.into_iter();
        let shown = imports.map(|it| {
            let public = if it.is_public { "pub " } else { "" };
            format!("{}: {public}{} as {}", it.target.line, it.target.path.join("::"), it.name)
        });
        shown.collect()
    }

    #[test]
    fn imports_are_taken_apart() {
        let code = "use a::b;\npub(crate) use super::{\n    c::{self, D as E},\n    f::*,\n};\n\
                    use {g, h::i};";
        let expected = [
            "1: a::b as b",
            "3: pub super::c as c",
            "3: pub super::c::D as E",
            "4: pub super::f as *",
            "6: g as g",
            "6: h::i as i",
        ];
        assert_eq!(imports(code), expected);
    }

    #[test]
    fn paths_and_items_are_found() {
        let code =
            "pub fn f(x: &crate::a::B<c::D>) -> impl E + use<> {\n    Self::g::<h::i>(x.j, k)\n}";
        let names = read(code);
        let paths: Vec<String> = names.paths.iter().map(|it| it.path.join("::")).collect();
        assert_eq!(paths, ["crate::a::B", "c::D", "Self::g", "h::i"]);
        assert_eq!(names.items, ["f"]);
        assert!(names.imports.is_empty());
    }
}
