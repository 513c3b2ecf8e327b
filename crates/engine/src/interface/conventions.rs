//! What the protocols define and the engine needs: well-known names, and how encoded properties are read.

use crate::interface::name::fnv_1a;
use crate::selector::Filter;
use crate::{Content, ExchangeKind, Format, Value, selector};

/// Visits the headers (name, value) in properties of the given format. Called only where a headers
/// exchange compares them.
pub type ReadHeaders = fn(Format, &[u8], &mut dyn FnMut(&str, Value));

/// A message as filters see it.
#[derive(Clone, Copy, Debug)]
pub struct Selectable<'m> {
    /// The exchange it was (last) published to.
    pub exchange: &'m str,
    /// The routing key it was (last) published with.
    pub routing_key: &'m str,
    /// The message itself.
    pub content: Content<'m>,
    /// Times it went back after a delivery.
    pub delivery_count: u32,
}

/// Gives a property of a message by its name, as selectors know it. Called only where a filter asks for it.
pub type ReadProperty = for<'m> fn(&Selectable<'m>, &str) -> selector::Value<'m>;

/// What the embedding side supplies about the protocols it speaks.
#[derive(Clone, Copy, Debug)]
pub struct Conventions {
    /// The well-known names.
    pub names: Names,
    /// How headers are read.
    pub read_headers: ReadHeaders,
    /// How properties are read by name.
    pub read_property: ReadProperty,
    /// Reads the further routing keys in a message's headers, without those that are hidden from
    /// consumers.
    pub read_further_keys: fn(&Content<'_>) -> Vec<String>,
    /// Reads which group a message belongs to. Called only for queues that heed groups.
    pub read_group: fn(&Content<'_>) -> Option<MessageGroup>,
    /// Whether the time to live of a delayed message counts from when it was sent, and not from the end of
    /// its delay.
    pub lives_from_sending: fn(Format) -> bool,
    /// Whether a message goes to one receiver exactly once, who gets it even if others could sooner. Called
    /// only for messages of shared queues.
    pub is_exactly_once: fn(&Content<'_>) -> bool,
}

/// The group of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageGroup {
    /// Stands for its name.
    pub(crate) hash: u64,
    /// The group ends with this message: one of the same name may go to another consumer.
    pub(crate) ends: bool,
}

impl MessageGroup {
    /// The group of that name; its message of sequence number -1 is the last one.
    #[must_use]
    pub fn new(name: &str, sequence: Option<i64>) -> MessageGroup {
        MessageGroup { hash: fnv_1a(name.as_bytes()), ends: sequence == Some(-1) }
    }
}

impl Conventions {
    /// Whether a filter selects a message.
    pub(crate) fn select(&self, filter: &Filter, message: &Selectable<'_>) -> bool {
        filter.selector().matches(&|name: &str| (self.read_property)(message, name))
    }
}

/// An exchange that every virtual host has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PredeclaredExchange {
    /// Its name.
    pub name: &'static str,
    /// How it routes.
    pub kind: ExchangeKind,
}

/// Names that clients know: of exchanges, addresses, and what the broker makes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names {
    /// The exchanges of every virtual host beside the default one, which has no name.
    pub predeclared: &'static [PredeclaredExchange],
    /// The one of them whose routing keys are the subjects of direct messages.
    pub subject_exchange: &'static str,
    /// The name under which permission patterns see the default exchange.
    pub default_exchange: &'static str,
    /// Exchange names that begin so belong to the broker.
    pub reserved_prefix: &'static str,
    /// What made-up queue names begin with.
    pub queue_prefix: &'static str,
    /// What the names of queues of durable named subscriptions begin with.
    pub durable_subscription_prefix: &'static str,
    /// What those of other named subscriptions begin with.
    pub volatile_subscription_prefix: &'static str,
    /// What the names of queues of sessions begin with.
    pub session_queue_prefix: &'static str,
    /// What the names of queues begin with that sessions share.
    pub shared_queue_prefix: &'static str,
    /// What made-up consumer names begin with.
    pub consumer_prefix: &'static str,
    /// What the addresses of inboxes begin with.
    pub inbox_prefix: &'static str,
    /// What the subjects begin with on which client libraries wait for answers.
    pub answer_prefix: &'static str,
    /// The binding argument that says how a headers exchange compares.
    pub match_argument: &'static str,
    /// Binding arguments that begin so are compared only where the mode asks for it.
    pub extension_prefix: &'static str,
}

impl Names {
    /// Whether a subject is the address that a requester made up to wait for an answer.
    #[must_use]
    pub fn is_answer_address(&self, subject: &str) -> bool {
        subject.starts_with(self.answer_prefix) || subject.starts_with(self.inbox_prefix)
    }
}
