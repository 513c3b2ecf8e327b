//! Named subscriptions: queues that exchanges lead messages to, found again by their owner and name.
//!
//! A subscription is a part of its queue and goes with it, however that goes. Durable ones have names of
//! their own, apart from those that end with their last consumer.

mod open;
mod restore;

use crate::interface::name::fitting_name;
use crate::selector::Filter;
use crate::{Arguments, Binding, BindingTarget, Names};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// What makes a queue a named subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedSubscription {
    /// The client it belongs to; `None`: all.
    pub(crate) owner: Option<Arc<str>>,
    pub(crate) name: Arc<str>,
    pub(crate) durable: bool,
    pub(crate) shared: bool,
    /// The exchange and the keys, in order, by which it was bound.
    pub(crate) source: String,
    pub(crate) keys: Vec<String>,
    pub(crate) filter: Option<Filter>,
    pub(crate) not_from: Option<String>,
    /// How many have opened it, durable, and not begun to consume from it.
    pub(crate) openings: u32,
}

/// What a named subscription takes in memory beside its texts.
const SUBSCRIPTION_BYTES: usize = 192;

impl NamedSubscription {
    /// About how much memory it takes.
    pub(crate) fn bytes(&self) -> u64 {
        let keys = self.keys.iter().map(|key| key.len() + size_of::<String>()).sum::<usize>();
        let names = self.name.len() + self.owner.as_ref().map_or(0, |owner| owner.len());
        let client = self.not_from.as_ref().map_or(0, String::len);
        let filter = self.filter.as_ref().map_or(0, Filter::memory_bytes);
        (SUBSCRIPTION_BYTES + names + self.source.len() + keys + client + filter) as u64
    }

    /// What binds a queue as it says.
    pub(crate) fn bindings(&self, queue: &str) -> impl Iterator<Item = Binding> {
        self.keys.iter().map(|key| Binding {
            source: self.source.clone(),
            target: BindingTarget::Queue(queue.to_owned()),
            key: key.clone(),
            arguments: Arguments::new(),
            filter: self.filter.clone(),
            not_from: self.not_from.clone(),
        })
    }

    /// It in words, for refusals.
    pub(crate) fn text(&self) -> String {
        text(self.owner.as_deref(), &self.name)
    }
}

/// A named subscription in words, for refusals.
fn text(owner: Option<&str>, name: &str) -> String {
    match owner {
        Some(owner) => format!("subscription '{name}' of client '{owner}'"),
        None => format!("subscription '{name}'"),
    }
}

/// The name of a named subscription's queue: the prefix of its kind, the owner, in which `%` and `/` are
/// percent-encoded, `/` and its name.
pub(crate) fn queue_name(names: &Names, durable: bool, owner: Option<&str>, name: &str) -> String {
    let mut text = match durable {
        true => names.durable_subscription_prefix.to_owned(),
        false => names.volatile_subscription_prefix.to_owned(),
    };
    for letter in owner.unwrap_or_default().chars() {
        match letter {
            '%' | '/' => {
                let _ = write!(text, "%{:02X}", u32::from(letter));
            }
            letter => text.push(letter),
        }
    }
    // An owner without a name is not nobody.
    if owner == Some("") {
        text.push('%');
    }
    text.push('/');
    text.push_str(name);
    fitting_name(&text).into_owned()
}

/// What named subscriptions are found by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    vhost: u32,
    durable: bool,
    owner: Option<Arc<str>>,
    name: Arc<str>,
}

impl Key {
    fn of(vhost: u32, subscription: &NamedSubscription) -> Key {
        let NamedSubscription { durable, ref owner, ref name, .. } = *subscription;
        Key { vhost, durable, owner: owner.clone(), name: Arc::clone(name) }
    }
}

/// The numbers of the queues of all named subscriptions.
#[derive(Debug, Default)]
pub(crate) struct NamedSubscriptions {
    queues: BTreeMap<Key, u64>,
}

impl NamedSubscriptions {
    /// The number of the queue of a named subscription.
    fn find(&self, vhost: u32, durable: bool, owner: Option<&str>, name: &str) -> Option<u64> {
        let key = Key { vhost, durable, owner: owner.map(Into::into), name: name.into() };
        self.queues.get(&key).copied()
    }

    /// The queue of that number is a named subscription; it takes the place of another one.
    fn insert(&mut self, vhost: u32, subscription: &NamedSubscription, queue: u64) {
        self.queues.insert(Key::of(vhost, subscription), queue);
    }

    /// The queue of that number is gone.
    pub(crate) fn forget(&mut self, vhost: u32, subscription: &NamedSubscription, queue: u64) {
        let key = Key::of(vhost, subscription);
        if self.queues.get(&key) == Some(&queue) {
            self.queues.remove(&key);
        }
    }

    /// All of them.
    #[cfg(test)]
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u64> {
        self.queues.values().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::CONVENTIONS;

    #[test]
    fn queues_are_named_apart() {
        let name = |owner, name| queue_name(&CONVENTIONS.names, true, owner, name);
        assert_eq!(name(Some("client"), "sub"), "amq.durable-client/sub");
        assert_eq!(name(Some("a/b%"), "c/d"), "amq.durable-a%2Fb%25/c/d");
        assert_eq!(name(None, "sub"), "amq.durable-/sub");
        assert_eq!(name(Some(""), "sub"), "amq.durable-%/sub");
        let volatile = queue_name(&CONVENTIONS.names, false, Some("client"), "sub");
        assert_eq!(volatile, "amq.volatile-client/sub");
        assert_eq!(name(Some("c"), &"n".repeat(1024)).len(), 255);
    }
}
