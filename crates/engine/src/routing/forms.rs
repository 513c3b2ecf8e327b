//! Bounds how many nodes of an index of patterns one key can reach, by what the patterns look like.
//!
//! Patterns have the same *form* if they differ in literal words only, as `a.*.b` and `c.*.d` do. Of all
//! patterns of one form, a key reaches one at most, unless an `any number of words` inside lets literal
//! words lie in several places. So it is the number of different beginnings of forms that bounds a match,
//! not the number of patterns. Here they are counted for one owner of patterns. Patterns with few wildcards
//! are always taken: all their forms together are few.

use super::patterns::Word;
use crate::foundation::slab::Slab;
use crate::foundation::table::Table;
use foldhash::fast::FixedState;
use std::hash::BuildHasher;

/// What a state behind an inner `any number of words` counts for: it may be looked at again for each word
/// of a key.
const REVISITED: u32 = 32;
/// Words of patterns that may have a few wildcards and are always taken, and these wildcards: without and
/// with an inner `any number of words`.
const FEW_WORDS: usize = 16;
const FEW_WILDCARDS: usize = 3;
const FEW_WITH_MANY: usize = 2;
/// Words of patterns with a single wildcard that are always taken.
const ONE_WILDCARD_WORDS: usize = 128;

/// The node where every form begins.
const ROOT: u32 = u32::MAX;

/// How a word of a pattern counts: two patterns with equal signs up to a word share a state there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sign {
    kind: Kind,
    states: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Literal,
    /// Behind several `any number of words` different literal words are reached at once.
    Word(u64),
    One,
    Many,
}

#[derive(Debug)]
struct Node {
    above: u32,
    sign: Sign,
    /// Patterns whose forms begin so.
    uses: u32,
}

/// The forms of one owner's patterns.
#[derive(Debug)]
pub(crate) struct Forms {
    nodes: Slab<Node>,
    edges: Table<u32>,
    hasher: FixedState,
    states: u64,
}

/// The signs of a pattern that counts; `None`: it has so few wildcards that it is always taken.
pub(crate) fn signs<'a>(pattern: impl Iterator<Item = Word<'a>>, seed: u64) -> Option<Vec<Sign>> {
    let words: Vec<Word<'a>> = pattern.collect();
    let (last, before) = words.split_last()?;
    let count = |words: &[Word<'_>], kind: fn(&Word<'_>) -> bool| {
        words.iter().filter(|word| kind(word)).count()
    };
    let inner_many = count(before, |word| *word == Word::Many);
    let wildcards =
        count(&words, |word| !matches!(word, Word::Literal(_))) - usize::from(*last == Word::Many);
    let few = if inner_many > 0 { FEW_WITH_MANY } else { FEW_WILDCARDS };
    let is_simple = wildcards == 0
        || (words.len() <= FEW_WORDS && wildcards <= few)
        || (words.len() <= ONE_WILDCARD_WORDS && wildcards == 1 && inner_many == 0);
    if is_simple {
        return None;
    }
    let hasher = FixedState::with_seed(seed);
    let (mut signs, mut many_passed) = (Vec::with_capacity(words.len()), 0);
    for (at, word) in words.iter().enumerate() {
        let is_inner_many = *word == Word::Many && at + 1 < words.len();
        many_passed += usize::from(is_inner_many);
        let kind = match word {
            Word::One => Kind::One,
            Word::Many => Kind::Many,
            Word::Literal(text) if many_passed > 0 && inner_many > 1 => {
                Kind::Word(hasher.hash_one(text))
            }
            Word::Literal(_) => Kind::Literal,
        };
        let states = if many_passed > 0 { REVISITED } else { 1 };
        signs.push(Sign { kind, states });
    }
    Some(signs)
}

impl Forms {
    pub(crate) fn new(seed: u64) -> Forms {
        Forms {
            nodes: Slab::default(),
            edges: Table::default(),
            hasher: FixedState::with_seed(seed),
            states: 0,
        }
    }

    /// Whether there are no patterns that count.
    pub(crate) fn is_empty(&self) -> bool {
        self.states == 0
    }

    /// Takes a pattern in if there are then no more than `most` states.
    pub(crate) fn admit(&mut self, signs: &[Sign], most: u64) -> bool {
        let (mut at, mut known) = (ROOT, 0);
        while let Some(sign) = signs.get(known)
            && let Some(next) = self.next(at, *sign)
        {
            (at, known) = (next, known + 1);
        }
        let further: u64 = signs[known..].iter().map(|sign| u64::from(sign.states)).sum();
        if further > 0 && self.states + further > most {
            return false;
        }
        self.states += further;
        let mut above = ROOT;
        for sign in signs {
            let node = self.next(above, *sign).unwrap_or_else(|| self.grow(above, *sign));
            self.nodes[node].uses += 1;
            above = node;
        }
        true
    }

    /// Takes a pattern out that was taken in.
    pub(crate) fn remove(&mut self, signs: &[Sign]) {
        let (mut path, mut at) = (Vec::with_capacity(signs.len()), ROOT);
        for sign in signs {
            let Some(next) = self.next(at, *sign) else { return };
            path.push(next);
            at = next;
        }
        for id in path.into_iter().rev() {
            let node = &mut self.nodes[id];
            node.uses -= 1;
            if node.uses == 0 {
                let Node { above, sign, .. } = *node;
                self.edges.remove(edge(&self.hasher, above, sign), |&other| other == id);
                self.nodes.remove(id);
                self.states -= u64::from(sign.states);
            }
        }
    }

    fn next(&self, above: u32, sign: Sign) -> Option<u32> {
        let is_it = |id: &u32| {
            self.nodes.get(*id).is_some_and(|node| node.above == above && node.sign == sign)
        };
        self.edges.find(edge(&self.hasher, above, sign), is_it).copied()
    }

    fn grow(&mut self, above: u32, sign: Sign) -> u32 {
        let id = self.nodes.insert(Node { above, sign, uses: 0 });
        let (nodes, hasher) = (&self.nodes, &self.hasher);
        self.edges.insert_unique(edge(hasher, above, sign), id, |&other| {
            nodes.get(other).map_or(0, |node| edge(hasher, node.above, node.sign))
        });
        id
    }
}

fn edge(hasher: &FixedState, above: u32, sign: Sign) -> u64 {
    hasher.hash_one((above, sign.kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::patterns::TOPIC;

    fn states(patterns: &[&str]) -> u64 {
        let mut forms = Forms::new(1);
        let each = || patterns.iter().filter_map(|pattern| signs(TOPIC.pattern(pattern), 1));
        for signs in each() {
            assert!(forms.admit(&signs, u64::MAX));
        }
        let states = forms.states;
        for signs in each() {
            forms.remove(&signs);
        }
        assert!(forms.is_empty());
        assert_eq!((forms.nodes.len(), forms.edges.len()), (0, 0));
        states
    }

    #[test]
    fn only_what_differs_in_wildcards_counts_anew() {
        for (patterns, expected) in [
            (&["a.b.c", "a.*.c", "*.*.*", "a.*.*.#", "#", "#.a", "#.a.#.b"][..], 0),
            (&["*.*.*.*"], 4),
            (&["*.*.*.*.a", "*.*.*.*.b", "*.*.*.*.c.d"], 6),
            (&["*.a.*.*.*", "*.a.*.*.b.*"], 7),
            (&["#.a.*.*"], 4 * 32),
            (&["#.a.*.*", "#.b.*.*"], 4 * 32),
            (&["#.a.#.b.#.c", "#.d.#.b.#.c"], 11 * 32),
            (&["a.*.*.*.*.#", "b.*.*.*.*.#"], 6),
        ] {
            assert_eq!(states(patterns), expected, "{patterns:?}");
        }
    }

    #[test]
    fn a_pattern_that_would_exceed_the_limit_changes_nothing() {
        let mut forms = Forms::new(1);
        let signs = |pattern| signs(TOPIC.pattern(pattern), 1).expect("it counts");
        assert!(forms.admit(&signs("*.*.*.*"), 6));
        assert!(!forms.admit(&signs("*.*.*.*.a.b.c"), 6));
        assert!(forms.admit(&signs("*.*.*.*.a.b"), 6));
        assert!(forms.admit(&signs("*.*.*.*.c.d"), 6), "of a form that is there");
        forms.remove(&signs("*.*.*.*.a.b"));
        forms.remove(&signs("*.*.*.*.c.d"));
        assert_eq!(forms.states, 4);
    }
}
