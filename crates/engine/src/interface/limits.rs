//! Every bound of the engine, in one place, with its default.

use crate::interface::refusal::refuse;
use crate::{Arguments, Refusal, Value};
use std::time::Duration;

/// What a message counts for besides its body: so it is the number of them, too, that is bounded.
pub(crate) const MESSAGE_BYTES: u64 = 256;

/// Shards of one broker: what fits a set of one word.
pub const SHARDS_MAX: usize = 64;
/// Bytes in a name (queue, exchange, consumer): what fits a one-byte length.
pub const NAME_BYTES_MAX: usize = 255;
/// Bytes in a routing key, and in the key of a binding. Some protocols have no room for keys as long.
pub const KEY_BYTES_MAX: usize = 4096;
/// Further routing keys of a message.
pub const FURTHER_KEYS_MAX: usize = 255;
/// Bytes that one settle may add to messages that go back, and that one message may have of them.
pub const ANNOTATION_BYTES_MAX: usize = 4 << 10;
/// The same of all messages of a queue: what is added beyond it is not kept.
pub const QUEUE_ANNOTATION_BYTES_MAX: u64 = 4 << 20;
/// Bytes in the subject of a direct message, or of what subscribes to one.
pub const SUBJECT_BYTES_MAX: usize = 4096;
/// Patterns in one list of a user's rules on subjects.
pub const SUBJECT_RULES_MAX: usize = 1024;
/// Exchanges, beside that of subjects, whose routing keys are narrowed for one user in a virtual host.
pub const NARROWED_EXCHANGES_MAX: usize = 64;
/// Subjects that a virtual host remembers the subscribers of.
pub const SUBJECT_CACHE_ENTRIES_MAX: usize = 8192;
/// Patterns of all subjects that a virtual host remembers, together; a sixteenth of it of one.
pub const SUBJECT_CACHE_LEAVES_MAX: usize = 262_144;
/// Changes to patterns with wildcards that a remembered subject is brought up to date by; after more,
/// it is looked up again.
pub const SUBJECT_CHANGES_KEPT: usize = 64;
/// Bytes in a session's name.
pub const SESSION_NAME_BYTES_MAX: usize = 1024;
/// Bytes in the name of a named subscription, in that of its owner, and in that of a holder.
pub const SUBSCRIPTION_NAME_BYTES_MAX: usize = 1024;
/// Bytes in the name of a place that a client has once.
pub const PLACE_BYTES_MAX: usize = 1280;
/// Keys that one named subscription binds.
pub const SUBSCRIPTION_KEYS_MAX: usize = 1024;
/// Bytes that a protocol keeps with a session.
pub const SESSION_STATE_BYTES_MAX: usize = 1024;
/// Bytes in the key of a session's attribute.
pub const SESSION_ATTRIBUTE_KEY_BYTES_MAX: usize = 4096;
/// Attributes of one session.
pub const SESSION_ATTRIBUTES_MAX: usize = 100_000;
/// Bytes in the keys and values of all attributes of one session.
pub const SESSION_ATTRIBUTES_BYTES_MAX: usize = 1 << 20;
/// Bytes in the payload and the properties of a will.
pub const SESSION_WILL_BYTES_MAX: usize = 128 << 10;
/// Numbers of publishes that one session does not take again.
pub const SESSION_NUMBERS_MAX: usize = 65_535;
/// How far ahead of a place that is in use a session's queue hands out others: as many as protocols can tell
/// apart by numbers of 16 bits, of which 0 is none.
pub const SESSION_PLACES_MAX: u64 = 65_535;
/// Highest message priority a queue can be declared with.
pub const PRIORITY_MAX: u8 = 255;
/// Words in a pattern of a topic exchange. A routing key has no such bound of its own.
pub const TOPIC_WORDS_MAX: usize = 128;
/// Bindings with arguments, or filters, of one exchange whose kind does not compare arguments: they may
/// differ in nothing else.
pub const ARGUED_BINDINGS_MAX: usize = 131_072;
/// Terms of the filters of one exchange's bindings, or of one queue's consumers, that one message may have to
/// be evaluated against.
pub const FILTER_TERMS_MAX: usize = 65_536;
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
/// Bytes in a permission pattern.
pub const PERMISSION_PATTERN_BYTES_MAX: usize = 4096;
/// Bytes that a compiled permission pattern may take.
pub const PERMISSION_PROGRAM_BYTES_MAX: usize = 1 << 20;

/// Defines the limits, each with its default.
macro_rules! limits {
    ($($(#[$doc:meta])+ $name:ident: $type:ty = $default:expr,)+) => {
        /// Limits an operator can set. Reaching one is a [`crate::RefusalKind::LimitExceeded`].
        #[derive(Clone, Debug)]
        pub struct Limits {
            $($(#[$doc])+ pub $name: $type,)+
        }

        impl Default for Limits {
            fn default() -> Self {
                Limits { $($name: $default,)+ }
            }
        }
    };
}

limits! {
    /// Virtual hosts.
    vhosts_max: usize = 1_000,
    /// Queues per virtual host.
    queues_max: usize = 100_000,
    /// Exchanges per virtual host.
    exchanges_max: usize = 100_000,
    /// Bindings per virtual host.
    bindings_max: usize = 10_000_000,
    /// Consumers per channel.
    consumers_max: usize = 10_000,
    /// Connections of one user.
    user_connections_max: u64 = u64::MAX,
    /// Words of a subject that is subscribed to; all that fit into its bytes, unless an operator sets less.
    pattern_words_max: usize = 2_048,
    /// What the patterns of one topic exchange, or of one user's subscriptions in a virtual host, may make a
    /// match look at, counted by their different forms ([`crate::routing::forms`]).
    pattern_states_max: u64 = 8_192,
    /// Subjects that one channel subscribes to.
    subscriptions_max: usize = 1_000_000,
    /// Subjects that all channels of one user subscribe to.
    user_subscriptions_max: u64 = u64::MAX,
    /// Sessions in all, each of which takes some 300 bytes of memory and its name and state.
    sessions_max: usize = 1_000_000,
    /// Sessions per virtual host.
    vhost_sessions_max: usize = 1_000_000,
    /// Sessions of one user.
    user_sessions_max: usize = 1_000_000,
    /// Longest time for which a session may live on without a holder; `None`: any, also for ever. One that
    /// asks for more is granted this.
    session_expiry_max: Option<Duration> = None,
    /// Queues that have to be bound by one topic pattern before detached sessions share a log of it.
    log_shared_by: usize = 4,
    /// Unsettled deliveries per channel when the client set no credit of its own.
    unsettled_max: u32 = 1_000_000,
    /// Settles of many deliveries at once, and those of a channel that ends, that are carried out before
    /// others get their turn.
    settles_at_once: usize = 1024,
    /// Messages of what was purged or deleted whose memory and records are given back before others get
    /// their turn.
    given_back_at_once: usize = 4096,
    /// Messages of one load that a queue takes in before others get their turn; no more than it may hand out
    /// at once where it is held to `backlog_bytes_per_second`. At least 1.
    loaded_at_once: usize = 512,
    /// Messages that are looked at for a checkpoint before others get their turn.
    snapshot_at_once: usize = 2048,
    /// Bytes of direct messages that one turn hands out: each subscriber counts for the message
    /// and 128 bytes more. Each queue beyond the first counts for 4 KiB where it stores the
    /// message; where a consumer takes it immediately, for four times the body, or 1 KiB if
    /// that is more.
    handed_at_once: u64 = 4 << 20,
    /// Nodes of patterns, bindings and exchanges that are looked at to find the queues of a message before
    /// others get their turn; what one exchange has for one key, or for one header, is not divided.
    route_steps_at_once: u64 = 16_384,
    /// Queues that a message reaches at once; to more of them it goes over several turns, as far in each.
    queues_at_once: usize = 1_024,
    /// Subscribers that a direct message reaches at once, as [`Limits::queues_at_once`].
    subscribers_at_once: usize = 4_096,
    /// Bytes of a message body.
    body_bytes_max: u64 = 128 << 20,
    /// Bytes from which a body is large: all holders of the message share it.
    large_body_bytes: usize = 64 << 10,
    /// Transactions that one connection has open, besides those that channels have of their own.
    transactions_max: usize = 1_000,
    /// How long a transaction may be open after its first publish or settle; then it is rolled back, and its
    /// commit refused. `None`: any time.
    transaction_timeout: Option<Duration> = None,
    /// Publishes and settled deliveries in one transaction.
    transaction_operations_max: usize = 100_000,
    /// Bytes of payload that one transaction holds until it is committed.
    transaction_bytes_max: u64 = 128 << 20,
    /// Bytes of payload of all queues together that stay in memory; beyond it messages spool.
    resident_bytes_max: u64 = 128 << 20,
    /// Bytes of payload that one queue keeps in memory before its further messages spool.
    queue_resident_bytes_max: u64 = 32 << 20,
    /// Bytes a second that one queue hands out of what has waited in it, besides what comes in, while others
    /// are served; a message counts for 256 bytes more than its body. At least 1.
    backlog_bytes_per_second: u64 = 128 << 20,
    /// Messages that memory holds nothing of but their places, and whose places are left to the journal
    /// together; at least 1.
    page_entries: usize = 1024,
    /// Messages that are held back until they are due, all together; each costs some 70 bytes of
    /// memory besides its payload. One more is refused as if it could not be stored, and so is one more
    /// of a user who has three quarters of that.
    delayed_max: usize = 4_000_000,
    /// Messages that are retained, all together; each costs some 200 bytes of memory besides its subject.
    retained_max: usize = 1_000_000,
    /// Bytes of all messages that are retained.
    retained_bytes_max: u64 = 1 << 30,
    /// Longest time a message may be delayed.
    delay_max: Duration = Duration::from_secs(365 * 86_400),
    /// Longest message or queue time to live.
    ttl_max: Duration = Duration::from_secs(100 * 365 * 86_400),
    /// How long a delivery may stay unsettled before it returns to its queue.
    settle_timeout: Duration = Duration::from_secs(30 * 60),
    /// Requeues after which a message is dead-lettered, for queues that set no limit of their own;
    /// `None`: never.
    delivery_limit: Option<u32> = None,
}

/// Refuses a name that does not fit; `what` says whose it is.
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), Refusal> {
    if name.len() > NAME_BYTES_MAX {
        let bytes = name.len();
        refuse!(LimitExceeded, "{what} name of {bytes} bytes is longer than {NAME_BYTES_MAX}");
    }
    Ok(())
}

/// Refuses arguments that a record could not bring back.
pub(crate) fn check_arguments(arguments: &Arguments) -> Result<(), Refusal> {
    if !arguments.values().all(|value| fits_depth(value, VALUE_DEPTH_MAX)) {
        refuse!(LimitExceeded, "arguments are nested more than {VALUE_DEPTH_MAX} deep");
    }
    Ok(())
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
