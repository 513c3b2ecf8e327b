//! The subscriptions of a client, and which of them match a topic.

use super::codec::{Filter, FilterOptions, Qos, Version};
use super::{codec::topic, mapping};
use std::collections::BTreeMap;
use std::ops::Bound;

/// Subscriptions up to which overlaps are looked for; among more with wildcards, some are taken for granted.
const COMPARED_MAX: usize = 256;
/// Bytes of a subscription as the session keeps it.
pub(super) const SUBSCRIPTION_BYTES: usize = 5;
/// Levels of a topic up to which the filters that can match it are looked up.
const LEVELS_MAX: usize = 32;

/// A subscription of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Subscription {
    /// How messages are wanted.
    pub(super) options: FilterOptions,
    /// What the client calls it; 0: nothing.
    pub(super) identifier: u32,
    /// It is shared with others.
    pub(super) is_shared: bool,
    /// Its patterns of subjects match more than its filter does.
    is_rough: bool,
}

/// All subscriptions of a client, by their filters as it wrote them.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    all: BTreeMap<Box<str>, Subscription>,
    /// Bytes of all filters.
    text_bytes: usize,
    /// How many of them are not shared and have wildcards.
    wild: usize,
    /// Messages may match several of those that are not shared.
    has_overlaps: bool,
    /// One of them has an identifier.
    has_identifiers: bool,
}

/// The subscriptions that a message matches, taken together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Matched {
    /// The highest QoS of them.
    pub(super) qos: Qos,
    /// One of them keeps the retain flag.
    pub(super) retain_as_published: bool,
    /// Their identifiers.
    pub(super) identifiers: Vec<u32>,
    /// How many they are.
    pub(super) count: usize,
}

impl Matched {
    pub(super) fn add(&mut self, subscription: &Subscription) {
        self.qos = self.qos.max(subscription.options.qos);
        self.retain_as_published |= subscription.options.retain_as_published;
        self.identifiers.extend(Some(subscription.identifier).filter(|it| *it > 0));
        self.count += 1;
    }
}

impl Subscription {
    /// One to a filter that was read from `text`.
    pub(super) fn new(
        filter: &Filter<'_>,
        options: FilterOptions,
        identifier: u32,
    ) -> Subscription {
        Subscription {
            options,
            identifier,
            is_shared: filter.share.is_some(),
            is_rough: mapping::has_foreign_wildcards(filter.filter)
                || filter.filter.starts_with(['+', '#']),
        }
    }

    /// Whether its messages with more than QoS 0 come from the session's queue.
    #[inline]
    pub(super) fn is_queued(&self) -> bool {
        self.options.qos > Qos::AtMostOnce
    }

    /// Whether it subscribes to direct messages: those with QoS 0 come straight to members of a group.
    pub(super) fn is_direct(&self) -> bool {
        self.is_shared || !self.is_queued()
    }

    /// It alone, as what a message matches.
    pub(super) fn alone(&self) -> Matched {
        Matched {
            qos: self.options.qos,
            retain_as_published: self.options.retain_as_published,
            identifiers: Some(self.identifier).into_iter().filter(|it| *it > 0).collect(),
            count: 1,
        }
    }

    /// As the session keeps it.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![self.options.bits()];
        bytes.extend_from_slice(&self.identifier.to_be_bytes());
        bytes
    }

    /// What [`Subscription::encode`] wrote; `None`: it is something else.
    pub(super) fn decode(filter: &Filter<'_>, bytes: &[u8]) -> Option<Subscription> {
        let (bits, identifier) = bytes.split_first()?;
        let options = FilterOptions::of(*bits, Version::V5).ok()?;
        let identifier = u32::from_be_bytes(identifier.try_into().ok()?);
        Some(Subscription::new(filter, options, identifier))
    }

    /// Whether a message to the topic, which its patterns match, is one of its own.
    #[inline]
    pub(super) fn takes(&self, text: &str, topic: &[u8]) -> bool {
        if !self.is_rough {
            return true;
        }
        let (Ok(filter), Ok(topic)) = (Filter::read(text), str::from_utf8(topic)) else {
            return false;
        };
        filter.matches(topic)
    }
}

impl Subscriptions {
    /// The subscription that a client has under that text.
    #[inline]
    pub(super) fn get(&self, text: &str) -> Option<&Subscription> {
        self.all.get(text)
    }

    /// How many they are.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether messages may match several.
    #[inline]
    pub(super) fn has_overlaps(&self) -> bool {
        self.has_overlaps
    }

    /// Whether one has an identifier.
    pub(super) fn has_identifiers(&self) -> bool {
        self.has_identifiers
    }

    /// Adds one, in place of an earlier one to the same filter; says whether there was one.
    pub(super) fn put(&mut self, text: &str, subscription: Subscription) -> bool {
        let is_wild = is_wild(text);
        self.has_identifiers |= subscription.identifier > 0;
        if let Some(known) = self.all.get_mut(text) {
            *known = subscription;
            return true;
        }
        if !subscription.is_shared {
            // Two without wildcards are different topics.
            let may_overlap = !self.has_overlaps && (is_wild || self.wild > 0);
            self.has_overlaps |= may_overlap && self.may_overlap(text, is_wild);
            self.wild += usize::from(is_wild);
        }
        self.text_bytes += text.len();
        self.all.insert(text.into(), subscription);
        false
    }

    fn may_overlap(&self, text: &str, is_wild: bool) -> bool {
        let others = self.all.iter().filter(|(_, it)| !it.is_shared);
        let mut others = others.filter(|(other, _)| is_wild || self::is_wild(other));
        self.all.len() > COMPARED_MAX || others.any(|(other, _)| overlaps(text, other))
    }

    /// Takes one out.
    pub(super) fn remove(&mut self, text: &str) -> Option<Subscription> {
        let gone = self.all.remove(text)?;
        self.text_bytes -= text.len();
        self.wild -= usize::from(!gone.is_shared && is_wild(text));
        if self.all.is_empty() {
            (self.has_overlaps, self.has_identifiers) = (false, false);
        }
        Some(gone)
    }

    /// Those that are not shared and match a topic, taken together; without those that do not want what the
    /// client has published itself, where it `is_own`.
    pub(super) fn matching(&self, topic: &str, is_own: bool) -> Matched {
        let mut matched = Matched::default();
        self.each_that_may_match(topic, |text, subscription| {
            let is_unwanted = subscription.is_shared || is_own && subscription.options.no_local;
            if !is_unwanted && topic::matches(text, topic) {
                matched.add(subscription);
            }
        });
        matched
    }

    /// Visits all filters that match a topic, and some others.
    fn each_that_may_match(&self, topic: &str, mut visit: impl FnMut(&str, &Subscription)) {
        let levels = topic.split('/').count();
        if levels > LEVELS_MAX || self.all.len() <= levels {
            return self.all.iter().for_each(|(text, subscription)| visit(text, subscription));
        }
        let mut visit_one = |text: &str| {
            if let Some(subscription) = self.all.get(text) {
                visit(text, subscription);
            }
        };
        if self.wild == 0 {
            return visit_one(topic);
        }
        // Filters are the topic up to their first wildcard.
        let mut text = String::with_capacity(topic.len() + 2);
        for level in topic.split('/') {
            let begin = text.len();
            text.push('#');
            visit_one(&text);
            text.truncate(begin);
            text.push('+');
            let from = (Bound::Included(text.as_str()), Bound::Unbounded);
            let with_plus = self.all.range::<str, _>(from);
            for (filter, _) in with_plus.take_while(|(filter, _)| filter.starts_with(&text)) {
                visit_one(filter);
            }
            text.truncate(begin);
            text.push_str(level);
            text.push('/');
        }
        visit_one(topic);
        text.push('#');
        visit_one(&text);
    }

    /// Bytes that they take, about.
    pub(super) fn held_bytes(&self) -> usize {
        self.text_bytes + self.all.len() * (size_of::<Subscription>() + 2 * size_of::<Box<str>>())
    }
}

fn is_wild(text: &str) -> bool {
    text.contains(['+', '#'])
}

/// Whether there may be a topic that both filters match.
fn overlaps(one: &str, other: &str) -> bool {
    let (mut ones, mut others) = (one.split('/'), other.split('/'));
    loop {
        match (ones.next(), others.next()) {
            // It stands for the level above as well.
            (None, None) | (Some("#"), _) | (_, Some("#")) => return true,
            (Some("+"), Some(_)) | (Some(_), Some("+")) => {}
            (Some(level), Some(other)) if level == other => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(all: &mut Subscriptions, text: &str, qos: Qos, identifier: u32) {
        let options = FilterOptions { qos, ..FilterOptions::default() };
        let filter = Filter::read(text).unwrap();
        all.put(text, Subscription::new(&filter, options, identifier));
    }

    #[test]
    fn overlaps_are_noticed() {
        for (one, other, expected) in [
            ("a", "b", false),
            ("a/b", "a/+", true),
            ("a/#", "a", true),
            ("a/+", "b/#", false),
            ("#", "x/y", true),
            ("$share/g/a/#", "a/b", false),
            ("+/b", "a/+", true),
        ] {
            let mut all = Subscriptions::default();
            put(&mut all, one, Qos::AtMostOnce, 0);
            put(&mut all, other, Qos::AtMostOnce, 0);
            assert_eq!(all.has_overlaps(), expected, "{one} and {other}");
            assert!(all.remove(one).is_some() && all.remove(one).is_none());
        }
    }

    #[test]
    fn those_that_match_are_found_among_many() {
        let mut all = Subscriptions::default();
        (0..COMPARED_MAX).for_each(|at| put(&mut all, &format!("n/{at}"), Qos::AtMostOnce, 0));
        assert!(!all.has_overlaps());
        let filters = [
            "#", "+", "+/#", "+/b", "+/b/c", "/#", "/+", "a", "a/", "a/#", "a/+", "a/+/#", "a/+/c",
            "a/b", "a/b/#", "a/b/+", "a/b/c", "a/b/c/#", "b/#", "x/y",
        ];
        filters.iter().for_each(|text| put(&mut all, text, Qos::AtMostOnce, 0));
        assert!(all.has_overlaps(), "it is taken for granted");
        let deep = "a/".repeat(LEVELS_MAX);
        for topic in ["a", "a/", "a/b", "a/b/c", "a/b/c/d", "/", "/x", "n/7", "$x/b", "z", &deep] {
            let mut found = Vec::new();
            all.each_that_may_match(topic, |text, _| found.extend(Some(text.to_owned())));
            found.retain(|text| topic::matches(text, topic));
            let expected = filters.iter().filter(|text| topic::matches(text, topic)).count();
            assert_eq!(found.len(), expected + usize::from(topic == "n/7"), "{topic}: {found:?}");
            assert_eq!(all.matching(topic, false).count, found.len());
        }
    }

    #[test]
    fn those_that_match_are_taken_together() {
        let mut all = Subscriptions::default();
        put(&mut all, "a/#", Qos::AtMostOnce, 1);
        put(&mut all, "a/+", Qos::ExactlyOnce, 0);
        put(&mut all, "a/b", Qos::AtLeastOnce, 300);
        put(&mut all, "b/#", Qos::AtLeastOnce, 4);
        put(&mut all, "$share/g/a/b", Qos::AtLeastOnce, 5);
        let matched = all.matching("a/b", false);
        assert_eq!((matched.qos, matched.count), (Qos::ExactlyOnce, 3));
        assert_eq!(matched.identifiers, [1, 300]);
        let no_local = FilterOptions { no_local: true, ..FilterOptions::default() };
        let filter = Filter::read("b/#").unwrap();
        assert!(all.put("b/#", Subscription::new(&filter, no_local, 4)));
        assert_eq!(all.matching("b", true), Matched::default());
        assert_eq!(all.matching("b", false).count, 1);
    }
}
