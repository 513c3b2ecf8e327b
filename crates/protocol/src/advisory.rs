//! What the broker itself tells those who listen: advisories, each a JSON object.

use crate::json::ObjectWriter;
use angarium_engine::{Content, Format};

/// A client that is too slow for direct messages, for as long as it is.
#[derive(Clone, Copy, Debug)]
pub struct SlowConsumerAdvisory<'a> {
    /// It has become so; else it is so no longer.
    pub has_begun: bool,
    /// The connection's number in listings.
    pub connection: u64,
    /// Where it comes from.
    pub peer: &'a str,
    /// Its user.
    pub user: &'a str,
    /// The name that the program gave the connection.
    pub name: Option<&'a str>,
    /// What becomes of its messages.
    pub policy: &'a str,
    /// Messages that it has missed meanwhile.
    pub missed: u64,
    /// Messages that have waited on the disk for it meanwhile.
    pub spooled: u64,
    /// How long it has been so.
    pub millis: u64,
    /// Its connection has ended, for that or because it went.
    pub is_disconnected: bool,
}

impl SlowConsumerAdvisory<'_> {
    /// Where it is told.
    #[must_use]
    pub fn subject(&self) -> &'static str {
        if self.has_begun {
            "$SYS.ADVISORY.SLOW_CONSUMER.BEGAN"
        } else {
            "$SYS.ADVISORY.SLOW_CONSUMER.ENDED"
        }
    }

    /// Appends what is told.
    pub fn write(&self, out: &mut Vec<u8>) {
        let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let mut object = ObjectWriter::new(out);
        object.number("connection", number(self.connection));
        object.text("peer", self.peer);
        object.text("user", self.user);
        if let Some(name) = self.name {
            object.text("name", name);
        }
        object.text("policy", self.policy);
        object.number("missed", number(self.missed));
        object.number("spooled", number(self.spooled));
        object.number("millis", number(self.millis));
        object.bool("disconnected", self.is_disconnected);
        object.end();
    }
}

impl SlowConsumerAdvisory<'_> {
    /// The content of the message that tells it, written into `body`.
    pub fn content<'a>(&self, body: &'a mut Vec<u8>) -> Content<'a> {
        self.write(body);
        Content {
            format: Format::Nats,
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
            advisory.write(&mut out);
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
