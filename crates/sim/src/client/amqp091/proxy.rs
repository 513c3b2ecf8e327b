//! Rules of AMQP 0-9-1 broken on purpose, on the way between a client and the node.

use super::incoming::{INBOX_TAG, Incoming, Way};
use crate::canary::{Canary, PERCENT};
use crate::random::Random;
use angarium_protocol::amqp091::codec::{Method, Properties, Table};
use std::collections::BTreeSet;

/// Sits between a client and its connection.
#[derive(Debug)]
pub(super) struct Proxy {
    canary: Canary,
    random: Random,
    /// Channels in transaction mode.
    transactional: BTreeSet<u16>,
}

impl Proxy {
    pub(super) fn new(canary: Canary, random: Random) -> Proxy {
        Proxy { canary, random, transactional: BTreeSet::new() }
    }

    /// The method that reaches the node instead of the one that the client sent.
    pub(super) fn pass<'a>(&mut self, channel: u16, method: &Method<'a>) -> Option<Method<'a>> {
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

    /// The properties that reach the node instead of those that the client has sent.
    pub(super) fn pass_properties<'a>(&self, properties: &Properties<'a>) -> Properties<'a> {
        let mut passed = *properties;
        if self.canary == Canary::DelaysIgnored
            && passed.headers.is_some_and(|headers| headers.get("x-delay").is_some())
        {
            passed.headers = None;
        }
        passed
    }

    /// Whether a publish gets lost on its way to the node.
    pub(super) fn swallows(&mut self, channel: u16) -> bool {
        self.canary == Canary::TransactionsTorn
            && self.transactional.contains(&channel)
            && self.random.percent(PERCENT)
    }

    /// Alters what the node sent before the client gets it.
    pub(super) fn alter(&mut self, incoming: &mut Vec<(u16, Incoming)>) {
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

/// Whether it came to a direct reply-to consumer.
fn is_reply(what: &Incoming) -> bool {
    let Incoming::Message(message) = what else { return false };
    matches!(&message.way, Way::Delivered { consumer } if consumer.starts_with(INBOX_TAG))
}
