//! Channels: ordered streams of publishes and settles, with confirms, transactions and an inbox.

pub(crate) mod client_names;
mod commit;
pub(crate) mod confirms;
mod lifecycle;
pub(crate) mod pauses;
pub(crate) mod places;
pub(crate) mod transaction;
mod transactions;

use self::confirms::Confirms;
use self::transaction::ChannelPlace;
use crate::access::Grant;
use crate::consumer::channel_consumers::ChannelConsumers;
use crate::consumer::credit::Account;
use crate::consumer::unsettled::Unsettled;
use crate::interface::refusal::refuse;
use crate::lifetime::Hold;
use crate::pubsub::Subscribers;
use crate::{CancelReason, ChannelId, Position, Refusal, Reply, Time, TransactionId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// A connection: who it is, and its channels.
#[derive(Debug)]
pub(crate) struct Connection {
    /// What it may do; `None` for the host's own, which may do everything.
    pub(crate) grant: Option<Grant>,
    pub(crate) vhost: u32,
    /// What its client calls itself.
    pub(crate) client: Option<Arc<str>>,
    /// Its channels: number and slot, by number.
    pub(crate) channels: Vec<(u16, u32)>,
    /// The numbers of queues that it has to itself.
    pub(crate) exclusive: BTreeSet<u64>,
    /// The slots of the transactions that it has open.
    pub(crate) transactions: BTreeMap<TransactionId, u32>,
    pub(crate) last_transaction: u64,
    /// It counts as one of its user's and of its virtual host's.
    pub(crate) is_counted: bool,
    /// It, or its user, holds as much memory as it may: what would make it hold more is refused.
    pub(crate) is_short: bool,
    /// Home knows it, where this is another shard.
    pub(crate) is_at_home: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Channel {
    pub(crate) id: ChannelId,
    /// The slot of its connection's virtual host.
    pub(crate) vhost: u32,
    pub(crate) next_tag: u64,
    pub(crate) unsettled: Unsettled,
    /// Credit over all its consumers.
    pub(crate) account: Account,
    /// Deliveries may go out.
    pub(crate) flow: bool,
    pub(crate) consumers: ChannelConsumers,
    /// What the filters of its consumers and browsers take in memory.
    pub(crate) filter_bytes: u64,
    pub(crate) subscribers: Subscribers,
    /// A consumer was held up by something that concerns the whole channel.
    pub(crate) is_held_up: bool,
    pub(crate) confirms: Option<Confirms>,
    /// It is in the engine's list of channels that have something to tell or to wait for.
    pub(crate) is_confirming: bool,
    /// The slot of its own transaction, which takes all that names no other.
    pub(crate) transaction: Option<u32>,
    /// What is not answered yet, in the order of the requests: commits and changes that have to survive a
    /// restart, work that takes several turns, and what was asked for behind them.
    pub(crate) unanswered: VecDeque<(After, Result<Reply, Refusal>)>,
    /// Names of consumers that have ended with their queues, which it has not been told yet.
    pub(crate) cancelled: Vec<(String, CancelReason)>,
    pub(crate) inbox: Option<Box<Inbox>>,
    /// What it holds of temporary queues and topics.
    pub(crate) holds: Vec<Hold>,
    /// The slots of queues of which it waits for one message, each as often as it does.
    pub(crate) gets: Vec<u32>,
    /// When the timer for settles goes off.
    pub(crate) settle_timer: Option<Time>,
    /// Tells it from others that had its slot.
    pub(crate) incarnation: u32,
    /// What tells it from an earlier channel of its number, where home knows it; else 0.
    pub(crate) opening: u32,
}

/// What an answer waits for, beside those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    Nothing,
    /// The record at that position is to be flushed.
    Flush(Position),
    /// The work of that number, which takes several turns, is to be done.
    Work(u64),
}

impl After {
    /// Whether that is over, where everything before `position` is flushed.
    pub(crate) fn is_over(self, flushed: Position) -> bool {
        match self {
            After::Nothing => true,
            After::Flush(position) => position < flushed,
            After::Work(_) => false,
        }
    }
}

/// A channel's own address.
#[derive(Debug)]
pub(crate) struct Inbox {
    pub(crate) address: String,
    /// The consumer name that deliveries carry.
    pub(crate) name: String,
}

impl Channel {
    pub(crate) fn new(id: ChannelId, vhost: u32, incarnation: u32) -> Channel {
        Channel { id, vhost, incarnation, next_tag: 1, flow: true, ..Channel::default() }
    }

    /// The slot of its own transaction; refused where it has none.
    pub(crate) fn own_transaction(&self) -> Result<u32, Refusal> {
        let Some(transaction) = self.transaction else {
            refuse!(PreconditionFailed, "the channel has no transaction");
        };
        Ok(transaction)
    }

    /// Itself, in its slot.
    pub(crate) fn place(&self, slot: u32) -> ChannelPlace {
        ChannelPlace { slot, incarnation: self.incarnation }
    }

    /// One of its gets of the queue in that slot is answered.
    pub(crate) fn waits_no_more_for(&mut self, queue: u32) {
        if let Some(at) = self.gets.iter().position(|other| *other == queue) {
            self.gets.swap_remove(at);
        }
    }

    #[inline]
    pub(crate) fn take_tag(&mut self) -> u64 {
        let tag = self.next_tag;
        self.next_tag += 1;
        tag
    }
}
