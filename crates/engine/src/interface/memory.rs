//! What peers can make grow in memory, by kind, and how much of it one connection holds.

/// What memory is held for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemoryKind {
    /// Input that waits: unfinished messages, frames that have not arrived whole.
    Input,
    /// Output that is not sent.
    Output,
    /// Messages on their way to very many queues or subscribers.
    Fanouts,
    /// Publishes and settles that wait for a commit.
    Transactions,
    /// Deliveries that are not settled, besides their messages.
    Unsettled,
    /// Subscriptions to subjects.
    Subscriptions,
    /// Connections, channels and consumers.
    Channels,
    /// Queues, exchanges and bindings, with their arguments and patterns.
    Definitions,
    /// Messages of queues, delayed ones included, and what waits to be written to the journal.
    Messages,
    /// Messages that wait to be spooled.
    Spooled,
}

impl MemoryKind {
    /// All of them with their names, in the order of their numbers.
    pub const NAMES: [(MemoryKind, &'static str); 10] = [
        (MemoryKind::Input, "input"),
        (MemoryKind::Output, "output"),
        (MemoryKind::Fanouts, "fanouts"),
        (MemoryKind::Transactions, "transactions"),
        (MemoryKind::Unsettled, "unsettled"),
        (MemoryKind::Subscriptions, "subscriptions"),
        (MemoryKind::Channels, "channels"),
        (MemoryKind::Definitions, "definitions"),
        (MemoryKind::Messages, "messages"),
        (MemoryKind::Spooled, "spooled"),
    ];
}

/// Bytes by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldMemory(pub [u64; MemoryKind::NAMES.len()]);

impl HeldMemory {
    /// The bytes of one kind.
    #[must_use]
    pub fn get(&self, kind: MemoryKind) -> u64 {
        self.0[kind as usize]
    }

    /// Adds bytes of one kind.
    pub fn add(&mut self, kind: MemoryKind, bytes: u64) {
        self.0[kind as usize] += bytes;
    }

    /// The bytes of all kinds.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.0.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_listed_by_their_numbers() {
        for (at, (kind, _)) in MemoryKind::NAMES.into_iter().enumerate() {
            assert_eq!(kind as usize, at);
        }
    }
}
