//! Rules broken on purpose, outside the code under test, to see whether the checks notice.
//!
//! A disk that lies, and a network between node and clients that loses, repeats or swaps messages.

/// Which rule is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Canary {
    /// The disk reports a flush as done before anything is safe: confirm before flush.
    SyncLies,
    /// While the node is down, a block in the middle of the log is cut out and the rest moved up.
    LogCut,
    /// Acknowledgements get lost on their way to the node.
    SettlesLost,
    /// Deliveries arrive twice, neither marked as redelivered.
    DeliveriesRepeated,
    /// Deliveries arrive in another order.
    DeliveriesSwapped,
    /// Publishes of a transaction get lost on their way to the node.
    TransactionsTorn,
    /// Rollbacks become commits.
    RollbacksCommitted,
    /// A delivery's body is altered.
    BodiesAltered,
    /// Consumers' prefetch limits do not reach the node.
    CreditIgnored,
    /// Queues are bound by other keys than their clients asked for.
    BindingsAltered,
    /// Replies get lost on their way to the requester.
    RepliesLost,
    /// `x-expires` does not reach the node.
    LeasesIgnored,
    /// The header `x-delay` of a message does not reach the node.
    DelaysIgnored,
    /// Direct messages arrive twice.
    ReceivedTwice,
    /// Direct messages arrive in another order.
    ReceivedSwapped,
    /// Direct messages get lost.
    ReceivedLost,
    /// A direct message's body, headers, subject or reply subject is altered.
    ReceivedAltered,
    /// Spilled messages are damaged in runs without faults of the spill disk.
    SpillCorrupted,
    /// Subscribers are not told how many messages they missed.
    MissedNotReported,
    /// Queue groups do not reach the node.
    GroupsIgnored,
    /// CONNECT asks for echo on behalf of every client.
    EchoForced,
    /// UNSUB without a limit does not reach the node.
    UnsubscribesLost,
    /// UNSUB with a limit does not reach the node.
    UntilIgnored,
    /// Direct messages to a queue get lost on their way to the node.
    QueueSubjectLost,
    /// 503 answers to requests without a responder get lost.
    NoRespondersLost,
    /// Batches between shards get lost.
    BatchesLost,
    /// Batches of a pair of shards arrive in another order.
    BatchesSwapped,
    /// Clients are not told that they lost sessions.
    SessionNoticesLost,
    /// The node does not learn that sessions are to be recorded.
    SessionRecordsIgnored,
    /// Releases of deliveries reach the node as returns that count.
    ReleasesCounted,
    /// Releases of deliveries get lost on their way to the node.
    ReleasesLost,
    /// Drains are answered before the node has looked for messages.
    DrainsEarly,
    /// Commits are taken for answered when they are asked for: before the flush.
    CommitsEarly,
    /// Rollbacks get lost on their way to the node, and are taken for done.
    RollbacksLost,
    /// Publishes and settles reach the node outside of their transactions.
    TransactionsLeak,
    /// How often deliveries failed does not reach the client.
    CountsLost,
    /// A browse reaches the node as a consumer.
    BrowsesTake,
    /// The packet identifier of a message with QoS 2 is that of another one.
    PacketIdsReused,
    /// PUBCOMP comes though the broker still takes messages of that packet identifier for known ones.
    CompletedEarly,
    /// Retained messages come behind newer ones of their topic.
    RetainedLate,
    /// PONG does not wait until all shards know the subscriptions made before the PING.
    PrematurePong,
}

impl Canary {
    /// Whether the rule can only be broken with several shards.
    pub fn is_between_shards(self) -> bool {
        matches!(self, Canary::BatchesLost | Canary::BatchesSwapped | Canary::PrematurePong)
    }
}

/// Percentage of messages that a canary breaks.
pub(crate) const PERCENT: u64 = 5;
