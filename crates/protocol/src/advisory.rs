//! Advisories: direct messages of the broker itself, each a JSON object.

use angarium_engine::{Content, SlowConsumerPolicy};
use serde::{Serialize, Serializer};
use std::time::Duration;

/// A client became a slow consumer, or is none any more. As an advisory it is a JSON object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SlowConsumerEvent {
    /// It became one; else it is none any more.
    #[serde(skip)]
    pub has_begun: bool,
    /// The connection's number in listings, among those of all shards.
    pub connection: u64,
    /// Where it comes from.
    pub peer: String,
    /// Its user.
    pub user: String,
    /// Its virtual host, in which the advisory is published.
    #[serde(skip)]
    pub vhost: String,
    /// The name that the program gave the connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What became of the first messages for which it was too slow.
    #[serde(serialize_with = "write_policy")]
    pub policy: SlowConsumerPolicy,
    /// Messages dropped for it since it was slow.
    pub missed: u64,
    /// Messages spilled to disk for it since then.
    pub spooled: u64,
    /// How long it has been slow.
    #[serde(rename = "millis", serialize_with = "write_millis")]
    pub lasted: Duration,
    /// Its connection has ended.
    #[serde(rename = "disconnected")]
    pub is_gone: bool,
}

fn write_policy<S: Serializer>(policy: &SlowConsumerPolicy, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(policy.name())
}

fn write_millis<S: Serializer>(span: &Duration, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_u64(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
}

impl SlowConsumerEvent {
    /// The subject that the advisory is published to.
    #[must_use]
    pub fn subject(&self) -> &'static str {
        if self.has_begun {
            "$SYS.ADVISORY.SLOW_CONSUMER.BEGAN"
        } else {
            "$SYS.ADVISORY.SLOW_CONSUMER.ENDED"
        }
    }

    /// The content of the advisory, written into `body`.
    pub fn content<'a>(&self, body: &'a mut Vec<u8>) -> Content<'a> {
        serde_json::to_writer(&mut *body, self).expect("texts, numbers and flags are JSON");
        Content {
            format: crate::format::NATS,
            properties: &[],
            body,
            shared: None,
            persistent: false,
            priority: 0,
            ttl: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_advisory_is_json() {
        let mut event = SlowConsumerEvent {
            has_begun: true,
            connection: 7,
            peer: "127.0.0.1:9".to_owned(),
            user: "ann \"x\"".to_owned(),
            vhost: "/".to_owned(),
            name: Some("ticker".to_owned()),
            policy: SlowConsumerPolicy::Spool,
            missed: 0,
            spooled: 3,
            lasted: Duration::from_micros(2_900),
            is_gone: false,
        };
        let text = |event: &SlowConsumerEvent| {
            let mut out = Vec::new();
            event.content(&mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(event.subject(), "$SYS.ADVISORY.SLOW_CONSUMER.BEGAN");
        let expected = concat!(
            r#"{"connection":7,"peer":"127.0.0.1:9","user":"ann \"x\"","name":"ticker","#,
            r#""policy":"spool","missed":0,"spooled":3,"millis":2,"disconnected":false}"#,
        );
        assert_eq!(text(&event), expected);
        event = SlowConsumerEvent { has_begun: false, name: None, is_gone: true, ..event };
        assert_eq!(event.subject(), "$SYS.ADVISORY.SLOW_CONSUMER.ENDED");
        assert!(text(&event).ends_with(r#""disconnected":true}"#));
        assert!(!text(&event).contains("name"));
    }
}
