//! Message properties in no protocol's words: what formats are translated through, pair by pair.
//!
//! The engine keeps properties as their publisher encoded them. What the broker changes in them later, it
//! changes in that encoding ([`amended`](crate::translation::amended)). A receiver of the same protocol gets
//! them so; for any other, the publisher's side takes them apart ([`visit`](crate::translation::visit)) and
//! the receiver's side puts them together in its own way. The table is in `docs/protocols/mapping.md`.

use angarium_engine::{Annotations, DeathReason, Value};

/// Headers in which the broker says why and where a message died.
const DEATH_HEADERS: [&str; 7] = [
    "x-death",
    "x-first-death-reason",
    "x-first-death-queue",
    "x-first-death-exchange",
    "x-last-death-reason",
    "x-last-death-queue",
    "x-last-death-exchange",
];
/// What `x-death` calls the reasons.
pub(crate) const DEATH_REASONS: [(DeathReason, &str); 4] = [
    (DeathReason::Rejected, "rejected"),
    (DeathReason::Expired, "expired"),
    (DeathReason::MaxLength, "maxlen"),
    (DeathReason::DeliveryLimit, "delivery_limit"),
];

/// What `x-death` calls a reason.
pub(crate) fn reason_name(reason: DeathReason) -> &'static str {
    DEATH_REASONS[reason as usize].1
}

/// The header in which it says how many messages a full queue has dropped from its head before this one.
pub(crate) const DROPPED_HEADER: &str = "x-dropped-count";
/// The header in which it says how often a message was requeued.
pub(crate) const DELIVERY_COUNT_HEADER: &str = "x-delivery-count";
/// The header for further routing keys.
pub(crate) const FURTHER_KEYS_HEADER: &str = "CC";
/// The header that names a message's group, and the one of its place in it.
pub(crate) const GROUP_HEADER: &str = "JMSXGroupID";
pub(crate) const SEQUENCE_HEADER: &str = "JMSXGroupSeq";
/// The header that asks for a delay.
pub(crate) const DELAY_HEADER: &str = "x-delay";

/// One property of a message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Property<'a> {
    /// Where replies go, in the words of the default exchange: a queue or an inbox.
    ReplyTo(&'a str),
    /// Where replies go, where that is another subject than an inbox.
    ReplySubject(&'a str),
    /// One of the texts that most protocols know by some name.
    Text(TextProperty, &'a str),
    /// 0 is the lowest.
    Priority(u8),
    /// When it was made, in seconds since the Unix epoch.
    Timestamp(u64),
    /// What an application put in beside; a name may come several times.
    Header(&'a str, HeaderValue<'a>),
}

/// The texts that most protocols know by some name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextProperty {
    ContentType,
    ContentEncoding,
    CorrelationId,
    MessageId,
    /// Which of the application's kinds of message it is.
    Type,
    AppId,
    /// Who published it, as a broker has checked.
    UserId,
    /// Time to live in milliseconds, as decimal digits.
    Expiration,
}

impl TextProperty {
    /// All of them in their order.
    pub(crate) const ALL: [TextProperty; 8] = [
        TextProperty::ContentType,
        TextProperty::ContentEncoding,
        TextProperty::CorrelationId,
        TextProperty::MessageId,
        TextProperty::Type,
        TextProperty::AppId,
        TextProperty::UserId,
        TextProperty::Expiration,
    ];

    /// Brokers vouch for it or act upon it: it is shown to clients of other protocols, not taken from them.
    pub(crate) fn is_brokers(self) -> bool {
        matches!(self, TextProperty::UserId | TextProperty::Expiration)
    }
}

/// The header for a reply address that is none in the receiver's protocol.
pub(crate) const REPLY_TO_HEADER: &str = "Reply-To";

/// A header's value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum HeaderValue<'a> {
    Text(&'a str),
    Other(Value),
}

/// Whether a message's properties are as they were published, and the broker has nothing to say beside.
#[inline]
pub(crate) fn is_plain(annotations: &Annotations) -> bool {
    annotations.delivery_count == 0
        && annotations.deaths.is_empty()
        && !annotations.ttl_removed
        && !annotations.further_keys_removed
        && !annotations.delayed
        && annotations.dropped == 0
        && annotations.changed.is_empty()
}

/// The headers that are not shown as they were published.
pub(crate) fn withdrawn(annotations: &Annotations) -> Vec<&'static str> {
    let mut names = Vec::new();
    // A publisher's own stay where the broker has nothing to say instead.
    if annotations.delivery_count > 0 {
        names.push(DELIVERY_COUNT_HEADER);
    }
    if annotations.dropped > 0 {
        names.push(DROPPED_HEADER);
    }
    if !annotations.deaths.is_empty() {
        names.extend(DEATH_HEADERS);
    }
    if annotations.further_keys_removed {
        names.push(FURTHER_KEYS_HEADER);
    }
    if annotations.delayed {
        names.push(DELAY_HEADER);
    }
    names
}

impl<'a> HeaderValue<'a> {
    /// Text, if it is that.
    pub(crate) fn of_bytes(bytes: &'a [u8]) -> HeaderValue<'a> {
        match str::from_utf8(bytes) {
            Ok(text) => HeaderValue::Text(text),
            Err(_) => HeaderValue::Other(Value::Bytes(bytes.to_vec())),
        }
    }

    /// The texts that stand for it where headers are text: several for a list, one for all else.
    pub(crate) fn texts(&self, see: &mut dyn FnMut(&str)) {
        match self {
            HeaderValue::Text(text) => see(text),
            HeaderValue::Other(Value::List(values)) => {
                values.iter().for_each(|value| see(&text(value)));
            }
            HeaderValue::Other(value) => see(&text(value)),
        }
    }
}

/// A value as text: numbers in decimal, bytes in hexadecimal, what is nested as JSON.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Text(text) => text.clone(),
        Value::Timestamp(seconds) => seconds.to_string(),
        Value::Bytes(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        Value::List(_) | Value::Map(_) => json(value),
    }
}

fn json(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Int(_) | Value::Timestamp(_) => text(value),
        Value::Float(float) if float.is_finite() => text(value),
        Value::List(values) => {
            let values: Vec<_> = values.iter().map(json).collect();
            format!("[{}]", values.join(","))
        }
        Value::Map(values) => {
            let members: Vec<_> =
                values.iter().map(|(name, value)| quoted(name) + ":" + &json(value)).collect();
            format!("{{{}}}", members.join(","))
        }
        Value::Float(_) | Value::Text(_) | Value::Bytes(_) => quoted(&text(value)),
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
