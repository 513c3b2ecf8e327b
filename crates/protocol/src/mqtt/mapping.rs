//! Where MQTT's words meet the engine's: topics, filters, refusals.
//!
//! A subject is a topic with `/` and `.` swapped, so that each is made of the other without loss: the topic
//! `plant/1.5/temperature` is the subject `plant.1/5.temperature`.

use super::codec::topic::SHARE_PREFIX;
use super::codec::{Filter, Reason};
use crate::broker_figures::PREFIX;
use crate::names::{NAMES, SUBJECT_EXCHANGE};
use angarium_engine::{QUEUE_SUBJECT_PREFIX, RefusalKind};

/// What clients may not publish to: the broker tells about itself there.
const BROKER_TOPICS: &str = "$SYS";
/// What parts the name of a shared subscription from its filter, in the name of its group.
const GROUP_SEPARATOR: char = '\0';

#[inline]
fn swapped(byte: u8) -> u8 {
    match byte {
        b'/' => b'.',
        b'.' => b'/',
        byte => byte,
    }
}

/// The subject that a topic is.
pub(super) fn subject_of(topic: &str) -> String {
    let bytes = topic.bytes().map(swapped).collect();
    String::from_utf8(bytes).expect("an ASCII character takes the place of another")
}

/// Appends the topic that a subject is, as clients can be told of it: what has no name gets one, and
/// wildcards, which a name cannot have, are replaced.
#[inline]
pub(super) fn put_topic(out: &mut Vec<u8>, subject: &str) {
    if subject.is_empty() {
        return out.push(b'_');
    }
    let shown = |byte: u8| match byte {
        b'+' | b'#' | 0 => b'_',
        byte => swapped(byte),
    };
    out.extend(subject.bytes().map(shown));
}

/// Whether clients may not publish to a topic, whatever their rights.
pub(super) fn is_brokers(topic: &str) -> bool {
    topic.strip_prefix(BROKER_TOPICS).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether the broker tells about itself in a topic: messages from elsewhere are none of it.
#[inline]
pub(super) fn is_told(topic: &[u8]) -> bool {
    topic.first() == Some(&b'$')
        && topic.strip_prefix(PREFIX.as_bytes()).is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
}

/// Where a message to a subject goes that queues may keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target<'a> {
    pub(super) exchange: &'a str,
    pub(super) routing_key: &'a str,
}

impl<'a> Target<'a> {
    /// That of a subject: a queue or inbox that it names, else those who are bound to it.
    pub(super) fn of(subject: &'a str) -> Target<'a> {
        match subject.strip_prefix(QUEUE_SUBJECT_PREFIX) {
            Some(queue) => Target { exchange: "", routing_key: queue },
            None if subject.starts_with(NAMES.inbox_prefix) => {
                Target { exchange: "", routing_key: subject }
            }
            None => Target { exchange: SUBJECT_EXCHANGE, routing_key: subject },
        }
    }
}

/// The patterns of subjects that a filter is: `a/#` stands for `a` as well, and so for two.
pub(super) fn patterns_of(filter: &str) -> (String, Option<String>) {
    let pattern = |filter: &str| {
        let words = filter.split('/').map(|level| match level {
            "+" => "*".to_owned(),
            "#" => ">".to_owned(),
            level => level.replace('.', "/"),
        });
        words.collect::<Vec<_>>().join(".")
    };
    let above = filter.strip_suffix("/#").filter(|above| !above.is_empty()).map(pattern);
    (pattern(filter), above)
}

/// The pattern of a topic exchange that a filter is; one with levels that are wildcards there matches more.
pub(super) fn binding_key_of(filter: &str) -> String {
    let words = filter.split('/').map(|level| match level {
        "+" => "*".to_owned(),
        level => level.replace('.', "/"),
    });
    words.collect::<Vec<_>>().join(".")
}

/// Whether a filter has levels that would be wildcards in patterns of subjects. What the patterns match is
/// compared with the filter, then.
pub(super) fn has_foreign_wildcards(filter: &str) -> bool {
    filter.split('/').any(|level| matches!(level, "*" | ">"))
}

/// The group of a shared subscription: its name and its filter, which together tell it from others.
pub(super) fn group_of(filter: &Filter<'_>) -> Option<String> {
    Some(format!("{}{GROUP_SEPARATOR}{}", filter.share?, filter.filter))
}

/// The filter of the shared subscriptions that are a group, as clients write it.
pub(super) fn filter_of_group(group: &str) -> String {
    format!("{SHARE_PREFIX}{}", group.replace(GROUP_SEPARATOR, "/"))
}

/// The code of a refused subscription.
pub(super) fn subscription_refused(kind: RefusalKind) -> Reason {
    match kind {
        RefusalKind::AccessRefused | RefusalKind::NotAllowed => Reason::NotAuthorized,
        RefusalKind::LimitExceeded | RefusalKind::MemoryShort => Reason::QuotaExceeded,
        RefusalKind::PreconditionFailed => Reason::TopicFilterInvalid,
        RefusalKind::StorageUnavailable | RefusalKind::InDoubt => {
            Reason::ImplementationSpecificError
        }
        _ => Reason::UnspecifiedError,
    }
}

/// The code of a refused message.
pub(super) fn publish_refused(kind: RefusalKind) -> Reason {
    match kind {
        RefusalKind::Unroutable => Reason::NoMatchingSubscribers,
        RefusalKind::AccessRefused | RefusalKind::NotAllowed => Reason::NotAuthorized,
        RefusalKind::LimitExceeded | RefusalKind::MemoryShort => Reason::QuotaExceeded,
        RefusalKind::StorageUnavailable | RefusalKind::InDoubt => {
            Reason::ImplementationSpecificError
        }
        _ => Reason::UnspecifiedError,
    }
}

/// The code of a refused login.
pub(super) fn login_refused(kind: RefusalKind) -> Reason {
    match kind {
        RefusalKind::LimitExceeded => Reason::QuotaExceeded,
        RefusalKind::MemoryShort => Reason::ServerBusy,
        RefusalKind::StorageUnavailable | RefusalKind::InDoubt => Reason::ServerUnavailable,
        _ => Reason::NotAuthorized,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_and_subjects_are_made_of_each_other() {
        for (topic, subject) in [
            ("a/b", "a.b"),
            ("plant/1.5/t", "plant.1/5.t"),
            ("/a//", ".a.."),
            ("$SYS/x", "$SYS.x"),
            ("ä/ö", "ä.ö"),
        ] {
            assert_eq!(subject_of(topic), subject);
            let mut back = Vec::new();
            put_topic(&mut back, subject);
            assert_eq!(back, topic.as_bytes());
        }
        let mut shown = Vec::new();
        put_topic(&mut shown, "a.#+.\0");
        put_topic(&mut shown, "");
        assert_eq!(shown, b"a/__/__");
    }

    #[test]
    fn filters_are_patterns_of_subjects() {
        for (filter, pattern, above) in [
            ("a/b", "a.b", None),
            ("a/+/c", "a.*.c", None),
            ("a/#", "a.>", Some("a")),
            ("#", ">", None),
            ("+/#", "*.>", Some("*")),
            ("/#", ".>", None),
            ("1.5/+", "1/5.*", None),
        ] {
            let (found, found_above) = patterns_of(filter);
            assert_eq!((found.as_str(), found_above.as_deref()), (pattern, above), "{filter}");
        }
        assert_eq!(binding_key_of("1.5/+/#"), "1/5.*.#");
        assert!(has_foreign_wildcards("a/*/b") && has_foreign_wildcards(">"));
        assert!(!has_foreign_wildcards("a*/+/#"));
    }

    #[test]
    fn messages_for_queues_go_there() {
        let target = |exchange, routing_key| Target { exchange, routing_key };
        assert_eq!(Target::of("a.b"), target("amq.topic", "a.b"));
        assert_eq!(Target::of("$QUEUE.orders/eu"), target("", "orders/eu"));
        assert!(is_told(b"$SYS/broker/x") && is_told(b"$SYS/broker") && !is_told(b"$SYS/brokers"));
        assert!(is_brokers("$SYS") && is_brokers("$SYS/x") && !is_brokers("$SYSTEM"));
    }
}
