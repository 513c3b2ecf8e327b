//! Which of many filters select a message: those that ask for one value of a property are found by its hash.

use super::{Filter, Value};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::hash::{BuildHasher, Hasher};

/// What a look at a property, or a filter, costs beside its terms.
const LOOK_STEPS: usize = 1;

/// Filters, each with what it stands for. Finding those that select a message takes one look at each
/// property that some filter compares for equality, and an evaluation of each other filter.
#[derive(Debug)]
pub(crate) struct FilterSet<T> {
    hasher: FixedState,
    by_property: Vec<ByProperty<T>>,
    others: Bucket<T>,
}

/// Filters that nothing tells apart but their evaluation.
#[derive(Debug)]
struct Bucket<T> {
    members: Vec<(Filter, T)>,
    terms: usize,
}

/// Filters that select only messages with a certain value of one property, by the hash of that value.
#[derive(Debug)]
struct ByProperty<T> {
    name: Box<str>,
    buckets: HashMap<u64, Bucket<T>, FixedState>,
}

impl<T> Default for Bucket<T> {
    fn default() -> Bucket<T> {
        Bucket { members: Vec::new(), terms: 0 }
    }
}

fn steps_of(filter: &Filter) -> usize {
    filter.selector().terms() + LOOK_STEPS
}

impl<T: Copy + PartialEq> Bucket<T> {
    fn add(&mut self, filter: &Filter, of: T) {
        self.terms += steps_of(filter);
        self.members.push((filter.clone(), of));
    }

    fn remove(&mut self, of: T) {
        let Some(at) = self.members.iter().position(|(_, other)| *other == of) else { return };
        let (filter, _) = self.members.swap_remove(at);
        self.terms -= steps_of(&filter);
    }

    /// Finds those that select the message; returns the terms evaluated.
    fn find<'m>(&self, property: &impl Fn(&str) -> Value<'m>, found: &mut Vec<T>) -> usize {
        let selecting = self.members.iter().filter(|(it, _)| it.selector().matches(property));
        found.extend(selecting.map(|(_, of)| *of));
        self.terms
    }
}

impl<T: Copy + PartialEq> Bucket<T> {
    /// The same, of filters that ask for one value of a property, which has this one.
    fn find_with<'m>(
        &self,
        value: Value<'m>,
        property: &impl Fn(&str) -> Value<'m>,
        found: &mut Vec<T>,
    ) -> usize {
        let selects = |filter: &Filter| {
            let selector = filter.selector();
            selector.selects_by_value(value).unwrap_or_else(|| selector.matches(property))
        };
        found.extend(self.members.iter().filter(|(it, _)| selects(it)).map(|(_, of)| *of));
        self.terms
    }
}

impl<T: Copy + PartialEq> FilterSet<T> {
    pub(crate) fn new(seed: u64) -> FilterSet<T> {
        let hasher = FixedState::with_seed(seed);
        FilterSet { hasher, by_property: Vec::new(), others: Bucket::default() }
    }

    fn hash(&self, value: Value<'_>) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        value.hash_as_equal(&mut hasher);
        hasher.finish()
    }

    /// The place of a filter that asks for one value of a property: the property's and the value's hash.
    fn place(&self, filter: &Filter) -> Option<(Option<usize>, u64)> {
        let (name, value) = filter.selector().equality()?;
        let at = self.by_property.iter().position(|it| *it.name == *name);
        Some((at, self.hash(value.value())))
    }

    /// Terms that a message may have to be evaluated against once this filter is there too, at most.
    pub(crate) fn terms_with(&self, filter: &Filter) -> usize {
        let steps = steps_of(filter);
        let fixed = self.others.terms + self.by_property.len() * LOOK_STEPS;
        match self.place(filter) {
            None => fixed + steps,
            Some((None, _)) => fixed + LOOK_STEPS + steps,
            Some((Some(at), hash)) => {
                fixed + steps + self.by_property[at].buckets.get(&hash).map_or(0, |it| it.terms)
            }
        }
    }

    /// Adds a filter.
    pub(crate) fn add(&mut self, filter: &Filter, of: T) {
        match self.place(filter) {
            None => self.others.add(filter, of),
            Some((Some(at), hash)) => {
                self.by_property[at].buckets.entry(hash).or_default().add(filter, of);
            }
            Some((None, hash)) => {
                let (name, _) = filter.selector().equality().expect("it has a place by value");
                let mut buckets = HashMap::with_hasher(self.hasher.clone());
                let mut bucket = Bucket::default();
                bucket.add(filter, of);
                buckets.insert(hash, bucket);
                self.by_property.push(ByProperty { name: name.into(), buckets });
            }
        }
    }

    /// Takes a filter out.
    pub(crate) fn remove(&mut self, filter: &Filter, of: T) {
        match self.place(filter) {
            Some((Some(at), hash)) => {
                let buckets = &mut self.by_property[at].buckets;
                if let Some(bucket) = buckets.get_mut(&hash) {
                    bucket.remove(of);
                    if bucket.members.is_empty() {
                        buckets.remove(&hash);
                    }
                }
                if buckets.is_empty() {
                    self.by_property.swap_remove(at);
                }
            }
            _ => self.others.remove(of),
        }
    }

    /// Finds what those filters stand for that select the message whose properties `property` gives by
    /// name; returns how many terms were evaluated for that, at most.
    pub(crate) fn find<'m>(
        &self,
        property: &impl Fn(&str) -> Value<'m>,
        found: &mut Vec<T>,
    ) -> usize {
        let mut terms = self.others.find(property, found);
        for ByProperty { name, buckets } in &self.by_property {
            terms += LOOK_STEPS;
            let value = property(name);
            if value != Value::Null
                && let Some(bucket) = buckets.get(&self.hash(value))
            {
                let known = |asked: &str| if *asked == **name { value } else { property(asked) };
                terms += bucket.find_with(value, &known, found);
            }
        }
        terms
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Filter, ParseOptions, Value};
    use super::FilterSet;

    fn filter(text: &str) -> Filter {
        Filter::parse(text, &ParseOptions::default()).unwrap()
    }

    fn found(set: &FilterSet<usize>, colour: Value<'_>, size: i64) -> (Vec<usize>, usize) {
        let mut found = Vec::new();
        let property = |name: &str| match name {
            "colour" => colour,
            "size" => Value::Exact(size),
            _ => Value::Null,
        };
        let terms = set.find(&property, &mut found);
        found.sort_unstable();
        (found, terms)
    }

    const TEXTS: [&str; 8] = [
        "colour = 'red'",
        "colour = 'blue' AND size > 5",
        "colour = 'red' AND size > 5",
        "size = 7.0",
        "size BETWEEN 6 AND 8",
        "colour IS NULL",
        "colour = 'red'",
        "weight = 1",
    ];

    #[test]
    fn those_that_select_a_message_are_found() {
        let mut set = FilterSet::new(7);
        for (of, text) in TEXTS.iter().enumerate() {
            set.add(&filter(text), of);
        }
        for (colour, size, expected) in [
            (Value::Text("red"), 7, &[0, 2, 3, 4, 6][..]),
            (Value::Text("red"), 1, &[0, 6]),
            (Value::Text("blue"), 9, &[1]),
            (Value::Null, 0, &[5]),
            (Value::Bool(true), 0, &[]),
        ] {
            assert_eq!(found(&set, colour, size).0, expected, "{colour:?} {size}");
        }
        set.remove(&filter(TEXTS[0]), 0);
        set.remove(&filter(TEXTS[4]), 4);
        assert_eq!(found(&set, Value::Text("red"), 7).0, [2, 3, 6]);
        for (of, text) in TEXTS.iter().enumerate() {
            set.remove(&filter(text), of);
        }
        assert_eq!(found(&set, Value::Text("red"), 7), (vec![], 0));
    }

    #[test]
    fn a_thousand_filters_on_one_property_cost_about_as_much_as_one() {
        let (mut one, mut many) = (FilterSet::new(7), FilterSet::new(7));
        one.add(&filter("colour = 'c7'"), 7);
        for number in 0..1_000 {
            let filter = filter(&format!("colour = 'c{number}'"));
            assert_eq!(many.terms_with(&filter), one.terms_with(&self::filter("colour = 'x'")));
            many.add(&filter, number);
        }
        assert_eq!(found(&many, Value::Text("c7"), 0), found(&one, Value::Text("c7"), 0));
        let others = filter("colour LIKE 'c%'");
        assert!(many.terms_with(&others) < 10, "{}", many.terms_with(&others));
    }
}
