//! Queues of a plan and their properties.

use angarium_engine::Overflow;

/// A queue's index in [`Plan::queues`](super::Plan::queues).
pub type QueueIndex = usize;

/// A queue.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// Survives a restart.
    pub durable: bool,
    /// Exclusive: only its consumer's connection declares and uses it.
    pub exclusive: bool,
    /// Auto-delete: deleted with its last consumer.
    pub auto_delete: bool,
    /// `x-message-ttl` in milliseconds.
    pub ttl: Option<u64>,
    /// `x-max-length`.
    pub length_max: Option<u64>,
    /// `x-overflow`.
    pub overflow: Overflow,
    /// The queue that dead letters go to, through the default exchange.
    pub dead_letters_to: Option<QueueIndex>,
    /// `x-max-priority`.
    pub priority_max: Option<u8>,
    /// `x-single-active-consumer`.
    pub single_active: bool,
    /// `x-delivery-limit`.
    pub delivery_limit: Option<u64>,
    /// `x-expires` in milliseconds. Only its lease keeper declares it.
    pub expires: Option<u64>,
    /// Clients purge or delete it, or it is deleted with its connection: messages may be lost.
    pub lossy: bool,
}

impl Queue {
    /// Whether only one client declares and uses it; it may be deleted at any time.
    pub fn is_private(&self) -> bool {
        self.exclusive || self.auto_delete || self.expires.is_some()
    }

    pub(super) fn drops(&self) -> bool {
        let by_rule = self.ttl.is_some()
            || self.delivery_limit.is_some()
            || (self.length_max.is_some() && self.overflow == Overflow::DropHead);
        self.lossy || (by_rule && self.dead_letters_to.is_none())
    }
}
