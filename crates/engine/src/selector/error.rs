//! Why a text is not a selector, and where.

use std::fmt;

/// Characters of the selector that an error quotes.
const QUOTED_CHARS_MAX: usize = 30;

/// Why a text is not a selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectorError {
    offset: usize,
    problem: String,
}

impl SelectorError {
    pub(super) fn new(offset: usize, problem: impl Into<String>) -> SelectorError {
        SelectorError { offset, problem: problem.into() }
    }

    /// The byte of the text at which what is wrong begins; the text's length if something is missing.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// What is wrong there, as a sentence without its place.
    #[must_use]
    pub fn problem(&self) -> &str {
        &self.problem
    }
}

impl fmt::Display for SelectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid selector at byte {}: {}", self.offset, self.problem)
    }
}

impl std::error::Error for SelectorError {}

/// A piece of the selector as an error quotes it: shortened, without line ends.
pub(super) fn quoted(piece: &str) -> String {
    let mut shown: String = piece.chars().take(QUOTED_CHARS_MAX).collect();
    if shown.len() < piece.len() {
        shown.push('…');
    }
    format!("`{}`", shown.replace(char::is_control, " "))
}
