//! Rules broken on purpose, outside the code under test, to see whether the checks notice: a disk that
//! lies, and a network between node and clients that loses, repeats or swaps what it must not.

use crate::client::wire::{Incoming, Way};
use crate::random::Random;
use angarium_protocol::amqp091::codec::Method;

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
}

/// How many in a hundred chances are taken.
const PERCENT: u64 = 5;

/// Sits between a client and its connection.
#[derive(Debug)]
pub struct Proxy {
    canary: Canary,
    random: Random,
    is_transactional: bool,
}

impl Proxy {
    /// A proxy that breaks `canary`'s rule.
    #[must_use]
    pub fn new(canary: Canary, random: Random) -> Proxy {
        Proxy { canary, random, is_transactional: false }
    }

    /// What reaches the node instead of a method that the client sent.
    pub fn pass<'a>(&mut self, method: &Method<'a>) -> Option<Method<'a>> {
        match (self.canary, *method) {
            (Canary::SettlesLost, Method::BasicAck { .. }) if self.random.percent(PERCENT) => None,
            (Canary::RollbacksCommitted, Method::TxRollback {}) => Some(Method::TxCommit {}),
            (Canary::CreditIgnored, Method::BasicQos { global, .. }) => {
                Some(Method::BasicQos { prefetch_size: 0, prefetch_count: 0, global })
            }
            (_, Method::ChannelOpen { .. }) => {
                self.is_transactional = false;
                Some(*method)
            }
            (_, Method::TxSelect {}) => {
                self.is_transactional = true;
                Some(*method)
            }
            _ => Some(*method),
        }
    }

    /// Whether a publish gets lost on its way to the node.
    pub fn swallows(&mut self) -> bool {
        self.canary == Canary::TransactionsTorn
            && self.is_transactional
            && self.random.percent(PERCENT)
    }

    /// What the client gets instead of what the node sent.
    pub fn alter(&mut self, incoming: &mut Vec<Incoming>) {
        for at in 0..incoming.len() {
            let Incoming::Message(message) = &incoming[at] else { continue };
            if !matches!(message.way, Way::Delivered { .. }) || !self.random.percent(PERCENT) {
                continue;
            }
            match self.canary {
                Canary::DeliveriesRepeated => {
                    let copy = incoming[at].clone();
                    incoming.insert(at, copy);
                }
                Canary::DeliveriesSwapped => {
                    let is_delivery = |what: &Incoming| matches!(what, Incoming::Message(_));
                    if incoming.get(at + 1).is_some_and(is_delivery) {
                        incoming.swap(at, at + 1);
                    }
                }
                Canary::BodiesAltered => {
                    if let Incoming::Message(message) = &mut incoming[at] {
                        message.id = None;
                    }
                }
                _ => {}
            }
        }
    }
}
