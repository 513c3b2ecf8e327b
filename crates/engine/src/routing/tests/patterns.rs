//! The index against a naive matcher, what a match costs, and what an unbind leaves behind.

use super::super::patterns::{MatchScratch, NONE, Patterns, Syntax, TOPIC, Word};

/// Deterministic random numbers (xorshift), so that a failure can be repeated from its seed.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 11) % bound as u64).unwrap()
    }

    pub(super) fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    /// Up to `most` words of `from`, joined by dots.
    pub(super) fn words(&mut self, from: &[&str], most: usize) -> String {
        let count = self.below(most + 1);
        (0..count).map(|_| self.pick(from)).collect::<Vec<_>>().join(".")
    }
}

/// The definition of a match, by recursion on the words; says nothing about cost.
pub(super) fn naive(pattern: &[Word<'_>], key: &[&str]) -> bool {
    match (pattern.split_first(), key.split_first()) {
        (None, None) => true,
        (None, Some(_)) => false,
        (Some((Word::Many, rest)), _) => (0..=key.len()).any(|taken| naive(rest, &key[taken..])),
        (Some(_), None) => false,
        (Some((Word::One, rest)), Some((_, words))) => naive(rest, words),
        (Some((Word::Literal(text), rest)), Some((word, words))) => {
            text == word && naive(rest, words)
        }
    }
}

pub(super) fn naive_topic(pattern: &str, key: &str) -> bool {
    let pattern: Vec<_> = TOPIC.pattern(pattern).collect();
    let key: Vec<_> = TOPIC.words(key).collect();
    naive(&pattern, &key)
}

fn add(index: &mut Patterns, pattern: &str, head: u32) {
    let node = index.insert(TOPIC.pattern(pattern));
    index.set_head(node, head);
}

fn remove(index: &mut Patterns, pattern: &str) {
    let node = index.insert(TOPIC.pattern(pattern));
    index.set_head(node, NONE);
}

/// The matching heads, and how many nodes were looked at.
fn matching(index: &Patterns, key: &str) -> (Vec<u32>, usize) {
    let mut scratch = MatchScratch::default();
    let mut found = Vec::new();
    let visited = index.matches(TOPIC.words(key), &mut scratch, |head| found.push(head));
    found.sort_unstable();
    (found, visited)
}

#[test]
fn one_pattern_one_key() {
    let table = [
        ("a", "a", true),
        ("a", "b", false),
        ("a", "a.a", false),
        ("a.b", "a.b", true),
        ("a.b", "ab", false),
        ("*", "a", true),
        ("*", "", false),
        ("*", "a.b", false),
        ("*.*", "a.b", true),
        ("*.*", ".", true),
        ("*.b", "a.b", true),
        ("a.*", "a.", true),
        ("a.*", "a", false),
        ("#", "", true),
        ("#", "a", true),
        ("#", "a.b.c", true),
        ("", "", true),
        ("", "a", false),
        ("a.#", "a", true),
        ("a.#", "a.b.c", true),
        ("a.#", "b", false),
        ("#.a", "a", true),
        ("#.a", "b.a", true),
        ("#.a", "a.b", false),
        ("#.a", "a.b.a", true),
        ("a.#.b", "a.b", true),
        ("a.#.b", "a.x.y.b", true),
        ("a.#.b", "a.x.y", false),
        ("#.#", "", true),
        ("#.*", "", false),
        ("#.*", "a", true),
        ("*.#", "", false),
        ("*.#", "a.b", true),
        ("#.*.#.*", "a", false),
        ("#.*.#.*", "a.b", true),
        ("a..b", "a..b", true),
        ("a.*.b", "a..b", true),
        ("a..b", "a.b", false),
        ("*a", "xa", false),
        ("*a", "*a", true),
        ("##", "a", false),
        ("größe.*", "größe.x", true),
    ];
    for (pattern, key, expected) in table {
        let mut index = Patterns::new(1);
        add(&mut index, pattern, 5);
        let found = matching(&index, key).0 == [5];
        assert_eq!(found, expected, "{pattern:?} on {key:?}");
        assert_eq!(naive_topic(pattern, key), expected, "naive: {pattern:?} on {key:?}");
    }
}

#[test]
fn other_dialects_share_the_index() {
    // A tail wildcard for at least one word, as some dialects have it.
    let slashes = Syntax { separator: '/', one: "+", many: Some("#"), some: None };
    let mut index = Patterns::new(1);
    for (head, pattern) in ["a/+", "a/#", "+/b", "a.b"].into_iter().enumerate() {
        let node = index.insert(slashes.pattern(pattern));
        index.set_head(node, u32::try_from(head).unwrap());
    }
    let node = index.insert([Word::Literal("a"), Word::One, Word::Many].into_iter());
    index.set_head(node, 9);
    let table: [(&str, &[u32]); 5] =
        [("a", &[1]), ("a/b", &[0, 1, 2, 9]), ("a/b/c", &[1, 9]), ("a.b", &[3]), ("x/b", &[2])];
    for (key, expected) in table {
        let mut scratch = MatchScratch::default();
        let mut found = Vec::new();
        index.matches(slashes.words(key), &mut scratch, |head| found.push(head));
        found.sort_unstable();
        assert_eq!(found, expected, "{key}");
    }
}

/// Random patterns come and go; at each step the index finds what the definition says, each once.
#[test]
fn agrees_with_the_definition() {
    const WORDS: [&str; 6] = ["a", "b", "", "c", "*", "#"];
    for seed in 0..25 {
        let mut random = Random::new(seed);
        let mut index = Patterns::new(seed);
        let mut present: Vec<(String, u32)> = Vec::new();
        for step in 0..100 {
            let pattern = random.words(&WORDS, 6);
            match present.iter().position(|(other, _)| *other == pattern) {
                Some(at) => {
                    remove(&mut index, &pattern);
                    present.swap_remove(at);
                }
                None => {
                    add(&mut index, &pattern, step);
                    present.push((pattern, step));
                }
            }
            for _ in 0..2 {
                let key = random.words(&WORDS[..4], 7);
                let mut expected: Vec<u32> = present
                    .iter()
                    .filter(|(pattern, _)| naive_topic(pattern, &key))
                    .map(|&(_, head)| head)
                    .collect();
                expected.sort_unstable();
                let (found, _) = matching(&index, &key);
                assert_eq!(found, expected, "seed {seed} step {step} key {key:?}: {present:?}");
            }
        }
        for (pattern, _) in present {
            remove(&mut index, &pattern);
        }
        assert_eq!(index.size(), (1, 0, 0), "seed {seed}");
    }
}

#[test]
fn removal_keeps_what_others_need() {
    let mut index = Patterns::new(1);
    for (head, pattern) in ["a.b.c", "a.b", "a.*.#", "#"].into_iter().enumerate() {
        add(&mut index, pattern, u32::try_from(head).unwrap());
    }
    assert_eq!(index.size(), (7, 3, 3));
    let steps = [
        ("a.b", vec![0, 2, 3], (7, 3, 3)),
        ("a.b.c", vec![2, 3], (5, 1, 1)),
        ("#", vec![2], (4, 1, 1)),
        ("a.*.#", vec![], (1, 0, 0)),
    ];
    for (pattern, expected, size) in steps {
        remove(&mut index, pattern);
        assert_eq!(matching(&index, "a.b.c").0, expected, "without {pattern}");
        assert_eq!(index.size(), size, "without {pattern}");
    }
}

#[test]
fn the_cost_of_a_match_does_not_grow_with_patterns_that_do_not_match() {
    let key = "stock.eu.widgets.42";
    let mut costs = Vec::new();
    for others in [0_u32, 1_000, 20_000] {
        let mut index = Patterns::new(1);
        for (head, pattern) in ["stock.#", "stock.*.widgets.*", key].into_iter().enumerate() {
            add(&mut index, pattern, u32::try_from(head).unwrap());
        }
        for other in 0..others {
            let pattern = match other % 4 {
                0 => format!("stock.eu.widgets.x{other}"),
                1 => format!("stock.eu.x{other}.#"),
                2 => format!("x{other}.*.widgets.#"),
                _ => format!("stock.*.widgets.*.x{other}"),
            };
            add(&mut index, &pattern, 100 + other);
        }
        let (found, visited) = matching(&index, key);
        assert_eq!(found, [0, 1, 2]);
        costs.push(visited);
    }
    assert_eq!(costs[0], costs[1]);
    assert_eq!(costs[0], costs[2]);
}

#[test]
fn chained_wildcards_cost_at_most_nodes_times_words() {
    let many = 60;
    let patterns = [
        vec!["#"; many].join("."),
        vec!["#.a"; many].join("."),
        vec!["#.*"; many].join("."),
        vec!["#.a"; many].join(".") + ".b",
    ];
    let key = vec!["a"; 128].join(".");
    let mut index = Patterns::new(1);
    for (head, pattern) in patterns.iter().enumerate() {
        add(&mut index, pattern, u32::try_from(head).unwrap());
    }
    let (found, visited) = matching(&index, &key);
    assert_eq!(found, [0, 1, 2]);
    let bound = index.size().0 * 129;
    assert!(visited <= bound, "{visited} of {bound}");
}
