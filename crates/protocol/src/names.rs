//! The names that clients know the broker's own things by: exchanges, addresses, prefixes.

use angarium_engine::{ExchangeKind, Names, PredeclaredExchange};

/// The exchange whose routing keys are the subjects of direct messages.
pub const SUBJECT_EXCHANGE: &str = "amq.topic";

/// All of them.
pub(crate) const NAMES: Names = Names {
    predeclared: &[
        PredeclaredExchange { name: "amq.direct", kind: ExchangeKind::Direct },
        PredeclaredExchange { name: "amq.fanout", kind: ExchangeKind::Fanout },
        PredeclaredExchange { name: "amq.headers", kind: ExchangeKind::Headers },
        PredeclaredExchange { name: "amq.match", kind: ExchangeKind::Headers },
        PredeclaredExchange { name: SUBJECT_EXCHANGE, kind: ExchangeKind::Topic },
    ],
    subject_exchange: SUBJECT_EXCHANGE,
    default_exchange: "amq.default",
    reserved_prefix: "amq.",
    queue_prefix: "amq.gen-",
    durable_subscription_prefix: "amq.durable-",
    volatile_subscription_prefix: "amq.volatile-",
    session_queue_prefix: "amq.session-",
    shared_queue_prefix: "amq.shared-",
    consumer_prefix: "amq.ctag-",
    inbox_prefix: "amq.rabbitmq.reply-to.",
    // That of NATS's client libraries.
    answer_prefix: "_INBOX.",
    match_argument: "x-match",
    extension_prefix: "x-",
};
