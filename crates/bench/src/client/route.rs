//! Where messages go and where deliveries come from, in terms that map to every protocol.

/// Where a message goes and how it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route<'a> {
    /// The exchange, where the protocol has them; empty for the default one.
    pub exchange: &'a str,
    /// The routing key, or the subject. With AMQP 1.0, a dot ends the name of a queue: from there on it is
    /// the label of the message.
    pub key: &'a str,
    /// Survives a restart, where the protocol supports that.
    pub persistent: bool,
}

/// Where deliveries come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source<'a> {
    /// The queue, or the subject.
    pub name: &'a str,
    /// The group that shares a subject's messages; queues are shared without one.
    pub group: Option<&'a str>,
    /// Deliveries need no acknowledgement.
    pub auto_ack: bool,
    /// The declared session (MQTT), the stream's consumer group (RESP), or the stream's consumer
    /// (JetStream) that stores the messages.
    pub session: Option<&'a str>,
    /// The labels of the messages that are chosen, each by a subscription of its own (AMQP 1.0); without
    /// them, all messages are.
    pub labels: Option<Labels>,
}

/// Successive values of the property that selective subscriptions choose messages by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Labels {
    /// The first one.
    pub first: u64,
    /// How many.
    pub count: u64,
}

/// Digits of a label.
const LABEL_DIGITS: usize = 7;

impl Labels {
    /// The labels as messages carry them.
    pub(crate) fn texts(self) -> impl Iterator<Item = String> {
        (self.first..self.first + self.count).map(|number| format!(".{number:0LABEL_DIGITS$}"))
    }
}

impl<'a> Source<'a> {
    /// A source without group, session, labels or acknowledgements.
    pub fn plain(name: &'a str) -> Source<'a> {
        Source { name, group: None, auto_ack: true, session: None, labels: None }
    }
}

/// What stores messages for later consumption where the protocol has no queues; declared before the
/// first publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it stores: the topics (MQTT), the stream (RESP), the subject (JetStream).
    pub filter: &'a str,
    /// It survives a restart with its messages.
    pub durable: bool,
    /// Other sessions store the same messages for their own consumers.
    pub fan_out: bool,
    /// How deliveries from it are acknowledged.
    pub acks: Acks,
}

/// How deliveries are acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acks {
    /// Not at all.
    None,
    /// Each of them.
    Each,
    /// Cumulatively.
    UpTo,
}
