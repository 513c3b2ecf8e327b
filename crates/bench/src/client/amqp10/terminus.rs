//! What links are attached to: queues, topics, durable subscriptions, the coordinator. Independent of
//! sockets.

use crate::client::Source as LoadSource;
use angarium_protocol::amqp10::codec::wire::{DESCRIBED, ULONG};
use angarium_protocol::amqp10::codec::{
    AnyTarget, Attach, Coordinator, Field, Map, OwnedValue, Performative, Role, SenderSettleMode,
    Source, Symbol, Symbols, Target, TerminusDurability, TerminusExpiryPolicy, Value,
};

/// How the names of topics begin here. Brokers get the name without it, and the capability.
pub(super) const TOPIC: &str = "topic://";
/// How the names of queues begin here, where they say so.
pub(super) const QUEUE: &str = "queue://";

/// Where requests go and answers come from.
pub(super) const MANAGEMENT: &str = "/management";

const QUEUE_ONLY: &[Symbol<'_>] = &[Symbol("queue")];
const TOPIC_ONLY: &[Symbol<'_>] = &[Symbol("topic")];
const TOPIC_SHARED: &[Symbol<'_>] = &[Symbol("topic"), Symbol("shared"), Symbol("global")];
const TRANSACTIONS: &[Symbol<'_>] = &[Symbol("amqp:local-transactions")];

/// The property that a message's label is in.
pub(super) const LABEL: &str = "label";
/// The descriptor of a filter that is a selector of JMS.
const SELECTOR: u64 = 0x0000_468C_0000_0004;

/// A filter for the messages with this label.
pub(super) fn filter(label: &str) -> OwnedValue {
    let mut selector = vec![DESCRIBED, ULONG];
    selector.extend_from_slice(&SELECTOR.to_be_bytes());
    format!("{LABEL} = '{label}'").as_str().write(&mut selector);
    let selector = Value::decode(&selector).expect("it is one value");
    OwnedValue::map(|filters| filters.put(&Symbol("jms-selector"), &selector))
}

/// The name of a queue, and the label of its messages, which may be empty.
pub(super) fn split_label(key: &str) -> (&str, &str) {
    match key.strip_prefix(QUEUE).and_then(|name| name.find('.')) {
        Some(at) => key.split_at(QUEUE.len() + at),
        None => (key, ""),
    }
}

/// The name without what says here that it is a queue's or a topic's.
pub(super) fn bare(name: &str) -> &str {
    name.strip_prefix(TOPIC).or_else(|| name.strip_prefix(QUEUE)).unwrap_or(name)
}

/// The address of a queue or topic; with RabbitMQ those of queues have a prefix.
pub(super) fn address(name: &str, has_prefixes: bool) -> String {
    let prefix = if has_prefixes && !name.starts_with(TOPIC) { "/queues/" } else { "" };
    format!("{prefix}{}", bare(name))
}

/// The capabilities that say what a name is of.
fn capabilities(name: &str, is_shared: bool) -> Symbols<'static> {
    Symbols::new(match name.starts_with(TOPIC) {
        true if is_shared => TOPIC_SHARED,
        true => TOPIC_ONLY,
        false => QUEUE_ONLY,
    })
}

/// Attaches a link that sends to a queue or a topic at this address.
pub(super) fn sender<'a>(
    link: &'a str,
    name: &str,
    address: &'a str,
    unsettled: bool,
) -> Performative<'a> {
    let mode = if unsettled { SenderSettleMode::Unsettled } else { SenderSettleMode::Settled };
    Performative::Attach(Attach {
        name: link,
        role: Role::Sender,
        snd_settle_mode: mode,
        source: Some(Source::default()),
        target: Some(AnyTarget::Target(Target {
            address: Some(address),
            capabilities: capabilities(name, false),
            ..Target::default()
        })),
        initial_delivery_count: Some(0),
        ..Attach::default()
    })
}

/// Attaches the links of requests and of answers.
pub(super) fn management<'a>(link: &'a str, paired: Map<'a>) -> [Performative<'a>; 2] {
    let (address, properties) = (Some(MANAGEMENT), Some(paired));
    let both = Attach {
        name: link,
        snd_settle_mode: SenderSettleMode::Settled,
        source: Some(Source { address, ..Source::default() }),
        target: Some(AnyTarget::Target(Target { address, ..Target::default() })),
        properties,
        ..Attach::default()
    };
    [
        Performative::Attach(Attach {
            role: Role::Sender,
            initial_delivery_count: Some(0),
            ..both
        }),
        Performative::Attach(Attach { handle: 1, role: Role::Receiver, ..both }),
    ]
}

/// Attaches a link that sends to the coordinator of transactions.
pub(super) fn coordinator(link: &str) -> Performative<'_> {
    Performative::Attach(Attach {
        name: link,
        role: Role::Sender,
        snd_settle_mode: SenderSettleMode::Unsettled,
        source: Some(Source::default()),
        target: Some(AnyTarget::Coordinator(Coordinator {
            capabilities: Symbols::new(TRANSACTIONS),
        })),
        initial_delivery_count: Some(0),
        ..Attach::default()
    })
}

/// The name of a link that receives: that of a durable or a shared subscription is the subscription's.
pub(super) fn receiver_name(otherwise: String, source: &LoadSource<'_>) -> String {
    match (source.session, source.group) {
        (Some(session), _) => session.to_owned(),
        (None, Some(group)) => format!("{}-{group}|global", bare(source.name)),
        (None, None) => otherwise,
    }
}

/// Attaches a link that receives from this address. With a session, it is a durable subscription; with a
/// group, a subscription that is shared with others; with a filter, it chooses messages.
pub(super) fn receiver<'a>(
    link: &'a str,
    source: &LoadSource<'_>,
    address: &'a str,
    filter: Option<&'a OwnedValue>,
) -> Performative<'a> {
    let (durable, expiry_policy) = match source.session {
        Some(_) => (TerminusDurability::UnsettledState, TerminusExpiryPolicy::Never),
        None => (TerminusDurability::None, TerminusExpiryPolicy::SessionEnd),
    };
    let snd_settle_mode = match source.auto_ack {
        true => SenderSettleMode::Settled,
        false => SenderSettleMode::Unsettled,
    };
    Performative::Attach(Attach {
        name: link,
        role: Role::Receiver,
        snd_settle_mode,
        source: Some(Source {
            address: Some(address),
            durable,
            expiry_policy,
            filter: filter.map(OwnedValue::as_map),
            capabilities: capabilities(source.name, source.group.is_some()),
            ..Source::default()
        }),
        target: Some(AnyTarget::Target(Target::default())),
        ..Attach::default()
    })
}
