//! What a connection remembers of its subscriptions and transactions.

use angarium_engine::TransactionId;

/// What parts the session, the subscription and the tag in a message's id.
pub(super) const ID_SEPARATOR: &str = "@@";

/// How messages are acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckMode {
    /// Not: they count as taken once they are sent.
    Auto,
    /// Each acknowledgement is one of all messages of the subscription before, too.
    Client,
    /// One by one.
    Individual,
}

/// A subscription.
#[derive(Debug)]
pub(super) struct Subscription {
    /// Its id, if the client has given it one.
    pub(super) id: Option<Box<str>>,
    pub(super) destination: Box<str>,
    /// Names it in message ids: later ones of the same channel have another.
    pub(super) serial: u32,
    pub(super) channel: u16,
    pub(super) ack: AckMode,
    /// What goes where the client does not want it any more.
    pub(super) durable: Option<Durable>,
    /// The last tag that an acknowledgement of all messages before it named.
    pub(super) settled: u64,
    /// It gets messages without a queue.
    pub(super) is_direct: bool,
}

impl Subscription {
    pub(super) fn name_bytes(&self) -> usize {
        let durable = match &self.durable {
            Some(Durable::Named { owner, name }) => {
                name.len() + owner.as_ref().map_or(0, String::len)
            }
            Some(Durable::Queue(name)) => name.len(),
            None => 0,
        };
        self.destination.len() + self.id.as_ref().map_or(0, |id| id.len()) + durable
    }
}

/// What of a subscription outlives its connection.
#[derive(Clone, Debug)]
pub(super) enum Durable {
    /// A named subscription.
    Named { owner: Option<String>, name: String },
    /// A queue that the client has named.
    Queue(String),
}

/// An open transaction.
#[derive(Debug)]
pub(super) struct Transaction {
    pub(super) id: TransactionId,
    /// Of the frames in it: they are carried out with the commit.
    pub(super) receipts: Vec<Box<str>>,
}

impl Transaction {
    pub(super) fn held_bytes(&self) -> usize {
        let receipts = self.receipts.iter().map(|receipt| receipt.len() + size_of::<Box<str>>());
        size_of::<Transaction>() + receipts.sum::<usize>()
    }
}
