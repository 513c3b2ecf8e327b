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
}

/// How many in a hundred chances are taken.
const PERCENT: u64 = 5;

/// Sits between a client and its connection.
#[derive(Debug)]
pub struct Proxy {
    canary: Canary,
    random: Random,
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
        match (self.canary, *method) {
            (Canary::SettlesLost, Method::BasicAck { .. }) if self.random.percent(PERCENT) => None,
            (Canary::RollbacksCommitted, Method::TxRollback {}) => Some(Method::TxCommit {}),
            (Canary::CreditIgnored, Method::BasicQos { global, .. }) => {
                Some(Method::BasicQos { prefetch_size: 0, prefetch_count: 0, global })
            }
            (
                Canary::BindingsAltered,
                Method::QueueBind { ticket, queue, exchange, no_wait, .. },
            ) => {
                let (routing_key, arguments) = ("other", Table::default());
                let bind =
                    Method::QueueBind { ticket, queue, exchange, routing_key, no_wait, arguments };
                Some(bind)
            }
            (Canary::LeasesIgnored, Method::QueueDeclare { arguments, .. })
                if arguments.get("x-expires").is_some() =>
            {
                Some(without_arguments(*method))
            }
            (Canary::DelaysIgnored, Method::ExchangeDeclare { kind: "x-delayed-message", .. }) => {
                Some(without_arguments(*method))
            }
            (_, Method::ChannelOpen { .. }) => {
                self.transactional.remove(&channel);
                Some(*method)
            }
            (_, Method::TxSelect {}) => {
                self.transactional.insert(channel);
                Some(*method)
            }
            _ => Some(*method),
        }
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

/// A declaration of something plain instead.
fn without_arguments(method: Method<'_>) -> Method<'_> {
    let arguments = Table::default();
    match method {
        Method::QueueDeclare {
            ticket,
            queue,
            passive,
            durable,
            exclusive,
            auto_delete,
            no_wait,
            ..
        } => Method::QueueDeclare {
            ticket,
            queue,
            passive,
            durable,
            exclusive,
            auto_delete,
            no_wait,
            arguments,
        },
        Method::ExchangeDeclare {
            ticket,
            exchange,
            passive,
            durable,
            auto_delete,
            internal,
            no_wait,
            ..
        } => Method::ExchangeDeclare {
            ticket,
            exchange,
            kind: "direct",
            passive,
            durable,
            auto_delete,
            internal,
            no_wait,
            arguments,
        },
        other => other,
    }
}

/// Whether it came to an inbox.
fn is_reply(what: &Incoming) -> bool {
    match what {
        Incoming::Message(message) => match &message.way {
            Way::Delivered { consumer } => consumer.starts_with(INBOX_TAG),
            _ => false,
        },
        _ => false,
    }
}
