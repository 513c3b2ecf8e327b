//! Rules broken on purpose, outside the code under test, to see whether the checks notice: a disk that
//! lies, and a network between node and clients that loses, repeats or swaps what it must not.

use crate::client::INBOX_TAG;
use crate::client::wire::{Incoming, Way};
use crate::random::Random;
use angarium_protocol::amqp091::codec::{Method, Table};
use std::collections::BTreeSet;

/// Which rule is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Canary {
    /// The disk says that a flush is done before anything is safe: confirm before flush.
    SyncLies,
    /// While the node is down, a block in the middle of the log is cut out and the rest moved up.
    LogCut,
    /// Acknowledgements get lost on their way to the node.
    SettlesLost,
    /// Deliveries arrive twice, the second one not marked either.
    DeliveriesRepeated,
    /// Deliveries arrive in another order.
    DeliveriesSwapped,
    /// Publishes of a transaction get lost on their way to the node.
    TransactionsTorn,
    /// Rollbacks become commits.
    RollbacksCommitted,
    /// A delivery's body is altered.
    BodiesAltered,
    /// The node does not hear of the consumers' limits.
    CreditIgnored,
    /// Queues are bound by other keys than their clients asked for.
    BindingsAltered,
    /// Replies get lost on their way to who asked.
    RepliesLost,
    /// The node does not hear that queues are to expire.
    LeasesIgnored,
    /// The node does not hear that an exchange is to hold messages back.
    DelaysIgnored,
    /// Direct messages arrive twice.
    HeardTwice,
    /// Direct messages arrive in another order.
    HeardSwapped,
    /// Direct messages get lost.
    HeardLost,
    /// A direct message's body, headers, subject or reply subject is altered.
    HeardAltered,
    /// What waits on the disk for slow clients is damaged, where nothing was to go wrong.
    SpoolRots,
    /// Who missed direct messages is not told.
    MissedUntold,
    /// The node does not hear of queue groups.
    GroupsIgnored,
    /// The node hears that clients want their own messages.
    EchoForced,
    /// The node does not hear that a subscription is to end.
    UnsubscribesLost,
    /// The node does not hear that a subscription is to end after so many messages.
    UntilIgnored,
    /// Direct messages to a queue get lost on their way to the node.
    CaughtLost,
    /// Nobody hears that nobody takes a request.
    NoRespondersLost,
    /// Batches between shards get lost.
    ParcelsLost,
    /// Batches of a pair of shards arrive in another order.
    ParcelsSwapped,
    /// Clients are not told that they lost sessions.
    SessionNoticesLost,
    /// The node does not hear that sessions are to be recorded.
    SessionRecordsIgnored,
    /// The answer to PING does not wait until all shards know what was subscribed before.
    NewsUnawaited,
}

impl Canary {
    /// Whether it takes several shards to break that rule.
    #[must_use]
    pub fn is_between_shards(self) -> bool {
        matches!(self, Canary::ParcelsLost | Canary::ParcelsSwapped | Canary::NewsUnawaited)
    }
}

/// How many in a hundred chances are taken.
pub(crate) const PERCENT: u64 = 5;

/// Sits between a client and its connection.
#[derive(Debug)]
pub struct Proxy {
    pub(crate) canary: Canary,
    pub(crate) random: Random,
    /// Channels in transaction mode.
    transactional: BTreeSet<u16>,
}

impl Proxy {
    /// A proxy that breaks `canary`'s rule.
    #[must_use]
    pub fn new(canary: Canary, random: Random) -> Proxy {
        Proxy { canary, random, transactional: BTreeSet::new() }
    }

    /// What reaches the node instead of a method that the client sent.
    pub fn pass<'a>(&mut self, channel: u16, method: &Method<'a>) -> Option<Method<'a>> {
        let mut passed = *method;
        match (self.canary, &mut passed) {
            (Canary::SettlesLost, Method::BasicAck { .. }) if self.random.percent(PERCENT) => {
                return None;
            }
            (Canary::RollbacksCommitted, rollback @ Method::TxRollback {}) => {
                *rollback = Method::TxCommit {};
            }
            (Canary::CreditIgnored, Method::BasicQos { prefetch_size, prefetch_count, .. }) => {
                (*prefetch_size, *prefetch_count) = (0, 0);
            }
            (Canary::BindingsAltered, Method::QueueBind { routing_key, arguments, .. }) => {
                (*routing_key, *arguments) = ("other", Table::default());
            }
            (Canary::LeasesIgnored, Method::QueueDeclare { arguments, .. })
                if arguments.get("x-expires").is_some() =>
            {
                *arguments = Table::default();
            }
            (Canary::DelaysIgnored, Method::ExchangeDeclare { kind, arguments, .. })
                if *kind == "x-delayed-message" =>
            {
                (*kind, *arguments) = ("direct", Table::default());
            }
            (_, Method::ChannelOpen { .. }) => {
                self.transactional.remove(&channel);
            }
            (_, Method::TxSelect {}) => {
                self.transactional.insert(channel);
            }
            _ => {}
        }
        Some(passed)
    }

    /// Whether a publish gets lost on its way to the node.
    pub fn swallows(&mut self, channel: u16) -> bool {
        self.canary == Canary::TransactionsTorn
            && self.transactional.contains(&channel)
            && self.random.percent(PERCENT)
    }

    /// What the client gets instead of what the node sent.
    pub fn alter(&mut self, incoming: &mut Vec<(u16, Incoming)>) {
        if self.canary == Canary::RepliesLost {
            incoming.retain(|(_, what)| !is_reply(what) || !self.random.percent(PERCENT));
        }
        for at in 0..incoming.len() {
            let (channel, Incoming::Message(message)) = &incoming[at] else { continue };
            if !matches!(message.way, Way::Delivered { .. }) || !self.random.percent(PERCENT) {
                continue;
            }
            let channel = *channel;
            match self.canary {
                Canary::DeliveriesRepeated => {
                    let copy = incoming[at].clone();
                    incoming.insert(at, copy);
                }
                Canary::DeliveriesSwapped => {
                    let is_delivery = |(of, what): &(u16, Incoming)| {
                        *of == channel && matches!(what, Incoming::Message(_))
                    };
                    if incoming.get(at + 1).is_some_and(is_delivery) {
                        incoming.swap(at, at + 1);
                    }
                }
                Canary::BodiesAltered => {
                    if let Incoming::Message(message) = &mut incoming[at].1 {
                        message.id = None;
                    }
                }
                _ => {}
            }
        }
    }
}

/// Whether it came to an inbox.
fn is_reply(what: &Incoming) -> bool {
    let Incoming::Message(message) = what else { return false };
    matches!(&message.way, Way::Delivered { consumer } if consumer.starts_with(INBOX_TAG))
}
