//! Destinations: what SEND, SUBSCRIBE and `reply-to` name.
//!
//! | destination | names |
//! |---|---|
//! | `/queue/q`, `queue://q` | the queue `q`, which is made where it is not there |
//! | `/amq/queue/q` | the queue `q`, which has to be there |
//! | `/topic/t`, `topic://t` | the subject `t`: a routing key of `amq.topic`, a pattern for subscribers |
//! | `/exchange/e`, `/exchange/e/k` | the exchange `e`, with the routing key `k` |
//! | `/temp-queue/t`, `/temp-topic/t` | a queue or subject of the connection's own, by its own name for it |
//! | `/reply-queue/a` | the address `a` in words of the default exchange: for answers |
//! | a name without a slash in front | the queue of that name; a subject if the frame says `MULTICAST` |
//!
//! In names `%2F` is a slash, and each `%` with two hexadecimal digits that byte.

use super::fault::Fault;
use crate::names::SUBJECT_EXCHANGE;
use crate::properties::Property;
use std::borrow::Cow;

/// What begins the name of a temporary queue.
pub(super) const TEMP_QUEUE: &str = "/temp-queue/";
/// What begins the address of an answer.
pub(super) const REPLY_QUEUE: &str = "/reply-queue/";

/// What a destination names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Destination<'a> {
    /// A queue, made where it is not there.
    Queue(Cow<'a, str>),
    /// A queue that has to be there.
    OldQueue(Cow<'a, str>),
    /// A subject, or a pattern of subjects.
    Topic(Cow<'a, str>),
    /// An exchange and a routing key of it, or a binding key.
    Exchange(Cow<'a, str>, Cow<'a, str>),
    /// A queue of the connection's own.
    TempQueue(&'a str),
    /// A subject of the connection's own.
    TempTopic(&'a str),
    /// An address in words of the default exchange.
    Reply(Cow<'a, str>),
}

impl<'a> Destination<'a> {
    /// Reads a destination; `is_multicast`: the frame says that a plain name is a subject.
    pub(super) fn parse(text: &'a str, is_multicast: bool) -> Result<Destination<'a>, Fault> {
        if is_list(text) {
            let why =
                format!("'{text}' is a list, and a frame has one destination: send one for each");
            return Err(Fault::new("Invalid destination", why));
        }
        let found = Destination::named(text, is_multicast).ok_or_else(|| unknown(text))?;
        let is_empty = match &found {
            Destination::Queue(name)
            | Destination::OldQueue(name)
            | Destination::Topic(name)
            | Destination::Exchange(name, _)
            | Destination::Reply(name) => name.is_empty(),
            Destination::TempQueue(name) | Destination::TempTopic(name) => name.is_empty(),
        };
        if !is_empty {
            return Ok(found);
        }
        let why = format!("'{text}' is not a valid destination: it ends where a name should begin");
        Err(Fault::new("Invalid destination", why))
    }

    /// Refuses to subscribe to several queues by a pattern of their names.
    pub(super) fn check_subscribed(&self) -> Result<(), Fault> {
        let Destination::Queue(name) = self else { return Ok(()) };
        if !name.split('.').any(|word| matches!(word, "*" | ">")) {
            return Ok(());
        }
        let why = format!(
            "'{name}' is a pattern, and a subscription is to one queue: subscribe to each, or to a topic"
        );
        Err(Fault::new("Invalid destination", why))
    }

    fn named(text: &'a str, is_multicast: bool) -> Option<Destination<'a>> {
        if let Some(name) = text.strip_prefix("queue://") {
            return Some(Destination::Queue(name.into()));
        }
        if let Some(name) = text.strip_prefix("topic://") {
            return Some(Destination::Topic(name.into()));
        }
        let Some(path) = text.strip_prefix('/') else {
            return Some(match is_multicast {
                true => Destination::Topic(text.into()),
                false => Destination::Queue(text.into()),
            });
        };
        let (first, rest) = path.split_once('/')?;
        Some(match first {
            "queue" => Destination::Queue(decoded(rest)),
            "topic" => Destination::Topic(decoded(rest)),
            "exchange" => {
                let (exchange, key) = rest.split_once('/').unwrap_or((rest, ""));
                Destination::Exchange(decoded(exchange), decoded(key))
            }
            "temp-queue" => Destination::TempQueue(rest),
            "temp-topic" => Destination::TempTopic(rest),
            "reply-queue" => Destination::Reply(decoded(rest)),
            "amq" => Destination::OldQueue(decoded(rest.strip_prefix("queue/")?)),
            _ => return None,
        })
    }

    /// Where answers to it go; `None`: other protocols have no word for it.
    pub(super) fn reply(&self) -> Option<Property<'_>> {
        match self {
            Destination::Queue(name) | Destination::OldQueue(name) | Destination::Reply(name) => {
                Some(Property::ReplyTo(name))
            }
            Destination::Topic(subject) => Some(Property::ReplySubject(subject)),
            _ => None,
        }
    }
}

/// Whether a text is one of ActiveMQ's lists: a comma alone may be part of a name.
fn is_list(text: &str) -> bool {
    let mut others = text.split(',').skip(1);
    others.any(|other| {
        ["/queue/", "/topic/", "queue://", "topic://"].iter().any(|it| other.starts_with(it))
    })
}

fn unknown(text: &str) -> Fault {
    let why = format!(
        "'{text}' is not a valid destination: valid ones begin with /queue/, /amq/queue/, /topic/, \
         /exchange/, /temp-queue/, /temp-topic/ or /reply-queue/, or are the name of a queue"
    );
    Fault::new("Unknown destination", why)
}

/// A name with its percent-encoded bytes; what is not encoded, or would not be UTF-8, stays as it is.
fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return text.into();
    }
    let (mut octets, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((&octet, behind)) = rest.split_first() {
        let digit = |at: usize| char::from(*behind.get(at)?).to_digit(16);
        rest = behind;
        match (octet, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                octets.push((high * 16 + low) as u8);
                rest = &behind[2..];
            }
            _ => octets.push(octet),
        }
    }
    String::from_utf8(octets).map_or(text.into(), Cow::Owned)
}

/// Appends a name so that [`decoded`] gives it back.
pub(super) fn put_encoded(text: &mut String, name: &str) {
    for letter in name.chars() {
        match letter {
            '%' => text.push_str("%25"),
            '/' => text.push_str("%2F"),
            letter => text.push(letter),
        }
    }
}

/// The destination where a message was published.
pub(super) fn of_message(exchange: &str, key: &str) -> String {
    let mut text = match exchange {
        "" => "/queue/".to_owned(),
        SUBJECT_EXCHANGE => "/topic/".to_owned(),
        _ => {
            let mut text = "/exchange/".to_owned();
            put_encoded(&mut text, exchange);
            if !key.is_empty() {
                text.push('/');
            }
            text
        }
    };
    put_encoded(&mut text, key);
    text
}

/// The address of answers, as STOMP clients can send to it.
pub(super) fn of_reply(address: &str) -> String {
    let mut text = REPLY_QUEUE.to_owned();
    put_encoded(&mut text, address);
    text
}

/// The key that binds a queue to what a pattern of subjects means: ActiveMQ's `>` at the end stands for one
/// word or more.
pub(super) fn binding_key(pattern: &str) -> Cow<'_, str> {
    match pattern.strip_suffix('>') {
        Some(before) if before.is_empty() || before.ends_with('.') => format!("{before}*.#").into(),
        _ => pattern.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_of_the_brokers_that_clients_come_from() {
        use Destination::{Exchange, OldQueue, Queue, Reply, TempQueue, TempTopic, Topic};
        for (text, expected) in [
            ("/queue/a", Queue("a".into())),
            ("/queue/a/b", Queue("a/b".into())),
            ("/queue/a%2Fb", Queue("a/b".into())),
            ("/queue/50%", Queue("50%".into())),
            ("/queue/%ff", Queue("%ff".into())),
            ("/amq/queue/a", OldQueue("a".into())),
            ("/topic/a.b.#", Topic("a.b.#".into())),
            ("/exchange/e", Exchange("e".into(), "".into())),
            ("/exchange/e/k", Exchange("e".into(), "k".into())),
            ("/exchange/e%2Ff/k/l", Exchange("e/f".into(), "k/l".into())),
            ("/temp-queue/a/b", TempQueue("a/b")),
            ("/temp-topic/a", TempTopic("a")),
            ("/reply-queue/amq.gen-1%2F2", Reply("amq.gen-1/2".into())),
            ("queue://a", Queue("a".into())),
            ("topic://a", Topic("a".into())),
            ("orders", Queue("orders".into())),
        ] {
            assert_eq!(Destination::parse(text, false), Ok(expected), "{text}");
        }
        assert_eq!(Destination::parse("a", true), Ok(Topic("a".into())));
        for (text, expected) in [
            ("/nowhere/a", "Unknown destination"),
            ("/queue", "Unknown destination"),
            ("/amq/a", "Unknown destination"),
            ("/queue/", "Invalid destination"),
            ("/exchange/", "Invalid destination"),
            ("/exchange//k", "Invalid destination"),
            ("topic://", "Invalid destination"),
            ("", "Invalid destination"),
        ] {
            let fault = Destination::parse(text, false).unwrap_err();
            assert_eq!(fault.message, expected, "{text}");
        }
    }

    #[test]
    fn messages_show_where_they_were_published() {
        for (exchange, key, expected) in [
            ("", "a", "/queue/a"),
            ("", "a/b%", "/queue/a%2Fb%25"),
            ("amq.topic", "a.b", "/topic/a.b"),
            ("e/f", "k", "/exchange/e%2Ff/k"),
            ("amq.fanout", "", "/exchange/amq.fanout"),
        ] {
            let shown = of_message(exchange, key);
            assert_eq!(shown, expected);
            let again = Destination::parse(&shown, false).unwrap();
            let again = match again {
                Destination::Queue(name) => ("".to_owned(), name.into_owned()),
                Destination::Topic(key) => ("amq.topic".to_owned(), key.into_owned()),
                Destination::Exchange(exchange, key) => (exchange.into_owned(), key.into_owned()),
                other => panic!("{other:?}"),
            };
            assert_eq!(again, (exchange.to_owned(), key.to_owned()));
        }
    }

    #[test]
    fn patterns_may_be_those_of_activemq() {
        for (pattern, expected) in
            [("a.>", "a.*.#"), (">", "*.#"), ("a>", "a>"), ("a.#", "a.#"), ("a.*.b", "a.*.b")]
        {
            assert_eq!(binding_key(pattern), expected);
        }
    }
}
