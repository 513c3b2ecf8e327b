//! Consumers: who takes from which queue, and how much may be out.

mod barred;
mod browse;
pub(crate) mod browsers;
pub(crate) mod channel_consumers;
mod consume;
pub(crate) mod credit;
pub(crate) mod deferred_settle;
pub(crate) mod dispatch;
pub(crate) mod drain_pacing;
pub(crate) mod filtered;
mod grant;
mod grouped;
mod handed_out;
pub(crate) mod message_groups;
pub(crate) mod read_beside;
mod selection;
mod selection_reading;
mod sending;
mod settle;
mod settle_timeout;
pub(crate) mod unsettled;

use self::credit::Account;
use crate::Outcome;
use std::time::Duration;

/// Stands for the channel of a consumer whose channel has closed.
pub(crate) const NO_CHANNEL: u32 = u32::MAX;

/// A channel's wish to take messages from a queue.
#[derive(Debug)]
pub(crate) struct Consumer {
    /// Tells it from others that had its slot.
    pub(crate) incarnation: u32,
    /// The slot of its channel, or [`NO_CHANNEL`].
    pub(crate) channel: u32,
    /// The slot of its queue.
    pub(crate) queue: u32,
    pub(crate) name: String,
    pub(crate) presettled: bool,
    pub(crate) exclusive: bool,
    pub(crate) priority: i32,
    /// Of which group of its queue it is, if it takes only some messages.
    pub(crate) group: Option<u32>,
    /// What its filter takes in memory.
    pub(crate) filter_bytes: u64,
    pub(crate) account: Account,
    /// It gets only what it was granted.
    pub(crate) is_granted: bool,
    /// How many deliveries it may have had, and how many it has had.
    pub(crate) up_to: u64,
    pub(crate) delivered: u64,
    /// It is to be told when there is nothing more to deliver.
    pub(crate) drains: bool,
    /// What becomes of its unsettled deliveries when it ends.
    pub(crate) on_close: Outcome,
    pub(crate) on_loss: Outcome,
    /// How long its deliveries may stay unsettled, where it says so itself.
    pub(crate) settle_timeout: Option<Duration>,
    /// It is in its queue's list of those able to take messages.
    pub(crate) is_able: bool,
    /// It is served from the next dispatch on, so that the answer to its request comes first.
    pub(crate) is_started: bool,
}
