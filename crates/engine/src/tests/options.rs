//! What lines of scenarios say of the exchanges and queues that they declare.

use super::host::Words;
use crate::*;

pub(super) fn exchange_options(words: &Words<'_>) -> ExchangeOptions {
    ExchangeOptions {
        kind: match words.0[2] {
            "direct" => ExchangeKind::Direct,
            "fanout" => ExchangeKind::Fanout,
            "topic" => ExchangeKind::Topic,
            "filtered" => ExchangeKind::Filtered,
            _ => ExchangeKind::Headers,
        },
        delaying: words.has("delaying"),
        durable: words.has("durable"),
        auto_delete: words.has("auto-delete"),
        internal: words.has("internal"),
        alternate: words.value("alternate").map(str::to_owned),
    }
}

pub(super) fn queue_options(words: &Words<'_>) -> QueueOptions {
    QueueOptions {
        durable: words.has("durable"),
        exclusive: words.has("exclusive"),
        auto_delete: words.has("auto-delete"),
        message_ttl: words.millis("ttl"),
        expires: words.millis("expires"),
        length_max: words.number("length"),
        bytes_max: words.number("bytes"),
        overflow: match words.value("overflow") {
            Some("reject") => Overflow::RejectPublish,
            Some("reject-dead-letter") => Overflow::RejectPublishDeadLetter,
            _ => Overflow::DropHead,
        },
        dead_letter_exchange: words
            .value("dlx")
            .map(|name| if name == "-" { "" } else { name }.to_owned()),
        dead_letter_routing_key: words.value("dlk").map(str::to_owned),
        priority_max: words.number("priorities"),
        single_active: words.has("single-active"),
        message_groups: words.has("groups"),
        queue_type: if words.has("quorum") { QueueType::Quorum } else { QueueType::Classic },
        delivery_limit: words.number("limit"),
        durability: match words.value("durability") {
            Some("buffered") => Durability::Buffered,
            Some("memory") => Durability::Memory,
            _ => Durability::Flushed,
        },
        settle_timeout: words.millis("timeout"),
        is_log: false,
        other: Arguments::new(),
    }
}
