//! The names and readers that the engine's own tests run with: those that users see, without headers.

use crate::{Content, Conventions, ExchangeKind, Format, Names, PredeclaredExchange, Value};

/// What the tests pass for the protocols.
pub(crate) static CONVENTIONS: Conventions = Conventions {
    names: Names {
        predeclared: &[
            PredeclaredExchange { name: "amq.direct", kind: ExchangeKind::Direct },
            PredeclaredExchange { name: "amq.fanout", kind: ExchangeKind::Fanout },
            PredeclaredExchange { name: "amq.headers", kind: ExchangeKind::Headers },
            PredeclaredExchange { name: "amq.match", kind: ExchangeKind::Headers },
            PredeclaredExchange { name: "amq.topic", kind: ExchangeKind::Topic },
        ],
        subject_exchange: "amq.topic",
        default_exchange: "amq.default",
        reserved_prefix: "amq.",
        queue_prefix: "amq.gen-",
        durable_subscription_prefix: "amq.durable-",
        volatile_subscription_prefix: "amq.volatile-",
        consumer_prefix: "amq.ctag-",
        inbox_prefix: "amq.rabbitmq.reply-to.",
        answer_prefix: "_INBOX.",
        match_argument: "x-match",
        extension_prefix: "x-",
    },
    read_headers,
    read_further_keys,
};

fn read_headers(_: Format, _: &[u8], _: &mut dyn FnMut(&str, Value)) {}

fn read_further_keys(_: &Content<'_>) -> Vec<String> {
    Vec::new()
}
