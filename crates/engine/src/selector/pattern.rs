//! Patterns of `LIKE`: `_` stands for one character, `%` for any number of them.

use std::fmt;

/// The character before `_` and `%` that stand for themselves, where a pattern is shown.
const SHOWN_ESCAPE: char = '\\';

/// A pattern, split at its `%`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pattern {
    /// What the text begins with.
    start: Part,
    /// What follows in this order, with anything between. None is empty.
    middle: Box<[Part]>,
    /// What the text ends with; `None` without any `%`: the text ends behind `start`.
    end: Option<Part>,
}

/// Characters without a gap.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Part {
    Text(Box<str>),
    /// Characters, some of which, `None`, are any character.
    Mixed(Box<[Option<char>]>),
}

impl Part {
    fn new(chars: &[Option<char>]) -> Part {
        match chars.iter().copied().collect::<Option<String>>() {
            Some(text) => Part::Text(text.into()),
            None => Part::Mixed(chars.into()),
        }
    }

    fn is_empty(&self) -> bool {
        matches!(self, Part::Text(text) if text.is_empty())
    }

    /// What follows the part at the beginning of the text.
    fn strip_start<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self {
            Part::Text(part) => text.strip_prefix(&**part),
            Part::Mixed(part) => {
                let mut chars = text.chars();
                let fits = part.iter().all(|wanted| fits(*wanted, chars.next()));
                fits.then_some(chars.as_str())
            }
        }
    }

    /// What precedes the part at the end of the text.
    fn strip_end<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self {
            Part::Text(part) => text.strip_suffix(&**part),
            Part::Mixed(part) => {
                let mut chars = text.chars();
                let fits = part.iter().rev().all(|wanted| fits(*wanted, chars.next_back()));
                fits.then_some(chars.as_str())
            }
        }
    }

    /// What follows the first place of the text that has the part.
    fn skip<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self {
            Part::Text(part) => text.find(&**part).map(|at| &text[at + part.len()..]),
            Part::Mixed(_) => {
                let mut starts = text.char_indices().map(|(at, _)| &text[at..]);
                starts.find_map(|rest| self.strip_start(rest))
            }
        }
    }
}

fn fits(wanted: Option<char>, found: Option<char>) -> bool {
    found.is_some() && (wanted.is_none() || wanted == found)
}

impl Pattern {
    /// Parses a pattern. `escape` before `_`, `%` or itself makes that stand for itself; before anything
    /// else, it is a character like others.
    pub(super) fn new(text: &str, escape: Option<char>) -> Pattern {
        let mut parts = Vec::new();
        let mut part = Vec::new();
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let is_special = |next: &char| matches!(next, '_' | '%') || Some(*next) == escape;
            let escaped = if Some(c) == escape { chars.next_if(is_special) } else { None };
            match c {
                _ if escaped.is_some() => part.push(escaped),
                '_' => part.push(None),
                '%' => parts.push(Part::new(&std::mem::take(&mut part))),
                _ => part.push(Some(c)),
            }
        }
        let last = Part::new(&part);
        if parts.is_empty() {
            return Pattern { start: last, middle: [].into(), end: None };
        }
        let start = parts.remove(0);
        parts.retain(|part| !part.is_empty());
        Pattern { start, middle: parts.into(), end: Some(last) }
    }

    /// Whether the whole text has the pattern. Each part is looked for once, so that the time is linear in
    /// the text, times the characters of a part between two `%` that has a `_`.
    pub(super) fn matches(&self, text: &str) -> bool {
        let Some(rest) = self.start.strip_start(text) else { return false };
        let Some(end) = &self.end else { return rest.is_empty() };
        let Some(rest) = end.strip_end(rest) else { return false };
        self.middle.iter().try_fold(rest, |rest, part| part.skip(rest)).is_some()
    }

    /// The steps of a match per character of the text.
    pub(super) fn weight(&self) -> usize {
        let weights = self.middle.iter().map(|part| match part {
            Part::Text(_) => 1,
            Part::Mixed(chars) => chars.len(),
        });
        weights.max().unwrap_or(1)
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        let bytes = self.parts().map(|part| match part {
            Part::Text(text) => size_of::<Part>() + text.len(),
            Part::Mixed(chars) => size_of::<Part>() + size_of_val(&**chars),
        });
        size_of::<Pattern>() + bytes.sum::<usize>()
    }

    fn parts(&self) -> impl Iterator<Item = &Part> {
        std::iter::once(&self.start).chain(&self.middle).chain(&self.end)
    }
}

/// As in a selector: `'50\% off%' ESCAPE '\'`.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_special = |c: char| c == '%' || c == '_';
        let needs_escape = self.parts().any(|part| match part {
            Part::Text(text) => text.contains(is_special),
            Part::Mixed(chars) => chars.iter().flatten().any(|c| is_special(*c)),
        });
        let mut text = String::new();
        for (index, part) in self.parts().enumerate() {
            if index > 0 {
                text.push('%');
            }
            let chars: Vec<Option<char>> = match part {
                Part::Text(text) => text.chars().map(Some).collect(),
                Part::Mixed(chars) => chars.to_vec(),
            };
            for c in chars {
                let Some(c) = c else {
                    text.push('_');
                    continue;
                };
                if needs_escape && (is_special(c) || c == SHOWN_ESCAPE) {
                    text.push(SHOWN_ESCAPE);
                }
                text.push(c);
            }
        }
        write!(f, "'{}'", text.replace('\'', "''"))?;
        if needs_escape { write!(f, " ESCAPE '{SHOWN_ESCAPE}'") } else { Ok(()) }
    }
}
