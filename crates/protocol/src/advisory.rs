//! Advisories: direct messages of the broker itself, each a JSON object.

use angarium_engine::Content;
use serde::Serialize;

/// The beginning or the end of a time in which a client is a slow consumer.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SlowConsumerAdvisory<'a> {
    /// It has begun; else it has ended.
    #[serde(skip)]
    pub has_begun: bool,
    /// The connection's number in listings.
    pub connection: u64,
    /// Where it comes from.
    pub peer: &'a str,
    /// Its user.
    pub user: &'a str,
    /// The name that the program gave the connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'a str>,
    /// What becomes of its messages.
    pub policy: &'a str,
    /// Messages dropped for it in that time.
    pub missed: u64,
    /// Messages spilled to disk for it in that time.
    pub spooled: u64,
    /// Length of that time.
    pub millis: u64,
    /// Its connection has ended.
    #[serde(rename = "disconnected")]
    pub is_disconnected: bool,
}

impl SlowConsumerAdvisory<'_> {
    /// The subject it is published to.
    #[must_use]
    pub fn subject(&self) -> &'static str {
        if self.has_begun {
            "$SYS.ADVISORY.SLOW_CONSUMER.BEGAN"
        } else {
            "$SYS.ADVISORY.SLOW_CONSUMER.ENDED"
        }
    }

    /// The content of the message that tells it: JSON, written into `body`.
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
        let mut advisory = SlowConsumerAdvisory {
            has_begun: true,
            connection: 7,
            peer: "127.0.0.1:9",
            user: "ann \"x\"",
            name: Some("ticker"),
            policy: "spool",
            missed: 0,
            spooled: 3,
            millis: 0,
            is_disconnected: false,
        };
        let text = |advisory: &SlowConsumerAdvisory<'_>| {
            let mut out = Vec::new();
            advisory.content(&mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(advisory.subject(), "$SYS.ADVISORY.SLOW_CONSUMER.BEGAN");
        let expected = concat!(
            r#"{"connection":7,"peer":"127.0.0.1:9","user":"ann \"x\"","name":"ticker","#,
            r#""policy":"spool","missed":0,"spooled":3,"millis":0,"disconnected":false}"#,
        );
        assert_eq!(text(&advisory), expected);
        advisory = SlowConsumerAdvisory {
            has_begun: false,
            name: None,
            is_disconnected: true,
            ..advisory
        };
        assert_eq!(advisory.subject(), "$SYS.ADVISORY.SLOW_CONSUMER.ENDED");
        assert!(text(&advisory).ends_with(r#""disconnected":true}"#));
        assert!(!text(&advisory).contains("name"));
    }
}
