//! What exchanges and queues are declared with beside their names.

use crate::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// Arguments of a binding.
pub type Arguments = BTreeMap<String, Value>;

/// How an exchange routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExchangeKind {
    /// To bindings whose key equals the routing key.
    Direct,
    /// To every binding.
    Fanout,
    /// To bindings whose pattern matches: words parted by dots, `*` one word, `#` any number.
    Topic,
    /// To bindings whose arguments match the headers: `x-match` = all | any | all-with-x | any-with-x.
    Headers,
    /// To bindings whose filter selects the message, whatever its key; each binding has one.
    Filtered,
}

/// What an exchange is declared with beside its name.
#[derive(Clone, Debug, PartialEq)]
pub struct ExchangeOptions {
    /// How it routes.
    pub kind: ExchangeKind,
    /// Messages with a delay are held back before they are routed (`x-delayed-message`).
    pub delaying: bool,
    /// Survives a restart.
    pub durable: bool,
    /// Goes when its last binding as a source goes.
    pub auto_delete: bool,
    /// Clients cannot publish to it; only exchanges can.
    pub internal: bool,
    /// The exchange for messages that no binding takes, resolved when one is routed.
    pub alternate: Option<String>,
}

/// The types of queues that clients ask for. Both are the same kind of queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueType {
    /// The default.
    #[default]
    Classic,
    /// Replicated, where there are replicas.
    Quorum,
}

/// What becomes of a message for a full queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// The oldest goes (dead-lettered with reason max-length).
    #[default]
    DropHead,
    /// The new one is refused: its publisher gets a negative confirm.
    RejectPublish,
    /// As `RejectPublish`, and the new one is dead-lettered.
    RejectPublishDeadLetter,
}

/// What the persistent messages of a durable queue survive, and so what a confirm of them waits
/// for. The strongest is the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Confirmed once flushed to the disk: they survive whatever the disk survives.
    #[default]
    Flushed,
    /// Confirmed once in the journal's batch, which is written soon and flushed with the next
    /// flush. They survive an orderly restart. A process crash loses what was not written, a
    /// machine crash what was not flushed.
    Buffered,
    /// They are stored only where memory is short, and survive nothing, not even an orderly
    /// restart.
    Memory,
}

/// What a queue is declared with beside its name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueOptions {
    /// Survives a restart, with its persistent messages.
    pub durable: bool,
    /// How well those are kept.
    pub durability: Durability,
    /// Only its connection may use it; goes with that connection.
    pub exclusive: bool,
    /// Goes when its last consumer goes.
    pub auto_delete: bool,
    /// Time to live of its messages.
    pub message_ttl: Option<Duration>,
    /// Goes after this long without use (consumer, get, redeclaration).
    pub expires: Option<Duration>,
    /// Most messages ready in it.
    pub length_max: Option<u64>,
    /// Most payload bytes ready in it.
    pub bytes_max: Option<u64>,
    /// What happens beyond them.
    pub overflow: Overflow,
    /// Where dead letters go; resolved when one is routed.
    pub dead_letter_exchange: Option<String>,
    /// With which routing key; `None`: their own.
    pub dead_letter_routing_key: Option<String>,
    /// Highest priority it tells apart; `None`: priorities are ignored.
    pub priority_max: Option<u8>,
    /// One of its consumers gets everything until it goes.
    pub single_active: bool,
    /// Messages of one group go to the same consumer, in order.
    pub message_groups: bool,
    /// Requeues after which a message is dead-lettered; `None`: the default limit; `u32::MAX`: no limit.
    pub delivery_limit: Option<u32>,
    /// How long a delivery may stay unsettled before its channel is closed; `None`: the default.
    pub settle_timeout: Option<Duration>,
    /// What its declarer asks for.
    pub queue_type: QueueType,
    /// It is a log: it keeps messages for sessions that are detached. Only the engine makes one.
    pub is_log: bool,
    /// Arguments that are accepted and change nothing, kept for display.
    pub other: Arguments,
}
