//! Direct messages: at most once, from a publisher to the subscribers of that moment.
//!
//! They share the address space of queues: a subject is a routing key of the subject exchange
//! ([`Names`](crate::Names)). Emitted messages reach queues bound to that exchange; messages that
//! are published to the exchange, or come to it from others, reach subscribers.

mod cache;
mod cached_route;
mod emit;
mod fanout;
mod forward;
mod group;
mod groups;
mod interest;
mod interest_sync;
mod rights_review;
pub(crate) mod subscribe;
mod subscribers;
mod to_subscribers;
mod wide;

use crate::foundation::slab::Slab;
use foldhash::fast::FixedState;

pub use crate::pubsub::cached_route::{BatchRoom, CachedRoute};
pub(crate) use crate::pubsub::subscribe::Subscribers;
pub use forward::Forward;
pub(crate) use interest::Interest;
pub(crate) use to_subscribers::ToSubscribers;

/// What all virtual hosts share of direct messaging.
#[derive(Debug, Default)]
pub(crate) struct Direct {
    subscribers: Slab<subscribe::Subscriber>,
    channels: subscribers::Channels,
    hasher: FixedState,
    /// Subscribers there have been.
    subscribed: u32,
    /// Messages there have been.
    emissions: u64,

    // Kept between calls for their memory.
    leaves: Vec<u32>,
    parts: Vec<group::Part>,
    spent: Vec<u32>,
    rest: Vec<u32>,
}

impl Direct {
    pub(crate) fn new(seed: u64) -> Direct {
        Direct { hasher: FixedState::with_seed(seed), ..Direct::default() }
    }

    /// Whether subscribers are still to be taken out or judged.
    #[inline]
    pub(crate) fn has_work(&self) -> bool {
        self.channels.is_unsettled
    }

    /// Whether there is no subscriber.
    #[cfg(test)]
    pub(crate) fn has_none(&self) -> bool {
        self.subscribers.len() == 0
    }

    /// How many subscriptions there are.
    pub(crate) fn subscription_count(&self) -> usize {
        self.subscribers.len()
    }

    /// A virtual host goes that no channel is in any more.
    pub(crate) fn vhost_left(&mut self, vhost: u32) {
        self.channels.vhost_left(vhost);
    }

    /// Whether subscribers have heard as many messages as they wanted, and are to be ended.
    #[inline]
    fn has_spent(&self) -> bool {
        !self.spent.is_empty()
    }

    /// The number of one more message.
    #[inline]
    fn next_emission(&mut self) -> u64 {
        self.emissions += 1;
        self.emissions
    }
}

#[cfg(test)]
mod tests;

/// A subject that begins so names a queue: what is emitted to it goes there through the default
/// exchange, as an answer to a request from a queue's user does.
pub const QUEUE_SUBJECT_PREFIX: &str = "$QUEUE.";
