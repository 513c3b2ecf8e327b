//! What named subscriptions are opened with, and how answers and listings show them.

use crate::QueueOptions;
use crate::selector::Filter;

/// Asks for a named subscription: a queue of its own to which an exchange leads messages, found again by its
/// owner and name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OpenSubscription {
    /// The client it belongs to; `None`: all clients of the virtual host.
    pub owner: Option<String>,
    /// Its name, among the owner's durable ones or among those that are not.
    pub name: String,
    /// The exchange that its messages come from.
    pub source: String,
    /// The keys that bind it there; their order means nothing.
    pub keys: Vec<String>,
    /// It survives a restart, and lives on without consumers. Others go with their last consumer.
    pub durable: bool,
    /// Several consumers share its messages; otherwise it has one at a time.
    pub shared: bool,
    /// It gets only messages that this selects.
    pub filter: Option<Filter>,
    /// It gets nothing that was published by the client of this name ([`crate::Engine::name_client`]).
    pub not_from: Option<String>,
    /// The consumer of the channel that is about to consume from it: until that begins, or is released as a
    /// holder ([`crate::Request::Release`]), the subscription is in use.
    pub consumer: Option<String>,
    /// What its queue is made with. What follows from the fields above, `exclusive` and `auto_delete` are
    /// ignored, and all of it where the subscription is there.
    pub options: QueueOptions,
}

/// A named subscription as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct SubscriptionInfo {
    /// Its queue.
    pub queue: String,
    /// The exchange that its messages come from.
    pub source: String,
    /// The keys that bind it there, in order.
    pub keys: Vec<String>,
    /// It gets only messages that this selects.
    pub filter: Option<Filter>,
    /// It gets nothing from the client of this name.
    pub not_from: Option<String>,
    /// Several consumers may share it.
    pub shared: bool,
    /// Messages that wait for a consumer.
    pub messages: u64,
    /// Its consumers.
    pub consumers: u32,
}

/// A named subscription as listings show it.
#[derive(Clone, Copy, Debug)]
pub struct NamedSubscriptionListing<'a> {
    /// Its virtual host.
    pub vhost: &'a str,
    /// The client it belongs to; `None`: all.
    pub owner: Option<&'a str>,
    /// Its name.
    pub name: &'a str,
    /// Its queue.
    pub queue: &'a str,
    /// It survives a restart.
    pub durable: bool,
    /// Several consumers may share it.
    pub shared: bool,
    /// The exchange that its messages come from.
    pub source: &'a str,
    /// The keys that bind it there, in order.
    pub keys: &'a [String],
    /// The selector of its messages, if it has one.
    pub filter: Option<&'a str>,
    /// The client from which it gets nothing.
    pub not_from: Option<&'a str>,
    /// Messages that wait for a consumer.
    pub ready: u64,
    /// Messages that are out and not settled.
    pub unsettled: u64,
    /// Its consumers.
    pub consumers: usize,
}
