//! Where messages go and where deliveries come from, in terms that every protocol can map.

/// Where a message goes and how it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route<'a> {
    /// The exchange, where the protocol has them; empty for the default one.
    pub exchange: &'a str,
    /// The routing key, or the subject.
    pub key: &'a str,
    /// To be kept over a restart, where the protocol can.
    pub persistent: bool,
}

/// Where deliveries come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source<'a> {
    /// The queue, or the subject.
    pub name: &'a str,
    /// The group whose members share a subject's messages; queues are shared without one.
    pub group: Option<&'a str>,
    /// Deliveries need no acknowledgement.
    pub auto_ack: bool,
    /// The session that was declared to keep what is published (MQTT), the group whose members share a
    /// stream's entries (RESP), or a stream's consumer (JetStream).
    pub session: Option<&'a str>,
}

impl<'a> Source<'a> {
    /// Everything from there, without acknowledgements.
    pub fn plain(name: &'a str) -> Source<'a> {
        Source { name, group: None, auto_ack: true, session: None }
    }
}

/// What keeps messages for those who consume them later, where no queue does: it is declared before
/// they are published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it keeps: the topics (MQTT), the stream (RESP), the subject (JetStream).
    pub filter: &'a str,
    /// It outlives a restart, with what it keeps.
    pub durable: bool,
    /// Others keep the same messages, each for its own consumers.
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
    /// All up to one at once.
    UpTo,
}
