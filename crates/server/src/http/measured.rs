//! What metrics show, except single queues: counted by each shard, named in one row each.

use crate::reactor::{self, Shard};
use angarium_engine::HeldMemory;
use angarium_journal::State;
use angarium_node::{SpillLoss, SpillStats};

/// What one shard has counted.
#[derive(Clone, Debug, Default)]
pub(super) struct Measured {
    pub(super) reactor: reactor::Counters,
    pub(super) node: angarium_node::Stats,
    pub(super) engine: angarium_engine::Counters,
    /// Home's; the others have none.
    pub(super) state: Option<State>,
    pub(super) journal: angarium_journal::Stats,
    pub(super) spill: SpillStats,
    /// Messages that were to wait on the disk and were missed, by [`SpillLoss`].
    pub(super) spill_missed: [u64; SpillLoss::ALL.len()],
    pub(super) queues: usize,
    /// Sessions now, held or not.
    pub(super) sessions: usize,
    /// Retained messages, and their bytes.
    pub(super) retained: (usize, u64),
    /// Clients that are too slow now.
    pub(super) slow_consumers: u64,
    pub(super) slow_consumer_episodes: u64,
    /// What clients hold in memory, by kind.
    pub(super) held: HeldMemory,
    /// Connections that hold more than they may.
    pub(super) memory_short: u64,
}

/// A metric: its name, what it counts, and its value.
pub(super) type Series = (&'static str, &'static str, fn(&Measured) -> u64);

/// A name that is longer than the others.
const SLOW_STEPS: &str = "angarium_reactor_slow_steps_microseconds";
const STALLED: &str = "angarium_stalled_disconnected";
const DISCONNECTED: &str = "angarium_slow_consumers_disconnected";

/// What has happened. Names are without the `_total` that the format appends.
pub(super) const COUNTERS: &[Series] = &[
    ("angarium_connections_accepted", "Connections accepted.", |it| it.node.connections_total),
    ("angarium_connections_refused", "Refused: too many, of all or of one user.", |it| {
        it.reactor.refused + it.engine.not_admitted
    }),
    ("angarium_tls_failures", "Failed handshakes.", |it| it.reactor.handshakes_failed),
    ("angarium_login_failures", "Wrong credentials.", |it| it.node.authentications_failed),
    ("angarium_received_bytes", "Bytes from clients.", |it| it.node.received_bytes),
    ("angarium_sent_bytes", "Bytes to clients.", |it| it.node.sent_bytes),
    ("angarium_messages_published", "Messages in.", |it| it.engine.published),
    ("angarium_messages_confirmed", "Told to be safe.", |it| it.engine.confirmed),
    ("angarium_messages_unroutable", "No queue took them.", |it| it.engine.unroutable),
    ("angarium_messages_returned", "Given back: mandatory.", |it| it.engine.returned),
    ("angarium_messages_delivered", "Messages out.", |it| it.engine.delivered),
    ("angarium_messages_accepted", "Settled as accepted.", |it| it.engine.accepted),
    ("angarium_messages_requeued", "Back to their queue.", |it| it.engine.requeued),
    ("angarium_settle_timeouts", "Channels closed for it.", |it| it.engine.settle_timeouts),
    ("angarium_transaction_timeouts", "Rolled back for it.", |it| it.engine.transaction_timeouts),
    ("angarium_session_claims", "Sessions claimed.", |it| it.engine.session_claims),
    ("angarium_session_resumes", "Of those, resumed.", |it| it.engine.session_resumes),
    ("angarium_session_takeovers", "Taken over.", |it| it.engine.session_takeovers),
    ("angarium_session_expiries", "Sessions expired.", |it| it.engine.session_expiries),
    ("angarium_retained_messages_replayed", "To who subscribes.", |it| it.engine.replayed),
    ("angarium_session_duplicates", "Published twice.", |it| it.engine.session_duplicates),
    ("angarium_messages_expired", "Their time passed.", |it| it.engine.expired),
    ("angarium_messages_dropped", "Pushed out by limits.", |it| it.engine.dropped),
    ("angarium_messages_dead_lettered", "Dead letters.", |it| it.engine.dead_lettered),
    ("angarium_messages_spooled", "Written for memory.", |it| it.engine.spooled),
    ("angarium_messages_not_stored", "Refused by the disk.", |it| it.engine.not_stored),
    ("angarium_records_unreadable", "Not read back.", |it| it.engine.unreadable),
    ("angarium_messages_given_up", "Gone by a repair.", |it| it.engine.given_up),
    ("angarium_queue_stops", "Queues stopped by those.", |it| it.engine.queue_stops),
    ("angarium_journal_records", "Records appended.", |it| it.journal.records),
    ("angarium_journal_flushes", "Flushes.", |it| it.journal.flushes),
    ("angarium_journal_flushed_bytes", "Bytes written.", |it| it.journal.flushed_bytes),
    ("angarium_journal_checkpoints", "Checkpoints.", |it| it.journal.checkpoints),
    ("angarium_reactor_turns", "Turns of the loop.", |it| it.reactor.turns),
    ("angarium_reactor_held_up_steps", "Without a processor.", |it| it.reactor.held_up_steps),
    ("angarium_reactor_slow_steps", "Of more than 1 ms.", |it| it.reactor.slow_steps),
    (SLOW_STEPS, "What they took together.", |it| it.reactor.slow_step_micros),
    ("angarium_direct_published", "Direct messages in.", |it| it.engine.emitted),
    ("angarium_direct_delivered", "Direct messages out.", |it| it.engine.direct_delivered),
    ("angarium_direct_missed", "Missed by slow clients.", |it| it.engine.missed),
    ("angarium_direct_undelivered", "Without a subscriber.", |it| it.engine.direct_undelivered),
    ("angarium_slow_consumer_episodes", "Times a client was too slow.", |it| {
        it.slow_consumer_episodes
    }),
    (DISCONNECTED, "Disconnected for it.", |it| it.node.slow_consumers_disconnected),
    (STALLED, "Disconnected: took nothing for long.", |it| it.node.stalled_disconnected),
    ("angarium_memory_pauses", "Times a client waited for memory.", |it| it.node.memory_pauses),
    ("angarium_memory_refusals", "Times it was refused then.", |it| it.node.memory_refusals),
    ("angarium_spill_messages", "Messages spooled for slow clients.", |it| it.spill.messages),
    ("angarium_spill_failures", "Chunks of them lost by the disk.", |it| it.spill.failures),
    ("angarium_throttled", "Times a client was read from later.", |it| it.node.throttled),
    ("angarium_floods_paused", "Times a flood was.", |it| it.node.floods_paused),
];

/// How things are.
pub(super) const GAUGES: &[Series] = &[
    ("angarium_connections", "Connections now.", |it| it.node.connections),
    ("angarium_queues", "Queues now.", |it| it.queues as u64),
    ("angarium_sessions", "Sessions now, held or not.", |it| it.sessions as u64),
    ("angarium_retained_messages", "Retained messages now.", |it| it.retained.0 as u64),
    ("angarium_retained_bytes", "Bytes of retained messages.", |it| it.retained.1),
    ("angarium_journal_backlog_bytes", "Not yet written.", |it| it.journal.backlog_bytes),
    ("angarium_journal_disk_bytes", "Size of its files.", |it| it.journal.disk_bytes),
    ("angarium_journal_segments", "Files with records.", |it| it.journal.segments),
    ("angarium_memory_short_connections", "Hold more than they may.", |it| it.memory_short),
    ("angarium_slow_consumers", "Clients that are too slow now.", |it| it.slow_consumers),
    ("angarium_spill_slow_consumers", "Clients with spooled messages.", |it| {
        it.spill.slow_consumers
    }),
    ("angarium_spill_bytes", "Bytes of spooled messages.", |it| it.spill.bytes),
];

/// Looks it up, on the shard's thread.
pub(super) fn measured(shard: &mut Shard) -> Measured {
    let node = &shard.node;
    let journal = node.is_home().then(|| node.journal());
    let (slow_consumers, slow_consumer_episodes) = node.slow_consumer_episodes();
    Measured {
        reactor: shard.counters.clone(),
        node: node.stats(),
        engine: node.engine().counters(),
        state: journal.map(|journal| journal.state().clone()),
        journal: journal.map(|journal| journal.stats()).unwrap_or_default(),
        spill: node.spill().stats(),
        spill_missed: SpillLoss::ALL.map(|loss| node.spill().missed(loss)),
        queues: node.engine().list_vhosts().map(|vhost| vhost.queues).sum(),
        sessions: node.engine().session_count(),
        retained: node.engine().retained(),
        slow_consumers,
        slow_consumer_episodes,
        held: node.held_memory(),
        memory_short: node.memory_short_connections(),
    }
}

/// Memory of the process, from the kernel.
pub(super) fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}
