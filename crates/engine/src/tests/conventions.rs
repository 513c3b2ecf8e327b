//! The names and readers that the engine's own tests run with: those that users see, without headers.

use crate::{
    Content, Conventions, ExchangeKind, Format, MessageGroup, Names, PredeclaredExchange,
    Selectable, Value, selector,
};

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
        session_queue_prefix: "amq.session-",
        shared_queue_prefix: "amq.shared-",
        consumer_prefix: "amq.ctag-",
        inbox_prefix: "amq.rabbitmq.reply-to.",
        answer_prefix: "_INBOX.",
        match_argument: "x-match",
        extension_prefix: "x-",
    },
    read_headers,
    read_property,
    read_further_keys,
    read_group,
    lives_from_sending: |format| format == LIVES_FROM_SENDING,
    is_exactly_once,
};

/// The format of messages whose delays count as a part of their lives.
pub(crate) const LIVES_FROM_SENDING: Format = Format(3);

/// Properties are written `colour:red,size:5`.
fn read_property<'m>(message: &Selectable<'m>, name: &str) -> selector::Value<'m> {
    if name == "key" {
        return selector::Value::Text(message.routing_key);
    }
    if name == "count" {
        return selector::Value::Exact(message.delivery_count.into());
    }
    let text = str::from_utf8(message.content.properties).unwrap_or_default();
    let mut pairs = text.split(',').filter_map(|pair| pair.split_once(':'));
    match pairs.find(|(own, _)| *own == name) {
        None => selector::Value::Null,
        Some((_, value)) => {
            value.parse().map_or(selector::Value::Text(value), selector::Value::Exact)
        }
    }
}

/// Bodies of the form `GROUP:TEXT`, or `GROUP:end`, are of a group.
fn read_group(content: &Content<'_>) -> Option<MessageGroup> {
    let (group, text) = std::str::from_utf8(content.body).ok()?.split_once(':')?;
    Some(MessageGroup::new(group, Some(if text == "end" { -1 } else { 0 })))
}

/// Messages of the format 2 are.
fn is_exactly_once(content: &Content<'_>) -> bool {
    content.format == Format(2)
}

fn read_headers(_: Format, _: &[u8], _: &mut dyn FnMut(&str, Value)) {}

fn read_further_keys(_: &Content<'_>) -> Vec<String> {
    Vec::new()
}
