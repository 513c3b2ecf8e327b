//! Subjects as keys in an order in which all below a word lie together, and patterns that find their way
//! through it.

/// What parts the words of a subject in its key: no byte comes before it.
const SEPARATOR: u8 = 0;
/// The byte behind that.
const BEHIND: u8 = 1;
/// What words begin with that a wildcard in their place does not stand for.
const HIDDEN: u8 = b'$';

/// A subject, its words parted by [`SEPARATOR`].
pub(crate) type Key = Box<[u8]>;

/// The key of a subject; `None`: it cannot have one.
pub(crate) fn key_of(subject: &str) -> Option<Key> {
    let bytes = subject.bytes().map(|byte| if byte == b'.' { SEPARATOR } else { byte });
    (!subject.as_bytes().contains(&SEPARATOR)).then(|| bytes.collect())
}

/// The subject of a key.
pub(crate) fn subject_of(key: &[u8]) -> String {
    let bytes = key.iter().map(|byte| if *byte == SEPARATOR { b'.' } else { *byte });
    String::from_utf8(bytes.collect()).unwrap_or_default()
}

/// The first key that may follow another one.
pub(super) fn next_after(key: &[u8]) -> Vec<u8> {
    [key, &[SEPARATOR]].concat()
}

/// Which subjects are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern(Vec<Word>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    One(Box<[u8]>),
    Any,
    /// As many words as follow, or none.
    Rest,
}

/// What a pattern says of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Look {
    Match,
    /// No key before this one matches.
    Seek(Vec<u8>),
    /// No later one matches.
    End,
}

impl Pattern {
    /// That of a binding's key; `None`: it has `#` elsewhere than at its end.
    pub(super) fn of(key: &str) -> Option<Pattern> {
        let words = key.split('.').map(|word| match word {
            "*" => Word::Any,
            "#" => Word::Rest,
            word => Word::One(word.as_bytes().into()),
        });
        let words: Vec<Word> = words.collect();
        let first_rest = words.iter().position(|word| *word == Word::Rest);
        first_rest.is_none_or(|at| at + 1 == words.len()).then_some(Pattern(words))
    }

    /// Where its keys begin.
    pub(super) fn first(&self) -> Vec<u8> {
        let words = self.0.iter().map_while(|word| match word {
            Word::One(word) => Some(&**word),
            Word::Any | Word::Rest => None,
        });
        words.collect::<Vec<_>>().join(&SEPARATOR)
    }

    pub(super) fn look(&self, key: &[u8]) -> Look {
        let mut words = key.split(|byte| *byte == SEPARATOR);
        let mut begin = 0;
        for expected in &self.0 {
            let is_hidden = begin == 0 && key.first() == Some(&HIDDEN);
            if is_hidden && !matches!(expected, Word::One(_)) {
                return Look::Seek(vec![HIDDEN + 1]);
            }
            if *expected == Word::Rest {
                return Look::Match;
            }
            let Some(word) = words.next() else { return Look::Seek(next_after(key)) };
            if let Word::One(wanted) = expected {
                match word.cmp(wanted) {
                    std::cmp::Ordering::Equal => {}
                    std::cmp::Ordering::Less => {
                        return Look::Seek([&key[..begin], wanted].concat());
                    }
                    std::cmp::Ordering::Greater => return behind_all_in(&key[..begin]),
                }
            }
            begin += word.len() + 1;
        }
        if words.next().is_none() { Look::Match } else { behind_all_in(&key[..begin]) }
    }
}

/// Passes over all keys that begin with these words, each of which has its separator behind it.
fn behind_all_in(words: &[u8]) -> Look {
    match words.split_last() {
        Some((_, words)) => Look::Seek([words, &[BEHIND]].concat()),
        None => Look::End,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The subjects that a pattern finds, and how many keys it has looked at.
    fn find(all: &BTreeSet<Key>, pattern: &str) -> (Vec<String>, usize) {
        let pattern = Pattern::of(pattern).unwrap();
        let (mut found, mut looks) = (Vec::new(), 0);
        let mut next = pattern.first();
        while let Some(key) = all
            .range::<[u8], _>((std::ops::Bound::Included(&next[..]), std::ops::Bound::Unbounded))
            .next()
        {
            looks += 1;
            match pattern.look(key) {
                Look::Match => {
                    found.push(subject_of(key));
                    next = next_after(key);
                }
                Look::Seek(key) => {
                    assert!(key > next, "{key:?} is not ahead of {next:?}");
                    next = key;
                }
                Look::End => break,
            }
        }
        (found, looks)
    }

    fn keys<'a>(subjects: impl IntoIterator<Item = &'a str>) -> BTreeSet<Key> {
        subjects.into_iter().map(|subject| key_of(subject).unwrap()).collect()
    }

    #[test]
    fn patterns_find_what_they_match() {
        let all = keys([
            "", "a", "a.", "a.b", "a.b.c", "a.b.c.d", "a.x", "a-b", "a!.b", "b", "b.b", "b.c.b",
            "$s", "$s.b", ".b", "ab.b", "ä.b", "a.*", "%.b",
        ]);
        for (pattern, expected) in [
            ("a", &["a"][..]),
            ("a.b", &["a.b"]),
            ("a.#", &["a", "a.", "a.*", "a.b", "a.b.c", "a.b.c.d", "a.x"]),
            ("a.*", &["a.", "a.*", "a.b", "a.x"]),
            ("*.b", &[".b", "%.b", "a.b", "a!.b", "ab.b", "b.b", "ä.b"]),
            ("*", &["", "a", "a-b", "b"]),
            ("*.*.b", &["b.c.b"]),
            ("*.b.#", &[".b", "%.b", "a.b", "a.b.c", "a.b.c.d", "a!.b", "ab.b", "b.b", "ä.b"]),
            ("$s.#", &["$s", "$s.b"]),
            ("$s.*", &["$s.b"]),
            ("x.#", &[]),
            ("a.b.*.d", &["a.b.c.d"]),
            ("a.b.c.d.e", &[]),
        ] {
            assert_eq!(find(&all, pattern).0, expected, "{pattern}");
        }
        let everything = find(&all, "#").0;
        assert_eq!(everything.len(), all.len() - 2, "all but those that begin with $");
    }

    #[test]
    fn what_cannot_match_is_passed_over() {
        let subjects: Vec<String> =
            (0..1_000).map(|at| format!("{}.{}.{}", at / 100, at / 10 % 10, at % 10)).collect();
        let all = keys(subjects.iter().map(String::as_str));
        for (pattern, count, most) in [
            ("5.#", 100, 101),
            ("5.5.5", 1, 4),
            ("5.*.5", 10, 32),
            ("*.5.#", 100, 132),
            ("*.*.5", 100, 312),
            ("*", 0, 22),
        ] {
            let (found, looks) = find(&all, pattern);
            assert_eq!(found.len(), count, "{pattern}");
            assert!(looks <= most, "{pattern} has looked at {looks} keys");
        }
    }

    #[test]
    fn patterns_with_a_rest_inside_are_none() {
        assert!(Pattern::of("a.#.b").is_none() && Pattern::of("#.#").is_none());
        assert!(key_of("a\0b").is_none());
    }
}
