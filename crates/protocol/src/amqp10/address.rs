//! Addresses of AMQP 1.0: what a source, a target, or the `to` of a message names.
//!
//! | address | names |
//! |---|---|
//! | `queue://q`, `/queues/q`, `/queue/q`, `/amq/queue/q` | the queue `q` |
//! | `topic://t`, `/topics/t`, `/topic/t` | the subject `t`: a routing key of `amq.topic` |
//! | `/exchanges/e/k`, `/exchange/e/k` | the exchange `e` with the routing key `k` |
//! | `/exchanges/e` | the exchange `e`; the key is the message's subject |
//! | `t::q` | the queue `q`, which gets what is published to `t` (Artemis) |
//! | `/management`, `$management`, `$cbs` | the broker |
//! | anything else | what the capabilities say, or a queue of that name, or the default |
//!
//! `/queues/`, `/topics/` and `/exchanges/` are percent-encoded (RabbitMQ's addresses, version 2).

use super::codec::Symbols;
use crate::names::{NAMES, SUBJECT_EXCHANGE};
use std::borrow::Cow;

/// What an address names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address<'a> {
    /// A queue.
    Queue(Cow<'a, str>),
    /// A subject, or in a source a pattern of subjects.
    Topic(Cow<'a, str>),
    /// A routing key of an exchange; without one it is the subject of each message.
    Exchange { exchange: Cow<'a, str>, key: Option<Cow<'a, str>> },
    /// A queue that gets what is published to a subject.
    Subscription { topic: &'a str, queue: &'a str },
    /// What answers RabbitMQ's clients, which declare and delete with it.
    Management,
    /// What answers queries of the management draft 1.0.
    ReadOnlyManagement,
    /// What takes the tokens of clients that know claims-based security.
    Claims,
    /// A queue of this name if there is one; otherwise as the settings say.
    Any(&'a str),
}

/// What the capabilities of a terminus say of its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeKind {
    Queue,
    Topic,
}

impl NodeKind {
    /// What JMS clients and Artemis's put in: `queue`, `topic`, `temporary-queue`, `temporary-topic`.
    pub(super) fn of(capabilities: Symbols<'_>) -> Option<NodeKind> {
        capabilities.iter().find_map(|capability| match capability.0 {
            "queue" | "temporary-queue" => Some(NodeKind::Queue),
            "topic" | "temporary-topic" => Some(NodeKind::Topic),
            _ => None,
        })
    }
}

/// Reads an address.
///
/// # Errors
/// Why it names nothing.
pub(super) fn parse(address: &str, kind: Option<NodeKind>) -> Result<Address<'_>, String> {
    let address = match prefixed(address)? {
        Some(address) => address,
        None => match kind {
            Some(NodeKind::Topic) => Address::Topic(address.into()),
            Some(NodeKind::Queue) => Address::Queue(address.into()),
            None => Address::Any(address),
        },
    };
    match &address {
        Address::Queue(name) | Address::Topic(name) if name.is_empty() => {
            Err("the address names nothing: it ends where the name should begin".to_owned())
        }
        Address::Any("") => Err("the address is empty".to_owned()),
        _ => Ok(address),
    }
}

/// Whether a queue is named in the way of RabbitMQ's clients.
pub(super) fn is_of_rabbitmq(address: &str) -> bool {
    address.starts_with("/queues/")
}

/// What an address names that says so itself.
fn prefixed(address: &str) -> Result<Option<Address<'_>>, String> {
    if let Some(name) = address.strip_prefix("queue://") {
        return Ok(Some(Address::Queue(name.into())));
    }
    if let Some(name) = address.strip_prefix("topic://") {
        return Ok(Some(Address::Topic(name.into())));
    }
    if address == "$management" {
        return Ok(Some(Address::ReadOnlyManagement));
    }
    if address == "$cbs" {
        return Ok(Some(Address::Claims));
    }
    if let Some((topic, queue)) = address.split_once("::") {
        return Ok(Some(Address::Subscription { topic, queue }));
    }
    let Some(path) = address.strip_prefix('/') else { return Ok(None) };
    let Some((first, rest)) = path.split_once('/') else {
        return Ok((path == "management").then_some(Address::Management));
    };
    Ok(Some(match first {
        "queues" => Address::Queue(decoded(rest)?),
        "topics" => Address::Topic(decoded(rest)?),
        "exchanges" => {
            let (exchange, key) = match rest.split_once('/') {
                Some((exchange, key)) => (exchange, Some(decoded(key)?)),
                None => (rest, None),
            };
            Address::Exchange { exchange: decoded(exchange)?, key }
        }
        "queue" => Address::Queue(rest.into()),
        "topic" => Address::Topic(rest.into()),
        "exchange" => match rest.split_once('/') {
            Some((exchange, key)) => {
                Address::Exchange { exchange: exchange.into(), key: Some(key.into()) }
            }
            None => Address::Exchange { exchange: rest.into(), key: None },
        },
        "amq" if rest.starts_with("queue/") => Address::Queue(rest["queue/".len()..].into()),
        _ => return Ok(None),
    }))
}

/// Text whose reserved characters are percent-encoded (RFC 3986, 2.1).
pub(super) fn decoded(text: &str) -> Result<Cow<'_, str>, String> {
    if !text.contains(['%', '/']) {
        return Ok(text.into());
    }
    if text.contains('/') {
        return Err(format!("'{text}' has a slash that is not written as %2F"));
    }
    let mut octets = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&octet, behind)) = rest.split_first() {
        rest = behind;
        if octet != b'%' {
            octets.push(octet);
            continue;
        }
        let digits = rest.split_first_chunk::<2>();
        let number = digits.and_then(|(digits, behind)| {
            rest = behind;
            let digits = str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))
        });
        match number {
            Some(number) => octets.push(number),
            None => return Err(format!("'{text}' has a % without two hexadecimal digits")),
        }
    }
    match String::from_utf8(octets) {
        Ok(text) => Ok(text.into()),
        Err(_) => Err(format!("'{text}' is not percent-encoded UTF-8")),
    }
}

/// The address of a queue, or of another key of the default exchange, as replies are sent to it. It is the
/// name alone where that cannot be taken for something else.
pub(super) fn of_queue(name: &str) -> Cow<'_, str> {
    match prefixed(name) {
        Ok(None) => name.into(),
        _ => format!("/queues/{}", encoded(name)).into(),
    }
}

/// The address of a topic.
pub(super) fn of_topic(subject: &str) -> String {
    format!("topic://{subject}")
}

/// The address of an exchange.
pub(super) fn of_exchange(name: &str) -> String {
    format!("/exchanges/{}", encoded(name))
}

/// The address of what an exchange gets with a key, whose terminus has the capability `topic` where the
/// exchange is that of subjects.
pub(super) fn of_key<'a>(exchange: &str, key: &'a str) -> Cow<'a, str> {
    if exchange != SUBJECT_EXCHANGE {
        return format!("{}/{}", of_exchange(exchange), encoded(key)).into();
    }
    match prefixed(key) {
        Ok(None) => key.into(),
        _ => of_topic(key).into(),
    }
}

/// Percent-encodes all but what RFC 3986, 2.3, calls unreserved.
pub(super) fn encoded(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for octet in name.bytes() {
        match octet {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                text.push(octet.into());
            }
            _ => text.push_str(&format!("%{octet:02X}")),
        }
    }
    text
}

/// A reply address in the words of the default exchange; `None`: it is no queue and no inbox.
pub(super) fn reply(address: &str) -> Option<Cow<'_, str>> {
    match parse(address, None).ok()? {
        Address::Queue(name) => Some(name),
        Address::Any(name) => Some(name.into()),
        Address::Subscription { queue, .. } => Some(queue.into()),
        Address::Topic(key) if NAMES.is_answer_address(&key) => Some(key),
        Address::Exchange { exchange, key } if exchange.is_empty() => key,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(address: &str, expected: Result<Address<'_>, &str>) {
        assert_eq!(parse(address, None), expected.map_err(str::to_owned), "{address}");
    }

    fn exchange<'a>(exchange: &'a str, key: Option<&'a str>) -> Result<Address<'a>, &'a str> {
        Ok(Address::Exchange { exchange: exchange.into(), key: key.map(Cow::from) })
    }

    #[test]
    fn addresses_of_the_brokers_that_clients_come_from() {
        let queue = |name: &'static str| Ok(Address::Queue(name.into()));
        let topic = |name: &'static str| Ok(Address::Topic(name.into()));
        check("queue://a/b", queue("a/b"));
        check("topic://a.b", topic("a.b"));
        check("/queues/a%2Fb%20c", queue("a/b c"));
        check("/queues/%C3%A9", queue("é"));
        check("/queue/a/b", queue("a/b"));
        check("/amq/queue/a", queue("a"));
        check("/topic/a.#", topic("a.#"));
        check("/exchanges/e", exchange("e", None));
        check("/exchanges/e/", exchange("e", Some("")));
        check("/exchanges/e%2F/k%2Fl", exchange("e/", Some("k/l")));
        check("/exchange/e/k/l", exchange("e", Some("k/l")));
        check("prices::mine", Ok(Address::Subscription { topic: "prices", queue: "mine" }));
        check("/management", Ok(Address::Management));
        check("$management", Ok(Address::ReadOnlyManagement));
        check("$cbs", Ok(Address::Claims));
        check("orders", Ok(Address::Any("orders")));
        check("/orders/a", Ok(Address::Any("/orders/a")));
    }

    #[test]
    fn what_names_nothing_says_why() {
        check("", Err("the address is empty"));
        let nothing = "the address names nothing: it ends where the name should begin";
        check("queue://", Err(nothing));
        check("/topics/", Err(nothing));
        check("/queues/a/b", Err("'a/b' has a slash that is not written as %2F"));
        check("/queues/%4", Err("'%4' has a % without two hexadecimal digits"));
        check("/queues/%+1", Err("'%+1' has a % without two hexadecimal digits"));
        check("/queues/%ff", Err("'%ff' is not percent-encoded UTF-8"));
    }

    #[test]
    fn capabilities_say_what_a_plain_address_is() {
        let queue = parse("a", Some(NodeKind::Queue));
        assert_eq!(queue, Ok(Address::Queue("a".into())));
        assert_eq!(parse("a", Some(NodeKind::Topic)), Ok(Address::Topic("a".into())));
        // What the address says itself is stronger.
        assert_eq!(parse("queue://a", Some(NodeKind::Topic)), Ok(Address::Queue("a".into())));
    }

    #[test]
    fn replies_find_their_queue() {
        for name in ["a", "a/b", "/queues/a", "a::b", "$management", "topic://x", "é"] {
            assert_eq!(reply(&of_queue(name)).as_deref(), Some(name));
        }
        assert_eq!(reply("topic://a"), None);
        assert_eq!(reply("topic://_INBOX.a").as_deref(), Some("_INBOX.a"));
    }
}
