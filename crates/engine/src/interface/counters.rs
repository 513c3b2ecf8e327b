//! Plain counters, from which metrics are made, and what is named beside them.

use crate::Position;
use std::collections::BTreeMap;

/// By the number of a queue: its messages before this one may have been handed out.
pub type HandedOut = BTreeMap<u64, u64>;

use crate::DeathReason;

/// Why a message is gone for good: no consumer accepted it, and it became no dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiscardReason {
    /// Its time to live passed.
    Expired,
    /// A full queue let go of its oldest.
    MaxLength,
    /// A full queue refused it.
    QueueFull,
    /// A consumer did not want it.
    Rejected,
    /// It went back to its queue too often.
    DeliveryLimit,
    /// Its queue was purged.
    Purged,
    /// Its queue was deleted, or expired.
    QueueDeleted,
    /// No queue took it as a dead letter.
    DeadLetterNotTaken,
    /// As a dead letter it went round in a cycle.
    DeadLetterCycle,
    /// It waited for a session whose user has lost the right to it.
    Forbidden,
}

impl DiscardReason {
    /// All of them.
    pub const ALL: [DiscardReason; 10] = [
        DiscardReason::Expired,
        DiscardReason::MaxLength,
        DiscardReason::QueueFull,
        DiscardReason::Rejected,
        DiscardReason::DeliveryLimit,
        DiscardReason::Purged,
        DiscardReason::QueueDeleted,
        DiscardReason::DeadLetterNotTaken,
        DiscardReason::DeadLetterCycle,
        DiscardReason::Forbidden,
    ];

    /// Its name in metrics and listings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            DiscardReason::Expired => "expired",
            DiscardReason::MaxLength => "max_length",
            DiscardReason::QueueFull => "queue_full",
            DiscardReason::Rejected => "rejected",
            DiscardReason::DeliveryLimit => "delivery_limit",
            DiscardReason::Purged => "purged",
            DiscardReason::QueueDeleted => "queue_deleted",
            DiscardReason::DeadLetterNotTaken => "dead_letter_not_taken",
            DiscardReason::DeadLetterCycle => "dead_letter_cycle",
            DiscardReason::Forbidden => "forbidden",
        }
    }
}

impl From<DeathReason> for DiscardReason {
    fn from(reason: DeathReason) -> DiscardReason {
        match reason {
            DeathReason::Rejected => DiscardReason::Rejected,
            DeathReason::Expired => DiscardReason::Expired,
            DeathReason::MaxLength => DiscardReason::MaxLength,
            DeathReason::DeliveryLimit => DiscardReason::DeliveryLimit,
        }
    }
}

/// How many messages are gone for good, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Discards([u64; DiscardReason::ALL.len()]);

impl<const N: usize> From<[(DiscardReason, u64); N]> for Discards {
    fn from(counts: [(DiscardReason, u64); N]) -> Discards {
        let mut discards = Discards::default();
        counts.into_iter().for_each(|(reason, messages)| discards.add(reason, messages));
        discards
    }
}

impl Discards {
    pub(crate) fn add(&mut self, reason: DiscardReason, messages: u64) {
        self.0[reason as usize] += messages;
    }

    /// How many for that reason.
    #[must_use]
    pub fn of(&self, reason: DiscardReason) -> u64 {
        self.0[reason as usize]
    }

    /// The reasons there were, with how many.
    pub fn iter(&self) -> impl Iterator<Item = (DiscardReason, u64)> + '_ {
        let all = DiscardReason::ALL.into_iter().map(|reason| (reason, self.of(reason)));
        all.filter(|(_, messages)| *messages > 0)
    }
}

/// What happened since the engine was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages that clients published.
    pub published: u64,
    /// Messages handed to home, where they are counted as published; on other shards.
    pub sent_home: u64,
    /// Of those, what their publishers were told to be safe: publishes in confirm mode.
    pub confirmed: u64,
    /// Of those published, what no queue took.
    pub unroutable: u64,
    /// Of those published, what went back because it was mandatory.
    pub returned: u64,
    /// Messages that are gone for good, by reason.
    pub discarded: Discards,
    /// Deliveries, redeliveries included.
    pub delivered: u64,
    /// Deliveries settled as accepted, presettled ones included.
    pub accepted: u64,
    /// Deliveries that went back to their queue.
    pub requeued: u64,
    /// Messages whose time to live passed.
    pub expired: u64,
    /// Messages that a queue's limit pushed out.
    pub dropped: u64,
    /// Of those, what was taken one by one and became no dead letter.
    pub let_go: u64,
    /// Messages that left a queue as dead letters.
    pub dead_lettered: u64,
    /// Dead letters that were dropped because they went round in a cycle.
    pub dead_letter_cycles: u64,
    /// Messages that were written only because memory was short.
    pub spooled: u64,
    /// Messages refused because the journal could not store them.
    pub not_stored: u64,
    /// Records found that cannot be read back: messages, or runs of a queue's index. A queue stops at
    /// such a one.
    pub unreadable: u64,
    /// Messages that were gone when they were read, because a repair of the journal had given them up.
    pub given_up: u64,
    /// Times a queue stopped at such a record while consumers or gets wanted its messages.
    pub queue_stops: u64,
    /// Direct messages that clients published.
    pub emitted: u64,
    /// Direct messages handed to those who subscribe, each counted once for each of them.
    pub direct_delivered: u64,
    /// Direct messages that subscribers missed because they were too far behind.
    pub missed: u64,
    /// Direct messages that neither a subscriber nor a queue took.
    pub direct_undelivered: u64,
    /// Retained messages handed out, each counted once for each replay.
    pub replayed: u64,
    /// Connections refused because their users had as many as they may.
    pub not_admitted: u64,
    /// Claims of sessions that were granted.
    pub session_claims: u64,
    /// Of those, claims of sessions that were there.
    pub session_resumes: u64,
    /// Of those, claims of sessions that another channel held.
    pub session_takeovers: u64,
    /// Publishes that sessions had taken before, by their numbers.
    pub session_duplicates: u64,
    /// Sessions whose time passed while they were detached.
    pub session_expiries: u64,
    /// Channels closed because they did not settle a delivery in time.
    pub settle_timeouts: u64,
    /// Transactions rolled back because they were open for too long.
    pub transaction_timeouts: u64,
}

/// Messages of a queue that were gone when they were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenUp {
    /// The queue's virtual host.
    pub vhost: String,
    /// The queue.
    pub queue: String,
    /// Where the record was that held the message, or a part of the queue's index.
    pub position: Position,
    /// How many messages it was.
    pub messages: u64,
}
