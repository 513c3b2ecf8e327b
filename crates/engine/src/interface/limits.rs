//! Every bound of the engine, in one place, with its default.

use crate::{Arguments, Refusal, RefusalKind, Value};
use std::time::Duration;

/// What a message counts for besides its body: so it is the number of them, too, that is bounded.
pub(crate) const MESSAGE_BYTES: u64 = 256;

/// Shards of one broker: what fits a set of one word.
pub const SHARDS_MAX: usize = 64;
/// Bytes in a name (queue, exchange, routing key, consumer): what fits a one-byte length.
pub const NAME_BYTES_MAX: usize = 255;
/// Bytes in the subject of a direct message, or of what subscribes to one.
pub const SUBJECT_BYTES_MAX: usize = 4096;
/// Patterns in one list of a user's rules on subjects.
pub const SUBJECT_RULES_MAX: usize = 1024;
/// Subjects that a virtual host remembers the subscribers of.
pub const SUBJECT_CACHE_ENTRIES_MAX: usize = 8192;
/// Patterns of all subjects that a virtual host remembers, together; a sixteenth of it of one.
pub const SUBJECT_CACHE_LEAVES_MAX: usize = 262_144;
/// Changes to patterns with wildcards that a remembered subject is brought up to date by; behind more,
/// it is looked up anew.
pub const SUBJECT_CHANGES_KEPT: usize = 64;
/// Bytes in a session's name.
pub const SESSION_NAME_BYTES_MAX: usize = 1024;
/// Bytes that a protocol keeps with a session.
pub const SESSION_STATE_BYTES_MAX: usize = 1024;
/// Highest message priority a queue can be declared with.
pub const PRIORITY_MAX: u8 = 255;
/// Words in a pattern of a topic exchange, and in a subject that is subscribed to. A routing key has no
/// such bound of its own: its length has one, and matching costs no more than words times matching
/// nodes.
pub const TOPIC_WORDS_MAX: usize = 128;
/// How deep values of arguments may be nested in each other.
pub const VALUE_DEPTH_MAX: usize = 64;
/// Exchanges a message passes from exchange to exchange before routing stops.
pub const ROUTE_EXCHANGES_MAX: usize = 1024;
/// Routes (exchange and key) that a virtual host remembers.
pub const ROUTE_CACHE_ENTRIES_MAX: usize = 4096;
/// Queues in all remembered routes of a virtual host; a sixteenth of it in one.
pub const ROUTE_CACHE_QUEUES_MAX: usize = 65_536;
/// Dead letters that lead to dead letters at once, when full queues pass them on to each other.
pub const DEAD_LETTER_DEPTH_MAX: u32 = 16;
/// Entries of a dead letter's history that are taken over from who publishes it anew: many more than
/// a broker makes.
pub const DEATHS_SENT_MAX: usize = 64;
/// Bytes in a permission pattern.
pub const PERMISSION_PATTERN_BYTES_MAX: usize = 4096;
/// Bytes that a compiled permission pattern may take.
pub const PERMISSION_PROGRAM_BYTES_MAX: usize = 1 << 20;

/// Limits an operator can set. Reaching one is a [`crate::RefusalKind::LimitExceeded`].
#[derive(Clone, Debug)]
pub struct Limits {
    /// Virtual hosts.
    pub vhosts_max: usize,
    /// Queues per virtual host.
    pub queues_max: usize,
    /// Exchanges per virtual host.
    pub exchanges_max: usize,
    /// Bindings per virtual host.
    pub bindings_max: usize,
    /// Consumers per channel.
    pub consumers_max: usize,
    /// Connections of one user.
    pub user_connections_max: u64,
    /// Subjects that one channel subscribes to.
    pub subscriptions_max: usize,
    /// Subjects that all channels of one user subscribe to.
    pub user_subscriptions_max: u64,
    /// Sessions in all, each of which takes some 300 bytes of memory and its name and state.
    pub sessions_max: usize,
    /// Sessions per virtual host.
    pub vhost_sessions_max: usize,
    /// Sessions of one user.
    pub user_sessions_max: usize,
    /// Longest time for which a session may live on without a holder; `None`: any, also for ever. One that
    /// asks for more is granted this.
    pub session_expiry_max: Option<Duration>,
    /// Unsettled deliveries per channel when the client set no credit of its own.
    pub unsettled_max: u32,
    /// Settles of many deliveries at once, and those of a channel that ends, that are carried out before
    /// others get their turn.
    pub settles_at_once: usize,
    /// Messages of what was purged or deleted whose memory and records are given back before others get
    /// their turn.
    pub given_back_at_once: usize,
    /// Messages of one load that a queue takes in before others get their turn; no more than it may hand out
    /// at once where it is held to `backlog_bytes_per_second`. At least 1.
    pub loaded_at_once: usize,
    /// Messages that are looked at for a checkpoint before others get their turn.
    pub snapshot_at_once: usize,
    /// Bytes of direct messages that one turn hands out: each subscriber counts for the message
    /// and 128 bytes more. Each queue beyond the first counts for 4 KiB where it stores the
    /// message; where a consumer takes it immediately, for four times the body, or 1 KiB if
    /// that is more.
    pub handed_at_once: u64,
    /// Bytes of a message body.
    pub body_bytes_max: u64,
    /// Bytes from which a body is large: all holders of the message share it.
    pub large_body_bytes: usize,
    /// Publishes and settles in one transaction.
    pub transaction_operations_max: usize,
    /// Bytes of payload that one transaction holds until it is committed.
    pub transaction_bytes_max: u64,
    /// Bytes of payload of all queues together that stay in memory; beyond it messages spool.
    pub resident_bytes_max: u64,
    /// Bytes of payload that one queue keeps in memory before its further messages spool.
    pub queue_resident_bytes_max: u64,
    /// Bytes a second that one queue hands out of what has waited in it, besides what comes in, while others
    /// are served; a message counts for 256 bytes more than its body. At least 1.
    pub backlog_bytes_per_second: u64,
    /// Messages that memory holds nothing of but their places, and whose places are left to the journal
    /// together; at least 1.
    pub page_entries: usize,
    /// Messages that are held back until they are due, all together; each costs some 70 bytes of
    /// memory besides its payload. One more is refused as if it could not be stored.
    pub delayed_max: usize,
    /// Longest time a message may be delayed.
    pub delay_max: Duration,
    /// Longest message or queue time to live.
    pub ttl_max: Duration,
    /// How long a delivery may stay unsettled before it returns to its queue.
    pub settle_timeout: Duration,
    /// Requeues after which a message is dead-lettered, for queues that set no limit of their own;
    /// `None`: never.
    pub delivery_limit: Option<u32>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            vhosts_max: 1_000,
            queues_max: 100_000,
            exchanges_max: 100_000,
            bindings_max: 10_000_000,
            consumers_max: 10_000,
            user_connections_max: u64::MAX,
            subscriptions_max: 1_000_000,
            user_subscriptions_max: u64::MAX,
            sessions_max: 1_000_000,
            vhost_sessions_max: 1_000_000,
            user_sessions_max: 1_000_000,
            session_expiry_max: None,
            unsettled_max: 1_000_000,
            settles_at_once: 1024,
            given_back_at_once: 4096,
            loaded_at_once: 512,
            snapshot_at_once: 2048,
            handed_at_once: 4 << 20,
            body_bytes_max: 128 << 20,
            large_body_bytes: 64 << 10,
            transaction_operations_max: 100_000,
            transaction_bytes_max: 128 << 20,
            resident_bytes_max: 128 << 20,
            queue_resident_bytes_max: 32 << 20,
            backlog_bytes_per_second: 128 << 20,
            page_entries: 1024,
            delayed_max: 4_000_000,
            delay_max: Duration::from_secs(365 * 86_400),
            ttl_max: Duration::from_secs(100 * 365 * 86_400),
            settle_timeout: Duration::from_secs(30 * 60),
            delivery_limit: None,
        }
    }
}

/// Refuses a name that does not fit; `what` says whose it is.
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), Refusal> {
    if name.len() > NAME_BYTES_MAX {
        let text = format!("{what} name of {} bytes is longer than {NAME_BYTES_MAX}", name.len());
        return Err(Refusal::new(RefusalKind::LimitExceeded, text));
    }
    Ok(())
}

/// Refuses arguments that a record could not bring back.
pub(crate) fn check_arguments(arguments: &Arguments) -> Result<(), Refusal> {
    if arguments.values().all(|value| fits_depth(value, VALUE_DEPTH_MAX)) {
        return Ok(());
    }
    let text = format!("arguments are nested more than {VALUE_DEPTH_MAX} deep");
    Err(Refusal::new(RefusalKind::LimitExceeded, text))
}

/// Whether values are nested in the value at most `depth` deep.
fn fits_depth(value: &Value, depth: usize) -> bool {
    let fits = |value| depth > 0 && fits_depth(value, depth - 1);
    match value {
        Value::List(values) => values.iter().all(fits),
        Value::Map(values) => values.values().all(fits),
        _ => true,
    }
}
