//! What one user, or all in a virtual host, may use, and what becomes of clients that are too slow for direct
//! messages.
//!
//! The engine keeps these values and holds to those that it can count itself (connections, subjects
//! subscribed to); rates and unsent bytes are the host's to count.

/// What becomes of a direct message for a client that is too far behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SlowConsumerPolicy {
    /// It waits on the disk, with all that comes after it, until the client has read what was before.
    Spool,
    /// The client misses its oldest messages that are not sent yet.
    DropOldest,
    /// The client misses this one.
    DropNew,
    /// The client is disconnected.
    #[default]
    Disconnect,
    /// The client gets the last message of each subject, and misses those before it.
    Conflate,
}

impl SlowConsumerPolicy {
    /// Every policy with its name, in the order of their numbers in records.
    pub const NAMES: [(SlowConsumerPolicy, &'static str); 5] = [
        (SlowConsumerPolicy::Spool, "spool"),
        (SlowConsumerPolicy::DropOldest, "drop-oldest"),
        (SlowConsumerPolicy::DropNew, "drop-new"),
        (SlowConsumerPolicy::Disconnect, "disconnect"),
        (SlowConsumerPolicy::Conflate, "conflate"),
    ];

    /// Its name, the same in settings, commands and protocols.
    #[must_use]
    pub fn name(self) -> &'static str {
        SlowConsumerPolicy::NAMES[self as usize].1
    }

    /// The policy of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<SlowConsumerPolicy> {
        let mut names = SlowConsumerPolicy::NAMES.into_iter();
        names.find_map(|(policy, known)| (known == name).then_some(policy))
    }
}

/// What a quota bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bound {
    /// Simultaneous connections of the user.
    Connections,
    /// Subjects that each of them subscribes to.
    ConnectionSubscriptions,
    /// Unsent bytes of each, beyond which it is too slow for direct messages.
    UnsentBytes,
    /// Messages published in a second by all of them together.
    Messages,
    /// Bytes sent to the broker in a second by all of them together.
    Bytes,
    /// Messages published in a second by each.
    ConnectionMessages,
    /// Bytes sent to the broker in a second by each.
    ConnectionBytes,
    /// Subjects that all of them together subscribe to.
    Subscriptions,
    /// Queues: those that the user declared, or those of the virtual host.
    Queues,
    /// Bytes of messages that wait in these queues.
    StoredBytes,
}

impl Bound {
    /// All of them with their names. Records have them in this order: new ones come last.
    pub const NAMES: [(Bound, &'static str); 10] = [
        (Bound::Connections, "connections"),
        (Bound::ConnectionSubscriptions, "connection-subscriptions"),
        (Bound::UnsentBytes, "unsent-bytes"),
        (Bound::Messages, "messages-per-second"),
        (Bound::Bytes, "bytes-per-second"),
        (Bound::ConnectionMessages, "connection-messages-per-second"),
        (Bound::ConnectionBytes, "connection-bytes-per-second"),
        (Bound::Subscriptions, "subscriptions"),
        (Bound::Queues, "queues"),
        (Bound::StoredBytes, "stored-bytes"),
    ];

    /// Those that the quota of a virtual host may have.
    pub const OF_VHOSTS: [Bound; 5] =
        [Bound::Connections, Bound::Queues, Bound::StoredBytes, Bound::Messages, Bound::Bytes];
}

/// What one user, or all in a virtual host together, may use; what it does not mention is as for everybody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// What becomes of its clients that are too slow, unless they say so themselves.
    pub slow_consumer_policy: Option<SlowConsumerPolicy>,
    bounds: [Option<u64>; Bound::NAMES.len()],
}

impl Quota {
    /// The bound, where there is one.
    #[must_use]
    pub fn get(&self, bound: Bound) -> Option<u64> {
        self.bounds[bound as usize]
    }

    /// Sets it, or takes it away.
    pub fn set(&mut self, bound: Bound, value: Option<u64>) {
        self.bounds[bound as usize] = value;
    }

    /// With that bound.
    #[must_use]
    pub fn with(mut self, bound: Bound, value: u64) -> Quota {
        self.set(bound, Some(value));
        self
    }

    /// With that policy.
    #[must_use]
    pub fn with_slow_consumer_policy(mut self, slow_consumer_policy: SlowConsumerPolicy) -> Quota {
        self.slow_consumer_policy = Some(slow_consumer_policy);
        self
    }

    /// This, and what `other` says where this says nothing.
    #[must_use]
    pub fn or(mut self, other: &Quota) -> Quota {
        self.slow_consumer_policy = self.slow_consumer_policy.or(other.slow_consumer_policy);
        for (mine, others) in self.bounds.iter_mut().zip(other.bounds) {
            *mine = mine.or(others);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_what_they_name() {
        for (policy, name) in SlowConsumerPolicy::NAMES {
            assert_eq!(policy.name(), name);
            assert_eq!(SlowConsumerPolicy::named(name), Some(policy));
        }
        assert_eq!(SlowConsumerPolicy::named("never"), None);
        for (at, (bound, _)) in Bound::NAMES.into_iter().enumerate() {
            assert_eq!(bound as usize, at);
        }
    }

    #[test]
    fn what_is_not_said_is_as_for_everybody() {
        let everybody = Quota::default().with_slow_consumer_policy(SlowConsumerPolicy::Spool);
        let everybody = everybody.with(Bound::Connections, 9).with(Bound::Messages, 8);
        let user = Quota::default().with(Bound::Connections, 1);
        let both = user.or(&everybody);
        assert_eq!(both.slow_consumer_policy, Some(SlowConsumerPolicy::Spool));
        assert_eq!(both.get(Bound::Connections), Some(1));
        assert_eq!(both.get(Bound::Messages), Some(8));
        assert_eq!(both.get(Bound::Bytes), None);
    }
}
