//! Selectors as RabbitMQ's JMS client sends them for topics: an Erlang term, made into the text of a
//! selector.
//!
//! `{'=',{'ident',<<"colour">>},<<"red">>}.` is `([colour] = 'red')`. Tuples are an operator and its
//! operands, atoms are quoted, texts are binaries, lists hold texts.

/// How deep tuples may be nested.
const DEPTH_MAX: usize = 64;

/// Operators between two operands, and what selectors call them.
const BINARY: [(&str, &str); 12] = [
    ("and", "AND"),
    ("or", "OR"),
    ("=", "="),
    ("<>", "<>"),
    ("<", "<"),
    (">", ">"),
    ("<=", "<="),
    (">=", ">="),
    ("+", "+"),
    ("-", "-"),
    ("*", "*"),
    ("/", "/"),
];

/// The text of a selector that an Erlang term says.
///
/// # Errors
/// What is wrong with the term.
pub(super) fn selector_text(term: &str) -> Result<String, String> {
    let mut reader = Reader { rest: term };
    let read = reader.term(0)?;
    reader.passed('.');
    match reader.rest.trim_start() {
        "" => read.selector(),
        rest => Err(format!("it goes on with '{}' behind its end", shown(rest))),
    }
}

/// The beginning of what is left, for an error.
fn shown(rest: &str) -> &str {
    let end = rest.char_indices().nth(16).map_or(rest.len(), |(at, _)| at);
    &rest[..end]
}

#[derive(Debug)]
enum Term<'t> {
    Atom(&'t str),
    Number(&'t str),
    Text(String),
    List(Vec<Term<'t>>),
    Tuple(Vec<Term<'t>>),
}

struct Reader<'t> {
    rest: &'t str,
}

impl<'t> Reader<'t> {
    /// Skips blanks, and what follows if it is that.
    fn passed(&mut self, next: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(next) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn term(&mut self, depth: usize) -> Result<Term<'t>, String> {
        if depth > DEPTH_MAX {
            return Err(format!("it is nested more than {DEPTH_MAX} deep"));
        }
        if self.passed('{') {
            return self.terms('}', depth).map(Term::Tuple);
        }
        if self.passed('[') {
            return self.terms(']', depth).map(Term::List);
        }
        if self.passed('\'') {
            let Some((atom, rest)) = self.rest.split_once('\'') else {
                return Err("a quoted atom has no end".to_owned());
            };
            self.rest = rest;
            return Ok(Term::Atom(atom));
        }
        if let Some(rest) = self.rest.strip_prefix("<<\"") {
            self.rest = rest;
            return self.text();
        }
        self.number()
    }

    /// Terms parted by commas, up to `end`.
    fn terms(&mut self, end: char, depth: usize) -> Result<Vec<Term<'t>>, String> {
        let mut terms = Vec::new();
        if self.passed(end) {
            return Ok(terms);
        }
        loop {
            terms.push(self.term(depth + 1)?);
            if self.passed(end) {
                return Ok(terms);
            }
            if !self.passed(',') {
                return Err(format!("',' or '{end}' is missing before '{}'", shown(self.rest)));
            }
        }
    }

    /// The rest of a binary, in which a backslash is before a quote or a backslash.
    fn text(&mut self) -> Result<Term<'t>, String> {
        let mut text = String::new();
        let mut letters = self.rest.char_indices();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '\\' => text.extend(letters.next().map(|(_, letter)| letter)),
                '"' => {
                    let rest = self.rest.get(at + 1..).unwrap_or_default();
                    self.rest = rest.strip_prefix(">>").ok_or("a text has no '>>' at its end")?;
                    return Ok(Term::Text(text));
                }
                other => text.push(other),
            }
        }
        Err("a text has no end".to_owned())
    }

    fn number(&mut self) -> Result<Term<'t>, String> {
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || "+-.".contains(letter);
        let end = self.rest.find(|letter| !is_part(letter)).unwrap_or(self.rest.len());
        // The point at the end of the whole term is no part of a number.
        let number = self.rest[..end].trim_end_matches('.');
        if !number.starts_with(|first: char| first.is_ascii_digit() || first == '-') {
            return Err(format!("there is no term at '{}'", shown(self.rest)));
        }
        self.rest = &self.rest[number.len()..];
        Ok(Term::Number(number))
    }
}

impl Term<'_> {
    fn selector(&self) -> Result<String, String> {
        match self {
            Term::Atom("true") => Ok("TRUE".to_owned()),
            Term::Atom("false") => Ok("FALSE".to_owned()),
            Term::Atom(other) => Err(format!("'{other}' is no value")),
            Term::Number(number) => Ok((*number).to_owned()),
            Term::Text(text) => Ok(quoted(text)),
            Term::List(texts) => {
                let texts: Result<Vec<_>, _> = texts.iter().map(Term::selector).collect();
                Ok(format!("({})", texts?.join(", ")))
            }
            Term::Tuple(parts) => tuple(parts),
        }
    }
}

/// An operator and its operands.
fn tuple(parts: &[Term<'_>]) -> Result<String, String> {
    let Some((Term::Atom(operator), operands)) = parts.split_first() else {
        return Err("a tuple does not begin with an operator".to_owned());
    };
    if let ("ident", [Term::Text(name)]) = (*operator, operands) {
        return Ok(format!("[{}]", name.replace(']', "]]")));
    }
    if let ("like" | "not_like", [value, Term::Text(pattern), escape]) = (*operator, operands) {
        let escape = match escape {
            Term::Text(letter) => format!(" ESCAPE {}", quoted(letter)),
            _ => String::new(),
        };
        let is_not = if *operator == "like" { "" } else { "NOT " };
        return Ok(format!("({} {is_not}LIKE {}{escape})", value.selector()?, quoted(pattern)));
    }
    let texts: Result<Vec<String>, String> = operands.iter().map(Term::selector).collect();
    let named = BINARY.iter().find(|(name, _)| name == operator);
    Ok(match (*operator, &*texts?, named) {
        (_, [one, other], Some((_, operator))) => format!("({one} {operator} {other})"),
        ("not", [one], _) => format!("(NOT {one})"),
        (sign @ ("-" | "+"), [one], _) => format!("({sign} {one})"),
        ("is_null", [one], _) => format!("({one} IS NULL)"),
        ("not_null", [one], _) => format!("({one} IS NOT NULL)"),
        ("in", [one, list], _) => format!("({one} IN {list})"),
        ("not_in", [one, list], _) => format!("({one} NOT IN {list})"),
        ("between", [one, from, to], _) => format!("({one} BETWEEN {from} AND {to})"),
        ("not_between", [one, from, to], _) => format!("({one} NOT BETWEEN {from} AND {to})"),
        (operator, texts, _) => {
            return Err(format!("'{operator}' with {} operands is no operation", texts.len()));
        }
    })
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use angarium_engine::selector::Selector;

    #[track_caller]
    fn check(term: &str, selector: &str) {
        let text = selector_text(term).expect("it is a term");
        assert_eq!(Selector::parse(&text), Selector::parse(selector), "{text}");
        assert!(Selector::parse(&text).is_ok(), "{text}");
    }

    #[test]
    fn terms_are_selectors() {
        check("{'=',{'ident',<<\"colour\">>},<<\"red\">>}.", "colour = 'red'");
        check("{'not',{'is_null',{'ident',<<\"a.b\">>}}}.", "NOT (a.b IS NULL)");
        check(
            "{'and',{'or','true','false'},{'>',{'ident',<<\"n\">>},{'*',{'-',2},1.5E10}}}.",
            "(TRUE OR FALSE) AND n > (- 2) * 1.5E10",
        );
        check("{'like',{'ident',<<\"a\">>},<<\"x%\">>,'no_escape'}.", "a LIKE 'x%'");
        check(
            "{'not_like',{'ident',<<\"a\">>},<<\"x!%\">>,<<\"!\">>}.",
            "a NOT LIKE 'x!%' ESCAPE '!'",
        );
        check("{'in',{'ident',<<\"a\">>},[<<\"it's\">>,<<\"b\">>]}.", "a IN ('it''s', 'b')");
        check("{'not_in', {'ident',<<\"a\">>}, [<<\"b\">>]} .", "a NOT IN ('b')");
        check("{'between',{'ident',<<\"a\">>},1,2}.", "a BETWEEN 1 AND 2");
        check("{'not_null',{'ident',<<\"a\">>}}.", "a IS NOT NULL");
        check("{'=',{'ident',<<\"a\">>},<<\"\\\"\\\\é\">>}.", "a = '\"\\é'");
        check("'true'.", "TRUE");
    }

    #[test]
    fn what_is_no_term_says_why() {
        for (term, why) in [
            ("", "there is no term at ''"),
            ("{'='", "',' or '}' is missing before ''"),
            ("{'=',1,2} x", "it goes on with 'x' behind its end"),
            ("{'dance',1,2}.", "'dance' with 2 operands is no operation"),
            ("{1,2}.", "a tuple does not begin with an operator"),
            ("<<\"a", "a text has no end"),
            ("<<\"a\"", "a text has no '>>' at its end"),
            ("'a", "a quoted atom has no end"),
            ("'a'", "'a' is no value"),
        ] {
            assert_eq!(selector_text(term).expect_err(term), why, "{term}");
        }
        let deep = "{".repeat(100_000);
        assert!(selector_text(&deep).is_err());
    }
}
