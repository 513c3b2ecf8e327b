//! Splits a selector's text into names, literals, keywords and operators.

use super::error::SelectorError;
use super::expression::{Comparison, Operator};
use super::number::{self, Number};

/// A word that names no property, in any case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Keyword {
    And,
    Between,
    Escape,
    False,
    In,
    Is,
    Like,
    Not,
    Null,
    Or,
    True,
}

const KEYWORDS: &[(&str, Keyword)] = &[
    ("AND", Keyword::And),
    ("BETWEEN", Keyword::Between),
    ("ESCAPE", Keyword::Escape),
    ("FALSE", Keyword::False),
    ("IN", Keyword::In),
    ("IS", Keyword::Is),
    ("LIKE", Keyword::Like),
    ("NOT", Keyword::Not),
    ("NULL", Keyword::Null),
    ("OR", Keyword::Or),
    ("TRUE", Keyword::True),
];

const LETTERS_BEHIND_NUMBER: &str = "a number cannot be followed by letters without a space, \
                                     nor does a name begin with a digit";

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Name(Box<str>),
    Text(Box<str>),
    Number(Number),
    Keyword(Keyword),
    Comparison(Comparison),
    Operator(Operator),
    Open,
    Close,
    Comma,
    End,
}

/// The next token, and which bytes of the text it takes.
#[derive(Debug)]
pub(super) struct Spanned {
    pub(super) token: Token,
    pub(super) start: usize,
    pub(super) end: usize,
}

pub(super) struct Lexer<'t> {
    text: &'t str,
    at: usize,
    dashes_in_names: bool,
}

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t str, dashes_in_names: bool) -> Lexer<'t> {
        Lexer { text, at: 0, dashes_in_names }
    }

    pub(super) fn next(&mut self) -> Result<Spanned, SelectorError> {
        let rest = self.text[self.at..].trim_start_matches([' ', '\t', '\n', '\r', '\x0c']);
        let start = self.text.len() - rest.len();
        let Some(first) = rest.chars().next() else {
            return Ok(Spanned { token: Token::End, start, end: start });
        };
        let second = rest.chars().nth(1);
        let (token, len) = match first {
            '\'' => self.quoted(start, '\'')?,
            '[' => self.quoted(start, ']')?,
            '0'..='9' => self.number(start)?,
            '.' if second.is_some_and(|c| c.is_ascii_digit()) => self.number(start)?,
            _ if is_name_start(first) => self.word(rest),
            _ => symbol(rest).ok_or_else(|| SelectorError::new(start, stray(first)))?,
        };
        self.at = start + len;
        Ok(Spanned { token, start, end: self.at })
    }

    /// Text or a name between quotes, of which the closing one stands for itself where it is doubled.
    fn quoted(&self, start: usize, close: char) -> Result<(Token, usize), SelectorError> {
        let inner = &self.text[start + 1..];
        let mut chars = inner.char_indices().peekable();
        let mut content = String::new();
        while let Some((at, c)) = chars.next() {
            if c != close {
                content.push(c);
            } else if chars.next_if(|(_, next)| *next == close).is_some() {
                content.push(close);
            } else {
                let len = 1 + at + 1;
                return match close {
                    '\'' => Ok((Token::Text(content.into()), len)),
                    _ if content.is_empty() => {
                        Err(SelectorError::new(start, "the brackets have no name between them"))
                    }
                    _ => Ok((Token::Name(content.into()), len)),
                };
            }
        }
        let problem = match close {
            '\'' => "the text that begins here has no closing quote (')",
            _ => "the name that begins here has no closing bracket (])",
        };
        Err(SelectorError::new(start, problem))
    }

    fn number(&self, start: usize) -> Result<(Token, usize), SelectorError> {
        let rest = &self.text[start..];
        let scanned = number::scan(rest).map_err(|problem| SelectorError::new(start, problem))?;
        if rest[scanned.len..].starts_with(|c| is_name_part(c) || c == '.') {
            return Err(SelectorError::new(start, LETTERS_BEHIND_NUMBER));
        }
        Ok((Token::Number(scanned.number), scanned.len))
    }

    /// A keyword or a name.
    fn word(&self, rest: &str) -> (Token, usize) {
        let dashes = self.dashes_in_names;
        let is_part = |c| is_name_part(c) || c == '.' || dashes && c == '-';
        let word = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
        let token = match keyword(word) {
            Some(keyword) => Token::Keyword(keyword),
            None => Token::Name(word.into()),
        };
        (token, word.len())
    }
}

fn keyword(word: &str) -> Option<Keyword> {
    let found = KEYWORDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
    found.map(|(_, keyword)| *keyword)
}

/// Whether a property's name needs no brackets.
pub(super) fn is_plain_name(name: &str) -> bool {
    let is_part = |c| is_name_part(c) || c == '.';
    name.starts_with(is_name_start) && name.chars().all(is_part) && keyword(name).is_none()
}

/// Letters and what else begins a name in Java: currencies and the underscores.
fn is_name_start(c: char) -> bool {
    let is_currency = matches!(c, '$' | '\u{a2}'..='\u{a5}' | '\u{20a0}'..='\u{20cf}');
    c.is_alphabetic() || is_currency || matches!(c, '_' | '\u{203f}' | '\u{2040}')
}

/// Also digits and combining accents.
fn is_name_part(c: char) -> bool {
    is_name_start(c) || c.is_alphanumeric() || matches!(c, '\u{300}'..='\u{36f}')
}

fn symbol(rest: &str) -> Option<(Token, usize)> {
    let second = rest.as_bytes().get(1);
    Some(match (rest.as_bytes().first()?, second) {
        (b'<', Some(b'>')) | (b'!', Some(b'=')) => (Token::Comparison(Comparison::NotEqual), 2),
        (b'<', Some(b'=')) => (Token::Comparison(Comparison::LessOrEqual), 2),
        (b'>', Some(b'=')) => (Token::Comparison(Comparison::GreaterOrEqual), 2),
        (b'<', _) => (Token::Comparison(Comparison::Less), 1),
        (b'>', _) => (Token::Comparison(Comparison::Greater), 1),
        (b'=', _) => (Token::Comparison(Comparison::Equal), 1),
        (b'+', _) => (Token::Operator(Operator::Add), 1),
        (b'-', _) => (Token::Operator(Operator::Subtract), 1),
        (b'*', _) => (Token::Operator(Operator::Multiply), 1),
        (b'/', _) => (Token::Operator(Operator::Divide), 1),
        (b'%', _) => (Token::Operator(Operator::Remainder), 1),
        (b'(', _) => (Token::Open, 1),
        (b')', _) => (Token::Close, 1),
        (b',', _) => (Token::Comma, 1),
        _ => return None,
    })
}

/// What is wrong with a character that begins nothing.
fn stray(c: char) -> String {
    match c {
        '"' | '`' | '\u{2018}'..='\u{201f}' => {
            format!("{c} is no quote: text is in '…', a name with special characters in […]")
        }
        '&' => "& means nothing here: write AND".to_owned(),
        '|' => "| means nothing here: write OR".to_owned(),
        '!' => "! means nothing here: write NOT or <>".to_owned(),
        '-' | '.' => format!("{c} begins neither a number nor a name here"),
        _ => format!("the character {c:?} means nothing here"),
    }
}
