//! One index for all wildcard patterns of a source: a trie on words with `one word` and `any number
//! of words` edges.
//!
//! Independent of what patterns lead to: each node that ends one keeps one number for its owner,
//! the head of a list, say. Which characters part words and which words are wildcards is a
//! [`Syntax`], so that dialects with other signs share the index.

use crate::foundation::slab::Slab;
use crate::foundation::table::Table;
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use std::hash::BuildHasher;

/// No node, no list: what a link or a head holds that leads nowhere.
pub(crate) const NONE: u32 = u32::MAX;

/// How nodes hang on their parents that do not hang by a literal word.
const BY_ONE: u32 = u32::MAX - 1;
const BY_MANY: u32 = u32::MAX - 2;

/// The node where every pattern begins.
const ROOT: u32 = 0;

/// How a dialect writes patterns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Syntax {
    /// Parts words.
    pub(crate) separator: char,
    /// Stands for exactly one word.
    pub(crate) one: &'static str,
    /// Stands for any number of words, also none.
    pub(crate) many: Option<&'static str>,
    /// Stands for one or more words.
    pub(crate) some: Option<&'static str>,
}

/// The patterns of topic exchanges.
pub(crate) const TOPIC: Syntax = Syntax { separator: '.', one: "*", many: Some("#"), some: None };

/// One word of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word<'a> {
    /// Itself.
    Literal(&'a str),
    /// Any one word.
    One,
    /// Any number of words.
    Many,
}

impl Syntax {
    /// The words of a key. An empty key has none; `a..b` has an empty one in the middle.
    pub(crate) fn words<'a>(&self, key: &'a str) -> impl Iterator<Item = &'a str> {
        let empty = key.is_empty();
        key.split(self.separator).filter(move |_| !empty)
    }

    /// The words of a pattern.
    pub(crate) fn pattern<'a>(&self, pattern: &'a str) -> impl Iterator<Item = Word<'a>> {
        let Syntax { one, many, some, .. } = *self;
        let words = self.words(pattern).map(move |word| match word {
            word if word == one => [Some(Word::One), None],
            word if many == Some(word) => [Some(Word::Many), None],
            word if some == Some(word) => [Some(Word::One), Some(Word::Many)],
            word => [Some(Word::Literal(word)), None],
        });
        words.flatten().flatten()
    }

    /// Whether a pattern matches a key. For a pattern by itself; [`Patterns`] compares many at once.
    pub(crate) fn matches(&self, pattern: &str, key: &str) -> bool {
        let pattern: Vec<Word<'_>> = self.pattern(pattern).collect();
        let key: Vec<&str> = self.words(key).collect();
        let (mut at, mut word) = (0, 0);
        // The last `any number` passed, and how much of the key it takes so far.
        let mut many: Option<(usize, usize)> = None;
        while word < key.len() {
            match pattern.get(at) {
                Some(Word::Many) => {
                    many = Some((at, word));
                    at += 1;
                }
                Some(Word::One) => (at, word) = (at + 1, word + 1),
                Some(Word::Literal(text)) if *text == key[word] => {
                    (at, word) = (at + 1, word + 1);
                }
                _ => match many {
                    Some((many_at, taken)) => {
                        many = Some((many_at, taken + 1));
                        (at, word) = (many_at + 1, taken + 1);
                    }
                    None => return false,
                },
            }
        }
        pattern[at..].iter().all(|rest| *rest == Word::Many)
    }
}

/// A node of the trie.
#[derive(Clone, Debug)]
struct Node {
    parent: u32,
    /// The literal word it hangs on its parent by, or `BY_ONE`, or `BY_MANY`.
    by: u32,
    one: u32,
    many: u32,
    /// Children of all sorts.
    children: u32,
    /// The owner's number; `NONE` where no pattern ends here.
    head: u32,
}

/// A pattern's last node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeId(u32);

/// The index.
#[derive(Debug)]
pub(crate) struct Patterns {
    nodes: Slab<Node>,
    /// The children that hang by a literal word, found by parent and word.
    edges: Table<u32>,
    words: Words,
    hasher: FixedState,
    /// How often a node was looked at or changed.
    #[cfg(test)]
    pub(super) steps: std::cell::Cell<usize>,
}

/// What a match needs and the next one can use again.
#[derive(Debug, Default)]
pub(crate) struct MatchScratch {
    current: Vec<u32>,
    next: Vec<u32>,
    /// Heads of patterns that match whatever follows.
    ended: Vec<u32>,
    /// The `many` nodes reached so far; each stays reached to the end of the key.
    reached: HashTable<u32>,
}

impl Patterns {
    /// An empty index.
    pub(crate) fn new(seed: u64) -> Patterns {
        let root =
            Node { parent: NONE, by: BY_ONE, one: NONE, many: NONE, children: 0, head: NONE };
        let mut nodes = Slab::default();
        nodes.insert(root);
        Patterns {
            nodes,
            edges: Table::default(),
            words: Words::default(),
            hasher: FixedState::with_seed(seed),
            #[cfg(test)]
            steps: std::cell::Cell::new(0),
        }
    }

    #[inline]
    fn node(&self, id: u32) -> &Node {
        #[cfg(test)]
        self.steps.set(self.steps.get() + 1);
        self.nodes.get(id).expect("nodes with children or a head stay")
    }

    #[inline]
    fn node_mut(&mut self, id: u32) -> &mut Node {
        #[cfg(test)]
        self.steps.set(self.steps.get() + 1);
        self.nodes.get_mut(id).expect("nodes with children or a head stay")
    }

    /// The node where `pattern` ends, made where it is missing. A node that is not given a head is
    /// to be handed to [`Patterns::set_head`] with [`NONE`], or it stays.
    pub(crate) fn insert<'a>(&mut self, pattern: impl Iterator<Item = Word<'a>>) -> NodeId {
        let mut node = ROOT;
        for word in pattern {
            node = self.child(node, word).unwrap_or_else(|| self.grow(node, word));
        }
        NodeId(node)
    }

    /// The owner's number at a node.
    pub(crate) fn head(&self, node: NodeId) -> u32 {
        self.node(node.0).head
    }

    /// Sets the owner's number at a node. With [`NONE`], the node goes, and every one above it that
    /// then leads nowhere.
    pub(crate) fn set_head(&mut self, node: NodeId, head: u32) {
        self.node_mut(node.0).head = head;
        let mut node = node.0;
        while node != ROOT {
            let Node { parent, children, head, .. } = *self.node(node);
            if children > 0 || head != NONE {
                break;
            }
            self.cut(node);
            node = parent;
        }
    }

    /// Calls `visit` with the head of each pattern that matches the key, once each; returns how many nodes
    /// were looked at.
    ///
    /// The nodes that the words so far lead to are kept as a set and carried on word by word. A node
    /// has one parent and one way to be reached from it, except a `many` node, which also is reached
    /// from itself and therefore is counted in once; so no node is looked at twice for a word, and
    /// however many `#` a pattern chains, the work is at most words times nodes that are in the set at
    /// once. How many these can be is bounded where patterns come in ([`super::forms`]).
    pub(crate) fn matches<'k>(
        &self,
        key: impl Iterator<Item = &'k str>,
        scratch: &mut MatchScratch,
        mut visit: impl FnMut(u32),
    ) -> usize {
        let MatchScratch { current, next, ended, reached } = scratch;
        current.clear();
        ended.clear();
        reached.clear();
        current.push(ROOT);
        self.reach_many(current, reached, ended);
        let mut visited = current.len();
        for word in key {
            let symbol = self.words.find(&self.hasher, word);
            next.clear();
            for &id in current.iter() {
                let node = self.node(id);
                if let Some(child) = symbol.and_then(|symbol| self.edge(id, symbol)) {
                    next.push(child);
                }
                if node.one != NONE {
                    next.push(node.one);
                }
                if node.by == BY_MANY {
                    next.push(id);
                }
            }
            self.reach_many(next, reached, ended);
            std::mem::swap(current, next);
            visited += current.len();
            if current.is_empty() {
                break;
            }
        }
        for &id in current.iter() {
            let head = self.node(id).head;
            if head != NONE {
                visit(head);
            }
        }
        ended.iter().copied().for_each(visit);
        visited + ended.len()
    }

    /// Adds to `nodes` what `many` edges lead to without taking a word. Where nothing follows, the rest of
    /// the key matches, whatever it is.
    fn reach_many(&self, nodes: &mut Vec<u32>, reached: &mut HashTable<u32>, ended: &mut Vec<u32>) {
        let mut at = 0;
        while at < nodes.len() {
            let many = self.node(nodes[at]).many;
            if many != NONE {
                let hash = |id: &u32| self.hasher.hash_one(*id);
                let entry = reached.entry(hash(&many), |id| *id == many, hash);
                if let Entry::Vacant(entry) = entry {
                    entry.insert(many);
                    match *self.node(many) {
                        Node { children: 0, head, .. } if head != NONE => ended.push(head),
                        _ => nodes.push(many),
                    }
                }
            }
            at += 1;
        }
    }

    fn child(&self, parent: u32, word: Word<'_>) -> Option<u32> {
        let node = self.node(parent);
        match word {
            Word::One => (node.one != NONE).then_some(node.one),
            Word::Many => (node.many != NONE).then_some(node.many),
            Word::Literal(text) => self.edge(parent, self.words.find(&self.hasher, text)?),
        }
    }

    #[inline]
    fn edge(&self, parent: u32, symbol: u32) -> Option<u32> {
        let hash = self.hasher.hash_one((parent, symbol));
        let found = self.edges.find(hash, |&child| {
            let child = self.node(child);
            child.parent == parent && child.by == symbol
        });
        found.copied()
    }

    fn grow(&mut self, parent: u32, word: Word<'_>) -> u32 {
        let by = match word {
            Word::One => BY_ONE,
            Word::Many => BY_MANY,
            Word::Literal(text) => self.words.acquire(&self.hasher, text),
        };
        let node = Node { parent, by, one: NONE, many: NONE, children: 0, head: NONE };
        let id = self.nodes.insert(node);
        let above = self.node_mut(parent);
        above.children += 1;
        match word {
            Word::One => above.one = id,
            Word::Many => above.many = id,
            Word::Literal(_) => {
                let (nodes, hasher) = (&self.nodes, &self.hasher);
                self.edges.insert_unique(hasher.hash_one((parent, by)), id, |&child| {
                    nodes.get(child).map_or(0, |child| hasher.hash_one((child.parent, child.by)))
                });
            }
        }
        id
    }

    /// Takes a node without children off its parent.
    fn cut(&mut self, id: u32) {
        let Node { parent, by, .. } = *self.node(id);
        let above = self.node_mut(parent);
        above.children -= 1;
        match by {
            BY_ONE => above.one = NONE,
            BY_MANY => above.many = NONE,
            symbol => {
                let hash = self.hasher.hash_one((parent, symbol));
                self.edges.remove(hash, |&child| child == id);
                self.words.release(&self.hasher, symbol);
            }
        }
        self.nodes.remove(id);
    }

    /// Nodes and distinct words in use, to show that nothing is left behind.
    #[cfg(test)]
    pub(super) fn size(&self) -> (usize, usize, usize) {
        (self.nodes.len(), self.edges.len(), self.words.table.len())
    }
}

/// The distinct literal words, each stored once with a count of the edges that carry it.
#[derive(Debug, Default)]
struct Words {
    slots: Slab<(Box<str>, u32)>,
    table: Table<u32>,
}

impl Words {
    #[inline]
    fn find(&self, hasher: &FixedState, text: &str) -> Option<u32> {
        let hash = hasher.hash_one(text);
        self.table.find(hash, |&symbol| self.text(symbol) == text).copied()
    }

    fn text(&self, symbol: u32) -> &str {
        self.slots.get(symbol).map_or("", |(text, _)| text)
    }

    fn acquire(&mut self, hasher: &FixedState, text: &str) -> u32 {
        if let Some(symbol) = self.find(hasher, text) {
            if let Some((_, uses)) = self.slots.get_mut(symbol) {
                *uses += 1;
            }
            return symbol;
        }
        let symbol = self.slots.insert((Box::from(text), 1));
        let slots = &self.slots;
        self.table.insert_unique(hasher.hash_one(text), symbol, |&other| {
            hasher.hash_one(slots.get(other).map_or("", |(text, _)| text))
        });
        symbol
    }

    fn release(&mut self, hasher: &FixedState, symbol: u32) {
        let Some((text, uses)) = self.slots.get_mut(symbol) else { return };
        *uses -= 1;
        if *uses > 0 {
            return;
        }
        let hash = hasher.hash_one(&**text);
        self.table.remove(hash, |&other| other == symbol);
        self.slots.remove(symbol);
    }
}
